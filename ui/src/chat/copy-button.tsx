// SPDX-License-Identifier: MIT
import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { MessageButton } from "@/chat/message-button";
import { toast } from "@/components/toast";

const SHOWN_MS = 1_500;

/** Puts a text into the clipboard, and says so for a moment. */
export function CopyButton({ text }: { text: () => string }) {
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
    <MessageButton
      label={t(copied ? "chat.copied" : "chat.copy")}
      className="group-data-running/talk:visible"
      onClick={copy}
    >
      {copied ? <Check aria-hidden className="text-ok" /> : <Copy aria-hidden />}
    </MessageButton>
  );
}
