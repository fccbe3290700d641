// SPDX-License-Identifier: MIT
import { CircleAlert, RotateCcw } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/button";
import type { Problem } from "@/lib/errors";
import { openThread } from "@/lib/thread-url";

export interface RunErrorProps {
  problem: Problem;
  onRetry: () => void;
  onSettings: () => void;
}

/** Errors that another model, key or address would mend. */
const MODEL = /model|api.?key|authenticat|provider|quota|401|403/i;

/** There is no such conversation: it was deleted, or belongs to somebody else. */
function Missing() {
  const { t } = useTranslation();
  return (
    <section
      role="alert"
      className="flex flex-wrap items-center justify-between gap-3 rounded-2xl border border-line p-4"
    >
      <h2 className="font-semibold">{t("chat.error.missing")}</h2>
      <Button size="sm" variant="primary" onClick={() => openThread(null)}>
        {t("chat.threads.new")}
      </Button>
    </section>
  );
}

/** What the page knows of it, and what the server says. */
function Reason({ kind, text }: Problem) {
  const { t, i18n } = useTranslation();
  const known = `chat.error.kinds.${kind}`;
  const said = kind && text ? `${kind}: ${text}` : kind || text;
  return (
    <div className="mt-1 max-h-60 overflow-y-auto text-sm break-words whitespace-pre-wrap">
      {kind && i18n.exists(known) && <p>{t(known)}</p>}
      <p className="text-muted">
        {said ? t("chat.error.said", { text: said }) : t("chat.error.unknown")}
      </p>
    </div>
  );
}

/** Why a run has ended before its time. */
export function RunError({ problem, onRetry, onSettings }: RunErrorProps) {
  const { t } = useTranslation();
  const { kind, text, offline, status } = problem;
  if (status === 404) return <Missing />;
  return (
    <section
      role="alert"
      className="flex flex-col gap-3 rounded-2xl border border-error/60 bg-error/8 p-4"
    >
      <div className="flex gap-3">
        <CircleAlert aria-hidden className="mt-0.5 size-5 shrink-0 text-error" />
        <div className="min-w-0 flex-1">
          <h2 className="font-semibold">{t(offline ? "chat.error.lost" : "chat.error.title")}</h2>
          {offline ? (
            <p className="mt-1 text-sm">{t("chat.error.lostText")}</p>
          ) : (
            <Reason {...problem} />
          )}
        </div>
      </div>
      <div className="flex flex-wrap justify-end gap-2">
        {MODEL.test(`${kind} ${text}`) && !offline && (
          <Button size="sm" onClick={onSettings}>
            {t("chat.error.settings")}
          </Button>
        )}
        <Button size="sm" variant="primary" onClick={onRetry}>
          <RotateCcw aria-hidden className="size-4" />
          {t("chat.retry")}
        </Button>
      </div>
    </section>
  );
}
