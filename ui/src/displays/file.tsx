// SPDX-License-Identifier: MIT
/** What the page cannot show: its type and size, and a button that downloads it. */
import { Download, File } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { downloadFile, saveBlob } from "@/api/files";
import { Button } from "@/components/button";
import { dataBlob } from "@/displays/bytes";
import type { DisplayItem } from "@/displays/display";
import { fileName } from "@/displays/kinds";
import { PlainText } from "@/displays/notes";
import { formatBytes } from "@/lib/format";

async function save(item: DisplayItem, threadId: string | null) {
  const name = fileName(item.type);
  if (item.blob && threadId)
    return downloadFile(`/threads/${encodeURIComponent(threadId)}/blobs/${item.blob}`, { name });
  const blob = dataBlob(item.type, item.data);
  if (blob) saveBlob(blob, name);
}

function sizeOf(item: DisplayItem): number {
  return item.size ?? (typeof item.data === "string" ? item.data.length : 0);
}

/** What {@link FileRow} shows. */
export interface FileRowProps {
  item: DisplayItem;
  threadId: string | null;
  /** Why it is not shown. */
  note?: string;
}

/** A display as a file. */
export function FileRow({ item, threadId, note }: FileRowProps) {
  const { t, i18n } = useTranslation();
  const [failure, setFailure] = useState<string>();
  const size = formatBytes(sizeOf(item), i18n.language);
  const download = () =>
    save(item, threadId).then(
      () => setFailure(undefined),
      (error: Error) => error.name !== "AbortError" && setFailure(error.message),
    );
  return (
    <div className="text-sm">
      <div className="flex flex-wrap items-center gap-2 rounded-lg border border-line px-3 py-2">
        <File aria-hidden className="size-4 text-muted" />
        <span className="min-w-0 flex-1 break-words">
          {note ?? t("tools.display.unknown", { type: item.type, size })}
        </span>
        <Button size="sm" onClick={download}>
          <Download aria-hidden className="size-4" />
          {t("tools.download")}
        </Button>
      </div>
      {failure && (
        <p role="alert" className="mt-1 text-error">
          {t("tools.downloadFailed", { reason: failure })}
        </p>
      )}
      {item.text && <PlainText text={item.text} />}
    </div>
  );
}
