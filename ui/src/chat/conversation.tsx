// SPDX-License-Identifier: MIT
import { ArrowDown } from "lucide-react";
import { lazy, Suspense } from "react";
import { useTranslation } from "react-i18next";
import type { Answer, Question } from "@/chat/interrupts";
import { RunError } from "@/chat/run-error";
import type { Chat } from "@/chat/use-chat";
import type { useScroll } from "@/chat/use-scroll";
import { Working } from "@/chat/working";
import { IconButton } from "@/components/button";
import { Spinner } from "@/components/spinner";
import { describeError } from "@/lib/errors";
import { FirstRun } from "@/settings/first-run";

const Transcript = lazy(() =>
  import("@/chat/transcript").then(({ Transcript }) => ({ default: Transcript })),
);
const Questions = lazy(() =>
  import("@/chat/questions").then(({ Questions }) => ({ default: Questions })),
);

export interface ConversationProps {
  chat: Chat;
  /** Changes with each conversation that is gone to. */
  visit: number;
  threadId: string | null;
  code: boolean;
  questions: readonly Question[];
  scroll: ReturnType<typeof useScroll>;
  /** The connection was lost, and is being waited for. */
  waiting: boolean;
  onSettings: () => void;
  onExample: (text: string) => void;
}

function Loading() {
  const { t } = useTranslation();
  return (
    <p className="flex justify-center p-10 text-muted">
      <Spinner label={t("chat.loading")} />
    </p>
  );
}

/** Whether there is nothing yet to be seen of what the run does now. */
function isSilent(chat: Chat): boolean {
  if (!chat.running) return false;
  const last = chat.messages.at(-1);
  if (last?.type !== "ai") return true;
  return !last.content?.length && !last.tool_calls?.length;
}

function ToEndButton({ shown, onClick }: { shown: boolean; onClick: () => void }) {
  const { t } = useTranslation();
  if (!shown) return null;
  return (
    <div className="pointer-events-none sticky bottom-2 z-10 flex justify-center">
      <IconButton
        label={t("chat.toEnd")}
        variant="secondary"
        className="pointer-events-auto rounded-full shadow-md"
        onClick={onClick}
      >
        <ArrowDown aria-hidden />
      </IconButton>
    </div>
  );
}

/** What was said, what is asked, and what went wrong; it scrolls. */
export function Conversation(props: ConversationProps) {
  const { chat, visit, threadId, code, questions, scroll, waiting, onSettings, onExample } = props;
  const { t } = useTranslation();
  const { messages, loading, running, error } = chat;
  const empty = messages.length === 0 && !loading && !running && !error;
  const onAnswer = (answers: Answer[]) => chat.answer(answers);
  return (
    <section
      ref={scroll.scroller}
      aria-label={t("chat.conversation")}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard
      tabIndex={0}
      className="relative min-h-0 flex-1 overflow-y-auto outline-none [scrollbar-gutter:stable_both-edges]"
    >
      <div
        ref={scroll.content}
        className="mx-auto flex min-h-full w-full max-w-3xl flex-col gap-5 px-3 pt-4 pb-6 sm:px-4"
      >
        {empty && (
          <div className="flex flex-1 flex-col justify-center">
            <FirstRun onExample={onExample} onSettings={onSettings} />
          </div>
        )}
        {loading && messages.length === 0 && <Loading />}
        <Suspense fallback={<Loading />}>
          {messages.length > 0 && (
            <Transcript
              key={visit}
              chat={chat}
              threadId={threadId}
              code={code}
              waiting={questions.length > 0}
              scroller={scroll.scroller}
            />
          )}
          {questions.length > 0 && (
            <Questions questions={questions} onAnswer={onAnswer} onContinue={() => chat.retry()} />
          )}
        </Suspense>
        {isSilent(chat) && <Working />}
        {Boolean(error) && !waiting && !running && (
          <RunError
            problem={describeError(error)}
            onRetry={() => void chat.retry()}
            onSettings={onSettings}
          />
        )}
      </div>
      <ToEndButton shown={!scroll.atEnd} onClick={scroll.toEnd} />
    </section>
  );
}
