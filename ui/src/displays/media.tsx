// SPDX-License-Identifier: MIT
/** Sound and film; nothing plays by itself. */
import { useTranslation } from "react-i18next";
import type { DisplayItem } from "@/displays/display";
import { Failed, Loading } from "@/displays/notes";
import { useUrl } from "@/displays/use-data";

/** What {@link Media} shows. */
export interface MediaProps {
  item: DisplayItem;
  threadId: string | null;
  kind: "audio" | "video";
}

/** A player. */
export function Media({ item, threadId, kind }: MediaProps) {
  const { t } = useTranslation();
  const { value: url, error } = useUrl(item, threadId);
  if (error) return <Failed reason={error.message} />;
  if (!url) return <Loading />;
  const name = item.text?.slice(0, 200) || t(`tools.display.${kind}`);
  if (kind === "audio")
    return (
      // biome-ignore lint/a11y/useMediaCaption: what code has made has no captions.
      <audio controls preload="metadata" src={url} aria-label={name} className="w-full max-w-lg" />
    );
  return (
    // biome-ignore lint/a11y/useMediaCaption: what code has made has no captions.
    <video
      controls
      preload="metadata"
      src={url}
      aria-label={name}
      className="max-h-[32rem] max-w-full rounded"
    />
  );
}
