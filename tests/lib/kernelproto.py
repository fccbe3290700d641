# SPDX-License-Identifier: MIT
"""Play guest/init for one kernel: the kernel protocol of docs/PROTOCOL.md, section 2.

A test starts any kernel with it and runs cells, without a sandbox around them:

    with Kernel(["python3", "guest/kernels/python/kernel.py"]) as kernel:
        cell = kernel.run("print('a')\\n1 + 1")
        assert cell.stdout == "a\\n" and cell.text == "2" and cell.status == "ok"

It keeps the rules that init keeps: pipes are drained before a frame counts, a frame with a wrong
token or cell kills the kernel, an interrupt is SIGINT to the process group each 200 ms for 2 s and
one K_INTERRUPT, and then SIGKILL. Nothing here waits without a limit.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

K_EXEC, K_ACK, K_INPUT, K_INTERRUPT = 0x20, 0x21, 0x22, 0x23
K_READY, K_DISPLAY, K_RESULT, K_ERROR, K_DONE, K_INPUT_REQUEST = range(0x30, 0x36)

KINDS = {
    K_READY: "ready",
    K_DISPLAY: "display",
    K_RESULT: "result",
    K_ERROR: "error",
    K_DONE: "done",
    K_INPUT_REQUEST: "input",
}
BARRIERS = (K_DISPLAY, K_RESULT, K_ERROR)

TOKEN_SIZE = 16
NO_TOKEN = bytes(TOKEN_SIZE)
HEADER = struct.Struct("<IBI")
KERNEL_FRAME_MAX = 48 << 20
READ_SIZE = 64 << 10
PIPE_MAX = 1 << 20  # the most that a pipe can hold

INTERRUPT_PERIOD = 0.2
INTERRUPT_TIME = 2.0


class ProtocolError(Exception):
    """The kernel broke the protocol; init would kill it."""


class KernelTimeout(Exception):
    """The kernel did not answer in the time that the test gave it."""


def frame_pack(kind: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame as it goes over the wire."""
    return HEADER.pack(len(payload), kind, stream) + payload


@dataclass
class Event:
    """One thing a cell did. `data` is a bytearray for a stream, else the decoded JSON."""

    kind: str
    data: Any


@dataclass
class Cell:
    """What one cell did, in order."""

    number: int
    events: list[Event] = field(default_factory=list)
    status: str = ""  # ok | error | interrupted | died
    cause: str = ""  # died: exit:N, signal:N or protocol
    problem: str = ""  # the text of a protocol error
    seconds: float = 0.0

    def of(self, kind: str) -> list[Any]:
        """The data of every event of a kind."""
        return [event.data for event in self.events if event.kind == kind]

    def one(self, kind: str) -> Any:
        """The data of the only event of a kind, or None."""
        found = self.of(kind)
        return found[0] if found else None

    def raw(self, kind: str) -> bytes:
        """A whole stream as bytes."""
        return b"".join(self.of(kind))

    @property
    def order(self) -> list[str]:
        """The kinds of the events in order; output in one piece counts once."""
        return [event.kind for event in self.events]

    @property
    def stdout(self) -> str:
        """All of stdout as text."""
        return self.raw("stdout").decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """All of stderr as text."""
        return self.raw("stderr").decode("utf-8", "replace")

    @property
    def late_stdout(self) -> str:
        """Stdout that came between the cell before and this one."""
        return self.raw("late_stdout").decode("utf-8", "replace")

    @property
    def displays(self) -> list[dict]:
        """The MIME maps of all displays."""
        return [display["data"] for display in self.of("display")]

    @property
    def result(self) -> dict | None:
        """The MIME map of the cell's value."""
        value = self.one("result")
        return value["data"] if value else None

    @property
    def text(self) -> str | None:
        """The value of the cell as text/plain."""
        return self.result.get("text/plain") if self.result else None

    @property
    def error(self) -> dict | None:
        """The error of the cell: type, message, traceback, errno."""
        return self.one("error")


@dataclass
class _Run:
    """The cell that runs now, and what the test wants done to it."""

    cell: Cell
    token: bytes
    answers: list[str | None]
    interrupt_on: bytes | None
    interrupt_after: float
    interrupt_at: float | None
    deadline: float
    sigint_next: float | None = None
    kill_at: float | None = None


