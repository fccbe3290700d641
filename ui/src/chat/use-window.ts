// SPDX-License-Identifier: MIT
import { type RefObject, useCallback, useLayoutEffect, useRef, useState } from "react";

const FIRST = 16;
const MORE = 16;

/**
 * Which entries of a long conversation are drawn: the last ones, and earlier ones as the reader
 * comes near to them. `sentinel` is a ref for an element above the first drawn one.
 */
export function useWindow(count: number, scroller: RefObject<HTMLElement | null>) {
  const [hidden, setHidden] = useState<number | null>(null);
  const start = Math.min(hidden ?? Math.max(0, count - FIRST), Math.max(0, count - 1));
  const height = useRef(0);

  // The first conversation that is there decides; what is added at its end stays.
  useLayoutEffect(() => {
    if (hidden === null && count > 0) setHidden(Math.max(0, count - FIRST));
  }, [hidden, count]);

  // Browsers keep what is read in place, except at the very top.
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is for when the start has changed
  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box) return;
    if (box.scrollTop === 0 && height.current > 0)
      box.scrollTop = box.scrollHeight - height.current;
    height.current = 0;
  }, [start, scroller]);

  const sentinel = useCallback(
    (element: HTMLElement | null) => {
      if (!element) return;
      const watcher = new IntersectionObserver(
        ([entry]) => {
          if (!entry?.isIntersecting) return;
          height.current = scroller.current?.scrollHeight ?? 0;
          setHidden((now) => Math.max(0, (now ?? 0) - MORE));
        },
        { root: scroller.current, rootMargin: "800px 0px 0px 0px" },
      );
      watcher.observe(element);
      return () => watcher.disconnect();
    },
    [scroller],
  );

  return { start, sentinel };
}
