// SPDX-License-Identifier: MIT
import { useCallback, useEffect, useRef } from "react";
import { useKept } from "@/lib/kept-state";

/** A message that waits for the run before it. */
export interface Queued {
  id: string;
  thread: string | null;
  content: string;
  /** The run before it was stopped: it waits for the reader. */
  held?: boolean;
}

interface Options {
  threadId: string | null;
  /** Whether the next one may go now. */
  free: boolean;
  send: (content: string) => void;
}

/**
 * Messages that were written while a run went on. They are kept for the tab, and each is sent when
 * the run before it has ended well; after a stop or an error they wait for the reader.
 */
export function useQueue({ threadId, free, send }: Options) {
  const [all, setAll] = useKept<Queued[]>(sessionStorage, "sandbox-agent.queue", []);
  const queue = all.filter((item) => item.thread === threadId);
  const next = queue[0];
  const sent = useRef("");

  const add = useCallback(
    (content: string) =>
      setAll((old) => [...old, { id: crypto.randomUUID(), thread: threadId, content }]),
    [setAll, threadId],
  );
  const remove = useCallback(
    (id: string) => setAll((old) => old.filter((item) => item.id !== id)),
    [setAll],
  );
  const hold = useCallback(
    () =>
      setAll((old) =>
        old.map((item) => (item.thread === threadId ? { ...item, held: true } : item)),
      ),
    [setAll, threadId],
  );
  const sendNow = useCallback(
    (item: Queued) => {
      if (sent.current === item.id) return;
      sent.current = item.id;
      remove(item.id);
      send(item.content);
    },
    [remove, send],
  );

  useEffect(() => {
    if (free && next && !next.held) sendNow(next);
  }, [free, next, sendNow]);

  return { queue, add, remove, hold, sendNow };
}
