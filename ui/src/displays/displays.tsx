// SPDX-License-Identifier: MIT
/** Everything that a cell displayed, in order. */
import { type ComponentType, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/button";
import { Boundary } from "@/displays/boundary";
import type { DisplayItem } from "@/displays/display";
import { FileRow } from "@/displays/file";
import { Image } from "@/displays/image";
import { Json } from "@/displays/json-tree";
import { type DisplayKind, kindOf } from "@/displays/kinds";
import { LazyMount } from "@/displays/lazy-mount";
import { Media } from "@/displays/media";
import { Plot } from "@/displays/plot";
import { ResourceTable, SeparatedTable } from "@/displays/table";
import { TextDisplay } from "@/displays/texts";
import { formatBytes } from "@/lib/format";

interface ViewProps {
  item: DisplayItem;
  threadId: string | null;
  number: number;
}

const views: Record<DisplayKind, ComponentType<ViewProps>> = {
  image: Image,
  svg: Image,
  plot: Plot,
  csv: SeparatedTable,
  table: ResourceTable,
  json: Json,
  file: FileRow,
  audio: (props) => <Media {...props} kind="audio" />,
  video: (props) => <Media {...props} kind="video" />,
  html: (props) => <TextDisplay {...props} kind="html" />,
  latex: (props) => <TextDisplay {...props} kind="latex" />,
  markdown: (props) => <TextDisplay {...props} kind="markdown" />,
  script: (props) => <TextDisplay {...props} kind="script" />,
  text: (props) => <TextDisplay {...props} kind="text" />,
};

/** About how high a display will be, so that little moves when it is made. */
const heights: Partial<Record<DisplayKind, number>> = {
  image: 240,
  html: 200,
  plot: 420,
  svg: 200,
};

/** One display. */
export function Display(props: ViewProps) {
  const { t, i18n } = useTranslation();
  const { item } = props;
  const kind = kindOf(item.type);
  const View = views[kind];
  // A large one is only announced while the cell runs.
  if (!item.blob && item.data === undefined)
    return (
      <p className="text-sm text-muted">
        {t("tools.displayPending", {
          type: item.type,
          size: formatBytes(item.size ?? 0, i18n.language),
        })}
      </p>
    );
  return (
    <Boundary fallback={<p className="text-sm text-error">{t("tools.showFailed")}</p>}>
      <LazyMount height={heights[kind] ?? 24}>
        <View {...props} />
      </LazyMount>
    </Boundary>
  );
}

/** What {@link Displays} shows. */
export interface DisplaysProps {
  items: readonly DisplayItem[];
  threadId: string | null;
}

const STEP = 20;

/** Everything that a cell displayed, in order. */
export function Displays({ items, threadId }: DisplaysProps) {
  const { t } = useTranslation();
  const [count, setCount] = useState(STEP);
  if (items.length === 0) return null;
  return (
    <div className="flex min-w-0 flex-col gap-3">
      {items.slice(0, count).map((item, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: displays are known by their order.
        <Display key={at} item={item} threadId={threadId} number={at + 1} />
      ))}
      {items.length > count && (
        <Button size="sm" className="self-start" onClick={() => setCount(count + STEP)}>
          {t("tools.showMore", { count: Math.min(STEP, items.length - count) })}
        </Button>
      )}
    </div>
  );
}
