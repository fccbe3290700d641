// SPDX-License-Identifier: MIT
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { requestJson } from "@/api/client";
import { activeRuns } from "@/chat/runs";
import type { Chat } from "@/chat/use-chat";

const LOOK_MS = 3_000;

interface Glance {
  status: string;
  updated_at: string;
}

/**
 * Notice what others do in this conversation: a run that another tab or program has begun is
 * followed, and what one has left behind is read.
 */
export function useFollow(threadId: string | null, chat: Chat) {
  const { running, loading, client, join, reload, error } = chat;
  const idle = threadId !== null && !running && !loading && !error;
  const { data, dataUpdatedAt } = useQuery({
    queryKey: ["glance", threadId],
    enabled: idle,
    refetchInterval: LOOK_MS,
    staleTime: 0,
    queryFn: async ({ signal }) => {
      const [found] = await requestJson<Glance[]>("/threads/search", {
        method: "POST",
        signal,
        json: { ids: [threadId], limit: 1, select: ["status", "updated_at"] },
      });
      return found ?? null;
    },
  });
  const seen = useRef({ thread: threadId, time: 0, updated: "" });

  useEffect(() => {
    if (!idle) {
      // What comes now is our own doing; only what is newer than it is looked at.
      seen.current = { thread: threadId, time: Date.now(), updated: "" };
      return;
    }
    const last = seen.current;
    if (!data || dataUpdatedAt <= last.time) return;
    seen.current = { thread: threadId, time: dataUpdatedAt, updated: data.updated_at };
    if (data.status === "busy") {
      void activeRuns(client, threadId).then(
        ([run]) => run && join(run),
        () => undefined,
      );
    } else if (last.updated && last.updated !== data.updated_at)
      void reload(threadId).catch(() => undefined);
  }, [idle, data, dataUpdatedAt, threadId, client, join, reload]);
}
