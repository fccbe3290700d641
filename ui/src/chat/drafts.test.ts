// SPDX-License-Identifier: MIT
import { expect, it } from "vitest";
import { choicesOf, choose, decisionOf, summaryOf, undecided } from "@/chat/drafts";

const request = { name: "execute_code", args: { code: "as it was" } };
const edited = {
  ...choose(request, undecided(request), "edit"),
  args: { code: "as I want" },
};

it("keeps what was edited, and sends that only", () => {
  expect(choose(request, edited, "edit")).toBe(edited);
  expect(decisionOf(request, edited)).toEqual({
    type: "edit",
    edited_action: { name: "execute_code", args: { code: "as I want" } },
  });
  expect(decisionOf(request, { ...edited, args: null })).toBeNull();
  expect(choicesOf(["approve", "edit", "reject"], edited)).toEqual(["edit", "reject"]);
});

it("begins from what was asked when the choice was another one between", () => {
  const again = choose(request, choose(request, edited, "reject"), "edit");
  expect(again.args).toBe(request.args);
  const left = choose(request, edited, null);
  expect(decisionOf(request, left)).toBeNull();
  expect(choicesOf(["approve", "edit"], left)).toEqual(["approve", "edit"]);
});

it("gives a reason with a rejection where there is one", () => {
  const draft = choose(request, undecided(request), "reject");
  expect(decisionOf(request, draft)).toEqual({ type: "reject" });
  expect(decisionOf(request, { ...draft, message: " no " })).toEqual({
    type: "reject",
    message: "no",
  });
});

it("says what a call is for without its arguments", () => {
  const description = 'Run code (execute_code) with exactly these arguments: {"code":"1"}';
  expect(summaryOf({ ...request, description })).toBe("Run code (execute_code)");
  expect(summaryOf({ ...request, description: "Sends a mail\n\nTo: x" })).toBe("Sends a mail");
  expect(summaryOf(request)).toBe("");
});
