// SPDX-License-Identifier: MIT
/** Hand what a blob URL stands for to the browser's downloads. */
export function saveUrl(url: string, name: string) {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
}
