// SPDX-License-Identifier: MIT
import { Upload } from "lucide-react";
import type { ReactNode } from "react";
import { useDropzone } from "react-dropzone";
import { useTranslation } from "react-i18next";

export interface DropZoneProps {
  onFiles: (files: File[]) => void;
  children: ReactNode;
}

/** Takes files that are dropped anywhere on the conversation. */
export function DropZone({ onFiles, children }: DropZoneProps) {
  const { t } = useTranslation();
  const { getRootProps, isDragActive } = useDropzone({
    onDrop: (files) => files.length > 0 && onFiles(files),
    noClick: true,
    noKeyboard: true,
  });
  return (
    <div {...getRootProps({ role: undefined, tabIndex: undefined })} className="contents">
      {children}
      {isDragActive && (
        <div className="pointer-events-none absolute inset-2 z-30 flex flex-col items-center justify-center gap-2 rounded-2xl border-2 border-dashed border-accent bg-page/85">
          <Upload aria-hidden className="size-8 text-accent" />
          <p className="font-medium">{t("chat.files.drop")}</p>
        </div>
      )}
    </div>
  );
}
