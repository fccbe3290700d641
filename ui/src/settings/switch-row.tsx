// SPDX-License-Identifier: MIT
import { useId } from "react";
import { Switch, type SwitchProps } from "@/components/field";

export interface SwitchRowProps extends SwitchProps {
  label: string;
  hint: string;
}

/** A switch at the end of the line that says what it does. */
export function SwitchRow({ label, hint, ...props }: SwitchRowProps) {
  const id = useId();
  return (
    <div className="flex items-start gap-4">
      <div className="min-w-0 flex-1">
        <label htmlFor={id} className="text-sm font-medium">
          {label}
        </label>
        <p id={`${id}-hint`} className="mt-0.5 text-xs text-muted">
          {hint}
        </p>
      </div>
      <Switch id={id} aria-describedby={`${id}-hint`} {...props} />
    </div>
  );
}
