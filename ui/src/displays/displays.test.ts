// SPDX-License-Identifier: MIT
import { describe, expect, it } from "vitest";
import { base64Sides, dataBlob, decodeBase64, pictureSides } from "@/displays/bytes";
import { parseSeparated, resourceTable, separatedTable } from "@/displays/csv";
import {
  type FrameColours,
  frameHeight,
  htmlHead,
  htmlKind,
  parseFrameMessage,
  plainMarkup,
} from "@/displays/frame-protocol";
import { displayOfResult, fileName, isBase64, kindOf } from "@/displays/kinds";
import { latexMarkdown } from "@/displays/latex";
import { plotHeight, themeFigure } from "@/displays/plot-theme";

const colours: FrameColours = {
  dark: true,
  raised: "rgb(1, 1, 1)",
  text: "rgb(2, 2, 2)",
  muted: "rgb(3, 3, 3)",
  line: "rgb(4, 4, 4)",
  panel: "rgb(5, 5, 5)",
  accent: "rgb(6, 6, 6)",
};

describe("kinds", () => {
  it("are known by their type", () => {
    expect(kindOf("image/png")).toBe("image");
    expect(kindOf("TEXT/HTML; charset=utf-8")).toBe("html");
    expect(kindOf("application/geo+json")).toBe("json");
    expect(kindOf("application/vnd.vega.v5+json")).toBe("file");
    expect(kindOf("audio/flac")).toBe("audio");
    expect(kindOf("application/pdf")).toBe("file");
    expect(kindOf("image/tiff")).toBe("file");
    expect(kindOf("constructor")).toBe("file");
  });

  it("of a result are chosen as a notebook does", () => {
    expect(displayOfResult(null)).toBeNull();
    expect(displayOfResult({})).toBeNull();
    expect(displayOfResult({ "text/plain": "x", "text/html": "<b>" })).toEqual({
      type: "text/html",
      data: "<b>",
      text: "x",
    });
    const reference = { type: "text/html", blob: "ab", size: 3 };
    expect(displayOfResult({ "text/html": reference })).toEqual(reference);
  });

  it("have names as files", () => {
    expect(fileName("image/svg+xml")).toBe("display.svg");
    expect(fileName("image/jpeg", "image-1")).toBe("image-1.jpg");
    expect(fileName("application/x-../../y")).toBe("display.bin");
    expect(isBase64("image/svg+xml")).toBe(false);
    expect(isBase64("video/mp4")).toBe(true);
  });
});

describe("bytes", () => {
  it("are decoded, whatever the lines", () => {
    expect(decodeBase64("aG\nk=")).toEqual(new Uint8Array([104, 105]));
    expect(decodeBase64("!")).toBeNull();
    expect(dataBlob("image/png", "!")).toBeNull();
    expect(dataBlob("text/csv", "a,b")?.size).toBe(3);
  });

  it("tell a picture's size by their head", () => {
    const png = decodeBase64(
      "iVBORw0KGgoAAAANSUhEUgABhqAAAYagCAYAAAAAAAAAAAAAAAAAAAAAAAAA",
    ) as Uint8Array;
    expect(pictureSides(png)).toEqual({ width: 100_000, height: 100_000 });
    const gif = new Uint8Array(40);
    gif.set([0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 10, 0, 20, 1]);
    expect(pictureSides(gif)).toEqual({ width: 10, height: 276 });
    const jpeg = new Uint8Array(40);
    jpeg.set([0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0, 0xff, 0xc0, 0, 11, 8, 1, 0, 2, 0]);
    expect(pictureSides(jpeg)).toEqual({ width: 512, height: 256 });
    expect(pictureSides(new Uint8Array(100))).toBeNull();
    expect(pictureSides(new Uint8Array(3))).toBeNull();
  });
});

