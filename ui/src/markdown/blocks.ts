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
