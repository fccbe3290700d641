// SPDX-License-Identifier: MIT
import { expect, it } from "vitest";
import { dispositionName, downloadPath } from "@/api/files";

it.each([
  ['attachment; filename="a b.csv"', "a b.csv"],
  [`attachment; filename="___.txt"; filename*=UTF-8''%E6%96%87.txt`, "文.txt"],
  [`attachment; filename="ok.txt"; filename*=UTF-8''%E6%9`, "ok.txt"],
  ['attachment; filename="../../etc/passwd"', "passwd"],
  [`attachment; filename*=UTF-8''..%2F..%2Fx`, "x"],
  ['attachment; filename=".."', null],
  ["attachment", null],
  [null, null],
])("%s is named %s", (header, name) => {
  expect(dispositionName(header)).toBe(name);
});

it("encodes every part of a download's path", () => {
  expect(downloadPath("t/1", "s&2", "/workspace/ä b?.txt")).toBe(
    "/threads/t%2F1/files/download?session_id=s%262&path=%2Fworkspace%2F%C3%A4%20b%3F.txt",
  );
});
