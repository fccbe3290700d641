// SPDX-License-Identifier: MIT
import { CirclePause } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Approval } from "@/chat/approval";
import { InputPrompt } from "@/chat/input-prompt";
import type { Answer, Question } from "@/chat/interrupts";
import { Button } from "@/components/button";

export interface QuestionsProps {
  questions: readonly Question[];
  onAnswer: (answers: Answer[]) => void;
  /** Go on from a breakpoint. */
  onContinue: () => void;
}

/** What the run waits for. */
export function Questions({ questions, onAnswer, onContinue }: QuestionsProps) {
  const { t } = useTranslation();
  return questions.map((question, i) => {
    const key = question.id || i;
    const answer = (value: unknown) => onAnswer([{ id: question.id, value }]);
    if (question.kind === "approval")
      return (
        <Approval
          key={key}
          requests={question.requests}
          allowed={question.allowed}
          onDecide={(decisions) => answer({ decisions })}
        />
      );
    if (question.kind === "input")
      return (
        <InputPrompt
          key={key}
          prompt={question.prompt}
          password={question.password}
          onLine={answer}
        />
      );
    return (
      <div key={key} className="flex items-center gap-3 rounded-2xl border border-line p-4">
        <CirclePause aria-hidden className="size-5 text-warn" />
        <p className="flex-1">{t("chat.breakpoint.title")}</p>
        <Button variant="primary" onClick={onContinue}>
          {t("chat.breakpoint.continue")}
        </Button>
      </div>
    );
  });
}
