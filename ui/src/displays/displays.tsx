// SPDX-License-Identifier: MIT
/** Everything that a cell displayed, in order. */
import type { DisplayItem } from "@/displays/display";

/** What {@link Displays} shows. */
export interface DisplaysProps {
  items: DisplayItem[];
  threadId: string | null;
}

/** Everything that a cell displayed, in order. */
export function Displays({ items }: DisplaysProps) {
  return items.map((item) => <p key={item.blob ?? item.type}>{item.type}</p>);
}
