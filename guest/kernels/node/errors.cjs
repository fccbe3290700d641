// SPDX-License-Identifier: MIT
/**
 * What K_ERROR says of a thrown value, and how an asynchronous error is printed. Every property of
 * a thrown value may be a getter that throws, so all of it is read inside one try.
 */

'use strict';

const { inspect, types } = require('node:util');

const TEXT_MAX = 1 << 20;
const CAUSES_MAX = 5;
const SOURCE_WIDTH = 160;

/** Thrown into code that goes on after its cell was interrupted. */
class InterruptedError extends Error {
  name = 'InterruptedError';
}

/** Cuts a text to 1 MiB of UTF-8: head and tail are kept, no character is cut. */
function textCut(text) {
  if (text.length <= TEXT_MAX / 3) {
    return text;
  }
  const bytes = Buffer.from(text);
  if (bytes.length <= TEXT_MAX) {
    return text;
  }
  const half = TEXT_MAX / 2 - 64;
  const head = new TextDecoder().decode(bytes.subarray(0, half), { stream: true });
  let from = bytes.length - half;
  while ((bytes[from] & 0xc0) === 0x80) {
    from += 1;
  }
  const note = `[… ${bytes.length - 2 * half} bytes left out …]`;
  return `${head}\n${note}\n${bytes.toString('utf8', from)}`;
}

/** The class of an error, as it would be read in a `catch`. */
function errorType(error) {
  const name = String(error.name);
  return (name === 'Error' && error.constructor?.name) || name;
}

function isError(value) {
  return types.isNativeError(value) || value instanceof Error;
}

/** Stack lines of user code: what runs inside Node or this kernel is left out. */
function userFrames(error) {
  const stack = typeof error.stack === 'string' ? error.stack : '';
  return stack
    .split('\n')
    .filter((line) => /^ {4}at /.test(line))
    .filter((line) => !/[( ]node:/.test(line) && !line.includes(__dirname));
}

/** Head, user frames and causes of an error. */
function errorTrace(error, depth = 0) {
  if (!isError(error)) {
    return inspect(error);
  }
  const lines = [`${errorType(error)}: ${error.message}`, ...userFrames(error)];
  if (depth < CAUSES_MAX) {
    const inner = Array.isArray(error.errors) ? error.errors.slice(0, CAUSES_MAX) : [];
    const causes = error.cause === undefined ? [] : [error.cause];
    for (const [label, list] of [['cause', causes], ['errors', inner]]) {
      lines.push(...list.map((each) => `  [${label}]: ${errorTrace(each, depth + 1)}`));
    }
  }
  return lines.join('\n');
}

/** The line of a cell that does not parse, with a mark under the place. */
function sourceMark(source, { lineNumber, columnNumber }) {
  const line = source.split('\n')[lineNumber] ?? '';
  const from = Math.max(0, columnNumber - SOURCE_WIDTH / 2);
  return `${line.slice(from, from + SOURCE_WIDTH)}\n${' '.repeat(columnNumber - from)}^`;
}

/**
 * The body of K_ERROR for a thrown value. `place` is there when something does not parse:
 * {lineNumber, columnNumber}, and where it is the cell itself also {name, source}.
 */
function errorBody(error, place) {
  try {
    if (!isError(error)) {
      const text = textCut(inspect(error));
      return { type: 'Uncaught', message: text, traceback: `Uncaught ${text}` };
    }
    const type = errorType(error);
    if (place && place.source === undefined) {
      const where = `line ${place.lineNumber + 1}, column ${place.columnNumber + 1} of the module`;
      const message = textCut(`${error.message} (${where})`);
      return { type, message, traceback: `${type}: ${message}` };
    }
    if (place) {
      const message = `${error.message} (line ${place.lineNumber + 1})`;
      const where = `${place.name}:${place.lineNumber + 1}:${place.columnNumber + 1}`;
      const traceback = `${where}\n${sourceMark(place.source, place)}\n${type}: ${error.message}`;
      return { type, message, traceback };
    }
    const body = {
      type: textCut(type),
      message: textCut(String(error.message)),
      traceback: textCut(errorTrace(error)),
    };
    if (Number.isInteger(error.errno) && error.syscall !== undefined) {
      body.errno = Math.abs(error.errno);
    }
    return body;
  } catch {
    const message = 'the thrown value cannot be shown';
    return { type: 'Uncaught', message, traceback: `Uncaught: ${message}` };
  }
}

module.exports = {
  InterruptedError,
  textCut,
  errorBody,
};
