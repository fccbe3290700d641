// SPDX-License-Identifier: MIT
import type { KeyboardEvent } from "react";

/** Enter sends, but not where it ends the input of a character, nor on a phone's keyboard. */
export function sends(event: KeyboardEvent): boolean {
  if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return false;
  if (event.ctrlKey || event.metaKey) return true;
  return !matchMedia("(pointer: coarse) and (max-width: 40rem)").matches;
}
