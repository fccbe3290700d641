// SPDX-License-Identifier: MIT
/**
 * The conversation as it is laid out: what a person said, and all that came of it as one answer.
 */
import type { AIMessage, HumanMessage, Message, ToolMessage } from "@langchain/langgraph-sdk";
import { sameItems } from "@/lib/equal";

/** A model's message with the results of its calls, in the order of the calls. */
export interface Step {
  message: AIMessage;
  results: readonly (ToolMessage | undefined)[];
}

export type Entry =
  | { kind: "human"; id: string; message: HumanMessage }
  | { kind: "answer"; id: string; steps: readonly Step[] };

function resultsOf(messages: readonly Message[]): Map<string, ToolMessage> {
  const results = new Map<string, ToolMessage>();
  for (const m of messages) if (m.type === "tool") results.set(m.tool_call_id, m);
  return results;
}

/** Lay out a conversation. */
export function entriesOf(messages: readonly Message[]): Entry[] {
  const results = resultsOf(messages);
  const entries: Entry[] = [];
  messages.forEach((message, i) => {
    const id = message.id ?? String(i);
    if (message.type === "human") entries.push({ kind: "human", id, message });
    if (message.type !== "ai") return;
    const calls = message.tool_calls ?? [];
    const step = { message, results: calls.map((call) => results.get(call.id ?? "")) };
    const last = entries.at(-1);
    if (last?.kind === "answer") last.steps = [...last.steps, step];
    else entries.push({ kind: "answer", id, steps: [step] });
  });
  return entries;
}

function sameStep(a: Step | undefined, b: Step): boolean {
  return a?.message === b.message && sameItems(a.results, b.results);
}

function keepSteps(before: readonly Step[], next: readonly Step[]): readonly Step[] {
  const kept = next.map((step, i) => (sameStep(before[i], step) ? (before[i] ?? step) : step));
  return sameItems(before, kept) ? before : kept;
}

/** `next`, but with the very objects of `before` where nothing has changed. */
export function keepEntries(before: readonly Entry[], next: readonly Entry[]): readonly Entry[] {
  const known = new Map(before.map((entry) => [entry.id, entry]));
  const kept = next.map((entry): Entry => {
    const old = known.get(entry.id);
    if (entry.kind === "human")
      return old?.kind === "human" && old.message === entry.message ? old : entry;
    if (old?.kind !== "answer") return entry;
    const steps = keepSteps(old.steps, entry.steps);
    return steps === old.steps ? old : { ...entry, steps };
  });
  return sameItems(before, kept) ? before : kept;
}
