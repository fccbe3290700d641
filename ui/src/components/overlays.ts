// SPDX-License-Identifier: MIT
/**
 * Which dialogs and menus are open, the last one on top. Radix gives Escape to what was mounted
 * last, and a note that comes while a dialog is open is that: it passes the key on by this.
 */
import { useEffect, useRef } from "react";

const overlays: (() => void)[] = [];

/** Say that something is open that Escape closes. */
export function useOverlay(isOpen: boolean, close: () => void) {
  const latest = useRef(close);
  useEffect(() => {
    latest.current = close;
  });
  useEffect(() => {
    if (!isOpen) return;
    const entry = () => latest.current();
    overlays.push(entry);
    return () => {
      overlays.splice(overlays.indexOf(entry), 1);
    };
  }, [isOpen]);
}

/** Close what is on top; whether there was something. */
export function closeOverlay(): boolean {
  const top = overlays.at(-1);
  top?.();
  return top !== undefined;
}
