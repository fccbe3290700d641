// SPDX-License-Identifier: MIT
/** Why a call did not end well, and what is left of its session, in words. */
import { useTranslation } from "react-i18next";
import { cn } from "@/components/cn";
import { JsonTree } from "@/displays/json-tree";
import { PlainText } from "@/displays/notes";
import { formatBytes } from "@/lib/format";
import { Scrollable } from "@/markdown/scrollable";
import type { CallStatus, CellError, Payload } from "@/tools/payload";
import { causeText, problemOf, thrownText } from "@/tools/problem";

/** Cause and state. */
export function Outcome({ payload, status }: { payload: Payload; status: CallStatus }) {
  const { t } = useTranslation();
  const words: string[] = [];
  const isCommand = payload.exit_code !== undefined;
  // A command's exit code says what its cause says.
  if (payload.cause && !(isCommand && payload.cause.startsWith("exit:"))) {
    words.push(causeText(t, payload.cause) ?? t("tools.cause.other", { cause: payload.cause }));
  }
  const isLost = payload.state === "lost";
  if (isLost || (payload.state === "kept" && status !== "ok" && !isCommand))
    words.push(t(`tools.state.${isLost ? "lost" : "kept"}`));
  if (isCommand && payload.exit_code !== 0)
    words.push(`${t("tools.exitCode", { code: payload.exit_code })}.`);
  if (words.length === 0) return null;
  return <p className={`text-sm ${isLost ? "text-warn" : "text-muted"}`}>{words.join(" ")}</p>;
}

function Traceback({ text }: { text: string | undefined }) {
  const { t } = useTranslation();
  if (!text) return null;
  return (
    <Scrollable label={t("tools.traceback")} className="max-h-80 border-t border-error/40 p-3">
      <PlainText text={text} />
    </Scrollable>
  );
}

/** What a cell has thrown. */
function Thrown({ error }: { error: CellError }) {
  return (
    <div className="rounded-lg border border-error/40">
      <p className="px-3 py-1.5 text-sm font-medium break-words text-error">
        {thrownText(error).slice(0, 4000)}
      </p>
      <Traceback text={error.traceback} />
    </div>
  );
}

/** The error of a cell with its traceback, or of a call with what was wrong in it. */
export function ErrorDetails({ payload }: { payload: Payload }) {
  const { t } = useTranslation();
  const problem = problemOf(t, payload);
  if (!problem) return null;
  const { known, said, thrown } = problem;
  if (thrown) return <Thrown error={thrown} />;
  const { error, details } = payload;
  return (
    <div className="text-sm">
      {/* A cause is said by the outcome. */}
      {known && !payload.cause && <p className="break-words text-error">{known}</p>}
      {said && (
        <p className={cn("break-words", known ? "text-muted" : "text-error")}>
          {t("tools.said", { text: said })}
        </p>
      )}
      {details !== undefined && <JsonTree value={details} />}
      {typeof error === "object" && <Traceback text={error?.traceback} />}
    </div>
  );
}

/** That output was shortened, and how much there was. */
export function Truncated({ payload }: { payload: Payload }) {
  const { t, i18n } = useTranslation();
  const { output } = payload;
  if (!output?.truncated) return null;
  const size = formatBytes((output.stdout_bytes ?? 0) + (output.stderr_bytes ?? 0), i18n.language);
  return <p className="text-xs text-muted">{t("tools.truncated", { size })}</p>;
}
