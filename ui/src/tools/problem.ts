// SPDX-License-Identifier: MIT
/** What went wrong in a call: in words of the page where it knows them, else in the server's. */
import type { TFunction } from "i18next";
import { revealHidden } from "@/markdown/hidden";
import { type CellError, causeOf, type Payload } from "@/tools/payload";

/** An error of a call, taken apart. */
export interface CallProblem {
  /** What the page knows of it. */
  known: string | null;
  /** What the server says, which is in English. */
  said: string | null;
  /** What the code itself has thrown, in its own words. */
  thrown: CellError | null;
}

/** Why something ended, in a sentence; null for what has no words here. */
export function causeText(t: TFunction, cause: string): string | null {
  const { key, number } = causeOf(cause);
  return key === "other" ? null : t(`tools.cause.${key}`, { number });
}

/** "CODE: what happened (cause)" or only "CODE". */
function ofText(t: TFunction, error: string): CallProblem {
  const [code = ""] = error.split(":");
  const said = revealHidden(error.slice(code.length).replace(/^: */, ""));
  if (code === "INVALID_INPUT")
    return { known: t("tools.error.invalid"), said: said || null, thrown: null };
  if (code !== "CONTAINER_DIED") return { known: null, said: revealHidden(error), thrown: null };
  const cause = causeText(t, /\(([a-z:0-9]+)\)$/.exec(error)?.[1] ?? "");
  const known = [t("tools.error.died"), cause].filter(Boolean).join(" ");
  return { known, said: cause ? null : said, thrown: null };
}

/** What went wrong; null where nothing did. */
export function problemOf(t: TFunction, payload: Payload | null): CallProblem | null {
  const error = payload?.error;
  if (!error) return null;
  if (typeof error === "string") return ofText(t, error);
  const known = payload.cause ? causeText(t, payload.cause) : null;
  // What a limit has ended may have thrown something first, which says more.
  const isServers = error.type === "Died" || error.message === payload.message;
  if (!known || !isServers) return { known: null, said: null, thrown: error };
  return { known, said: revealHidden(error.message), thrown: null };
}

/** What was thrown, in a line or more. */
export function thrownText(error: CellError): string {
  return revealHidden(`${error.type}: ${error.message}`);
}

/** One line that says what went wrong; null where nothing did. */
export function shortProblem(t: TFunction, payload: Payload | null): string | null {
  const problem = problemOf(t, payload);
  if (!problem) return null;
  const { known, said, thrown } = problem;
  const text = known ?? (thrown ? thrownText(thrown) : t("tools.said", { text: said }));
  return (text.split("\n")[0] ?? "").slice(0, 300);
}
