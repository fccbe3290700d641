// SPDX-License-Identifier: MIT
/**
 * Characters that are not seen but change what is read: controls, zero-width, bidirectional and tag
 * characters. They become a visible note, so that what a person reads is what is there.
 */

const hidden =
  /(?:(?![\n\r\t])(?:[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]|[\u17b4\u17b5]|\u034f|[\u{e0100}-\u{e01ef}]))+/gu;

/** Format characters with a shape of their own. */
const shaped = /^[\u0600-\u0605\u06dd\u070f\u08e2]$/u;

/** Scripts that are not written rightly without joiners, and what emoji are joined from. */
const joined =
  /[\p{Extended_Pictographic}\p{Emoji_Modifier}\p{sc=Arab}\p{sc=Syrc}\p{sc=Deva}\p{sc=Beng}\p{sc=Guru}\p{sc=Gujr}\p{sc=Orya}\p{sc=Taml}\p{sc=Telu}\p{sc=Knda}\p{sc=Mlym}\p{sc=Sinh}\p{sc=Khmr}\p{sc=Mong}]|\ufe0f/u;

/** The flags that are written by tag characters: England, Scotland, Wales. */
const flags = new Set(["gbeng\u007f", "gbsct\u007f", "gbwls\u007f"]);

const TAG = 0xe0000;

function isTag(character: string): boolean {
  const code = character.codePointAt(0) ?? 0;
  return code >= TAG && code <= TAG + 0x7f;
}

/** What a run of tag characters spells. */
function spelled(run: string[]): string {
  return run.map((c) => String.fromCharCode((c.codePointAt(0) ?? TAG) - TAG)).join("");
}

function name(character: string, count: number): string {
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  return count > 1 ? `⟨U+${code} ×${count}⟩` : `⟨U+${code}⟩`;
}

/** Equal neighbours as one group; all tag characters are alike. */
function groups(run: string): string[][] {
  const list: string[][] = [];
  for (const c of run) {
    const last = list.at(-1);
    if (last?.[0] !== undefined && (last[0] === c || (isTag(last[0]) && isTag(c)))) last.push(c);
    else list.push([c]);
  }
  return list;
}

function note(group: string[], before: string): string {
  const first = group[0] ?? "";
  if (!isTag(first)) return name(first, group.length);
  const text = spelled(group);
  if (flags.has(text) && before.endsWith("\u{1f3f4}")) return group.join("");
  const shown = text.replace(/[^\x20-\x7e]/g, "·").slice(0, 200);
  return `⟨tags “${shown}”⟩`;
}

function neighbour(text: string, at: number, step: -1 | 1): string {
  if (step > 0) return String.fromCodePoint(text.codePointAt(at) ?? 32);
  return [...text.slice(Math.max(0, at - 2), at)].at(-1) ?? " ";
}

/** Make every hidden character of `text` visible. Line ends and tabs stay. */
export function revealHidden(text: string): string {
  return text.replace(hidden, (run: string, at: number) => {
    const isJoiner = run === "\u200d" || run === "\u200c";
    if (
      isJoiner &&
      joined.test(neighbour(text, at, -1)) &&
      joined.test(neighbour(text, at + run.length, 1))
    )
      return run;
    return groups(run)
      .map((group) => {
        const first = group[0] ?? "";
        return shaped.test(first) ? group.join("") : note(group, text.slice(0, at));
      })
      .join("");
  });
}
