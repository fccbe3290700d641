// SPDX-License-Identifier: MIT
import { Client } from "@langchain/langgraph-sdk";
import { useMemo, useSyncExternalStore } from "react";
import { getKey, onKey, reportUnauthorized } from "@/api/client";

/** `fetch` that tells a refusal of the key to who asks for keys. */
function watchedFetch(key: string | null): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (response.status === 401) reportUnauthorized(key);
    return response;
  };
}

function makeClient(key: string | null): Client {
  return new Client({
    apiUrl: location.origin,
    apiKey: null,
    defaultHeaders: key ? { "x-api-key": key } : {},
    callerOptions: { maxRetries: 1, fetch: watchedFetch(key) },
  });
}

/** The SDK's client; another one when the key of the server changes. */
export function useClient(): Client {
  const key = useSyncExternalStore(onKey, getKey);
  return useMemo(() => makeClient(key), [key]);
}
