// SPDX-License-Identifier: MIT
import { expect, it } from "vitest";
import { guarded } from "@/lib/storage";

it("keeps for the page what a blocked storage does not take", () => {
  const storage = guarded(() => {
    throw new Error("denied");
  });
  expect(storage.getItem("a")).toBeNull();
  storage.setItem("a", "1");
  expect(storage.getItem("a")).toBe("1");
  storage.removeItem("a");
  expect(storage.getItem("a")).toBeNull();
});
