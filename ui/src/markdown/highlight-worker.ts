// SPDX-License-Identifier: MIT
/**
 * Highlighting, off the page's thread: a text that makes a grammar slow costs nothing but its
 * colours. The expressions are the browser's own, so that no WebAssembly is needed.
 */
import { createHighlighterCore, type HighlighterCore } from "shiki/core";
import { createJavaScriptRegexEngine } from "shiki/engine/javascript";
import dark from "shiki/themes/github-dark-high-contrast.mjs";
import light from "shiki/themes/github-light-high-contrast.mjs";
import type { Token } from "@/markdown/highlight";
import { languages } from "@/markdown/languages";

const LINE_MAX = 2000;

let making: Promise<HighlighterCore> | undefined;

function highlighter(): Promise<HighlighterCore> {
  making ??= createHighlighterCore({
    themes: [light, dark],
    langs: [],
    engine: createJavaScriptRegexEngine({ forgiving: true }),
  });
  return making;
}

async function highlight(code: string, language: string): Promise<Token[][]> {
  const core = await highlighter();
  const load = languages[language];
  if (load && !core.getLoadedLanguages().includes(language)) await core.loadLanguage(await load());
  const lines = core.codeToTokensWithThemes(code, {
    lang: language,
    themes: { light: light.name ?? "", dark: dark.name ?? "" },
    tokenizeMaxLineLength: LINE_MAX,
  });
  return lines.map((line) =>
    line.map((token): Token => {
      const { light: day, dark: night } = token.variants;
      return [token.content, day?.color ?? "", night?.color ?? "", day?.fontStyle ?? 0];
    }),
  );
}

self.onmessage = async ({ data }: MessageEvent<{ id: number; code: string; language: string }>) => {
  let lines: Token[][] | null = null;
  try {
    lines = await highlight(data.code, data.language);
  } catch {
    // Without colours it can be read, too.
  }
  self.postMessage({ id: data.id, lines });
};
