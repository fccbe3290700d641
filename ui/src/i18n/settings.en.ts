// SPDX-License-Identifier: MIT
export const settings = {
  close: "Close",
  cancel: "Cancel",
  title: "Settings",
  toast: { label: "Note", viewport: "Notes ({hotkey})" },
};
