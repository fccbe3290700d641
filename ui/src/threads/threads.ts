// SPDX-License-Identifier: MIT
/** The list of conversations: what the sidebar knows of each, and how it is changed. */
import {
  keepPreviousData,
  type QueryClient,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { request, requestJson } from "@/api/client";
import { revealHidden } from "@/markdown/hidden";

/** A conversation without its messages. */
export interface ThreadSummary {
  thread_id: string;
  updated_at: string;
  status: "idle" | "busy" | "interrupted" | "error";
  metadata: Record<string, unknown> | null;
}

const KEY = "threads";
const ONE = "thread";
const PAGE = 60;

/** As many conversations as a search looks through. */
const SEARCHED = 1000;
const REFRESH_MS = 5_000;
const TITLE_LENGTH = 80;

/** The title that a conversation has, or null. */
export function threadTitle(thread: ThreadSummary): string | null {
  const title = thread.metadata?.title;
  return typeof title === "string" && title.trim() ? revealHidden(title.trim()) : null;
}

/** Lines of code that say little of what it does. */
const IMPORT = /^(import |from \S+ import |library\(|const .*require\()/;

/** A title made from the first message: its first line with words, without Markdown's marks. */
export function titleFrom(text: string): string {
  const lines = text.split("\n").map((line) => line.trim());
  const telling = lines.filter((line) => line && !line.startsWith("```"));
  const line = telling.find((l) => !IMPORT.test(l)) ?? telling[0] ?? lines.find(Boolean) ?? "";
  const plain = line
    .replace(/^(?:(?:#+|[>*-])\s+)+/, "")
    .replace(/\s+/g, " ")
    .trim();
  const title = Array.from(plain || line);
  return title.length > TITLE_LENGTH
    ? `${title.slice(0, TITLE_LENGTH - 1).join("")}…`
    : title.join("");
}

/** The headings that conversations are listed under, in their order. */
export const ages = ["today", "yesterday", "week", "month", "older"] as const;
export type Age = (typeof ages)[number];

const DAY = 24 * 3600 * 1000;

/** Under which heading a time belongs, in days of the reader's calendar. */
export function ageOf(time: string, now: Date): Age {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const at = Date.parse(time);
  if (Number.isNaN(at) || at >= midnight) return "today";
  if (at >= midnight - DAY) return "yesterday";
  if (at >= midnight - 7 * DAY) return "week";
  return at >= midnight - 30 * DAY ? "month" : "older";
}

/** Conversations by age; ages that have none are left out. */
export function groupByAge(threads: readonly ThreadSummary[], now: Date) {
  return ages
    .map((age) => ({ age, threads: threads.filter((t) => ageOf(t.updated_at, now) === age) }))
    .filter((group) => group.threads.length > 0);
}

function search(which: object, signal: AbortSignal): Promise<ThreadSummary[]> {
  return requestJson("/threads/search", {
    method: "POST",
    signal,
    json: {
      ...which,
      sort_by: "updated_at",
      sort_order: "desc",
      select: ["thread_id", "updated_at", "status", "metadata"],
    },
  });
}

/** The newest conversations; read again while the page is looked at. */
export function useThreads(pages: number, searching: boolean) {
  const limit = searching ? SEARCHED : pages * PAGE;
  const query = useQuery({
    queryKey: [KEY, limit],
    queryFn: ({ signal }) => search({ limit }, signal),
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
    staleTime: 1_000,
  });
  return { ...query, hasMore: !searching && (query.data?.length ?? 0) >= limit };
}

/** A conversation that the list does not have; null asks for none. */
export function useThread(id: string | null) {
  return useQuery({
    queryKey: [ONE, id],
    queryFn: async ({ signal }) => (await search({ ids: [id], limit: 1 }, signal))[0] ?? null,
    enabled: id !== null,
  });
}

/** Read the list again soon. */
export function refreshThreads(client: QueryClient) {
  void client.invalidateQueries({ queryKey: [KEY] });
  void client.invalidateQueries({ queryKey: [ONE] });
}

type Change = (threads: ThreadSummary[]) => ThreadSummary[];

/** Show a change before the server has confirmed it; the result puts the old list back. */
function changeNow(client: QueryClient, change: Change) {
  void client.cancelQueries({ queryKey: [KEY] });
  const before = client.getQueriesData<ThreadSummary[]>({ queryKey: [KEY] });
  client.setQueriesData<ThreadSummary[]>({ queryKey: [KEY] }, (old) => old && change(old));
  return () => {
    for (const [key, data] of before) client.setQueryData(key, data);
  };
}

const path = (id: string) => `/threads/${encodeURIComponent(id)}`;

/** Give a conversation a title. */
export function patchTitle(id: string, title: string) {
  return requestJson(path(id), { method: "PATCH", json: { metadata: { title } } });
}

/** Renames a conversation. */
export function useRename() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id, title }: { id: string; title: string }) => patchTitle(id, title),
    onMutate: ({ id, title }) =>
      changeNow(client, (threads) =>
        threads.map((t) => (t.thread_id === id ? { ...t, metadata: { ...t.metadata, title } } : t)),
      ),
    onError: (_error, _input, restore) => restore?.(),
    onSettled: () => refreshThreads(client),
  });
}

/** Deletes a conversation with all that belongs to it. */
export function useDelete() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => request(path(id), { method: "DELETE" }),
    onMutate: (id) => changeNow(client, (threads) => threads.filter((t) => t.thread_id !== id)),
    onError: (_error, _id, restore) => restore?.(),
    onSettled: () => refreshThreads(client),
  });
}
