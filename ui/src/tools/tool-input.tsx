// SPDX-License-Identifier: MIT
/** The arguments of a call, to be looked at or changed before it is approved. */

/** What {@link ToolInput} shows. */
export interface ToolInputProps {
  name: string;
  args: Record<string, unknown>;
  /** Makes it editable: is given the arguments, or null while the text is no valid JSON object. */
  onChange?: (args: Record<string, unknown> | null) => void;
}

/** The arguments of a call as code or JSON. */
export function ToolInput({ args }: ToolInputProps) {
  return <pre>{JSON.stringify(args, null, 2)}</pre>;
}
