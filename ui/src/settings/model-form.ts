// SPDX-License-Identifier: MIT
/** The form of the model's settings, apart from how it looks. */
import type { Settings, SettingsChange, Vision } from "@/api/settings";

/** What the form holds. The key is what was typed; empty means "keep". */
export interface ModelForm {
  provider: string;
  model: string;
  key: string;
  baseUrl: string;
  vision: Vision;
}

/** The form as the server's answer has it. */
export function formOf(settings: Settings): ModelForm {
  return {
    provider: settings.chatModelProvider,
    model: settings.chatModelProvider === "direct" ? "" : settings.chatModel,
    key: "",
    baseUrl: settings.chatModelBaseUrl,
    vision: settings.vision,
  };
}

/** What each provider needs to be told. */
export function needs(provider: string): { model: boolean; key: "yes" | "optional" | "no" } {
  if (provider === "direct") return { model: false, key: "no" };
  return { model: true, key: provider === "ollama" ? "optional" : "yes" };
}

/** A name that shows what a provider's models are called. */
export const modelExamples: Record<string, string> = {
  openai: "gpt-4o",
  anthropic: "claude-sonnet-4-5",
  google_genai: "gemini-2.5-flash",
  ollama: "qwen3",
};

/** Another provider has other models at another address; after direct mode nothing is known. */
export function withProvider(form: ModelForm, provider: string, settings: Settings): ModelForm {
  if (provider === settings.chatModelProvider)
    return { ...formOf(settings), key: form.key, vision: form.vision };
  if (provider === "direct") return { ...form, provider };
  return { ...form, provider, model: "", baseUrl: "" };
}

export type FormErrors = Partial<Record<"model" | "baseUrl", "nameMissing" | "baseUrlWrong">>;

/** Whether a text is an address that a model can be asked at. */
export function isHttpUrl(text: string): boolean {
  try {
    return ["http:", "https:"].includes(new URL(text).protocol);
  } catch {
    return false;
  }
}

/** What is missing or wrong. */
export function checkForm(form: ModelForm): FormErrors {
  const errors: FormErrors = {};
  if (!needs(form.provider).model) return errors;
  if (!form.model.trim()) errors.model = "nameMissing";
  const url = form.baseUrl.trim();
  if (url && !isHttpUrl(url)) errors.baseUrl = "baseUrlWrong";
  return errors;
}

/**
 * What to send: only what is changed, so that the server's own settings go on to count for the
 * rest. A change of provider names its model and address, whatever was there before.
 */
export function changesOf(form: ModelForm, settings: Settings): SettingsChange {
  const change: SettingsChange = {};
  const moved = form.provider !== settings.chatModelProvider;
  const model = form.model.trim();
  const url = form.baseUrl.trim();
  if (moved) change.chatModelProvider = form.provider;
  if (form.vision !== settings.vision) change.vision = form.vision;
  if (form.provider === "direct") return change;
  if (moved || model !== settings.chatModel) change.chatModel = model;
  if (moved || url !== settings.chatModelBaseUrl) change.chatModelBaseUrl = url;
  if (form.key.trim()) change.chatModelApiKey = form.key.trim();
  return change;
}

/** Whether a stored key stays behind: it belongs to the place that it was given for. */
export function keyStaysBehind(form: ModelForm, settings: Settings): boolean {
  const moved =
    form.provider !== settings.chatModelProvider ||
    originOf(form.baseUrl) !== originOf(settings.chatModelBaseUrl);
  return moved && Boolean(settings.chatModelApiKeyHint) && settings.chatModelProvider !== "direct";
}

function originOf(text: string): string {
  try {
    return new URL(text.trim()).origin;
  } catch {
    return text.trim();
  }
}
