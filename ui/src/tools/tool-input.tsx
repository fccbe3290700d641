// SPDX-License-Identifier: MIT
/**
 * The arguments of a call: code in its language, the rest as JSON. Where a person approves a call
 * they can be changed, and are shown raw: what is read is what will be run.
 */
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import Textarea from "react-textarea-autosize";
import { cn, focusRing } from "@/components/cn";
import { CodeBlock } from "@/markdown/code-block";
import { revealHidden } from "@/markdown/hidden";
import { parseArguments, splitInput } from "@/tools/input";
import { languageOfRuntime, useRuntime } from "@/tools/runtimes";

/** What {@link ToolInput} shows. */
export interface ToolInputProps {
  name: string;
  args: Record<string, unknown>;
  /** Makes it editable: is given the arguments, or null while the text is no valid JSON object. */
  onChange?: (args: Record<string, unknown> | null) => void;
}

/**
 * A session is named elsewhere; what is left beside the code is worth a look only if there is
 * some.
 */
function Shown({ name, args }: ToolInputProps) {
  const { t } = useTranslation();
  const runtime = useRuntime(args.session_id);
  const { field, code, rest } = splitInput(name, args);
  const language = field === "command" ? "bash" : languageOfRuntime(runtime);
  const { session_id: _, ...others } = rest;
  return (
    <>
      {code !== null && (
        <CodeBlock
          code={revealHidden(code)}
          language={language}
          title={language ? undefined : t("tools.input")}
        />
      )}
      {(code === null || Object.keys(others).length > 0) && (
        <CodeBlock
          code={revealHidden(JSON.stringify(code === null ? rest : others, null, 2))}
          language="json"
          title={t("tools.arguments")}
        />
      )}
    </>
  );
}

const area = cn(
  "w-full resize-none rounded-lg border border-line bg-page p-3 font-mono text-[0.8125rem] leading-5",
  focusRing,
);

interface AreaProps {
  label: string;
  value: string;
  onChange: (text: string) => void;
  error?: string;
}

function Area({ label, value, onChange, error }: AreaProps) {
  const id = useId();
  return (
    <div>
      <label htmlFor={id} className="mb-1 block text-xs text-muted">
        {label}
      </label>
      <Textarea
        id={id}
        value={value}
        maxRows={24}
        spellCheck={false}
        autoCapitalize="off"
        autoCorrect="off"
        aria-invalid={error !== undefined}
        aria-describedby={error === undefined ? undefined : `${id}-error`}
        onChange={(event) => onChange(event.target.value)}
        className={area}
      />
      {error !== undefined && (
        <p id={`${id}-error`} className="text-xs text-error">
          {error}
        </p>
      )}
    </div>
  );
}

type EditorProps = ToolInputProps & { onChange: NonNullable<ToolInputProps["onChange"]> };

function Editor({ name, args, onChange }: EditorProps) {
  const { t } = useTranslation();
  const first = splitInput(name, args);
  const [code, setCode] = useState(first.code);
  const [json, setJson] = useState(() => JSON.stringify(first.rest, null, 2));
  const [error, setError] = useState<string>();
  const change = (nextCode: string | null, nextJson: string) => {
    setCode(nextCode);
    setJson(nextJson);
    const parsed = parseArguments(nextJson);
    setError(parsed.error && t("tools.edit.invalid", { reason: parsed.error }));
    const own = first.field && nextCode !== null ? { [first.field]: nextCode } : {};
    onChange(parsed.args ? { ...parsed.args, ...own } : null);
  };
  const hidden = code !== null && revealHidden(code) !== code;
  return (
    <div className="flex flex-col gap-2">
      {code !== null && (
        <Area
          label={t(first.field === "command" ? "tools.edit.command" : "tools.edit.code")}
          value={code}
          onChange={(text) => change(text, json)}
        />
      )}
      {hidden && <CodeBlock code={revealHidden(code)} title={t("tools.input")} />}
      <Area
        label={t("tools.edit.json")}
        value={json}
        onChange={(text) => change(code, text)}
        error={error}
      />
    </div>
  );
}

/** The arguments of a call as code or JSON. */
export function ToolInput({ name, args, onChange }: ToolInputProps) {
  if (onChange) return <Editor name={name} args={args} onChange={onChange} />;
  return (
    <div className="flex flex-col gap-2">
      <Shown name={name} args={args} />
    </div>
  );
}
