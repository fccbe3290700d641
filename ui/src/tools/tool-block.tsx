// SPDX-License-Identifier: MIT
/**
 * A call of a tool and what became of it. Input and output are inside of the block and can be
 * closed; what was made for people (pictures, tables, files) stays in sight until they close it.
 */
import type { ToolMessage } from "@langchain/langgraph-sdk";
import { ChevronRight } from "lucide-react";
import { useEffect, useId, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { cn, focusRing } from "@/components/cn";
import type { DisplayItem } from "@/displays/display";
import { Displays } from "@/displays/displays";
import { displayOfResult } from "@/displays/kinds";
import { CallDetails } from "@/tools/call-details";
import { formatDuration, useElapsed } from "@/tools/duration";
import { FileList } from "@/tools/files";
import { type LiveOutput, useLive } from "@/tools/live-store";
import {
  type CallStatus,
  messageText,
  type Payload,
  parsePayload,
  statusOf,
} from "@/tools/payload";
import { shortProblem } from "@/tools/problem";
import { learnRuntimes, useRuntime } from "@/tools/runtimes";
import { RuntimeBadge } from "@/tools/sessions";
import { StatusBadge, ToolIcon } from "@/tools/status-badge";

/** What the model asked for. */
export interface ToolCall {
  id?: string;
  name: string;
  args: Record<string, unknown>;
}

/** What {@link ToolBlock} shows. */
export interface ToolBlockProps {
  call: ToolCall;
  result: ToolMessage | undefined;
  /** Whether the run that makes the call goes on. */
  running: boolean;
  threadId: string | null;
  /** Open it while it runs: the last one of a conversation. */
  autoOpen?: boolean;
  /** Open it from the start: no words after it say what came of it. */
  shown?: boolean;
}

/** The displays of a call. Those that came live stay, so that nothing is loaded again. */
function displaysOf(payload: Payload | null, live: LiveOutput | undefined): DisplayItem[] {
  const shown = live?.displays ?? [];
  const final = payload?.display_outputs;
  if (!Array.isArray(final)) return [...shown];
  return final.map((item, at) => {
    const before = shown[at];
    return before?.data !== undefined && before.type === item.type ? before : item;
  });
}

/** What a cell's last value is, where it is more than text. */
function Result({ payload, threadId }: { payload: Payload | null; threadId: string | null }) {
  const { t } = useTranslation();
  const item = useMemo(() => displayOfResult(payload?.result), [payload]);
  if (!item) return null;
  return (
    <section aria-label={t("tools.result")} className="min-w-0">
      <h4 className="mb-1 text-xs text-muted">{t("tools.result")}</h4>
      <Displays items={[item]} threadId={threadId} />
    </section>
  );
}

interface HeadProps {
  call: ToolCall;
  payload: Payload | null;
  status: CallStatus;
  runtime: string | undefined;
}

/** How long it has been running, or took. */
function Time({ call, payload, status }: HeadProps) {
  const { t } = useTranslation();
  const elapsed = useElapsed(call.id, status === "running");
  const ms = elapsed ?? payload?.duration_ms;
  if (ms === undefined) return null;
  return <span className="text-xs text-muted tabular-nums">{formatDuration(t, ms)}</span>;
}

function Head(props: HeadProps) {
  const { t } = useTranslation();
  const { call, payload, status, runtime } = props;
  const title = t(`tools.title.${call.name}`, {
    defaultValue: t("tools.title.unknown", { name: call.name }),
  });
  const error = status === "running" ? null : shortProblem(t, payload);
  return (
    <>
      <ToolIcon name={call.name} />
      <span className="text-sm font-medium">{title}</span>
      {runtime && <RuntimeBadge runtime={runtime} />}
      <StatusBadge status={status} />
      <Time {...props} />
      {error && (
        <span className="min-w-36 flex-1 truncate text-left text-xs text-error">{error}</span>
      )}
    </>
  );
}

/** Whether it is open: as a person wants it, else always or while it runs as the last one. */
function useOpen(autoOpen: boolean, isRunning: boolean, shown: boolean) {
  const [wanted, setWanted] = useState<boolean>();
  const [hasRun, setHasRun] = useState(isRunning);
  useEffect(() => {
    if (isRunning) setHasRun(true);
  }, [isRunning]);
  const isOpen = wanted ?? (shown || (autoOpen && (isRunning || hasRun)));
  return { isOpen, isClosed: wanted === false, toggle: () => setWanted(!isOpen) };
}

/** A call of a tool and what became of it. */
export function ToolBlock(props: ToolBlockProps) {
  const { call, result, running, threadId, autoOpen = false, shown = false } = props;
  const id = useId();
  const payload = useMemo(() => (result ? parsePayload(result) : null), [result]);
  const status = statusOf(result, payload, running);
  const live = useLive(call.id);
  const { isOpen, isClosed, toggle } = useOpen(autoOpen, status === "running", shown);
  const known = useRuntime(call.args.session_id);
  const asked = call.name === "create_session" ? call.args.language : undefined;
  const runtime = payload?.runtime ?? known ?? (typeof asked === "string" ? asked : undefined);
  const text = result && !payload ? messageText(result) : null;
  useEffect(() => learnRuntimes(payload), [payload]);
  return (
    <section className="min-w-0 rounded-xl border border-line bg-raised">
      <button
        type="button"
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={toggle}
        className={cn(
          "flex w-full cursor-pointer flex-wrap items-center gap-2 rounded-xl px-3 py-2 text-left hover:bg-panel",
          focusRing,
        )}
      >
        <ChevronRight
          aria-hidden
          className={cn(
            "size-4 shrink-0 text-muted transition-transform motion-reduce:transition-none",
            isOpen && "rotate-90",
          )}
        />
        <Head call={call} payload={payload} status={status} runtime={runtime} />
      </button>
      <div id={id} className="flex min-w-0 flex-col gap-3 px-3 pb-3 empty:hidden">
        {isOpen && (
          <CallDetails {...{ name: call.name, args: call.args, payload, text, live, status }} />
        )}
        {!isClosed && <Displays items={displaysOf(payload, live)} threadId={threadId} />}
        {!isClosed && <Result payload={payload} threadId={threadId} />}
        {!isClosed && Array.isArray(payload?.files) && (
          <FileList files={payload.files} threadId={threadId} />
        )}
      </div>
    </section>
  );
}
