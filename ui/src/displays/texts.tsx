// SPDX-License-Identifier: MIT
/** Displays that are text of some kind. */
import { useTranslation } from "react-i18next";
import type { DisplayItem } from "@/displays/display";
import { HtmlFrame } from "@/displays/html-frame";
import { latexMarkdown } from "@/displays/latex";
import { Failed, Loading, PlainText } from "@/displays/notes";
import { useText } from "@/displays/use-data";
import { CodeBlock } from "@/markdown/code-block";
import { Markdown } from "@/markdown/markdown";

const LATEX_MAX = 50_000;

const views = {
  html: (text: string, title: string) => <HtmlFrame html={text} title={title} />,
  latex: (text: string) =>
    text.length > LATEX_MAX ? <PlainText text={text} /> : <Markdown text={latexMarkdown(text)} />,
  markdown: (text: string) => <Markdown text={text} />,
  script: (text: string) => <CodeBlock code={text} language="javascript" />,
  text: (text: string) => <PlainText text={text} />,
};

/** What {@link TextDisplay} shows. */
export interface TextDisplayProps {
  item: DisplayItem;
  threadId: string | null;
  kind: keyof typeof views;
}

/** A display that is text. */
export function TextDisplay({ item, threadId, kind }: TextDisplayProps) {
  const { t } = useTranslation();
  const { value, error, retry } = useText(item, threadId);
  if (error) return <Failed reason={error.message} retry={retry} />;
  return value === undefined ? <Loading /> : views[kind](value, t("tools.display.html"));
}
