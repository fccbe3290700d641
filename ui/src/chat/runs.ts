// SPDX-License-Identifier: MIT
import type { Client } from "@langchain/langgraph-sdk";
import { followedRun, followRun } from "@/chat/run-key";

/** A request may still be on its way when the reader has stopped it. */
const ARRIVAL_MS = 300;

/** The runs of a conversation that are not over, oldest first. */
export async function activeRuns(client: Client, threadId: string): Promise<string[]> {
  const lists = await Promise.all(
    (["running", "pending"] as const).map((status) => client.runs.list(threadId, { status })),
  );
  const runs = lists.flat().sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
  return runs.map((run) => run.run_id);
}

/** End what runs in a conversation, and wait until it has. */
export async function cancelRuns(client: Client, threadId: string) {
  const known = followedRun(threadId);
  if (!known) await new Promise((resolve) => setTimeout(resolve, ARRIVAL_MS));
  const runs = new Set(await activeRuns(client, threadId));
  if (known) runs.add(known);
  followRun(threadId, null);
  // A run that has ended meanwhile cannot be cancelled, which is as well.
  await Promise.allSettled([...runs].map((run) => client.runs.cancel(threadId, run, true)));
}
