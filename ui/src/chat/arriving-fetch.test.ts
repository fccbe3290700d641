// SPDX-License-Identifier: MIT
import { afterEach, expect, it, vi } from "vitest";
import { arrivingFetch } from "@/chat/arriving-fetch";

const RUN = "http://here.test/threads/a/runs/stream";

/** A `fetch` that answers when it is told to, and what it was given. */
function slowFetch() {
  const asked: { init?: RequestInit; answer: (response: Response) => void }[] = [];
  vi.stubGlobal("location", new URL("http://here.test/"));
  vi.stubGlobal(
    "fetch",
    (_: unknown, init?: RequestInit) =>
      new Promise((answer, refuse) => {
        init?.signal?.addEventListener("abort", () => refuse(init.signal?.reason));
        asked.push({ init, answer });
      }),
  );
  return asked;
}

afterEach(() => vi.unstubAllGlobals());

it("does not take back what begins a run, and leaves its answer", async () => {
  const asked = slowFetch();
  const reader = new AbortController();
  const answer = arrivingFetch(RUN, { method: "POST", signal: reader.signal });
  reader.abort();
  await expect(answer).rejects.toMatchObject({ name: "AbortError" });
  expect(asked[0]?.init?.signal?.aborted).toBe(false);
  asked[0]?.answer(new Response("never read"));
  await vi.waitFor(() => expect(asked[0]?.init?.signal?.aborted).toBe(true));
});

it("ends an answer that is being read", async () => {
  const asked = slowFetch();
  const reader = new AbortController();
  const answer = arrivingFetch(RUN, { signal: reader.signal });
  asked[0]?.answer(new Response("x"));
  await answer;
  reader.abort();
  expect(asked[0]?.init?.signal?.aborted).toBe(true);
});

it("leaves all else as it is", async () => {
  const asked = slowFetch();
  const reader = new AbortController();
  const answer = arrivingFetch("http://here.test/threads/a/history", { signal: reader.signal });
  reader.abort();
  await expect(answer).rejects.toMatchObject({ name: "AbortError" });
  expect(asked[0]?.init?.signal?.aborted).toBe(true);
});
