// SPDX-License-Identifier: MIT
import type { ToolMessage } from "@langchain/langgraph-sdk";
import { describe, expect, it, vi } from "vitest";
import { coloursAfter, ESC, keepColours, spansOf, stripAnsi } from "@/tools/ansi";
import { parseArguments, splitInput } from "@/tools/input";
import { LineBuffer, linesOf } from "@/tools/line-buffer";
import { appendLive, clearLive, flush, getLive, onLive } from "@/tools/live-store";
import { causeOf, hasNothing, parsePayload, statusOf } from "@/tools/payload";

const texts = (buffer: LineBuffer) => buffer.lines.map((line) => line.text);

describe("terminal output", () => {
  it("keeps colours and nothing else", () => {
    expect(keepColours(`${ESC}[31mred${ESC}[0m${ESC}[2J${ESC}[10;5H`)).toBe(
      `${ESC}[31mred${ESC}[0m`,
    );
    expect(stripAnsi(`${ESC}]0;title${String.fromCharCode(7)}a${ESC}[1mb`)).toBe("ab");
    expect(stripAnsi(`a${ESC}]8;;http://x${ESC}\\link${ESC}]8;;${ESC}\\`)).toBe("alink");
    expect(stripAnsi(`a${ESC}P1;2qdata${ESC}\\b${ESC}c`)).toBe("ab");
    expect(stripAnsi(`a${ESC}]52;c;cGFzdGU=`)).toBe("a");
  });

  it("goes on in its colour in the next line", () => {
    const open = coloursAfter("", `${ESC}[31mred`);
    expect(open).toBe(`${ESC}[31m`);
    expect(spansOf("still", open)[0]).toMatchObject({ text: "still", fg: "ansi-red" });
    expect(coloursAfter(open, `x${ESC}[0m`)).toBe("");
  });

  it("knows the sixteen colours, the palette and all others", () => {
    expect(spansOf(`${ESC}[92ma`)[0]).toMatchObject({ fg: "ansi-bright-green" });
    expect(spansOf(`${ESC}[38;5;208ma`)[0]).toMatchObject({ fg: null, fgRgb: "255, 135, 0" });
    expect(spansOf(`${ESC}[38;2;1;2;3ma`)[0]).toMatchObject({ fg: null, fgRgb: "1, 2, 3" });
  });

  it("shows what is left of control characters", () => {
    expect(spansOf("a\u0008b")[0]?.text).toBe("a⟨U+0008⟩b");
  });
});

describe("lines", () => {
  it("are put together from pieces", () => {
    const buffer = new LineBuffer();
    for (const piece of ["a", "b\nc", "\n", "\n", "d"]) buffer.append("stdout", piece);
    expect(texts(buffer)).toEqual(["ab", "c", "", "d"]);
  });

  it("begin anew at a carriage return", () => {
    const buffer = new LineBuffer();
    for (const piece of [" 10%\r", " 20%\r 30%", "\r", "done\r\nnext"])
      buffer.append("stdout", piece);
    expect(texts(buffer)).toEqual(["done", "next"]);
  });

  it("of the two streams do not mix", () => {
    const buffer = new LineBuffer();
    buffer.append("stdout", "a");
    buffer.append("stderr", "b\n");
    buffer.append("stdout", "c");
    expect(buffer.lines.map((line) => [line.stream, line.text])).toEqual([
      ["stdout", "a"],
      ["stderr", "b"],
      ["stdout", "c"],
    ]);
  });

  it("wait for the rest of a sequence", () => {
    const buffer = new LineBuffer();
    for (const piece of [`a${ESC}`, "[3", "1mb\nc"]) buffer.append("stdout", piece);
    expect(texts(buffer)).toEqual([`a${ESC}[31mb`, "c"]);
    expect(buffer.lines[1]?.colours).toBe(`${ESC}[31m`);
  });

  it("are dropped from the beginning, and counted", () => {
    const buffer = new LineBuffer({ lines: 100, characters: 1_000_000, line: 100 });
    for (let i = 0; i < 1000; i++) buffer.append("stdout", `line ${i}\n`);
    expect(buffer.lines.length).toBeLessThanOrEqual(100);
    expect(buffer.dropped + buffer.lines.length).toBe(1000);
    expect(buffer.lines.at(-1)?.text).toBe("line 999");
  });

  it("are bounded by their characters, too", () => {
    const buffer = new LineBuffer({ lines: 10_000, characters: 1000, line: 100 });
    buffer.append("stdout", "x".repeat(50_000));
    expect(buffer.lines.reduce((sum, line) => sum + line.text.length, 0)).toBeLessThanOrEqual(1000);
    expect(buffer.dropped).toBeGreaterThan(0);
  });

  it("of a result have its streams one after the other", () => {
    expect(texts(linesOf("a\nb\n", "c"))).toEqual(["a", "b", "c"]);
  });
});

