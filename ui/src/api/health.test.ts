// SPDX-License-Identifier: MIT
import { expect, it } from "vitest";
import { nextLook } from "@/api/health";

it("looks seldom while all is well, soon after a failure, and less often later", () => {
  expect([0, 1, 2, 3, 4, 5, 50].map(nextLook)).toEqual([
    30_000, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000,
  ]);
});
