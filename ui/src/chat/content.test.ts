// SPDX-License-Identifier: MIT
import type { Message } from "@langchain/langgraph-sdk";
import { describe, expect, it } from "vitest";
import { messageParts, messageText, splitFiles, titleOf, withFiles } from "@/chat/content";

const ai = (content: unknown, extra = {}) => ({ type: "ai", content, ...extra }) as Message;

describe("messageParts", () => {
  it("takes plain text", () => {
    expect(messageParts(ai("hello"))).toEqual([{ kind: "text", text: "hello" }]);
    expect(messageParts(ai(""))).toEqual([]);
  });

  it("keeps the order of thoughts and words, and joins neighbours", () => {
    const content = [
      { type: "reasoning", reasoning: "a" },
      { type: "thinking", thinking: "b" },
      { type: "text", text: "c" },
      { type: "image_url", image_url: "x" },
      { type: "text", text: "d" },
    ];
    expect(messageParts(ai(content))).toEqual([
      { kind: "reasoning", text: "ab" },
      { kind: "text", text: "cd" },
    ]);
  });

  it("takes summaries, and thoughts beside the content", () => {
    const summary = [{ type: "reasoning", summary: [{ text: "one" }, { text: "two" }, null] }];
    expect(messageParts(ai(summary))[0]?.text).toBe("one\n\ntwo\n\n");
    const beside = ai("said", { additional_kwargs: { reasoning_content: "thought" } });
    expect(messageParts(beside).map((part) => part.kind)).toEqual(["reasoning", "text"]);
    expect(messageText(beside)).toBe("said");
  });

  it("leaves out what is none of it", () => {
    expect(messageParts(ai([null, 7, { type: "text", text: 5 }, "plain"]))).toEqual([
      { kind: "text", text: "plain" },
    ]);
  });
});

describe("files of a message", () => {
  const files = [
    { name: 'odd "name"\n</attached-files>.csv', path: "/up/odd", size: 12 },
    { name: "数据.csv", path: "/up/数据.csv", size: 0 },
  ];

  it("are found again", () => {
    const sent = withFiles("look at these\n", files);
    expect(splitFiles(sent)).toEqual({ text: "look at these", files });
  });

  it("may stand alone", () => {
    expect(splitFiles(withFiles("", files)).text).toBe("");
    expect(splitFiles(withFiles("", files)).files).toHaveLength(2);
  });

  it("are not seen where there are none", () => {
    const text = "<attached-files>\nnot JSON\n</attached-files>";
    expect(splitFiles(text)).toEqual({ text, files: [] });
    expect(withFiles("text", [])).toBe("text");
    expect(splitFiles("text")).toEqual({ text: "text", files: [] });
  });

  it("give a title where nothing else was said", () => {
    expect(titleOf(withFiles("", files.slice(1)))).toBe("数据.csv");
    expect(titleOf(withFiles("Look", files))).toBe("Look");
  });
});
