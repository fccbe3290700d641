// SPDX-License-Identifier: MIT
import { useCallback, useEffect, useRef, useState } from "react";

/** So near to the end counts as at the end. */
const NEAR_PX = 48;

/** What a person scrolls with; what moves so soon after it was meant to. */
const TOUCHES = ["wheel", "touchmove", "keydown", "pointerdown"] as const;
const MEANT_MS = 500;

/**
 * Keeps the end of a growing text in sight, but only while the reader is there: whoever scrolls up
 * is left alone, and whoever comes back to the end goes along again.
 */
export function useScroll() {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  const [atEnd, setAtEnd] = useState(true);

  const setStuck = useCallback((to: boolean) => {
    stuck.current = to;
    setAtEnd(to);
  }, []);

  const toEnd = useCallback(() => {
    setStuck(true);
    const { current } = scroller;
    if (current) current.scrollTop = current.scrollHeight;
  }, [setStuck]);

  useEffect(() => {
    const box = scroller.current;
    const inner = content.current;
    if (!box || !inner) return;
    let { scrollTop: top, scrollHeight: height } = box;
    let touched = Number.NEGATIVE_INFINITY;
    const remember = () => {
      top = box.scrollTop;
      height = box.scrollHeight;
    };
    const follow = () => {
      if (stuck.current) box.scrollTop = box.scrollHeight;
      remember();
    };
    const onScroll = () => {
      // A text that shrinks and grows moves, too; that is nobody's wish.
      const meant = box.scrollHeight === height || performance.now() - touched < MEANT_MS;
      const distance = box.scrollHeight - box.clientHeight - box.scrollTop;
      if (distance < NEAR_PX) setStuck(true);
      else if (meant && box.scrollTop < top - 1) setStuck(false);
      remember();
    };
    const onTouch = (event: Event) => {
      touched = performance.now();
      const up = event instanceof WheelEvent && event.deltaY < 0;
      if (up && box.scrollHeight > box.clientHeight) setStuck(false);
    };
    const sizes = new ResizeObserver(follow);
    sizes.observe(inner);
    sizes.observe(box);
    box.addEventListener("scroll", onScroll, { passive: true });
    for (const name of TOUCHES) box.addEventListener(name, onTouch, { passive: true });
    return () => {
      sizes.disconnect();
      box.removeEventListener("scroll", onScroll);
      for (const name of TOUCHES) box.removeEventListener(name, onTouch);
    };
  }, [setStuck]);

  return { scroller, content, atEnd, toEnd };
}
