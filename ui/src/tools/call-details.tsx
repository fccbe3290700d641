// SPDX-License-Identifier: MIT
/** What is inside of an open block, by tool. */
import { useTranslation } from "react-i18next";
import { PlainText } from "@/displays/notes";
import { revealHidden } from "@/markdown/hidden";
import type { LiveOutput } from "@/tools/live-store";
import { ErrorDetails } from "@/tools/outcome";
import type { CallStatus, Payload, SessionEntry } from "@/tools/payload";
import { RunDetails } from "@/tools/run-details";
import { SessionCard, SessionList } from "@/tools/sessions";
import { ToolInput } from "@/tools/tool-input";

/** What {@link CallDetails} shows. */
export interface CallDetailsProps {
  name: string;
  args: Record<string, unknown>;
  payload: Payload | null;
  /** The result as it is, where it is no payload. */
  text: string | null;
  live: LiveOutput | undefined;
  status: CallStatus;
}

function isSession(payload: Payload): payload is Payload & SessionEntry {
  return payload.session_id !== undefined && payload.runtime !== undefined;
}

function Created({ payload }: { payload: Payload }) {
  const { t } = useTranslation();
  return (
    <>
      {isSession(payload) && <SessionCard session={payload} />}
      {payload.stderr && (
        <details className="text-sm">
          <summary className="cursor-pointer text-muted">{t("tools.installer")}</summary>
          <PlainText text={payload.stderr} />
        </details>
      )}
    </>
  );
}

/** One sentence where that is all there is to say. */
function sentenceOf(name: string, payload: Payload): string | null {
  if (name === "stop_session") return payload.success ? "tools.stopped" : "tools.stoppedNone";
  if (name === "interrupt_session" && payload.success)
    return payload.interrupted ? "tools.interruptDone" : "tools.interruptNone";
  return null;
}

function Answer({ name, payload }: { name: string; payload: Payload }) {
  const { t } = useTranslation();
  const sentence = payload.error ? null : sentenceOf(name, payload);
  return (
    <>
      {name === "create_session" && <Created payload={payload} />}
      {sentence && <p className="text-sm">{t(sentence)}</p>}
      {payload.sessions && <SessionList sessions={payload.sessions} />}
      <ErrorDetails payload={payload} />
    </>
  );
}

/** The advice that came with a failure; it is for the model, but tells a person why, too. */
function Hint({ payload }: { payload: Payload }) {
  const { t } = useTranslation();
  if (!payload.hint) return null;
  return (
    <details className="text-sm text-muted">
      <summary className="cursor-pointer">{t("tools.hint")}</summary>
      <p className="mt-1">{revealHidden(payload.hint)}</p>
    </details>
  );
}

/** Tools without arguments worth a look. */
const bare = new Set(["list_sessions", "stop_session", "interrupt_session"]);

/** Whether the arguments say more than the block does. */
function hasInput(name: string, args: Record<string, unknown>): boolean {
  if (bare.has(name)) return false;
  return name !== "create_session" || Object.keys(args).some((key) => key !== "language");
}

/** What is inside of an open block. */
export function CallDetails({ name, args, payload, text, live, status }: CallDetailsProps) {
  const isRun = name === "execute_code" || name === "execute_terminal";
  return (
    <>
      {hasInput(name, args) && <ToolInput name={name} args={args} />}
      {isRun && <RunDetails payload={payload} live={live} status={status} />}
      {payload && !isRun && <Answer name={name} payload={payload} />}
      {payload && <Hint payload={payload} />}
      {text !== null && <PlainText text={text} />}
    </>
  );
}
