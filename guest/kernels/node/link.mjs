// SPDX-License-Identifier: MIT
/**
 * The main thread's side of the worker: what a cell sends, and the two places where the main thread
 * has to wait for init (a display's barrier, a line of input). It waits by Atomics.wait, which
 * Runtime.terminateExecution can end, so a wait never stands in the way of an interrupt.
 */

import { MessageChannel, SHARE_ENV, Worker, receiveMessageOnPort } from 'node:worker_threads';
import { K_DISPLAY, K_DONE, K_INPUT_REQUEST } from './frames.mjs';

/** Slots of the shared Int32Array. */
export const SLOT_ACKED = 0; // number of the last acknowledged display
export const SLOT_INPUT = 1; // counts answers to input requests
export const SLOT_INTERRUPT = 2; // the cell that was told to stop last

// Taken now: user code may replace the globals, and must not break the kernel by it.
const { load, wait } = Atomics;
const { stringify } = JSON;
const encoder = new TextEncoder();
const encode = encoder.encode.bind(encoder);

/**
 * The bytes of a value as JSON. Lone surrogates become U+FFFD, as no UTF-8 and few JSON readers can
 * hold them; the alternation steps over escaped backslashes.
 */
export function jsonEncode(value) {
  const text = stringify(value);
  const clean = text.includes('\\ud')
    ? text.replace(/\\(?:(ud[89a-f][0-9a-f]{2})|.)/g, (all, lone) => (lone ? '\\ufffd' : all))
    : text;
  return encode(clean);
}

export class Link {
  #shared = new Int32Array(new SharedArrayBuffer(12));
  #worker;
  #inputPort;
  #displays = 0;

  /** Starts the worker, which starts to read the control socket. */
  constructor() {
    const { port1, port2 } = new MessageChannel();
    this.#inputPort = port1;
    port1.unref();
    this.#worker = new Worker(new URL('control.mjs', import.meta.url), {
      env: SHARE_ENV,
      workerData: { shared: this.#shared, inputPort: port2 },
      transferList: [port2],
    });
    this.#worker.on('error', (error) => {
      process.stderr.write(`node kernel: ${error.stack}\n`);
      process.exit(70);
    });
  }

  /** Calls `handler` with each {op: 'exec'|'interrupt', cell, code?}. */
  onMessage(handler) {
    this.#worker.on('message', handler);
  }

  /** True when init has asked to stop this cell. */
  interrupted(cell) {
    return load(this.#shared, SLOT_INTERRUPT) === cell;
  }

  #send(frames) {
    this.#worker.postMessage(frames, frames.map(({ body }) => body.buffer));
  }

  /** Sends a display and waits until init has drained the streams up to it. */
  display(cell, body) {
    this.#displays = (this.#displays + 1) | 0;
    const seq = this.#displays;
    this.#send([{ type: K_DISPLAY, stream: cell, body, seq }]);
    for (;;) {
      const acked = load(this.#shared, SLOT_ACKED);
      if (((acked - seq) | 0) >= 0) {
        return;
      }
      wait(this.#shared, SLOT_ACKED, acked);
    }
  }

  /** Asks for a line and waits for it. Returns null where nobody can answer. */
  input(cell, prompt, password) {
    const body = jsonEncode({ prompt, password });
    let seen = load(this.#shared, SLOT_INPUT);
    this.#send([{ type: K_INPUT_REQUEST, stream: cell, body }]);
    for (;;) {
      wait(this.#shared, SLOT_INPUT, seen);
      seen = load(this.#shared, SLOT_INPUT);
      // The answer to a request that was interrupted may still lie in the port.
      for (let got; (got = receiveMessageOnPort(this.#inputPort)); ) {
        if (got.message.cell === cell) {
          return got.message.line;
        }
      }
    }
  }

  /** Ends a cell: its result or error, if any, as [type, body], then K_DONE. */
  done(cell, status, last) {
    const frames = [{ type: K_DONE, stream: cell, body: jsonEncode({ status }) }];
    if (last) {
      frames.unshift({ type: last[0], stream: cell, body: last[1] });
    }
    this.#send(frames);
  }
}
