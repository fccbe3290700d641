// SPDX-License-Identifier: MIT
/** Finding conversations by their titles, with typing errors forgiven. */
import Fuse from "fuse.js";
import { useMemo } from "react";
import { type ThreadSummary, threadTitle } from "@/threads/threads";

/** The conversations whose title is like `text`, best first; all of them for an empty text. */
export function findThreads(threads: readonly ThreadSummary[], text: string, untitled: string) {
  const wanted = text.trim();
  if (!wanted) return [...threads];
  const fuse = new Fuse(threads, {
    keys: [{ name: "title", getFn: (t) => threadTitle(t) ?? untitled }],
    threshold: 0.35,
    ignoreLocation: true,
  });
  return fuse.search(wanted).map((hit) => hit.item);
}

/** The same, kept between renders. */
export function useFound(threads: readonly ThreadSummary[], text: string, untitled: string) {
  return useMemo(() => findThreads(threads, text, untitled), [threads, text, untitled]);
}
