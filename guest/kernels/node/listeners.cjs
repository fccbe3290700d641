// SPDX-License-Identifier: MIT
/**
 * The process listeners without which the kernel would die of the next signal or error. User code
 * may add its own, and then does the reporting; it cannot remove these by removeAllListeners().
 */

'use strict';

/** The events by which Node itself learns of signal listeners. */
const OWN_EVENTS = ['newListener', 'removeListener'];

/** Installs the listeners; `report(label, error)` prints an error that belongs to no cell. */
function listenersInstall(report) {
  const only = (event) => process.listenerCount(event) === 1;
  const listeners = Object.entries({
    SIGINT() {}, // between cells there is nothing to stop, and in a cell the worker does it
    uncaughtException(error) {
      if (only('uncaughtException')) {
        report('Uncaught (async)', error);
      }
    },
    unhandledRejection(reason) {
      if (only('unhandledRejection')) {
        report('Unhandled rejection', reason);
      }
    },
  });
  const add = () => {
    for (const [event, listener] of listeners) {
      if (!process.listeners(event).includes(listener)) {
        process.on(event, listener);
      }
    }
  };
  const { removeAllListeners } = process;
  process.removeAllListeners = (...events) => {
    const names = process.eventNames().filter((name) => !OWN_EVENTS.includes(name));
    for (const event of events.length > 0 ? events : names) {
      removeAllListeners.call(process, event);
    }
    add();
    return process;
  };
  add();
}

module.exports = {
  listenersInstall,
};
