# SPDX-License-Identifier: MIT
"""A client of the control protocol of docs/PROTOCOL.md, section 3, and a way to start guest/init.

    with Init(binary) as init, init.connect() as client:
        run = client.spawn(["sh", "-c", "echo hello; exit 3"])
        run.wait()
        assert run.stdout == b"hello\\n" and run.end["exit_code"] == "3"

One thread, no hidden state: a frame that belongs to a stream nobody waits for is kept for it.
Nothing here waits without a limit.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping, Sequence

VERSION = "2"
HEADER = struct.Struct("<IBI")
BULK = 64 << 10
WINDOW = 4 << 20
TIMEOUT = 30.0

TYPES = {
    "HELLO": 0x01, "KERNEL": 0x02, "EXEC": 0x03, "SPAWN": 0x04, "INPUT": 0x05, "INTERRUPT": 0x06,
    "KILL": 0x07, "CREDIT": 0x08, "ATTACH": 0x09, "ACK": 0x0A, "SWEEP": 0x0B, "LEASE": 0x0C,
    "SHUTDOWN": 0x0D, "STATUS": 0x0E, "FILE_READ": 0x10, "FILE_WRITE": 0x11, "WRITE_DATA": 0x12,
    "FILE_STAT": 0x13, "FILE_LIST": 0x14, "FILE_REMOVE": 0x15, "FILE_MKDIR": 0x16,
    "FILE_RENAME": 0x17, "FILE_LINK": 0x18, "WELCOME": 0x40, "STDOUT": 0x41, "STDERR": 0x42,
    "DISPLAY": 0x43,
    "RESULT": 0x44, "ERROR": 0x45, "INPUT_REQUEST": 0x46, "LATE_STDOUT": 0x47,
    "LATE_STDERR": 0x48, "DROPPED": 0x49, "DATA": 0x4A, "REPORT": 0x4B,
    "INPUT_TAKEN": 0x4C, "END": 0x4F,
}
NAMES = {number: name for name, number in TYPES.items()}
JSON_TYPES = ("DISPLAY", "RESULT", "ERROR", "INPUT_REQUEST")
FIELD_TYPES = ("WELCOME", "DROPPED", "REPORT", "END")

# What the launcher leaves to init: three capabilities that only ambient keeps, and no way to more.
CONFINE = """
import ctypes, os, struct, sys
libc, three = ctypes.CDLL(None, use_errno=True), 1 << 5 | 1 << 6 | 1 << 7
def check(result):
    assert result >= 0, os.strerror(ctypes.get_errno())
def capset(effective, permitted, inheritable):
    low = struct.pack("<III", *(caps & 0xffffffff for caps in (effective, permitted, inheritable)))
    high = struct.pack("<III", *(caps >> 32 for caps in (effective, permitted, inheritable)))
    check(libc.capset(struct.pack("<Ii", 0x20080522, 0), low + high))
every = (1 << int(open("/proc/sys/kernel/cap_last_cap").read()) + 1) - 1
os.setgroups([])
every &= int([l for l in open("/proc/self/status") if l.startswith("CapPrm")][0].split()[1], 16)
capset(every, every, three)
check(libc.prctl(28, 3, 0, 0, 0))           # SECBIT_NOROOT, locked
for cap in range(64):
    libc.prctl(24, cap, 0, 0, 0)            # drop from the bounding set
capset(three, three, three)
for cap in (5, 6, 7):
    check(libc.prctl(47, 2, cap, 0, 0))     # raise in the ambient set
check(libc.prctl(38, 1, 0, 0, 0))           # no new privileges
os.execv(sys.argv[1], sys.argv[1:])
"""

# Leaks are looked for by the unit tests: the search needs to trace init, which is not dumpable.
SANITIZED_ENV = {"ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:quarantine_size_mb=16",
                 "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}

Fields = Iterable[tuple[str, Any]]


class ConnectionLost(Exception):
    """Init ended the connection."""


class ControlTimeout(Exception):
    """What was waited for did not come in time."""


def fields_pack(fields: Fields) -> bytes:
    """Encode (key, value) pairs; values are bytes, text or numbers."""
    out = bytearray()
    for key, value in fields:
        data = value if isinstance(value, bytes) else os.fsencode(str(value))
        out += bytes([len(key)]) + key.encode() + struct.pack("<I", len(data)) + data
    return bytes(out)


def fields_unpack(payload: bytes) -> list[tuple[str, bytes]]:
    """Decode a fields payload, in order."""
    pairs, at = [], 0
    while at < len(payload):
        size = payload[at]
        key = payload[at + 1:at + 1 + size].decode()
        at += 1 + size
        (length,) = struct.unpack_from("<I", payload, at)
        at += 4
        assert at + length <= len(payload), "a field ends behind its frame"
        pairs.append((key, payload[at:at + length]))
        at += length
    return pairs


def fields_dict(payload: bytes) -> dict[str, str]:
    """Decode a fields payload whose keys are not repeated."""
    return {key: os.fsdecode(value) for key, value in fields_unpack(payload)}


def frame_pack(kind: str | int, stream: int, payload: bytes = b"") -> bytes:
    """Encode a frame."""
    number = TYPES[kind] if isinstance(kind, str) else kind
    return HEADER.pack(len(payload), number, stream) + payload


@dataclass
class Frame:
    """One frame from init; `data` is raw bytes, decoded JSON or a dict of fields."""

    kind: str
    stream: int
    payload: bytes

    @property
    def data(self) -> Any:
        """The payload, decoded by its type."""
        if self.kind in JSON_TYPES:
            return json.loads(self.payload)
        if self.kind in FIELD_TYPES:
            return fields_dict(self.payload)
        return self.payload

    @property
    def size(self) -> int:
        """What it counts in a run's log."""
        return HEADER.size + len(self.payload)


