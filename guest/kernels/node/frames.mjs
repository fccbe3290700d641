// SPDX-License-Identifier: MIT
/**
 * The kernel protocol's frames (docs/PROTOCOL.md, sections 1 and 2): numbers, writer, reader.
 * Both threads of the kernel use it; nothing here touches a descriptor.
 */

export const K_EXEC = 0x20;
export const K_ACK = 0x21;
export const K_INPUT = 0x22;
export const K_INTERRUPT = 0x23;
export const K_READY = 0x30;
export const K_DISPLAY = 0x31;
export const K_RESULT = 0x32;
export const K_ERROR = 0x33;
export const K_DONE = 0x34;
export const K_INPUT_REQUEST = 0x35;

/** After one of these the kernel waits for K_ACK. */
export const BARRIERS = new Set([K_DISPLAY, K_RESULT, K_ERROR]);

export const FD = 3;
export const TOKEN_SIZE = 16;
export const NO_TOKEN = new Uint8Array(TOKEN_SIZE);

/** The longest payload that any frame may have. */
const PAYLOAD_MAX = (64 << 20) + (4 << 10);
const HEADER_SIZE = 9;

/** Header and token of a frame; a body of `bodySize` bytes follows it. */
export function frameHead(type, stream, token, bodySize) {
  const head = Buffer.allocUnsafe(HEADER_SIZE + TOKEN_SIZE);
  head.writeUInt32LE(TOKEN_SIZE + bodySize, 0);
  head.writeUInt8(type, 4);
  head.writeUInt32LE(stream, 5);
  head.set(token, HEADER_SIZE);
  return head;
}

/** Cuts a byte stream into frames and hands each to `onFrame(type, stream, payload)`. */
export class FrameReader {
  #onFrame;
  #chunks = [];
  #have = 0;

  constructor(onFrame) {
    this.#onFrame = onFrame;
  }

  /** Takes the next bytes. Throws where a length is over the protocol's limit. */
  push(chunk) {
    this.#chunks.push(chunk);
    this.#have += chunk.length;
    while (this.#have >= HEADER_SIZE) {
      const head = this.#joined(HEADER_SIZE);
      const length = head.readUInt32LE(0);
      if (length > PAYLOAD_MAX) {
        throw new RangeError(`frame of ${length} bytes`);
      }
      // Chunks are joined only when a frame is whole: a long one must not be copied per chunk.
      if (this.#have < HEADER_SIZE + length) {
        return;
      }
      const frame = this.#joined(HEADER_SIZE + length);
      this.#chunks[0] = frame.subarray(HEADER_SIZE + length);
      this.#have -= HEADER_SIZE + length;
      this.#onFrame(
        frame.readUInt8(4),
        frame.readUInt32LE(5),
        frame.subarray(HEADER_SIZE, HEADER_SIZE + length),
      );
    }
  }

  /** The first chunk, made to hold at least `size` bytes. */
  #joined(size) {
    if (this.#chunks[0].length < size) {
      this.#chunks = [Buffer.concat(this.#chunks)];
    }
    return this.#chunks[0];
  }
}
