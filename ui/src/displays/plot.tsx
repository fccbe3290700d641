// SPDX-License-Identifier: MIT
/**
 * A figure of Plotly. Figures are hostile, too, so they are drawn in a frame; the library is loaded
 * once by the page, when the first figure comes into sight, and handed to each frame as text.
 */
import { Download } from "lucide-react";
import libraryUrl from "plotly.js-strict-dist-min/plotly-strict.min.js?url";
import { useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { saveBlob } from "@/api/files";
import { Button } from "@/components/button";
import { decodeBase64 } from "@/displays/bytes";
import type { DisplayItem } from "@/displays/display";
import { FrameView } from "@/displays/frame";
import { Failed, Loading, PlainText } from "@/displays/notes";
import { plotHeight, themeFigure } from "@/displays/plot-theme";
import { useColours } from "@/displays/use-colours";
import { useJson } from "@/displays/use-data";
import { useFrame } from "@/displays/use-frame";

let library: Promise<string> | undefined;

function loadLibrary(): Promise<string> {
  library ??= fetch(libraryUrl).then((response) => {
    if (!response.ok) throw new Error(response.statusText);
    return response.text();
  });
  library.catch(() => {
    library = undefined;
  });
  return library;
}

/**
 * The style of a frame with a plot. Plotly's own box is as high as ours, so ours has a height:
 * without one a figure that is drawn anew in it has none either.
 */
function headOf(dark: boolean, height: number): string {
  const scheme = dark ? "dark" : "light";
  return (
    `<style>:root{color-scheme:${scheme};background:transparent}` +
    "html,body{margin:0;overflow-x:hidden}body>div{width:100%;height:" +
    `${height}px}</style>`
  );
}

const PNG = "data:image/png;base64,";

/** A picture that the user asked for, and no other one, becomes a download. */
function useSave(): {
  save: (post: (message: unknown) => void) => void;
  take: (s: string) => void;
} {
  const isAsked = useRef(false);
  return {
    save: (post) => {
      isAsked.current = true;
      post({ type: "save" });
    },
    take: (image) => {
      if (!isAsked.current) return;
      isAsked.current = false;
      const bytes = image.startsWith(PNG) ? decodeBase64(image.slice(PNG.length)) : null;
      if (bytes) saveBlob(new Blob([bytes], { type: "image/png" }), "plot.png");
    },
  };
}

/** An interactive plot. */
export function Plot({ item, threadId }: { item: DisplayItem; threadId: string | null }) {
  const { t } = useTranslation();
  const { value, error, retry } = useJson(item, threadId);
  const colours = useColours();
  const { save, take } = useSave();
  const frame = useFrame(take);
  const [failure, setFailure] = useState<Error>();
  const [round, setRound] = useState(0);
  const figure = useMemo(() => themeFigure(value, colours), [value, colours]);
  const { ready, post } = frame;
  // biome-ignore lint/correctness/useExhaustiveDependencies: each round is another try.
  useEffect(() => {
    if (!ready || !figure) return;
    let isCurrent = true;
    const head = headOf(colours.dark, plotHeight(figure));
    loadLibrary().then(
      (text) => isCurrent && post({ type: "plot", library: text, figure, head }),
      setFailure,
    );
    return () => {
      isCurrent = false;
    };
  }, [ready, post, figure, colours.dark, round]);
  const again = () => {
    setFailure(undefined);
    setRound(round + 1);
  };
  if (error) return <Failed reason={error.message} retry={retry} />;
  if (failure) return <Failed reason={failure.message} retry={again} />;
  if (value === undefined) return <Loading />;
  if (!figure) return <PlainText text={item.text ?? ""} />;
  return (
    <div>
      <FrameView frame={frame} title={item.text?.slice(0, 120) || t("tools.display.plot")} />
      {frame.failed && (
        <p role="alert" className="text-sm text-error">
          {t("tools.display.plotFailed", { reason: frame.failed })}
        </p>
      )}
      {frame.drawn && (
        <Button size="sm" variant="ghost" onClick={() => save(post)}>
          <Download aria-hidden className="size-4" />
          {t("tools.display.savePlot")}
        </Button>
      )}
    </div>
  );
}
