// SPDX-License-Identifier: MIT
/**
 * The states of a conversation, from which its branches are known. Each state of the server holds
 * all messages up to it, so the whole of a long conversation would come many times over. Here only
 * what is shown is kept whole, and of all other states the ids of their messages.
 */
import type { Checkpoint, Message, ThreadState } from "@langchain/langgraph-sdk";
import { getBranchContext } from "@langchain/langgraph-sdk/ui";

export type ChatValues = { messages: Message[] };
export type ChatState = ThreadState<ChatValues>;

interface Known {
  /** Without messages, where they are not known but for their ids. */
  state: ChatState;
  ids: readonly string[];
}

/** States by the id of their checkpoint. */
export type KnownStates = ReadonlyMap<string, Known>;

export const noStates: KnownStates = new Map();

/** The id of a state. */
export const idOf = (state: ChatState) => state.checkpoint?.checkpoint_id ?? "";
const parentOf = (state: ChatState) => state.parent_checkpoint?.checkpoint_id ?? null;
const messagesOf = (state: ChatState) => state.values?.messages ?? [];
const saysAll = (state: ChatState) => messagesOf(state).every((message) => message.type);

function entryOf(state: ChatState, before: Known | undefined): Known {
  const ids = messagesOf(state).map((message) => message.id ?? "");
  if (saysAll(state)) return { state, ids };
  // Its tasks are news, though: a question may have come, or an answer.
  const values = before?.state.values ?? { messages: [] };
  return { state: { ...state, values }, ids };
}

/** What is known when states have come, whole or of ids. */
export function addStates(known: KnownStates, states: readonly ChatState[]): KnownStates {
  const all = new Map(known);
  for (const state of states) all.set(idOf(state), entryOf(state, all.get(idOf(state))));
  return all;
}

/** Whether all of a state is here. */
export function isWhole(known: KnownStates, id: string): boolean {
  const found = known.get(id);
  return found !== undefined && messagesOf(found.state).length === found.ids.length;
}

/** The states, newest first. */
export function statesOf(known: KnownStates): ChatState[] {
  const states = [...known.values()].map(({ state }) => state);
  return states.sort((a, b) => (idOf(a) < idOf(b) ? 1 : -1));
}

function childrenOf(states: readonly ChatState[]): Map<string | null, number> {
  const children = new Map<string | null, number>();
  for (const state of states)
    children.set(parentOf(state), (children.get(parentOf(state)) ?? 0) + 1);
  return children;
}

/**
 * Only where branches begin, part and end, which is all that the SDK needs; it looks through the
 * whole list whenever something is drawn.
 */
export function skeletonOf(known: KnownStates): ChatState[] {
  const states = statesOf(known);
  const children = childrenOf(states);
  const keeps = (state: ChatState): boolean => {
    const parent = parentOf(state);
    const count = children.get(idOf(state)) ?? 0;
    return count !== 1 || !known.has(parent ?? "") || (children.get(parent) ?? 0) > 1;
  };
  const kept = new Set(states.filter(keeps).map(idOf));
  const ancestor = (state: ChatState): Checkpoint | null => {
    let at: ChatState | undefined = state;
    while (at && parentOf(at) !== null && !kept.has(parentOf(at) ?? ""))
      at = known.get(parentOf(at) ?? "")?.state;
    return at?.parent_checkpoint ?? state.parent_checkpoint ?? null;
  };
  return states
    .filter((state) => kept.has(idOf(state)))
    .map((state) => ({
      ...state,
      parent_checkpoint: ancestor(state),
      values: children.has(idOf(state)) ? { messages: [] } : state.values,
    }));
}

/** The oldest of some states when the one before it is not known; null when nothing lacks. */
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

/** The branch of the newest state: what was said last is on it. */
export function newestBranch(known: KnownStates): string {
  const states = statesOf(known);
  const children = childrenOf(states);
  const path: string[] = [];
  for (let at = states[0]; at; at = known.get(parentOf(at) ?? "")?.state)
    if ((children.get(parentOf(at)) ?? 0) > 1) path.unshift(idOf(at));
  return path.join(">");
}

/** The state at the end of a branch, and whether all of it is here. */
export function headOf(known: KnownStates, branch: string) {
  const head = getBranchContext<ChatValues>(branch, statesOf(known)).threadHead;
  if (!head) return null;
  return { id: idOf(head), whole: isWhole(known, idOf(head)) };
}

/** What can be done at a message. */
export interface Mark {
  /** The checkpoint before it, from which it can be said anew, and the branch of that. */
  fork?: Checkpoint;
  forkBranch: string;
  branch: string;
  /** The branches between which can be chosen here; none where there is no choice. */
  options: readonly string[];
}

/** For each message the state that has it first, where that is known for sure. */
function firstSeen(known: KnownStates): Map<string, ChatState> {
  const seen = new Map<string, ChatState>();
  for (const state of statesOf(known).reverse()) {
    const parent = known.get(parentOf(state) ?? "");
    if (!parent) continue;
    const before = new Set(parent.ids);
    for (const id of known.get(idOf(state))?.ids ?? [])
      if (!before.has(id) && !seen.has(id)) seen.set(id, state);
  }
  return seen;
}

/** What can be done at the messages of a branch, by their ids. */
export function marksOf(known: KnownStates, branch: string): Map<string, Mark> {
  const { threadHead, branchByCheckpoint } = getBranchContext<ChatValues>(branch, statesOf(known));
  const seen = firstSeen(known);
  const chosen = new Set<string>();
  const marks = new Map<string, Mark>();
  for (const id of known.get(threadHead ? idOf(threadHead as ChatState) : "")?.ids ?? []) {
    const state = seen.get(id);
    const place = state && branchByCheckpoint[idOf(state)];
    let options = place?.branchOptions ?? [];
    const name = options.join();
    // All messages of a branch are at the same choice; it is offered at the first of them.
    if (options.length < 2 || chosen.has(name)) options = [];
    else chosen.add(name);
    const fork = state?.parent_checkpoint ?? undefined;
    marks.set(id, {
      fork,
      forkBranch: branchByCheckpoint[fork?.checkpoint_id ?? ""]?.branch ?? "",
      branch: place?.branch ?? "",
      options,
    });
  }
  return marks;
}
