// SPDX-License-Identifier: MIT
/** Names under which people and models know the languages that are highlighted. */

const names: Record<string, string> = {
  bash: "Bash",
  c: "C",
  css: "CSS",
  diff: "Diff",
  docker: "Dockerfile",
  go: "Go",
  html: "HTML",
  ini: "INI",
  java: "Java",
  javascript: "JavaScript",
  json: "JSON",
  latex: "LaTeX",
  markdown: "Markdown",
  python: "Python",
  r: "R",
  rust: "Rust",
  sql: "SQL",
  toml: "TOML",
  tsx: "TSX",
  typescript: "TypeScript",
  xml: "XML",
  yaml: "YAML",
};

const others: Record<string, string> = {
  "c++": "c",
  cjs: "javascript",
  console: "bash",
  cpp: "c",
  dockerfile: "docker",
  ipython: "python",
  js: "javascript",
  jsonc: "json",
  jsx: "tsx",
  md: "markdown",
  mjs: "javascript",
  node: "javascript",
  nodejs: "javascript",
  py: "python",
  python3: "python",
  rs: "rust",
  rscript: "r",
  sh: "bash",
  shell: "bash",
  shellscript: "bash",
  svg: "xml",
  tex: "latex",
  ts: "typescript",
  yml: "yaml",
  zsh: "bash",
};

/** The language that is meant by a name, or null for one that is not highlighted. */
export function languageOf(name: string | undefined | null): string | null {
  const key = (name ?? "").toLowerCase();
  if (Object.hasOwn(names, key)) return key;
  return Object.hasOwn(others, key) ? (others[key] ?? null) : null;
}

/** What a language is called on the page. */
export function languageTitle(language: string): string {
  return (Object.hasOwn(names, language) && names[language]) || language;
}
