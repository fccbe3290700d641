# SPDX-License-Identifier: MIT
"""The C library from Python, for tests and benchmarks; not the package that users get.

    library = sa.Library()
    session = library.create("python", network="none")
    session.execute("1 + 1")["result"]
    with session.run("print(1)") as run:
        events = list(run)
"""

import ctypes
import json
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SANDBOX_AGENT", ROOT / "build/sandbox-agent")).resolve().parent
ID_SIZE = 33
CODES = ("OK INVALID NOT_FOUND EXISTS DENIED LIMIT TIMEOUT CANCELLED BUSY UNAVAILABLE PROTOCOL "
         "UPSTREAM DIED DISK SYSTEM NO_MEMORY INTERNAL").split()
EVENTS = ("", "stdout", "stderr", "late_stdout", "late_stderr", "display", "result", "error",
          "input", "gap", "end")


class CError(ctypes.Structure):
    """struct sa_error."""

    _fields_ = [("code", ctypes.c_int), ("sys", ctypes.c_int), ("text", ctypes.c_char * 400)]


class COptions(ctypes.Structure):
    """struct sa_options."""

    _fields_ = [("size", ctypes.c_size_t), ("env_file", ctypes.c_char_p),
                ("instance", ctypes.c_char_p), ("keep_sessions", ctypes.c_int),
                ("no_build", ctypes.c_int), ("progress", ctypes.c_void_p),
                ("progress_user", ctypes.c_void_p)]


class CDependency(ctypes.Structure):
    """struct sa_dependency."""

    _fields_ = [("name", ctypes.c_char_p), ("version", ctypes.c_char_p)]


class CSessionOptions(ctypes.Structure):
    """struct sa_session_options."""

    _fields_ = [("size", ctypes.c_size_t), ("language", ctypes.c_char_p),
                ("owner", ctypes.c_char_p), ("network", ctypes.c_char_p),
                ("image", ctypes.c_char_p), ("memory_bytes", ctypes.c_uint64),
                ("tmpfs_bytes", ctypes.c_uint64), ("cpu_quota", ctypes.c_int64),
                ("pids", ctypes.c_int64), ("dependencies", ctypes.POINTER(CDependency)),
                ("dependency_count", ctypes.c_size_t), ("env", ctypes.POINTER(ctypes.c_char_p))]


class CRunOptions(ctypes.Structure):
    """struct sa_run_options."""

    _fields_ = [("size", ctypes.c_size_t), ("kind", ctypes.c_int), ("text", ctypes.c_char_p),
                ("len", ctypes.c_size_t), ("timeout_ms", ctypes.c_int64),
                ("answers_input", ctypes.c_int), ("cwd", ctypes.c_char_p)]


class CEvent(ctypes.Structure):
    """struct sa_event."""

    _fields_ = [("type", ctypes.c_int), ("data", ctypes.c_void_p), ("len", ctypes.c_size_t)]


class CImport(ctypes.Structure):
    """struct sa_import_options."""

    _fields_ = [("size", ctypes.c_size_t), ("kind", ctypes.c_int), ("path", ctypes.c_char_p),
                ("session_id", ctypes.c_char_p), ("content", ctypes.c_char_p),
                ("len", ctypes.c_size_t), ("extract", ctypes.c_int),
                ("destination", ctypes.c_char_p)]


DOWNLOAD_FN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class Error(Exception):
    """A call that failed: `code` is the number, `name` its word such as LIMIT, `sys` errno."""

    def __init__(self, error):
        super().__init__(error.text.decode(errors="replace"))
        self.code, self.sys = error.code, error.sys
        self.name = CODES[error.code] if 0 <= error.code < len(CODES) else str(error.code)


def _bytes(value):
    """Encode text, and pass bytes and None on."""
    return value.encode() if isinstance(value, str) else value


def _milliseconds(seconds):
    return ctypes.c_int64(int(seconds * 1000) if seconds is not None else 0)


class Library:
    """An open library."""

    def __init__(self, build=None, **options):
        build = Path(build or BUILD)
        os.environ.setdefault("SANDBOX_AGENT_LIBEXEC", str(build / "libexec"))
        self.c = ctypes.CDLL(str(build / "src/libsandbox_agent.so.0"))
        self.c.sa_version.restype = ctypes.c_char_p
        for function in ("sa_run_cancel", "sa_run_close", "sa_free", "sa_close"):
            getattr(self.c, function).restype = None
        options = {name: _bytes(value) for name, value in options.items()}
        self.handle = ctypes.c_void_p()
        self.call("sa_open", ctypes.byref(COptions(size=ctypes.sizeof(COptions), **options)),
                  ctypes.byref(self.handle))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """End all sessions, unless they are to be kept. A second call does nothing."""
        self.c.sa_close(self.handle)
        self.handle = ctypes.c_void_p()

    def call(self, name, *arguments):
        """Call a function whose last parameter is the error; return what it returns."""
        error = CError()
        result = getattr(self.c, name)(*arguments, ctypes.byref(error))
        if result < 0:
            raise Error(error)
        return result

    def json(self, name, *arguments):
        """Call a function that gives JSON text; return what the text says."""
        text = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(text))
        try:
            return json.loads(ctypes.string_at(text.value))
        finally:
            self.c.sa_free(text)

    def create(self, language="python", dependencies=(), env=None, **options):
        """Create a session. Dependencies are names or (name, version); env is a mapping."""
        pairs = [(d, None) if isinstance(d, str) else d for d in dependencies]
        array = (CDependency * max(1, len(pairs)))(
            *(CDependency(_bytes(name), _bytes(version)) for name, version in pairs))
        lines = [f"{name}={value}".encode() for name, value in (env or {}).items()]
        options = {name: _bytes(value) for name, value in options.items()}
        options = CSessionOptions(
            size=ctypes.sizeof(CSessionOptions), language=_bytes(language), dependencies=array,
            dependency_count=len(pairs),
            env=(ctypes.c_char_p * (len(lines) + 1))(*lines, None) if lines else None, **options)
        session = ctypes.create_string_buffer(ID_SIZE)
        self.call("sa_session_create", self.handle, ctypes.byref(options), session)
        return Session(self, session.value.decode())

    def session(self, session_id):
        """Return the session of that id, such as one that was taken over."""
        return Session(self, session_id)

    def list(self):
        """Return the sessions as a list of objects."""
        return self.json("sa_session_list", self.handle)


