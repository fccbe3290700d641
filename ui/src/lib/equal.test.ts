// SPDX-License-Identifier: MIT
import { expect, it } from "vitest";
import { keepItems, sameJson } from "@/lib/equal";

it("compares by content, and takes null and nothing as one", () => {
  expect(sameJson({ a: [1, { b: null }] }, { a: [1, {}], c: undefined })).toBe(true);
  expect(sameJson({ a: 1 }, { a: 1, b: 0 })).toBe(false);
  expect(sameJson([1], { 0: 1 })).toBe(false);
  expect(sameJson([1, 2], [1])).toBe(false);
  expect(sameJson("", null)).toBe(false);
});

it("keeps items that are the same", () => {
  const before = [{ id: "a", n: 1 }, { id: "b", n: 2 }, { n: 3 }];
  expect(keepItems(before, before)).toBe(before);
  const next = keepItems(before, [{ id: "b", n: 2 }, { id: "a", n: 9 }, { n: 3 }]);
  expect(next[0]).toBe(before[1]);
  expect(next[1]).not.toBe(before[0]);
  expect(next[2]).not.toBe(before[2]);
});
