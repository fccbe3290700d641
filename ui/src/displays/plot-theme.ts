// SPDX-License-Identifier: MIT
/** Figures of Plotly in the page's colours, where they do not say their own. */
import type { FrameColours } from "@/displays/frame-protocol";

type Fields = Record<string, unknown>;

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function object(value: unknown): Fields {
  return isObject(value) ? value : {};
}

/** What a figure of the default look gets in the dark. */
function darkLayout(layout: Fields, colours: FrameColours): Fields {
  const axes = Object.keys(layout).filter((key) => /^[xy]axis\d{0,3}$/.test(key));
  const axis = { gridcolor: colours.line, zerolinecolor: colours.line, linecolor: colours.line };
  const out: Fields = {
    paper_bgcolor: colours.raised,
    plot_bgcolor: colours.panel,
    ...layout,
    font: { color: colours.text, ...object(layout.font) },
  };
  for (const key of new Set(["xaxis", "yaxis", ...axes]))
    out[key] = { ...axis, ...object(layout[key]) };
  return out;
}

const HEIGHT = 420;

/** How high a figure is drawn. */
export function plotHeight(figure: Fields): number {
  const { height } = object(figure.layout);
  return typeof height === "number" && height >= 10 && height < 20_000 ? height : HEIGHT;
}

/** A figure as the frame is given it: only what a figure has, and nothing that leads out. */
export function themeFigure(value: unknown, colours: FrameColours): Fields | null {
  if (!isObject(value) || !Array.isArray(value.data)) return null;
  const { width: _, ...layout } = object(value.layout);
  const plain = { autosize: true, height: HEIGHT, ...layout };
  return {
    data: value.data,
    layout: colours.dark ? darkLayout(plain, colours) : plain,
    frames: Array.isArray(value.frames) ? value.frames : [],
    config: {
      responsive: true,
      displaylogo: false,
      showLink: false,
      showSendToCloud: false,
      modeBarButtonsToRemove: ["toImage", "sendDataToCloud"],
      plotlyServerURL: "",
    },
  };
}
