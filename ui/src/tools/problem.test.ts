// SPDX-License-Identifier: MIT
import i18next from "i18next";
import { beforeAll, describe, expect, it } from "vitest";
import { en } from "@/i18n/en";
import { zh } from "@/i18n/zh";
import { problemOf, shortProblem } from "@/tools/problem";

const SAID = "the kernel was ended by signal 9 (SIGKILL)";
const died = {
  success: false,
  status: "died",
  cause: "signal:9",
  message: SAID,
  error: { type: "Died", message: SAID, traceback: "" },
};

beforeAll(() =>
  i18next.init({
    lng: "zh",
    resources: { en: { translation: en }, zh: { translation: zh } },
    interpolation: { escapeValue: false },
  }),
);

describe("in Chinese", () => {
  it("the end of a cell is told in the page's words, and the server's are named so", () => {
    const t = i18next.getFixedT("zh");
    expect(shortProblem(t, died)).toBe("进程被信号 9 终止。");
    expect(problemOf(t, died)).toEqual({
      known: "进程被信号 9 终止。",
      said: SAID,
      thrown: null,
    });
  });

  it("a session that has died, and arguments that are wrong, are known", () => {
    const t = i18next.getFixedT("zh");
    const gone = { error: "CONTAINER_DIED: the memory limit is exhausted (oom)" };
    expect(problemOf(t, gone)).toEqual({
      known: "会话已终止。 内存已用尽。",
      said: null,
      thrown: null,
    });
    expect(shortProblem(t, { error: "INVALID_INPUT", details: [] })).toBe("参数无效。");
  });
});

describe("what the page does not know", () => {
  const t = () => i18next.getFixedT("en");

  it("stays as it is", () => {
    expect(shortProblem(t(), { error: "ValueError: no \u202esession" })).toBe(
      "The server says: ValueError: no ⟨U+202E⟩session",
    );
    expect(shortProblem(t(), { error: "CONTAINER_DIED: removed (constructor)" })).toBe(
      "The session has died.",
    );
    expect(problemOf(t(), { error: "CONTAINER_DIED: removed (new)" })?.said).toBe("removed (new)");
    expect(problemOf(t(), { error: "" })).toBeNull();
  });

  it("is what code has thrown, also where a limit was its reason", () => {
    const error = { type: "KeyError", message: "'a'", traceback: "..." };
    expect(shortProblem(t(), { error })).toBe("KeyError: 'a'");
    expect(problemOf(t(), { error, cause: "disk", message: "the disk is full" })?.thrown).toBe(
      error,
    );
  });
});
