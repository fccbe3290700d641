// SPDX-License-Identifier: MIT
/** Files that calls have moved; those that were exported can be downloaded. */
import type { TFunction } from "i18next";
import { Download, File, Folder } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { downloadFile, downloadPath } from "@/api/files";
import { Button } from "@/components/button";
import { formatBytes } from "@/lib/format";
import { revealHidden } from "@/markdown/hidden";
import type { FileEntry } from "@/tools/payload";

function baseName(path: string): string {
  return path.split("/").filter(Boolean).pop() ?? path;
}

/** The button that gets an exported file, and what it says when that fails. */
function DownloadButton({ file, threadId }: { file: FileEntry; threadId: string }) {
  const { t } = useTranslation();
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string>();
  const path = file.path ?? "";
  const isFolder = file.type === "directory";
  const get = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      const name = isFolder ? `${baseName(path)}.tar.gz` : baseName(path);
      await downloadFile(downloadPath(threadId, file.session_id ?? "", path), {
        name,
        size: file.size,
      });
    } catch (error) {
      if ((error as Error).name !== "AbortError") setFailure((error as Error).message);
    }
    setBusy(false);
  };
  return (
    <>
      <Button
        size="sm"
        busy={isBusy}
        onClick={get}
        aria-label={`${t(isFolder ? "tools.downloadArchive" : "tools.download")}: ${baseName(path)}`}
      >
        {!isBusy && <Download aria-hidden className="size-4" />}
        {t("tools.download")}
      </Button>
      {failure && (
        <p role="alert" className="basis-full text-error">
          {t("tools.downloadFailed", { reason: failure })}
        </p>
      )}
    </>
  );
}

function noteOf(file: FileEntry, t: TFunction, language: string): string {
  const notes: string[] = [];
  if (file.success) notes.push(formatBytes(file.size, language));
  if (file.type === "directory") notes.push(t("tools.file.folder"));
  if ((file.files ?? 1) > 1) notes.push(t("tools.file.files", { count: file.files }));
  if (file.source === "file_content") notes.push(t("tools.file.content"));
  else if (file.source) notes.push(t("tools.file.imported", { source: file.source }));
  return notes.join(" · ");
}

/** One file. */
function FileItem({ file, threadId }: { file: FileEntry; threadId: string | null }) {
  const { t, i18n } = useTranslation();
  const path = file.path ?? file.destination ?? "";
  const Icon = file.type === "directory" ? Folder : File;
  return (
    <li className="flex flex-wrap items-center gap-2 rounded-lg border border-line px-3 py-2 text-sm">
      <Icon aria-hidden className="size-4 shrink-0 text-muted" />
      <div className="min-w-0 flex-1">
        <p className="font-medium break-all">{revealHidden(path)}</p>
        <p className="text-xs break-all text-muted">
          {revealHidden(noteOf(file, t, i18n.language))}
        </p>
        {!file.success && (
          <p className="break-words text-error">
            {t("tools.said", { text: revealHidden(file.error) })}
          </p>
        )}
      </div>
      {file.success && file.path !== undefined && threadId && (
        <DownloadButton file={file} threadId={threadId} />
      )}
    </li>
  );
}

/** Files, one below the other. */
export function FileList({ files, threadId }: { files: FileEntry[]; threadId: string | null }) {
  const { t } = useTranslation();
  const [count, setCount] = useState(20);
  return (
    <div className="flex flex-col gap-2">
      <ul className="flex flex-col gap-1.5">
        {files.slice(0, count).map((file, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the same file may be there twice.
          <FileItem key={at} file={file} threadId={threadId} />
        ))}
      </ul>
      {files.length > count && (
        <Button size="sm" className="self-start" onClick={() => setCount(count + 200)}>
          {t("tools.showMore", { count: Math.min(200, files.length - count) })}
        </Button>
      )}
    </div>
  );
}
