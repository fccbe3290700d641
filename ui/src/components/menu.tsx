// SPDX-License-Identifier: MIT
import { DropdownMenu } from "radix-ui";
import { type ReactElement, type ReactNode, useState } from "react";
import { cn } from "@/components/cn";
import { useOverlay } from "@/components/overlays";

export interface MenuItem {
  /** Unique in its menu. */
  id: string;
  label: string;
  icon?: ReactNode;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
}

export interface MenuProps {
  /** The button that opens it: an IconButton with `tooltip={false}`, or a Button. */
  trigger: ReactElement;
  items: readonly MenuItem[];
  align?: "start" | "center" | "end";
  side?: "top" | "right" | "bottom" | "left";
}

/** A list of things to do, opened by a button. */
export function Menu({ trigger, items, align = "end", side = "bottom" }: MenuProps) {
  const [open, setOpen] = useState(false);
  useOverlay(open, () => setOpen(false));
  return (
    <DropdownMenu.Root modal={false} open={open} onOpenChange={setOpen}>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align={align}
          side={side}
          sideOffset={4}
          collisionPadding={8}
          className="z-50 min-w-40 rounded-xl border border-line bg-raised p-1 text-text shadow-lg"
        >
          {items.map((item) => (
            <DropdownMenu.Item
              key={item.id}
              disabled={item.disabled}
              onSelect={item.onSelect}
              className={cn(
                "flex h-9 cursor-pointer items-center gap-2 rounded-lg px-2.5 text-sm outline-none",
                "select-none data-[disabled]:cursor-not-allowed data-[disabled]:opacity-50",
                "data-[highlighted]:bg-accent data-[highlighted]:text-on-accent",
                "pointer-coarse:h-11 [&>svg]:size-4",
                item.danger &&
                  "text-error data-[highlighted]:bg-error data-[highlighted]:text-page",
              )}
            >
              {item.icon}
              {item.label}
            </DropdownMenu.Item>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