describe("tables", () => {
  it("are read with their quotes", () => {
    expect(parseSeparated('a,"b ""x"", c"\r\n1,"2\n3"\n', ",")).toEqual([
      ["a", 'b "x", c'],
      ["1", "2\n3"],
    ]);
    expect(separatedTable("a\tb\n1\t2", "\t")).toEqual({ columns: ["a", "b"], rows: [["1", "2"]] });
    expect(separatedTable("", ",")).toEqual({ columns: [], rows: [] });
  });

  it("may be resources", () => {
    const table = { columns: ["a", "b"], rows: [["1", ""]] };
    expect(resourceTable({ data: [{ a: 1, b: null }] })).toEqual(table);
    expect(resourceTable({ data: 3 })).toBeNull();
  });
});

describe("frames", () => {
  it("are believed only what has the right shape", () => {
    const ours = { frame: "sandbox-agent" };
    expect(parseFrameMessage({ ...ours, type: "size", height: 10 })).toEqual({
      type: "size",
      height: 10,
    });
    for (const wrong of [
      null,
      "size",
      { type: "size", height: 10 },
      { ...ours, type: "size", height: "10" },
      { ...ours, type: "size", height: Number.NaN },
      { ...ours, type: "constructor" },
      { ...ours, type: "link", href: 3 },
    ])
      expect(parseFrameMessage(wrong)).toBeNull();
  });

  it("are bounded in their height", () => {
    expect([-5, 100.2, 1e9].map((asked) => frameHeight(asked, 640))).toEqual([24, 101, 640]);
  });

  it("look like the page only with pieces of one", () => {
    expect(htmlKind("<table class=dataframe></table>")).toBe("piece");
    expect(htmlKind("<div></div><script>1</script>")).toBe("widget");
    expect(htmlKind("<!DOCTYPE html><html>")).toBe("page");
    expect(htmlHead("<p>", colours)).toContain("color-scheme:dark");
    expect(htmlHead("<script>", colours)).toContain("color-scheme:light");
    expect(htmlHead("<!doctype html><p>", colours)).toBe("");
  });
});

describe("formulas", () => {
  it("are set as a block", () => {
    for (const text of ["$a$", "$$a$$", "a"]) expect(latexMarkdown(text)).toBe("$$\na\n$$");
    expect(latexMarkdown("see $a$ there")).toBe("see $a$ there");
  });
});

describe("figures", () => {
  it("get the page's colours where they have none", () => {
    const figure = themeFigure({ data: [], layout: { width: 9, plot_bgcolor: "red" } }, colours);
    expect(figure?.layout).toMatchObject({
      plot_bgcolor: "red",
      paper_bgcolor: colours.raised,
      font: { color: colours.text },
    });
    expect(figure?.layout).not.toHaveProperty("width");
  });

  it("lose what leads out", () => {
    const config = { plotlyServerURL: "https://example.org", showSendToCloud: true };
    const figure = themeFigure({ data: [], config }, { ...colours, dark: false });
    expect(figure?.config).toMatchObject({ plotlyServerURL: "", showSendToCloud: false });
  });

  it("are figures", () => {
    for (const wrong of [null, 3, [], {}, { data: {} }])
      expect(themeFigure(wrong, colours)).toBeNull();
  });
});

describe("what hides", () => {
  it("markup of hidden trees is none", () => {
    expect(plainMarkup("<template ShadowRootMode=closed>")).toBe("<template data-mode=closed>");
    expect(plainMarkup("<b>x</b>")).toBe("<b>x</b>");
  });

  it("a size far behind in a JPEG is found", () => {
    const comment = [0xff, 0xfe, 0xff, 0xff, ...new Array<number>(0xffff - 2).fill(0)];
    const frame = [0xff, 0xc0, 0, 17, 8, 0x40, 0, 0x50, 0, ...new Array<number>(30).fill(0)];
    const bytes = Uint8Array.from([0xff, 0xd8, ...comment, ...comment, ...frame]);
    const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
    expect(base64Sides(text)).toEqual({ width: 0x5000, height: 0x4000 });
    expect(base64Sides(btoa("x".repeat(200)))).toBeNull();
    expect(base64Sides("no base64!")).toBeNull();
  });
});

describe("the height of a plot", () => {
  it("is its own or the usual one", () => {
    expect(plotHeight({ layout: { height: 800 } })).toBe(800);
    for (const height of [undefined, "800", Number.NaN, 1e9, -1])
      expect(plotHeight({ layout: { height } })).toBe(420);
  });
});
