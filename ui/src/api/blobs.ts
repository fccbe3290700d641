// SPDX-License-Identifier: MIT
/**
 * Blob URLs of large displays. Images cannot send a key, so the bytes are asked for by `fetch`;
 * what is shown stays, and of what is not shown only the newest few are kept.
 */
import { useEffect, useState } from "react";
import { onKey, request } from "@/api/client";

interface Entry {
  users: number;
  url?: string;
  promise: Promise<string>;
}

/** How many that nobody shows are kept for a look back. */
const IDLE_MAX = 48;

/** A bounded cache of blob URLs; `load` gives the bytes of a key. */
export class BlobCache {
  private readonly entries = new Map<string, Entry>();

  constructor(
    private readonly load: (key: string) => Promise<Blob>,
    private readonly idleMax = IDLE_MAX,
  ) {}

  /** The URL of a key; it is good until {@link release}. */
  acquire(key: string): Promise<string> {
    let entry = this.entries.get(key);
    if (!entry) {
      const made: Entry = { users: 0, promise: Promise.resolve("") };
      made.promise = this.load(key).then((blob) => {
        made.url = URL.createObjectURL(blob);
        if (made.users === 0) this.trim();
        return made.url;
      });
      // A failure is not kept: the next one who needs it asks again.
      made.promise.catch(() => this.entries.get(key) === made && this.entries.delete(key));
      entry = made;
    }
    entry.users += 1;
    this.entries.delete(key);
    this.entries.set(key, entry);
    return entry.promise;
  }

  /** One user less. */
  release(key: string) {
    const entry = this.entries.get(key);
    if (!entry) return;
    entry.users = Math.max(0, entry.users - 1);
    this.trim();
  }

  /** The oldest that nobody shows go when there are too many. */
  private trim() {
    const idle = [...this.entries].filter(([, one]) => one.users === 0 && one.url);
    for (const [old, { url }] of idle.slice(0, Math.max(0, idle.length - this.idleMax))) {
      this.entries.delete(old);
      if (url) URL.revokeObjectURL(url);
    }
  }
}

const separator = " ";

const cache = new BlobCache(async (key) => {
  const [threadId = "", sha256 = "", type = ""] = key.split(separator);
  const path = `/threads/${encodeURIComponent(threadId)}/blobs/${encodeURIComponent(sha256)}`;
  const bytes = await (await request(path)).blob();
  return new Blob([bytes], { type });
});

export interface BlobUrl {
  /** Undefined while it is loaded, and after a failure. */
  url?: string;
  error?: Error;
}

/** A URL of a display's bytes with this type; undefined arguments ask for nothing. */
export function useBlobUrl(threadId?: string, sha256?: string, type = ""): BlobUrl {
  const key = threadId && sha256 ? [threadId, sha256, type].join(separator) : "";
  const [state, setState] = useState<BlobUrl & { key: string }>({ key: "" });
  const [round, setRound] = useState(0);
  useEffect(() => onKey(() => setRound((n) => n + 1)), []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another key is another try
  useEffect(() => {
    if (!key) return;
    let current = true;
    cache.acquire(key).then(
      (url) => current && setState({ key, url }),
      (error: Error) => current && setState({ key, error }),
    );
    return () => {
      current = false;
      cache.release(key);
    };
  }, [key, round]);
  return state.key === key ? { url: state.url, error: state.error } : {};
}

/** The text of a display that is kept as a blob. */
export async function blobText(threadId: string, sha256: string, signal?: AbortSignal) {
  const path = `/threads/${encodeURIComponent(threadId)}/blobs/${encodeURIComponent(sha256)}`;
  return (await request(path, { signal })).text();
}
