// SPDX-License-Identifier: MIT
/** The browser's storage; where it is blocked or full, what is kept lasts as long as the page. */

export type KeptStorage = Pick<Storage, "getItem" | "setItem" | "removeItem">;

/** A storage that never throws; `find` gives the browser's, or throws itself. */
export function guarded(find: () => Storage): KeptStorage {
  const instead = new Map<string, string>();
  return {
    getItem(name) {
      try {
        return instead.get(name) ?? find().getItem(name);
      } catch {
        return null;
      }
    },
    setItem(name, value) {
      try {
        find().setItem(name, value);
        instead.delete(name);
      } catch {
        instead.set(name, value);
      }
    },
    removeItem(name) {
      instead.delete(name);
      try {
        find().removeItem(name);
      } catch {
        // There is nothing of it.
      }
    },
  };
}

/** Kept for the tab. */
export const tabStorage = guarded(() => sessionStorage);

/** Kept for the browser. */
export const browserStorage = guarded(() => localStorage);
