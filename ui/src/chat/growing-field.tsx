// SPDX-License-Identifier: MIT
import type { ComponentProps } from "react";
import TextareaAutosize from "react-textarea-autosize";
import { cn } from "@/components/cn";

/** Measuring by script lays out the whole page for each letter, so it is for other browsers. */
const growsByItself = CSS.supports("field-sizing", "content");

/** The height of `maxRows` lines. */
const heights = { 12: "max-h-[18rem]", 20: "max-h-[30rem]" };

export interface GrowingFieldProps extends Omit<ComponentProps<"textarea">, "style"> {
  maxRows: keyof typeof heights;
}

/** A text field that is as high as its text, up to some lines. */
export function GrowingField({ maxRows, className, ...props }: GrowingFieldProps) {
  if (!growsByItself)
    return <TextareaAutosize maxRows={maxRows} className={className} {...props} />;
  return (
    <textarea
      rows={1}
      className={cn("field-sizing-content", heights[maxRows], className)}
      {...props}
    />
  );
}
