// SPDX-License-Identifier: MIT
import { ArrowUp, Paperclip, Square } from "lucide-react";
import {
  type ClipboardEvent,
  type KeyboardEvent,
  type Ref,
  useCallback,
  useEffect,
  useImperativeHandle,
  useRef,
  useState,
} from "react";
import { useTranslation } from "react-i18next";
import { AttachmentChips } from "@/chat/attachments";
import { withFiles } from "@/chat/content";
import { GrowingField } from "@/chat/growing-field";
import { sends } from "@/chat/sends";
import type { Uploads } from "@/chat/use-uploads";
import { IconButton } from "@/components/button";
import { cn } from "@/components/cn";
import { readKept, writeKept } from "@/lib/kept-state";
import { tabStorage } from "@/lib/storage";

/** What others may do with the composer. */
export interface ComposerHandle {
  focus: () => void;
  setText: (text: string) => void;
}

export interface ComposerProps {
  ref?: Ref<ComposerHandle>;
  threadId: string | null;
  uploads: Uploads;
  running: boolean;
  /** Nothing can be sent now: the server does not answer. */
  disabled: boolean;
  /** The message is code: no model reads it. */
  code: boolean;
  onSend: (content: string) => void;
  onStop: () => void;
}

const draftName = (threadId: string | null) => `sandbox-agent.draft.${threadId ?? "new"}`;

/** What was typed but not sent, kept for the tab. */
function useDraft(threadId: string | null) {
  const [text, setText] = useState(() => readKept(tabStorage, draftName(threadId), ""));
  useEffect(() => {
    writeKept(tabStorage, draftName(threadId), text || undefined);
    if (threadId) writeKept(tabStorage, draftName(null), undefined);
  }, [threadId, text]);
  return [text, setText] as const;
}

function pastedFiles(event: ClipboardEvent): File[] {
  // Copied text of an office program carries a picture of itself, too.
  if (event.clipboardData.types.includes("text/plain")) return [];
  return [...event.clipboardData.files];
}

function AttachButton({ onFiles }: { onFiles: (files: File[]) => void }) {
  const { t } = useTranslation();
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        data-testid="file-input"
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
      <IconButton label={t("chat.composer.attach")} onClick={() => input.current?.click()}>
        <Paperclip aria-hidden />
      </IconButton>
    </>
  );
}

/** Where messages are written. */
export function Composer(props: ComposerProps) {
  const { ref, threadId, uploads, running, disabled, code, onSend, onStop } = props;
  const { t } = useTranslation();
  const [text, setText] = useDraft(threadId);
  const field = useRef<HTMLTextAreaElement>(null);
  useImperativeHandle(ref, () => ({
    focus: () => field.current?.focus(),
    setText: (next) => {
      setText(next);
      field.current?.focus();
    },
  }));

  const { items } = uploads;
  const pending = items.some((item) => item.state === "sending");
  const done = items.flatMap((item) => item.uploaded ?? []);
  const ready = !disabled && !pending && (text.trim() !== "" || done.length > 0);

  const submit = useCallback(() => {
    if (!ready) return;
    onSend(withFiles(text.trim() ? text : "", done));
    setText("");
    uploads.clear();
  }, [ready, onSend, text, done, setText, uploads]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (!sends(event)) return;
    event.preventDefault();
    submit();
  };
  const onPaste = (event: ClipboardEvent) => {
    const files = pastedFiles(event);
    if (files.length === 0) return;
    event.preventDefault();
    uploads.add(files);
  };

  return (
    <form
      aria-label={t("chat.composer.label")}
      className={cn(
        "rounded-2xl border border-muted/50 bg-raised shadow-sm transition-shadow",
        "focus-within:border-accent focus-within:shadow-md motion-reduce:transition-none",
      )}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <AttachmentChips items={items} onRemove={uploads.remove} onAgain={uploads.again} />
      <GrowingField
        ref={field}
        id="composer"
        aria-label={t("chat.composer.field")}
        aria-describedby="composer-hint"
        placeholder={t(code ? "chat.composer.placeholderCode" : "chat.composer.placeholder")}
        maxRows={12}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
        onPaste={onPaste}
        spellCheck={!code}
        className={cn(
          "block w-full resize-none bg-transparent px-4 pt-3.5 pb-1 outline-none",
          "placeholder:text-muted",
          code ? "font-mono text-sm pointer-coarse:text-base" : "text-base",
        )}
      />
      <div className="flex items-center gap-1 px-2 pb-2">
        <AttachButton onFiles={uploads.add} />
        <p id="composer-hint" className="flex-1 truncate px-1 text-xs text-muted">
          <span className="pointer-coarse:hidden">
            {t(running ? "chat.composer.hintQueue" : "chat.composer.hint")}
          </span>
        </p>
        {running && (
          <IconButton
            label={t("chat.stop")}
            variant="secondary"
            className="rounded-full"
            onClick={onStop}
          >
            <Square aria-hidden className="size-3.5! fill-current" />
          </IconButton>
        )}
        <IconButton
          type="submit"
          label={t(running ? "chat.composer.queue" : "chat.composer.send")}
          variant="primary"
          className="rounded-full"
          disabled={!ready}
        >
          <ArrowUp aria-hidden />
        </IconButton>
      </div>
    </form>
  );
}
