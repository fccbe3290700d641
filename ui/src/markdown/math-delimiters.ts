// SPDX-License-Identifier: MIT
/**
 * Models write formulas as `\(…\)`, `\[…\]`, `$…$` and `$$…$$`; people write prices. Here all
 * formulas become dollars, and dollars that are none are escaped.
 */

/**
 * Code spans, as [from, to]: from a run of backticks to the next one as long. Each run is looked at
 * once, however many there are that never end.
 */
function codeSpans(text: string): [number, number][] {
  const runs = [...text.matchAll(/`+/g)].map((run) => ({ at: run.index, size: run[0].length }));
  const next: (number | undefined)[] = [];
  const bySize = new Map<number, number>();
  for (let i = runs.length - 1; i >= 0; i--) {
    const size = runs[i]?.size ?? 0;
    next[i] = bySize.get(size);
    bySize.set(size, i);
  }
  const spans: [number, number][] = [];
  for (let i = 0; i < runs.length; i++) {
    const end = next[i];
    const [from, to] = [runs[i], end === undefined ? undefined : runs[end]];
    if (!from || !to || end === undefined) continue;
    spans.push([from.at, to.at + to.size]);
    i = end;
  }
  return spans;
}

/** Replace what stands between two marks, by one look at each; a body of more than `most` stays. */
function between(
  text: string,
  [open, close]: [string, string],
  most: number,
  make: (body: string, from: number, to: number) => string,
): string {
  let out = "";
  let from = 0;
  let end = -1;
  for (let at = text.indexOf(open); at >= 0; at = text.indexOf(open, Math.max(at + 2, from))) {
    if (end < at + 3) end = text.indexOf(close, at + 3);
    if (end < 0) break;
    if (end - at - 2 > most) continue;
    out += text.slice(from, at) + make(text.slice(at + 2, end), at, end + 2);
    from = end + 2;
  }
  return out + text.slice(from);
}

/** Whether there may be a formula in a text at all. */
export function hasMath(text: string): boolean {
  return text.includes("$") || text.includes("\\(") || text.includes("\\[");
}

/** Where the formula that begins at `at` ends, or -1: as Pandoc has it, in one paragraph. */
function closing(text: string, at: number): number {
  if (/\s|^$/.test(text.charAt(at + 1))) return -1;
  for (let i = at + 1; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === "\n" && /^\n[ \t]*\n/.test(text.slice(i, i + 80))) return -1;
    else if (text[i] === "$")
      return /\s/.test(text.charAt(i - 1)) || /[\d$]/.test(text.charAt(i + 1)) ? -1 : i;
  }
  return -1;
}

/** Escape dollars that begin no formula. */
function escapeDollars(text: string): string {
  let out = "";
  let i = 0;
  const take = (end: number) => {
    out += text.slice(i, end);
    i = end;
  };
  while (i < text.length) {
    if (text[i] === "\\") take(i + 2);
    else if (text.startsWith("$$", i)) {
      const end = text.indexOf("$$", i + 2);
      if (end >= 0) take(end + 2);
      else {
        out += "\\$\\$";
        i += 2;
      }
    } else if (text[i] === "$") {
      const end = closing(text, i);
      if (end < 0) out += "\\";
      take(end < 0 ? i + 1 : end + 1);
    } else take(i + 1);
  }
  return out;
}

/** A formula that has its lines to itself, by the indent before it; null for one that has not. */
function ownLines(text: string, from: number, to: number): string | null {
  const before = /(?:^|\n)([ \t]{0,40})$/.exec(text.slice(Math.max(0, from - 41), from));
  return before && /^[ \t]{0,40}(?:\n|$)/.test(text.slice(to, to + 41)) ? (before[1] ?? "") : null;
}

function convert(plain: string): string {
  const text = escapeDollars(plain);
  const blocks = between(text, ["\\[", "\\]"], 5000, (body, from, to) => {
    const indent = ownLines(text, from, to);
    if (indent === null) return `$$${body.trim()}$$`;
    return ["$$", ...body.trim().split(/\n[ \t]*/), "$$"].join(`\n${indent}`);
  });
  return between(blocks, ["\\(", "\\)"], 1000, (body) => `$${body.trim()}$`);
}

/** The text between code spans. */
function convertText(text: string): string {
  let out = "";
  let from = 0;
  for (const [start, end] of codeSpans(text)) {
    out += convert(text.slice(from, start)) + text.slice(start, end);
    from = end;
  }
  return out + convert(text.slice(from));
}

/** Rewrite the formulas of a Markdown text; code stays as it is. */
export function normalizeMath(text: string): string {
  if (!hasMath(text)) return text;
  const out: string[] = [];
  let plain: string[] = [];
  let fence: string | null = null;
  const flush = () => {
    if (plain.length > 0) out.push(convertText(plain.join("\n")));
    plain = [];
  };
  for (const line of text.split("\n")) {
    const mark = /^[\s>]*(?:[-*+]\s+|\d+[.)]\s+)*(`{3,}|~{3,})(.*)$/.exec(line);
    if (fence === null && mark?.[1] && !(mark[1][0] === "`" && mark[2]?.includes("`"))) {
      flush();
      fence = mark[1];
      out.push(line);
    } else if (fence !== null) {
      out.push(line);
      if (mark?.[1]?.startsWith(fence) && mark[2]?.trim() === "") fence = null;
    } else plain.push(line);
  }
  flush();
  return out.join("\n");
}
