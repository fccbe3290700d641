// SPDX-License-Identifier: MIT
/** What a person is about to decide of a call; it is told as the page shows it, or not at all. */
import type { ActionRequest, Decision, DecisionType } from "@/chat/interrupts";

export interface Draft {
  type: DecisionType | null;
  /** Null while what is typed is no JSON object. */
  args: Record<string, unknown> | null;
  message: string;
}

/** Nothing is decided yet. */
export const undecided = (request: ActionRequest): Draft => ({
  type: null,
  args: request.args,
  message: "",
});

/** Choose what becomes of a call. What was edited stays as long as it is on the page. */
export function choose(request: ActionRequest, draft: Draft, type: DecisionType | null): Draft {
  return type === draft.type ? draft : { ...draft, type, args: request.args };
}

/** The choices that are offered now: what is being edited is not approved as it was. */
export function choicesOf(allowed: readonly DecisionType[], draft: Draft): DecisionType[] {
  return allowed.filter((type) => type !== "approve" || draft.type !== "edit");
}

/** The decision, or null while there is none. */
export function decisionOf(request: ActionRequest, draft: Draft): Decision | null {
  if (draft.type === "approve") return { type: "approve" };
  if (draft.type === "reject") {
    const message = draft.message.trim();
    return message ? { type: "reject", message } : { type: "reject" };
  }
  if (draft.type === "edit" && draft.args)
    return { type: "edit", edited_action: { name: request.name, args: draft.args } };
  return null;
}

/** What a call is for, without its arguments, which are shown anyway. */
export function summaryOf(request: ActionRequest): string {
  const line = request.description?.split("\n")[0] ?? "";
  const cut = line.search(/\s*(?:with exactly these arguments: )?\{/);
  return (cut < 0 ? line : line.slice(0, cut)).trim();
}
