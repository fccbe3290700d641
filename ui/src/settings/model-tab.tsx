// SPDX-License-Identifier: MIT
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { ApiError } from "@/api/client";
import { type Settings, useChangeSettings, useSettings } from "@/api/settings";
import { Button } from "@/components/button";
import { Confirm } from "@/components/dialog";
import { ModelFields } from "@/settings/model-fields";
import { changesOf, checkForm, formOf } from "@/settings/model-form";
import { Loading, Notice, useReason } from "@/settings/tab-state";

/** Forgets all that is stored, after a question. */
function Reset({ variant }: { variant: "ghost" | "secondary" }) {
  const { t } = useTranslation();
  const [asking, setAsking] = useState(false);
  const change = useChangeSettings();
  const reason = useReason();
  return (
    <>
      <Button variant={variant} busy={change.isPending} onClick={() => setAsking(true)}>
        {t("settings.model.reset")}
      </Button>
      {change.isError && (
        <Notice tone="error">{t("settings.failed", { reason: reason(change.error) })}</Notice>
      )}
      <Confirm
        open={asking}
        onOpenChange={setAsking}
        title={t("settings.model.resetTitle")}
        description={t("settings.model.resetText")}
        action={t("settings.model.reset")}
        onConfirm={() => change.mutate({ reset: true })}
      />
    </>
  );
}

/** Whether a run would have a model, as the server sees it. */
function Readiness({ settings }: { settings: Settings }) {
  const { t } = useTranslation();
  if (!settings.ready)
    return <Notice tone="warn">{t("settings.model.notReady", { reason: settings.reason })}</Notice>;
  if (settings.chatModelProvider === "direct")
    return <Notice tone="ok">{t("settings.model.readyDirect")}</Notice>;
  return <Notice tone="ok">{t("settings.model.ready", { model: settings.chatModel })}</Notice>;
}

function ModelSettings({ settings }: { settings: Settings }) {
  const { t } = useTranslation();
  const reason = useReason();
  const [form, setForm] = useState(() => formOf(settings));
  const [checked, setChecked] = useState(false);
  const change = useChangeSettings();
  const errors = checked ? checkForm(form) : {};
  const save = () => {
    setChecked(true);
    if (Object.keys(checkForm(form)).length > 0) return;
    change.mutate(changesOf(form, settings), { onSuccess: (kept) => setForm(formOf(kept)) });
  };
  return (
    <form
      className="flex flex-col gap-4"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <Readiness settings={settings} />
      <ModelFields
        form={form}
        settings={settings}
        errors={errors}
        onForm={(to) => {
          change.reset();
          setForm(to);
        }}
      />
      {change.isError && (
        <Notice tone="error">{t("settings.failed", { reason: reason(change.error) })}</Notice>
      )}
      <div className="flex flex-wrap items-center gap-3">
        <Button type="submit" variant="primary" busy={change.isPending}>
          {t("settings.model.save")}
        </Button>
        <span role="status" className="text-sm text-ok">
          {change.isSuccess && t("settings.model.saved")}
        </span>
        <span className="flex-1" />
        <Reset variant="ghost" />
      </div>
    </form>
  );
}

/** Settings that cannot be opened: not the same as none. */
function Sealed({ reason }: { reason: string }) {
  const { t } = useTranslation();
  return (
    <div className="flex flex-col items-start gap-3">
      <Notice tone="error">
        <p className="font-medium">{t("settings.model.sealed")}</p>
        <p className="mt-1">{t("settings.model.sealedText")}</p>
        <p className="mt-1 text-xs text-muted">{reason}</p>
      </Notice>
      <Reset variant="secondary" />
    </div>
  );
}

/** Which model the agent thinks with. */
export function ModelTab() {
  const { data, error, refetch } = useSettings();
  const sealed = error instanceof ApiError && error.message.includes("ENCRYPTION_KEY");
  if (sealed) return <Sealed reason={error.message} />;
  if (!data) return <Loading error={error} onRetry={() => void refetch()} />;
  return <ModelSettings settings={data} />;
}