class Kernel:
    """A kernel process under test."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike | None = None,
        ready_timeout: float = 60.0,
        sigint_delay: float = 0.0,
    ):
        """Start `argv` (argv[0] is looked up in PATH) and wait for K_READY."""
        self.ready: dict = {}
        self.pid = 0
        self.returncode: int | None = None  # as waitstatus_to_exitcode: negative for a signal
        self._sigint_delay = sigint_delay
        self._number = 0
        self._late: list[Event] = []
        self._input = bytearray()
        self._outgoing = bytearray()
        self._pipes: dict[int, str] = {}
        self._start(argv, env, cwd)
        try:
            self._await_ready(time.monotonic() + ready_timeout)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Kernel":
        return self

    def __exit__(self, *_exc) -> None:
        self.close()

    def run(
        self,
        code: str | bytes,
        timeout: float = 30.0,
        answers: Iterable[str | None] = (),
        interrupt_on: str | bytes | None = None,
        interrupt_after: float | None = None,
    ) -> Cell:
        """Run one cell to its end and return what it did.

        answers: a line for each input request; None, or none left, says that nobody can answer.
        interrupt_on: start the interrupt ladder a moment after stdout holds this text.
        interrupt_after: start it after so many seconds, counted from that text where one is given.
        A cell that is not over after `timeout` seconds raises KernelTimeout; the kernel is dead.
        """
        code = code.encode() if isinstance(code, str) else code
        marker = interrupt_on.encode() if isinstance(interrupt_on, str) else interrupt_on
        self._idle_drain()
        self._number += 1
        cell = Cell(self._number, events=self._late)
        self._late = []
        begin = time.monotonic()
        run = _Run(
            cell=cell,
            token=os.urandom(TOKEN_SIZE),
            answers=list(answers),
            interrupt_on=marker,
            interrupt_after=0.05 if interrupt_after is None else interrupt_after,
            interrupt_at=None if interrupt_after is None or marker else begin + interrupt_after,
            deadline=begin + timeout,
        )
        self._send(K_EXEC, cell.number, run.token + code)
        try:
            self._loop(run)
        finally:
            cell.seconds = time.monotonic() - begin
        return cell

    def signal(self, number: int) -> None:
        """Send a signal to the kernel's process group."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass

    def alive(self) -> bool:
        """True while the kernel process runs."""
        return self._reap(wait=False) is None

    def idle_output(self, seconds: float) -> None:
        """Collect output for a while with no cell running; the next cell gets it as late output."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            select.select(list(self._pipes), [], [], max(0.0, until - time.monotonic()))
            self._idle_drain()
            if not self._pipes:
                return

    def close(self) -> None:
        """Kill the kernel's process group and release everything."""
        if self.returncode is None:
            self.signal(signal.SIGKILL)
            self._reap(wait=True)
        self._socket.close()
        for fd in self._pipes:
            os.close(fd)
        self._pipes = {}

    # Starting

    def _start(self, argv, env, cwd) -> None:
        ours, theirs = socket.socketpair()
        pipes = [os.pipe(), os.pipe()]
        # Above the numbers that the child's descriptors are put on, so that none is overwritten.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
                for fd in (pipes[0][1], pipes[1][1], theirs.fileno())]
        actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        actions += [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(high, start=1)]
        argv = [os.fspath(arg) for arg in argv]
        if cwd is not None:
            argv = ["/bin/sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", os.fspath(cwd), *argv]
        self.pid = os.posix_spawnp(
            argv[0], argv, dict(os.environ if env is None else env), file_actions=actions,
            setpgroup=0, setsigmask=(), setsigdef=(signal.SIGINT, signal.SIGPIPE))
        for fd in (*high, pipes[0][1], pipes[1][1]):
            os.close(fd)
        theirs.close()
        self._socket = ours
        self._pipes = {pipes[0][0]: "stdout", pipes[1][0]: "stderr"}
        for fd in (ours.fileno(), *self._pipes):
            os.set_blocking(fd, False)

    def _await_ready(self, deadline: float) -> None:
        while not self.ready:
            self._poll(deadline - time.monotonic())
            if time.monotonic() > deadline:
                raise KernelTimeout(f"no K_READY in time; it printed: {self._late_text()}")
            self._pipes_read(self._late, "late_")
            frame = self._frame_next()
            if frame:
                kind, stream, payload = frame
                if kind != K_READY or stream != 0 or payload[:TOKEN_SIZE] != NO_TOKEN:
                    raise ProtocolError(f"first frame is 0x{kind:02x} of stream {stream}")
                self.ready = json.loads(payload[TOKEN_SIZE:])
            elif self._reap(wait=False) is not None:
                raise ProtocolError(f"the kernel ended ({self._cause()}): {self._late_text()}")

    def _late_text(self) -> str:
        return b"".join(event.data for event in self._late).decode("utf-8", "replace")

    # The loop of one cell

    def _loop(self, run: _Run) -> None:
        cell = run.cell
        while not cell.status:
            now = time.monotonic()
            self._ladder(run, now)
            self._poll(self._wait_time(run, now))
            if time.monotonic() > run.deadline:
                self.signal(signal.SIGKILL)
                self._reap(wait=True)
                raise KernelTimeout(f"cell {cell.number} is not over; so far {cell.events}")
            self._pipes_read(cell.events)
            if run.interrupt_on and run.interrupt_on in cell.raw("stdout"):
                run.interrupt_on = None
                run.interrupt_at = time.monotonic() + run.interrupt_after
            try:
                while not cell.status and (frame := self._frame_next()):
                    self._frame_handle(run, *frame)
            except ProtocolError as problem:
                self.signal(signal.SIGKILL)
                self._reap(wait=True)
                cell.status, cell.cause, cell.problem = "died", "protocol", str(problem)
            if not cell.status and self._reap(wait=False) is not None:
                self._pipes_read(cell.events)
                cell.status, cell.cause = "died", self._cause()

    def _wait_time(self, run: _Run, now: float) -> float:
        times = [run.deadline, now + 0.1]
        times += [at for at in (run.interrupt_at, run.sigint_next, run.kill_at) if at is not None]
        return max(0.0, min(times) - now)

    def _ladder(self, run: _Run, now: float) -> None:
        """Interrupt, repeat, kill, each when its time has come."""
        if run.interrupt_at is not None and now >= run.interrupt_at:
            run.interrupt_at = None
            run.sigint_next = now + self._sigint_delay
            run.kill_at = now + self._sigint_delay + INTERRUPT_TIME
            self._send(K_INTERRUPT, run.cell.number)
        if run.kill_at is not None and now >= run.kill_at:
            run.kill_at = run.sigint_next = None
            self.signal(signal.SIGKILL)
        if run.sigint_next is not None and now >= run.sigint_next:
            run.sigint_next = now + INTERRUPT_PERIOD
            self.signal(signal.SIGINT)

    def _frame_handle(self, run: _Run, kind: int, stream: int, payload: bytes) -> None:
        cell = run.cell
        if kind not in KINDS or kind == K_READY:
            raise ProtocolError(f"type 0x{kind:02x} in a cell")
        if stream != cell.number:
            raise ProtocolError(f"{KINDS[kind]} of cell {stream} in cell {cell.number}")
        if payload[:TOKEN_SIZE] != run.token:
            raise ProtocolError(f"{KINDS[kind]} with a wrong token")
        if kind in (K_RESULT, K_ERROR) and cell.of(KINDS[kind]):
            raise ProtocolError(f"second {KINDS[kind]}")
        data = json.loads(payload[TOKEN_SIZE:])
        self._pipes_read(cell.events)
        cell.events.append(Event(KINDS[kind], data))
        if kind in BARRIERS:
            self._send(K_ACK, stream)
        elif kind == K_INPUT_REQUEST:
            answer = run.answers.pop(0) if run.answers else None
            self._send(K_INPUT, stream, b"\0" if answer is None else b"\1" + answer.encode())
        elif kind == K_DONE:
            if data["status"] not in ("ok", "error", "interrupted"):
                raise ProtocolError(f"status {data['status']!r}")
            cell.status = data["status"]

    # Descriptors

    def _poll(self, timeout: float) -> None:
        """Wait until there is something to read; send what waits to be sent."""
        writers = [self._socket] if self._outgoing else []
        readers = [self._socket, *self._pipes]
        ready, writable, _ = select.select(readers, writers, [], max(0.0, timeout))
        if writable:
            self._flush()
        if self._socket in ready:
            self._socket_read()

    def _socket_read(self) -> None:
        try:
            data = self._socket.recv(1 << 20)
        except (BlockingIOError, ConnectionResetError):
            return
        if not data:  # the kernel closed it: not to spin on it until the process is reaped
            time.sleep(0.005)
        self._input += data

    def _send(self, kind: int, stream: int, payload: bytes = b"") -> None:
        self._outgoing += frame_pack(kind, stream, payload)
        self._flush()

    def _flush(self) -> None:
        try:
            sent = self._socket.send(self._outgoing)
        except BlockingIOError:
            return
        except (BrokenPipeError, ConnectionResetError):
            self._outgoing.clear()
            return
        del self._outgoing[:sent]

    def _frame_next(self) -> tuple[int, int, bytes] | None:
        if len(self._input) < HEADER.size:
            return None
        length, kind, stream = HEADER.unpack_from(self._input)
        if length > KERNEL_FRAME_MAX:
            raise ProtocolError(f"frame of {length} bytes")
        if length < TOKEN_SIZE:
            raise ProtocolError("frame without a token")
        end = HEADER.size + length
        if len(self._input) < end:
            return None
        payload = bytes(self._input[HEADER.size:end])
        del self._input[:end]
        return kind, stream, payload

    def _pipes_read(self, events: list[Event], prefix: str = "") -> None:
        """Drain both pipes: all that was in them at the call, though a child may print for ever."""
        for fd, name in list(self._pipes.items()):
            for _ in range(PIPE_MAX // READ_SIZE):
                try:
                    data = os.read(fd, READ_SIZE)
                except BlockingIOError:
                    break
                if not data:
                    os.close(fd)
                    del self._pipes[fd]
                    break
                kind = prefix + name
                if events and events[-1].kind == kind:
                    events[-1].data += data
                else:
                    events.append(Event(kind, bytearray(data)))

    def _idle_drain(self) -> None:
        self._pipes_read(self._late, "late_")

    # The process

    def _reap(self, wait: bool) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, 0 if wait else os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def _cause(self) -> str:
        code = self.returncode
        return f"signal:{-code}" if code is not None and code < 0 else f"exit:{code}"
