// SPDX-License-Identifier: MIT
/** Code in the colours of its language, with a button that copies it. */
import { type CSSProperties, memo } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "@/components/cn";
import { CopyButton } from "@/components/copy-button";
import { type Token, useHighlight } from "@/markdown/highlight";
import { languageOf, languageTitle } from "@/markdown/language-names";
import { Scrollable } from "@/markdown/scrollable";

function tokenStyle([, light, dark, style]: Token): CSSProperties {
  return {
    color: light && dark ? `light-dark(${light}, ${dark})` : undefined,
    fontStyle: style & 1 ? "italic" : undefined,
    fontWeight: style & 2 ? 600 : undefined,
  };
}

/** One line; it is drawn again only when its tokens are others. */
const Line = memo(function Line({ tokens }: { tokens: Token[] }) {
  return tokens.map((token, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the place is what a token is known by.
    <span key={at} style={tokenStyle(token)}>
      {token[0]}
    </span>
  ));
});

/** The text of a code, coloured. */
export function Code({ code, language }: { code: string; language: string | null }) {
  const lines = useHighlight(code, language);
  return (
    <code className="block w-max min-w-full">
      {lines.map((tokens, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines are known by their number.
        <span key={at}>
          <Line tokens={tokens} />
          {at < lines.length - 1 && "\n"}
        </span>
      ))}
    </code>
  );
}

/** What {@link CodeBlock} shows. */
export interface CodeBlockProps {
  code: string;
  /** As it was named, for example "py". */
  language?: string | null;
  /** Words instead of the language's name. */
  title?: string;
  className?: string;
}

/** A block of code with a head. */
export function CodeBlock({ code, language, title, className }: CodeBlockProps) {
  const { t } = useTranslation();
  const known = languageOf(language);
  const name = title ?? (known ? languageTitle(known) : language || t("tools.code"));
  return (
    <div
      className={cn("not-prose overflow-hidden rounded-lg border border-line bg-panel", className)}
    >
      <div className="flex items-center justify-between gap-2 border-b border-line py-0.5 pr-1 pl-3">
        <span className="truncate text-xs text-muted">{name}</span>
        <CopyButton text={() => code} label={t("tools.copyCode")} />
      </div>
      <Scrollable label={name} className="max-h-[28rem]">
        <pre className="p-3 font-mono text-[0.8125rem] leading-5 text-text">
          <Code code={code} language={known} />
        </pre>
      </Scrollable>
    </div>
  );
}
