// SPDX-License-Identifier: MIT
import { useTranslation } from "react-i18next";
import { Dialog } from "@/components/dialog";

export interface SettingsDialogProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  /** The tab that it opens with. */
  tab?: SettingsTab;
}

export type SettingsTab = "model" | "sandbox" | "sessions" | "appearance" | "about";

/** Everything that can be set, and what the server says about itself. */
export function SettingsDialog({ open, onOpenChange }: SettingsDialogProps) {
  const { t } = useTranslation();
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title={t("settings.title")} size="lg">
      {null}
    </Dialog>
  );
}
