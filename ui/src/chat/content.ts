// SPDX-License-Identifier: MIT
/** What messages are made of: text, reasoning, and the files that a person attached. */
import type { Message } from "@langchain/langgraph-sdk";
import type { UploadedFile } from "@/api/files";
import { titleFrom } from "@/threads/threads";

/** A piece of a message, in the order of the model. */
export interface Part {
  kind: "text" | "reasoning";
  text: string;
}

type Block = Record<string, unknown>;

const string = (value: unknown) => (typeof value === "string" ? value : "");

/** Reasoning comes under different names; some providers give a list of summaries. */
function reasoningText(block: Block): string {
  if (Array.isArray(block.summary))
    return block.summary.map((item) => string((item as Block | null)?.text)).join("\n\n");
  return string(block.reasoning) || string(block.thinking) || string(block.text);
}

function partOf(block: unknown): Part | null {
  if (typeof block === "string") return { kind: "text", text: block };
  const { type } = (block ?? {}) as Block;
  if (type === "text") return { kind: "text", text: string((block as Block).text) };
  if (type === "reasoning" || type === "thinking")
    return { kind: "reasoning", text: reasoningText(block as Block) };
  return null;
}

/** Neighbours of one kind become one part; empty ones are left out. */
function joined(parts: readonly (Part | null)[]): Part[] {
  const result: Part[] = [];
  for (const part of parts) {
    if (!part?.text) continue;
    const last = result.at(-1);
    if (last?.kind === part.kind) last.text += part.text;
    else result.push({ ...part });
  }
  return result;
}

/** The parts of a message that are shown. */
export function messageParts(message: Message): Part[] {
  const extra = string(message.additional_kwargs?.reasoning_content);
  const content: unknown = message.content;
  const blocks: unknown[] = Array.isArray(content) ? content : [content];
  return joined([{ kind: "reasoning", text: extra }, ...blocks.map(partOf)]);
}

/** Only what was said, without the reasoning. */
export function messageText(message: Message): string {
  return messageParts(message)
    .filter((part) => part.kind === "text")
    .map((part) => part.text)
    .join("");
}

const OPEN = "<attached-files>";
const CLOSE = "</attached-files>";
const NOTE = /\n*<attached-files>\n([\s\S]*?)\n<\/attached-files>\s*$/;

/** A message with its files: the model reads where they are and how it gets at them. */
export function withFiles(text: string, files: readonly UploadedFile[]): string {
  if (files.length === 0) return text;
  const lines = files.map(({ name, size, path }) => JSON.stringify({ name, size, path }));
  return [text, "", OPEN, ...lines, CLOSE].join("\n").replace(/^\n+/, "");
}

function fileOf(line: string): UploadedFile | null {
  try {
    const { name, size, path } = JSON.parse(line) as Block;
    if (typeof name !== "string" || typeof path !== "string") return null;
    return { name, path, size: typeof size === "number" ? size : 0 };
  } catch {
    return null;
  }
}

/** What a person wrote, and the files apart from it; the reverse of {@link withFiles}. */
export function splitFiles(content: string): { text: string; files: UploadedFile[] } {
  const note = NOTE.exec(content);
  const lines = note?.[1]?.split("\n").map(fileOf);
  if (!note || !lines || lines.includes(null)) return { text: content, files: [] };
  return { text: content.slice(0, note.index), files: lines as UploadedFile[] };
}

/** A title for a conversation that begins with this message. */
export function titleOf(content: string): string {
  const { text, files } = splitFiles(content);
  return titleFrom(text.trim() ? text : files.map((file) => file.name).join(", "));
}