@dataclass
class Stream:
    """All frames of one stream so far."""

    client: "Client"
    number: int
    frames: list[Frame] = field(default_factory=list)
    offset: int = 0
    uncredited: int = 0

    def of(self, kind: str) -> list[Any]:
        """The data of every frame of a kind."""
        return [frame.data for frame in self.frames if frame.kind == kind]

    def raw(self, kind: str) -> bytes:
        """All payloads of a kind, joined."""
        return b"".join(frame.payload for frame in self.frames if frame.kind == kind)

    @property
    def stdout(self) -> bytes:
        """All of stdout."""
        return self.raw("STDOUT")

    @property
    def stderr(self) -> bytes:
        """All of stderr."""
        return self.raw("STDERR")

    @property
    def order(self) -> list[str]:
        """The kinds in order; neighbours of one kind count once."""
        return [kind for kind, _ in itertools.groupby(frame.kind for frame in self.frames)]

    @property
    def ended(self) -> bool:
        """Whether END has come."""
        return bool(self.frames) and self.frames[-1].kind == "END"

    @property
    def end(self) -> dict[str, str]:
        """The fields of END."""
        assert self.ended, f"stream {self.number} is not over: {self.order}"
        return self.frames[-1].data

    def wait(self, timeout: float = TIMEOUT) -> "Stream":
        """Read until END."""
        return self.until(lambda: self.ended, timeout)

    def until(self, condition, timeout: float = TIMEOUT) -> "Stream":
        """Read until a condition holds."""
        deadline = time.monotonic() + timeout
        while not condition():
            if not self.client.read(deadline - time.monotonic()):
                raise ControlTimeout(f"stream {self.number} has {self.order}")
        return self

    def send(self, kind: str, fields: Fields | bytes = b"") -> "Stream":
        """Send a frame of this stream."""
        self.client.send(kind, self.number, fields)
        return self

    def input(self, data: bytes) -> "Stream":
        """Feed stdin, or answer an input request; empty: end of file."""
        return self.send("INPUT", data)

    def interrupt(self) -> "Stream":
        """Stop it by the ladder."""
        return self.send("INTERRUPT")

    def kill(self) -> "Stream":
        """Stop it at once."""
        return self.send("KILL")

    def ack(self) -> "Stream":
        """Let init forget the run."""
        return self.send("ACK")


