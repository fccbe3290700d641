// SPDX-License-Identifier: MIT
import "@/components/nonce";
import { X } from "lucide-react";
import { AlertDialog, Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Button, IconButton } from "@/components/button";
import { cn } from "@/components/cn";
import { useOverlay } from "@/components/overlays";

const overlay = "fixed inset-0 z-50 bg-black/50";

const panel = cn(
  "fixed z-50 flex flex-col bg-raised text-text shadow-xl outline-none",
  "inset-x-0 bottom-0 max-h-[94dvh] rounded-t-2xl",
  "sm:inset-auto sm:top-1/2 sm:left-1/2 sm:max-h-[88dvh] sm:w-[calc(100vw-2rem)]",
  "sm:-translate-x-1/2 sm:-translate-y-1/2 sm:rounded-2xl sm:border sm:border-line",
);

const widths = { sm: "sm:max-w-md", md: "sm:max-w-xl", lg: "sm:max-w-3xl" };

export interface DialogProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: ReactNode;
  description?: ReactNode;
  children: ReactNode;
  /** Buttons below the content; it stays in sight while the content scrolls. */
  footer?: ReactNode;
  size?: keyof typeof widths;
  /** False for a dialog that has to be answered: neither Escape nor a click outside ends it. */
  dismissible?: boolean;
}

/** A modal dialog; on a phone a sheet at the bottom. */
export function Dialog({
  open,
  onOpenChange,
  title,
  description,
  children,
  footer,
  size = "md",
  dismissible = true,
}: DialogProps) {
  const { t } = useTranslation();
  useOverlay(open, () => dismissible && onOpenChange(false));
  const keep = dismissible ? undefined : (event: Event) => event.preventDefault();
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className={overlay} />
        <Radix.Content
          className={cn(panel, widths[size])}
          onEscapeKeyDown={keep}
          onPointerDownOutside={keep}
          {...(description ? {} : { "aria-describedby": undefined })}
        >
          <header className="flex items-start gap-3 px-5 pt-4 pb-3">
            <div className="min-w-0 flex-1">
              <Radix.Title className="text-base leading-8 font-semibold">{title}</Radix.Title>
              {description && (
                <Radix.Description className="text-sm text-muted">{description}</Radix.Description>
              )}
            </div>
            {dismissible && (
              <Radix.Close asChild>
                <IconButton label={t("settings.close")} size="sm" tooltip={false}>
                  <X aria-hidden />
                </IconButton>
              </Radix.Close>
            )}
          </header>
          <div className="min-h-0 flex-1 overflow-y-auto px-5 pb-5">{children}</div>
          {footer && (
            <footer className="flex flex-wrap justify-end gap-2 border-t border-line px-5 py-3">
              {footer}
            </footer>
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

export interface ConfirmProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: ReactNode;
  /** What will happen, and whether it can be undone. */
  description: ReactNode;
  /** The text of the button that does it: a verb, not "OK". */
  action: ReactNode;
  onConfirm: () => void;
  danger?: boolean;
}

/** A question before something that cannot be undone. The focus starts on "Cancel". */
export function Confirm({
  open,
  onOpenChange,
  title,
  description,
  action,
  onConfirm,
  danger = true,
}: ConfirmProps) {
  const { t } = useTranslation();
  useOverlay(open, () => onOpenChange(false));
  return (
    <AlertDialog.Root open={open} onOpenChange={onOpenChange}>
      <AlertDialog.Portal>
        <AlertDialog.Overlay className={overlay} />
        <AlertDialog.Content className={cn(panel, widths.sm, "gap-4 p-5")}>
          <div>
            <AlertDialog.Title className="text-base font-semibold">{title}</AlertDialog.Title>
            <AlertDialog.Description className="mt-1 text-sm text-muted">
              {description}
            </AlertDialog.Description>
          </div>
          <div className="flex flex-wrap justify-end gap-2">
            <AlertDialog.Cancel asChild>
              <Button>{t("settings.cancel")}</Button>
            </AlertDialog.Cancel>
            <AlertDialog.Action asChild>
              <Button variant={danger ? "danger" : "primary"} onClick={onConfirm}>
                {action}
              </Button>
            </AlertDialog.Action>
          </div>
        </AlertDialog.Content>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}
