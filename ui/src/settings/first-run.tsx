// SPDX-License-Identifier: MIT

export interface FirstRunProps {
  /** Puts an example into the composer. */
  onExample: (text: string) => void;
  /** Opens the settings at the model. */
  onSettings: () => void;
}

/** What is shown in an empty chat. */
export function FirstRun(_props: FirstRunProps) {
  return null;
}
