// SPDX-License-Identifier: MIT
import { CircleStop, MessageSquare, OctagonPause, RefreshCw } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type Session, useSessionActions, useSessions } from "@/api/sessions";
import { Badge } from "@/components/badge";
import { Button, IconButton } from "@/components/button";
import { Confirm } from "@/components/dialog";
import { toast } from "@/components/toast";
import { openThread } from "@/lib/thread-url";
import { Loading, useReason } from "@/settings/tab-state";
import { timeAgo } from "@/settings/time";
import { runtimeName } from "@/tools/runtimes";

interface RowProps {
  session: Session;
  onInterrupt: () => void;
  onStop: () => void;
  onOpen: () => void;
}

function SessionRow({ session, onInterrupt, onStop, onOpen }: RowProps) {
  const { t, i18n } = useTranslation();
  const runtime = runtimeName(t, session.runtime);
  const name = `${runtime} ${session.session_id.slice(0, 8)}`;
  const ago = (time: string) => timeAgo(time, Date.now(), i18n.language);
  const times = [
    t("settings.sessions.started", { time: ago(session.created_at) }),
    t("settings.sessions.used", { time: ago(session.last_activity) }),
  ];
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-2 py-3">
      <div className="min-w-40 flex-1">
        <p className="flex flex-wrap items-center gap-2 text-sm font-medium">
          {runtime}
          <code className="text-xs font-normal text-muted">{session.session_id.slice(0, 8)}</code>
          <Badge tone={session.busy ? "accent" : "neutral"}>
            {session.busy
              ? t("settings.sessions.busy")
              : t(`tools.session.${session.status}`, session.status)}
          </Badge>
        </p>
        <p className="mt-0.5 text-xs text-muted">{times.join(" · ")}</p>
      </div>
      <div className="flex items-center gap-1">
        <IconButton label={t("settings.sessions.thread")} size="sm" onClick={onOpen}>
          <MessageSquare aria-hidden />
        </IconButton>
        <IconButton
          label={t("settings.sessions.interruptName", { name })}
          size="sm"
          disabled={!session.busy}
          onClick={onInterrupt}
        >
          <OctagonPause aria-hidden />
        </IconButton>
        <IconButton label={t("settings.sessions.stopName", { name })} size="sm" onClick={onStop}>
          <CircleStop aria-hidden className="text-error" />
        </IconButton>
      </div>
    </li>
  );
}

/** Live sandboxes: seen, interrupted and stopped. `onLeave` closes the settings. */
export function SessionsTab({ onLeave }: { onLeave: () => void }) {
  const { t } = useTranslation();
  const reason = useReason();
  // The times shown grow older with every answer, also with one that changes nothing else.
  const { data, error, refetch, isFetching, dataUpdatedAt } = useSessions();
  const { stop, interrupt } = useSessionActions();
  const [asked, setAsked] = useState<Session | null>(null);
  const told = (text: string) => ({
    onSuccess: () => toast(text, "ok"),
    onError: (failure: unknown) =>
      toast(t("settings.failed", { reason: reason(failure) }), "error"),
  });
  if (!data || error) return <Loading error={error} onRetry={() => void refetch()} />;
  return (
    <div>
      <div className="flex items-start gap-3">
        <p className="flex-1 text-sm text-muted">{t("settings.sessions.hint")}</p>
        <Button size="sm" busy={isFetching} onClick={() => void refetch()}>
          {!isFetching && <RefreshCw aria-hidden className="size-4" />}
          {t("settings.sessions.refresh")}
        </Button>
      </div>
      {data.length === 0 ? (
        <p className="py-8 text-center text-sm text-muted">{t("settings.sessions.empty")}</p>
      ) : (
        <ul className="mt-2 divide-y divide-line" data-updated={dataUpdatedAt}>
          {data.map((session) => (
            <SessionRow
              key={session.session_id}
              session={session}
              onInterrupt={() =>
                interrupt.mutate(session.session_id, told(t("settings.sessions.interrupted")))
              }
              onStop={() => setAsked(session)}
              onOpen={() => {
                openThread(session.thread_id);
                onLeave();
              }}
            />
          ))}
        </ul>
      )}
      <Confirm
        open={asked !== null}
        onOpenChange={(open) => !open && setAsked(null)}
        title={t("settings.sessions.stopTitle", {
          runtime: asked ? runtimeName(t, asked.runtime) : "",
        })}
        description={t("settings.sessions.stopText")}
        action={t("settings.sessions.stop")}
        onConfirm={() =>
          asked && stop.mutate(asked.session_id, told(t("settings.sessions.stopped")))
        }
      />
    </div>
  );
}
