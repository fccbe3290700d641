// SPDX-License-Identifier: MIT
import { ChevronLeft, ChevronRight } from "lucide-react";
import { useTranslation } from "react-i18next";
import { MessageButton } from "@/chat/message-button";

export interface BranchSwitcherProps {
  branch: string;
  options: readonly string[];
  onBranch: (branch: string) => void;
}

/** Goes between what was said, or answered, at one place of the conversation. */
export function BranchSwitcher({ branch, options, onBranch }: BranchSwitcherProps) {
  const { t } = useTranslation();
  const at = options.indexOf(branch);
  if (options.length < 2 || at < 0) return null;
  const step = (by: number) => {
    const to = options[at + by];
    return { disabled: !to, onClick: () => to && onBranch(to) };
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    <div
      role="group"
      aria-label={t("chat.branch.label")}
      className="flex items-center group-data-running/talk:invisible"
    >
      <MessageButton label={t("chat.branch.previous")} {...step(-1)}>
        <ChevronLeft aria-hidden />
      </MessageButton>
      <span className="text-xs text-muted tabular-nums">
        {t("chat.branch.place", { at: at + 1, count: options.length })}
      </span>
      <MessageButton label={t("chat.branch.next")} {...step(1)}>
        <ChevronRight aria-hidden />
      </MessageButton>
    </div>
  );
}
