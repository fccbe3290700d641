// SPDX-License-Identifier: MIT
/** Requests that begin a run: an answer may be left, what was said arrives. */

const BEGINS_RUN = /\/runs\/stream$/;

function pathOf(input: RequestInfo | URL): string {
  return new URL(input instanceof Request ? input.url : input, location.href).pathname;
}

/** `fetch` that takes back no request which begins a run; it leaves only the answer to it. */
export function arrivingFetch(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const { signal, ...rest } = init;
  if (!signal || !BEGINS_RUN.test(pathOf(input))) return fetch(input, init);
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const own = new AbortController();
    let isThere = false;
    const leave = () => (isThere ? own.abort(signal.reason) : reject(signal.reason));
    signal.addEventListener("abort", leave, { once: true });
    fetch(input, { ...rest, signal: own.signal }).then((response) => {
      isThere = true;
      if (signal.aborted) own.abort(signal.reason);
      resolve(response);
    }, reject);
  });
}
