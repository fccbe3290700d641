// SPDX-License-Identifier: MIT
import { FileText, RotateCcw, X } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { UploadedFile } from "@/api/files";
import type { Attachment } from "@/chat/use-uploads";
import { IconButton } from "@/components/button";
import { cn } from "@/components/cn";
import { formatBytes } from "@/lib/format";
import { revealHidden } from "@/markdown/hidden";

interface ChipProps {
  name: string;
  note: string;
  failed?: boolean;
  /** 0..1 while it is on its way. */
  progress?: number;
  children?: ReactNode;
}

function Chip({ note, failed, progress, children, ...props }: ChipProps) {
  const name = revealHidden(props.name);
  return (
    <li
      className={cn(
        "relative flex max-w-64 items-center gap-2 overflow-hidden rounded-lg border bg-panel",
        "py-1 pr-1 pl-2.5 text-sm",
        failed ? "border-error" : "border-line",
      )}
    >
      <FileText aria-hidden className="size-4 shrink-0 text-muted" />
      <span className="min-w-0 flex-1 py-0.5 pr-1.5">
        <span className="block truncate" title={name}>
          {name}
        </span>
        <span className={cn("block truncate text-xs", failed ? "text-error" : "text-muted")}>
          {note}
        </span>
      </span>
      {children}
      {progress !== undefined && (
        <progress
          aria-label={name}
          className={cn(
            "absolute inset-x-0 bottom-0 h-0.5 w-full appearance-none bg-line",
            "[&::-moz-progress-bar]:bg-accent [&::-webkit-progress-bar]:bg-line",
            "[&::-webkit-progress-value]:bg-accent",
          )}
          value={progress}
          max={1}
        />
      )}
    </li>
  );
}

export interface AttachmentChipsProps {
  items: readonly Attachment[];
  onRemove: (id: string) => void;
  onAgain: (item: Attachment) => void;
}

/** The files beside the message that is being written. */
export function AttachmentChips({ items, onRemove, onAgain }: AttachmentChipsProps) {
  const { t, i18n } = useTranslation();
  if (items.length === 0) return null;
  const noteOf = (item: Attachment) => {
    if (item.state === "failed") return item.error || t("chat.files.failed");
    const size = formatBytes(item.file.size, i18n.language);
    if (item.state === "done") return size;
    return t("chat.files.sending", { percent: Math.round(item.progress * 100) });
  };
  return (
    <ul aria-label={t("chat.files.label")} className="flex flex-wrap gap-2 px-3 pt-3">
      {items.map((item) => (
        <Chip
          key={item.id}
          name={item.file.name}
          note={noteOf(item)}
          failed={item.state === "failed"}
          progress={item.state === "sending" ? item.progress : undefined}
        >
          {item.state === "failed" && (
            <IconButton
              label={t("chat.files.again", { name: item.file.name })}
              size="sm"
              onClick={() => onAgain(item)}
            >
              <RotateCcw aria-hidden />
            </IconButton>
          )}
          <IconButton
            label={t("chat.files.remove", { name: item.file.name })}
            size="sm"
            onClick={() => onRemove(item.id)}
          >
            <X aria-hidden />
          </IconButton>
        </Chip>
      ))}
    </ul>
  );
}

/** The files of a message that was sent. */
export function SentFiles({ files }: { files: readonly UploadedFile[] }) {
  const { t, i18n } = useTranslation();
  if (files.length === 0) return null;
  return (
    <ul aria-label={t("chat.files.label")} className="flex flex-wrap justify-end gap-2">
      {files.map((file) => (
        <Chip key={file.path} name={file.name} note={formatBytes(file.size, i18n.language)} />
      ))}
    </ul>
  );
}