class Client:
    """One control connection."""

    def __init__(self, path: str | os.PathLike, hello: Fields | None = (), credit: bool = True):
        """Connect; with `hello` None nothing is said, else HELLO with these further fields.

        credit: give credit back for everything that arrives.
        """
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(os.fspath(path))
        self.sock.setblocking(False)
        self.credit = credit
        self.streams: dict[int, Stream] = {}
        self.numbers = itertools.count(1)
        self.welcome: dict[str, str] = {}
        self.runs: dict[int, tuple[str, str, int]] = {}
        self._input = bytearray()
        self._output = b""
        self._sending = False
        if hello is not None:
            self._hello(hello)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_exc) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.sock.close()

    def _hello(self, fields: Fields) -> None:
        zero = self.stream(0)
        self.send("HELLO", 0, [("version", VERSION), *fields])
        zero.until(lambda: zero.frames)
        assert zero.frames[0].kind == "WELCOME", zero.frames[0].data
        self.welcome = zero.frames[0].data
        for key, value in fields_unpack(zero.frames[0].payload):
            if key == "run":
                number, kind, state, offset = value.decode().split(":")
                self.runs[int(number)] = (kind, state, int(offset))
        self.numbers = itertools.count(int(self.welcome["last_stream"]) + 1)

    def stream(self, number: int) -> Stream:
        """The stream of a number, made at its first use."""
        if number not in self.streams:
            self.streams[number] = Stream(self, number)
        return self.streams[number]

    def send(self, kind: str | int, stream: int, payload: Fields | bytes = b"") -> None:
        """Send one frame, reading meanwhile what init sends."""
        data = payload if isinstance(payload, bytes) else fields_pack(payload)
        self.send_bytes(frame_pack(kind, stream, data))

    def send_bytes(self, data: bytes, timeout: float = TIMEOUT) -> None:
        """Send bytes as they are. What has to be sent meanwhile waits for the end of the frame."""
        self._output += data
        if self._sending:
            return
        self._sending = True
        try:
            while self._output:
                data, self._output = self._output, b""
                self._send_all(memoryview(data), time.monotonic() + timeout)
        finally:
            self._sending = False

    def _send_all(self, view: memoryview, deadline: float) -> None:
        while view:
            try:
                view = view[self.sock.send(view):]
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ControlTimeout("init does not read") from None
                select.select([self.sock], [self.sock], [], 1.0)
                self.read(0.0)

    def read(self, timeout: float) -> bool:
        """Read what is there, waiting at most `timeout`; False when nothing came."""
        ready, _, _ = select.select([self.sock], [], [], max(0.0, timeout))
        if not ready:
            return False
        try:
            data = self.sock.recv(1 << 20)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            data = b""
        if not data:
            raise ConnectionLost
        self._input += data
        for frame in self._frames():
            self._keep(frame)
        return True

    def _frames(self) -> Iterator[Frame]:
        at = 0
        while len(self._input) - at >= HEADER.size:
            length, kind, stream = HEADER.unpack_from(self._input, at)
            if len(self._input) - at - HEADER.size < length:
                break
            at += HEADER.size
            yield Frame(NAMES[kind], stream, bytes(self._input[at:at + length]))
            at += length
        del self._input[:at]

    def _keep(self, frame: Frame) -> None:
        stream = self.stream(frame.stream)
        stream.frames.append(frame)
        stream.offset = (int(frame.data["offset"]) if frame.kind == "DROPPED"
                         else stream.offset + frame.size)
        stream.uncredited += len(frame.payload)
        if self.credit and stream.uncredited >= WINDOW // 4:
            self.give_credit(stream)

    def give_credit(self, stream: Stream) -> None:
        """Tell init that everything of this stream was taken."""
        self.send("CREDIT", stream.number, [("bytes", stream.uncredited)])
        stream.uncredited = 0

    # Requests

    def request(self, kind: str, fields: Fields | bytes = ()) -> Stream:
        """Send a request on a new stream."""
        stream = self.stream(next(self.numbers))
        self.send(kind, stream.number, fields)
        return stream

    def kernel(self, argv: Sequence[str], env: Mapping[str, str] | None = None, **fields) -> Stream:
        """Start the kernel."""
        return self.request("KERNEL", [*_process(argv, env), *fields.items()])

    def exec(self, code: str | bytes, timeout_ms: int = 0, stdin: bool = False) -> Stream:
        """Run a cell."""
        data = code.encode() if isinstance(code, str) else code
        return self.request("EXEC", [("code", data), ("timeout_ms", timeout_ms),
                                     ("stdin", int(stdin))])

    def spawn(self, argv: Sequence[str | bytes], env: Mapping[str, str] | None = None,
              timeout_ms: int = 0, stdin: bool = False, **fields) -> Stream:
        """Run a process."""
        return self.request("SPAWN", [*_process(argv, env), ("timeout_ms", timeout_ms),
                                      ("stdin", int(stdin)), *fields.items()])

    def attach(self, number: int, offset: int = 0) -> Stream:
        """Follow a run of another connection from an offset of its log on."""
        stream = self.stream(number)
        stream.offset = offset
        self.send("ATTACH", number, [("offset", offset)])
        return stream

    def status(self) -> dict[str, str]:
        """Ask for the STATUS report."""
        return self.request("STATUS").wait().of("REPORT")[0]

    def sweep(self, timeout: float = TIMEOUT) -> dict[str, str]:
        """Kill everything but the kernel."""
        return self.request("SWEEP").wait(timeout).end

    def write(self, path: str | bytes, data: bytes, chunk: int = BULK, **fields) -> dict[str, str]:
        """Write a file."""
        stream = self.request("FILE_WRITE", [("path", path), *fields.items()])
        for at in range(0, len(data), chunk):
            stream.send("WRITE_DATA", data[at:at + chunk])
        return stream.send("WRITE_DATA").wait().end

    def read_file(self, path: str | bytes, **fields) -> Stream:
        """Read a file to its end."""
        return self.request("FILE_READ", [("path", path), *fields.items()]).wait()

    def file(self, kind: str, path: str | bytes, **fields) -> Stream:
        """Any other file operation: STAT, LIST, REMOVE, MKDIR, RENAME."""
        return self.request(f"FILE_{kind}", [("path", path), *fields.items()]).wait()


