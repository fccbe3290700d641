// SPDX-License-Identifier: MIT
import { expect, it } from "vitest";
import { describeError } from "@/lib/errors";

const named = (name: string, message: string, more = {}) =>
  Object.assign(new Error(message), { name, ...more });

it("says what the server said", () => {
  const http = named("HTTPError", 'HTTP 409: {"detail":"the thread is busy","error":"CONFLICT"}', {
    status: 409,
  });
  expect(describeError(http)).toEqual({
    kind: "",
    text: "the thread is busy",
    offline: false,
    status: 409,
  });
  expect(describeError(named("GraphRecursionError", "too long")).kind).toBe("GraphRecursionError");
  expect(describeError({ error: "ModelError", message: "no key" })).toMatchObject({
    kind: "ModelError",
    text: "no key",
  });
  expect(describeError("plain {text}").text).toBe("plain {text}");
});

it("knows when nothing answers", () => {
  const offline = [
    new TypeError("Failed to fetch"),
    named("MaxReconnectAttemptsError", "Exceeded maximum"),
    named("ConnectionError", "Unable to connect to LangGraph server."),
    named("ApiError", "x", { status: 0 }),
  ];
  for (const error of offline) expect(describeError(error).offline).toBe(true);
  const online = [new TypeError("x is undefined"), named("ConnectionError", "of the model")];
  for (const error of online) expect(describeError(error).offline).toBe(false);
});
