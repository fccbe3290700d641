// SPDX-License-Identifier: MIT
/** Pictures: small in the text, large in a lightbox, and as files. */
import { Download } from "lucide-react";
import { lazy, Suspense, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { IconButton } from "@/components/button";
import { cn, focusRing } from "@/components/cn";
import { base64Sides, PIXELS_MAX, type Sides } from "@/displays/bytes";
import type { DisplayItem } from "@/displays/display";
import { FileRow } from "@/displays/file";
import { fileName, plainType } from "@/displays/kinds";
import { Failed, Loading } from "@/displays/notes";
import { saveUrl } from "@/displays/save";
import { useUrl } from "@/displays/use-data";

const Lightbox = lazy(() => import("@/displays/lightbox"));

/** The picture's own size: by its head, or as the server says of a stored one. */
export function sidesOf(item: DisplayItem & Partial<Sides>): Sides | null {
  if (typeof item.data === "string") return base64Sides(item.data);
  const { width, height } = item;
  return typeof width === "number" && typeof height === "number" ? { width, height } : null;
}

/** The width at which it is to be shown: pictures for dense screens say half of their own. */
function shownWidth(item: DisplayItem): number | undefined {
  const own = item.metadata?.[plainType(item.type)] as { width?: unknown } | undefined;
  const width = own?.width ?? item.metadata?.width;
  return typeof width === "number" && width > 0 ? width : undefined;
}

/** What {@link Image} shows. */
export interface ImageProps {
  item: DisplayItem;
  threadId: string | null;
  /** Its place among the pictures of a cell, for its name. */
  number: number;
}

/** A picture. */
export function Image({ item, threadId, number }: ImageProps) {
  const { t } = useTranslation();
  const { value: url, error } = useUrl(item, threadId);
  const [isOpen, setOpen] = useState(false);
  const isVector = plainType(item.type) === "image/svg+xml";
  const sides = useMemo(() => (isVector ? null : sidesOf(item)), [isVector, item]);
  const name = item.text?.slice(0, 200) || t("tools.display.image", { number });
  if (sides && sides.width * sides.height > PIXELS_MAX) {
    const pixels = Math.round((sides.width * sides.height) / 1_000_000);
    const note = t("tools.display.tooLarge", { pixels });
    return <FileRow item={item} threadId={threadId} note={note} />;
  }
  // What hides its size may be of any; the server says it of those that are stored.
  if (!sides && !isVector && typeof item.data === "string")
    return <FileRow item={item} threadId={threadId} note={t("tools.display.unknownSize")} />;
  if (error) return <Failed reason={error.message} />;
  if (!url) return <Loading />;
  const save = () => saveUrl(url, fileName(item.type, `image-${number}`));
  return (
    <figure className="group relative w-fit max-w-full">
      <button
        type="button"
        aria-label={t("tools.display.open", { name })}
        onClick={() => setOpen(true)}
        className={cn("block max-w-full cursor-zoom-in rounded", focusRing)}
      >
        <img
          src={url}
          alt={name}
          width={shownWidth(item)}
          decoding="async"
          className={cn(
            "block h-auto max-h-[32rem] max-w-full rounded object-contain",
            isVector && "bg-white",
          )}
        />
      </button>
      <IconButton
        label={t("tools.download")}
        size="sm"
        variant="secondary"
        onClick={save}
        className="absolute top-1.5 right-1.5 opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 pointer-coarse:opacity-100"
      >
        <Download aria-hidden />
      </IconButton>
      {isOpen && (
        <Suspense fallback={null}>
          <Lightbox src={url} alt={name} onClose={() => setOpen(false)} onDownload={save} />
        </Suspense>
      )}
    </figure>
  );
}
