// SPDX-License-Identifier: MIT
import type { Message, ToolMessage } from "@langchain/langgraph-sdk";
import { RefreshCw } from "lucide-react";
import { memo } from "react";
import { useTranslation } from "react-i18next";
import { BranchSwitcher } from "@/chat/branch-switcher";
import { messageParts, messageText } from "@/chat/content";
import type { Step } from "@/chat/entries";
import { MessageButton, MessageCopy } from "@/chat/message-button";
import { Reasoning } from "@/chat/reasoning";
import { sameItems } from "@/lib/equal";
import { Markdown } from "@/markdown/markdown";
import { ToolBlock } from "@/tools/tool-block";

/** What the model says. */
function AnswerText({ text, active }: { text: string; active: boolean }) {
  return <Markdown text={text} streaming={active} />;
}

interface StepViewProps {
  message: Step["message"];
  /** Its words repeat what tool blocks show: nobody has to read them twice. */
  told: boolean;
  results: readonly (ToolMessage | undefined)[];
  /** More of it may come. */
  running: boolean;
  /** It is the last one of the conversation. */
  last: boolean;
  threadId: string | null;
}

/** One message of the model: thoughts, words, and calls of tools. */
const StepView = memo(
  function StepView({ message, told, results, running, last, threadId }: StepViewProps) {
    const parts = told ? [] : messageParts(message);
    const calls = message.tool_calls ?? [];
    return (
      <>
        {parts.map((part, i) => {
          const active = running && calls.length === 0 && i === parts.length - 1;
          const View = part.kind === "reasoning" ? Reasoning : AnswerText;
          // biome-ignore lint/suspicious/noArrayIndexKey: parts only ever grow at the end
          return <View key={i} text={part.text} active={active} />;
        })}
        {calls.map((call, i) => (
          <ToolBlock
            key={call.id ?? i}
            call={call}
            result={results[i]}
            running={running}
            threadId={threadId}
            autoOpen={last && i === calls.length - 1}
            shown={isDirect(message) && call.name.startsWith("execute_")}
          />
        ))}
      </>
    );
  },
  (a, b) =>
    a.message === b.message &&
    a.told === b.told &&
    a.running === b.running &&
    a.last === b.last &&
    a.threadId === b.threadId &&
    sameItems(a.results, b.results),
);

/** Whether no model has said it: direct mode adds no words of its own to what blocks show. */
function isDirect(message: Step["message"]): boolean {
  const metadata = message.response_metadata as { model_provider?: string } | undefined;
  return metadata?.model_provider === "direct";
}

/** Whether a step only repeats in words what the tool blocks before it show. */
function isTold(steps: readonly Step[], i: number): boolean {
  const before = steps[i - 1];
  if (!before || steps[i]?.message.tool_calls?.length) return false;
  return isDirect(before.message) && before.results.some(Boolean);
}

export interface AnswerProps {
  steps: readonly Step[];
  /** The run that writes it goes on. */
  running: boolean;
  /** The run has stopped in it, with a question. */
  waiting: boolean;
  /** It is the last entry of the conversation. */
  last: boolean;
  repeatable: boolean;
  threadId: string | null;
  branch: string;
  options: readonly string[];
  onBranch: (branch: string) => void;
  onRegenerate: (message: Message) => void;
}

/** All that came of what a person said. */
export const Answer = memo(function Answer(props: AnswerProps) {
  const { steps, running, waiting, last, repeatable, threadId, branch, options } = props;
  const { t } = useTranslation();
  const first = steps[0]?.message;
  const text = () =>
    steps
      .map(({ message }) => messageText(message))
      .filter(Boolean)
      .join("\n\n");
  return (
    <div className="group flex min-w-0 flex-col gap-3">
      <h2 className="sr-only">{t("chat.agent")}</h2>
      {steps.map(({ message, results }, i) => (
        <StepView
          key={message.id ?? i}
          message={message}
          told={isTold(steps, i)}
          results={results}
          running={running && i === steps.length - 1}
          last={last && i === steps.length - 1}
          threadId={threadId}
        />
      ))}
      {!running && !waiting && (
        <div className="-ml-2 flex min-h-8 items-center text-muted">
          <MessageCopy text={text} />
          {repeatable && first && (
            <MessageButton label={t("chat.regenerate")} onClick={() => props.onRegenerate(first)}>
              <RefreshCw aria-hidden />
            </MessageButton>
          )}
          <BranchSwitcher branch={branch} options={options} onBranch={props.onBranch} />
        </div>
      )}
    </div>
  );
});
