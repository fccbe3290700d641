// SPDX-License-Identifier: MIT
import { expect, it } from "vitest";
import { moveNew } from "@/chat/use-queue";

it("takes what waits on the empty page to the conversation that it becomes", () => {
  const all = [
    { id: "1", thread: null, content: "a" },
    { id: "2", thread: "other", content: "b" },
  ];
  expect(moveNew(all, "new").map((item) => item.thread)).toEqual(["new", "other"]);
  expect(moveNew(all.slice(1), "new")[0]).toBe(all[1]);
});
