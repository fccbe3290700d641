// SPDX-License-Identifier: MIT
import { Label, Switch as RadixSwitch } from "radix-ui";
import { type ComponentProps, createContext, type ReactNode, use, useId } from "react";
import { cn, focusRing } from "@/components/cn";

interface FieldIds {
  id: string;
  describedBy?: string;
  invalid: boolean;
}

const FieldContext = createContext<FieldIds | null>(null);

export interface FieldProps {
  label: ReactNode;
  /** What to know before filling it in. */
  hint?: ReactNode;
  /** What is wrong; it is read out. */
  error?: ReactNode;
  /** One TextInput, Select or Switch: it gets the label, the hint and the error. */
  children: ReactNode;
  className?: string;
}

/** A control with its label, hint and error. */
export function Field({ label, hint, error, children, className }: FieldProps) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div className={cn("flex flex-col gap-1.5", className)}>
      <Label.Root htmlFor={id} className="text-sm font-medium">
        {label}
      </Label.Root>
      <FieldContext value={{ id, describedBy: described || undefined, invalid: Boolean(error) }}>
        {children}
      </FieldContext>
      {hint && (
        <p id={`${id}-hint`} className="text-xs text-muted">
          {hint}
        </p>
      )}
      {error && (
        <p id={`${id}-error`} role="alert" className="text-xs text-error">
          {error}
        </p>
      )}
    </div>
  );
}

/** What a control inside a {@link Field} takes from it; what it has itself counts more. */
function useField() {
  const field = use(FieldContext);
  if (!field) return {};
  return {
    id: field.id,
    "aria-describedby": field.describedBy,
    "aria-invalid": field.invalid || undefined,
  };
}

/** The look of everything that text is typed into. 16 px on phones, else they zoom in. */
export const inputClass = cn(
  "w-full rounded-lg border border-muted/70 bg-page px-3 text-sm text-text",
  "placeholder:text-muted disabled:opacity-50 aria-invalid:border-error pointer-coarse:text-base",
  focusRing,
);

/** One line of text. */
export function TextInput({ className, ...props }: ComponentProps<"input">) {
  const field = useField();
  return (
    <input
      type="text"
      {...field}
      {...props}
      className={cn(inputClass, "h-9 pointer-coarse:h-11", className)}
    />
  );
}

export interface SelectOption {
  value: string;
  label: string;
}

export interface SelectProps extends Omit<ComponentProps<"select">, "onChange" | "value"> {
  value: string;
  options: readonly SelectOption[];
  onValueChange: (value: string) => void;
}

/** One of a few; the browser's own list, which phones and screen readers know. */
export function Select({ value, options, onValueChange, className, ...props }: SelectProps) {
  const field = useField();
  return (
    <select
      {...field}
      {...props}
      value={value}
      onChange={(event) => onValueChange(event.target.value)}
      className={cn(inputClass, "h-9 cursor-pointer pr-2 pointer-coarse:h-11", className)}
    >
      {options.map((option) => (
        <option key={option.value} value={option.value} className="bg-raised text-text">
          {option.label}
        </option>
      ))}
    </select>
  );
}

export interface SwitchProps
  extends Omit<ComponentProps<typeof RadixSwitch.Root>, "onChange" | "children"> {
  checked: boolean;
  onCheckedChange: (checked: boolean) => void;
}

/** On or off, at once. */
export function Switch({ className, ...props }: SwitchProps) {
  const field = useField();
  return (
    <RadixSwitch.Root
      {...field}
      {...props}
      className={cn(
        "relative h-6 w-10 shrink-0 cursor-pointer rounded-full border border-muted bg-panel",
        "disabled:cursor-not-allowed disabled:opacity-50 data-[state=checked]:border-accent",
        "data-[state=checked]:bg-accent before:absolute before:-inset-2 before:content-['']",
        focusRing,
        className,
      )}
    >
      <RadixSwitch.Thumb
        className={cn(
          "block size-4 translate-x-1 rounded-full bg-muted transition-transform",
          "data-[state=checked]:translate-x-5 data-[state=checked]:bg-on-accent",
          "motion-reduce:transition-none",
        )}
      />
    </RadixSwitch.Root>
  );
}
