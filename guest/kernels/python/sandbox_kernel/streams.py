# SPDX-License-Identifier: MIT
"""The standard streams: line-buffered, and whole again at the start of every cell.

User code closes and replaces sys.stdout, or closes fd 1; a cell must not inherit that from the
one before, and the end of a cell must not fail on it.
"""

import builtins
import fcntl
import io
import os
import sys

HIGH_FD = 961


class Streams:
    """Owner of sys.stdin, sys.stdout and sys.stderr."""

    def __init__(self):
        self._input = builtins.input
        self._saved = {fd: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _high()) for fd in (1, 2)}
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
        self._own = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}

    def heal(self) -> None:
        """Put everything back that a cell has closed or replaced."""
        for fd, saved in self._saved.items():
            try:
                os.fstat(fd)
            except OSError:
                os.dup2(saved, fd)
        for name, stream in self._own.items():
            if getattr(sys, name, None) is not stream:
                setattr(sys, name, stream)  # may drop the last reference, which may close ours
            if not _is_open(stream):
                self._own[name] = stream = _reopen(name)
                setattr(sys, name, stream)
                setattr(sys, f"__{name}__", stream)

    def flush(self) -> None:
        """Send everything printed so far, also what C code holds back, into the pipes."""
        streams = [self._own["stdout"], self._own["stderr"]]
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name, None)
            if stream is not self._own[name]:
                streams.append(stream)
        for stream in streams:
            try:
                stream.flush()
            except Exception:  # closed, replaced by anything, or its pipe closed
                pass
        if "ctypes" in sys.modules:
            _flush_c(sys.modules["ctypes"])

    def complain(self, text: str) -> None:
        """Print on the real stderr, whatever a cell has done to it."""
        try:
            self._own["stderr"].write(text)
        except Exception:
            pass

    def flush_own(self) -> None:
        """Leave nothing in the buffers that a forked child would print a second time."""
        for name in ("stdout", "stderr"):
            try:
                self._own[name].flush()
            except Exception:
                pass

    def replaced_input(self, prompt: str) -> str | None:
        """The next line where user code has put its own sys.stdin in place, else None."""
        return None if sys.stdin is self._own["stdin"] else self._input(prompt)


def _high() -> int:
    """Where saved descriptors go: high up, where the limit of open files allows it."""
    import resource

    return HIGH_FD if resource.getrlimit(resource.RLIMIT_NOFILE)[0] > HIGH_FD + 8 else 10


def _is_open(stream) -> bool:
    try:
        return not stream.closed
    except ValueError:  # detached
        return False


def _reopen(name: str) -> io.TextIOBase:
    if name == "stdin":
        return open(os.devnull, encoding="utf-8")
    fd = 1 if name == "stdout" else 2
    return open(fd, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)


def _flush_c(ctypes) -> None:
    """Flush C's stdout; only code that has loaded ctypes can have printed there unseen."""
    try:
        libc = ctypes.CDLL(None)
        libc.fflush(ctypes.c_void_p.in_dll(libc, "stdout"))
    except Exception:
        pass
