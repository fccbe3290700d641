// SPDX-License-Identifier: MIT
/**
 * Runs source text in V8's REPL mode through the inspector, and turns what comes back into values.
 *
 * Object groups: every handle of a cell is in the group `c<cell>`, which is released when V8 has
 * answered and the answer was still wanted. Releasing the group of an `await` that is pending makes
 * V8 abort at its next garbage collection; so a cell that an interrupt has answered keeps its few
 * handles for good.
 */

'use strict';

const { Session } = require('node:inspector');
const { Script } = require('node:vm');
const { importsRewrite } = require('./imports.cjs');

const TAKER_NAME = '__cell_take__';
const NUMBERS = { NaN, Infinity, '-Infinity': -Infinity, '-0': -0 };

/** A cell that starts with a brace may be meant as an object, as in Node's REPL. */
function objectGuess(code) {
  if (!/^\s*\{/.test(code) || /;\s*$/.test(code)) {
    return code;
  }
  const wrapped = `(${code.trimEnd()}\n)`;
  try {
    new Script(wrapped);
    return wrapped;
  } catch {
    return code;
  }
}

class Evaluator {
  #session = new Session();
  #taker;
  #taken;

  constructor() {
    this.#session.connect();
    globalThis[TAKER_NAME] = (value) => {
      this.#taken = value;
    };
    this.#session.post('Runtime.evaluate', { expression: TAKER_NAME }, (_problem, { result }) => {
      this.#taker = result.objectId;
    });
    delete globalThis[TAKER_NAME];
  }

  /** The value behind a handle of the inspector. */
  #take({ objectId, unserializableValue, value }) {
    if (objectId !== undefined) {
      this.#session.post('Runtime.callFunctionOn', {
        objectId: this.#taker,
        functionDeclaration: 'function (value) { this(value); }',
        arguments: [{ objectId }],
        silent: true,
      });
      const taken = this.#taken;
      this.#taken = undefined;
      return taken;
    }
    if (unserializableValue !== undefined) {
      return NUMBERS[unserializableValue] ?? BigInt(unserializableValue.slice(0, -1));
    }
    return value;
  }

  /** Where something does not parse: only V8's message object of the error knows. */
  #place(thrown, error, cell) {
    if (!(error instanceof SyntaxError)) {
      return undefined;
    }
    if (thrown.scriptId !== undefined) { // no cell that parses has one here
      const lines = cell.source.split('\n');
      const last = lines.length - 1; // V8 finds an early end behind it, where our own line is
      return thrown.lineNumber <= last
        ? { ...thrown, ...cell }
        : { lineNumber: last, columnNumber: lines[last].length, ...cell };
    }
    let place;
    if (!error.stack.includes(cell.name)) { // an ES module; all else has a stack with the place
      const { objectId } = thrown.exception;
      this.#session.post('Runtime.getExceptionDetails', { errorObjectId: objectId }, (_, reply) => {
        place = reply?.exceptionDetails;
      });
    }
    return place;
  }

  /**
   * Runs a cell. Calls `done.value(value)` or `done.error(error, place)` once, unless
   * `done.wanted()` is false by then. The call itself may return before or after that.
   */
  run(cell, code, done) {
    const name = `cell-${cell}`;
    const source = importsRewrite(objectGuess(code)).trimEnd();
    const group = `c${cell}`;
    const params = {
      expression: `${source}\n//# sourceURL=${name}`,
      objectGroup: group,
      replMode: true,
      silent: true,
    };
    this.#session.post('Runtime.evaluate', params, (problem, reply) => {
      if (!done.wanted()) {
        return;
      }
      if (problem) { // "Execution was terminated"
        done.error(problem);
        return;
      }
      const { exceptionDetails: thrown, result } = reply;
      const value = this.#take(thrown ? thrown.exception : result);
      const place = thrown && this.#place(thrown, value, { name, source });
      this.#session.post('Runtime.releaseObjectGroup', { objectGroup: group });
      if (thrown) {
        done.error(value, place);
      } else {
        done.value(value);
      }
    });
  }
}

module.exports = {
  Evaluator,
};
