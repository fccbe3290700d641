// SPDX-License-Identifier: MIT
import { useQueryClient } from "@tanstack/react-query";
import { type Ref, useCallback, useEffect, useImperativeHandle, useRef } from "react";
import { requestJson } from "@/api/client";
import { useSettings } from "@/api/settings";
import { Composer, type ComposerHandle } from "@/chat/composer";
import { titleOf } from "@/chat/content";
import { Conversation } from "@/chat/conversation";
import { DropZone } from "@/chat/drop-zone";
import { questionsOf } from "@/chat/interrupts";
import { LiveStatus } from "@/chat/live-status";
import { QueueList } from "@/chat/queue-list";
import { useChat } from "@/chat/use-chat";
import { useFollow } from "@/chat/use-follow";
import { useQueue } from "@/chat/use-queue";
import { useRejoin } from "@/chat/use-rejoin";
import { useScroll } from "@/chat/use-scroll";
import { useUploads } from "@/chat/use-uploads";
import { describeError } from "@/lib/errors";
import { adoptThread, useVisit } from "@/lib/thread-url";
import { patchTitle, refreshThreads } from "@/threads/threads";

export interface ChatViewProps {
  ref?: Ref<ComposerHandle>;
  threadId: string | null;
  onSettings: () => void;
  /** Told when a run begins and ends. */
  onRunning: (running: boolean) => void;
}

/** Makes the conversation that files are sent to before anything is said in it. */
function useEnsureThread(threadId: string | null, visit: number) {
  const made = useRef<Promise<string> | null>(null);
  const id = useRef(threadId);
  const at = useRef(visit);
  if (id.current !== threadId || at.current !== visit) {
    id.current = threadId;
    at.current = visit;
    made.current = null;
  }
  return useCallback((title: string) => {
    if (id.current) return Promise.resolve(id.current);
    const asked = at.current;
    made.current ??= requestJson<{ thread_id: string }>("/threads", {
      method: "POST",
      json: { metadata: { title } },
    }).then(
      (thread) => {
        if (at.current === asked) adoptThread(thread.thread_id);
        return thread.thread_id;
      },
      (error) => {
        if (at.current === asked) made.current = null;
        throw error;
      },
    );
    return made.current;
  }, []);
}

/** A conversation and where it goes on. */
export function ChatView({ ref, threadId, onSettings, onRunning }: ChatViewProps) {
  const client = useQueryClient();
  const chat = useChat(threadId);
  const visit = useVisit();
  const scroll = useScroll();
  const composer = useRef<ComposerHandle>(null);
  const code = useSettings().data?.chatModelProvider === "direct";
  const uploads = useUploads(visit, useEnsureThread(threadId, visit));
  useFollow(threadId, chat);
  const { state } = useRejoin(threadId, chat);
  const { running, loading, messages, error } = chat;
  const questions = running || error ? [] : questionsOf(chat.stream.interrupts);

  useImperativeHandle(ref, () => ({
    focus: () => composer.current?.focus(),
    setText: (text) => composer.current?.setText(text),
  }));

  const begun = messages.length > 0;
  const { send } = chat;
  const { toEnd } = scroll;
  const say = useCallback(
    (content: string) => {
      // While it is loading nobody knows whether it has begun: then it keeps its title.
      if (threadId && !begun && !loading)
        void patchTitle(threadId, titleOf(content)).catch(() => undefined);
      void send(content);
      toEnd();
    },
    [begun, loading, send, threadId, toEnd],
  );
  const free = !running && !error && !loading && questions.length === 0 && state !== "dead";
  const { queue, add, remove, hold, sendNow } = useQueue({
    threadId,
    visit,
    free: free && begun,
    send: say,
  });

  useEffect(() => {
    onRunning(running);
    refreshThreads(client);
  }, [running, onRunning, client]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a visit begins at the end of the text
  useEffect(() => {
    toEnd();
    composer.current?.focus();
  }, [visit, toEnd]);

  const offline = error ? describeError(error).offline : false;
  return (
    <DropZone onFiles={uploads.add}>
      <Conversation
        visit={visit}
        chat={chat}
        threadId={threadId}
        code={code}
        questions={questions}
        scroll={scroll}
        waiting={offline && state === "dead"}
        onSettings={onSettings}
        onExample={(text) => composer.current?.setText(text)}
      />
      <div className="mx-auto w-full max-w-3xl px-3 pb-3 sm:px-4 sm:pb-4">
        <QueueList queue={queue} idle={!running} onSend={sendNow} onRemove={remove} />
        <Composer
          ref={composer}
          key={`composer-${visit}`}
          threadId={threadId}
          uploads={uploads}
          running={running}
          disabled={state === "dead"}
          code={code}
          onSend={running ? add : say}
          onStop={() => {
            hold();
            void chat.stop();
          }}
        />
      </div>
      <LiveStatus chat={chat} questions={questions} />
    </DropZone>
  );
}
