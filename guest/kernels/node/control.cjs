// SPDX-License-Identifier: MIT
/**
 * The worker thread of the kernel. It owns the control socket, so that init is answered while user
 * code keeps the main thread busy, and it alone ever sees a cell's token.
 *
 * It stops the main thread with Runtime.terminateExecution over an inspector session that exists
 * only for that time (a connected one makes process.exit() print a notice). The one rule to keep in
 * mind when reading this file: such a call ends whatever JavaScript the main thread runs next, also
 * the kernel's own handler. So a message that matters is repeated until it is answered, and no cell
 * is started while a call is unanswered.
 */

'use strict';

const { writeSync } = require('node:fs');
const { Session } = require('node:inspector');
const { Socket } = require('node:net');
const { parentPort, workerData } = require('node:worker_threads');
const wire = require('./frames.cjs');
const { OWNER_MAIN, OWNER_NONE, OWNER_WORKER } = require('./link.cjs');
const { SLOT_ACKED, SLOT_INPUT, SLOT_INTERRUPT, SLOT_OWNER } = require('./link.cjs');

/** How long the message that asks for an end has before the running JavaScript is terminated. */
const TERMINATE_DELAY = 30;
/** How often an unanswered message is repeated. */
const REPEAT_PERIOD = 60;

const { shared, inputPort } = workerData;

let cell = 0; // the cell that runs; 0: none
let token = wire.NO_TOKEN;
let queue = []; // frames that wait for the barrier before them
let barrier = null; // the frame whose K_ACK is due
let heldExec = null; // a K_EXEC that came while a terminate was unanswered
let inspector = null; // there only while a terminate is unanswered
let ladderTimer = null;

let socket = null;

/** The kernel cannot go on. SIGKILL, as user code may have taken every other way out. */
function die(reason) {
  if (reason) {
    writeSync(2, `node kernel: ${reason}\n`);
  }
  process.kill(process.pid, 'SIGKILL');
}

function frameWrite({ type, stream, body }) {
  socket.cork();
  socket.write(wire.frameHead(type, stream, token, body.length));
  socket.write(body);
  socket.uncork();
}

/** Writes what may be written: everything up to and with the next barrier. */
function queuePump() {
  while (!barrier && queue.length > 0) {
    const frame = queue.shift();
    frameWrite(frame);
    if (wire.BARRIERS.has(frame.type)) {
      barrier = frame;
    } else if (frame.type === wire.K_DONE) {
      cellEnd();
    }
  }
}

function cellEnd() {
  cell = 0;
  if (inspector) {
    interruptSend();
  } else {
    clearTimeout(ladderTimer);
  }
}

function cellStart(exec) {
  parentPort.postMessage({ op: 'exec', cell: exec.stream, code: exec.code });
}

/**
 * One message serves twice: it answers a cell that only waits, and it tells the main thread to
 * answer a cell whose own reply the terminate has swallowed.
 */
function interruptSend() {
  parentPort.postMessage({ op: 'interrupt', cell: Atomics.load(shared, SLOT_INTERRUPT) });
  clearTimeout(ladderTimer);
  ladderTimer = setTimeout(ladderStep, REPEAT_PERIOD);
}

/** True while a cell was told to stop and is not over. */
function stopping() {
  return cell !== 0 && cell === Atomics.load(shared, SLOT_INTERRUPT);
}

function ladderStep() {
  if (stopping() && !inspector) {
    inspector = new Session();
    inspector.connectToMainThread();
    inspector.post('Runtime.terminateExecution', terminateEnd);
  }
  if (inspector || stopping()) {
    interruptSend();
  }
}

function terminateEnd() {
  inspector.disconnect();
  inspector = null;
  clearTimeout(ladderTimer);
  if (heldExec) {
    const exec = heldExec;
    heldExec = null;
    cellStart(exec);
  }
  if (stopping()) {
    interruptSend();
  }
}

const handlers = new Map([
  [wire.K_EXEC, (stream, payload) => {
    if (cell !== 0 || payload.length < wire.TOKEN_SIZE) {
      die('K_EXEC out of turn');
    }
    cell = stream;
    token = Uint8Array.from(payload.subarray(0, wire.TOKEN_SIZE));
    const exec = { stream, code: payload.toString('utf8', wire.TOKEN_SIZE) };
    if (inspector) {
      heldExec = exec;
    } else {
      cellStart(exec);
    }
  }],
  [wire.K_ACK, () => {
    if (!barrier) {
      die('K_ACK without a barrier');
    }
    const { seq } = barrier;
    barrier = null;
    if (seq !== undefined) {
      Atomics.store(shared, SLOT_ACKED, seq);
      Atomics.notify(shared, SLOT_ACKED);
    }
    queuePump();
  }],
  [wire.K_INPUT, (stream, payload) => {
    if (stream === cell) {
      inputPort.postMessage({ cell, line: payload[0] === 1 ? payload.toString('utf8', 1) : null });
      Atomics.add(shared, SLOT_INPUT, 1);
      Atomics.notify(shared, SLOT_INPUT);
    }
  }],
  [wire.K_INTERRUPT, (stream) => {
    if (stream === cell && Atomics.exchange(shared, SLOT_INTERRUPT, cell) !== cell) {
      interruptSend();
      clearTimeout(ladderTimer);
      ladderTimer = setTimeout(ladderStep, TERMINATE_DELAY);
    }
  }],
]);

const reader = new wire.FrameReader((type, stream, payload) => {
  const handler = handlers.get(type);
  if (!handler) {
    die(`unknown frame 0x${type.toString(16)}`);
  }
  handler(stream, payload);
});

process.on('uncaughtException', (error) => die(error.stack));

/** Takes the socket over; `first` is the cell that the main thread has read: {cell, token}. */
function socketOpen(first) {
  if (Atomics.compareExchange(shared, SLOT_OWNER, OWNER_NONE, OWNER_WORKER) === OWNER_NONE) {
    ({ cell, token } = first);
  } else {
    Atomics.wait(shared, SLOT_OWNER, OWNER_MAIN);
  }
  socket = new Socket({ fd: wire.FD, readable: true, writable: true });
  socket.on('data', (chunk) => reader.push(chunk));
  socket.on('error', () => die());
  socket.on('close', () => die());
}

parentPort.on('message', (message) => {
  if (!socket) {
    socketOpen(message);
    return;
  }
  // A frame of a cell that is over is dropped: its sender was interrupted.
  queue.push(...message.filter(({ stream }) => stream === cell));
  queuePump();
});
