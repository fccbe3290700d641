// SPDX-License-Identifier: MIT
/** Small things that displays say. */
import { useTranslation } from "react-i18next";
import { Button } from "@/components/button";
import { Spinner } from "@/components/spinner";
import { AnsiText } from "@/tools/ansi-text";

/** It is on its way. */
export function Loading() {
  const { t } = useTranslation();
  return (
    <p className="flex items-center gap-2 py-2 text-sm text-muted">
      <Spinner className="size-4" /> {t("tools.loading")}
    </p>
  );
}

/** It did not come, and why. */
export function Failed({ reason, retry }: { reason: string; retry?: () => void }) {
  const { t } = useTranslation();
  return (
    <div className="flex flex-wrap items-center gap-2 py-1 text-sm text-error">
      <p role="alert">{t("tools.loadFailed", { reason })}</p>
      {retry && (
        <Button size="sm" onClick={retry}>
          {t("tools.display.retry")}
        </Button>
      )}
    </div>
  );
}

const TEXT_MAX = 200_000;

/** Text as it was printed. */
export function PlainText({ text }: { text: string }) {
  const shown = text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}\n…` : text;
  return (
    <pre className="font-mono text-[0.8125rem] leading-5 break-words whitespace-pre-wrap">
      <AnsiText text={shown} />
    </pre>
  );
}
