// SPDX-License-Identifier: MIT
/** Formulas by KaTeX; loaded when a text has some. Nothing in a formula is trusted. */
import "katex/dist/katex.min.css";
import rehypeKatex from "rehype-katex";
import remarkMath from "remark-math";
import type { PluggableList } from "unified";

const FORMULA_MAX = 5000;

interface Node {
  type: string;
  value?: string;
  data?: unknown;
  children?: Node[];
}

/** A formula that is too long to be set is shown as it is written. */
function boundMath() {
  return (tree: Node) => {
    const visit = (node: Node) => {
      const isMath = node.type === "math" || node.type === "inlineMath";
      if (isMath && (node.value?.length ?? 0) > FORMULA_MAX) {
        node.type = node.type === "math" ? "code" : "inlineCode";
        node.data = undefined;
      }
      node.children?.forEach(visit);
    };
    visit(tree);
  };
}

export const remarkPlugins: PluggableList = [remarkMath, boundMath];

export const rehypePlugins: PluggableList = [
  [rehypeKatex, { trust: false, maxExpand: 500, maxSize: 20, strict: false, throwOnError: false }],
];
