// SPDX-License-Identifier: MIT
import { PanelLeftClose, Search, Settings, SquarePen, X } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button, IconButton } from "@/components/button";
import { cn } from "@/components/cn";
import { inputClass } from "@/components/field";
import { ThreadList } from "@/threads/thread-list";

export interface SidebarProps {
  current: string | null;
  onOpen: (id: string) => void;
  onNew: () => void;
  onDeleted: (id: string) => void;
  onSettings: () => void;
  /** Put the sidebar away. */
  onClose: () => void;
}

function SearchField({ text, onText }: { text: string; onText: (text: string) => void }) {
  const { t } = useTranslation();
  return (
    <div className="relative">
      <Search
        aria-hidden
        className="pointer-events-none absolute top-1/2 left-2.5 size-4 -translate-y-1/2 text-muted"
      />
      <input
        type="search"
        id="thread-search"
        autoComplete="off"
        aria-label={t("chat.threads.search")}
        placeholder={t("chat.threads.search")}
        className={cn(
          inputClass,
          "h-9 border-line pr-8 pl-8 pointer-coarse:h-11 [&::-webkit-search-cancel-button]:hidden",
        )}
        value={text}
        onChange={(event) => onText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape" || !text) return;
          event.stopPropagation();
          onText("");
        }}
      />
      {text && (
        <IconButton
          label={t("chat.threads.clearSearch")}
          size="sm"
          tooltip={false}
          className="absolute top-1/2 right-0.5 -translate-y-1/2"
          onClick={() => onText("")}
        >
          <X aria-hidden />
        </IconButton>
      )}
    </div>
  );
}

/** The conversations and what leads to the settings. */
export function Sidebar(props: SidebarProps) {
  const { current, onOpen, onNew, onDeleted, onSettings, onClose } = props;
  const { t } = useTranslation();
  const [search, setSearch] = useState("");
  return (
    <div className="flex h-full min-h-0 flex-col bg-panel">
      <div className="flex items-center gap-2 px-3 pt-3">
        <img src="/favicon.svg" alt="" className="size-6" />
        <span className="flex-1 truncate text-sm font-semibold">{t("app.title")}</span>
        <IconButton label={t("chat.threads.hide")} size="sm" onClick={onClose}>
          <PanelLeftClose aria-hidden />
        </IconButton>
      </div>
      <div className="flex flex-col gap-2 px-3 py-3">
        <Button variant="primary" className="w-full" onClick={onNew}>
          <SquarePen aria-hidden className="size-4" />
          {t("chat.threads.new")}
        </Button>
        <SearchField text={search} onText={setSearch} />
      </div>
      <nav
        aria-label={t("chat.threads.label")}
        className="min-h-0 flex-1 overflow-y-auto overscroll-contain px-2"
      >
        <ThreadList current={current} search={search} onOpen={onOpen} onDeleted={onDeleted} />
      </nav>
      <div className="flex flex-col gap-1 border-t border-line p-2">
        <Button variant="ghost" className="w-full justify-start px-2.5" onClick={onSettings}>
          <Settings aria-hidden className="size-4" />
          {t("chat.settings")}
        </Button>
      </div>
    </div>
  );
}
