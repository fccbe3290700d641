// SPDX-License-Identifier: MIT
import { useMemo } from "react";
import type { FrameColours } from "@/displays/frame-protocol";
import { useDark } from "@/lib/theme";

/** A colour role as the browser resolves it now. */
function resolve(element: HTMLElement, role: string): string {
  element.style.color = `var(--color-${role})`;
  return getComputedStyle(element).color;
}

function read(dark: boolean): FrameColours {
  const probe = document.body.appendChild(document.createElement("span"));
  const [raised, text, muted, line, panel, accent] = [
    "raised",
    "text",
    "muted",
    "line",
    "panel",
    "accent",
  ].map((role) => resolve(probe, role)) as [string, string, string, string, string, string];
  probe.remove();
  return { dark, raised, text, muted, line, panel, accent };
}

/** The page's colours as plain values, for frames, which do not share its style. */
export function useColours(): FrameColours {
  const dark = useDark();
  return useMemo(() => read(dark), [dark]);
}
