// SPDX-License-Identifier: MIT
import type { Client } from "@langchain/langgraph-sdk";
import { useCallback, useEffect, useRef, useState } from "react";
import {
  addStates,
  type ChatState,
  type ChatValues,
  type KnownStates,
  missingBefore,
  noStates,
  statesOf,
} from "@/chat/history";

const FIRST_PAGE = 12;
const PAGE = 40;

/** How many states are looked at; in a longer conversation the oldest messages cannot be edited. */
const MAX_STATES = 600;

interface Loaded {
  thread: string | null;
  known: KnownStates;
  data: ChatState[] | undefined;
  error: unknown;
  loading: boolean;
}

const nothing = (thread: string | null): Loaded => ({
  thread,
  known: noStates,
  data: undefined,
  error: undefined,
  loading: thread !== null,
});

/**
 * The history of a conversation: its newest states at once, older ones behind, and after that only
 * what is new. `reload` reads the newest states again.
 */
export function useHistory(client: Client, threadId: string | null) {
  const [kept, setKept] = useState(() => nothing(threadId));
  const latest = useRef(kept);
  const state = kept.thread === threadId ? kept : nothing(threadId);
  const epoch = useRef(0);

  const put = useCallback((change: Partial<Loaded>) => {
    latest.current = { ...latest.current, ...change };
    setKept(latest.current);
  }, []);

  const page = useCallback(
    (thread: string, limit: number, before?: ChatState) =>
      client.threads.getHistory<ChatValues>(thread, {
        limit,
        before: before && { configurable: before.checkpoint },
      }),
    [client],
  );

  /** Older states, one page after the other, while nobody has asked for something else. */
  const loadOlder = useCallback(
    async (thread: string, first: readonly ChatState[], turn: number) => {
      let before = missingBefore(latest.current.known, first);
      while (before && latest.current.known.size < MAX_STATES) {
        const older = await page(thread, PAGE, before);
        if (epoch.current !== turn) return;
        const known = addStates(latest.current.known, older);
        put({ known, data: statesOf(known) });
        before = missingBefore(known, older);
      }
    },
    [page, put],
  );

  const load = useCallback(
    async (thread: string): Promise<ChatState[]> => {
      const turn = ++epoch.current;
      if (latest.current.thread !== thread) latest.current = nothing(thread);
      put({ loading: true, error: undefined });
      try {
        const first = await page(thread, FIRST_PAGE);
        if (epoch.current !== turn) return first;
        const known = addStates(latest.current.known, first);
        const data = statesOf(known);
        put({ known, data, loading: false });
        // Without them only edits of old messages are missing; the next reload tries again.
        void loadOlder(thread, first, turn).catch(() => undefined);
        return data;
      } catch (error) {
        if (epoch.current === turn) put({ error, loading: false });
        throw error;
      }
    },
    [loadOlder, page, put],
  );

  useEffect(() => {
    if (threadId) load(threadId).catch(() => undefined);
    else epoch.current += 1;
  }, [threadId, load]);

  return { ...state, reload: load };
}
