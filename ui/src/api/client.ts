// SPDX-License-Identifier: MIT
/**
 * How the page asks its server. The key, where the server wants one, is kept for the tab
 * (sessionStorage) and travels in a header, never in an address.
 */
import { QueryClient } from "@tanstack/react-query";
import { tabStorage } from "@/lib/storage";

const KEY = "sandbox-agent.key";

/** The one graph of the server. */
export const GRAPH = "sandbox-agent";

/** An answer that is not a success: `status` 0 means that the server could not be reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

type Listener = () => void;
const keyListeners = new Set<Listener>();

/** The key that was typed in this tab, or null. */
export function getKey(): string | null {
  return tabStorage.getItem(KEY);
}

/** Keep a key for this tab; null forgets it. Tells everybody who listens by {@link onKey}. */
export function setKey(key: string | null) {
  if (key) tabStorage.setItem(KEY, key);
  else tabStorage.removeItem(KEY);
  for (const listener of keyListeners) listener();
}

/** Call `listener` when the key changes; the result ends that. */
export function onKey(listener: Listener): () => void {
  keyListeners.add(listener);
  return () => keyListeners.delete(listener);
}

/** Headers that every request carries. */
export function keyHeaders(): Record<string, string> {
  const key = getKey();
  return key ? { "x-api-key": key } : {};
}

const refusalListeners = new Set<Listener>();

/**
 * A request that carried `key` was answered by a 401. A late answer to a key that has been replaced
 * meanwhile says nothing.
 */
export function reportUnauthorized(key: string | null) {
  if (key !== getKey()) return;
  for (const listener of refusalListeners) listener();
}

/** Call `listener` on every 401; the result ends that. */
export function onUnauthorized(listener: Listener): () => void {
  refusalListeners.add(listener);
  return () => refusalListeners.delete(listener);
}

/** The text of an error answer: our server says `detail`, `message` or `error`. */
export function errorText(text: string): string {
  try {
    const body = JSON.parse(text) as Record<string, unknown>;
    for (const name of ["detail", "message", "error"])
      if (typeof body[name] === "string") return body[name];
  } catch {
    // Not JSON: a proxy in between answers with a page of its own.
  }
  return text.slice(0, 500);
}

/** `fetch` of an own path with the key; a failure is an {@link ApiError}. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const key = getKey();
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers: { ...keyHeaders(), ...init.headers } });
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    throw new ApiError(0, cause instanceof Error ? cause.message : String(cause));
  }
  if (response.ok) return response;
  if (response.status === 401) reportUnauthorized(key);
  throw new ApiError(response.status, errorText(await response.text()) || response.statusText);
}

/** Whether the server accepts a key, which is not kept yet: an {@link ApiError} when not. */
export async function checkKey(key: string): Promise<void> {
  let response: Response;
  try {
    response = await fetch("/sessions", { headers: { "x-api-key": key } });
  } catch (cause) {
    throw new ApiError(0, cause instanceof Error ? cause.message : String(cause));
  }
  if (!response.ok) throw new ApiError(response.status, errorText(await response.text()));
}

/** The same for JSON answers; `body` is sent as JSON. */
export async function requestJson<T>(path: string, init: RequestInit & { json?: unknown } = {}) {
  const { json, ...rest } = init;
  const body =
    json === undefined
      ? {}
      : { body: JSON.stringify(json), headers: { "content-type": "application/json" } };
  return (await (await request(path, { ...rest, ...body })).json()) as T;
}

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (count, error) => error instanceof ApiError && error.status === 0 && count < 2,
      staleTime: 10_000,
    },
  },
});

// What was refused, or was another owner's, is asked again with the key as it is now.
onKey(() => void queryClient.invalidateQueries());
