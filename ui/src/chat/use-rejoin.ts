// SPDX-License-Identifier: MIT
import { useEffect, useRef } from "react";
import { useHealth } from "@/api/health";
import type { Chat } from "@/chat/use-chat";
import { describeError } from "@/lib/errors";

/**
 * When the connection was lost in the middle of a run: look after the server, and follow the run
 * again when it is back. Tells whether that is being waited for.
 */
export function useRejoin(threadId: string | null, chat: Chat) {
  const { state, retry } = useHealth();
  const { error, rejoin, reload } = chat;
  const offline = error ? describeError(error).offline : false;
  const handled = useRef<unknown>(null);

  useEffect(() => {
    if (offline) void retry();
  }, [offline, retry]);

  useEffect(() => {
    if (!offline || state !== "ok" || handled.current === error) return;
    handled.current = error;
    if (!rejoin() && threadId) void reload(threadId).catch(() => undefined);
  }, [offline, state, error, rejoin, reload, threadId]);

  return { state, offline, retry };
}
