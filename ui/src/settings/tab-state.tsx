// SPDX-License-Identifier: MIT
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { ApiError } from "@/api/client";
import { Button } from "@/components/button";
import { cn } from "@/components/cn";
import { Spinner } from "@/components/spinner";

/** What went wrong with a request, for people. */
export function useReason() {
  const { t } = useTranslation();
  return (error: unknown): string => {
    if (error instanceof ApiError && error.status === 0) return t("settings.unreachable");
    return error instanceof Error ? error.message : String(error);
  };
}

/** A text that stands out and is read out: something is wrong, or has worked. */
export function Notice({ tone, children }: { tone: "ok" | "warn" | "error"; children: ReactNode }) {
  const tones = { ok: "border-ok/60", warn: "border-warn/60", error: "border-error/60" };
  return (
    <div
      role={tone === "error" ? "alert" : "status"}
      className={cn(
        "rounded-lg border border-l-4 bg-panel px-3 py-2 text-sm break-words",
        tones[tone],
      )}
    >
      {children}
    </div>
  );
}

export interface LoadingProps {
  error: unknown;
  onRetry: () => void;
}

/** In place of what is not there yet, or could not be had. */
export function Loading({ error, onRetry }: LoadingProps) {
  const { t } = useTranslation();
  const reason = useReason();
  if (!error)
    return (
      <div className="flex justify-center py-10">
        <Spinner label={t("settings.loading")} />
      </div>
    );
  return (
    <div className="flex flex-col items-start gap-3">
      <Notice tone="error">{reason(error)}</Notice>
      <Button onClick={onRetry}>{t("settings.retry")}</Button>
    </div>
  );
}
