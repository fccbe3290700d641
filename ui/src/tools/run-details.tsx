// SPDX-License-Identifier: MIT
/** What a cell or a command has printed: live while it runs, from the result after it. */
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { formatBytes } from "@/lib/format";
import { linesOf } from "@/tools/line-buffer";
import type { LiveOutput } from "@/tools/live-store";
import { ErrorDetails, Outcome, Truncated } from "@/tools/outcome";
import { Output } from "@/tools/output";
import { type CallStatus, hasNothing, type Payload } from "@/tools/payload";

/** What {@link RunDetails} shows. */
export interface RunDetailsProps {
  payload: Payload | null;
  live: LiveOutput | undefined;
  status: CallStatus;
}

/** Whole output, as a result has it. */
function Printed({
  stdout = "",
  stderr = "",
  label,
}: {
  stdout?: string;
  stderr?: string;
  label: string;
}) {
  const buffer = useMemo(() => linesOf(stdout, stderr), [stdout, stderr]);
  return buffer.lines.length > 0 ? <Output buffer={buffer} label={label} /> : null;
}

/** What a cell has printed and how it ended. */
export function RunDetails({ payload, live, status }: RunDetailsProps) {
  const { t, i18n } = useTranslation();
  const printed = useMemo(() => linesOf(payload?.stdout ?? "", payload?.stderr ?? ""), [payload]);
  // A result that was shortened has less than what came live, where nothing of that is missing.
  const hasMore =
    payload?.output?.truncated && live && live.gap === 0 && live.buffer.lines.length > 0;
  const source = live && (!payload || hasMore) ? live : null;
  const buffer = source?.buffer ?? printed;
  const late = payload?.late_output;
  // The box is one and the same while it runs and after it, so that it stays where it was scrolled.
  return (
    <>
      {late && <Printed stdout={late.stdout} stderr={late.stderr} label={t("tools.late")} />}
      {buffer.lines.length > 0 && (
        <Output
          key="output"
          buffer={buffer}
          version={source ?? payload}
          live={source !== null && status === "running"}
          label={t("tools.output")}
        />
      )}
      {source && source.gap > 0 && (
        <p className="text-xs text-muted">
          {t("tools.gap", { size: formatBytes(source.gap, i18n.language) })}
        </p>
      )}
      {payload && buffer.lines.length === 0 && hasNothing(payload) && (
        <p className="text-sm text-muted">{t("tools.noOutput")}</p>
      )}
      {payload && !hasMore && <Truncated payload={payload} />}
      {payload && <ErrorDetails payload={payload} />}
      {payload && <Outcome payload={payload} status={status} />}
    </>
  );
}
