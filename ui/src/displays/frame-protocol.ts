// SPDX-License-Identifier: MIT
/**
 * What a frame may say. All of it is hostile, also what our own script in the frame sends: what it
 * shows runs beside it.
 */

export type FrameMessage =
  | { type: "ready" }
  | { type: "drawn" }
  | { type: "size"; height: number }
  | { type: "link"; href: string }
  | { type: "picture"; image: string }
  | { type: "failed"; reason: string };

const PICTURE_MAX = 50_000_000;

/** A message of a frame, or null for anything else. */
export function parseFrameMessage(data: unknown): FrameMessage | null {
  const one = data as Record<string, unknown> | null;
  if (typeof one !== "object" || one === null || one.frame !== "sandbox-agent") return null;
  const { type, height, href, image, reason } = one;
  if (type === "ready" || type === "drawn") return { type };
  if (type === "size" && typeof height === "number" && Number.isFinite(height))
    return { type, height };
  if (type === "link" && typeof href === "string") return { type, href };
  if (type === "failed" && typeof reason === "string")
    return { type, reason: reason.slice(0, 300) };
  if (type === "picture" && typeof image === "string" && image.length < PICTURE_MAX)
    return { type, image };
  return null;
}

/** A frame that loads itself anew, again and again, is left as it is. */
export const LOADS_MAX = 5;

/** A frame that asks for another height all the time is no longer followed. */
export const RESIZES_MAX = 200;

/** The height that a frame gets for what it asks. */
export function frameHeight(asked: number, most: number): number {
  return Math.min(Math.max(Math.ceil(asked), 24), most);
}

/** More messages than this are from one that wants to keep the page at work. */
export const MESSAGES_MAX = 1000;

/**
 * HTML without hidden trees that are made by markup: what is in them is seen by nobody. All of it
 * at once, since a word that is cut is not found; and here, where nobody has replaced anything.
 */
export function plainMarkup(html: string): string {
  return html.replace(/shadowrootmode/gi, "data-mode");
}

/** Colours of the page that a frame may use. */
export interface FrameColours {
  dark: boolean;
  raised: string;
  text: string;
  muted: string;
  line: string;
  panel: string;
  accent: string;
}

export type HtmlKind = "piece" | "widget" | "page";

const READ_MAX = 500_000;

/**
 * What HTML is: a piece for a page, as a table is; a widget, which draws itself and believes to
 * be on paper; or a page of its own.
 */
export function htmlKind(html: string): HtmlKind {
  const start = html.slice(0, READ_MAX);
  if (/<(?:!doctype|html|head|body)\b/i.test(start)) return "page";
  return /<(?:script|iframe)\b/i.test(start) ? "widget" : "piece";
}

const tables = (c: FrameColours) => `
table.dataframe{border-collapse:collapse;border:0;font-variant-numeric:tabular-nums}
table.dataframe caption{color:${c.muted};padding:4px 0}
table.dataframe th,table.dataframe td{border:0;border-bottom:1px solid ${c.line};padding:4px 10px;text-align:right}
table.dataframe thead th{border-bottom:2px solid ${c.line};font-weight:600}
table.dataframe tbody tr:nth-child(even){background:${c.panel}}`;

const paper: FrameColours = {
  dark: false,
  raised: "#ffffff",
  text: "#14191d",
  muted: "#56626b",
  line: "#dfe3e6",
  panel: "#f6f7f8",
  accent: "#0f766e",
};

/**
 * What is written before HTML: pieces look like the page, widgets like paper, pages as they are.
 */
export function htmlHead(html: string, colours: FrameColours): string {
  const kind = htmlKind(html);
  if (kind === "page") return /<!doctype/i.test(html.slice(0, 1000)) ? "" : "<!doctype html>";
  const c = kind === "piece" ? colours : paper;
  const style = `:root{color-scheme:${c.dark ? "dark" : "light"}}
body{margin:0;padding:${kind === "piece" ? 2 : 8}px;background:transparent;color:${c.text};font:14px/1.45 system-ui,sans-serif;overflow-wrap:break-word}
a{color:${c.accent}}${tables(c)}`;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Display</title><style>${style}</style></head><body>`;
}
