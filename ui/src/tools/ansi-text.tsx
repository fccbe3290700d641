// SPDX-License-Identifier: MIT
import { type CSSProperties, memo } from "react";
import { type Span, spansOf } from "@/tools/ansi";
import "@/tools/ansi.css";

/** A colour that a program chose, brought near enough to the text's to be read on any ground. */
function mixed(rgb: string): string {
  return `color-mix(in oklab, rgb(${rgb}) 70%, var(--color-text))`;
}

function spanStyle(span: Span): CSSProperties | undefined {
  const { fg, bg, fgRgb, bgRgb, bold, italic, underline, dim } = span;
  if (!(fg || bg || fgRgb || bgRgb || bold || italic || underline || dim)) return undefined;
  const back = bg ? `var(--${bg})` : bgRgb && `rgb(${bgRgb})`;
  return {
    color: fg ? `var(--${fg})` : fgRgb ? mixed(fgRgb) : dim ? "var(--color-muted)" : undefined,
    backgroundColor: back ? `color-mix(in oklab, ${back} 22%, transparent)` : undefined,
    fontWeight: bold ? 700 : undefined,
    fontStyle: italic ? "italic" : undefined,
    textDecoration: underline ? "underline" : undefined,
  };
}

/** Text with a terminal's colours; `before` are the colours that are open where it begins. */
export const AnsiText = memo(function AnsiText({
  text,
  before,
}: {
  text: string;
  before?: string;
}) {
  return spansOf(text, before).map((span, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: spans are known by their place.
    <span key={at} className="ansi" style={spanStyle(span)}>
      {span.text}
    </span>
  ));
});
