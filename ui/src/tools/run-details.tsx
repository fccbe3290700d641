// SPDX-License-Identifier: MIT
/** What a cell or a command has printed: live while it runs, from the result after it. */
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { linesOf } from "@/tools/line-buffer";
import type { LiveOutput } from "@/tools/live-store";
import { ErrorDetails, Outcome, Truncated } from "@/tools/outcome";
import { Output } from "@/tools/output";
import { type CallStatus, formatBytes, type Payload } from "@/tools/payload";

/** What {@link RunDetails} shows. */
export interface RunDetailsProps {
  payload: Payload | null;
  live: LiveOutput | undefined;
  status: CallStatus;
}

/** What was printed while the cell runs. */
function LiveOutputView({ live, isRunning }: { live: LiveOutput; isRunning: boolean }) {
  const { t } = useTranslation();
  return (
    <>
      {live.buffer.lines.length > 0 && (
        <Output buffer={live.buffer} version={live} live={isRunning} label={t("tools.output")} />
      )}
      {live.gap > 0 && (
        <p className="text-xs text-muted">{t("tools.gap", { size: formatBytes(live.gap) })}</p>
      )}
    </>
  );
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
  const { t } = useTranslation();
  if (!payload)
    return live ? <LiveOutputView live={live} isRunning={status === "running"} /> : null;
  // A result that was shortened has less than what came live, where nothing of that is missing.
  const hasMore =
    payload.output?.truncated && live && live.gap === 0 && live.buffer.lines.length > 0;
  const late = payload.late_output;
  return (
    <>
      {late && <Printed stdout={late.stdout} stderr={late.stderr} label={t("tools.late")} />}
      {hasMore ? (
        <LiveOutputView live={live} isRunning={false} />
      ) : (
        <Printed stdout={payload.stdout} stderr={payload.stderr} label={t("tools.output")} />
      )}
      {!hasMore && <Truncated payload={payload} />}
      <ErrorDetails payload={payload} />
      <Outcome payload={payload} status={status} />
    </>
  );
}
