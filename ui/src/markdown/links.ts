// SPDX-License-Identifier: MIT
/** Which addresses of a hostile text are links: those that leave the page in a way that is seen. */

const schemes = new Set(["http:", "https:", "mailto:"]);

/** The address as a link may carry it, or null. */
export function safeHref(href: string | undefined | null): string | null {
  if (!href || href.length > 8192) return null;
  try {
    const url = new URL(href);
    if (!schemes.has(url.protocol) || url.username !== "" || url.password !== "") return null;
    return url.href;
  } catch {
    return null;
  }
}

/** Whether an image is in the text itself; no other image is ever loaded. */
export function isInlineImage(src: string | undefined): src is string {
  return src !== undefined && /^data:image\/(png|jpeg|gif|webp);base64,[\w+/=]+$/.test(src);
}

/** What a link is called where its text says nothing: its host. */
export function hostOf(href: string): string {
  const url = new URL(href);
  return url.host || url.pathname;
}