def _process(argv, env) -> Fields:
    yield from (("argv", arg) for arg in argv)
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"} if env is None else env
    yield from (("env", f"{name}={value}") for name, value in environment.items())


class Init:
    """guest/init as pid 1 of a pid namespace of its own, with a work directory of its own.

    Needs root. It gets what the launcher would give it: the control socket at fd 3 and, where
    `seccomp` holds BPF instructions, the program at fd 4.
    """

    UID = 65532

    def __init__(self, binary: str | os.PathLike, *options: str, seccomp: bytes | None = None,
                 landlock: bool = False, lease_ms: int = 60000,
                 environment: Mapping[str, str] | None = None, tmpfs: str | None = None):
        """Start it. tmpfs: mount options with which the work directory becomes a mount."""
        self._pid = 0
        self.sanitized = b"__asan_init" in Path(binary).read_bytes()
        self.dir = Path(tempfile.mkdtemp(prefix="init-test-"))
        self.dir.chmod(0o711)
        self.workspace = self.dir / "workspace"
        self.workspace.mkdir()
        self.mounted = tmpfs is not None
        if self.mounted:
            subprocess.run(["mount", "-t", "tmpfs", "-o", tmpfs, "none", self.workspace],
                           check=True)
        os.chown(self.workspace, self.UID, self.UID)
        self.path = self.dir / "control.sock"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(self.path))
        listener.listen(16)
        program = os.memfd_create("seccomp")
        os.write(program, seccomp or b"")
        os.lseek(program, 0, os.SEEK_SET)
        options = [*options, "--lease-ms", str(lease_ms), "--workspace", str(self.workspace),
                   "--writable", str(self.workspace)]
        options += [] if seccomp else ["--seccomp", "off"]
        options += [] if landlock else ["--landlock", "off"]
        command = ["unshare", "--pid", "--mount-proc", "--fork",
                   "/usr/bin/python3", "-I", "-S", "-c",
                   CONFINE]
        self.process = subprocess.Popen(
            [*command, os.fspath(binary), *options], close_fds=False,
            env={**(SANITIZED_ENV if self.sanitized else {}), **(environment or {})},
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            preexec_fn=lambda: _place({3: listener.fileno(), 4: program}))
        listener.close()
        os.close(program)

    def __enter__(self) -> "Init":
        return self

    def __exit__(self, *_exc) -> None:
        self.close()

    def connect(self, hello: Fields | None = (), credit: bool = True) -> Client:
        """A new control connection."""
        return Client(self.path, hello, credit)

    @property
    def pid(self) -> int:
        """Init's pid on the host."""
        if not self._pid:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
            until = time.monotonic() + TIMEOUT
            while not (found := children.read_text().split()):
                assert time.monotonic() < until and self.alive(), "init did not start"
                time.sleep(0.002)
            self._pid = int(found[0])
        return self._pid

    def rss(self) -> int:
        """Bytes of memory that init uses; 0 with a sanitizer, which keeps freed memory."""
        if self.sanitized:
            return 0
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) << 10
        raise ProcessLookupError

    def wait(self, timeout: float = TIMEOUT) -> int:
        """Wait for its end."""
        return self.process.wait(timeout)

    def alive(self) -> bool:
        """Whether it runs."""
        return self.process.poll() is None

    def close(self) -> None:
        """Kill everything and remove the directories."""
        if self.process.stderr.closed:
            return
        if self.alive():
            # Not by --kill-child: a process that changes its ids loses its parent-death signal.
            os.kill(self.pid, signal.SIGKILL)
        self.process.wait(10)
        self.errors = self.process.stderr.read().decode("utf-8", "replace")
        self.process.stderr.close()
        if self.mounted:
            subprocess.run(["umount", "-l", self.workspace], check=True)
        shutil.rmtree(self.dir, ignore_errors=True)
        assert "Sanitizer" not in self.errors and "runtime error" not in self.errors, self.errors


def _place(wanted: Mapping[int, int]) -> None:
    """In the child: put descriptors on fixed numbers and close all others above 2."""
    high = {number: os.dup2(fd, 100 + number, inheritable=False) for number, fd in wanted.items()}
    for number, fd in high.items():
        os.dup2(fd, number, inheritable=True)
    os.closerange(3 + len(wanted), 1024)
