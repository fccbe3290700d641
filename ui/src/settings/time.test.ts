// SPDX-License-Identifier: MIT
import { expect, it } from "vitest";
import { timeAgo } from "@/settings/time";

const now = Date.parse("2026-01-02T00:00:00Z");

it.each([
  ["2026-01-02T00:00:00Z", "now"],
  ["2026-01-02T00:00:09Z", "now"],
  ["2026-01-01T23:59:30Z", "30 seconds ago"],
  ["2026-01-01T23:55:00Z", "5 minutes ago"],
  ["2026-01-01T21:30:00Z", "2 hours ago"],
  ["2025-12-30T00:00:00Z", "3 days ago"],
  ["not a time", "not a time"],
])("%s is %s", (time, text) => {
  expect(timeAgo(time, now, "en")).toBe(text);
});
