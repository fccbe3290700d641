// SPDX-License-Identifier: MIT
/**
 * What programs print for terminals. Only colours are kept; everything else that a terminal would
 * obey is taken out, and what is left of control characters is made visible.
 */
import Anser from "anser";
import { revealHidden } from "@/markdown/hidden";

export const ESC = "\u001b";

/** Strings that a terminal takes for itself: OSC, DCS, SOS, PM, APC; without an end, the rest. */
const strings = new RegExp(`${ESC}[\\]PX^_][^\\u0007${ESC}]*(?:\\u0007|${ESC}\\\\|$)`, "g");

/** CSI sequences; the group holds the parameters of a colour. */
const sequences = new RegExp(`${ESC}\\[([\\d;:]*)m|${ESC}\\[[0-?]*[ -/]*[@-~]`, "g");

/** Other escapes, and sequences that were cut. */
const rest = new RegExp(`${ESC}(?!\\[[\\d;]*m)(?:\\[[0-?]*[ -/]*|[ -/]*[0-~])?`, "g");

const colours = new RegExp(`${ESC}\\[[\\d;]*m`, "g");

/** How many colour sequences may be open at a line's end. */
const OPEN_MAX = 16;

/** Take out all sequences but colours. */
export function keepColours(text: string): string {
  if (!text.includes(ESC)) return text;
  return text
    .replace(strings, "")
    .replace(sequences, (_, colour?: string) =>
      colour === undefined ? "" : `${ESC}[${colour.replaceAll(":", ";").slice(0, 64)}m`,
    )
    .replace(rest, "");
}

/** Take out all sequences. */
export function stripAnsi(text: string): string {
  return keepColours(text).replace(colours, "");
}

/** The colours that hold after a text which began with those of `before`. */
export function coloursAfter(before: string, text: string): string {
  if (!text.includes(ESC)) return before;
  let open: string[] = before.match(colours) ?? [];
  for (const sequence of text.match(colours) ?? []) {
    if (/\[0*m$/.test(sequence)) open = [];
    else open = [...open, sequence].slice(-OPEN_MAX);
  }
  return open.join("");
}

/** A piece of a line in one colour. */
export interface Span {
  text: string;
  /** `ansi-red`, … or null. */
  fg: string | null;
  bg: string | null;
  /** "r, g, b" where the colour is none of the sixteen. */
  fgRgb: string | null;
  bgRgb: string | null;
  bold: boolean;
  italic: boolean;
  underline: boolean;
  dim: boolean;
}

const rgb = /^\d{1,3}, ?\d{1,3}, ?\d{1,3}$/;

function named(name: string | null): string | null {
  return name && /^ansi-(bright-)?[a-z]+$/.test(name) && name !== "ansi-truecolor" ? name : null;
}

/** One of the 216 colours and 24 greys beyond the sixteen. */
function paletteRgb(index: number): string | null {
  if (index < 16 || index > 255) return null;
  const grey = 8 + (index - 232) * 10;
  if (index >= 232) return `${grey}, ${grey}, ${grey}`;
  const level = (n: number) => (n === 0 ? 0 : 55 + n * 40);
  const at = index - 16;
  return [Math.floor(at / 36), Math.floor(at / 6) % 6, at % 6].map(level).join(", ");
}

function exact(name: string | null, value: string | null | undefined): string | null {
  const index = /^ansi-palette-(\d{1,3})$/.exec(name ?? "")?.[1];
  if (index !== undefined) return paletteRgb(Number(index));
  return name === "ansi-truecolor" && value && rgb.test(value) ? value : null;
}

/** The pieces of a line; `before` are the colours that lines before it left open. */
export function spansOf(text: string, before = ""): Span[] {
  const clean = keepColours(text);
  if (!before && !clean.includes(ESC)) {
    return clean ? [{ ...none, text: revealHidden(clean) }] : [];
  }
  return Anser.ansiToJson(before + clean, { use_classes: true, remove_empty: true }).map((one) => ({
    text: revealHidden(one.content),
    fg: named(one.fg),
    bg: named(one.bg),
    fgRgb: exact(one.fg, one.fg_truecolor),
    bgRgb: exact(one.bg, one.bg_truecolor),
    bold: one.decorations.includes("bold"),
    italic: one.decorations.includes("italic"),
    underline: one.decorations.includes("underline"),
    dim: one.decorations.includes("dim"),
  }));
}

const none: Span = {
  text: "",
  fg: null,
  bg: null,
  fgRgb: null,
  bgRgb: null,
  bold: false,
  italic: false,
  underline: false,
  dim: false,
};
