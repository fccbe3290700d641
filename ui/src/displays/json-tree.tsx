// SPDX-License-Identifier: MIT
/** JSON as a tree that opens where one looks. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/button";
import { CopyButton } from "@/components/copy-button";
import type { DisplayItem } from "@/displays/display";
import { Failed, Loading } from "@/displays/notes";
import { useJson } from "@/displays/use-data";
import { revealHidden } from "@/markdown/hidden";
import { Scrollable } from "@/markdown/scrollable";

const STEP = 50;
const OPEN_DEPTH = 2;
const OPEN_ITEMS = 30;
const TEXT_MAX = 2000;

function entriesOf(value: object): [string, unknown][] {
  return Array.isArray(value) ? value.map((one, at) => [String(at), one]) : Object.entries(value);
}

function Leaf({ value }: { value: unknown }) {
  if (typeof value !== "string")
    return <span className="text-accent">{value === undefined ? "—" : String(value)}</span>;
  const text = value.length > TEXT_MAX ? `${value.slice(0, TEXT_MAX)}…` : value;
  return <span className="break-words whitespace-pre-wrap">“{revealHidden(text)}”</span>;
}

function Branch({ name, value, depth }: { name: string; value: object; depth: number }) {
  const { t } = useTranslation();
  const entries = entriesOf(value);
  const [isOpen, setOpen] = useState(depth < OPEN_DEPTH && entries.length <= OPEN_ITEMS);
  const [count, setCount] = useState(STEP);
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="cursor-pointer">
        {name && <span className="font-medium">{revealHidden(name)}: </span>}
        <span className="text-muted">
          {Array.isArray(value) ? "[ ]" : "{ }"}{" "}
          {t("tools.display.items", { count: entries.length })}
        </span>
      </summary>
      {isOpen && (
        <ul className="ml-1.5 border-l border-line pl-3">
          {entries.slice(0, count).map(([key, one]) => (
            <li key={key}>
              <Node name={key} value={one} depth={depth + 1} />
            </li>
          ))}
          {entries.length > count && (
            <li>
              <Button size="sm" variant="ghost" onClick={() => setCount(count * 4)}>
                {t("tools.showMore", { count: Math.min(entries.length - count, count * 3) })}
              </Button>
            </li>
          )}
        </ul>
      )}
    </details>
  );
}

function Node({ name, value, depth }: { name: string; value: unknown; depth: number }) {
  if (typeof value === "object" && value !== null)
    return <Branch name={name} value={value} depth={depth} />;
  return (
    <div className="pl-3.5">
      {name && <span className="font-medium">{revealHidden(name)}: </span>}
      <Leaf value={value} />
    </div>
  );
}

/** A JSON value. */
export function JsonTree({ value }: { value: unknown }) {
  const { t } = useTranslation();
  return (
    <div className="relative rounded-lg border border-line">
      <Scrollable
        label={t("tools.display.json")}
        className="max-h-96 p-3 pr-12 font-mono text-[0.8125rem] leading-6"
      >
        <Node name="" value={value} depth={0} />
      </Scrollable>
      <div className="absolute top-1 right-1">
        <CopyButton text={() => JSON.stringify(value, null, 2)} />
      </div>
    </div>
  );
}

/** A display that is JSON. */
export function Json({ item, threadId }: { item: DisplayItem; threadId: string | null }) {
  const { value, error, retry } = useJson(item, threadId);
  if (error) return <Failed reason={error.message} retry={retry} />;
  return value === undefined ? <Loading /> : <JsonTree value={value} />;
}
