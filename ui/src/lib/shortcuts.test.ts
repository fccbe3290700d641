// SPDX-License-Identifier: MIT
import { expect, it } from "vitest";
import { keyName } from "@/lib/shortcuts";

const none = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };

it("names keys alike on all keyboards", () => {
  expect(keyName({ ...none, key: "/" })).toBe("/");
  expect(keyName({ ...none, key: "/", shiftKey: true })).toBe("/");
  expect(keyName({ ...none, key: "O", ctrlKey: true, shiftKey: true })).toBe("mod+shift+o");
  expect(keyName({ ...none, key: ",", metaKey: true })).toBe("mod+,");
  expect(keyName({ ...none, key: "Enter", shiftKey: true })).toBe("shift+enter");
});
