// SPDX-License-Identifier: MIT
/** Why a call did not end well, and what is left of its session, in words. */
import { useTranslation } from "react-i18next";
import { JsonTree } from "@/displays/json-tree";
import { PlainText } from "@/displays/notes";
import { formatBytes } from "@/lib/format";
import { revealHidden } from "@/markdown/hidden";
import { Scrollable } from "@/markdown/scrollable";
import { type CallStatus, causeOf, type Payload } from "@/tools/payload";

/** One line that says what went wrong; null where nothing did. */
export function shortError(payload: Payload | null): string | null {
  const error = payload?.error;
  if (!error) return null;
  const text = typeof error === "string" ? error : `${error.type}: ${error.message}`;
  return revealHidden(text.split("\n")[0] ?? "").slice(0, 300);
}

/** Cause and state. */
export function Outcome({ payload, status }: { payload: Payload; status: CallStatus }) {
  const { t } = useTranslation();
  const words: string[] = [];
  const isCommand = payload.exit_code !== undefined;
  // A command's exit code says what its cause says.
  if (payload.cause && !(isCommand && payload.cause.startsWith("exit:"))) {
    const { key, number } = causeOf(payload.cause);
    words.push(t(`tools.cause.${key}`, { number, cause: payload.cause }));
  }
  const isLost = payload.state === "lost";
  if (isLost || (payload.state === "kept" && status !== "ok" && !isCommand))
    words.push(t(`tools.state.${isLost ? "lost" : "kept"}`));
  if (isCommand && payload.exit_code !== 0)
    words.push(`${t("tools.exitCode", { code: payload.exit_code })}.`);
  if (words.length === 0) return null;
  return <p className={`text-sm ${isLost ? "text-warn" : "text-muted"}`}>{words.join(" ")}</p>;
}

/** The error of a cell with its traceback, or of a call with what was wrong in it. */
export function ErrorDetails({ payload }: { payload: Payload }) {
  const { t } = useTranslation();
  const { error, details } = payload;
  if (!error) return null;
  if (typeof error === "string")
    return (
      <div className="text-sm text-error">
        <p className="break-words">{revealHidden(error)}</p>
        {details !== undefined && <JsonTree value={details} />}
      </div>
    );
  return (
    <div className="rounded-lg border border-error/40">
      <p className="px-3 py-1.5 text-sm font-medium break-words text-error">
        {revealHidden(`${error.type}: ${error.message}`.slice(0, 4000))}
      </p>
      {error.traceback && (
        <Scrollable label={t("tools.traceback")} className="max-h-80 border-t border-error/40 p-3">
          <PlainText text={error.traceback} />
        </Scrollable>
      )}
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
