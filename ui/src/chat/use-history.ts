// SPDX-License-Identifier: MIT
import type { Client } from "@langchain/langgraph-sdk";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { requestJson } from "@/api/client";
import {
  addStates,
  type ChatState,
  type ChatValues,
  idOf,
  isWhole,
  type KnownStates,
  missingBefore,
  noStates,
  skeletonOf,
} from "@/chat/history";

/** More than a run makes, so that a new run joins on to what is known at once. */
const PAGE = 80;

/** How many states are looked at; in a longer conversation the oldest messages cannot be edited. */
const MAX_STATES = 800;

interface Loaded {
  thread: string | null;
  known: KnownStates;
  loaded: boolean;
  error: unknown;
  loading: boolean;
}

const nothing = (thread: string | null): Loaded => ({
  thread,
  known: noStates,
  loaded: false,
  error: undefined,
  loading: thread !== null,
});

/** States without what their messages say. */
function lightPage(thread: string, before?: ChatState): Promise<ChatState[]> {
  return requestJson<ChatState[]>(`/threads/${encodeURIComponent(thread)}/history?ids=true`, {
    method: "POST",
    json: { limit: PAGE, before: before?.checkpoint },
  });
}

/**
 * The history of a conversation: its newest state, and of the older ones the ids of their messages.
 * `reload` reads what is new, `loadState` the whole of an older state.
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

  /** Older states, one page after the other, while nobody has asked for something else. */
  const loadOlder = useCallback(
    async (thread: string, first: readonly ChatState[], turn: number) => {
      let before = missingBefore(latest.current.known, first);
      while (before && latest.current.known.size < MAX_STATES) {
        const older = await lightPage(thread, before);
        if (epoch.current !== turn) return;
        const known = addStates(latest.current.known, older);
        put({ known });
        before = missingBefore(known, older);
      }
    },
    [put],
  );

  const load = useCallback(
    async (thread: string): Promise<KnownStates> => {
      const turn = ++epoch.current;
      if (latest.current.thread !== thread) latest.current = nothing(thread);
      put({ loading: true, error: undefined });
      try {
        const light = await lightPage(thread);
        let known = addStates(latest.current.known, light);
        const newest = light[0] && idOf(light[0]);
        if (newest && !isWhole(known, newest))
          known = addStates(known, [await client.threads.getState<ChatValues>(thread, newest)]);
        if (epoch.current !== turn) return known;
        put({ known, loaded: true, loading: false });
        // Without them only edits of old messages are missing; the next reload tries again.
        void loadOlder(thread, light, turn).catch(() => undefined);
        return known;
      } catch (error) {
        if (epoch.current === turn) put({ error, loading: false });
        throw error;
      }
    },
    [client, loadOlder, put],
  );

  const loadState = useCallback(
    async (thread: string, checkpointId: string) => {
      const whole = await client.threads.getState<ChatValues>(thread, checkpointId);
      if (latest.current.thread === thread && idOf(whole) === checkpointId)
        put({ known: addStates(latest.current.known, [whole]) });
    },
    [client, put],
  );

  useEffect(() => {
    if (threadId) load(threadId).catch(() => undefined);
    else epoch.current += 1;
  }, [threadId, load]);

  const { known, loaded, error, loading } = state;
  const data = useMemo(() => (loaded ? skeletonOf(known) : undefined), [loaded, known]);
  return { known, loaded, data, error, loading, reload: load, loadState };
}
