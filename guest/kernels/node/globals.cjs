// SPDX-License-Identifier: MIT
/**
 * What a cell finds in its global scope besides Node's own globals: require, module, exports,
 * __filename, __dirname, prompt, display, a console that writes straight to the streams, and
 * another process.stdin. A cell can declare all of them again: each is a configurable property.
 */

'use strict';

const { Console } = require('node:console');
const Module = require('node:module');
const { dirname, join } = require('node:path');
const { stdinInstall } = require('./stdin.cjs');
const { IMPORT_NAME, META_NAME, importsMake } = require('./imports.cjs');

/** The same depth as for values of cells. */
const CONSOLE_INSPECT = { depth: 4 };

function define(name, value) {
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
}

/**
 * Puts plain methods in place of those that an inspector session wraps: the wrapped ones also keep
 * the arguments of the last 1,000 calls alive, and take twice as long.
 */
function consoleInstall() {
  const { stdout, stderr } = process;
  const plain = new Console({ stdout, stderr, inspectOptions: CONSOLE_INSPECT });
  const names = Object.keys(plain).filter((name) => typeof plain[name] === 'function');
  for (const name of names) {
    console[name] = plain[name];
  }
  return names;
}

/**
 * A blocking stream never holds output in memory: a loop that prints is slowed down by its reader,
 * and nothing is lost when the process ends.
 */
function streamsBlock() {
  for (const stream of [process.stdout, process.stderr]) {
    stream._handle?.setBlocking?.(true);
    stream.on('error', () => {});
  }
}

/**
 * Fills the global scope. `display` and `prompt` are the kernel's. Returns the names of the methods
 * of the console.
 */
function globalsInstall({ display, prompt }) {
  const filename = join(process.cwd(), 'cell.js');
  const cellRequire = Module.createRequire(filename);
  const cellModule = new Module(filename);
  cellModule.filename = filename;
  cellModule.paths = cellRequire.resolve.paths('x');
  cellModule.require = cellRequire;
  const { cellImport, meta } = importsMake(filename, cellRequire);
  define('require', cellRequire);
  define('module', cellModule);
  define('exports', cellModule.exports);
  define('__filename', filename);
  define('__dirname', dirname(filename));
  define('display', display);
  define('prompt', prompt);
  define(IMPORT_NAME, cellImport);
  define(META_NAME, meta);
  process.argv.length = 1;
  stdinInstall((text) => prompt(text));
  streamsBlock();
  return consoleInstall();
}

module.exports = {
  globalsInstall,
};
