// SPDX-License-Identifier: MIT
import { LoaderCircle } from "lucide-react";
import { cn } from "@/components/cn";

/** Something is under way. With a `label` it says so to screen readers, too. */
export function Spinner({ className, label }: { className?: string; label?: string }) {
  const icon = (
    <LoaderCircle
      aria-hidden
      className={cn("size-5 animate-spin motion-reduce:animate-none", className)}
    />
  );
  if (!label) return icon;
  return (
    <span role="status" className="inline-flex items-center">
      {icon}
      <span className="sr-only">{label}</span>
    </span>
  );
}
