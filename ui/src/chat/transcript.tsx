// SPDX-License-Identifier: MIT
import type { Message } from "@langchain/langgraph-sdk";
import { type RefObject, useCallback, useEffect, useMemo, useRef } from "react";
import { Answer } from "@/chat/answer";
import { type Entry, entriesOf, keepEntries } from "@/chat/entries";
import { HumanMessage } from "@/chat/human-message";
import type { Chat } from "@/chat/use-chat";
import { useWindow } from "@/chat/use-window";

export interface TranscriptProps {
  chat: Chat;
  threadId: string | null;
  code: boolean;
  /** The run waits for an answer: the last entry is not complete. */
  waiting: boolean;
  scroller: RefObject<HTMLElement | null>;
}

/** Entries that keep their identity while they do not change. */
function useEntries(messages: readonly Message[]): readonly Entry[] {
  const kept = useRef<readonly Entry[]>([]);
  const next = useMemo(() => keepEntries(kept.current, entriesOf(messages)), [messages]);
  useEffect(() => {
    kept.current = next;
  });
  return next;
}

/** What can be done at an entry: at its first message, and where a choice is, there. */
function marksOfEntry(chat: Chat, entry: Entry) {
  const messages = entry.kind === "human" ? [entry.message] : entry.steps.map((s) => s.message);
  const marks = messages.map((message) => chat.marks.get(message.id ?? ""));
  const choice = marks.find((mark) => mark && mark.options.length > 1);
  return {
    forkable: marks[0]?.fork !== undefined,
    branch: choice?.branch ?? "",
    options: choice?.options ?? none,
  };
}

const none: readonly string[] = [];

/** The messages of a conversation, newest last. */
export function Transcript(props: TranscriptProps) {
  const { chat, threadId, code, waiting, scroller } = props;
  const entries = useEntries(chat.messages);
  const { start, sentinel } = useWindow(entries.length, scroller);
  const { running, setBranch, edit, regenerate } = chat;
  const onBranch = useCallback((branch: string) => void setBranch(branch), [setBranch]);
  const onEdit = useCallback(
    (message: Message, content: string) => void edit(message, content),
    [edit],
  );
  const onRegenerate = useCallback((message: Message) => void regenerate(message), [regenerate]);

  const view = (entry: Entry, last: boolean) => {
    const { forkable, branch, options } = marksOfEntry(chat, entry);
    const common = { branch, options, onBranch };
    if (entry.kind === "human")
      return (
        <HumanMessage
          message={entry.message}
          editable={forkable}
          code={code}
          onEdit={onEdit}
          {...common}
        />
      );
    return (
      <Answer
        steps={entry.steps}
        running={running && last}
        waiting={waiting && last}
        last={last}
        repeatable={forkable}
        threadId={threadId}
        onRegenerate={onRegenerate}
        {...common}
      />
    );
  };

  return (
    // What can be done with a message is put away by CSS while something runs, not by drawing all
    // anew.
    <div data-running={running || undefined} className="group/talk flex flex-col gap-5">
      {start > 0 && <div key={start} ref={sentinel} aria-hidden className="h-px" />}
      {entries.slice(start).map((entry, i, shown) => {
        const last = i === shown.length - 1;
        return (
          <article
            key={entry.id}
            className={
              last ? undefined : "[contain-intrinsic-size:auto_8rem] [content-visibility:auto]"
            }
          >
            {view(entry, last)}
          </article>
        );
      })}
    </div>
  );
}
