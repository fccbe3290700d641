// SPDX-License-Identifier: MIT
import { useCallback, useEffect, useRef, useState } from "react";
import { onLeftBehind } from "@/chat/first-message";
import { moveNew, type Queued, waitingIn } from "@/chat/queued";
import { newId } from "@/lib/id";
import { readKept, writeKept } from "@/lib/kept-state";
import { tabStorage } from "@/lib/storage";

const NAME = "sandbox-agent.queue";
const forget = () => writeKept(tabStorage, NAME, undefined);

/**
 * A tab that is duplicated has a copy of the storage, and would send all once more: what waits is
 * in there only while the page is away.
 */
const taken = readKept<Queued[]>(tabStorage, NAME, []).map((item) => ({ ...item, visit: 0 }));
forget();

function useKeptQueue() {
  const [all, setAll] = useState(taken);
  useEffect(() => {
    const keep = () => writeKept(tabStorage, NAME, all.length > 0 ? all : undefined);
    addEventListener("pagehide", keep);
    addEventListener("pageshow", forget);
    return () => {
      removeEventListener("pagehide", keep);
      removeEventListener("pageshow", forget);
    };
  }, [all]);
  return [all, setAll] as const;
}

interface Options {
  threadId: string | null;
  visit: number;
  /** Whether the next one may go now. */
  free: boolean;
  send: (content: string) => void;
}

/**
 * Messages that were written while a run went on. They are kept for the tab, and each is sent when
 * the run before it has ended well; after a stop or an error they wait for the reader.
 */
export function useQueue({ threadId, visit, free, send }: Options) {
  const [all, setAll] = useKeptQueue();
  const queue = waitingIn(all, threadId, visit);
  const next = queue[0];
  const sent = useRef("");

  const last = useRef({ threadId, visit });
  useEffect(() => {
    const before = last.current;
    last.current = { threadId, visit };
    if (threadId && before.threadId === null && before.visit === visit)
      setAll((old) => moveNew(old, visit, threadId));
  }, [threadId, visit, setAll]);
  useEffect(
    () => onLeftBehind((left, thread) => setAll((old) => moveNew(old, left, thread))),
    [setAll],
  );

  const add = useCallback(
    (content: string) =>
      setAll((old) => [...old, { id: newId(), thread: threadId, visit, content }]),
    [setAll, threadId, visit],
  );
  const remove = useCallback(
    (id: string) => setAll((old) => old.filter((item) => item.id !== id)),
    [setAll],
  );
  const hold = useCallback(
    () =>
      setAll((old) => {
        const here = waitingIn(old, threadId, visit);
        return old.map((item) => (here.includes(item) ? { ...item, held: true } : item));
      }),
    [setAll, threadId, visit],
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
