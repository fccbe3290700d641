// SPDX-License-Identifier: MIT
/** Which language a session speaks, as the results of calls have told. */
import type { TFunction } from "i18next";
import { useSyncExternalStore } from "react";
import type { Payload } from "@/tools/payload";

const KEPT = 1000;
const known = new Map<string, string>();
const listeners = new Set<() => void>();

function learnOne(id: unknown, runtime: unknown): boolean {
  if (typeof id !== "string" || typeof runtime !== "string" || known.get(id) === runtime)
    return false;
  known.set(id, runtime);
  const oldest = known.keys().next();
  if (known.size > KEPT && !oldest.done) known.delete(oldest.value);
  return true;
}

/** Learn from a payload what it tells of sessions. */
export function learnRuntimes(payload: Payload | null) {
  if (!payload) return;
  let isNew = learnOne(payload.session_id, payload.runtime);
  for (const list of [payload.sessions, payload.active_sessions])
    if (Array.isArray(list))
      for (const one of list) isNew = learnOne(one?.session_id, one?.runtime) || isNew;
  if (isNew) for (const listener of listeners) listener();
}

/** The runtime of a session, where it is known. */
export function useRuntime(sessionId: unknown): string | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => (typeof sessionId === "string" ? known.get(sessionId) : undefined),
  );
}

/** A runtime by its name for people. */
export function runtimeName(t: TFunction, runtime: string): string {
  return t(`tools.runtime.${runtime}`, { defaultValue: runtime });
}

/** The language that a runtime's code is highlighted as. */
export function languageOfRuntime(runtime: string | undefined): string | null {
  return (
    { python: "python", node: "javascript", javascript: "javascript", r: "r" }[runtime ?? ""] ??
    null
  );
}
