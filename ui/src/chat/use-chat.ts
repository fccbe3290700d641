// SPDX-License-Identifier: MIT
import type { HumanMessage, Message } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { GRAPH } from "@/api/client";
import { messageText, titleOf } from "@/chat/content";
import { sayFirst } from "@/chat/first-message";
import { type ChatValues, headOf, isSaved, marksOf, newestBranch, statesOf } from "@/chat/history";
import { type Answer, resumeOf } from "@/chat/interrupts";
import { followedRun, followRun } from "@/chat/run-key";
import { cancelRuns } from "@/chat/runs";
import { useClient } from "@/chat/use-client";
import { useHistory } from "@/chat/use-history";
import { keepItems } from "@/lib/equal";
import { describeError } from "@/lib/errors";
import { newId } from "@/lib/id";
import { tabStorage } from "@/lib/storage";
import { adoptThread, useVisit } from "@/lib/thread-url";
import { appendLive, clearLive } from "@/tools/live-store";

/** How often at most a running answer is drawn anew. */
const DRAW_MS = 60;

/** Every run goes on without us, and can be joined again. */
const lasting = { streamResumable: true, onDisconnect: "continue" } as const;

type RunOptions = Parameters<ReturnType<typeof useStream<ChatValues>>["submit"]>[1];

/** A person's message as it is sent; the id is ours, so that it is known when it comes back. */
export function humanMessage(content: string): HumanMessage {
  return { id: newId(), type: "human", content };
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

  /** Read what is new, and show it. */
  const { reload: load } = history;
  const reload = useCallback(
    async (id: string) => {
      const states = await load(id);
      if (thread.current === id) now.current?.stream.setBranch(newestBranch(states));
      return states;
    },
    [load],
  );

  /** The SDK asks for this after a run, and after a stop, when the run has to end first. */
  const mutate = async (id?: string) => {
    const wanted = id ?? thread.current;
    // Then what is on the page stays, which the SDK would put away for an empty history.
    if (!wanted) throw new Error("There is no conversation yet.");
    const stopped = stopping.current;
    stopping.current = false;
    if (stopped) await cancelRuns(client, wanted);
    const states = await reload(wanted);
    return stopped ? [] : statesOf(states);
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

  /** The refusal of an answer: the question is no longer open, or not as it was. */
  const [refusal, setRefusal] = useState<unknown>(null);
  const answering = useRef(false);

  const stream = useStream<ChatValues>({
    assistantId: GRAPH,
    client,
    // To the SDK two empty pages would be the same, and the second one would go on with the first.
    threadId: threadId ?? (visit % 2 === 0 ? null : ""),
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
    reconnectOnMount: () => tabStorage,
    throttle: DRAW_MS,
    onMetadataEvent: startOver,
    onCustomEvent: (event) => {
      startOver();
      appendLive(event, thread.current);
    },
    onError: (error, run) => {
      // What the run itself has ended with is not to be joined again.
      const { offline, status } = describeError(error);
      if (run?.thread_id && !offline) followRun(run.thread_id, null);
      if (!answering.current || status !== 400) return;
      setRefusal(error);
      if (thread.current) void reload(thread.current).catch(() => undefined);
    },
  });
  const messages = useKeptMessages(stream.messages);
  const { known, loaded, loadState } = history;
  const marks = useMemo(() => marksOf(known, stream.branch), [known, stream.branch]);
  const now = useRef({ stream, messages, known, marks, loadState });
  now.current = { stream, messages, known, marks, loadState };

  // What is come to is shown as it was left.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when it has come
  useEffect(() => {
    if (loaded) now.current.stream.setBranch(newestBranch(now.current.known));
  }, [loaded, threadId]);

  /** Begin a run; the branch that is looked at stays, where it is not another one that goes on. */
  const submit = useCallback(
    (messages: Message[] | null, options: RunOptions, branch = now.current.stream.branch) => {
      const { stream: s } = now.current;
      answering.current = false;
      const done = s.submit(messages ? { messages } : undefined, { ...lasting, ...options });
      s.setBranch(branch);
      return done;
    },
    [],
  );

  /** Say something at the end; the first message makes the conversation. */
  const say = useCallback(
    (message: HumanMessage, options?: RunOptions) => {
      if (thread.current) return submit([message], options);
      sayFirst([message]);
      return submit([message], { ...options, metadata: { title: titleOf(messageText(message)) } });
    },
    [submit],
  );
  const send = useCallback(
    (content: string) => {
      const message = humanMessage(content);
      return say(message, { optimisticValues: { messages: [...now.current.messages, message] } });
    },
    [say],
  );

  /** Show another branch; what was said in it may have to come first. */
  const setBranch = useCallback(async (branch: string) => {
    const { known, loadState, stream: s } = now.current;
    const head = headOf(known, branch);
    if (head && !head.whole && thread.current) await loadState(thread.current, head.id);
    s.setBranch(branch);
  }, []);

  /** Go on from before a message, with another one in its place, or with none. */
  const fork = useCallback(
    (old: Message, message?: Message) => {
      const { messages: all, marks: places } = now.current;
      const place = places.get(old.id ?? "");
      const at = all.findIndex((m) => m.id === old.id);
      const next = message ? [message] : [];
      const options = {
        // The SDK changes what it is given.
        checkpoint: place?.fork && { ...place.fork },
        optimisticValues: { messages: [...all.slice(0, Math.max(0, at)), ...next] },
      };
      return submit(message ? next : null, options, place?.forkBranch);
    },
    [submit],
  );
  const edit = useCallback(
    (old: Message, content: string) => fork(old, humanMessage(content)),
    [fork],
  );
  const regenerate = useCallback((answer: Message) => fork(answer), [fork]);

  /** After an error: go on where the server stands, or say again what it has never got. */
  const retry = useCallback(() => {
    const last = now.current.messages.findLast((m) => m.type === "human");
    const lost = last && !isSaved(now.current.known, last.id);
    return lost ? say(last) : submit(null, {});
  }, [say, submit]);

  const answer = useCallback(
    (answers: readonly Answer[]) => {
      const open = now.current.stream.interrupts.length;
      const done = submit(null, { command: { resume: resumeOf(answers, open) } });
      answering.current = true;
      return done;
    },
    [submit],
  );

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
    marks,
    setBranch,
    reload,
    loading: stream.isThreadLoading,
    running: stream.isLoading,
    error: stream.error === refusal ? undefined : stream.error,
    send,
    edit,
    regenerate,
    retry,
    answer,
    stop,
    join,
    rejoin,
    restart,
  };
}

export type Chat = ReturnType<typeof useChat>;
