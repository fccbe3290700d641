// SPDX-License-Identifier: MIT
/** What a run waits for: the approval of tool calls, or a line for a cell. */

/** A call that a person is asked about. */
export interface ActionRequest {
  name: string;
  args: Record<string, unknown>;
  description?: string;
}

export type DecisionType = "approve" | "edit" | "reject";

export type Decision =
  | { type: "approve" }
  | { type: "edit"; edited_action: { name: string; args: Record<string, unknown> } }
  | { type: "reject"; message?: string };

export type Question =
  | { kind: "approval"; id: string; requests: ActionRequest[]; allowed: DecisionType[][] }
  | { kind: "input"; id: string; prompt: string; password: boolean; callId: string }
  | { kind: "breakpoint"; id: string };

/** What a question was answered with. */
export interface Answer {
  id: string;
  value: unknown;
}

type Json = Record<string, unknown>;

const every: DecisionType[] = ["approve", "edit", "reject"];

function allowedOf(configs: unknown, name: string): DecisionType[] {
  const list: Json[] = Array.isArray(configs) ? configs : [];
  const found = list.find((config) => config.action_name === name)?.allowed_decisions;
  return Array.isArray(found) ? every.filter((type) => found.includes(type)) : every;
}

function requestOf(value: unknown): ActionRequest {
  const { name, args, arguments: other, description } = (value ?? {}) as Json;
  return {
    name: String(name ?? ""),
    args: (args ?? other ?? {}) as Json,
    description: typeof description === "string" ? description : undefined,
  };
}

function questionOf(interrupt: { id?: string; value?: unknown }): Question {
  const id = interrupt.id ?? "";
  const value = (interrupt.value ?? {}) as Json;
  if (Array.isArray(value.action_requests)) {
    const requests = value.action_requests.map(requestOf);
    const allowed = requests.map((r) => allowedOf(value.review_configs, r.name));
    return { kind: "approval", id, requests, allowed };
  }
  if (value.type !== "input_request") return { kind: "breakpoint", id };
  return {
    kind: "input",
    id,
    prompt: String(value.prompt ?? ""),
    password: value.password === true,
    callId: String(value.tool_call_id ?? ""),
  };
}

/** The questions that a run waits with. */
export function questionsOf(interrupts: readonly { id?: string; value?: unknown }[]): Question[] {
  return interrupts.map(questionOf);
}

/** The value of `command.resume`: where several questions are open, answers go by their ids. */
export function resumeOf(answers: readonly Answer[], open: number): unknown {
  if (open <= 1 && answers.length === 1) return answers[0]?.value;
  return Object.fromEntries(answers.map(({ id, value }) => [id, value]));
}
