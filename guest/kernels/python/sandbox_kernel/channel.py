# SPDX-License-Identifier: MIT
"""Frames, tokens and barriers: the connection between the kernel and guest/init.

The socket is moved from fd 3 to a high number with close-on-exec, out of the way of code that
closes or writes to low descriptors. An exchange is one frame out and its answer in, under a lock,
since any thread of the user's code may display something.
"""

import fcntl
import os
import select
import struct
import sys
import threading

from .interrupts import Interrupts

K_EXEC, K_ACK, K_INPUT, K_INTERRUPT = 0x20, 0x21, 0x22, 0x23
K_READY, K_DISPLAY, K_RESULT, K_ERROR, K_DONE, K_INPUT_REQUEST = range(0x30, 0x36)

TOKEN_SIZE = 16
HEADER = struct.Struct("<IBI")
FRAME_PAYLOAD_MAX = (64 << 20) + (4 << 10)
HIGH_FD = 960


class Channel:
    """The kernel's end of the socketpair."""

    def __init__(self, fd: int, interrupts: Interrupts):
        self._fd = _move_high(fd)
        self._interrupts = interrupts
        self._lock = threading.Lock()
        self._owner = 0  # the thread inside an exchange
        self._buffer = bytearray()
        self._cell = 0
        self._token: bytes | None = None  # none: no cell runs
        self._main_thread = threading.get_ident()
        self.forked = False

    def ready(self, body: bytes) -> None:
        """Say that the kernel is up."""
        self._write(K_READY, bytes(TOKEN_SIZE), body)

    def next_cell(self) -> str:
        """Wait for the next cell; from here on its frames can be sent."""
        while True:
            kind, stream, payload = self._read()
            if kind != K_EXEC:
                continue
            self._cell, self._token = stream, bytes(payload[:TOKEN_SIZE])
            return payload[TOKEN_SIZE:].decode("utf-8", "replace")

    def barrier(self, kind: int, body: bytes) -> bool:
        """Send a frame and wait until init has drained the pipes.

        False where nothing can be sent: no cell runs, this is a forked child, or this thread is
        already inside an exchange (a signal handler or a destructor that displays).
        """
        if not self._enter():
            return False
        try:
            self._write(kind, self._token, body)
            while self._read()[0] != K_ACK:
                pass
        finally:
            self._leave()
        return True

    def done(self, body: bytes) -> None:
        """Say that the cell is over. No frame of it can be sent any more."""
        self._enter()
        try:
            token, self._token = self._token, None
            self._write(K_DONE, token, body)
        finally:
            self._leave()

    def ask(self, body: bytes) -> str | None:
        """Ask for a line; None where nobody can answer. It can be interrupted while it waits."""
        if threading.get_ident() != self._main_thread or not self._enter():
            return None
        try:
            self._write(K_INPUT_REQUEST, self._token, body)
            kind = payload = None
            while kind != K_INPUT:
                self._wait_readable()
                kind, _stream, payload = self._read()
        finally:
            self._leave()
        return payload[1:].decode("utf-8", "replace") if payload[:1] == b"\1" else None

    def drop(self) -> None:
        """In a forked child: forget the connection, which is the parent's alone."""
        if not self.forked:
            os.close(self._fd)
        self._fd, self._token, self.forked = -1, None, True
        self._lock, self._owner = threading.Lock(), 0
        self._main_thread = threading.get_ident()

    def _enter(self) -> bool:
        ident = threading.get_ident()
        if self._token is None or self._owner == ident:
            return False
        if ident == self._main_thread:
            self._interrupts.held += 1
        self._lock.acquire()
        self._owner = ident
        if self._token is None:  # the cell ended while this thread waited
            self._leave()
            return False
        return True

    def _leave(self) -> None:
        self._owner = 0
        self._lock.release()
        if threading.get_ident() == self._main_thread:
            self._interrupts.release()

    def _wait_readable(self) -> None:
        """Wait for the next byte with interrupts let through: nothing is half read here."""
        if self._buffer:
            return
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        self._interrupts.release()
        try:
            poller.poll()
        finally:
            self._interrupts.held += 1

    def _read(self) -> tuple[int, int, bytes]:
        self._fill(HEADER.size)
        length, kind, stream = HEADER.unpack_from(self._buffer)
        if length > FRAME_PAYLOAD_MAX or not K_EXEC <= kind <= K_INTERRUPT:
            _die(f"protocol error: frame 0x{kind:02x} of {length} bytes")
        end = HEADER.size + length
        self._fill(end)
        payload = bytes(memoryview(self._buffer)[HEADER.size:end])
        del self._buffer[:end]
        return kind, stream, payload

    def _fill(self, size: int) -> None:
        while len(self._buffer) < size:
            try:
                data = os.read(self._fd, 1 << 16)
            except OSError as error:
                _die(f"control connection lost: {error.strerror}")
            if not data:
                os._exit(0)
            self._buffer += data

    def _write(self, kind: int, token: bytes, body: bytes) -> None:
        stream = 0 if kind == K_READY else self._cell
        rest = [HEADER.pack(len(token) + len(body), kind, stream) + token, memoryview(body)]
        try:
            while rest:
                sent = os.writev(self._fd, rest)
                while rest and sent >= len(rest[0]):
                    sent -= len(rest.pop(0))
                if sent:
                    rest[0] = memoryview(rest[0])[sent:]
        except OSError as error:
            _die(f"control connection lost: {error.strerror}")


def _move_high(fd: int) -> int:
    """Move a descriptor up, or leave it where the limit of open files is low; close it on exec."""
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    except OSError:
        os.set_inheritable(fd, False)
        return fd
    os.close(fd)
    return high


def _die(reason: str) -> None:
    """End the process at once: without its connection the kernel is of no use."""
    try:
        sys.__stderr__.write(f"kernel: {reason}\n")
        sys.__stderr__.flush()
    finally:
        os._exit(70)
