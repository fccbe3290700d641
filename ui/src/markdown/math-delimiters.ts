// SPDX-License-Identifier: MIT
/**
 * Models write formulas as `\(…\)`, `\[…\]`, `$…$` and `$$…$$`; people write prices. Here all
 * formulas become dollars, and dollars that are none are escaped.
 */

const code = /(`+)(?!`)[\s\S]*?(?<!`)\1(?!`)/g;

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

function convert(text: string): string {
  return escapeDollars(text)
    .replace(/^([ \t]*)\\\[([\s\S]{1,5000}?)\\\][ \t]*$/gm, (_, indent: string, body: string) => {
      const lines = body.trim().split(/\n[ \t]*/);
      return ["$$", ...lines, "$$"].map((line) => indent + line).join("\n");
    })
    .replace(/\\\[([\s\S]{1,5000}?)\\\]/g, (_, body: string) => `$$${body.trim()}$$`)
    .replace(/\\\(([\s\S]{1,1000}?)\\\)/g, (_, body: string) => `$${body.trim()}$`);
}

/** The text between code spans. */
function convertText(text: string): string {
  let out = "";
  let from = 0;
  for (const match of text.matchAll(code)) {
    out += convert(text.slice(from, match.index)) + match[0];
    from = match.index + match[0].length;
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
