// SPDX-License-Identifier: MIT
/**
 * The kernel protocol's frames (docs/PROTOCOL.md, sections 1 and 2): numbers, writer, reader.
 * Both threads of the kernel use it; nothing here touches a descriptor.
 */

'use strict';

const K_EXEC = 0x20;
const K_ACK = 0x21;
const K_INPUT = 0x22;
const K_INTERRUPT = 0x23;
const K_READY = 0x30;
const K_DISPLAY = 0x31;
const K_RESULT = 0x32;
const K_ERROR = 0x33;
const K_DONE = 0x34;
const K_INPUT_REQUEST = 0x35;

/** After one of these the kernel waits for K_ACK. */
const BARRIERS = new Set([K_DISPLAY, K_RESULT, K_ERROR]);

const FD = 3;
const TOKEN_SIZE = 16;
const NO_TOKEN = new Uint8Array(TOKEN_SIZE);

/** The longest payload that any frame may have. */
const PAYLOAD_MAX = (64 << 20) + (4 << 10);
const HEADER_SIZE = 9;

/** The length of the payload after a header. Throws where it is over the protocol's limit. */
function payloadSize(head) {
  const size = head.readUInt32LE(0);
  if (size > PAYLOAD_MAX) {
    throw new RangeError(`frame of ${size} bytes`);
  }
  return size;
}

/** Header and token of a frame; a body of `bodySize` bytes follows it. */
function frameHead(type, stream, token, bodySize) {
  const head = Buffer.allocUnsafe(HEADER_SIZE + TOKEN_SIZE);
  head.writeUInt32LE(TOKEN_SIZE + bodySize, 0);
  head.writeUInt8(type, 4);
  head.writeUInt32LE(stream, 5);
  head.set(token, HEADER_SIZE);
  return head;
}

/** Cuts a byte stream into frames and hands each to `onFrame(type, stream, payload)`. */
class FrameReader {
  #onFrame;
  #chunks = [];
  #have = 0;

  constructor(onFrame) {
    this.#onFrame = onFrame;
  }

  /** Takes the next bytes. Throws as payloadSize does. */
  push(chunk) {
    this.#chunks.push(chunk);
    this.#have += chunk.length;
    while (this.#have >= HEADER_SIZE) {
      const length = payloadSize(this.#joined(HEADER_SIZE));
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

module.exports = {
  K_EXEC,
  K_ACK,
  K_INPUT,
  K_INTERRUPT,
  K_READY,
  K_DISPLAY,
  K_RESULT,
  K_ERROR,
  K_DONE,
  K_INPUT_REQUEST,
  BARRIERS,
  FD,
  TOKEN_SIZE,
  NO_TOKEN,
  HEADER_SIZE,
  payloadSize,
  frameHead,
  FrameReader,
};
