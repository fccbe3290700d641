// SPDX-License-Identifier: MIT
import { describe, expect, it } from "vitest";
import { findThreads } from "@/threads/search";
import { ageOf, groupByAge, type ThreadSummary, titleFrom } from "@/threads/threads";

const thread = (id: string, title?: string, updated_at = "2026-03-10T12:00:00"): ThreadSummary => ({
  thread_id: id,
  updated_at,
  status: "idle",
  metadata: title ? { title } : null,
});

describe("titleFrom", () => {
  it("takes the first line that says something", () => {
    expect(titleFrom("\n  # Plot the  sine\nmore")).toBe("Plot the sine");
    expect(titleFrom("```python\nprint(1)\n```")).toBe("print(1)");
    expect(titleFrom("import time\nfrom a import b\ntime.sleep(1)")).toBe("time.sleep(1)");
    expect(titleFrom("import time")).toBe("import time");
    expect(titleFrom("---")).toBe("---");
    expect(titleFrom("")).toBe("");
  });

  it("cuts between characters", () => {
    const title = titleFrom("😀".repeat(200));
    expect(Array.from(title)).toHaveLength(80);
    expect(title.endsWith("😀…")).toBe(true);
  });
});

describe("ages", () => {
  const now = new Date("2026-03-10T08:00:00");

  it("go by the calendar", () => {
    expect(ageOf("2026-03-10T00:00:00", now)).toBe("today");
    expect(ageOf("2026-03-09T23:59:00", now)).toBe("yesterday");
    expect(ageOf("2026-03-03T00:00:00", now)).toBe("week");
    expect(ageOf("2026-02-09T00:00:00", now)).toBe("month");
    expect(ageOf("2025-01-01T00:00:00", now)).toBe("older");
    expect(ageOf("no time", now)).toBe("today");
  });

  it("without conversations are left out", () => {
    const groups = groupByAge([thread("a"), thread("b", "x", "2020-01-01T00:00:00")], now);
    expect(groups.map((g) => [g.age, g.threads.length])).toEqual([
      ["today", 1],
      ["older", 1],
    ]);
  });
});

describe("findThreads", () => {
  const all = [thread("a", "CSV analysis"), thread("b", "Prime numbers"), thread("c")];

  it("forgives typing errors", () => {
    expect(findThreads(all, "csv anlysis", "Untitled").map((t) => t.thread_id)).toEqual(["a"]);
    expect(findThreads(all, "untitled", "Untitled").map((t) => t.thread_id)).toEqual(["c"]);
    expect(findThreads(all, "quantum", "Untitled")).toEqual([]);
    expect(findThreads(all, "  ", "Untitled")).toHaveLength(3);
  });
});
