// SPDX-License-Identifier: MIT
import { useCallback, useEffect, useRef, useState } from "react";

/** So near to the end counts as at the end. */
const NEAR_PX = 48;

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
    let top = box.scrollTop;
    const follow = () => {
      if (stuck.current) box.scrollTop = box.scrollHeight;
      top = box.scrollTop;
    };
    const onScroll = () => {
      const distance = box.scrollHeight - box.clientHeight - box.scrollTop;
      if (distance < NEAR_PX) setStuck(true);
      else if (box.scrollTop < top - 1) setStuck(false);
      top = box.scrollTop;
    };
    const onWheel = (event: WheelEvent) => {
      if (event.deltaY < 0 && box.scrollHeight > box.clientHeight) setStuck(false);
    };
    const sizes = new ResizeObserver(follow);
    sizes.observe(inner);
    sizes.observe(box);
    box.addEventListener("scroll", onScroll, { passive: true });
    box.addEventListener("wheel", onWheel, { passive: true });
    return () => {
      sizes.disconnect();
      box.removeEventListener("scroll", onScroll);
      box.removeEventListener("wheel", onWheel);
    };
  }, [setStuck]);

  return { scroller, content, atEnd, toEnd };
}
