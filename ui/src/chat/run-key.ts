// SPDX-License-Identifier: MIT
import { tabStorage } from "@/lib/storage";

/**
 * Which run this tab is following. The SDK keeps it in the tab's storage under this name, joins the
 * run again after a reload, and forgets it when the run has ended.
 */
const name = (threadId: string) => `lg:stream:${threadId}`;

/** The run that is followed in a conversation. */
export function followedRun(threadId: string): string | null {
  return tabStorage.getItem(name(threadId));
}

/** Follow a run; null forgets. */
export function followRun(threadId: string, runId: string | null) {
  if (runId) tabStorage.setItem(name(threadId), runId);
  else tabStorage.removeItem(name(threadId));
}
