// SPDX-License-Identifier: MIT
import { expect, it } from "vitest";
import { questionsOf, resumeOf } from "@/chat/interrupts";

it("reads approvals with what is allowed for each call", () => {
  const value = {
    action_requests: [
      { name: "execute_terminal", args: { command: "ls" }, description: "Run it" },
      { name: "execute_code", arguments: { code: "1" } },
    ],
    review_configs: [{ action_name: "execute_terminal", allowed_decisions: ["reject", "approve"] }],
  };
  expect(questionsOf([{ id: "i", value }])).toEqual([
    {
      kind: "approval",
      id: "i",
      requests: [
        { name: "execute_terminal", args: { command: "ls" }, description: "Run it" },
        { name: "execute_code", args: { code: "1" }, description: undefined },
      ],
      allowed: [
        ["approve", "reject"],
        ["approve", "edit", "reject"],
      ],
    },
  ]);
});

it("reads what a cell asks for", () => {
  const value = { type: "input_request", prompt: "Key: ", password: true, tool_call_id: "c" };
  expect(questionsOf([{ id: "i", value }])[0]).toEqual({
    kind: "input",
    id: "i",
    prompt: "Key: ",
    password: true,
    callId: "c",
  });
});

it("takes everything else as a pause", () => {
  expect(questionsOf([{}, { id: "x", value: "text" }]).map((q) => q.kind)).toEqual([
    "breakpoint",
    "breakpoint",
  ]);
});

it("answers one question by its value, and one of several by its id", () => {
  expect(resumeOf([{ id: "i", value: "line" }], 1)).toBe("line");
  expect(resumeOf([{ id: "i", value: "line" }], 2)).toEqual({ i: "line" });
});
