// SPDX-License-Identifier: MIT
/** Figures for people. */

const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;

/** A size, like "12 kB" or "3.4 MB". */
export function formatBytes(bytes: number, language: string): string {
  let value = Math.max(0, bytes);
  let unit = 0;
  while (value >= (unit === 0 ? 1000 : 999.5) && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return new Intl.NumberFormat(language, {
    style: "unit",
    unit: UNITS[unit],
    unitDisplay: unit === 0 ? "long" : "short",
    maximumFractionDigits: unit > 1 && value < 9.95 ? 1 : 0,
  }).format(value);
}
