// SPDX-License-Identifier: MIT
import { type ClassValue, clsx } from "clsx";
import { twMerge } from "tailwind-merge";

/** Class names as one string; of two that set the same thing the later one counts. */
export function cn(...values: ClassValue[]): string {
  return twMerge(clsx(values));
}

/** How the keyboard's place is shown; the same on everything that can be used. */
export const focusRing =
  "outline-accent outline-offset-2 not-focus-visible:outline-none focus-visible:outline-2";
