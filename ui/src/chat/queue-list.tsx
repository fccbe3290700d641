// SPDX-License-Identifier: MIT
import { ArrowUp, Clock, X } from "lucide-react";
import { useTranslation } from "react-i18next";
import { splitFiles } from "@/chat/content";
import type { Queued } from "@/chat/queued";
import { IconButton } from "@/components/button";
import { revealHidden } from "@/markdown/hidden";

export interface QueueListProps {
  queue: readonly Queued[];
  /** Nothing runs: one can be sent by hand. */
  idle: boolean;
  onSend: (item: Queued) => void;
  onRemove: (id: string) => void;
}

/** Messages that wait for the run before them. */
export function QueueList({ queue, idle, onSend, onRemove }: QueueListProps) {
  const { t } = useTranslation();
  if (queue.length === 0) return null;
  return (
    <ul aria-label={t("chat.queue.label")} className="mb-2 flex flex-col gap-1">
      {queue.map((item) => {
        const { text, files } = splitFiles(item.content);
        return (
          <li
            key={item.id}
            className="flex items-center gap-2 rounded-xl border border-line bg-panel py-1 pr-1 pl-3"
          >
            <Clock aria-hidden className="size-4 shrink-0 text-muted" />
            <span className="flex-1 truncate text-sm">
              {revealHidden(text || files.map((file) => file.name).join(", "))}
            </span>
            {idle && (
              <IconButton label={t("chat.queue.send")} size="sm" onClick={() => onSend(item)}>
                <ArrowUp aria-hidden />
              </IconButton>
            )}
            <IconButton label={t("chat.queue.remove")} size="sm" onClick={() => onRemove(item.id)}>
              <X aria-hidden />
            </IconButton>
          </li>
        );
      })}
    </ul>
  );
}
