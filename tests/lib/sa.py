# SPDX-License-Identifier: MIT
"""The C library from Python, for tests and benchmarks; not the package that users get.

    with sa.Library() as library:
        session = library.create("python")
        library.execute(session, "1 + 1")["result"]
"""

import ctypes
import json
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ID_SIZE = 33


class Error(ctypes.Structure):
    """struct sa_error."""

    _fields_ = [("code", ctypes.c_int), ("sys", ctypes.c_int), ("text", ctypes.c_char * 400)]


class Options(ctypes.Structure):
    """struct sa_options."""

    _fields_ = [("size", ctypes.c_size_t), ("env_file", ctypes.c_char_p),
                ("instance", ctypes.c_char_p), ("keep_sessions", ctypes.c_int),
                ("no_build", ctypes.c_int), ("progress", ctypes.c_void_p),
                ("progress_user", ctypes.c_void_p)]


class SessionOptions(ctypes.Structure):
    """struct sa_session_options."""

    _fields_ = [("size", ctypes.c_size_t), ("language", ctypes.c_char_p),
                ("owner", ctypes.c_char_p), ("network", ctypes.c_char_p),
                ("image", ctypes.c_char_p), ("memory_bytes", ctypes.c_uint64),
                ("tmpfs_bytes", ctypes.c_uint64), ("cpu_quota", ctypes.c_int64),
                ("pids", ctypes.c_int64), ("dependencies", ctypes.c_void_p),
                ("dependency_count", ctypes.c_size_t), ("env", ctypes.c_void_p)]


class Failure(Exception):
    """A call that returned an error: `code` is enum sa_error_code."""

    def __init__(self, error):
        super().__init__(error.text.decode(errors="replace"))
        self.code = error.code


class Library:
    """An open library and the calls that tests need."""

    def __init__(self, build=ROOT / "build", **options):
        os.environ.setdefault("SANDBOX_AGENT_LIBEXEC", os.path.join(build, "libexec"))
        self._library = ctypes.CDLL(os.path.join(build, "src/libsandbox_agent.so.0"))
        self._handle = ctypes.c_void_p()
        self._call("sa_open", ctypes.byref(Options(size=ctypes.sizeof(Options), **options)),
                   ctypes.byref(self._handle))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """End all sessions."""
        self._library.sa_close(self._handle)
        self._handle = None

    def _call(self, name, *arguments):
        """Call a function whose last parameter is the error."""
        error = Error()
        if getattr(self._library, name)(*arguments, ctypes.byref(error)) < 0:
            raise Failure(error)

    def _json(self, name, *arguments):
        """Call a function that gives JSON text and return what it says."""
        text = ctypes.c_char_p()
        self._call(name, self._handle, *arguments, ctypes.byref(text))
        try:
            return json.loads(text.value)
        finally:
            self._library.sa_free(text)

    def create(self, language="python", **options):
        """Create a session and return its id."""
        session = ctypes.create_string_buffer(ID_SIZE)
        options = SessionOptions(size=ctypes.sizeof(SessionOptions),
                                 language=language.encode(), **options)
        self._call("sa_session_create", self._handle, ctypes.byref(options), session)
        return session.value

    def stop(self, session):
        """End a session."""
        self._call("sa_session_stop", self._handle, session)

    def list(self):
        """Return the sessions."""
        return self._json("sa_session_list")

    def execute(self, session, code, timeout_ms=0):
        """Run a cell and return the result object."""
        return self._json("sa_execute", session, code.encode(), ctypes.c_int64(timeout_ms))

    def terminal(self, session, command, timeout_ms=0):
        """Run a command and return the result object."""
        return self._json("sa_terminal", session, command.encode(), ctypes.c_int64(timeout_ms))
