// SPDX-License-Identifier: MIT
/** What went wrong, in words for people. */

import { revealHidden } from "@/markdown/hidden";

/** An error as it is shown: a short kind, if there is one, and the text. */
export interface Problem {
  kind: string;
  text: string;
  /** The server could not be reached: it may come back by itself. */
  offline: boolean;
  /** The HTTP status, 0 where there is none. */
  status: number;
}

/** What browsers and the SDK say when nothing answers. */
const NETWORK = /failed to fetch|network ?error|load failed|unable to connect to langgraph/i;
const NETWORK_NAMES = ["TypeError", "ConnectionError"];

/** The texts of an error answer, which is JSON in one of a few forms, or plain. */
function bodyText(text: string): string {
  const start = text.indexOf("{");
  if (start < 0) return text;
  try {
    const body = JSON.parse(text.slice(start)) as Record<string, unknown>;
    for (const name of ["detail", "message", "error"])
      if (typeof body[name] === "string" && body[name]) return body[name];
  } catch {
    // It only looked like JSON.
  }
  return text;
}

function isOffline(error: Error & { status?: number }): boolean {
  if (error.name === "ApiError") return error.status === 0;
  if (error.name === "MaxReconnectAttemptsError") return true;
  return NETWORK_NAMES.includes(error.name) && NETWORK.test(error.message);
}

function describe(error: unknown): Problem {
  if (typeof error === "string")
    return { kind: "", text: bodyText(error), offline: false, status: 0 };
  if (!(error instanceof Error)) {
    const body = (error ?? {}) as Record<string, unknown>;
    const text = typeof body.message === "string" ? body.message : JSON.stringify(error);
    const kind = typeof body.error === "string" && body.error !== text ? body.error : "";
    return { kind, text: text ?? "", offline: false, status: 0 };
  }
  const { status } = error as { status?: number };
  const named = !["Error", "TypeError", "HTTPError", "StreamError", "ApiError"].includes(
    error.name,
  );
  return {
    kind: named ? error.name : "",
    text: bodyText(error.message),
    offline: isOffline(error),
    status: typeof status === "number" ? status : 0,
  };
}

/** Describe anything that was thrown or sent as an error; what it says hides nothing. */
export function describeError(error: unknown): Problem {
  const problem = describe(error);
  return { ...problem, kind: revealHidden(problem.kind), text: revealHidden(problem.text) };
}
