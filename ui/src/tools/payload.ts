// SPDX-License-Identifier: MIT
/** The answers of the eight tools, as the server writes them into a tool message. */
import type { ToolMessage } from "@langchain/langgraph-sdk";
import type { DisplayItem } from "@/displays/display";

export interface CellError {
  type: string;
  message: string;
  traceback?: string;
}

export interface SessionEntry {
  session_id: string;
  runtime: string;
  status: string;
  busy?: boolean;
  created_at?: string;
  idle_seconds?: number;
  network?: string;
  dependencies?: Record<string, string>;
  cause?: string;
  degraded?: string[];
}

export interface FileEntry {
  path?: string;
  session_id?: string;
  source?: string;
  destination?: string;
  success: boolean;
  size: number;
  files?: number;
  type?: "file" | "directory";
  error: string;
}

/** All that a payload may have; which of it is there depends on the tool and on what happened. */
export interface Payload extends Partial<Omit<SessionEntry, "status">> {
  success?: boolean;
  status?: string;
  /** How it ended, in the server's words. */
  message?: string;
  state?: string;
  cause?: string;
  stdout?: string;
  stderr?: string;
  result?: Record<string, unknown> | null;
  error?: CellError | string | null;
  details?: unknown;
  display_outputs?: DisplayItem[];
  late_output?: { stdout?: string; stderr?: string };
  duration_ms?: number;
  exit_code?: number;
  signal?: number;
  output?: { stdout_bytes?: number; stderr_bytes?: number; truncated?: boolean };
  sessions?: SessionEntry[];
  active_sessions?: SessionEntry[];
  files?: FileEntry[];
  interrupted?: boolean;
  hint?: string;
}

export type CallStatus =
  | "running"
  | "waiting"
  | "ok"
  | "error"
  | "timeout"
  | "interrupted"
  | "died";

/** The text of a message, whatever form its content has. */
export function messageText(message: ToolMessage): string {
  if (typeof message.content === "string") return message.content;
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** The payload of a tool message; null for one that is only text. */
export function parsePayload(message: ToolMessage): Payload | null {
  try {
    const value: unknown = JSON.parse(messageText(message));
    return value && typeof value === "object" && !Array.isArray(value) ? (value as Payload) : null;
  } catch {
    return null;
  }
}

const ends = new Set<string>(["ok", "error", "timeout", "interrupted", "died"]);

/** How a call stands. */
export function statusOf(
  result: ToolMessage | undefined,
  payload: Payload | null,
  running: boolean,
): CallStatus {
  if (!result) return running ? "running" : "waiting";
  if (payload?.state !== undefined || payload?.exit_code !== undefined) {
    if (payload.status && ends.has(payload.status)) return payload.status as CallStatus;
  }
  if (typeof payload?.error === "string" && payload.error.startsWith("CONTAINER_DIED"))
    return "died";
  const failed = payload ? payload.success === false : result.status === "error";
  return failed ? "error" : "ok";
}

/** A cause as the server names it, for `tools.cause.*`. */
export function causeOf(cause: string): { key: string; number?: string } {
  const [word = "", number] = cause.split(":");
  if ((word === "signal" || word === "exit") && number !== undefined) return { key: word, number };
  const known = [
    "timeout",
    "user",
    "oom",
    "pids",
    "disk",
    "protocol",
    "expired",
    "evicted",
    "lost",
  ];
  return { key: known.includes(word) && number === undefined ? word : "other" };
}

/** Whether a cell or command has ended without anything to show. */
export function hasNothing(payload: Payload): boolean {
  const { stdout, stderr, error, late_output: late, output, result } = payload;
  if (stdout || stderr || error || late || output?.truncated) return false;
  return !payload.display_outputs?.length && Object.keys(result ?? {}).length === 0;
}
