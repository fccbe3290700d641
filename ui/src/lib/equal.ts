// SPDX-License-Identifier: MIT
/** Comparing values by content, so that what did not change is not drawn again. */

type Json = Record<string, unknown>;

const absent = (value: unknown) => value === null || value === undefined;

function equalObjects(a: Json, b: Json): boolean {
  for (const key of Object.keys(a)) if (!sameJson(a[key], b[key])) return false;
  for (const key of Object.keys(b)) if (!(key in a) && !absent(b[key])) return false;
  return true;
}

/** Whether two JSON values are the same; null and a missing member count as one. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b || (absent(a) && absent(b))) return true;
  if (typeof a !== "object" || typeof b !== "object" || !a || !b) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  if (Array.isArray(a) && a.length !== (b as unknown[]).length) return false;
  return equalObjects(a as Json, b as Json);
}

/** Whether two lists hold the very same things. */
export function sameItems<T>(a: readonly T[], b: readonly T[]): boolean {
  return a.length === b.length && a.every((item, i) => item === b[i]);
}

/**
 * `next`, but with the objects of `before` where an item has the same id and content. A stream
 * sends the whole conversation again and again; this keeps what is known by identity.
 */
export function keepItems<T extends { id?: string | undefined }>(
  before: readonly T[],
  next: readonly T[],
): readonly T[] {
  if (before === next) return before;
  const known = new Map(before.map((item) => [item.id, item]));
  const kept = next.map((item) => {
    const old = item.id === undefined ? undefined : known.get(item.id);
    return old !== undefined && sameJson(old, item) ? old : item;
  });
  return sameItems(before, kept) ? before : kept;
}
