// SPDX-License-Identifier: MIT
import { Tooltip as Radix } from "radix-ui";
import type { ReactElement } from "react";

export interface TooltipProps {
  text: string;
  /** One element that takes a ref and props, such as a button. */
  children: ReactElement;
  side?: "top" | "right" | "bottom" | "left";
}

/** A short text beside what the pointer or the focus is on. */
export function Tooltip({ text, children, side = "top" }: TooltipProps) {
  return (
    <Radix.Provider delayDuration={400}>
      <Radix.Root>
        <Radix.Trigger asChild>{children}</Radix.Trigger>
        <Radix.Portal>
          <Radix.Content
            side={side}
            sideOffset={6}
            collisionPadding={8}
            className="z-60 max-w-64 rounded-md bg-text px-2 py-1 text-xs text-page shadow-md"
          >
            {text}
          </Radix.Content>
        </Radix.Portal>
      </Radix.Root>
    </Radix.Provider>
  );
}
