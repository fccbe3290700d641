// SPDX-License-Identifier: MIT
/** The data of a display, wherever it is: in place, or stored as a blob. */
import { useCallback, useEffect, useMemo, useState } from "react";
import { onKey } from "@/api/client";
import { blobText, useBlobUrl } from "@/api/files";
import { dataBlob, dataText } from "@/displays/bytes";
import type { DisplayItem } from "@/displays/display";
import { plainType } from "@/displays/kinds";

export interface Loaded<T> {
  value?: T;
  error?: Error;
  /** Try again what has failed. */
  retry?: () => void;
}

/** A number that grows with each try: by `retry`, and when there is another key. */
function useRound(): { round: number; retry: () => void } {
  const [round, setRound] = useState(0);
  const retry = useCallback(() => setRound((n) => n + 1), []);
  useEffect(() => onKey(retry), [retry]);
  return { round, retry };
}

/** The text of a display. */
export function useText(item: DisplayItem, threadId: string | null): Loaded<string> {
  const { blob } = item;
  const [state, setState] = useState<Loaded<string> & { blob?: string }>({});
  const { round, retry } = useRound();
  // biome-ignore lint/correctness/useExhaustiveDependencies: each round is another try.
  useEffect(() => {
    if (!blob || !threadId) return;
    const controller = new AbortController();
    setState((old) => (old.error ? {} : old));
    blobText(threadId, blob, controller.signal).then(
      (value) => setState({ blob, value }),
      (error: Error) => controller.signal.aborted || setState({ blob, error }),
    );
    return () => controller.abort();
  }, [blob, threadId, round]);
  const own = useMemo(() => (blob ? undefined : dataText(item.data)), [blob, item.data]);
  if (!blob) return { value: own };
  return state.blob === blob ? { ...state, retry } : {};
}

/** The JSON value of a display. */
export function useJson(item: DisplayItem, threadId: string | null): Loaded<unknown> {
  const text = useText(item, threadId);
  return useMemo(() => {
    if (!item.blob && typeof item.data !== "string") return { value: item.data };
    if (text.value === undefined) return { error: text.error, retry: text.retry };
    try {
      return { value: JSON.parse(text.value) as unknown };
    } catch (error) {
      return { error: error as Error };
    }
  }, [item, text.value, text.error, text.retry]);
}

/** A URL of a display's bytes, for elements that take one. */
export function useUrl(item: DisplayItem, threadId: string | null): Loaded<string> {
  const type = plainType(item.type);
  const stored = useBlobUrl(threadId ?? undefined, item.blob, type);
  const [own, setOwn] = useState<Loaded<string>>({});
  useEffect(() => {
    if (item.blob) return;
    const bytes = dataBlob(item.type, item.data);
    if (!bytes) {
      setOwn({ error: new Error("base64") });
      return;
    }
    const url = URL.createObjectURL(bytes);
    setOwn({ value: url });
    return () => URL.revokeObjectURL(url);
  }, [item.blob, item.data, item.type]);
  return item.blob ? { value: stored.url, error: stored.error } : own;
}
