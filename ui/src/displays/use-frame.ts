// SPDX-License-Identifier: MIT
/** The page's end of a frame: it hears only its own one, and believes it nothing but a height. */
import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import {
  type FrameMessage,
  LOADS_MAX,
  MESSAGES_MAX,
  parseFrameMessage,
  RESIZES_MAX,
} from "@/displays/frame-protocol";
import { safeHref } from "@/markdown/links";

export interface Frame {
  ref: RefObject<HTMLIFrameElement | null>;
  /**
   * How often the frame has said that it is there; a frame that was loaded anew has forgotten all.
   */
  ready: number;
  /** The height it asks for; not bounded. */
  height: number | null;
  /** An address that somebody in it clicked on. */
  link: string | null;
  failed: string | null;
  drawn: boolean;
  post: (message: unknown) => void;
}

/** A frame's state; `onPicture` gets a picture that was asked for by the user. */
export function useFrame(onPicture?: (image: string) => void): Frame {
  const ref = useRef<HTMLIFrameElement>(null);
  const resizes = useRef(0);
  const messages = useRef(0);
  const picture = useRef(onPicture);
  picture.current = onPicture;
  const [state, setState] = useState({
    ready: 0,
    height: null as number | null,
    link: null as string | null,
    failed: null as string | null,
    drawn: false,
  });
  useEffect(() => {
    const take = (message: FrameMessage) => {
      if (message.type === "ready")
        setState((old) => ({ ...old, ready: Math.min(old.ready + 1, LOADS_MAX) }));
      else if (message.type === "drawn") setState((old) => ({ ...old, drawn: true, failed: null }));
      else if (message.type === "failed") setState((old) => ({ ...old, failed: message.reason }));
      else if (message.type === "link")
        setState((old) => ({ ...old, link: safeHref(message.href) }));
      else if (message.type === "picture") picture.current?.(message.image);
      else if (resizes.current++ < RESIZES_MAX)
        setState((old) => ({ ...old, height: message.height }));
    };
    const listener = ({ source, data }: MessageEvent) => {
      if (source === null || source !== ref.current?.contentWindow) return;
      if (messages.current++ >= MESSAGES_MAX) return;
      const message = parseFrameMessage(data);
      if (message) take(message);
    };
    addEventListener("message", listener);
    return () => removeEventListener("message", listener);
  }, []);
  // Its origin is opaque, so that there is no name for it; the window is the right one.
  const post = useCallback(
    (message: unknown) => ref.current?.contentWindow?.postMessage(message, "*"),
    [],
  );
  return { ref, ...state, post };
}
