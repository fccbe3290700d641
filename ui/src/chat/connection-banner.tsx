// SPDX-License-Identifier: MIT
import { CloudAlert, RotateCcw } from "lucide-react";
import { useTranslation } from "react-i18next";
import { type HealthState, useHealth } from "@/api/health";
import { Button } from "@/components/button";

const texts: Partial<Record<HealthState, "dead" | "sick">> = { dead: "dead", sick: "sick" };

/** Says that the server does not answer, for as long as that is so. */
export function ConnectionBanner() {
  const { t } = useTranslation();
  const { state, health, retry, checking } = useHealth();
  const text = texts[state];
  return (
    <div role="status" aria-live="polite">
      {text && (
        <div className="flex flex-wrap items-center gap-2 border-b border-warn/50 bg-warn/12 px-4 py-2 text-sm">
          <CloudAlert aria-hidden className="size-4 shrink-0 text-warn" />
          <p className="min-w-0 flex-1">
            {t(`chat.connection.${text}`, { database: health?.database ?? "" })}
          </p>
          <Button size="sm" busy={checking} onClick={() => void retry()}>
            <RotateCcw aria-hidden className="size-4" />
            {t("chat.connection.again")}
          </Button>
        </div>
      )}
    </div>
  );
}
