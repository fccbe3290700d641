// SPDX-License-Identifier: MIT
/**
 * The page's policy lets in only style elements that carry the nonce of this answer. The server
 * writes it into the page; libraries that add a style element at run time get it from here.
 */
import { setNonce } from "get-nonce";

/** The nonce of this page, or undefined where no policy asks for one. */
export function cspNonce(): string | undefined {
  const meta = document.querySelector<HTMLElement>("meta[property=csp-nonce]");
  return meta?.nonce || meta?.getAttribute("nonce") || undefined;
}

const nonce = cspNonce();
if (nonce) setNonce(nonce);
