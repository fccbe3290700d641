// SPDX-License-Identifier: MIT
/**
 * A text that grows is cut into blocks, so that only the last one is parsed again. Cuts are made
 * only where what follows certainly has nothing to do with what went before.
 */

/** Begins a block that may belong to the one before: lists, quotes, indented lines, tables. */
const goesOn = /^(\s|[-*+>|]|\d+[.)]\s)/;

/** Definitions and notes are known in the whole text. */
const definitions = /^ {0,3}\[[^\]\n]+\]:/m;

/** Cut a Markdown text at blank lines where that changes nothing. */
export function splitBlocks(text: string): string[] {
  if (text.length < 2000 || definitions.test(text)) return [text];
  const blocks: string[] = [];
  let block: string[] = [];
  let fence: string | null = null;
  let inMath = false;
  let blank = false;
  for (const line of text.split("\n")) {
    const mark = /^[\s>]*(?:[-*+]\s+|\d+[.)]\s+)*(`{3,}|~{3,})(.*)$/.exec(line);
    const isFree = fence === null && !inMath;
    if (isFree && blank && line !== "" && !goesOn.test(line)) {
      blocks.push(block.join("\n"));
      block = [];
    }
    if (fence === null && mark?.[1]) fence = mark[1];
    else if (fence !== null && mark?.[1]?.startsWith(fence) && mark[2]?.trim() === "") fence = null;
    if (fence === null && (line.match(/\$\$/g)?.length ?? 0) % 2 === 1) inMath = !inMath;
    blank = line.trim() === "";
    block.push(line);
  }
  blocks.push(block.join("\n"));
  return blocks;
}

/** More than this in one paragraph is no text for people, and takes a parser very long. */
const limits: [RegExp, number][] = [
  [/[*_~]+/g, 1500],
  [/[[\]]/g, 1500],
  [/`+/g, 3000],
  [/@|www\./g, 2000],
];

const LINE_CELLS_MAX = 300;
const DEPTH_MAX = 40;
const BLOCK_MAX = 200_000;

/** Whether a block is better shown as it is written: it is made to be slow, or much too large. */
export function isUnreasonable(block: string): boolean {
  if (block.length > BLOCK_MAX) return true;
  if (block.length < DEPTH_MAX) return false;
  const deep = new RegExp(`^(?:[ \\t]*(?:>|[-+*][ \\t]|\\d{1,9}[.)][ \\t])){${DEPTH_MAX}}`, "m");
  if (deep.test(block)) return true;
  return block.split(/\n[ \t]*\n/).some((paragraph) => {
    if (paragraph.length < LINE_CELLS_MAX) return false;
    if (paragraph.split("\n").some((line) => line.split("|").length > LINE_CELLS_MAX)) return true;
    return limits.some(([marks, most]) => (paragraph.match(marks)?.length ?? 0) > most);
  });
}
