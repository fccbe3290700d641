// SPDX-License-Identifier: MIT
/**
 * Text of a model or a person as Markdown. It is hostile: HTML stays text, nothing is loaded from
 * anywhere, hidden characters are shown, and links say where they lead by being links.
 */
import { memo, useDeferredValue, useEffect, useState } from "react";
import ReactMarkdown from "react-markdown";
import remarkGfm from "remark-gfm";
import type { PluggableList } from "unified";
import { cn } from "@/components/cn";
import { splitBlocks } from "@/markdown/blocks";
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

interface Plugins {
  remarkPlugins: PluggableList;
  rehypePlugins: PluggableList;
}

/** Beyond this a text is no longer read for formulas. */
const MATH_TEXT_MAX = 300_000;

const plain: Plugins = { remarkPlugins: [remarkGfm], rehypePlugins: [] };
let mathPlugins: Plugins | null = null;

async function loadMath(): Promise<Plugins> {
  const math = await import("@/markdown/math");
  mathPlugins ??= {
    remarkPlugins: [remarkGfm, ...math.remarkPlugins],
    rehypePlugins: math.rehypePlugins,
  };
  return mathPlugins;
}

/** The plugins for a text; those for formulas come a moment later the first time. */
function usePlugins(wantsMath: boolean): Plugins {
  const [loaded, setLoaded] = useState(mathPlugins);
  useEffect(() => {
    if (wantsMath && !loaded) loadMath().then(setLoaded, () => undefined);
  }, [wantsMath, loaded]);
  return (wantsMath && loaded) || plain;
}

const Block = memo(function Block({ text, plugins }: { text: string; plugins: Plugins }) {
  return (
    <ReactMarkdown {...plugins} components={components} urlTransform={urlTransform}>
      {text}
    </ReactMarkdown>
  );
});

/** Show `text` as Markdown. */
export function Markdown({ text, streaming = false, className }: MarkdownProps) {
  const deferred = useDeferredValue(text);
  const wantsMath = deferred.length < MATH_TEXT_MAX && hasMath(deferred);
  const plugins = usePlugins(wantsMath);
  const shown = revealHidden(deferred);
  const blocks = splitBlocks(wantsMath ? normalizeMath(shown) : shown);
  return (
    <div
      className={cn("markdown prose prose-sm max-w-none break-words", className)}
      aria-busy={streaming || undefined}
    >
      {blocks.map((block, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a block that grows keeps its number.
        <Block key={at} text={block} plugins={plugins} />
      ))}
    </div>
  );
}
