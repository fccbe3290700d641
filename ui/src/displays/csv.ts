// SPDX-License-Identifier: MIT
/** Tables that are written as text. */

export interface TableData {
  columns: string[];
  rows: string[][];
}

/** The rows of comma- or tab-separated text; quotes as RFC 4180 has them. */
export function parseSeparated(text: string, separator: string, most = 100_000): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let field = "";
  let isQuoted = false;
  const endField = () => {
    row.push(field);
    field = "";
  };
  const endRow = () => {
    endField();
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  };
  for (let i = 0; i < text.length && rows.length < most; i++) {
    const c = text[i] as string;
    if (isQuoted && c === '"' && text[i + 1] === '"') {
      field += c;
      i++;
    } else if (c === '"' && (isQuoted || field === "")) isQuoted = !isQuoted;
    else if (isQuoted) field += c;
    else if (c === separator) endField();
    else if (c === "\n") endRow();
    else if (c !== "\r" || text[i + 1] !== "\n") field += c;
  }
  if (field !== "" || row.length > 0) endRow();
  return rows;
}

/** Separated text as a table: its first row is the head. */
export function separatedTable(text: string, separator: string): TableData {
  const [columns = [], ...rows] = parseSeparated(text, separator);
  return { columns, rows };
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A tabular data resource as a table; null for what is none. */
export function resourceTable(value: unknown): TableData | null {
  const resource = value as { schema?: { fields?: { name?: unknown }[] }; data?: unknown } | null;
  if (!Array.isArray(resource?.data)) return null;
  const data = resource.data as unknown[];
  const named = resource.schema?.fields;
  const columns = Array.isArray(named)
    ? named.map((field) => cell(field?.name))
    : Object.keys((data[0] as object | null) ?? {});
  const rows = data.map((row) =>
    columns.map((name) => cell((row as Record<string, unknown> | null)?.[name])),
  );
  return { columns, rows };
}
