// SPDX-License-Identifier: MIT
import { ExternalLink, RefreshCw } from "lucide-react";
import { type ReactNode, useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";
import { getKey, onKey, setKey } from "@/api/client";
import { type HealthState, useHealth } from "@/api/health";
import { Badge, type BadgeTone } from "@/components/badge";
import { Button } from "@/components/button";
import { cn, focusRing } from "@/components/cn";

const tones: Record<HealthState, BadgeTone> = {
  unknown: "neutral",
  ok: "ok",
  sick: "warn",
  dead: "error",
};

/** What the server's parts are called; a name that is not known is shown as it is. */
const stores: Record<string, string> = { sqlite: "SQLite", postgres: "PostgreSQL" };

function Row({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="flex flex-wrap items-center justify-between gap-2 py-2.5 text-sm">
      <dt className="text-muted">{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** The key of this tab, where one was typed. */
function TabKey() {
  const { t } = useTranslation();
  const key = useSyncExternalStore(onKey, getKey);
  if (!key) return null;
  return (
    <div className="flex flex-wrap items-center justify-between gap-3 rounded-lg bg-panel p-3">
      <p className="min-w-48 flex-1 text-sm">{t("settings.about.keyText")}</p>
      <Button size="sm" onClick={() => setKey(null)}>
        {t("settings.about.forget")}
      </Button>
    </div>
  );
}

/** The keys that work everywhere, by the text that says what they do. */
const shortcuts = [
  ["chat.threads.new", "Ctrl/⌘ + Shift + O"],
  ["chat.threads.show", "Ctrl/⌘ + Shift + S"],
  ["chat.settings", "Ctrl/⌘ + ,"],
  ["chat.skip", "/"],
] as const;

function Shortcuts() {
  const { t } = useTranslation();
  return (
    <section aria-label={t("settings.about.shortcuts")}>
      <h3 className="text-sm font-medium">{t("settings.about.shortcuts")}</h3>
      <dl className="divide-y divide-line">
        {shortcuts.map(([text, keys]) => (
          <Row key={text} name={t(text)}>
            <kbd className="font-mono text-xs">{keys}</kbd>
          </Row>
        ))}
      </dl>
    </section>
  );
}

/** What the server is, and whether it works. */
export function AboutTab() {
  const { t } = useTranslation();
  const { state, health, retry, checking } = useHealth();
  const databases: Record<string, string> = {
    connected: t("settings.about.databases.connected"),
    unavailable: t("settings.about.databases.unavailable"),
  };
  return (
    <div className="flex flex-col gap-4">
      <dl className="divide-y divide-line">
        <Row name={t("settings.about.health")}>
          <Badge role="status" tone={tones[state]}>
            {t(`settings.about.states.${state}`)}
          </Badge>
        </Row>
        {health && state !== "dead" && (
          <>
            <Row name={t("settings.about.version")}>{health.version}</Row>
            <Row name={t("settings.about.store")}>{stores[health.store] ?? health.store}</Row>
            <Row name={t("settings.about.database")}>
              {databases[health.database] ?? health.database}
            </Row>
            <Row name={t("settings.about.engine")}>{health.engine}</Row>
          </>
        )}
      </dl>
      <div className="flex flex-wrap items-center gap-3">
        <Button size="sm" busy={checking} onClick={() => void retry()}>
          {!checking && <RefreshCw aria-hidden className="size-4" />}
          {t("settings.sessions.refresh")}
        </Button>
        <a
          href="/docs"
          target="_blank"
          rel="noreferrer"
          className={cn(
            "inline-flex items-center gap-1.5 rounded text-sm text-accent pointer-coarse:min-h-10",
            focusRing,
          )}
        >
          {t("settings.about.api")}
          <ExternalLink aria-hidden className="size-4" />
        </a>
      </div>
      <TabKey />
      <Shortcuts />
    </div>
  );
}
