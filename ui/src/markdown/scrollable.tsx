// SPDX-License-Identifier: MIT
import type { ComponentProps } from "react";
import { cn, focusRing } from "@/components/cn";

/** A box that scrolls; the keyboard reaches it, and a screen reader hears what is in it. */
export function Scrollable({
  label,
  className,
  ...props
}: ComponentProps<"div"> & { label: string }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms.
    <div
      role="group"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keys.
      tabIndex={0}
      className={cn("overflow-auto", focusRing, "focus-visible:-outline-offset-2", className)}
      {...props}
    />
  );
}
