// SPDX-License-Identifier: MIT
import type { Message } from "@langchain/langgraph-sdk";
import { type RefObject, useEffect, useMemo, useRef } from "react";
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

/** The branches of an entry: those of the first of its messages that has some. */
function branchOf(chat: Chat, entry: Entry) {
  const messages = entry.kind === "human" ? [entry.message] : entry.steps.map((s) => s.message);
  for (const message of messages) {
    const meta = chat.stream.getMessagesMetadata(message);
    if (meta?.branch && meta.branchOptions && meta.branchOptions.length > 1)
      return { branch: meta.branch, options: meta.branchOptions };
  }
  return null;
}

const none: readonly string[] = [];

/** Lists of branches are made anew each time; equal ones are to be the same. */
function useSameLists() {
  const lists = useRef(new Map<string, readonly string[]>());
  return (list: readonly string[]) => {
    const name = list.join("\n");
    const known = lists.current.get(name);
    if (known) return known;
    lists.current.set(name, list);
    return list;
  };
}

/** The messages of a conversation, newest last. */
export function Transcript(props: TranscriptProps) {
  const { chat, threadId, code, waiting, scroller } = props;
  const entries = useEntries(chat.messages);
  const { start, sentinel } = useWindow(entries.length, scroller);
  const same = useSameLists();
  const { running, stream, edit, regenerate, forkOf } = chat;
  const setBranch = useRef(stream.setBranch).current;
  const onEdit = useRef((message: Message, content: string) => void edit(message, content)).current;
  const onRegenerate = useRef((message: Message) => void regenerate(message)).current;

  const view = (entry: Entry, last: boolean) => {
    const branches = branchOf(chat, entry);
    const common = {
      branch: branches?.branch ?? "",
      options: branches ? same(branches.options) : none,
      busy: running,
      onBranch: setBranch,
    };
    if (entry.kind === "human")
      return (
        <HumanMessage
          message={entry.message}
          editable={forkOf(entry.message) !== undefined}
          code={code}
          onEdit={onEdit}
          {...common}
        />
      );
    const first = entry.steps[0]?.message;
    return (
      <Answer
        steps={entry.steps}
        running={running && last}
        waiting={waiting && last}
        last={last}
        repeatable={first !== undefined && forkOf(first) !== undefined}
        threadId={threadId}
        onRegenerate={onRegenerate}
        {...common}
      />
    );
  };

  return (
    <>
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
    </>
  );
}
