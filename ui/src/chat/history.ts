// SPDX-License-Identifier: MIT
/**
 * The states of a conversation, from which branches are known. Each state that the server sends
 * holds all messages up to it, so a long conversation would be kept and searched many times over.
 * Here a state inside of a branch keeps only what is new in it; the ends of branches keep all.
 */
import type { Message, ThreadState } from "@langchain/langgraph-sdk";

export type ChatValues = { messages: Message[] };
export type ChatState = ThreadState<ChatValues>;

interface Known {
  state: ChatState;
  /** The ids of all messages in the state. */
  ids: readonly string[];
}

/** States by the id of their checkpoint. */
export type KnownStates = ReadonlyMap<string, Known>;

export const noStates: KnownStates = new Map();

const idOf = (state: ChatState) => state.checkpoint?.checkpoint_id ?? "";
const parentOf = (state: ChatState) => state.parent_checkpoint?.checkpoint_id ?? null;
const messagesOf = (state: ChatState) => state.values?.messages ?? [];

/** What is known when `page` has come; states that have followers are made light. */
export function addStates(known: KnownStates, page: readonly ChatState[]): KnownStates {
  const all = new Map(known);
  for (const state of page)
    all.set(idOf(state), { state, ids: messagesOf(state).map((m) => m.id ?? "") });
  const parents = new Set([...all.values()].map(({ state }) => parentOf(state)));
  for (const [id, { state, ids }] of all)
    if (parents.has(id)) all.set(id, { ids, state: lightened(all, state, ids) });
  return all;
}

/** Where the parent is not known yet nothing counts as new, so that no wrong place is forked. */
function lightened(all: KnownStates, state: ChatState, ids: readonly string[]): ChatState {
  const parent = parentOf(state);
  const before = parent === null ? [] : all.get(parent)?.ids;
  const old = new Set(before);
  const fresh = before ? ids.filter((id) => !old.has(id)) : [];
  const messages = fresh.map((id) => ({ id, type: "human", content: "" }) as Message);
  return { ...state, values: { messages } };
}

/** The states as the stream wants them: newest first. */
export function statesOf(known: KnownStates): ChatState[] {
  const states = [...known.values()].map(({ state }) => state);
  return states.sort((a, b) => (idOf(a) < idOf(b) ? 1 : -1));
}

/** The state before the oldest one of a page where that is not known; null when nothing lacks. */
export function missingBefore(known: KnownStates, page: readonly ChatState[]): ChatState | null {
  const oldest = page.at(-1);
  if (!oldest) return null;
  const parent = parentOf(oldest);
  return parent === null || known.has(parent) ? null : oldest;
}

/** Whether the server has this message in its newest state. */
export function isSaved(known: KnownStates, messageId: string | undefined): boolean {
  const newest = statesOf(known)[0];
  return newest !== undefined && (known.get(idOf(newest))?.ids.includes(messageId ?? "") ?? false);
}

/** The checkpoint from which a message can be said anew, where it is known for sure. */
export function forkPoint(known: KnownStates, seen: ChatState | undefined, messageId: string) {
  const checkpoint = seen?.parent_checkpoint;
  const parent = checkpoint?.checkpoint_id ? known.get(checkpoint.checkpoint_id) : undefined;
  return parent && !parent.ids.includes(messageId) ? checkpoint : undefined;
}
