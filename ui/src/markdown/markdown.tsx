// SPDX-License-Identifier: MIT
/**
 * Text of a model or a person as Markdown. It is hostile: HTML stays text, nothing is loaded from
 * anywhere, hidden characters are shown, and links say where they lead by being links.
 */
import { memo, useDeferredValue } from "react";
import ReactMarkdown from "react-markdown";
import remarkGfm from "remark-gfm";
import remarkMath from "remark-math";
import { cn } from "@/components/cn";
import { Boundary } from "@/displays/boundary";
import { isUnreasonable, splitBlocks } from "@/markdown/blocks";
import { components, urlTransform } from "@/markdown/elements";
import { revealHidden } from "@/markdown/hidden";
import { hasMath, normalizeMath } from "@/markdown/math-delimiters";
import "@/markdown/markdown.css";

/** What {@link Markdown} shows. */
export interface MarkdownProps {
  text: string;
  /** More is to come: the end may be an open block. */
  streaming?: boolean;
  className?: string;
}

/** Beyond this a text is no longer read for formulas. */
const MATH_TEXT_MAX = 300_000;

const plain = [remarkGfm];
const withMath = [remarkGfm, remarkMath];

/** A block as it is written. */
function Plain({ text }: { text: string }) {
  return <p className="break-words whitespace-pre-wrap">{text}</p>;
}

const Block = memo(function Block({ text, math }: { text: string; math: boolean }) {
  if (isUnreasonable(text)) return <Plain text={text} />;
  return (
    <ReactMarkdown
      remarkPlugins={math ? withMath : plain}
      components={components}
      urlTransform={urlTransform}
    >
      {text}
    </ReactMarkdown>
  );
});

/** Show `text` as Markdown. */
export function Markdown({ text, streaming = false, className }: MarkdownProps) {
  const deferred = useDeferredValue(text);
  const wantsMath = deferred.length < MATH_TEXT_MAX && hasMath(deferred);
  const shown = revealHidden(deferred);
  const blocks = splitBlocks(wantsMath ? normalizeMath(shown) : shown);
  return (
    <div
      className={cn("markdown prose prose-sm max-w-none break-words", className)}
      aria-busy={streaming || undefined}
    >
      {blocks.map((block, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a block that grows keeps its number.
        <Boundary key={at} fallback={<Plain text={block} />}>
          <Block text={block} math={wantsMath} />
        </Boundary>
      ))}
    </div>
  );
}
