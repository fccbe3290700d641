// SPDX-License-Identifier: MIT
import { expect, it } from "vitest";
import { newId } from "@/lib/id";

it("makes UUIDs of version 4", () => {
  const ids = new Set(Array.from({ length: 100 }, newId));
  expect(ids.size).toBe(100);
  for (const id of ids)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});
