// SPDX-License-Identifier: MIT
/** What a cell displays: a MIME type with its data in place, or a reference to a stored blob. */
export interface DisplayItem {
  type: string;
  data?: unknown;
  /** SHA-256 of the stored bytes. */
  blob?: string;
  size?: number;
  text?: string;
  metadata?: Record<string, unknown>;
}
