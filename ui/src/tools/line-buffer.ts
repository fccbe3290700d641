// SPDX-License-Identifier: MIT
/**
 * The last lines of what a call prints. Memory is bounded: the oldest lines go, and are counted.
 */
import { coloursAfter, ESC, keepColours } from "@/tools/ansi";

export type Stream = "stdout" | "stderr";

export interface Line {
  text: string;
  stream: Stream;
  /** Colours that lines before it left open. */
  colours: string;
}

/** The beginning of an escape sequence at a piece's end. */
const unfinished = new RegExp(`${ESC}(?:\\[[\\d;:?]{0,64}|\\][^\\u0007${ESC}]{0,256})?$`);

export interface LineLimits {
  lines: number;
  characters: number;
  /** A longer line is broken. */
  line: number;
}

const defaults: LineLimits = { lines: 20_000, characters: 8_000_000, line: 2_000 };

/** Lines as a terminal would end up with; a carriage return begins the line anew. */
export class LineBuffer {
  readonly lines: Line[] = [];
  /** How many lines have gone from the beginning. */
  dropped = 0;
  private characters = 0;
  /** Whether the last line is not ended. */
  private isOpen = false;
  /** A carriage return came last: what comes next replaces the line. */
  private isReturned = false;
  private readonly colours: Record<Stream, string> = { stdout: "", stderr: "" };
  /** The end of a piece that may be half of an escape sequence. */
  private readonly cut: Record<Stream, string> = { stdout: "", stderr: "" };

  constructor(private readonly limits: LineLimits = defaults) {}

  /** Add a piece; pieces may end anywhere. */
  append(stream: Stream, piece: string) {
    const whole = this.cut[stream] + piece;
    const half = unfinished.exec(whole);
    this.cut[stream] = half ? half[0] : "";
    const text = keepColours(half ? whole.slice(0, half.index) : whole);
    for (const part of text.split(/(\r\n|\n|\r)/)) {
      if (part === "\r") this.isReturned = this.isOpen;
      else if (part.endsWith("\n")) this.end(stream);
      else if (part !== "") this.write(stream, part);
    }
    this.shorten();
  }

  private end(stream: Stream) {
    if (!this.isOpen || this.lines.at(-1)?.stream !== stream) this.open(stream);
    this.isOpen = false;
    this.isReturned = false;
  }

  private open(stream: Stream) {
    this.lines.push({ text: "", stream, colours: this.colours[stream] });
    this.isOpen = true;
    this.isReturned = false;
  }

  private write(stream: Stream, text: string) {
    if (!this.isOpen || this.lines.at(-1)?.stream !== stream) this.open(stream);
    let at = 0;
    while (at < text.length) {
      let last = this.lines[this.lines.length - 1] as Line;
      if (this.isReturned) {
        this.characters -= last.text.length;
        last = { ...last, text: "", colours: this.colours[stream] };
        this.isReturned = false;
      }
      const piece = text.slice(at, at + this.limits.line - last.text.length);
      // Lines are never changed in place, so that what shows one knows when to draw it again.
      this.lines[this.lines.length - 1] = { ...last, text: last.text + piece };
      this.colours[stream] = coloursAfter(this.colours[stream], piece);
      this.characters += piece.length;
      at += piece.length;
      if (at < text.length) this.open(stream);
    }
  }

  /** Drop the oldest; a few more than needed, because moving the rest has its price. */
  private shorten() {
    const { lines, characters } = this.limits;
    if (this.lines.length <= lines && this.characters <= characters) return;
    let count = Math.max(0, this.lines.length - Math.floor(lines * 0.9));
    let left = this.characters;
    for (let i = 0; i < count; i++) left -= this.lines[i]?.text.length ?? 0;
    while (left > characters * 0.9 && count < this.lines.length - 1)
      left -= this.lines[count++]?.text.length ?? 0;
    this.lines.splice(0, count);
    this.characters = left;
    this.dropped += count;
  }
}

/** The lines of output that is whole. */
export function linesOf(stdout: string, stderr: string): LineBuffer {
  const buffer = new LineBuffer();
  if (stdout) buffer.append("stdout", stdout);
  if (stderr) buffer.append("stderr", stderr);
  return buffer;
}
