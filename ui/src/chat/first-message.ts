// SPDX-License-Identifier: MIT
/**
 * What is said on the empty page, until there is a conversation for it. Whoever has gone elsewhere
 * before it was made has said it all the same: it is sent there without the reader.
 */
import type { Client, Message } from "@langchain/langgraph-sdk";
import { GRAPH } from "@/api/client";
import { getVisit } from "@/lib/thread-url";

interface First {
  messages: Message[];
  visit: number;
}

type Threads = Client["threads"];
type Made = (visit: number, threadId: string) => void;

let first: First | null = null;
const listeners = new Set<Made>();

/** These messages are what the next conversation is made for. */
export function sayFirst(messages: Message[]) {
  first = { messages, visit: getVisit() };
}

/** Call `listener` when a conversation was made whose reader has gone; the result ends that. */
export function onLeftBehind(listener: Made): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const aborted = () => new DOMException("The reader has left.", "AbortError");

/** Say it in the conversation that nobody looks at. */
async function deliver(client: Client, said: First, threadId: string) {
  for (const listener of listeners) listener(said.visit, threadId);
  await client.runs.create(threadId, GRAPH, { input: { messages: said.messages } });
}

/**
 * Make conversations as the SDK wants it, but neither forget a message whose reader has left, nor
 * show its conversation in place of what is read now. `sent` is told of such a message, and why
 * it could not be sent.
 */
export function keepFirst(client: Client, sent: (error?: unknown) => void) {
  const create = client.threads.create.bind(client.threads);
  client.threads.create = ((payload) => {
    const said = first;
    const signal = payload?.signal;
    const isLeft = () => said !== null && said.visit !== getVisit();
    first = null;
    return new Promise((resolve, reject) => {
      let isStopped = false;
      signal?.addEventListener("abort", () => {
        isStopped = !isLeft();
        reject(aborted());
      });
      create({ ...payload, signal: undefined })
        .then(async (thread) => {
          if (isStopped) return client.threads.delete(thread.thread_id);
          if (!said || !isLeft()) return resolve(thread as never);
          reject(aborted());
          await deliver(client, said, thread.thread_id);
          sent();
        })
        .catch((error) => {
          if (isLeft() && !isStopped) sent(error);
          reject(error);
        });
    });
  }) as Threads["create"];
}
