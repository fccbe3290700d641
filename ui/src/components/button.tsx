// SPDX-License-Identifier: MIT
import type { ComponentProps, ReactNode } from "react";
import { cn, focusRing } from "@/components/cn";
import { Spinner } from "@/components/spinner";
import { Tooltip } from "@/components/tooltip";

/* Below the pointer a colour goes towards the text's, away from what is written on it. */
const variants = {
  primary:
    "bg-accent text-on-accent hover:bg-[color-mix(in_oklab,var(--color-accent),var(--color-text)_12%)]",
  secondary: "border border-line bg-raised text-text hover:bg-text/8",
  ghost: "text-text hover:bg-text/8",
  danger:
    "bg-error text-page hover:bg-[color-mix(in_oklab,var(--color-error),var(--color-text)_12%)]",
};

const sizes = {
  sm: "h-8 px-2.5 text-sm pointer-coarse:min-h-10",
  md: "h-9 px-3.5 text-sm pointer-coarse:min-h-11",
};

export type ButtonVariant = keyof typeof variants;
export type ButtonSize = keyof typeof sizes;

export interface ButtonProps extends ComponentProps<"button"> {
  variant?: ButtonVariant;
  size?: ButtonSize;
  /** Shows a spinner and takes no clicks; the button keeps its focus. */
  busy?: boolean;
}

const base =
  "inline-flex shrink-0 cursor-pointer items-center justify-center gap-2 rounded-lg font-medium " +
  "whitespace-nowrap select-none disabled:cursor-not-allowed disabled:opacity-50 " +
  "aria-busy:cursor-progress transition-colors motion-reduce:transition-none";

/** A button with a text. */
export function Button({
  variant = "secondary",
  size = "md",
  busy = false,
  className,
  children,
  onClick,
  ...props
}: ButtonProps) {
  return (
    <button
      type="button"
      aria-busy={busy || undefined}
      onClick={busy ? (event) => event.preventDefault() : onClick}
      className={cn(base, variants[variant], sizes[size], focusRing, className)}
      {...props}
    >
      {busy && <Spinner className="size-4" />}
      {children}
    </button>
  );
}

const squares = {
  sm: "size-8 px-0 pointer-coarse:size-10",
  md: "size-9 px-0 pointer-coarse:size-11",
};

export interface IconButtonProps extends Omit<ButtonProps, "children" | "aria-label"> {
  /** What it does: its accessible name and its tooltip. */
  label: string;
  /** The icon. */
  children: ReactNode;
  /** False where a tooltip would be in the way, for example under a menu. */
  tooltip?: boolean;
}

/** A button that shows only an icon; what it does is its name and its tooltip. */
export function IconButton({
  label,
  variant = "ghost",
  size = "md",
  tooltip = true,
  className,
  ...props
}: IconButtonProps) {
  const button = (
    <Button
      aria-label={label}
      variant={variant}
      size={size}
      className={cn(squares[size], "[&>svg]:size-4.5", className)}
      {...props}
    />
  );
  return tooltip ? <Tooltip text={label}>{button}</Tooltip> : button;
}
