// SPDX-License-Identifier: MIT
import { describe, expect, it } from "vitest";
import { isUnreasonable, splitBlocks } from "@/markdown/blocks";
import { revealHidden } from "@/markdown/hidden";
import { mergeLines } from "@/markdown/highlight";
import { languageOf } from "@/markdown/language-names";
import { hostOf, isInlineImage, safeHref } from "@/markdown/links";
import { normalizeMath } from "@/markdown/math-delimiters";

/** Characters that nobody sees are written by number, also here. */
const at = (...codes: number[]) => String.fromCodePoint(...codes);

describe("hidden characters", () => {
  it("are shown", () => {
    expect(revealHidden(`a${at(0x200b)}b`)).toBe("a⟨U+200B⟩b");
    expect(revealHidden(`a${at(0x202e)}txt${at(0x2069)}`)).toBe("a⟨U+202E⟩txt⟨U+2069⟩");
    expect(revealHidden(at(7, 7, 7))).toBe("⟨U+0007 ×3⟩");
    expect(revealHidden(at(0x2028))).toBe("⟨U+2028⟩");
  });

  it("that spell a text are read out", () => {
    const tags = [..."obey"].map((c) => at(0xe0000 + c.charCodeAt(0))).join("");
    expect(revealHidden(`x${tags}y`)).toBe("x⟨tags “obey”⟩y");
  });

  it("stay where writing needs them", () => {
    const family = at(0x1f468, 0x200d, 0x1f469, 0x200d, 0x1f467);
    const england = at(0x1f3f4, 0xe0067, 0xe0062, 0xe0065, 0xe006e, 0xe0067, 0xe007f);
    const persian = at(0x645, 0x6cc, 0x200c, 0x62e);
    for (const text of [family, england, persian, "line\n\ttab\r\n", "中文 ümlaut ✔️"])
      expect(revealHidden(text)).toBe(text);
  });

  it("that join nothing are shown", () => {
    expect(revealHidden(`pay${at(0x200d)}pal`)).toBe("pay⟨U+200D⟩pal");
  });
});

describe("links", () => {
  it("lead only where a link may", () => {
    expect(safeHref("https://example.org/a?b#c")).toBe("https://example.org/a?b#c");
    expect(safeHref("mailto:a@example.org")).toBe("mailto:a@example.org");
    for (const href of [
      "javascript:alert(1)",
      " java\nscript:alert(1)",
      "data:text/html,x",
      "vbscript:x",
      "file:///etc/passwd",
      "//example.org",
      "/threads",
      "blob:http://127.0.0.1/x",
      "https://bank.example@evil.example/",
      "",
    ])
      expect(safeHref(href)).toBeNull();
  });

  it("tell their host", () => {
    expect(hostOf("https://example.org:8080/x")).toBe("example.org:8080");
  });

  it("to images are for images in the text", () => {
    expect(isInlineImage("data:image/png;base64,AAAA")).toBe(true);
    expect(isInlineImage("data:image/svg+xml;base64,AAAA")).toBe(false);
    expect(isInlineImage("https://example.org/a.png")).toBe(false);
  });
});

describe("formulas", () => {
  it("in all ways of writing become dollars", () => {
    expect(normalizeMath("so \\(a+b\\) is")).toBe("so $a+b$ is");
    expect(normalizeMath("\\[\na=b\n\\]")).toBe("$$\na=b\n$$");
    expect(normalizeMath("x $a_1$ y $$b$$ z")).toBe("x $a_1$ y $$b$$ z");
  });

  it("are not prices", () => {
    expect(normalizeMath("costs $5 and $10.")).toBe("costs \\$5 and \\$10.");
    expect(normalizeMath("only $ here")).toBe("only \\$ here");
    expect(normalizeMath("from $a to\n\n b$")).toBe("from \\$a to\n\n b\\$");
  });

  it("that are not ended stay text", () => {
    expect(normalizeMath("see $$a + b")).toBe("see \\$\\$a + b");
  });

  it("are not looked for in code", () => {
    const code = "```sh\necho $HOME \\(x\\)\n```\nand `$PATH and $HOME` too";
    expect(normalizeMath(code)).toBe(code);
    const open = "```sh\necho $A";
    expect(normalizeMath(open)).toBe(open);
  });

  it("do not make reading slow", () => {
    const begun = performance.now();
    normalizeMath("$a ".repeat(50_000));
    normalizeMath("\\(".repeat(50_000));
    normalizeMath("`".repeat(50_000));
    expect(performance.now() - begun).toBeLessThan(2000);
  });
});

