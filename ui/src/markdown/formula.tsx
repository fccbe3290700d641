// SPDX-License-Identifier: MIT
/**
 * Formulas by KaTeX, which is loaded when a text has some. It builds elements itself, because the
 * page's policy lets in no style that is written in HTML. Nothing in a formula is trusted.
 */
import "katex/dist/katex.min.css";
import katex, { type KatexOptions } from "katex";
import { useLayoutEffect, useRef } from "react";

const FORMULA_MAX = 5000;

const options: KatexOptions = {
  trust: false,
  maxExpand: 500,
  maxSize: 20,
  strict: false,
  throwOnError: false,
  errorColor: "var(--color-error)",
};

/** What a formula shows. */
export interface FormulaProps {
  text: string;
  display: boolean;
}

/** A formula; one that is too long to be set is shown as it is written. */
export default function Formula({ text, display }: FormulaProps) {
  const ref = useRef<HTMLElement>(null);
  const isLong = text.length > FORMULA_MAX;
  useLayoutEffect(() => {
    if (!ref.current || isLong) return;
    try {
      katex.render(text, ref.current, { ...options, displayMode: display });
    } catch {
      ref.current.textContent = text;
    }
  }, [text, display, isLong]);
  if (isLong) return <code className="break-words whitespace-pre-wrap">{text}</code>;
  return <span ref={ref} className={display ? "block" : undefined} />;
}
