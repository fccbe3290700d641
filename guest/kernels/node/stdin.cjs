// SPDX-License-Identifier: MIT
/**
 * Input for cells. The kernel's stdin is /dev/null, so reading it gives end of file at once, each
 * time anew. A question (the global prompt, or readline's question on process.stdin) goes to the
 * client, and throws where no client can answer: readline alone would wait for ever at end of file.
 */

'use strict';

const { ReadStream } = require('node:fs');

function fresh() {
  return new ReadStream(null, { fd: 0, autoClose: false });
}

/** Makes one class of readline ask by `ask(text)`; its answer goes to `give(line, args)`. */
function questionPatch({ prototype }, ask, give) {
  const { question } = prototype;
  prototype.question = function (...args) {
    return this.input instanceof ReadStream && this.input.fd === 0
      ? give(ask(String(args[0])), args)
      : question.apply(this, args);
  };
}

/** Installs process.stdin. readline is only loaded and patched when a cell first looks at it. */
function stdinInstall(ask) {
  let stream = null;
  const get = () => {
    if (!stream) {
      questionPatch(require('node:readline').Interface, ask, (line, args) => {
        process.nextTick(args.at(-1), line);
      });
      questionPatch(require('node:readline/promises').Interface, ask, async (line) => line);
    }
    if (!stream || stream.destroyed || stream.readableEnded) {
      stream = fresh();
    }
    return stream;
  };
  Object.defineProperty(process, 'stdin', { get, configurable: true, enumerable: true });
}

module.exports = {
  stdinInstall,
};