class Session:
    """One session."""

    def __init__(self, library, session_id):
        self.library, self.id = library, session_id

    def _call(self, name, *arguments):
        return self.library.call(name, self.library.handle, self.id.encode(), *arguments)

    def _json(self, name, *arguments):
        return self.library.json(name, self.library.handle, self.id.encode(), *arguments)

    def execute(self, code, timeout=None):
        """Run a cell; return the result object. Times are seconds."""
        return self._json("sa_execute", _bytes(code), _milliseconds(timeout))

    def terminal(self, command, timeout=None):
        """Run a command line; return the result object."""
        return self._json("sa_terminal", _bytes(command), _milliseconds(timeout))

    def run(self, text, kind="code", timeout=None, answers_input=False, cwd=None):
        """Start a cell or (kind="command") a command line; return a Run."""
        text = _bytes(text)
        options = CRunOptions(size=ctypes.sizeof(CRunOptions), kind=int(kind == "command"),
                              text=text, len=len(text), timeout_ms=_milliseconds(timeout),
                              answers_input=answers_input, cwd=_bytes(cwd))
        run = ctypes.c_void_p()
        self._call("sa_run_open", ctypes.byref(options), ctypes.byref(run))
        return Run(self.library, run)

    def adopted(self):
        """Return the next run that a former process left, or None."""
        run = ctypes.c_void_p()
        try:
            self._call("sa_run_adopted", ctypes.byref(run))
        except Error as error:
            if error.name == "NOT_FOUND":
                return None
            raise
        return Run(self.library, run)

    def interrupt(self):
        """Interrupt what runs now."""
        self._call("sa_session_interrupt")

    def stop(self):
        """End the session."""
        self._call("sa_session_stop")

    def read(self, path):
        """Return the bytes of a file."""
        data, length = ctypes.c_void_p(), ctypes.c_size_t()
        self._call("sa_file_read", _bytes(path), ctypes.byref(data), ctypes.byref(length))
        try:
            return ctypes.string_at(data, length.value)
        finally:
            self.library.c.sa_free(data)

    def write(self, path, data):
        """Write a file."""
        data = _bytes(data)
        self._call("sa_file_write", _bytes(path), data, ctypes.c_size_t(len(data)))

    def files(self, path="."):
        """Return the entries of a directory."""
        return self._json("sa_file_list", _bytes(path))

    def remove(self, path):
        """Remove a file or a directory."""
        self._call("sa_file_remove", _bytes(path))

    def load(self, source=None, destination=None, *, session=None, content=None, extract=False):
        """Import a path of the host, a path that another session exported, or bytes."""
        content = _bytes(content)
        kind = 2 if content is not None else 1 if session is not None else 0
        options = CImport(
            size=ctypes.sizeof(CImport), kind=kind, path=_bytes(source),
            session_id=_bytes(getattr(session, "id", session)), content=content,
            len=len(content or b""), extract=extract, destination=_bytes(destination))
        return self._json("sa_import", ctypes.byref(options))

    def export(self, path):
        """Register a file or a folder; return what it is."""
        return self._json("sa_export", _bytes(path))

    def download(self, path, archive=None, into=None):
        """Return what was exported; a folder as "tar.gz" or (archive="zip") "zip".

        into: a function that is given each piece, and stops the download by returning True.
        """
        pieces = []

        def take(_user, data, size):
            piece = ctypes.string_at(data, size)
            return int(bool(into(piece))) if into else pieces.append(piece) or 0

        self._call("sa_download", _bytes(path), {None: 0, "tar.gz": 1, "zip": 2}[archive],
                   DOWNLOAD_FN(take), None)
        return b"".join(pieces)

    def info(self):
        """Return this session's entry of the list, or None."""
        return next((s for s in self.library.list() if s["session_id"] == self.id), None)


class Run:
    """A run: an iterator of (event name, bytes); closed at the end of a with block."""

    def __init__(self, library, handle):
        self.library, self.handle = library, handle

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __iter__(self):
        while (event := self.next()) is not None:
            yield event

    def next(self, timeout=None):
        """Return the next (event name, bytes), None after the end; Error TIMEOUT."""
        event = ctypes.POINTER(CEvent)()
        wait = ctypes.c_int64(-1) if timeout is None else _milliseconds(timeout)
        if self.library.call("sa_run_next", self.handle, wait, ctypes.byref(event)) == 0:
            return None
        found = event.contents
        return EVENTS[found.type], ctypes.string_at(found.data, found.len) if found.len else b""

    def result(self, timeout=None):
        """Wait for the end and return the result object."""
        wait = ctypes.c_int64(-1) if timeout is None else _milliseconds(timeout)
        return self.library.json("sa_run_result", self.handle, wait)

    def cancel(self):
        """Stop the run."""
        self.library.c.sa_run_cancel(self.handle)

    def input(self, line):
        """Answer an input request; None: there is no answer."""
        self.library.call("sa_run_input", self.handle, _bytes(line))

    def close(self):
        """Forget the run. A second call does nothing."""
        if self.handle:
            self.library.c.sa_run_close(self.handle)
            self.handle = None
