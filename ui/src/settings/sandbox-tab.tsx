// SPDX-License-Identifier: MIT
import { useTranslation } from "react-i18next";
import { type SettingsChange, useChangeSettings, useSettings } from "@/api/settings";
import { SwitchRow } from "@/settings/switch-row";
import { Loading, Notice, useReason } from "@/settings/tab-state";

/** What sandboxes may do, and what of theirs a model sees. Each switch counts at once. */
export function SandboxTab() {
  const { t } = useTranslation();
  const reason = useReason();
  const { data, error, refetch } = useSettings();
  const change = useChangeSettings();
  if (!data) return <Loading error={error} onRetry={() => void refetch()} />;
  // What was switched is shown at once, not when the server has answered.
  const wanted: SettingsChange = change.isPending ? change.variables : {};
  return (
    <div className="flex flex-col gap-5">
      <p className="text-sm text-muted">{t("settings.sandbox.isolation")}</p>
      <SwitchRow
        label={t("settings.sandbox.network")}
        hint={t(
          data.networkAllowed ? "settings.sandbox.networkHint" : "settings.sandbox.networkRefused",
        )}
        disabled={!data.networkAllowed}
        checked={wanted.networkEnabled ?? data.networkEnabled}
        onCheckedChange={(networkEnabled) => change.mutate({ networkEnabled })}
      />
      <SwitchRow
        label={t("settings.sandbox.images")}
        hint={t("settings.sandbox.imagesHint")}
        checked={wanted.imagesToModel ?? data.imagesToModel}
        onCheckedChange={(imagesToModel) => change.mutate({ imagesToModel })}
      />
      {change.isError && (
        <Notice tone="error">{t("settings.failed", { reason: reason(change.error) })}</Notice>
      )}
    </div>
  );
}
