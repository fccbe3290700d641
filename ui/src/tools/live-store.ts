// SPDX-License-Identifier: MIT
/**
 * What running calls have printed so far, outside of React's state: a cell may print faster than a
 * page can be drawn. What comes is put together once for each frame that the browser draws.
 */
import { useSyncExternalStore } from "react";
import type { DisplayItem } from "@/displays/display";
import { LineBuffer } from "@/tools/line-buffer";

/** A custom event of a run, as the server sends it while a tool runs. */
export interface ToolOutputEvent {
  type: "tool_output";
  tool_call_id: string;
  name: string;
  stream: string;
  data: unknown;
}

/** What a call has printed; a new object each time, the lines themselves are shared. */
export interface LiveOutput {
  readonly buffer: LineBuffer;
  readonly displays: readonly DisplayItem[];
  /** Bytes that the server left out because they came too fast. */
  readonly gap: number;
}

interface Entry {
  threadId: string | null;
  output: LiveOutput;
}

const CALLS_MAX = 24;
const DISPLAYS_MAX = 200;
/** How long a hidden page, which draws nothing, lets events wait. */
const HIDDEN_MS = 500;
/** How much is taken at once; the rest waits for the next frame. */
const FRAME_CHARACTERS = 1_000_000;

const calls = new Map<string, Entry>();
const listeners = new Map<string, Set<() => void>>();
let waiting: { event: ToolOutputEvent; threadId: string | null }[] = [];
let isScheduled = false;

/** Whether a custom event is one for {@link appendLive}. */
export function isToolOutput(event: unknown): event is ToolOutputEvent {
  const one = event as Partial<ToolOutputEvent> | null | undefined;
  return one?.type === "tool_output" && typeof one.tool_call_id === "string";
}

function schedule() {
  if (isScheduled) return;
  isScheduled = true;
  if (typeof requestAnimationFrame === "undefined") {
    setTimeout(flush, 16);
    return;
  }
  let isDone = false;
  const once = () => {
    if (!isDone) flush();
    isDone = true;
  };
  requestAnimationFrame(once);
  setTimeout(once, HIDDEN_MS);
}

/** Take an event; what is none of a tool is ignored. */
export function appendLive(event: unknown, threadId: string | null = null) {
  if (!isToolOutput(event)) return;
  waiting.push({ event, threadId });
  schedule();
}

function entryOf(id: string, threadId: string | null): Entry {
  let entry = calls.get(id);
  if (!entry) {
    entry = { threadId, output: { buffer: new LineBuffer(), displays: [], gap: 0 } };
    calls.set(id, entry);
    const oldest = calls.keys().next();
    if (calls.size > CALLS_MAX && !oldest.done) calls.delete(oldest.value);
  }
  return entry;
}

function isDisplay(data: unknown): data is DisplayItem {
  return typeof (data as DisplayItem | null)?.type === "string";
}

function take(entry: Entry, { stream, data }: ToolOutputEvent) {
  const { buffer, displays, gap } = entry.output;
  if ((stream === "stdout" || stream === "stderr") && typeof data === "string")
    buffer.append(stream, data);
  else if (stream === "display" && isDisplay(data))
    entry.output = { buffer, displays: [...displays, data].slice(-DISPLAYS_MAX), gap };
  else if (stream === "gap" && typeof data === "number")
    entry.output = { buffer, displays, gap: gap + data };
}

/** Take what has come, up to a frame's share. */
export function flush() {
  isScheduled = false;
  const changed = new Set<Entry>();
  const ids = new Set<string>();
  let characters = 0;
  let count = 0;
  for (const { event, threadId } of waiting) {
    if (characters > FRAME_CHARACTERS) break;
    characters += typeof event.data === "string" ? event.data.length : 0;
    count += 1;
    const entry = entryOf(event.tool_call_id, threadId);
    take(entry, event);
    changed.add(entry);
    ids.add(event.tool_call_id);
  }
  waiting = waiting.slice(count);
  for (const entry of changed) entry.output = { ...entry.output };
  for (const id of ids) for (const listener of listeners.get(id) ?? []) listener();
  if (waiting.length > 0) schedule();
}

/** Forget what was printed in a thread; without one, everything. */
export function clearLive(threadId: string | null = null) {
  const isOf = (one: string | null) => threadId === null || one === null || one === threadId;
  waiting = waiting.filter((one) => !isOf(one.threadId));
  for (const [id, entry] of [...calls]) {
    if (!isOf(entry.threadId)) continue;
    calls.delete(id);
    for (const listener of listeners.get(id) ?? []) listener();
  }
}

/** What a call has printed so far. */
export function getLive(id: string | undefined): LiveOutput | undefined {
  return id === undefined ? undefined : calls.get(id)?.output;
}

/** Call `listener` when more is printed; the result ends that. */
export function onLive(id: string, listener: () => void): () => void {
  const set = listeners.get(id) ?? new Set();
  listeners.set(id, set.add(listener));
  return () => {
    set.delete(listener);
    if (set.size === 0 && listeners.get(id) === set) listeners.delete(id);
  };
}

/** What a call has printed so far, as a component shows it. */
export function useLive(id: string | undefined): LiveOutput | undefined {
  return useSyncExternalStore(
    (listener) => (id === undefined ? () => undefined : onLive(id, listener)),
    () => getLive(id),
  );
}
