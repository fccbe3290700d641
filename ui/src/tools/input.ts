// SPDX-License-Identifier: MIT
/** The arguments of a call, taken apart for people. */

/** Which argument of a tool is code. */
const fields: Record<string, string> = { execute_code: "code", execute_terminal: "command" };

export interface SplitInput {
  /** The argument that is code. */
  field: string | null;
  code: string | null;
  /** All others. */
  rest: Record<string, unknown>;
}

/** The code of a call, and everything beside it. */
export function splitInput(name: string, args: Record<string, unknown>): SplitInput {
  const field = Object.hasOwn(fields, name) ? (fields[name] ?? null) : null;
  const value = field === null ? undefined : args[field];
  if (field === null || typeof value !== "string") return { field: null, code: null, rest: args };
  const rest = { ...args };
  delete rest[field];
  return { field, code: value, rest };
}

/** Arguments that a person has written; `error` says what is wrong with them. */
export function parseArguments(text: string): { args?: Record<string, unknown>; error?: string } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return { args: value as Record<string, unknown> };
    return { error: Array.isArray(value) ? "[…]" : String(value) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}