describe("blocks", () => {
  const fill = "word ".repeat(500);

  it("are the text when put together", () => {
    const text = `${fill}\n\n# head\n\n- a\n\n- b\n\n\`\`\`js\n\nx\n\n\`\`\`\n\nend`;
    expect(splitBlocks(text).join("\n")).toBe(text);
  });

  it("are not cut in lists, fences, formulas and quotes", () => {
    for (const whole of [
      "- a\n\n- b",
      "```\na\n\nb\n```",
      "$$\na\n\nb\n$$",
      "> a\n\n> b",
      "1. a\n\n   b",
    ])
      expect(splitBlocks(`${fill}\n\n${whole}`).some((block) => block.includes(whole))).toBe(true);
  });

  it("are one where there are definitions", () => {
    expect(splitBlocks(`${fill}\n\n[a]: https://example.org\n\nb`)).toHaveLength(1);
  });
});

describe("blocks that are made to be slow", () => {
  it("are known", () => {
    for (const text of [
      "**a_".repeat(5000),
      ">".repeat(100),
      "- ".repeat(100),
      "[".repeat(9000),
      "|a".repeat(900),
    ])
      expect(isUnreasonable(text)).toBe(true);
  });

  it("are not what people write", () => {
    const list = Array.from(
      { length: 400 },
      (_, i) => `- **point ${i}** with \`code\` and [a](https://b.example)`,
    );
    expect(isUnreasonable(list.join("\n"))).toBe(false);
    expect(isUnreasonable("> > > quoted")).toBe(false);
  });
});

describe("code", () => {
  it("has many names for its language", () => {
    expect(languageOf("PY")).toBe("python");
    expect(languageOf("sh")).toBe("bash");
    expect(languageOf("constructor")).toBeNull();
    expect(languageOf(undefined)).toBeNull();
  });

  it("keeps its colours while it grows", () => {
    const red = ["a = 1", "#f00", "#f00", 0] as [string, string, string, number];
    expect(mergeLines("a = 1\nb", [[red]])).toEqual([[red], [["b", "", "", 0]]]);
    expect(mergeLines("a = 12", [[red]])).toEqual([[["a = 12", "", "", 0]]]);
  });
});

describe("formulas of a hostile text", () => {
  it("take no longer for backticks and brackets that never end", () => {
    const runs = Array.from({ length: 599 }, (_, at) => "`".repeat(at + 1)).join(" ");
    const brackets = `${"\\[ ".repeat(50_000)}\\( ${"\\( ".repeat(50_000)}`;
    const start = performance.now();
    expect(normalizeMath(`${runs} $x$`)).toBe(`${runs} $x$`);
    normalizeMath(brackets);
    normalizeMath(`${brackets}\\] \\)`);
    expect(performance.now() - start).toBeLessThan(500);
  });

  it("are found beside code of every length", () => {
    expect(normalizeMath("`\\(a\\)` \\(b\\) ``c`\\(d\\)`` `e \\(f\\)")).toBe(
      "`\\(a\\)` $b$ ``c`\\(d\\)`` `e $f$",
    );
    expect(normalizeMath("  \\[x\n  y\\]\nz \\[w\\]")).toBe("  $$\n  x\n  y\n  $$\nz $$w$$");
  });
});
