// SPDX-License-Identifier: MIT
/** What kinds of displays there are, by their MIME type. */
import type { DisplayItem } from "@/displays/display";

export type DisplayKind =
  | "image"
  | "svg"
  | "html"
  | "plot"
  | "latex"
  | "markdown"
  | "text"
  | "csv"
  | "table"
  | "json"
  | "script"
  | "audio"
  | "video"
  | "file";

const kinds: Record<string, DisplayKind> = {
  "application/javascript": "script",
  "application/json": "json",
  "application/vnd.dataresource+json": "table",
  "application/vnd.plotly.v1+json": "plot",
  "image/gif": "image",
  "image/jpeg": "image",
  "image/png": "image",
  "image/svg+xml": "svg",
  "image/webp": "image",
  "text/csv": "csv",
  "text/html": "html",
  "text/javascript": "script",
  "text/latex": "latex",
  "text/markdown": "markdown",
  "text/plain": "text",
  "text/tab-separated-values": "csv",
};

/** The type without parameters, in lower case. */
export function plainType(type: string): string {
  return (type.split(";")[0] ?? "").trim().toLowerCase();
}

/** What kind of display a MIME type is. */
export function kindOf(type: string): DisplayKind {
  const plain = plainType(type);
  if (Object.hasOwn(kinds, plain)) return kinds[plain] ?? "file";
  if (plain.startsWith("audio/")) return "audio";
  if (plain.startsWith("video/")) return "video";
  return plain.endsWith("+json") && !plain.startsWith("application/vnd.") ? "json" : "file";
}

/** The richest kind first, as a notebook chooses. */
const preferred: DisplayKind[] = [
  "plot",
  "html",
  "svg",
  "image",
  "audio",
  "video",
  "table",
  "csv",
  "json",
  "markdown",
  "latex",
  "script",
  "text",
];

function rank(type: string): number {
  const at = preferred.indexOf(kindOf(type));
  return at < 0 ? preferred.length : at;
}

/** Whether a value stands for a stored blob. */
function isReference(value: unknown): value is DisplayItem {
  const one = value as DisplayItem | null;
  return typeof one === "object" && typeof one?.blob === "string" && typeof one.type === "string";
}

/** The best of a value's MIME map as a display, with its text beside it; null for an empty one. */
export function displayOfResult(result: Record<string, unknown> | null | undefined) {
  const types = Object.keys(result ?? {}).sort((a, b) => rank(a) - rank(b));
  const [type] = types;
  if (!result || type === undefined) return null;
  const value = result[type];
  const text = result["text/plain"];
  const item: DisplayItem = isReference(value) ? { ...value, type } : { type, data: value };
  if (type !== "text/plain" && typeof text === "string") item.text = text;
  return item;
}

const extensions: Record<string, string> = {
  "application/pdf": "pdf",
  "application/vnd.plotly.v1+json": "plotly.json",
  "audio/mpeg": "mp3",
  "audio/x-wav": "wav",
  "image/jpeg": "jpg",
  "image/svg+xml": "svg",
  "text/javascript": "js",
  "text/latex": "tex",
  "text/markdown": "md",
  "text/plain": "txt",
  "text/tab-separated-values": "tsv",
};

/** A name for a download of this type. */
export function fileName(type: string, stem = "display"): string {
  const plain = plainType(type);
  const known = Object.hasOwn(extensions, plain) ? extensions[plain] : undefined;
  const tail = plain.split("/")[1]?.split("+").pop() ?? "";
  return `${stem}.${known ?? (/^[a-z0-9]{1,8}$/.test(tail) ? tail : "bin")}`;
}

/** Whether the data of a type is written as base64. */
export function isBase64(type: string): boolean {
  const plain = plainType(type);
  if (plain.startsWith("image/")) return !plain.startsWith("image/svg");
  return /^(audio|video)\//.test(plain) || plain === "application/pdf";
}
