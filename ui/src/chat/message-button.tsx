// SPDX-License-Identifier: MIT
import { IconButton, type IconButtonProps } from "@/components/button";
import { cn } from "@/components/cn";
import { CopyButton } from "@/components/copy-button";

/**
 * A button beside a message. There may be thousands of them, so the browser's own tooltip has to
 * do; they are put away while something runs.
 */
export function MessageButton({ label, className, ...props }: IconButtonProps) {
  return (
    <IconButton
      label={label}
      title={label}
      tooltip={false}
      size="sm"
      className={cn("text-muted group-data-running/talk:invisible", className)}
      {...props}
    />
  );
}

/** Copies a message; it stays in sight while something runs. */
export function MessageCopy({ text }: { text: () => string }) {
  return (
    <CopyButton look={MessageButton} className="group-data-running/talk:visible" text={text} />
  );
}
