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

let visit = 0;

function changed(to: string) {
  const listening = [...listeners];
  if (to !== location.pathname + location.search) history.replaceState(null, "", to);
  for (const listener of listening) listener();
}

/** Open a conversation (null: the empty page), as a new visit. */
export function openThread(id: string | null, replace = false) {
  visit += 1;
  if (!replace && id !== getThreadId()) history.pushState(null, "", threadHref(id));
  changed(threadHref(id));
}

/** The empty page has become this conversation: it was made for what is being written there. */
export function adoptThread(id: string) {
  changed(threadHref(id));
}

/** Call `listener` when another conversation is opened, also by the browser's "back". */
function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

addEventListener("popstate", () => {
  visit += 1;
  for (const listener of [...listeners]) listener();
});

/** The open conversation, or null. */
export function useThreadId(): string | null {
  return useSyncExternalStore(subscribe, getThreadId);
}

/** A number that is another one whenever a person goes to a conversation, or to a new one. */
export function getVisit(): number {
  return visit;
}

/** The same for what is drawn. */
export function useVisit(): number {
  return useSyncExternalStore(subscribe, getVisit);
}
