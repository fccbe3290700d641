// SPDX-License-Identifier: MIT
import { expect, it } from "vitest";
import { distinctName } from "@/chat/use-uploads";

it("tells files of one name apart", () => {
  const taken = new Set(["image.png", "image-2.png", "README", ".env"]);
  expect(distinctName("image.png", taken)).toBe("image-3.png");
  expect(distinctName("README", taken)).toBe("README-2");
  expect(distinctName(".env", taken)).toBe(".env-2");
  expect(distinctName("new.csv", taken)).toBe("new.csv");
});
