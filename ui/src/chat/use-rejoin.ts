// SPDX-License-Identifier: MIT
import { useEffect, useRef, useState } from "react";
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
  const [asked, setAsked] = useState<unknown>(null);

  // What is known of the server may be older than the error.
  useEffect(() => {
    if (offline) void retry().then(() => setAsked(error));
  }, [offline, error, retry]);

  useEffect(() => {
    if (!offline || asked !== error || state !== "ok" || handled.current === error) return;
    handled.current = error;
    if (!rejoin() && threadId) void reload(threadId).catch(() => undefined);
  }, [offline, asked, state, error, rejoin, reload, threadId]);

  // A connection may be lost without a sign of it; after an outage the old one is not trusted.
  const outage = useRef(false);
  const { running, restart } = chat;
  useEffect(() => {
    if (state === "dead") outage.current = true;
    if (state !== "ok" || !outage.current) return;
    outage.current = false;
    if (running) void restart();
  }, [state, running, restart]);

  return { state };
}
