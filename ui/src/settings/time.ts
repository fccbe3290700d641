// SPDX-License-Identifier: MIT
const STEPS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
] as const;

/** How long ago a time was, such as "5 minutes ago". A clock that is ahead gives "now". */
export function timeAgo(time: string, now: number, language: string): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(time)) / 1000));
  if (!Number.isFinite(seconds)) return time;
  const format = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
  for (const [unit, size] of STEPS)
    if (seconds >= size) return format.format(-Math.floor(seconds / size), unit);
  return format.format(0, "second");
}
