// SPDX-License-Identifier: MIT
import { Client } from "@langchain/langgraph-sdk";
import i18next from "i18next";
import { useMemo, useSyncExternalStore } from "react";
import { getKey, onKey, queryClient, reportUnauthorized } from "@/api/client";
import { arrivingFetch } from "@/chat/arriving-fetch";
import { keepFirst } from "@/chat/first-message";
import { toast } from "@/components/toast";
import { describeError } from "@/lib/errors";
import { refreshThreads } from "@/threads/threads";

/** `fetch` that tells a refusal of the key to who asks for keys. */
function watchedFetch(key: string | null): typeof fetch {
  return async (input, init) => {
    const response = await arrivingFetch(input, init);
    if (response.status === 401) reportUnauthorized(key);
    return response;
  };
}

/** A message of a conversation that is not open any more was sent, or could not be. */
function onSent(error?: unknown) {
  if (error === undefined) return refreshThreads(queryClient);
  const { text, offline } = describeError(error);
  const reason = offline ? i18next.t("chat.error.lost") : text;
  toast(i18next.t("chat.error.notSent", { reason }), "error");
}

function makeClient(key: string | null): Client {
  const client = new Client({
    apiUrl: location.origin,
    apiKey: null,
    defaultHeaders: key ? { "x-api-key": key } : {},
    callerOptions: { maxRetries: 1, fetch: watchedFetch(key) },
  });
  keepFirst(client, onSent);
  return client;
}

/** The SDK's client; another one when the key of the server changes. */
export function useClient(): Client {
  const key = useSyncExternalStore(onKey, getKey);
  return useMemo(() => makeClient(key), [key]);
}
