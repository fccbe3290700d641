// SPDX-License-Identifier: MIT
import { Brain, ChevronRight } from "lucide-react";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { cn, focusRing } from "@/components/cn";
import { Markdown } from "@/markdown/markdown";

export interface ReasoningProps {
  text: string;
  /** The model is thinking now: what it thinks is shown until it says something. */
  active: boolean;
}

/** What a model thought before it answered. */
export function Reasoning({ text, active }: ReasoningProps) {
  const { t } = useTranslation();
  const [chosen, setChosen] = useState<boolean | null>(null);
  const id = useId();
  const open = chosen ?? active;
  return (
    <div className="rounded-xl border border-line bg-panel/60">
      <button
        type="button"
        aria-expanded={open}
        aria-controls={id}
        onClick={() => setChosen(!open)}
        className={cn(
          "flex w-full cursor-pointer items-center gap-2 rounded-xl px-3 py-2 text-left text-sm",
          "text-muted hover:text-text pointer-coarse:py-3",
          focusRing,
        )}
      >
        <Brain
          aria-hidden
          className={cn("size-4", active && "animate-pulse motion-reduce:animate-none")}
        />
        <span className="flex-1">{t(active ? "chat.thinking.now" : "chat.thinking.done")}</span>
        <ChevronRight aria-hidden className={cn("size-4", open && "rotate-90")} />
      </button>
      <div id={id} hidden={!open} className="px-4 pb-3 text-sm text-muted">
        {open && <Markdown text={text} streaming={active} />}
      </div>
    </div>
  );
}
