// SPDX-License-Identifier: MIT
/** Tables; long ones a part at a time. */
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/button";
import { resourceTable, separatedTable, type TableData } from "@/displays/csv";
import type { DisplayItem } from "@/displays/display";
import { plainType } from "@/displays/kinds";
import { Failed, Loading } from "@/displays/notes";
import { useJson, useText } from "@/displays/use-data";
import { revealHidden } from "@/markdown/hidden";
import { Scrollable } from "@/markdown/scrollable";

const STEP = 100;
const COLUMNS_MAX = 60;

const isNumber = (text: string | undefined) => /^-?[\d.,eE+-]+%?$/.test(text ?? "");

/** A table with a head. */
export function DataTable({ columns, rows }: TableData) {
  const { t } = useTranslation();
  const [count, setCount] = useState(STEP);
  // A head stands over its column: on the side of the first value that is there.
  const sides = useMemo(
    () => columns.map((_, at) => isNumber(rows.slice(0, STEP).find((row) => row[at])?.[at])),
    [columns, rows],
  );
  return (
    <div>
      <Scrollable label={t("tools.table")} className="max-h-96 rounded-lg border border-line">
        <table className="w-max min-w-full text-sm tabular-nums">
          <thead className="sticky top-0 bg-panel">
            <tr>
              {columns.slice(0, COLUMNS_MAX).map((name, at) => (
                <th
                  // biome-ignore lint/suspicious/noArrayIndexKey: names may be there twice.
                  key={at}
                  scope="col"
                  className={`border-b border-line px-3 py-1.5 ${sides[at] ? "text-right" : "text-left"}`}
                >
                  {revealHidden(name)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, count).map((row, line) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: rows have nothing but a number.
              <tr key={line} className="even:bg-panel">
                {row.slice(0, COLUMNS_MAX).map((text, at) => (
                  <td
                    // biome-ignore lint/suspicious/noArrayIndexKey: a cell is its column.
                    key={at}
                    className={`max-w-96 px-3 py-1 align-top break-words ${isNumber(text) ? "text-right" : ""}`}
                  >
                    {revealHidden(text.slice(0, 1000))}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scrollable>
      <p className="mt-1 flex items-center gap-2 text-xs text-muted">
        {t("tools.display.rows", { count: rows.length })}
        {columns.length > COLUMNS_MAX &&
          `, ${t("tools.display.columnsMore", { count: columns.length - COLUMNS_MAX })}`}
        {rows.length > count && (
          <Button size="sm" variant="ghost" onClick={() => setCount(count * 3)}>
            {t("tools.showMore", { count: Math.min(rows.length - count, count * 2) })}
          </Button>
        )}
      </p>
    </div>
  );
}

/** Separated text. */
export function SeparatedTable({ item, threadId }: { item: DisplayItem; threadId: string | null }) {
  const { value, error, retry } = useText(item, threadId);
  const separator = plainType(item.type) === "text/csv" ? "," : "\t";
  const table = useMemo(
    () => (value === undefined ? null : separatedTable(value, separator)),
    [value, separator],
  );
  if (error) return <Failed reason={error.message} retry={retry} />;
  return table ? <DataTable {...table} /> : <Loading />;
}

/** A tabular data resource. */
export function ResourceTable({ item, threadId }: { item: DisplayItem; threadId: string | null }) {
  const { value, error, retry } = useJson(item, threadId);
  const table = useMemo(() => resourceTable(value), [value]);
  if (error) return <Failed reason={error.message} retry={retry} />;
  if (value === undefined) return <Loading />;
  return table ? <DataTable {...table} /> : null;
}
