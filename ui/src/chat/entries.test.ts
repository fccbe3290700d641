// SPDX-License-Identifier: MIT
import type { Message } from "@langchain/langgraph-sdk";
import { describe, expect, it } from "vitest";
import { entriesOf, keepEntries } from "@/chat/entries";
import { keepItems } from "@/lib/equal";

const human = (id: string) => ({ id, type: "human", content: id }) as Message;
const ai = (id: string, ...calls: string[]) =>
  ({
    id,
    type: "ai",
    content: id,
    tool_calls: calls.map((c) => ({ id: c, name: "t", args: {} })),
  }) as Message;
const tool = (call: string) =>
  ({ id: `r-${call}`, type: "tool", content: "ok", tool_call_id: call }) as Message;

const talk = [human("h1"), ai("a1", "c1", "c2"), tool("c2"), tool("c1"), ai("a2"), human("h2")];

describe("entriesOf", () => {
  it("gathers all that came of a message", () => {
    const entries = entriesOf(talk);
    expect(entries.map((e) => e.kind)).toEqual(["human", "answer", "human"]);
    const answer = entries[1];
    if (answer?.kind !== "answer") throw new Error("no answer");
    expect(answer.steps.map((s) => s.message.id)).toEqual(["a1", "a2"]);
    expect(answer.steps[0]?.results.map((r) => r?.tool_call_id)).toEqual(["c1", "c2"]);
  });

  it("knows calls without a result", () => {
    const [entry] = entriesOf([ai("a1", "c1")]);
    expect(entry?.kind === "answer" && entry.steps[0]?.results).toEqual([undefined]);
  });
});

describe("keepEntries", () => {
  it("keeps what is the same, in whatever new objects it comes", () => {
    const before = entriesOf(talk);
    const again = keepItems(talk, structuredClone(talk));
    expect(again).toBe(talk);
    expect(keepEntries(before, entriesOf(again))).toBe(before);
  });

  it("renews only the entry that has grown", () => {
    const before = entriesOf(talk);
    const next = keepEntries(before, entriesOf([...talk, ai("a3")]));
    expect(next.slice(0, 3)).toEqual(before);
    expect(next[1]).toBe(before[1]);
    const grown = keepEntries(next, entriesOf([...talk, ai("a3", "c9"), tool("c9")]));
    expect(grown[1]).toBe(before[1]);
    expect(grown[3]).not.toBe(next[3]);
  });
});
