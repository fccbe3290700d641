// SPDX-License-Identifier: MIT
/** How long calls take, and have been taking. */
import type { TFunction } from "i18next";
import { useEffect, useState } from "react";

/** A duration for people. */
export function formatDuration(t: TFunction, ms: number): string {
  const total = ms / 1000;
  if (total < 59.95) return t("tools.seconds", { seconds: total.toFixed(total < 0.995 ? 2 : 1) });
  const rounded = Math.round(total);
  return t("tools.minutes", { minutes: Math.floor(rounded / 60), seconds: rounded % 60 });
}

const KEPT = 200;
const started = new Map<string, number>();

/** When a call was first seen to run; a block that is made anew goes on counting. */
function startOf(id: string): number {
  const known = started.get(id);
  if (known !== undefined) return known;
  const now = Date.now();
  started.set(id, now);
  const oldest = started.keys().next();
  if (started.size > KEPT && !oldest.done) started.delete(oldest.value);
  return now;
}

/** Milliseconds since a call began, counting while it runs; null for one that does not. */
export function useElapsed(id: string | undefined, isRunning: boolean): number | null {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isRunning) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [isRunning]);
  return isRunning ? Math.max(0, now - startOf(id ?? "")) : null;
}