describe("live output", () => {
  const event = (stream: string, data: unknown, id = "call") => ({
    type: "tool_output",
    tool_call_id: id,
    name: "execute_code",
    stream,
    data,
  });

  it("is told once for all that came in a frame", () => {
    const listener = vi.fn();
    const end = onLive("call", listener);
    for (let i = 0; i < 50; i++) appendLive(event("stdout", `${i}\n`), "t");
    appendLive(event("display", { type: "image/png", data: "AA" }), "t");
    appendLive(event("gap", 12), "t");
    appendLive({ type: "other" });
    appendLive(null);
    flush();
    expect(listener).toHaveBeenCalledTimes(1);
    expect(getLive("call")?.buffer.lines).toHaveLength(50);
    expect(getLive("call")?.displays).toEqual([{ type: "image/png", data: "AA" }]);
    expect(getLive("call")?.gap).toBe(12);
    end();
  });

  it("is another object for each change", () => {
    const before = getLive("call");
    appendLive(event("stderr", "x"), "t");
    flush();
    expect(getLive("call")).not.toBe(before);
  });

  it("of one thread is forgotten without the others", () => {
    appendLive(event("stdout", "y", "other"), "u");
    flush();
    clearLive("t");
    expect(getLive("call")).toBeUndefined();
    expect(getLive("other")).toBeDefined();
    clearLive();
    expect(getLive("other")).toBeUndefined();
  });

  it("of many calls is bounded", () => {
    for (let i = 0; i < 100; i++) appendLive(event("stdout", "z", `c${i}`));
    flush();
    expect(getLive("c0")).toBeUndefined();
    expect(getLive("c99")).toBeDefined();
    clearLive();
  });
});

describe("results", () => {
  const message = (payload: unknown, status: "success" | "error" = "success"): ToolMessage => ({
    type: "tool",
    content: typeof payload === "string" ? payload : JSON.stringify(payload),
    tool_call_id: "1",
    status,
  });
  const status = (payload: unknown, kind?: "success" | "error") => {
    const one = message(payload, kind);
    return statusOf(one, parsePayload(one), false);
  };

  it("tell how a call stands", () => {
    expect(statusOf(undefined, null, true)).toBe("running");
    expect(statusOf(undefined, null, false)).toBe("waiting");
    for (const end of ["ok", "error", "timeout", "interrupted", "died"])
      expect(status({ success: end === "ok", status: end, state: "kept" })).toBe(end);
    expect(status({ success: true, session_id: "a", status: "running" })).toBe("ok");
    expect(status({ success: false, error: "ValueError: x" })).toBe("error");
    expect(status({ success: false, error: "CONTAINER_DIED: x" })).toBe("died");
    expect(status("there is no tool 'x'", "error")).toBe("error");
    expect(status("[1]")).toBe("ok");
  });

  it("may come in blocks", () => {
    const one = { ...message(""), content: [{ type: "text" as const, text: '{"success":true}' }] };
    expect(parsePayload(one)).toEqual({ success: true });
  });

  it("may have nothing to show", () => {
    const empty = { stdout: "", stderr: "", error: null, result: null, display_outputs: [] };
    expect(hasNothing(empty)).toBe(true);
    expect(hasNothing({ ...empty, result: {}, output: { truncated: false } })).toBe(true);
    for (const more of [
      { stdout: "x" },
      { stderr: "x" },
      { error: "x" },
      { late_output: { stdout: "x" } },
      { output: { truncated: true } },
      { result: { "text/plain": "1" } },
      { display_outputs: [{ type: "image/png", data: "" }] },
    ])
      expect(hasNothing({ ...empty, ...more })).toBe(false);
  });

  it("have causes in words", () => {
    expect(causeOf("oom")).toEqual({ key: "oom" });
    expect(causeOf("signal:9")).toEqual({ key: "signal", number: "9" });
    expect(causeOf("constructor")).toEqual({ key: "other" });
  });
});

describe("arguments", () => {
  it("are taken apart", () => {
    const args = { session_id: "a", code: "x", timeout: 3 };
    expect(splitInput("execute_code", args)).toEqual({
      field: "code",
      code: "x",
      rest: { session_id: "a", timeout: 3 },
    });
    expect(splitInput("execute_code", { code: 5 }).code).toBeNull();
    expect(splitInput("toString", args)).toEqual({ field: null, code: null, rest: args });
  });

  it("have to be an object", () => {
    expect(parseArguments('{"a":1}')).toEqual({ args: { a: 1 } });
    for (const text of ["[1]", "3", "null", "{"]) expect(parseArguments(text).error).toBeTruthy();
  });
});
