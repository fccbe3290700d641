// SPDX-License-Identifier: MIT
import { useCallback, useEffect, useRef, useState } from "react";
import { type UploadedFile, uploadFiles } from "@/api/files";
import { describeError } from "@/lib/errors";
import { newId } from "@/lib/id";

/** A file beside the message that is being written. */
export interface Attachment {
  id: string;
  file: File;
  /** 0..1 */
  progress: number;
  state: "sending" | "done" | "failed";
  error?: string;
  uploaded?: UploadedFile;
}

/** A picture from the clipboard is always "image.png"; two of them must not be one file. */
export function distinctName(name: string, taken: ReadonlySet<string>): string {
  if (!taken.has(name)) return name;
  const dot = name.lastIndexOf(".");
  const [stem, end] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
  for (let n = 2; ; n++) if (!taken.has(`${stem}-${n}${end}`)) return `${stem}-${n}${end}`;
}

/**
 * The attachments of the composer. Each is sent at once, alone, so that each has its progress and
 * can be taken away. `ensureThread` gives the conversation that they belong to; on another visit
 * they are gone.
 */
export function useUploads(visit: number, ensureThread: (title: string) => Promise<string>) {
  const [items, setItems] = useState<Attachment[]>([]);
  const aborts = useRef(new Map<string, AbortController>());
  /** The names of the chips that are shown; also of those that are not drawn yet. */
  const names = useRef(new Set<string>());
  useEffect(() => {
    names.current = new Set(items.map(({ file }) => file.name));
  }, [items]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a visit ends with the next one
  useEffect(() => {
    const running = aborts.current;
    return () => {
      for (const abort of running.values()) abort.abort();
      setItems((old) => (old.length > 0 ? [] : old));
    };
  }, [visit]);

  const change = useCallback((id: string, to: Partial<Attachment>) => {
    setItems((old) => old.map((item) => (item.id === id ? { ...item, ...to } : item)));
  }, []);

  const start = useCallback(
    async ({ id, file }: Attachment) => {
      const abort = new AbortController();
      aborts.current.set(id, abort);
      change(id, { state: "sending", progress: 0, error: undefined });
      try {
        const thread = await ensureThread(file.name);
        abort.signal.throwIfAborted();
        const [uploaded] = await uploadFiles(thread, [file], {
          signal: abort.signal,
          onProgress: (progress) => change(id, { progress }),
        });
        change(id, uploaded ? { state: "done", progress: 1, uploaded } : { state: "failed" });
      } catch (error) {
        if (!abort.signal.aborted)
          change(id, { state: "failed", error: describeError(error).text });
      } finally {
        aborts.current.delete(id);
      }
    },
    [change, ensureThread],
  );

  const add = useCallback(
    (files: readonly File[]) => {
      const added = files.map((file): Attachment => {
        const name = distinctName(file.name || "file", names.current);
        names.current.add(name);
        const named = name === file.name ? file : new File([file], name, { type: file.type });
        return { id: newId(), file: named, progress: 0, state: "sending" };
      });
      setItems((old) => [...old, ...added]);
      for (const item of added) void start(item);
    },
    [start],
  );

  const remove = useCallback((id: string) => {
    aborts.current.get(id)?.abort();
    setItems((old) => old.filter((item) => item.id !== id));
  }, []);

  const clear = useCallback(() => setItems([]), []);
  return { items, add, remove, clear, again: start };
}

export type Uploads = ReturnType<typeof useUploads>;
