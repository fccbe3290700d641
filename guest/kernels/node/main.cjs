// SPDX-License-Identifier: MIT
/**
 * The Node kernel: one persistent JavaScript scope whose cells come over the kernel protocol
 * (docs/PROTOCOL.md, section 2). This main thread runs user code and nothing else for long; the
 * control socket belongs to the worker in control.cjs.
 *
 * A cell is run by V8's own REPL mode, through an inspector session of this thread, because only
 * that lets const, let and class be declared again and top-level await keep its variables. It gives
 * handles of values, not values: see Evaluator.take. A cell is over when its number is no longer
 * `current`; whatever answers first, V8 or an interrupt, decides, and later answers are dropped.
 */

'use strict';

const { AsyncLocalStorage } = require('node:async_hooks');
const { writeSync } = require('node:fs');
const { K_ERROR, K_RESULT } = require('./frames.cjs');
const { Link, jsonEncode } = require('./link.cjs');
const { listenersInstall } = require('./listeners.cjs');

// The worker starts, and init prepares the first cell, in parallel with all that is loaded below.
const link = new Link();
listenersInstall(asyncError);
link.ready({ language: 'node', version: process.versions.node });

const { Evaluator } = require('./evaluate.cjs');
const { bundleEncode, displayMake, resultBundle } = require('./display.cjs');
const { InterruptedError, errorBody } = require('./errors.cjs');
const { globalsInstall } = require('./globals.cjs');

/** Displays that came while no cell ran wait for the next one, up to these limits. */
const HELD_COUNT_MAX = 64;
const HELD_BYTES_MAX = 8 << 20;

const evaluator = new Evaluator();
const context = new AsyncLocalStorage(); // the cell that code belongs to
const stopped = new Set(); // cells that were interrupted while they waited

let current = 0; // the cell that runs; 0: none
let held = [];
let heldBytes = 0;

function stderrWrite(text) {
  writeSync(2, text);
}

/** Ends the current cell. `last` is [type, body] of its result or error. */
function cellDone(status, last) {
  link.done(current, status, last);
  current = 0;
}

function cellInterrupt() {
  stopped.add(current);
  outputGuard();
  const message = 'the cell was interrupted';
  const body = { type: 'InterruptedError', message, traceback: `InterruptedError: ${message}` };
  cellDone('interrupted', [K_ERROR, jsonEncode(body)]);
}

function cellFail(cell, error, place) {
  if (cell !== current) {
    return;
  }
  // The first thing to fail may be a child process that the interrupt's signal has killed.
  if (link.interrupted(cell)) {
    cellInterrupt();
  } else {
    cellDone('error', [K_ERROR, jsonEncode(errorBody(error, place))]);
  }
}

function cellFinish(cell, value) {
  if (cell !== current) {
    return;
  }
  let last;
  try {
    last = value === undefined ? undefined : [K_RESULT, bundleEncode(resultBundle(value))];
  } catch (error) {
    cellFail(cell, error);
    return;
  }
  cellDone('ok', last);
}

/** A value that can be awaited is awaited, as in a notebook. */
async function cellSettle(cell, value) {
  try {
    cellFinish(cell, typeof value?.then === 'function' ? await value : value);
  } catch (error) {
    cellFail(cell, error);
  }
}

function cellStart(cell, code) {
  current = cell;
  const displays = held;
  held = [];
  heldBytes = 0;
  for (const body of displays) {
    link.display(cell, body);
  }
  if (link.interrupted(cell)) {
    cellInterrupt();
    return;
  }
  const done = {
    value: (value) => cellSettle(cell, value),
    error: (error, place) => cellFail(cell, error, place),
    wanted: () => cell === current,
  };
  try {
    context.run(cell, () => evaluator.run(cell, code, done));
  } catch (error) {
    cellFail(cell, error);
  }
}

function interruptedCheck() {
  const cell = context.getStore();
  if (stopped.has(cell)) {
    throw new InterruptedError(`cell ${cell} was interrupted, what is left of it cannot print`);
  }
}

/**
 * JavaScript cannot be told to leave an `await`. So the rest of an interrupted cell (a loop that
 * polls, an interval) would go on printing into the cells after it. From the first such cell on,
 * printing from one throws, which ends the loop; code of other cells never notices. The console is
 * guarded too because it swallows what a stream throws.
 */
function outputGuard() {
  if (stopped.size > 1) {
    return;
  }
  const guard = (object, name) => {
    const method = object[name];
    object[name] = function (...args) {
      interruptedCheck();
      return method.apply(this, args);
    };
  };
  guard(process.stdout, 'write');
  guard(process.stderr, 'write');
  for (const name of consoleMethods) {
    guard(console, name);
  }
}

function displayEmit(body) {
  interruptedCheck();
  if (current !== 0) {
    link.display(current, body);
  } else if (held.length < HELD_COUNT_MAX && heldBytes + body.length <= HELD_BYTES_MAX) {
    held.push(body);
    heldBytes += body.length;
  } else {
    stderrWrite('display: dropped, too many displays while no cell runs\n');
  }
}

/** The global prompt(text, {password}): asks the client for a line and waits for it. */
function prompt(text = '', { password = false } = {}) {
  if (current === 0) {
    throw new Error('prompt: no cell runs, so nobody can be asked');
  }
  const line = link.input(current, String(text), Boolean(password));
  if (line === null) {
    throw new Error('prompt: no client can answer, pass the value in the code instead');
  }
  return line;
}

const silenced = new Set(); // interrupted cells whose callbacks have been complained of once

function asyncError(label, error) {
  if (error instanceof InterruptedError) {
    const cell = context.getStore();
    if (silenced.has(cell)) {
      return;
    }
    silenced.add(cell);
  }
  stderrWrite(`${label}: ${errorBody(error).traceback}\n`);
}

const consoleMethods = globalsInstall({ display: displayMake(displayEmit), prompt });
link.onMessage(({ op, cell, code }) => {
  if (op === 'exec') {
    cellStart(cell, code);
  } else if (cell === current) {
    cellInterrupt();
  }
});
const first = link.first();
cellStart(first.cell, first.code);
