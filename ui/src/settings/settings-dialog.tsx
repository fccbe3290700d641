// SPDX-License-Identifier: MIT
import { Tabs } from "radix-ui";
import { type ReactNode, useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "@/components/cn";
import { Dialog } from "@/components/dialog";
import { AboutTab } from "@/settings/about-tab";
import { AppearanceTab } from "@/settings/appearance-tab";
import { ModelTab } from "@/settings/model-tab";
import { SandboxTab } from "@/settings/sandbox-tab";
import { SessionsTab } from "@/settings/sessions-tab";

const tabs = ["model", "sandbox", "sessions", "appearance", "about"] as const;
type SettingsTab = (typeof tabs)[number];

export interface SettingsDialogProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
}

const list = "sticky top-0 z-10 -mx-5 flex overflow-x-auto border-b border-line bg-raised px-2";

const trigger = cn(
  "h-9 shrink-0 cursor-pointer border-b-2 border-transparent px-1.5 text-sm whitespace-nowrap",
  "text-muted outline-accent -outline-offset-2 not-focus-visible:outline-none hover:text-text",
  "focus-visible:outline-2 data-[state=active]:border-accent data-[state=active]:font-medium",
  "data-[state=active]:text-text sm:px-3 pointer-coarse:h-11",
);

/** Everything that can be set, and what the server says about itself. */
export function SettingsDialog({ open, onOpenChange }: SettingsDialogProps) {
  const { t } = useTranslation();
  const [current, setCurrent] = useState<SettingsTab>("model");
  useEffect(() => {
    if (open) setCurrent("model");
  }, [open]);
  const contents: Record<SettingsTab, ReactNode> = {
    model: <ModelTab />,
    sandbox: <SandboxTab />,
    sessions: <SessionsTab onLeave={() => onOpenChange(false)} />,
    appearance: <AppearanceTab />,
    about: <AboutTab />,
  };
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title={t("settings.title")} size="lg">
      <Tabs.Root value={current} onValueChange={(value) => setCurrent(value as SettingsTab)}>
        <Tabs.List aria-label={t("settings.tabs.label")} className={list}>
          {tabs.map((name) => (
            <Tabs.Trigger key={name} value={name} className={trigger}>
              {t(`settings.tabs.${name}`)}
            </Tabs.Trigger>
          ))}
        </Tabs.List>
        {tabs.map((name) => (
          <Tabs.Content
            key={name}
            value={name}
            className="min-h-[min(26rem,60dvh)] pt-4 not-focus-visible:outline-none"
          >
            {contents[name]}
          </Tabs.Content>
        ))}
      </Tabs.Root>
    </Dialog>
  );
}
