# SPDX-License-Identifier: MIT
"""The kernel itself: cells in, frames out."""

import faulthandler
import gc
import importlib
import os
import platform
import sys

from .channel import K_ERROR, K_RESULT, Channel
from .interrupts import Interrupts
from .loop import Loop
from .payload import bundle_encode, error_encode, object_encode, traceback_text
from .shell import HIDDEN, Shell
from .streams import Streams

CHANNEL_FD = 3
FIGURE_SECONDS = 1.0  # for drawing figures after an interrupt; at 2 s init kills


class Kernel:
    """A shell, its streams and its connection."""

    def __init__(self):
        self.interrupts = Interrupts()
        self.interrupts.install()
        self.channel = Channel(CHANNEL_FD, self.interrupts)
        self.streams = Streams()
        self.loop = Loop()
        self.shell = Shell.instance(self.channel, self.streams, self.loop)
        os.register_at_fork(before=self.streams.flush_own, after_in_child=self._forked)
        self.interrupts.guard_handlers()

    def serve(self) -> None:
        """Run cells for ever."""
        _open_path()
        sys.argv = [""]
        faulthandler.enable()
        gc.freeze()
        gc.enable()
        self.channel.ready(object_encode({"language": "python",
                                          "version": platform.python_version()}))
        while True:
            self._run_cell(self.channel.next_cell())

    def _run_cell(self, source: str) -> None:
        self.interrupts.install()
        self.streams.heal()
        self.shell.begin(source)
        try:
            self._execute(source)
        except BaseException as error:  # an interrupt that met the shell's own code
            self.interrupts.armed = False  # first of all: the next signal may be here already
            self.shell.record_error(error)
        if self.channel.forked:
            self._leave_child()
        if self.interrupts.first is not None:
            self._clean_up()
        self._report()

    def _execute(self, source: str) -> None:
        """Run the cell with interrupts let through; they may come out of here."""
        try:
            self.interrupts.begin()
            self.loop.prepare()
            importlib.invalidate_caches()
            result = self.shell.run_cell(source, store_history=True)
            failed = result and (result.error_before_exec or result.error_in_exec)
            if failed and self.shell.error is None:  # user code replaced what reports errors
                self.shell.record_error(failed)
            if not self.channel.forked and self.interrupts.first is None:
                self._draw(None)
        finally:
            self.interrupts.armed = False
            sys.settrace(None)
            sys.setprofile(None)

    def _clean_up(self) -> None:
        """After an interrupt: end what still runs, draw what was plotted before it."""
        try:
            self.interrupts.armed = True
            self.loop.cancel_all()
            self.interrupts.armed = False
        except BaseException as error:
            self.interrupts.armed = False
            self.shell.record_error(error)
        self._draw(self.interrupts.first + FIGURE_SECONDS)

    def _draw(self, deadline: float | None) -> None:
        """Display the open figures; what the cell failed with matters more than one of them."""
        try:
            self.shell.figures.flush(deadline)
        except Exception as error:
            if self.shell.error is None:
                self.shell.record_error(error)
            else:
                self.streams.complain(traceback_text(error, HIDDEN))

    def _report(self) -> None:
        """Send the value, the error and the end of the cell."""
        shell = self.shell
        status = "ok"
        if shell.displayhook.value:
            try:
                self._send(K_RESULT, bundle_encode(*shell.displayhook.value))
            except Exception as error:  # no memory for it, or what is no MIME map at all
                shell.record_error(error)
        if shell.error is not None:
            status = "error" if self.interrupts.first is None else "interrupted"
            self._send(K_ERROR, error_encode(shell.error, HIDDEN))
        shell.displayhook.value = shell.error = None
        self.streams.flush()
        self.interrupts.end()
        self.channel.done(object_encode({"status": status}))

    def _send(self, kind: int, body: bytes) -> None:
        self.streams.flush()
        self.channel.barrier(kind, body)

    def _forked(self) -> None:
        """In a child made by os.fork: neither the connection nor the event loop is ours."""
        self.channel.drop()
        self.loop.drop()
        self.interrupts.forked()

    def _leave_child(self) -> None:
        """The cell's code returned in a forked child: there is no one to tell."""
        error, code = self.shell.error, 0
        if isinstance(error, SystemExit):
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        elif error is not None:
            self.streams.complain(traceback_text(error, HIDDEN))
            code = 1
        self.streams.flush()
        os._exit(code & 0xFF)


def _open_path() -> None:
    """Let imports see the current directory and what the user installs, now or later."""
    import site

    user_site = site.getusersitepackages()
    if user_site not in sys.path and (site.ENABLE_USER_SITE or sys.prefix == sys.base_prefix):
        try:
            os.makedirs(user_site, exist_ok=True)
            site.addsitedir(user_site)
        except BaseException as error:  # no home to write to, or a .pth file that exits
            print(f"kernel: {user_site}: {error}", file=sys.stderr)
    places = [number for number, path in enumerate(sys.path)
              if path.endswith(("site-packages", "dist-packages"))]
    if user_site in sys.path and sys.path.index(user_site) > places[0]:
        sys.path.remove(user_site)
        sys.path.insert(places[0], user_site)
    sys.path.insert(0, "")
