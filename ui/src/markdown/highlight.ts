// SPDX-License-Identifier: MIT
/** Asks the highlighting worker, remembers what it said, and gives up when it takes too long. */
import { useEffect, useState } from "react";

/** Text, colour in the light and in the dark theme, and font style (1 italic, 2 bold). */
export type Token = [text: string, light: string, dark: string, style: number];

const CODE_MAX = 60_000;
const KEPT = 150;
const ANSWER_MS = 4000;

interface Job {
  resolve: (lines: Token[][] | null) => void;
  timer: ReturnType<typeof setTimeout>;
}

const kept = new Map<string, Token[][]>();
const jobs = new Map<number, Job>();
let worker: Worker | null = null;
let nextId = 0;

function finish(id: number, lines: Token[][] | null) {
  const job = jobs.get(id);
  if (!job) return;
  clearTimeout(job.timer);
  jobs.delete(id);
  job.resolve(lines);
}

/** What a worker that hangs was asked for stays without colours; the next job gets a new worker. */
function restart() {
  worker?.terminate();
  worker = null;
  for (const id of [...jobs.keys()]) finish(id, null);
}

function start(): Worker {
  const made = new Worker(new URL("./highlight-worker.ts", import.meta.url), { type: "module" });
  made.onmessage = ({ data }: MessageEvent<{ id: number; lines: Token[][] | null }>) =>
    finish(data.id, data.lines);
  made.onerror = restart;
  return made;
}

function ask(code: string, language: string): Promise<Token[][] | null> {
  return new Promise((resolve) => {
    const id = nextId++;
    jobs.set(id, { resolve, timer: setTimeout(restart, ANSWER_MS) });
    worker ??= start();
    worker.postMessage({ id, code, language });
  });
}

function keep(key: string, lines: Token[][]) {
  kept.delete(key);
  kept.set(key, lines);
  const oldest = kept.keys().next();
  if (kept.size > KEPT && !oldest.done) kept.delete(oldest.value);
}

/** The tokens of a code, or null where there are none. */
export async function highlight(code: string, language: string): Promise<Token[][] | null> {
  const key = `${language}\n${code}`;
  const known = kept.get(key);
  if (known) return known;
  if (code.length > CODE_MAX || typeof Worker === "undefined") return null;
  const lines = await ask(code, language);
  if (lines) keep(key, lines);
  return lines;
}

/** Lines with colours as far as they are known; the rest of a text that grows has none yet. */
export function mergeLines(code: string, lines: Token[][]): Token[][] {
  return code.split("\n").map((text, at) => {
    const line = lines[at];
    const isSame = line && line.map(([part]) => part).join("") === text;
    return isSame ? line : [[text, "", "", 0]];
  });
}

/** The lines of a code in its language's colours, once they are there. */
export function useHighlight(code: string, language: string | null): Token[][] {
  const [lines, setLines] = useState<Token[][]>(
    () => (language && kept.get(`${language}\n${code}`)) || [],
  );
  useEffect(() => {
    if (!language) return;
    let isCurrent = true;
    const timer = setTimeout(
      async () => {
        const found = await highlight(code, language);
        if (isCurrent && found) setLines(found);
      },
      kept.has(`${language}\n${code}`) ? 0 : 60,
    );
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [code, language]);
  return mergeLines(code, lines);
}
