// SPDX-License-Identifier: MIT
import { CirclePause } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Approval } from "@/chat/approval";
import { InputPrompt } from "@/chat/input-prompt";
import type { Answer, Question } from "@/chat/interrupts";
import { Button } from "@/components/button";

export interface QuestionsProps {
  questions: readonly Question[];
  onAnswer: (answers: Answer[]) => Promise<void>;
  /** Go on from a breakpoint. */
  onContinue: () => Promise<void>;
}

interface QuestionViewProps {
  question: Question;
  onAnswer: (answers: Answer[]) => void;
  onContinue: () => void;
}

function QuestionView({ question, onAnswer, onContinue }: QuestionViewProps) {
  const { t } = useTranslation();
  const answer = (value: unknown) => onAnswer([{ id: question.id, value }]);
  if (question.kind === "approval")
    return (
      <Approval
        requests={question.requests}
        allowed={question.allowed}
        onDecide={(decisions) => answer({ decisions })}
      />
    );
  if (question.kind === "input")
    return <InputPrompt prompt={question.prompt} password={question.password} onLine={answer} />;
  return (
    <div className="flex items-center gap-3 rounded-2xl border border-line p-4">
      <CirclePause aria-hidden className="size-5 text-warn" />
      <p className="flex-1">{t("chat.breakpoint.title")}</p>
      <Button variant="primary" onClick={onContinue}>
        {t("chat.breakpoint.continue")}
      </Button>
    </div>
  );
}

/**
 * What the run waits for. One answer goes on its way, and nothing else is answered until the run
 * has come to its end with it, or has refused it.
 */
export function Questions({ questions, onAnswer, onContinue }: QuestionsProps) {
  const [isSent, setIsSent] = useState(false);
  const once =
    <T extends unknown[]>(action: (...args: T) => Promise<void>) =>
    (...args: T) => {
      if (isSent) return;
      setIsSent(true);
      void action(...args).finally(() => setIsSent(false));
    };
  return questions.map((question, i) => (
    <div key={question.id || i} inert={isSent}>
      <QuestionView question={question} onAnswer={once(onAnswer)} onContinue={once(onContinue)} />
    </div>
  ));
}
