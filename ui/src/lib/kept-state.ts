// SPDX-License-Identifier: MIT
/** State that outlives a reload of the tab. */
import { useEffect, useState } from "react";
import type { KeptStorage } from "@/lib/storage";

/** What is kept under a name, or `otherwise` when nothing usable is. */
export function readKept<T>(storage: KeptStorage, name: string, otherwise: T): T {
  try {
    const text = storage.getItem(name);
    return text === null ? otherwise : (JSON.parse(text) as T);
  } catch {
    return otherwise;
  }
}

/** Keep a value; undefined forgets it. A full storage is no reason to stop. */
export function writeKept(storage: KeptStorage, name: string, value: unknown) {
  try {
    if (value === undefined) storage.removeItem(name);
    else storage.setItem(name, JSON.stringify(value));
  } catch {
    storage.removeItem(name);
  }
}

/** `useState` whose value is kept in `storage` under `name`. */
export function useKept<T>(storage: KeptStorage, name: string, initial: T) {
  const [value, setValue] = useState(() => readKept(storage, name, initial));
  useEffect(() => writeKept(storage, name, value), [storage, name, value]);
  return [value, setValue] as const;
}
