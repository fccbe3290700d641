// SPDX-License-Identifier: MIT
/** Sessions as calls tell of them. */
import { Box, ShieldAlert } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Badge } from "@/components/badge";
import { revealHidden } from "@/markdown/hidden";
import { formatDuration } from "@/tools/duration";
import type { SessionEntry } from "@/tools/payload";
import { causeText } from "@/tools/problem";
import { runtimeName } from "@/tools/runtimes";

/** A runtime by its name for people. */
export function RuntimeBadge({ runtime }: { runtime: string }) {
  const { t } = useTranslation();
  return <Badge tone="accent">{runtimeName(t, runtime)}</Badge>;
}

function Dependencies({ list }: { list: Record<string, string> }) {
  const { t } = useTranslation();
  const names = Object.entries(list);
  if (names.length === 0) return null;
  return (
    <p className="mt-1 text-xs break-words text-muted">
      {t("tools.session.dependencies")}:{" "}
      {revealHidden(
        names.map(([name, version]) => (version ? `${name} ${version}` : name)).join(", "),
      )}
    </p>
  );
}

/** A session on a card. */
export function SessionCard({ session }: { session: SessionEntry }) {
  const { t } = useTranslation();
  const { network, cause, idle_seconds: idle } = session;
  const notes = [
    network && `${t("tools.session.network")}: ${t(`tools.session.networks.${network}`, network)}`,
    idle !== undefined &&
      !session.busy &&
      t("tools.session.idle", { time: formatDuration(t, idle * 1000) }),
  ].filter(Boolean);
  return (
    <div className="rounded-lg border border-line px-3 py-2">
      <div className="flex flex-wrap items-center gap-2 text-sm">
        <Box aria-hidden className="size-4 text-muted" />
        <span className="font-mono text-xs" title={session.session_id}>
          {t("tools.session.id", { id: session.session_id.slice(0, 8) })}
        </span>
        <RuntimeBadge runtime={session.runtime} />
        <Badge tone={session.status === "dead" ? "error" : "neutral"}>
          {session.busy
            ? t("tools.session.busy")
            : t(`tools.session.${session.status}`, { defaultValue: session.status })}
        </Badge>
        <span className="text-xs text-muted">{notes.join(" · ")}</span>
      </div>
      {cause && (
        <p className="mt-1 text-xs text-error">
          {causeText(t, cause) ?? t("tools.cause.other", { cause })}
        </p>
      )}
      {session.dependencies && <Dependencies list={session.dependencies} />}
      {session.degraded && session.degraded.length > 0 && (
        <p className="mt-1 flex items-center gap-1 text-xs text-warn">
          <ShieldAlert aria-hidden className="size-4" />
          {t("tools.session.degraded", { list: session.degraded.join(", ") })}
        </p>
      )}
    </div>
  );
}

/** Sessions, one below the other. */
export function SessionList({ sessions }: { sessions: SessionEntry[] }) {
  const { t } = useTranslation();
  if (sessions.length === 0) return <p className="text-sm text-muted">{t("tools.sessionNone")}</p>;
  return (
    <ul className="flex flex-col gap-2">
      {sessions.slice(0, 100).map((session) => (
        <li key={session.session_id}>
          <SessionCard session={session} />
        </li>
      ))}
    </ul>
  );
}
