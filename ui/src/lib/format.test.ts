// SPDX-License-Identifier: MIT
import { expect, it } from "vitest";
import { formatBytes } from "@/lib/format";

it("writes sizes", () => {
  expect(formatBytes(1, "en")).toBe("1 byte");
  expect(formatBytes(999, "en")).toBe("999 bytes");
  expect(formatBytes(12_345, "en")).toBe("12 kB");
  expect(formatBytes(3_400_000, "en")).toBe("3.4 MB");
  expect(formatBytes(999_600, "en")).toBe("1 MB");
  expect(formatBytes(9_960_000, "en")).toBe("10 MB");
  expect(formatBytes(5e12, "en")).toBe("5 TB");
  expect(formatBytes(3_400_000, "de")).toBe("3,4 MB");
});
