// SPDX-License-Identifier: MIT
import { describe, expect, it } from "vitest";
import type { Settings } from "@/api/settings";
import { changesOf, checkForm, formOf, keyStaysBehind, withProvider } from "@/settings/model-form";

const settings: Settings = {
  chatModel: "gpt-4o",
  chatModelProvider: "openai",
  chatModelApiKey: "",
  chatModelApiKeyHint: "sk-•••wxyz",
  chatModelBaseUrl: "",
  supportsVision: true,
  vision: "auto",
  networkEnabled: true,
  networkAllowed: true,
  imagesToModel: true,
  ready: true,
  reason: "",
};

describe("the model's form", () => {
  it("sends nothing when nothing is changed", () => {
    expect(changesOf(formOf(settings), settings)).toEqual({});
  });

  it("sends only what is changed, and an empty key never", () => {
    const form = { ...formOf(settings), model: " gpt-5 ", vision: "no" as const };
    expect(changesOf(form, settings)).toEqual({ chatModel: "gpt-5", vision: "no" });
    expect(changesOf({ ...form, key: " sk-1 " }, settings).chatModelApiKey).toBe("sk-1");
  });

  it("names model and address anew with another provider", () => {
    const form = withProvider(formOf(settings), "anthropic", settings);
    expect(form.model).toBe("");
    expect(checkForm(form)).toEqual({ model: "nameMissing" });
    expect(changesOf({ ...form, model: "gpt-4o" }, settings)).toEqual({
      chatModelProvider: "anthropic",
      chatModel: "gpt-4o",
      chatModelBaseUrl: "",
    });
  });

  it("comes back to what is stored with the same provider", () => {
    const away = withProvider(formOf(settings), "anthropic", settings);
    expect(withProvider(away, "openai", settings)).toEqual(formOf(settings));
  });

  it("leaves the model alone for direct mode", () => {
    const form = withProvider(formOf(settings), "direct", settings);
    expect(checkForm({ ...form, model: "" })).toEqual({});
    expect(changesOf({ ...form, key: "sk-1" }, settings)).toEqual({ chatModelProvider: "direct" });
  });

  it.each(["ftp://x", "example.com", "javascript:alert(1)", "//x"])("refuses %s", (baseUrl) => {
    expect(checkForm({ ...formOf(settings), baseUrl })).toEqual({ baseUrl: "baseUrlWrong" });
  });

  it("knows when a stored key stays behind", () => {
    const form = formOf(settings);
    expect(keyStaysBehind(form, settings)).toBe(false);
    expect(keyStaysBehind({ ...form, baseUrl: "https://a.example/v1" }, settings)).toBe(true);
    const at = { ...settings, chatModelBaseUrl: "https://a.example/v1" };
    expect(keyStaysBehind({ ...formOf(at), baseUrl: "https://a.example/v2" }, at)).toBe(false);
    expect(keyStaysBehind({ ...form, provider: "ollama" }, settings)).toBe(true);
  });
});
