// SPDX-License-Identifier: MIT
/** How the elements of Markdown are shown. */
import { ExternalLink, ImageOff } from "lucide-react";
import { type ComponentProps, lazy, type ReactNode, Suspense } from "react";
import { useTranslation } from "react-i18next";
import type { Components } from "react-markdown";
import { base64Sides, PIXELS_MAX } from "@/displays/bytes";
import { CodeBlock } from "@/markdown/code-block";
import { hostOf, isInlineImage, safeHref } from "@/markdown/links";
import { Scrollable } from "@/markdown/scrollable";

/** A link that leaves the page; its target learns nothing of where it was. */
export function OutLink({ href, children }: { href: string; children: ReactNode }) {
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
      {children}
    </a>
  );
}

function Anchor({ href, children, id, className }: ComponentProps<"a">) {
  const safe = safeHref(href);
  if (safe) return <OutLink href={safe}>{children}</OutLink>;
  if (href?.startsWith("#user-content-"))
    return (
      <a href={href} id={id} className={className}>
        {children}
      </a>
    );
  return <span title={href}>{children}</span>;
}

/** Whether a picture in the text has a size that is known and not too large. */
function isSmall(src: string): boolean {
  const sides = base64Sides(src.slice(src.indexOf(",") + 1));
  return sides !== null && sides.width * sides.height <= PIXELS_MAX;
}

/** An image that is not in the text is not loaded: who asks for it would be seen by its host. */
function Picture({ src, alt }: ComponentProps<"img">) {
  const { t } = useTranslation();
  const name = alt || t("tools.image");
  if (typeof src === "string" && isInlineImage(src) && isSmall(src))
    return <img src={src} alt={name} />;
  const safe = safeHref(typeof src === "string" ? src : null);
  const note = (
    <>
      <ImageOff aria-hidden className="mr-1 inline size-4 align-text-bottom" />
      {name}
    </>
  );
  if (!safe) return <span>{note}</span>;
  return (
    <OutLink href={safe}>
      {note} ({t("tools.imageNotLoaded", { host: hostOf(safe) })})
      <ExternalLink aria-hidden className="ml-1 inline size-3" />
    </OutLink>
  );
}

/** The text of an element's children. */
function textOf(children: ReactNode): string {
  if (typeof children === "string" || typeof children === "number") return String(children);
  if (Array.isArray(children)) return children.map(textOf).join("");
  return "";
}

const Formula = lazy(() => import("@/markdown/formula"));

/** A formula; until it can be set it is shown as it is written. */
function LazyFormula({ text, display }: { text: string; display: boolean }) {
  return (
    <Suspense fallback={<code>{text}</code>}>
      <Formula text={text} display={display} />
    </Suspense>
  );
}

function InlineCode({ className, children }: ComponentProps<"code">) {
  if (className?.includes("math-inline"))
    return <LazyFormula text={textOf(children)} display={false} />;
  return <code className={className}>{children}</code>;
}

/** A fenced block: the one child is the code. */
function Pre({ children }: ComponentProps<"pre">) {
  const code = (Array.isArray(children) ? children[0] : children) as
    | { props?: ComponentProps<"code"> }
    | undefined;
  const language = /language-(\S+)/.exec(code?.props?.className ?? "")?.[1];
  const text = textOf(code?.props?.children).replace(/\n$/, "");
  if (code?.props?.className?.includes("math-display")) return <LazyFormula text={text} display />;
  return <CodeBlock code={text} language={language} className="my-3" />;
}

function Table({ children }: ComponentProps<"table">) {
  const { t } = useTranslation();
  return (
    <Scrollable label={t("tools.table")} className="my-3">
      <table className="my-0">{children}</table>
    </Scrollable>
  );
}

export const components: Components = {
  a: Anchor,
  code: InlineCode,
  img: Picture,
  pre: Pre,
  table: Table,
};

/** Addresses are judged where they are shown; here they only lose what is no address at all. */
export function urlTransform(url: string): string {
  return /^[a-z][a-z0-9+.-]*:/i.test(url) || url.startsWith("#") ? url : "";
}
