// SPDX-License-Identifier: MIT
/** What the owner has set: the model and a few preferences. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { requestJson } from "@/api/client";

/** Providers that the server knows. `direct` needs no model: it runs the code that is typed. */
export const providers = ["openai", "anthropic", "google_genai", "ollama", "direct"] as const;
export type Provider = (typeof providers)[number];

/** Whether the model sees images; `auto` is as the server knows it. */
export const visions = ["auto", "yes", "no"] as const;
export type Vision = (typeof visions)[number];

/** The server's answer; the key itself never comes back, only a hint of it. */
export interface Settings {
  chatModel: string;
  chatModelProvider: string;
  chatModelApiKey: "";
  chatModelApiKeyHint: string;
  chatModelBaseUrl: string;
  supportsVision: boolean;
  vision: Vision;
  /** What the owner wants for new sandboxes, where the operator lets them. */
  networkEnabled: boolean;
  /** What the operator lets sandboxes have. */
  networkAllowed: boolean;
  imagesToModel: boolean;
  /** Whether a run can be started with these; `reason` says why not. */
  ready: boolean;
  reason: string;
}

/** What may be sent: an empty key keeps the stored one, what is missing stays as it is. */
export interface SettingsChange {
  chatModel?: string;
  chatModelProvider?: string;
  chatModelApiKey?: string;
  chatModelBaseUrl?: string;
  vision?: Vision;
  networkEnabled?: boolean;
  imagesToModel?: boolean;
  /** Forget what is stored, also where it cannot be opened any more. */
  reset?: boolean;
}

const queryKey = ["settings"];

/** The settings as the server has them. */
export function useSettings() {
  return useQuery({
    queryKey,
    queryFn: ({ signal }) => requestJson<Settings>("/settings", { signal }),
  });
}

/** Changes settings; the answer is what {@link useSettings} gives from then on. */
export function useChangeSettings() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (json: SettingsChange) =>
      requestJson<Settings>("/settings", { method: "PUT", json }),
    onSuccess: (settings) => client.setQueryData(queryKey, settings),
  });
}
