// SPDX-License-Identifier: MIT
import { type ReactNode, useEffect, useRef, useState } from "react";

/** Makes its children when they come near to what is seen, and then keeps them. */
export function LazyMount({ children, height }: { children: ReactNode; height: number }) {
  const ref = useRef<HTMLDivElement>(null);
  const [isNear, setNear] = useState(typeof IntersectionObserver === "undefined");
  useEffect(() => {
    const element = ref.current;
    if (isNear || !element) return;
    const observer = new IntersectionObserver(
      (entries) => entries.some((one) => one.isIntersecting) && setNear(true),
      { rootMargin: "300px" },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [isNear]);
  return (
    <div ref={ref} style={isNear ? undefined : { minHeight: height }}>
      {isNear && children}
    </div>
  );
}
