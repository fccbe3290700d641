// SPDX-License-Identifier: MIT
/**
 * The main thread's side of the worker: what a cell sends, and the two places where the main thread
 * has to wait for init (a display's barrier, a line of input). It waits by Atomics.wait, which
 * Runtime.terminateExecution can end, so a wait never stands in the way of an interrupt.
 */

'use strict';

const { join } = require('node:path');
const { readSync, writeSync } = require('node:fs');
const { MessageChannel, SHARE_ENV, Worker, receiveMessageOnPort } = require('node:worker_threads');
const wire = require('./frames.cjs');

/** Slots of the shared Int32Array. */
const SLOT_ACKED = 0; // number of the last acknowledged display
const SLOT_INPUT = 1; // counts answers to input requests
const SLOT_INTERRUPT = 2; // the cell that was told to stop last
const SLOT_OWNER = 3; // who owns the socket, see Link
const SLOTS = 4;

const OWNER_NONE = 0; // the first cell runs, the worker is not up yet
const OWNER_MAIN = 1; // the main thread ends the first cell
const OWNER_WORKER = 2;

// Taken now: user code may replace the globals, and must not break the kernel by it.
const { compareExchange, load, notify, store, wait } = Atomics;
const { stringify } = JSON;
const idle = new Int32Array(new SharedArrayBuffer(4)); // to sleep on
const encoder = new TextEncoder();
const encode = encoder.encode.bind(encoder);

/**
 * The bytes of a value as JSON. Lone surrogates become U+FFFD, as no UTF-8 and few JSON readers can
 * hold them; the alternation steps over escaped backslashes.
 */
function jsonEncode(value) {
  const text = stringify(value);
  const clean = text.includes('\\ud')
    ? text.replace(/\\(?:(ud[89a-f][0-9a-f]{2})|.)/g, (all, lone) => (lone ? '\\ufffd' : all))
    : text;
  return encode(clean);
}

/** Reads or writes the socket, again and again should init have made it non-blocking. */
function socketTry(operation) {
  for (;;) {
    try {
      return operation();
    } catch (error) {
      if (error.code !== 'EAGAIN') {
        throw error;
      }
      wait(idle, 0, 0, 1);
    }
  }
}

/** Reads exactly `size` bytes from the socket. */
function bytesRead(size) {
  const bytes = Buffer.allocUnsafe(size);
  for (let have = 0; have < size; ) {
    const got = socketTry(() => readSync(wire.FD, bytes, have, size - have));
    if (got === 0) {
      process.exit(0); // init is gone
    }
    have += got;
  }
  return bytes;
}

function bytesWrite(bytes) {
  for (let have = 0; have < bytes.length; ) {
    have += socketTry(() => writeSync(wire.FD, bytes, have));
  }
}

function frameRead() {
  const head = bytesRead(wire.HEADER_SIZE);
  return {
    type: head.readUInt8(4),
    stream: head.readUInt32LE(5),
    payload: bytesRead(wire.payloadSize(head)),
  };
}

function frameWrite({ type, stream, body }, token) {
  bytesWrite(wire.frameHead(type, stream, token, body.length));
  bytesWrite(body);
}

/**
 * A worker needs as long to start as all the rest of the kernel, and the first cell must not wait
 * for it. So this thread reads the first K_EXEC itself, and if that cell is over before the worker
 * is up, it also sends the end; SLOT_OWNER decides between the two, once. From then on the socket
 * is the worker's.
 */
class Link {
  #shared = new Int32Array(new SharedArrayBuffer(4 * SLOTS));
  #worker;
  #inputPort;
  #displays = 0;
  #firstToken = null; // there only while this thread may still end the first cell

  /** Starts the worker. */
  constructor() {
    const { port1, port2 } = new MessageChannel();
    this.#inputPort = port1;
    port1.unref();
    this.#worker = new Worker(join(__dirname, 'control.cjs'), {
      env: SHARE_ENV,
      workerData: { shared: this.#shared, inputPort: port2 },
      transferList: [port2],
    });
    this.#worker.on('error', (error) => this.#die(error.stack));
  }

  #die(reason) {
    writeSync(2, `node kernel: ${reason}\n`);
    process.exit(70);
  }

  /** Tells init that the kernel is up. Init may send the first cell and signals from here on. */
  ready(info) {
    frameWrite({ type: wire.K_READY, stream: 0, body: jsonEncode(info) }, wire.NO_TOKEN);
  }

  /** Waits for the first cell. Nothing else can happen in this thread before it. */
  first() {
    const { type, stream, payload } = frameRead();
    if (type !== wire.K_EXEC || payload.length < wire.TOKEN_SIZE) {
      this.#die(`the first frame is 0x${type.toString(16)}`);
    }
    this.#firstToken = Uint8Array.from(payload.subarray(0, wire.TOKEN_SIZE));
    this.#worker.postMessage({ cell: stream, token: this.#firstToken });
    return { cell: stream, code: payload.toString('utf8', wire.TOKEN_SIZE) };
  }

  /** Sends the end of the first cell from this thread. False: the worker is up and does it. */
  #firstDone(frames) {
    const token = this.#firstToken;
    this.#firstToken = null;
    const mine = () => compareExchange(this.#shared, SLOT_OWNER, OWNER_NONE, OWNER_MAIN);
    if (!token || mine() !== OWNER_NONE) {
      return false;
    }
    for (const frame of frames) {
      frameWrite(frame, token);
      while (wire.BARRIERS.has(frame.type) && frameRead().type !== wire.K_ACK);
    }
    store(this.#shared, SLOT_OWNER, OWNER_WORKER);
    notify(this.#shared, SLOT_OWNER);
    return true;
  }

  /** Calls `handler` with each {op: 'exec'|'interrupt', cell, code?} after the first cell. */
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
    this.#send([{ type: wire.K_DISPLAY, stream: cell, body, seq }]);
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
    this.#send([{ type: wire.K_INPUT_REQUEST, stream: cell, body }]);
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
    const frames = [{ type: wire.K_DONE, stream: cell, body: jsonEncode({ status }) }];
    if (last) {
      frames.unshift({ type: last[0], stream: cell, body: last[1] });
    }
    if (!this.#firstDone(frames)) {
      this.#send(frames);
    }
  }
}

module.exports = {
  SLOT_ACKED,
  SLOT_INPUT,
  SLOT_INTERRUPT,
  SLOT_OWNER,
  OWNER_NONE,
  OWNER_MAIN,
  OWNER_WORKER,
  jsonEncode,
  Link,
};
