// SPDX-License-Identifier: MIT
import { Dialog } from "radix-ui";
import { type ReactNode, useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";
import { useOverlay } from "@/components/overlays";

const query = matchMedia("(max-width: 48rem)");

function subscribe(listener: () => void) {
  query.addEventListener("change", listener);
  return () => query.removeEventListener("change", listener);
}

/** Whether the page is too narrow for a sidebar beside the conversation. */
export function useNarrow(): boolean {
  return useSyncExternalStore(subscribe, () => query.matches);
}

export interface DrawerProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  children: ReactNode;
}

/** The sidebar on a phone: over the conversation, and away again by a touch beside it. */
export function Drawer({ open, onOpenChange, children }: DrawerProps) {
  const { t } = useTranslation();
  useOverlay(open, () => onOpenChange(false));
  return (
    <Dialog.Root open={open} onOpenChange={onOpenChange}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-black/50" />
        <Dialog.Content
          aria-describedby={undefined}
          tabIndex={-1}
          onOpenAutoFocus={(event) => {
            // The first button would show its tooltip.
            event.preventDefault();
            (event.currentTarget as HTMLElement).focus();
          }}
          className="fixed inset-y-0 left-0 z-40 w-72 max-w-[85vw] border-r border-line shadow-xl outline-none"
        >
          <Dialog.Title className="sr-only">{t("chat.threads.label")}</Dialog.Title>
          {children}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
