// SPDX-License-Identifier: MIT
import { useTranslation } from "react-i18next";
import { ApiError } from "@/api/client";
import { useChangeSettings, useSettings } from "@/api/settings";
import { Button } from "@/components/button";
import { cn, focusRing } from "@/components/cn";
import { codeExamples, wordExamples } from "@/settings/examples";
import { Notice, useReason } from "@/settings/tab-state";

export interface FirstRunProps {
  /** Puts an example into the composer. */
  onExample: (text: string) => void;
  /** Opens the settings at the model. */
  onSettings: () => void;
}

interface ExampleProps {
  title: string;
  text: string;
  mono?: boolean;
  onExample: (text: string) => void;
}

function Example({ title, text, mono = false, onExample }: ExampleProps) {
  const shown = text.replace(/^```\w+\n|\n```$/g, "");
  return (
    <button
      type="button"
      onClick={() => onExample(text)}
      className={cn(
        "flex min-w-0 cursor-pointer flex-col gap-1.5 rounded-xl border border-line bg-raised p-3",
        "text-left hover:border-accent",
        focusRing,
      )}
    >
      <span className="text-sm font-medium">{title}</span>
      <span
        className={cn(
          "line-clamp-4 w-full text-xs break-words text-muted",
          mono && "font-mono whitespace-pre-wrap",
        )}
      >
        {shown}
      </span>
    </button>
  );
}

/** Things to try: code in direct mode, else what may be asked. */
export function Examples({
  direct,
  onExample,
}: {
  direct: boolean;
  onExample: FirstRunProps["onExample"];
}) {
  const { t } = useTranslation();
  return (
    <div className="grid gap-2 sm:grid-cols-3">
      {direct
        ? Object.entries(codeExamples).map(([name, text]) => (
            <Example
              key={name}
              mono
              title={t(`settings.firstRun.examples.${name}`)}
              text={text}
              onExample={onExample}
            />
          ))
        : wordExamples.map((name) => (
            <Example
              key={name}
              title={t(`settings.firstRun.examples.${name}`)}
              text={t(`settings.firstRun.examples.${name}Text`)}
              onExample={onExample}
            />
          ))}
    </div>
  );
}

/** No model can be asked: what that means, and the two ways on. */
function NotReady({ reason: said, onSettings }: { reason: string; onSettings: () => void }) {
  const { t } = useTranslation();
  const reason = useReason();
  const change = useChangeSettings();
  return (
    <div className="flex flex-col gap-4">
      <div>
        <h2 className="text-xl font-semibold">{t("settings.firstRun.title")}</h2>
        <p className="mt-2 text-sm text-muted">
          {t("settings.firstRun.withModel")} {t("settings.firstRun.withoutModel")}
        </p>
      </div>
      <div className="flex flex-wrap gap-2">
        <Button
          variant="primary"
          busy={change.isPending}
          onClick={() => change.mutate({ chatModelProvider: "direct" })}
        >
          {t("settings.firstRun.direct")}
        </Button>
        <Button onClick={onSettings}>{t("settings.firstRun.connect")}</Button>
      </div>
      {change.isError && (
        <Notice tone="error">{t("settings.failed", { reason: reason(change.error) })}</Notice>
      )}
      <p className="text-xs text-muted">{t("settings.firstRun.reason", { reason: said })}</p>
    </div>
  );
}

/** The settings could not be had: a refused key and a dead server are told elsewhere. */
function Failed({ error, onSettings }: { error: unknown; onSettings: () => void }) {
  const { t } = useTranslation();
  if (!(error instanceof ApiError) || error.status === 0 || error.status === 401) return null;
  return (
    <section className="mx-auto flex w-full max-w-2xl flex-col items-start gap-3">
      <Notice tone="error">{t("settings.failed", { reason: error.message })}</Notice>
      <Button onClick={onSettings}>{t("settings.title")}</Button>
    </section>
  );
}

/** What an empty chat shows: how to begin. */
export function FirstRun({ onExample, onSettings }: FirstRunProps) {
  const { t } = useTranslation();
  const { data, error } = useSettings();
  if (!data) return <Failed error={error} onSettings={onSettings} />;
  if (!data.ready)
    return (
      <section className="mx-auto w-full max-w-2xl">
        <NotReady reason={data.reason} onSettings={onSettings} />
      </section>
    );
  const direct = data.chatModelProvider === "direct";
  return (
    <section className="mx-auto flex w-full max-w-2xl flex-col gap-4">
      <div>
        <h2 className="text-xl font-semibold">
          {t(direct ? "settings.firstRun.welcomeDirect" : "settings.firstRun.welcome")}
        </h2>
        <p className="mt-1 text-sm text-muted">
          {t(direct ? "settings.firstRun.welcomeDirectText" : "settings.firstRun.welcomeText")}
        </p>
      </div>
      <Examples direct={direct} onExample={onExample} />
    </section>
  );
}
