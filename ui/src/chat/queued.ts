// SPDX-License-Identifier: MIT
/** Messages that wait, and where they belong. */

/** A message that waits for the run before it. */
export interface Queued {
  id: string;
  thread: string | null;
  /** Which empty page it was written on, where there was no conversation yet. */
  visit: number;
  content: string;
  /** The run before it was stopped: it waits for the reader. */
  held?: boolean;
}

/** An empty page has become a conversation: what waits on it belongs there. */
export function moveNew(all: Queued[], visit: number, thread: string): Queued[] {
  const isNew = (item: Queued) => item.thread === null && item.visit === visit;
  if (!all.some(isNew)) return all;
  return all.map((item) => (isNew(item) ? { ...item, thread } : item));
}

/** What waits in a conversation, or on this empty page. */
export function waitingIn(all: Queued[], thread: string | null, visit: number): Queued[] {
  return all.filter((item) => item.thread === thread && (thread !== null || item.visit === visit));
}
