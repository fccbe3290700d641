// SPDX-License-Identifier: MIT
/** What notebooks call LaTeX: formulas with or without dollars, or a text that has some. */
export function latexMarkdown(text: string): string {
  const plain = text.trim();
  if (/^\$\$[\s\S]*\$\$$/.test(plain)) return `$$\n${plain.slice(2, -2).trim()}\n$$`;
  if (/^\$[^$]*\$$/.test(plain)) return `$$\n${plain.slice(1, -1).trim()}\n$$`;
  if (/\$|\\\(|\\\[/.test(plain)) return plain;
  const numbered = /^\\begin\{(equation|align|gather|multline|eqnarray)\*?\}/.exec(plain);
  if (numbered?.[1] === "eqnarray")
    return `$$\n${plain.replaceAll(/\{eqnarray\*?\}/g, "{align*}").trim()}\n$$`;
  return `$$\n${plain.replace(/\n\s*\n/g, "\n")}\n$$`;
}
