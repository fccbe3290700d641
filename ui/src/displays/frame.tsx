// SPDX-License-Identifier: MIT
/** The element of a frame, and what stands around it. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/button";
import { frameHeight } from "@/displays/frame-protocol";
import type { Frame } from "@/displays/use-frame";
import { OutLink } from "@/markdown/elements";

const HEIGHT = 640;
const HEIGHT_WHOLE = 6000;
const HEIGHT_FIRST = 400;

const features = [
  "accelerometer",
  "autoplay",
  "camera",
  "clipboard-read",
  "clipboard-write",
  "display-capture",
  "encrypted-media",
  "fullscreen",
  "geolocation",
  "gyroscope",
  "microphone",
  "midi",
  "payment",
  "picture-in-picture",
  "publickey-credentials-get",
  "screen-wake-lock",
  "usb",
  "xr-spatial-tracking",
];

const allow = features.map((name) => `${name} 'none'`).join("; ");

/** A frame with scripts, without an origin, and without anything that leads out of it. */
export function FrameView({ frame, title }: { frame: Frame; title: string }) {
  const { t } = useTranslation();
  const [isWhole, setWhole] = useState(false);
  const asked = frame.height ?? HEIGHT_FIRST;
  return (
    <div>
      <iframe
        ref={frame.ref}
        src="/frame.html"
        title={title}
        sandbox="allow-scripts"
        allow={allow}
        referrerPolicy="no-referrer"
        className="block w-full rounded border-0"
        style={{ height: frameHeight(asked, isWhole ? HEIGHT_WHOLE : HEIGHT) }}
      />
      {asked > HEIGHT && (
        <Button size="sm" variant="ghost" onClick={() => setWhole(!isWhole)}>
          {t(isWhole ? "tools.shrink" : "tools.expand")}
        </Button>
      )}
      {frame.link && (
        <p className="prose prose-sm mt-1 max-w-none text-xs break-all text-muted" role="status">
          {t("tools.display.link")}
          <OutLink href={frame.link}>{frame.link}</OutLink>
        </p>
      )}
    </div>
  );
}
