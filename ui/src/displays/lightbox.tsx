// SPDX-License-Identifier: MIT
/** A picture over the whole page; loaded when the first one is opened. */
import { useTranslation } from "react-i18next";
import Box from "yet-another-react-lightbox";
import DownloadPlugin from "yet-another-react-lightbox/plugins/download";
import Zoom from "yet-another-react-lightbox/plugins/zoom";
import "yet-another-react-lightbox/styles.css";

/** What the lightbox shows. */
export interface LightboxProps {
  src: string;
  alt: string;
  onClose: () => void;
  onDownload: () => void;
}

/** A picture over the whole page. */
export default function Lightbox({ src, alt, onClose, onDownload }: LightboxProps) {
  const { t } = useTranslation();
  return (
    <Box
      open
      close={onClose}
      slides={[{ src, alt }]}
      plugins={[Zoom, DownloadPlugin]}
      carousel={{ finite: true }}
      controller={{ closeOnBackdropClick: true }}
      render={{ buttonPrev: () => null, buttonNext: () => null }}
      zoom={{ maxZoomPixelRatio: 6 }}
      download={{ download: onDownload }}
      labels={{
        Close: t("tools.display.close"),
        Download: t("tools.download"),
        Lightbox: alt,
        "Zoom in": t("tools.display.zoomIn"),
        "Zoom out": t("tools.display.zoomOut"),
      }}
    />
  );
}
