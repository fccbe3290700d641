# SPDX-License-Identifier: MIT
"""A kernel whose cells are Python source that says which frames to send: for rules of the protocol.

A cell sees `k`, this kernel. At its end K_DONE is sent, unless the cell did so. SIGINT in a cell
ends it as an interrupt; between cells it is ignored. argv[1:] is source to run before K_READY.
"""

import json
import os
import signal
import socket
import struct
import sys
import time

HEADER = struct.Struct("<IBI")
EXEC, ACK, INPUT, INTERRUPT = 0x20, 0x21, 0x22, 0x23
READY, DISPLAY, RESULT, ERROR, DONE, INPUT_REQUEST = range(0x30, 0x36)


class FakeKernel:
    """The kernel's side of the protocol, without any politeness."""

    def __init__(self):
        self.sock = socket.socket(fileno=3)
        self.token = bytes(16)
        self.cell = 0
        self.done_sent = False
        self.acks = self.interrupts = 0
        self.inputs = []

    def frame(self, kind, payload, token=None, cell=None):
        """Send any frame."""
        body = (self.token if token is None else token) + payload
        self.sock.sendall(HEADER.pack(len(body), kind, self.cell if cell is None else cell) + body)

    def json(self, kind, value, **options):
        """Send a frame with JSON."""
        self.frame(kind, json.dumps(value).encode(), **options)

    def read(self):
        """Read one frame from init."""
        header = self._exactly(HEADER.size)
        length, kind, cell = HEADER.unpack(header)
        return kind, cell, self._exactly(length)

    def _exactly(self, size):
        data = bytearray()
        while len(data) < size:
            part = self.sock.recv(min(size - len(data), 1 << 20))
            if not part:
                os._exit(0)
            data += part
        return bytes(data)

    def await_kind(self, wanted):
        """Read until a frame of a kind comes; what is passed is counted."""
        while True:
            kind, _cell, payload = self.read()
            self.acks += kind == ACK
            self.interrupts += kind == INTERRUPT
            if kind == wanted:
                return payload

    def out(self, text, fd=1):
        """Print, all of it."""
        data = text.encode() if isinstance(text, str) else text
        while data:
            data = data[os.write(fd, data):]

    def barrier(self, kind, value):
        """Send a frame and wait for its acknowledgement."""
        self.json(kind, value)
        self.await_kind(ACK)

    def display(self, text):
        """Send a display of text."""
        self.barrier(DISPLAY, {"data": {"text/plain": text}, "metadata": {}})

    def result(self, text):
        """Send the result."""
        self.barrier(RESULT, {"data": {"text/plain": text}, "metadata": {}})

    def error(self, name, message=""):
        """Send the error."""
        self.barrier(ERROR, {"type": name, "message": message, "traceback": ""})

    def done(self, status="ok"):
        """End the cell."""
        self.done_sent = True
        self.json(DONE, {"status": status})

    def input(self, prompt=""):
        """Ask for a line; None when nobody can answer."""
        self.json(INPUT_REQUEST, {"prompt": prompt, "password": False})
        answer = self.await_kind(INPUT)
        return answer[1:].decode() if answer[0] == 1 else None

    def serve(self, before):
        """Run cells for ever."""
        names = {"k": self, "os": os, "sys": sys, "time": time, "signal": signal,
                 "socket": socket, "struct": struct}
        exec(before, names)
        self.json(READY, {"language": "fake", "version": "1"}, token=bytes(16), cell=0)
        while True:
            self._cell(names)

    def _cell(self, names):
        kind, self.cell, payload = self.read()
        if kind != EXEC:
            return
        self.token, code, self.done_sent = payload[:16], payload[16:], False
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                exec(code, names)
            finally:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            status = "ok"
        except KeyboardInterrupt:
            self.error("KeyboardInterrupt")
            status = "interrupted"
        except Exception as problem:
            self.error(type(problem).__name__, str(problem))
            status = "error"
        if not self.done_sent:
            self.done(status)


if __name__ == "__main__":
    os.set_inheritable(3, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    FakeKernel().serve("\n".join(sys.argv[1:]))
