// SPDX-License-Identifier: MIT
/** A call of a tool and what became of it. */
import type { ToolMessage } from "@langchain/langgraph-sdk";

/** What the model asked for. */
export interface ToolCall {
  id?: string;
  name: string;
  args: Record<string, unknown>;
}

/** What {@link ToolBlock} shows. */
export interface ToolBlockProps {
  call: ToolCall;
  result: ToolMessage | undefined;
  /** Whether the run that makes the call goes on. */
  running: boolean;
  threadId: string | null;
  /** Open it while it runs: the last one of a conversation. */
  autoOpen?: boolean;
}

/** A call of a tool and what became of it. */
export function ToolBlock({ call }: ToolBlockProps) {
  return <section>{call.name}</section>;
}
