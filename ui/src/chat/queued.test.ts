// SPDX-License-Identifier: MIT
import { expect, it } from "vitest";
import { moveNew, waitingIn } from "@/chat/queued";

const all = [
  { id: "1", thread: null, visit: 1, content: "a" },
  { id: "2", thread: "other", visit: 1, content: "b" },
  { id: "3", thread: null, visit: 2, content: "c" },
];

it("takes what waits on an empty page to the conversation that it becomes", () => {
  expect(moveNew(all, 1, "new").map((item) => item.thread)).toEqual(["new", "other", null]);
  expect(moveNew(all, 3, "new")).toBe(all);
});

it("keeps what waits on one empty page out of the next one", () => {
  const ids = (thread: string | null, visit: number) =>
    waitingIn(all, thread, visit).map((item) => item.id);
  expect(ids(null, 2)).toEqual(["3"]);
  expect(ids(null, 5)).toEqual([]);
  expect(ids("other", 5)).toEqual(["2"]);
});
