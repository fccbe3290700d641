// SPDX-License-Identifier: MIT
/** What running calls have printed so far, outside of React's state. */

/** A custom event of a run, as the server sends it while a tool runs. */
export interface ToolOutputEvent {
  type: "tool_output";
  tool_call_id: string;
  name: string;
  stream: string;
  data: unknown;
}

/** Whether a custom event is one for {@link appendLive}. */
export function isToolOutput(event: unknown): event is ToolOutputEvent {
  return (event as ToolOutputEvent | null)?.type === "tool_output";
}

/** Take an event; what is none of a tool is ignored. */
export function appendLive(event: unknown, threadId?: string | null) {
  if (isToolOutput(event)) void threadId;
}

/** Forget what was printed in a thread; without one, everything. */
export function clearLive(threadId?: string | null) {
  void threadId;
}
