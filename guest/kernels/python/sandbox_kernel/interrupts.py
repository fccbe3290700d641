# SPDX-License-Identifier: MIT
"""SIGINT, and the moments in which it may become a KeyboardInterrupt.

The handler stays installed for ever instead of SIG_IGN between cells: programs started by a cell
would inherit an ignored SIGINT. It raises only while a cell runs and never in the middle of an
exchange with init, where half a frame would be the end of the kernel. An interrupt that is missed
needs no queue: init repeats the signal.
"""

import signal
import time


class Interrupts:
    """Decides what a SIGINT does now. Only the main thread uses it."""

    def __init__(self):
        self.armed = False  # the cell's own code runs
        self.held = 0  # exchanges with init under way in the main thread
        self.first: float | None = None  # when this cell's first interrupt came
        self._running = False
        self._pending = False

    def install(self) -> None:
        """Put the handler back, also where a cell has put its own."""
        if signal.getsignal(signal.SIGINT) != self._on_sigint:
            signal.signal(signal.SIGINT, self._on_sigint)

    def begin(self) -> None:
        """A cell starts; what came before is not meant for it."""
        self._pending = False
        self.first = None
        self._running = self.armed = True

    def end(self) -> None:
        """The cell is over; from here on signals are ignored."""
        self.armed = self._running = False

    def release(self) -> None:
        """End an exchange, and raise the interrupt that had to wait for it."""
        self.held -= 1
        if self._pending and self.armed and not self.held:
            self._pending = False
            raise KeyboardInterrupt

    def _on_sigint(self, _signum, _frame) -> None:
        if not self._running:
            return
        if self.first is None:
            self.first = time.monotonic()
        if self.armed and not self.held:
            raise KeyboardInterrupt
        self._pending = True
