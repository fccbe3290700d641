// SPDX-License-Identifier: MIT
/** The live sandboxes of the owner's threads. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { request, requestJson } from "@/api/client";

export interface Session {
  session_id: string;
  container_id: string;
  container_name: string;
  runtime: string;
  status: string;
  thread_id: string;
  busy: boolean;
  created_at: string;
  last_activity: string;
}

const queryKey = ["sessions"];

/** Live sessions, asked for every few seconds. */
export function useSessions() {
  return useQuery({
    queryKey,
    queryFn: ({ signal }) => requestJson<Session[]>("/sessions", { signal }),
    refetchInterval: 5_000,
  });
}

/** Ends a sandbox: `stop`. Ends only what it is running: `interrupt`. */
export function useSessionActions() {
  const client = useQueryClient();
  const onSettled = () => client.invalidateQueries({ queryKey });
  const path = (id: string) => `/sessions/${encodeURIComponent(id)}`;
  const stop = useMutation({
    mutationFn: (id: string) => request(path(id), { method: "DELETE" }),
    onSettled,
  });
  const interrupt = useMutation({
    mutationFn: (id: string) => request(`${path(id)}/interrupt`, { method: "POST" }),
    onSettled,
  });
  return { stop, interrupt };
}
