// SPDX-License-Identifier: MIT
import type { HumanMessage, Message } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";
import { useCallback, useEffect, useMemo, useRef } from "react";
import { GRAPH } from "@/api/client";
import { titleOf } from "@/chat/content";
import { type ChatValues, forkPoint, isSaved } from "@/chat/history";
import { type Answer, resumeOf } from "@/chat/interrupts";
import { followedRun, followRun } from "@/chat/run-key";
import { cancelRuns } from "@/chat/runs";
import { useClient } from "@/chat/use-client";
import { useHistory } from "@/chat/use-history";
import { keepItems } from "@/lib/equal";
import { describeError } from "@/lib/errors";
import { adoptThread, useVisit } from "@/lib/thread-url";
import { appendLive, clearLive } from "@/tools/live-store";

/** How often at most a running answer is drawn anew. */
const DRAW_MS = 60;

/** Every run goes on without us, and can be joined again. */
const lasting = { streamResumable: true, onDisconnect: "continue" } as const;

/** A person's message as it is sent; the id is ours, so that it is known when it comes back. */
export function humanMessage(content: string): HumanMessage {
  return { id: crypto.randomUUID(), type: "human", content };
}

/** Messages that keep their identity while their content is the same. */
function useKeptMessages(messages: readonly Message[]): readonly Message[] {
  const kept = useRef<readonly Message[]>([]);
  const next = useMemo(() => keepItems(kept.current, messages), [messages]);
  useEffect(() => {
    kept.current = next;
  });
  return next;
}

/** The conversation: its messages, what runs in it, and what can be done. */
export function useChat(threadId: string | null) {
  const client = useClient();
  const history = useHistory(client, threadId);
  const thread = useRef(threadId);
  thread.current = threadId;
  const stopping = useRef(false);

  /** The SDK asks for this after a run, and after a stop, when the run has to end first. */
  const mutate = async (id?: string) => {
    const wanted = id ?? thread.current;
    if (!wanted) return [];
    if (!stopping.current) return history.reload(wanted);
    stopping.current = false;
    await cancelRuns(client, wanted);
    await history.reload(wanted);
    return [];
  };

  /** A run that is joined tells all again: what it has printed is shown until then. */
  const joining = useRef(false);
  const visit = useVisit();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the SDK joins a run when it is come to
  useEffect(() => {
    joining.current = true;
  }, [visit]);
  const startOver = () => {
    if (joining.current) clearLive(thread.current);
    joining.current = false;
  };

  const stream = useStream<ChatValues>({
    assistantId: GRAPH,
    client,
    threadId,
    onThreadId: (id) => {
      thread.current = id;
      adoptThread(id);
    },
    thread: {
      data: history.data,
      error: history.error,
      isLoading: history.loading,
      mutate,
    },
    fetchStateHistory: true,
    reconnectOnMount: true,
    throttle: DRAW_MS,
    onMetadataEvent: startOver,
    onCustomEvent: (event) => {
      startOver();
      appendLive(event, thread.current);
    },
    onError: (error, run) => {
      // What the run itself has ended with is not to be joined again.
      if (run?.thread_id && !describeError(error).offline) followRun(run.thread_id, null);
    },
  });
  const messages = useKeptMessages(stream.messages);
  const now = useRef({ stream, messages, known: history.known });
  now.current = { stream, messages, known: history.known };

  const send = useCallback((content: string) => {
    const message = humanMessage(content);
    const title = titleOf(content);
    return now.current.stream.submit(
      { messages: [message] },
      {
        ...lasting,
        metadata: thread.current ? undefined : { title },
        optimisticValues: (before) => ({ messages: [...(before.messages ?? []), message] }),
      },
    );
  }, []);

  /** Where a message was said first: the branch forks there. */
  const forkOf = useCallback((message: Message) => {
    const { stream: s, known } = now.current;
    const seen = s.getMessagesMetadata(message)?.firstSeenState;
    return message.id ? forkPoint(known, seen, message.id) : undefined;
  }, []);

  const upTo = useCallback((message: Message) => {
    const all = now.current.messages;
    return all.slice(
      0,
      Math.max(
        0,
        all.findIndex((m) => m.id === message.id),
      ),
    );
  }, []);

  const edit = useCallback(
    (old: Message, content: string) => {
      const message = humanMessage(content);
      const before = upTo(old);
      return now.current.stream.submit(
        { messages: [message] },
        {
          ...lasting,
          checkpoint: forkOf(old),
          optimisticValues: () => ({ messages: [...before, message] }),
        },
      );
    },
    [forkOf, upTo],
  );

  /** Let the model answer again, from before this answer on. */
  const regenerate = useCallback(
    (answer: Message) => {
      const before = upTo(answer);
      return now.current.stream.submit(undefined, {
        ...lasting,
        checkpoint: forkOf(answer),
        optimisticValues: () => ({ messages: [...before] }),
      });
    },
    [forkOf, upTo],
  );

  /** After an error: go on where the server stands, or say again what it has never got. */
  const retry = useCallback(() => {
    const { stream: s, messages: all, known } = now.current;
    const last = all.findLast((m) => m.type === "human");
    if (!last || isSaved(known, last.id)) return s.submit(undefined, lasting);
    return s.submit({ messages: [last] }, lasting);
  }, []);

  const answer = useCallback((answers: readonly Answer[]) => {
    const { stream: s } = now.current;
    return s.submit(undefined, {
      ...lasting,
      command: { resume: resumeOf(answers, s.interrupts.length) },
    });
  }, []);

  const stop = useCallback(async () => {
    stopping.current = true;
    await now.current.stream.stop();
    stopping.current = false;
  }, []);

  /** Follow a run that this tab has not begun, or has lost, from its first event on. */
  const join = useCallback((runId: string) => {
    const id = thread.current;
    if (!id) return;
    joining.current = true;
    followRun(id, runId);
    void now.current.stream.joinStream(runId);
  }, []);

  /** Leave the connection, but not the run, and take it up on a new one. */
  const restart = useCallback(async () => {
    const id = thread.current;
    const runId = id && followedRun(id);
    if (!id || !runId) return;
    // What is not followed is not cancelled by the SDK's stop.
    followRun(id, null);
    await now.current.stream.stop();
    join(runId);
  }, [join]);

  const rejoin = useCallback(() => {
    const runId = thread.current && followedRun(thread.current);
    if (runId) join(runId);
    return runId !== null && runId !== "";
  }, [join]);

  return {
    client,
    stream,
    messages,
    known: history.known,
    reload: history.reload,
    loading: stream.isThreadLoading,
    running: stream.isLoading,
    error: stream.error,
    send,
    edit,
    regenerate,
    retry,
    answer,
    stop,
    join,
    rejoin,
    restart,
    forkOf,
  };
}

export type Chat = ReturnType<typeof useChat>;
