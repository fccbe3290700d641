// SPDX-License-Identifier: MIT
import { useCallback, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/button";
import { Confirm } from "@/components/dialog";
import { Spinner } from "@/components/spinner";
import { toast } from "@/components/toast";
import { describeError } from "@/lib/errors";
import { useFound } from "@/threads/search";
import { ThreadItem, type ThreadItemProps } from "@/threads/thread-item";
import {
  groupByAge,
  type ThreadSummary,
  threadTitle,
  useDelete,
  useRename,
  useThreads,
} from "@/threads/threads";

interface GroupProps extends Omit<ThreadItemProps, "thread" | "active"> {
  heading: string;
  threads: readonly ThreadSummary[];
  current: string | null;
}

function Group({ heading, threads, current, ...actions }: GroupProps) {
  return (
    <section aria-label={heading} className="mb-3">
      <h2 className="px-2.5 pt-1 pb-1 text-xs font-medium text-muted">{heading}</h2>
      <ul>
        {threads.map((thread) => (
          <ThreadItem
            key={thread.thread_id}
            thread={thread}
            active={thread.thread_id === current}
            {...actions}
          />
        ))}
      </ul>
    </section>
  );
}

export interface ThreadListProps {
  current: string | null;
  search: string;
  onOpen: (id: string) => void;
  /** A conversation is gone. */
  onDeleted: (id: string) => void;
}

/** The conversations: by age, or as a search finds them. */
export function ThreadList({ current, search, onOpen, onDeleted }: ThreadListProps) {
  const { t } = useTranslation();
  const [pages, setPages] = useState(1);
  const [doomed, setDoomed] = useState<ThreadSummary | null>(null);
  const searching = search.trim() !== "";
  const { data, isPending, isError, hasMore, refetch } = useThreads(pages, searching);
  const found = useFound(data ?? [], search, t("chat.threads.untitled"));
  const rename = useRename().mutate;
  const remove = useDelete();

  const complain = useCallback((error: unknown) => toast(describeError(error).text, "error"), []);
  const onRename = useCallback(
    (id: string, title: string) => rename({ id, title }, { onError: complain }),
    [rename, complain],
  );
  const onDelete = useCallback((thread: ThreadSummary) => setDoomed(thread), []);
  const confirmed = (id: string) =>
    remove.mutate(id, { onError: complain, onSuccess: () => onDeleted(id) });

  const groups = searching
    ? [{ heading: t("chat.threads.found", { count: found.length }), threads: found }]
    : groupByAge(found, new Date()).map((group) => ({
        heading: t(`chat.threads.ages.${group.age}`),
        threads: group.threads,
      }));

  return (
    <>
      {isPending && (
        <p className="flex justify-center p-6 text-muted">
          <Spinner label={t("chat.threads.loading")} />
        </p>
      )}
      {isError && !data && (
        <div className="flex flex-col items-center gap-2 p-4 text-center text-sm text-muted">
          <p>{t("chat.threads.failed")}</p>
          <Button size="sm" onClick={() => void refetch()}>
            {t("chat.retry")}
          </Button>
        </div>
      )}
      {data && found.length === 0 && (
        <p className="p-4 text-center text-sm text-muted">
          {t(searching ? "chat.threads.noneFound" : "chat.threads.none")}
        </p>
      )}
      {groups.map((group) =>
        group.threads.length === 0 ? null : (
          <Group
            key={group.heading}
            {...group}
            current={current}
            onOpen={onOpen}
            onRename={onRename}
            onDelete={onDelete}
          />
        ),
      )}
      {hasMore && (
        <Button
          variant="ghost"
          size="sm"
          className="w-full"
          onClick={() => setPages((count) => count + 1)}
        >
          {t("chat.threads.older")}
        </Button>
      )}
      <Confirm
        open={doomed !== null}
        onOpenChange={(open) => !open && setDoomed(null)}
        title={t("chat.threads.deleteTitle")}
        description={t("chat.threads.deleteText", {
          title: (doomed && threadTitle(doomed)) ?? t("chat.threads.untitled"),
        })}
        action={t("chat.threads.delete")}
        onConfirm={() => doomed && confirmed(doomed.thread_id)}
      />
    </>
  );
}
