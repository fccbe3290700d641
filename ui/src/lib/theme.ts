// SPDX-License-Identifier: MIT
/** Light, dark or as the system has it. The colours themselves are in `index.css`. */
import { useSyncExternalStore } from "react";
import { browserStorage } from "@/lib/storage";

const KEY = "sandbox-agent.theme";

export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

const listeners = new Set<() => void>();
const systemDark = matchMedia("(prefers-color-scheme: dark)");

/** What was chosen here before, else "system". */
export function getTheme(): Theme {
  const kept = browserStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

/** Whether the page is dark now. */
export function isDark(): boolean {
  const theme = getTheme();
  return theme === "dark" || (theme === "system" && systemDark.matches);
}

/** Put the choice on the document; "system" is the absence of one. */
export function applyTheme() {
  const theme = getTheme();
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function changed() {
  applyTheme();
  for (const listener of listeners) listener();
}

/** Choose a theme, and remember it. */
export function setTheme(theme: Theme) {
  browserStorage.setItem(KEY, theme);
  changed();
}

/** Call `listener` when the theme changes, also by the system or another tab. */
export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The chosen theme. */
export function useTheme(): Theme {
  return useSyncExternalStore(onTheme, getTheme);
}

/** Whether the page is dark, for what cannot say it in CSS (plots, frames). */
export function useDark(): boolean {
  return useSyncExternalStore(onTheme, isDark);
}

systemDark.addEventListener("change", changed);
addEventListener("storage", (event) => event.key === KEY && changed());
applyTheme();
