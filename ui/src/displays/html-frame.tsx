// SPDX-License-Identifier: MIT
/** HTML that nobody trusts, in a frame of an origin of its own. */
import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { FrameView } from "@/displays/frame";
import { htmlHead, htmlKind, plainMarkup } from "@/displays/frame-protocol";
import { useColours } from "@/displays/use-colours";
import { useFrame } from "@/displays/use-frame";

/** What {@link HtmlFrame} shows. */
export interface HtmlFrameProps {
  html: string;
  title: string;
}

/** HTML that nobody trusts, in a frame of an origin of its own. */
export function HtmlFrame({ html, title }: HtmlFrameProps) {
  const { t } = useTranslation();
  const colours = useColours();
  const frame = useFrame();
  const { ready, post } = frame;
  const frameNote = t("tools.display.frameNote");
  const head = htmlHead(html, colours);
  useEffect(() => {
    if (ready > 0) post({ type: "html", html: plainMarkup(html), head, frameNote });
  }, [ready, post, html, head, frameNote]);
  return (
    <div className={htmlKind(html) === "piece" ? undefined : "rounded bg-white"}>
      <FrameView frame={frame} title={title} />
    </div>
  );
}
