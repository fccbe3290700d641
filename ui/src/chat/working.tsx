// SPDX-License-Identifier: MIT
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "@/components/cn";

const delays = ["", "[animation-delay:150ms]", "[animation-delay:300ms]"];

/** Something is under way of which there is nothing to see yet; with the time after a while. */
export function Working() {
  const { t } = useTranslation();
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds((s) => s + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return (
    <p className="flex items-center gap-2 text-sm text-muted">
      <span aria-hidden className="flex gap-1">
        {delays.map((delay) => (
          <span
            key={delay}
            className={cn(
              "size-1.5 animate-pulse rounded-full bg-accent motion-reduce:animate-none",
              delay,
            )}
          />
        ))}
      </span>
      {t("chat.working")}
      {seconds >= 3 && (
        <span aria-hidden className="tabular-nums">
          {t("tools.seconds", { seconds })}
        </span>
      )}
    </p>
  );
}
