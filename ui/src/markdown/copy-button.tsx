// SPDX-License-Identifier: MIT
import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { IconButton } from "@/components/button";

/** Copies what `text` gives; says for a moment that it did. */
export function CopyButton({ text, label }: { text: () => string; label?: string }) {
  const { t } = useTranslation();
  const [state, setState] = useState<"ready" | "done" | "failed">("ready");
  useEffect(() => {
    if (state === "ready") return;
    const timer = setTimeout(() => setState("ready"), 2000);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = () =>
    navigator.clipboard
      ? navigator.clipboard.writeText(text()).then(
          () => setState("done"),
          () => setState("failed"),
        )
      : setState("failed");
  const words = {
    ready: label ?? t("tools.copy"),
    done: t("tools.copied"),
    failed: t("tools.copyFailed"),
  };
  return (
    <>
      <IconButton label={words[state]} size="sm" tooltip={state === "ready"} onClick={copy}>
        {state === "done" ? <Check aria-hidden className="text-ok" /> : <Copy aria-hidden />}
      </IconButton>
      <span role="status" className="sr-only">
        {state === "ready" ? "" : words[state]}
      </span>
    </>
  );
}
