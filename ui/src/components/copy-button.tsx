// SPDX-License-Identifier: MIT
import { Check, Copy } from "lucide-react";
import { type ComponentType, useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { IconButton, type IconButtonProps } from "@/components/button";
import { toast } from "@/components/toast";

const SHOWN_MS = 1_500;

export interface CopyButtonProps {
  text: () => string;
  /** What it copies, where that is not plain to see. */
  label?: string;
  /** Another look. */
  look?: ComponentType<IconButtonProps>;
  className?: string;
}

/** Puts a text into the clipboard, and says so for a moment. */
export function CopyButton({ text, label, look: Look = IconButton, className }: CopyButtonProps) {
  const { t } = useTranslation();
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  const failed = () => toast(t("chat.copyFailed"), "error");
  // It is missing on plain http, but for this host.
  const copy = () =>
    navigator.clipboard
      ? navigator.clipboard.writeText(text()).then(() => setCopied(true), failed)
      : failed();
  return (
    <>
      <Look
        label={copied ? t("chat.copied") : (label ?? t("chat.copy"))}
        size="sm"
        className={className}
        onClick={copy}
      >
        {copied ? <Check aria-hidden className="text-ok" /> : <Copy aria-hidden />}
      </Look>
      <span role="status" className="sr-only">
        {copied && t("chat.copied")}
      </span>
    </>
  );
}
