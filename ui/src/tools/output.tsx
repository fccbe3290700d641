// SPDX-License-Identifier: MIT
/** What a call has printed. Of many lines only those in sight are elements of the page. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown } from "lucide-react";
import { memo, useLayoutEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/button";
import { cn, focusRing } from "@/components/cn";
import { CopyButton } from "@/components/copy-button";
import { stripAnsi } from "@/tools/ansi";
import { AnsiText } from "@/tools/ansi-text";
import type { Line, LineBuffer } from "@/tools/line-buffer";

/** Up to here all lines are in the page, broken where they are too long for it. */
const PLAIN_MAX = 200;
const LINE_HEIGHT = 20;

const OutputLine = memo(function OutputLine({ line, wrap }: { line: Line; wrap: boolean }) {
  const { t } = useTranslation();
  const isError = line.stream === "stderr";
  return (
    <div
      className={cn(
        "min-h-5 border-l-2 pl-2",
        wrap ? "break-words whitespace-pre-wrap" : "h-5 whitespace-pre",
        isError ? "border-warn" : "border-transparent",
      )}
      title={isError ? t("tools.stderrLine") : undefined}
    >
      <AnsiText text={line.text} before={line.colours} />
    </div>
  );
});

function PlainLines({ buffer }: { buffer: LineBuffer }) {
  // biome-ignore lint/suspicious/noArrayIndexKey: a line keeps its number, whatever goes before it.
  return buffer.lines.map((line, at) => <OutputLine key={buffer.dropped + at} line={line} wrap />);
}

interface ManyLinesProps {
  buffer: LineBuffer;
  /** The element itself, not a reference: that one is still empty when this is drawn first. */
  scroller: HTMLDivElement | null;
}

function ManyLines({ buffer, scroller }: ManyLinesProps) {
  const virtual = useVirtualizer({
    count: buffer.lines.length,
    getScrollElement: () => scroller,
    estimateSize: () => LINE_HEIGHT,
    overscan: 20,
  });
  return (
    <div className="relative w-full" style={{ height: virtual.getTotalSize() }}>
      {virtual.getVirtualItems().map(({ index, start }) => {
        const line = buffer.lines[index];
        return (
          line && (
            <div
              key={buffer.dropped + index}
              className="absolute top-0 left-0 min-w-full"
              style={{ transform: `translateY(${start}px)` }}
            >
              <OutputLine line={line} wrap={false} />
            </div>
          )
        );
      })}
    </div>
  );
}

/** Keeps the end in sight until somebody scrolls away from it. */
function useFollow(box: HTMLDivElement | null, follows: boolean, version: unknown) {
  const [isAtEnd, setAtEnd] = useState(true);
  const toEnd = () => {
    if (box) box.scrollTop = box.scrollHeight;
  };
  // What was followed to its end stays there when the end is written once more by the result.
  const hasFollowed = useRef(follows);
  if (follows) hasFollowed.current = true;
  const wants = hasFollowed.current && isAtEnd;
  // biome-ignore lint/correctness/useExhaustiveDependencies: each version may be longer.
  useLayoutEffect(() => {
    if (wants) toEnd();
  }, [box, wants, version]);
  const onScroll = () => {
    if (box) setAtEnd(box.scrollHeight - box.scrollTop - box.clientHeight < LINE_HEIGHT);
  };
  return { isAtEnd, toEnd, onScroll };
}

/** All lines as text, without colours. */
function plainText(buffer: LineBuffer): string {
  return buffer.lines.map((line) => stripAnsi(line.text)).join("\n");
}

/** What {@link Output} shows. */
export interface OutputProps {
  buffer: LineBuffer;
  /** Another one for each change of the buffer, which stays the same object. */
  version?: unknown;
  /** Whether more is coming. */
  live?: boolean;
  label: string;
}

/** Printed lines, the newest in sight. */
export function Output({ buffer, version, live = false, label }: OutputProps) {
  const { t } = useTranslation();
  const [scroller, setScroller] = useState<HTMLDivElement | null>(null);
  const { isAtEnd, toEnd, onScroll } = useFollow(scroller, live, version);
  const isLong = buffer.lines.length > PLAIN_MAX || buffer.dropped > 0;
  return (
    <div className="rounded-lg border border-line bg-panel">
      <div className="flex items-center justify-between gap-2 border-b border-line py-0.5 pr-1 pl-3">
        <span className="text-xs text-muted">
          {label}, {t("tools.lines", { count: buffer.lines.length + buffer.dropped })}
        </span>
        <CopyButton text={() => plainText(buffer)} label={t("tools.copyOutput")} />
      </div>
      {buffer.dropped > 0 && (
        <p className="px-3 pt-2 text-xs text-muted">
          {t("tools.droppedLines", { count: buffer.dropped })}
        </p>
      )}
      <div className="relative">
        <div
          ref={setScroller}
          role="log"
          aria-live="off"
          aria-label={label}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: keys have to scroll it.
          tabIndex={0}
          onScroll={onScroll}
          className={cn(
            "max-h-80 overflow-auto p-2 font-mono text-[0.8125rem] leading-5",
            focusRing,
          )}
        >
          {isLong ? (
            <ManyLines buffer={buffer} scroller={scroller} />
          ) : (
            <PlainLines buffer={buffer} />
          )}
        </div>
        {live && !isAtEnd && (
          <Button size="sm" className="absolute right-3 bottom-2 shadow" onClick={toEnd}>
            <ArrowDown aria-hidden className="size-4" />
            {t("tools.follow")}
          </Button>
        )}
      </div>
    </div>
  );
}
