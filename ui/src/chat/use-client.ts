// SPDX-License-Identifier: MIT
import type { Client } from "@langchain/langgraph-sdk";
import { useMemo, useSyncExternalStore } from "react";
import { getKey, makeClient, onKey } from "@/api/client";

/** The SDK's client; another one when the key of the server changes. */
export function useClient(): Client {
  const key = useSyncExternalStore(onKey, getKey);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the client takes the key as it is
  return useMemo(() => makeClient(), [key]);
}
