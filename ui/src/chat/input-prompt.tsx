// SPDX-License-Identifier: MIT
import { TextCursorInput } from "lucide-react";
import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/button";
import { TextInput } from "@/components/field";
import { isWriting } from "@/lib/shortcuts";
import { revealHidden } from "@/markdown/hidden";

export interface InputPromptProps {
  prompt: string;
  /** What is typed is not shown, as the cell has asked. */
  password: boolean;
  onLine: (line: string) => void;
}

/** A cell waits for a line. */
export function InputPrompt({ prompt, password, onLine }: InputPromptProps) {
  const { t } = useTranslation();
  const id = useId();
  const [line, setLine] = useState("");
  const field = useRef<HTMLInputElement>(null);
  // Who is writing something goes on with it.
  useEffect(() => {
    if (!isWriting(document.activeElement)) field.current?.focus();
  }, []);
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    onLine(line);
  };
  return (
    <form
      onSubmit={onSubmit}
      className="flex flex-col gap-2 rounded-2xl border border-warn/60 bg-warn/8 p-4"
    >
      <h2 className="flex items-center gap-2 font-semibold">
        <TextCursorInput aria-hidden className="size-5 text-warn" />
        {t("chat.input.title")}
      </h2>
      <label htmlFor={id} className="font-mono text-sm break-words whitespace-pre-wrap">
        {revealHidden(prompt).trim() || t("chat.input.noPrompt")}
      </label>
      <div className="flex gap-2">
        <TextInput
          ref={field}
          id={id}
          type={password ? "password" : "text"}
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          className="font-mono"
          value={line}
          onChange={(event) => setLine(event.target.value)}
        />
        <Button type="submit" variant="primary">
          {t("chat.input.send")}
        </Button>
      </div>
      <p className="text-xs text-muted">{t(password ? "chat.input.hidden" : "chat.input.hint")}</p>
    </form>
  );
}
