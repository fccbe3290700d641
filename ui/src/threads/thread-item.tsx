// SPDX-License-Identifier: MIT
import { MoreHorizontal, Pencil, Trash2 } from "lucide-react";
import { type KeyboardEvent, type MouseEvent, memo, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { IconButton } from "@/components/button";
import { cn, focusRing } from "@/components/cn";
import { inputClass } from "@/components/field";
import { Menu } from "@/components/menu";
import { threadHref } from "@/lib/thread-url";
import { type ThreadSummary, threadTitle } from "@/threads/threads";

export interface ThreadItemProps {
  thread: ThreadSummary;
  active: boolean;
  onOpen: (id: string) => void;
  onRename: (id: string, title: string) => void;
  onDelete: (thread: ThreadSummary) => void;
}

/** What goes on in a conversation, beside its title. */
function StatusDot({ status }: { status: ThreadSummary["status"] }) {
  const { t } = useTranslation();
  if (status === "idle") return null;
  const look = {
    busy: "bg-accent animate-pulse motion-reduce:animate-none",
    interrupted: "bg-warn",
    error: "bg-error",
  }[status];
  const text = t(`chat.threads.status.${status}`);
  return (
    <span title={text} className={cn("size-2 shrink-0 rounded-full", look)}>
      <span className="sr-only">{text}</span>
    </span>
  );
}

interface TitleFieldProps {
  title: string;
  onDone: (title: string | null) => void;
}

/** The title while it is changed: Enter or leaving it keeps, Escape does not. */
function TitleField({ title, onDone }: TitleFieldProps) {
  const { t } = useTranslation();
  const [text, setText] = useState(title);
  const field = useRef<HTMLInputElement>(null);
  const done = useRef(false);
  const finish = (value: string | null) => {
    if (done.current) return;
    done.current = true;
    onDone(value?.trim() ? value.trim() : null);
  };
  useEffect(() => field.current?.select(), []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Enter") finish(text);
    if (event.key === "Escape") finish(null);
  };
  return (
    <input
      ref={field}
      // The menu has just closed; the field is what was asked for.
      // biome-ignore lint/a11y/noAutofocus: it opens on request only
      autoFocus
      aria-label={t("chat.threads.titleField")}
      className={cn(inputClass, "h-9 px-2.5")}
      maxLength={200}
      value={text}
      onChange={(event) => setText(event.target.value)}
      onBlur={() => finish(text)}
      onKeyDown={onKeyDown}
    />
  );
}

/** One conversation of the list. It is a link, so that it can be opened in another tab. */
export const ThreadItem = memo(function ThreadItem(props: ThreadItemProps) {
  const { thread, active, onOpen, onRename, onDelete } = props;
  const { t } = useTranslation();
  const [editing, setEditing] = useState(false);
  const id = thread.thread_id;
  const title = threadTitle(thread) ?? t("chat.threads.untitled");

  if (editing)
    return (
      <li className="px-0.5 py-0.5">
        <TitleField
          title={title}
          onDone={(text) => {
            setEditing(false);
            if (text && text !== title) onRename(id, text);
          }}
        />
      </li>
    );

  const onClick = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    onOpen(id);
  };
  return (
    <li
      className={cn(
        "group flex items-center rounded-lg",
        active ? "bg-accent/12" : "hover:bg-text/5 focus-within:bg-text/5",
      )}
    >
      <a
        href={threadHref(id)}
        onClick={onClick}
        aria-current={active ? "page" : undefined}
        title={title}
        className={cn(
          "flex min-w-0 flex-1 items-center gap-2 rounded-lg py-2 pl-2.5 text-sm",
          "pointer-coarse:py-3",
          active && "font-medium",
          focusRing,
        )}
      >
        <span className="truncate">{title}</span>
        <StatusDot status={thread.status} />
      </a>
      <span
        className={cn(
          "shrink-0 opacity-0 group-focus-within:opacity-100 group-hover:opacity-100",
          "has-data-[state=open]:opacity-100 pointer-coarse:opacity-100",
        )}
      >
        <Menu
          trigger={
            <IconButton label={t("chat.threads.more", { title })} size="sm" tooltip={false}>
              <MoreHorizontal aria-hidden />
            </IconButton>
          }
          items={[
            {
              id: "rename",
              label: t("chat.threads.rename"),
              icon: <Pencil aria-hidden />,
              onSelect: () => setEditing(true),
            },
            {
              id: "delete",
              label: t("chat.threads.delete"),
              icon: <Trash2 aria-hidden />,
              onSelect: () => onDelete(thread),
              danger: true,
            },
          ]}
        />
      </span>
    </li>
  );
});
