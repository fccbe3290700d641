// SPDX-License-Identifier: MIT
import { expect, it } from "vitest";
import { en } from "@/i18n/en";
import { zh } from "@/i18n/zh";

const files = import.meta.glob<string>(
  ["../**/*.{ts,tsx}", "!../**/*.test.ts", "!./*.{en,zh}.ts"],
  {
    query: "?raw",
    import: "default",
    eager: true,
  },
);
const source = Object.values(files).join("\n");

/** All texts by their keys. */
function textsOf(tree: object, before = ""): [string, string][] {
  return Object.entries(tree).flatMap(([key, value]): [string, string][] =>
    typeof value === "string" ? [[before + key, value]] : textsOf(value, `${before}${key}.`),
  );
}

/** Keys that are made where they are used, each with what is put in. */
const made = [...source.matchAll(/`((?:app|chat|settings|tools)\.[^`\s]*\$\{[^`]*)`/g)].map(
  ([, text = ""]) => {
    const parts = text.split(/\$\{[^}]*\}/).map((part) => part.replaceAll(".", "\\."));
    return new RegExp(`^${parts.join("(\\w+)")}$`);
  },
);

/** Keys in which the word that is put in comes from the server. */
const servers = /^chat\.error\.kinds\.|^tools\.session\.(networks\.public|starting)$/;

/** Whether some code asks for a text: by its whole key, or by one whose parts it names. */
function isUsed(key: string): boolean {
  const base = key.replace(/_(one|other)$/, "");
  if (source.includes(`"${base}"`)) return true;
  return made.some((pattern) => {
    const parts = pattern.exec(base)?.slice(1);
    return parts?.every(
      (part) => servers.test(base) || new RegExp(`"${part}"|\\b${part}\\??:`).test(source),
    );
  });
}

/** What is put into a text. */
const placesOf = (text: string) => [...text.matchAll(/\{\{\w+\}\}/g)].map(String).sort();

it("are the same ones in both languages, and take in the same", () => {
  const chinese = new Map(textsOf(zh));
  expect([...chinese.keys()].sort()).toEqual(
    textsOf(en)
      .map(([key]) => key)
      .sort(),
  );
  for (const [key, text] of textsOf(en)) {
    expect(text, key).not.toBe("");
    expect(placesOf(chinese.get(key) ?? ""), key).toEqual(placesOf(text));
  }
});

it("are all used", () => {
  const unused = textsOf(en)
    .map(([key]) => key)
    .filter((key) => !isUsed(key));
  expect(unused).toEqual([]);
});

it("that code asks for are there", () => {
  const keys = new Set(textsOf(en).map(([key]) => key.replace(/_(one|other)$/, "")));
  const asked = [...source.matchAll(/\bt\(\s*"([^"]+)"/g)].map(([, key]) => key ?? "");
  expect(asked.length).toBeGreaterThan(100);
  expect(asked.filter((key) => !keys.has(key))).toEqual([]);
});
