// SPDX-License-Identifier: MIT
import type { ComponentProps } from "react";
import { cn } from "@/components/cn";

const tones = {
  neutral: "border-line text-muted",
  accent: "border-accent/50 text-accent",
  ok: "border-ok/50 text-ok",
  warn: "border-warn/50 text-warn",
  error: "border-error/50 text-error",
};

export type BadgeTone = keyof typeof tones;

/** A short state or kind beside a text. */
export function Badge({
  tone = "neutral",
  className,
  ...props
}: ComponentProps<"span"> & { tone?: BadgeTone }) {
  return (
    <span
      className={cn(
        "inline-flex items-center gap-1 rounded-full border px-2 py-0.5 text-xs font-medium",
        "whitespace-nowrap",
        tones[tone],
        className,
      )}
      {...props}
    />
  );
}
