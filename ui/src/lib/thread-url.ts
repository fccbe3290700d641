// SPDX-License-Identifier: MIT
/** The open conversation is a part of the address, so that a reload or a bookmark leads to it. */
import { useSyncExternalStore } from "react";

const NAME = "thread";
const VALID = /^[0-9a-zA-Z-]{1,64}$/;
const listeners = new Set<() => void>();

/** The conversation that an address names, or null. */
export function threadOf(search: string): string | null {
  const id = new URLSearchParams(search).get(NAME);
  return id && VALID.test(id) ? id : null;
}

/** The address (path and query) of a conversation; null is the empty page. */
export function threadHref(id: string | null): string {
  return id ? `/?${NAME}=${encodeURIComponent(id)}` : "/";
}

/** The open conversation. */
export function getThreadId(): string | null {
  return threadOf(location.search);
}

/** Open a conversation; `replace` leaves no entry in the browser's history. */
export function setThreadId(id: string | null, replace = false) {
  if (id === getThreadId()) return;
  if (replace) history.replaceState(null, "", threadHref(id));
  else history.pushState(null, "", threadHref(id));
  for (const listener of listeners) listener();
}

/** Call `listener` when another conversation is opened, also by the browser's "back". */
export function onThreadId(listener: () => void): () => void {
  listeners.add(listener);
  addEventListener("popstate", listener);
  return () => {
    listeners.delete(listener);
    removeEventListener("popstate", listener);
  };
}

/** The open conversation, or null. */
export function useThreadId(): string | null {
  return useSyncExternalStore(onThreadId, getThreadId);
}
