// SPDX-License-Identifier: MIT
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { BlobCache } from "@/api/blobs";

let made = 0;
const revoked: string[] = [];

beforeEach(() => {
  made = 0;
  revoked.length = 0;
  vi.spyOn(URL, "createObjectURL").mockImplementation(() => `blob:${++made}`);
  vi.spyOn(URL, "revokeObjectURL").mockImplementation((url) => void revoked.push(url));
});
afterEach(() => vi.restoreAllMocks());

it("loads once for all who show it, and keeps it for a look back", async () => {
  const load = vi.fn(async () => new Blob());
  const cache = new BlobCache(load, 1);
  expect(await Promise.all([cache.acquire("a"), cache.acquire("a")])).toEqual(["blob:1", "blob:1"]);
  cache.release("a");
  cache.release("a");
  expect(await cache.acquire("a")).toBe("blob:1");
  expect(load).toHaveBeenCalledTimes(1);
  expect(revoked).toEqual([]);
});

it("revokes the oldest that nobody shows, and never what is shown", async () => {
  const cache = new BlobCache(async () => new Blob(), 1);
  await cache.acquire("shown");
  for (const key of ["a", "b", "c"]) {
    await cache.acquire(key);
    cache.release(key);
  }
  expect(revoked).toEqual(["blob:2", "blob:3"]);
});

it("revokes what was released while it was on its way", async () => {
  let come: (blob: Blob) => void = () => {};
  const cache = new BlobCache(() => new Promise<Blob>((resolve) => (come = resolve)), 0);
  const url = cache.acquire("a");
  cache.release("a");
  come(new Blob());
  await url;
  expect(revoked).toEqual(["blob:1"]);
});

it("asks again after a failure", async () => {
  const load = vi.fn().mockRejectedValueOnce(new Error("gone")).mockResolvedValue(new Blob());
  const cache = new BlobCache(load);
  await expect(cache.acquire("a")).rejects.toThrow("gone");
  cache.release("a");
  expect(await cache.acquire("a")).toBe("blob:1");
});
