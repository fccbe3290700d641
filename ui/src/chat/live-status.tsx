// SPDX-License-Identifier: MIT
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { messageText } from "@/chat/content";
import type { Question } from "@/chat/interrupts";
import type { Chat } from "@/chat/use-chat";

/** So much of an answer is read out by itself. */
const READ_OUT = 1_000;

export interface LiveStatusProps {
  chat: Chat;
  questions: readonly Question[];
}

/**
 * Tells screen readers what goes on: that an answer is being made, and the answer when it is
 * complete. A region that held the growing text itself would be read again with each word.
 */
export function LiveStatus({ chat, questions }: LiveStatusProps) {
  const { t } = useTranslation();
  const [said, setSaid] = useState("");
  const was = useRef(false);
  const { running, messages } = chat;
  useEffect(() => {
    if (running && !was.current) setSaid(t("chat.live.working"));
    if (!running && was.current) {
      const last = messages.findLast((m) => m.type === "ai");
      const text = last ? messageText(last).slice(0, READ_OUT) : "";
      setSaid(text ? t("chat.live.answer", { text }) : t("chat.live.done"));
    }
    was.current = running;
  }, [running, messages, t]);
  const question = !running && questions.length > 0;
  return (
    <p role="status" aria-live="polite" className="sr-only">
      {question ? t("chat.live.question") : said}
    </p>
  );
}
