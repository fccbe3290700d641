// SPDX-License-Identifier: MIT
/** Keys that work wherever the focus is. */
import { useEffect, useRef } from "react";

/** Which key: "mod+shift+o"; `mod` is Cmd on a Mac and Ctrl elsewhere. */
export type Shortcuts = Record<string, () => void>;

/** The name of the keys that are down, as {@link Shortcuts} spells them. */
export function keyName(
  event: Pick<KeyboardEvent, "key" | `${"ctrl" | "meta" | "alt" | "shift"}Key`>,
): string {
  const parts = [];
  if (event.ctrlKey || event.metaKey) parts.push("mod");
  if (event.altKey) parts.push("alt");
  const key = event.key.toLowerCase();
  // Where a sign is on the keyboard, and whether with Shift, is up to its country.
  const isSign = key.length === 1 && key === event.key.toUpperCase();
  if (event.shiftKey && !isSign) parts.push("shift");
  return [...parts, key].join("+");
}

/** Whether keys go into a text now. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

/** Whether somebody has begun to write there. */
export function isWriting(target: Element | null): boolean {
  if (!isTyping(target)) return false;
  return !("value" in (target as Element)) || (target as HTMLInputElement).value !== "";
}

/** Listen for keys. Those without `mod` are left alone while somebody types or a dialog is open. */
export function useShortcuts(shortcuts: Shortcuts) {
  const current = useRef(shortcuts);
  useEffect(() => {
    current.current = shortcuts;
  });
  useEffect(() => {
    const listener = (event: KeyboardEvent) => {
      const name = keyName(event);
      const action = current.current[name];
      if (!action || event.defaultPrevented || event.isComposing) return;
      if (document.querySelector("[role=dialog],[role=alertdialog]")) return;
      if (!name.startsWith("mod+") && isTyping(event.target)) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", listener);
    return () => removeEventListener("keydown", listener);
  }, []);
}
