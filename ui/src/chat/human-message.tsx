// SPDX-License-Identifier: MIT
import type { HumanMessage as Human, Message } from "@langchain/langgraph-sdk";
import { Pencil } from "lucide-react";
import { type KeyboardEvent, memo, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { SentFiles } from "@/chat/attachments";
import { BranchSwitcher } from "@/chat/branch-switcher";
import { messageText, splitFiles, withFiles } from "@/chat/content";
import { GrowingField } from "@/chat/growing-field";
import { MessageButton, MessageCopy } from "@/chat/message-button";
import { sends } from "@/chat/sends";
import { Button } from "@/components/button";
import { cn } from "@/components/cn";
import { revealHidden } from "@/markdown/hidden";
import { Markdown } from "@/markdown/markdown";

/** Code in fences is shown as such; all other text as it was typed. */
const FENCED = /^ {0,3}(```|~~~)/m;

interface EditorProps {
  text: string;
  onSave: (text: string) => void;
  onCancel: () => void;
}

/** A message while it is changed: Enter sends it anew, Escape leaves it as it was. */
function Editor({ text, onSave, onCancel }: EditorProps) {
  const { t } = useTranslation();
  const [value, setValue] = useState(text);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    const { current } = field;
    current?.focus();
    current?.setSelectionRange(current.value.length, current.value.length);
  }, []);
  const save = () => value.trim() && onSave(value);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      onCancel();
    }
    if (sends(event)) {
      event.preventDefault();
      save();
    }
  };
  return (
    <div className="w-full rounded-2xl border border-accent bg-raised p-3 shadow-sm">
      <GrowingField
        ref={field}
        aria-label={t("chat.edit.field")}
        maxRows={20}
        value={value}
        onChange={(event) => setValue(event.target.value)}
        onKeyDown={onKeyDown}
        className="block w-full resize-none bg-transparent px-1 outline-none"
      />
      <div className="mt-2 flex flex-wrap items-center justify-end gap-2">
        <p className="flex-1 text-xs text-muted">{t("chat.edit.hint")}</p>
        <Button size="sm" onClick={onCancel}>
          {t("chat.edit.cancel")}
        </Button>
        <Button size="sm" variant="primary" onClick={save} disabled={!value.trim()}>
          {t("chat.edit.save")}
        </Button>
      </div>
    </div>
  );
}

export interface HumanMessageProps {
  message: Human;
  /** Whether it can be said anew from here. */
  editable: boolean;
  /** No model reads it: it is code. */
  code: boolean;
  branch: string;
  options: readonly string[];
  onBranch: (branch: string) => void;
  onEdit: (message: Message, content: string) => void;
}

/** What a person said. */
export const HumanMessage = memo(function HumanMessage(props: HumanMessageProps) {
  const { message, editable, code, branch, options, onBranch, onEdit } = props;
  const { t } = useTranslation();
  const [editing, setEditing] = useState(false);
  const { text, files } = splitFiles(messageText(message));
  const fenced = FENCED.test(text);

  if (editing)
    return (
      <Editor
        text={text}
        onCancel={() => setEditing(false)}
        onSave={(next) => {
          setEditing(false);
          onEdit(message, withFiles(next, files));
        }}
      />
    );
  return (
    <div className="group flex flex-col items-end gap-2">
      <h2 className="sr-only">{t("chat.you")}</h2>
      <div className="flex w-full flex-col items-end gap-1 sm:flex-row-reverse sm:items-end">
        {text && (
          <div
            className={cn(
              "max-w-[92%] min-w-0 rounded-2xl rounded-br-md bg-bubble px-4 py-2.5 break-words",
              "sm:max-w-[80%]",
              !fenced && "whitespace-pre-wrap",
              !fenced && code && "font-mono text-sm",
            )}
          >
            {fenced ? <Markdown text={text} /> : revealHidden(text)}
          </div>
        )}
        <div className="flex items-center text-muted">
          <BranchSwitcher branch={branch} options={options} onBranch={onBranch} />
          <div
            className={cn(
              "flex items-center opacity-0 transition-opacity group-focus-within:opacity-100",
              "group-hover:opacity-100 pointer-coarse:opacity-100 motion-reduce:transition-none",
            )}
          >
            <MessageCopy text={() => text} />
            {editable && (
              <MessageButton label={t("chat.edit.start")} onClick={() => setEditing(true)}>
                <Pencil aria-hidden />
              </MessageButton>
            )}
          </div>
        </div>
      </div>
      <SentFiles files={files} />
    </div>
  );
});
