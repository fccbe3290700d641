// SPDX-License-Identifier: MIT
/** The bytes of displays, and what their heads tell of a picture's size. */
import { isBase64, plainType } from "@/displays/kinds";

/** Decode base64, which kernels break into lines; null for what is none. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    const binary = atob(text.replace(/\s+/g, ""));
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return bytes;
  } catch {
    return null;
  }
}

/** The text of a display's data: JSON is written out. */
export function dataText(data: unknown): string {
  if (typeof data === "string") return data;
  return data === undefined ? "" : JSON.stringify(data, null, 2);
}

/** A display's data as a file of its type; null where it is broken. */
export function dataBlob(type: string, data: unknown): Blob | null {
  const plain = plainType(type);
  if (!isBase64(type) || typeof data !== "string")
    return new Blob([dataText(data)], { type: plain });
  const bytes = decodeBase64(data);
  return bytes && new Blob([bytes], { type: plain });
}

/** The sides of a picture. */
export interface Sides {
  width: number;
  height: number;
}

function pngSides(view: DataView): Sides {
  return { width: view.getUint32(16), height: view.getUint32(20) };
}

function gifSides(view: DataView): Sides {
  return { width: view.getUint16(6, true), height: view.getUint16(8, true) };
}

function webpSides(view: DataView): Sides | null {
  const kind = view.getUint32(12);
  const uint24 = (at: number) => view.getUint16(at, true) | (view.getUint8(at + 2) << 16);
  if (kind === 0x56503858) return { width: uint24(24) + 1, height: uint24(27) + 1 };
  if (kind === 0x5650384c) {
    const bits = view.getUint32(21, true);
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  if (kind !== 0x56503820) return null;
  return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
}

/** A JPEG tells its size in the segment that begins the frame. */
function jpegSides(view: DataView): Sides | null {
  let at = 2;
  while (at + 9 < view.byteLength) {
    if (view.getUint8(at) !== 0xff) return null;
    const marker = view.getUint8(at + 1);
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { height: view.getUint16(at + 5), width: view.getUint16(at + 7) };
    at += marker === 0xff ? 1 : 2 + view.getUint16(at + 2);
  }
  return null;
}

/** The size of a picture by its head alone; null for what is no picture that is known. */
export function pictureSides(bytes: Uint8Array): Sides | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.byteLength < 30) return null;
  const head = view.getUint32(0);
  if (head === 0x89504e47) return pngSides(view);
  if (head === 0x47494638) return gifSides(view);
  if (head === 0x52494646) return webpSides(view);
  return head >>> 16 === 0xffd8 ? jpegSides(view) : null;
}

const HEAD = 65_536;

/** The size of a picture in base64: by its beginning, or by all of it where that does not tell. */
export function base64Sides(text: string): Sides | null {
  const head = decodeBase64(text.slice(0, HEAD).replace(/=+$/, ""));
  const sides = head && pictureSides(head);
  if (sides || text.length <= HEAD) return sides;
  const whole = decodeBase64(text);
  return whole && pictureSides(whole);
}

/** More pixels than this are not shown: a small file can be a very large picture. */
export const PIXELS_MAX = 40_000_000;
