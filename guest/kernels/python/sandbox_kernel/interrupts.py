# SPDX-License-Identifier: MIT
"""Signals: when SIGINT becomes a KeyboardInterrupt, and when handlers of user code may run.

The handler of SIGINT stays installed for ever instead of SIG_IGN between cells: programs started
by a cell would inherit an ignored SIGINT. Nothing may raise in the middle of an exchange with
init, where half a frame would be the end of the kernel, so handlers that cells install are guarded
as well: code that limits its time by SIGALRM is common, and forgets the alarm when it is over.
"""

import signal
import sys
import time
import traceback

_signal, _getsignal = signal.signal, signal.getsignal


class Interrupts:
    """Decides what a signal does now. Only the main thread uses it."""

    def __init__(self):
        self.armed = False  # the cell's own code runs
        self.held = 0  # exchanges with init under way in the main thread
        self.first: float | None = None  # when this cell's first interrupt came
        self._running = False
        self._pending = False
        self._deferred: list[tuple] = []
        self._outside = False  # a handler of user code runs with no cell to raise into

    def install(self) -> None:
        """Put the handler of SIGINT in place, also where a cell has put its own."""
        if _getsignal(signal.SIGINT) != self._on_sigint:
            _signal(signal.SIGINT, self._on_sigint)

    def guard_handlers(self) -> None:
        """Guard the handlers that cells install from now on."""
        signal.signal, signal.getsignal = self._signal, self._getsignal

    def forked(self) -> None:
        """In a forked child: signals are as in any Python program."""
        self.armed, self.held = True, 0
        _signal(signal.SIGINT, signal.default_int_handler)

    def begin(self) -> None:
        """A cell starts; what came before is not meant for it."""
        self._pending = False
        self.first = None
        self._running = self.armed = True

    def end(self) -> None:
        """The cell is over; from here on signals are ignored."""
        self.armed = self._running = False

    def release(self) -> None:
        """End an exchange, and let through what had to wait for it."""
        self.held -= 1
        if self.held:
            return
        while self._deferred:
            handler, signum = self._deferred.pop(0)
            self._call(handler, signum, sys._getframe())
        if self._pending and self.armed:
            self._pending = False
            raise KeyboardInterrupt

    def interrupted(self) -> None:
        """Note that this cell was interrupted."""
        if self._running and self.first is None:
            self.first = time.monotonic()

    def _on_sigint(self, _signum, _frame) -> None:
        if not self._running:
            return
        self.interrupted()
        if self.armed and not self.held:
            raise KeyboardInterrupt
        self._pending = True

    def _call(self, handler, signum, frame) -> None:
        """Run a handler of user code: now, after the exchange, or with no cell to raise into."""
        if signum == signal.SIGINT:
            self.interrupted()
        if self.held:
            if (handler, signum) not in self._deferred:
                self._deferred.append((handler, signum))
        elif self.armed:
            handler(signum, frame)
        elif not self._outside:
            self._outside = True  # a fast timer would pile up handlers without end
            try:
                handler(signum, frame)
            except BaseException:
                traceback.print_exc()
            finally:
                self._outside = False

    def _signal(self, signalnum, handler):
        if callable(handler) and handler != self._on_sigint and not isinstance(handler, int):
            handler = _Guarded(self, handler)
        return _unguarded(_signal(signalnum, handler))

    def _getsignal(self, signalnum):
        return _unguarded(_getsignal(signalnum))


class _Guarded:
    """A handler as Python's signal module sees it."""

    def __init__(self, owner: Interrupts, handler):
        self.owner = owner
        self.handler = handler

    def __call__(self, signum, frame):
        self.owner._call(self.handler, signum, frame)


def _unguarded(handler):
    return handler.handler if isinstance(handler, _Guarded) else handler
