# SPDX-License-Identifier: MIT
"""One event loop for all cells.

It runs only while a cell awaits something, so asyncio.run and run_until_complete work in cells
too. It is set before each cell, because asyncio.run leaves none behind.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any

CANCEL_SECONDS = 1.0


class Loop:
    """Owner of the kernel's event loop, which is made when it is first wanted."""

    def __init__(self):
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dropped: list[asyncio.AbstractEventLoop] = []
        asyncio.set_event_loop_policy(_Policy(self))

    def prepare(self) -> None:
        """Make the loop the current one."""
        asyncio.set_event_loop(self.open())

    def open(self) -> asyncio.AbstractEventLoop:
        """The loop; a new one where a cell has closed it, or the descriptor it waits on."""
        if self._loop is None or not _is_whole(self._loop):
            if self._loop is not None and not self._loop.is_closed():
                self._dropped.append(self._loop)
            self._loop = asyncio.new_event_loop()
        return self._loop

    def run(self, coroutine: Coroutine) -> Any:
        """Run a coroutine to its end."""
        return self.open().run_until_complete(coroutine)

    def cancel_all(self) -> None:
        """End every task after an interrupt; a loop whose tasks resist is given up."""
        loop = self._loop
        if loop is None or loop.is_closed() or loop.is_running():
            return
        tasks = asyncio.all_tasks(loop)
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        try:
            _done, tasks = loop.run_until_complete(asyncio.wait(tasks, timeout=CANCEL_SECONDS))
        finally:
            if any(not task.done() for task in tasks):
                self.drop()

    def drop(self) -> None:
        """Go on with a new loop. The old one is kept unclosed: after a fork it is the parent's."""
        if self._loop is not None:
            self._dropped.append(self._loop)
            self._loop = None
            self.prepare()


def _is_whole(loop: asyncio.AbstractEventLoop) -> bool:
    if loop.is_closed():
        return False
    selector = getattr(loop, "_selector", None)  # another kind of loop has none
    try:
        return selector is None or os.fstat(selector.fileno()) is not None
    except OSError:
        return False


class _Policy(asyncio.DefaultEventLoopPolicy):
    """get_event_loop() gives the kernel's loop also after asyncio.run in the same cell."""

    def __init__(self, owner: Loop):
        super().__init__()
        self._owner = owner

    def get_event_loop(self) -> asyncio.AbstractEventLoop:
        try:
            return super().get_event_loop()
        except RuntimeError:
            if threading.current_thread() is not threading.main_thread():
                raise
            self._owner.prepare()
            return self._owner.open()
