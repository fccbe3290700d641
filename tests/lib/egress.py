# SPDX-License-Identifier: MIT
"""Play the keeper for sandbox-egress: the egress protocol of docs/PROTOCOL.md, section 4.

A test builds its own world of network namespaces and never leaves it:

    with World() as world, Egress(world.host) as egress, egress.sandbox() as box:
        world.serve("203.0.113.7", 80, ...)
        address = box.resolve("example.test")
        sock = box.connect(address, 80)

`World` has a host namespace, where egress runs, and an outside namespace behind a veth pair, where
servers listen on any address that a test names. `Sandbox` is one more namespace in which every
address is local, with the listeners that the launcher would bind.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import re
import resource
import secrets
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Iterable, Iterator, Sequence

EGRESS_MAGIC = 0x53425845
JOB_VERSION = 1
NETWORK_NONE, NETWORK_PUBLIC, NETWORK_ALLOWLIST = range(3)
EGRESS_ADD, EGRESS_REMOVE, EGRESS_GONE = 1, 2, 3
MESSAGE = struct.Struct("=IIII33sx64H2x")
RULES = 128

CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
F_ADD_SEALS, ALL_SEALS = 1033, 0xF

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


class Netns:
    """A network namespace of its own, with lo up; entered by one thread at a time."""

    def __init__(self) -> None:
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _check(_libc.unshare(CLONE_NEWNET))
            self.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            self._ip_here("link set lo up")
        finally:
            _check(_libc.setns(before, CLONE_NEWNET))
            os.close(before)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Sockets made and processes started in this block belong to the namespace."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _check(_libc.setns(self.fd, CLONE_NEWNET))
            yield
        finally:
            _check(_libc.setns(before, CLONE_NEWNET))
            os.close(before)

    @staticmethod
    def _ip_here(*commands: str) -> None:
        subprocess.run(["ip", "-batch", "-"], input="\n".join(commands) + "\n", text=True,
                       check=True)

    def ip(self, *commands: str) -> None:
        """Run commands of ip(8) inside."""
        with self.entered():
            self._ip_here(*commands)

    def close(self) -> None:
        """Let the namespace go."""
        os.close(self.fd)


class Server:
    """A listener with a thread per connection; `seen` counts what arrived."""

    def __init__(self, listener: socket.socket, handler: Callable[[socket.socket], None]) -> None:
        self.listener, self.handler, self.seen = listener, handler, 0
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.seen += 1
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock:
            self.handler(sock)

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def echo(sock: socket.socket) -> None:
    """Send everything back, then end."""
    while data := sock.recv(1 << 16):
        sock.sendall(data)


def say(text: bytes) -> Callable[[socket.socket], None]:
    """Return a handler that sends `text` and ends."""

    def handler(sock: socket.socket) -> None:
        sock.sendall(text)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(1 << 16):
            pass

    return handler


class World:
    """The host's namespace and what lies outside of it."""

    HOST = ("198.51.100.2", "2001:db8:1::2")
    GATE = ("198.51.100.1", "2001:db8:1::1")

    def __init__(self) -> None:
        self.host, self.outside = Netns(), Netns()
        self.servers: list[Server] = []
        self._addresses: set[str] = set()
        with self.host.entered():
            subprocess.run(["ip", "link", "add", "out0", "type", "veth", "peer", "name", "in0",
                            "netns", f"/proc/{os.getpid()}/fd/{self.outside.fd}"], check=True)
        self.outside.ip(f"addr add {self.GATE[0]}/24 dev in0",
                        f"addr add {self.GATE[1]}/64 dev in0 nodad", "link set in0 up")
        self.host.ip(f"addr add {self.HOST[0]}/24 dev out0",
                     f"addr add {self.HOST[1]}/64 dev out0 nodad", "link set out0 up",
                     f"route add default via {self.GATE[0]}",
                     f"route add default via {self.GATE[1]}")

    def address(self, address: str) -> None:
        """Make the outside own an address."""
        if address not in self._addresses:
            self._addresses.add(address)
            v6 = ":" in address
            self.outside.ip(f"addr add {address}/{128 if v6 else 32} dev lo"
                            f"{' nodad' if v6 else ''}")

    def serve(self, address: str, port: int, handler: Callable = echo, *,
              on_host: bool = False, backlog: int = 1024) -> Server:
        """Listen on any address outside, or on the host's own ones."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        if not on_host:
            self.address(address)
        with (self.host if on_host else self.outside).entered():
            listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(backlog)
        server = Server(listener, handler)
        self.servers.append(server)
        return server

    def close(self) -> None:
        """Take everything down."""
        for server in self.servers:
            server.close()
        self.host.close()
        self.outside.close()

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def dns_query(name: str | bytes, kind: int = 1, *, ident: int | None = None,
              extra: bytes = b"", additional: int = 0) -> bytes:
    """Return a question; `name` as bytes is taken as it is on the wire."""
    if isinstance(name, str):
        labels = [part.encode("latin1") for part in name.rstrip(".").split(".") if part]
        name = b"".join(bytes([len(part)]) + part for part in labels) + b"\0"
    ident = secrets.randbelow(1 << 16) if ident is None else ident
    return (struct.pack(">HHHHHH", ident, 0x0100, 1, 0, 0, additional) + name +
            struct.pack(">HH", kind, 1) + extra)


@dataclass
class DnsAnswer:
    """What the stub said."""

    ident: int
    flags: int
    counts: tuple[int, int, int, int]
    question: bytes
    addresses: list[str]

    @property
    def rcode(self) -> int:
        """0 is NOERROR, 3 NXDOMAIN."""
        return self.flags & 15


def dns_parse(data: bytes) -> DnsAnswer:
    """Read an answer with at most one question and uncompressed owner names or pointers."""
    ident, flags, *counts = struct.unpack(">HHHHHH", data[:12])
    at = 12
    if counts[0]:
        while data[at]:
            at += 1 + data[at]
        at += 5
    question, addresses = data[12:at], []
    for _ in range(counts[1]):
        at += 2
        kind, _, _, length = struct.unpack(">HHIH", data[at:at + 10])
        if kind == 1:
            addresses.append(socket.inet_ntoa(data[at + 10:at + 10 + length]))
        at += 10 + length
    assert at == len(data), "bytes behind the answer"
    return DnsAnswer(ident, flags, tuple(counts), question, addresses)


class Sandbox:
    """A namespace in which every address is local, and the sockets of the launcher in it."""

    def __init__(self, ports: Sequence[int] = (80, 443), ident: str | None = None) -> None:
        self.id = ident or secrets.token_hex(16)
        self.ports = list(ports)
        self.netns = Netns()
        self.netns.ip("route add local 0.0.0.0/0 dev lo", "route add local ::/0 dev lo")
        with self.netns.entered():
            self.listeners = [self._listen(port) for port in self.ports]
            self.dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.dns.bind(("127.0.0.1", 53))
            self.client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.client.connect(("127.0.0.1", 53))
        self.client.settimeout(5)

    @staticmethod
    def _listen(port: int) -> socket.socket:
        sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(("::", port))
        sock.listen(1024)
        return sock

    @property
    def fds(self) -> list[int]:
        """The descriptors of an ADD, in order."""
        return [sock.fileno() for sock in (*self.listeners, self.dns)]

    def ask(self, packet: bytes) -> DnsAnswer:
        """Send a packet to the stub and return its answer."""
        self.client.send(packet)
        return dns_parse(self.client.recv(4096))

    def resolve(self, name: str) -> str | None:
        """Return the address that stands for a name, or None."""
        answer = self.ask(dns_query(name))
        return answer.addresses[0] if answer.addresses else None

    def connect(self, address: str, port: int = 80, timeout: float = 10) -> socket.socket:
        """Dial from inside."""
        with self.netns.entered():
            sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        sock.settimeout(timeout)
        sock.connect((address, port))
        return sock

    def dial(self, name: str, port: int = 80, timeout: float = 10) -> socket.socket:
        """Resolve, then dial."""
        address = self.resolve(name)
        assert address, f"{name} has no address"
        return self.connect(address, port, timeout)

    def run(self, *argv: str, scratch: Path, timeout: float = 120,
            **options: object) -> subprocess.CompletedProcess:
        """Run a program of the host inside, with the stub as its name server."""
        resolv = scratch / "resolv.conf"
        resolv.write_text("nameserver 127.0.0.1\n")
        resolv.chmod(0o644)
        order = {"files": {"/etc/resolv.conf": str(resolv)}, "argv": argv}
        with self.netns.entered():
            return subprocess.run([sys.executable, "-I", __file__, json.dumps(order)], text=True,
                                  capture_output=True, timeout=timeout, check=False, **options)

    def fetch(self, target: str, port: int = 80, send: bytes = b"ping",
              timeout: float = 10) -> bytes:
        """Send, end, read to the end; `target` is an address or a name. Raises on a reset."""
        is_name = re.search(r"[g-zG-Z]", target) and ":" not in target
        with (self.dial if is_name else self.connect)(target, port, timeout) as sock:
            parts = []
            try:
                sock.sendall(send)
                sock.shutdown(socket.SHUT_WR)
                while data := sock.recv(1 << 16):
                    parts.append(data)
            except OSError as error:  # what a reset looks like depends on when it comes
                if error.errno in (errno.ENOTCONN, errno.EPIPE):
                    raise ConnectionResetError(error.errno, "reset") from error
                raise
            return b"".join(parts)

    def close(self) -> None:
        """Close our copies of everything."""
        for sock in (*self.listeners, self.dns, self.client):
            sock.close()
        self.netns.close()


@dataclass
class Config:
    """struct egress_config; rules are (host, port)."""

    proxy: str = ""
    no_proxy: str = ""
    allow: Sequence[tuple[str, int]] = ()
    list: Sequence[tuple[str, int]] = ()

    def pack(self) -> bytes:
        """Return the bytes of the struct."""
        out = struct.pack("=II1024s2048s", EGRESS_MAGIC, JOB_VERSION, self.proxy.encode(),
                          self.no_proxy.encode())
        for rules in (self.allow, self.list):
            out += struct.pack("=I", len(rules))
            for host, port in [*rules, *[("", 0)] * (RULES - len(rules))]:
                out += struct.pack("=254sH", host.encode(), port)
        return out


def memfd(data: bytes, seals: int = ALL_SEALS) -> int:
    """Return a sealed memfd."""
    fd = os.memfd_create("egress-config", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    if seals:
        fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


def binary() -> Path:
    """The program under test: $SANDBOX_EGRESS, or the one of the build tree."""
    root = Path(__file__).resolve().parents[2]
    return Path(os.environ.get("SANDBOX_EGRESS", root / "build/egress/sandbox-egress"))


def is_sanitized() -> bool:
    """Tell whether the program has a sanitizer's run time, which needs calls and memory."""
    return any(word in binary().read_bytes() for word in (b"__asan_init", b"__tsan_init"))


@dataclass
class Egress:
    """A running sandbox-egress and the keeper's end of its control socket."""

    netns: Netns | None = None
    config: Config = field(default_factory=Config)
    limits: str = ""
    mounts: dict[str, str] = field(default_factory=dict)  # path -> content, seen by egress alone
    uid: int = 0x70000000
    raw_config: int | None = None
    nofile: int | None = None
    scratch: Path | None = None

    def __post_init__(self) -> None:
        self.sandboxes: list[Sandbox] = []
        self.text = ""
        self._lock = threading.Condition()
        self.start()

    def start(self) -> None:
        """Start the program (again)."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        config = memfd(self.config.pack()) if self.raw_config is None else self.raw_config
        errors, errors_in = os.pipe()
        theirs_fd = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD, 100)
        config_fd = fcntl.fcntl(config, fcntl.F_DUPFD, 100)
        files = {}
        for path, content in self.mounts.items():
            files[path] = str(self.scratch / path.strip("/").replace("/", "-"))
            Path(files[path]).write_text(content)
            Path(files[path]).chmod(0o644)
        order = {"fds": [theirs_fd, config_fd], "files": files, "uid": self.uid,
                 "nofile": self.nofile, "argv": [str(binary())]}

        environment = {"SBX_EGRESS_LIMITS": self.limits}
        environment |= {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
        with self.netns.entered() if self.netns else contextlib.nullcontext():
            self.process = subprocess.Popen(
                [sys.executable, "-I", __file__, json.dumps(order)], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=errors_in, pass_fds=(theirs_fd, config_fd),
                env=environment)
        for fd in (theirs_fd, config_fd, errors_in, config):
            os.close(fd)
        theirs.close()
        self.control = ours
        self._reader = threading.Thread(target=self._read, args=(errors,), daemon=True)
        self._reader.start()
        while self.process.poll() is None and self._comm() != binary().name[:15]:
            time.sleep(0.005)

    def _comm(self) -> str:
        with contextlib.suppress(OSError):
            return Path(f"/proc/{self.process.pid}/comm").read_text().strip()
        return ""

    def _read(self, fd: int) -> None:
        while data := os.read(fd, 1 << 16):
            with self._lock:
                self.text += data.decode("latin1")
                self._lock.notify_all()
        os.close(fd)

    def send(self, op: int, ident: str, fds: Sequence[int] = (), ports: Iterable[int] = (),
             network: int = NETWORK_PUBLIC) -> None:
        """Send one message."""
        ports = list(ports)
        message = MESSAGE.pack(EGRESS_MAGIC, op, network, len(ports), ident.encode(),
                               *ports, *[0] * (64 - len(ports)))
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.control.sendmsg([message], rights)

    def add(self, box: Sandbox, network: int = NETWORK_PUBLIC) -> None:
        """Hand a sandbox's sockets over."""
        self.send(EGRESS_ADD, box.id, box.fds, box.ports, network)

    def remove(self, box: Sandbox, timeout: float = 5) -> None:
        """Take a sandbox away and wait for GONE."""
        self.send(EGRESS_REMOVE, box.id)
        self.control.settimeout(timeout)
        fields = MESSAGE.unpack(self.control.recv(4096))
        assert fields[:2] == (EGRESS_MAGIC, EGRESS_GONE)
        assert fields[4].rstrip(b"\0").decode() == box.id

    @contextlib.contextmanager
    def sandbox(self, network: int = NETWORK_PUBLIC,
                ports: Sequence[int] = (80, 443)) -> Iterator[Sandbox]:
        """A sandbox for the length of a block."""
        box = Sandbox(ports)
        try:
            self.add(box, network)
            yield box
            if self.process.poll() is None:
                self.remove(box)
        finally:
            box.close()

    def log(self, pattern: str, timeout: float = 5) -> str:
        """Return the first line of the log that has `pattern`, waiting for it."""
        until = time.monotonic() + timeout
        with self._lock:
            while True:
                for line in self.text.splitlines():
                    if re.search(pattern, line):
                        return line
                if not self._lock.wait(max(0, until - time.monotonic())):
                    raise AssertionError(f"no line has {pattern!r} in:\n{self.text}")

    def rss(self) -> int:
        """Resident memory in bytes."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) << 10

    def cpu(self) -> float:
        """Seconds of processor time used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def fd_count(self) -> int:
        """Open descriptors of the process."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def close(self) -> int:
        """Close the control socket, as a dying keeper does, and return the exit status."""
        self.control.close()
        status = self.process.wait(10)
        self._reader.join(10)
        return status

    def __enter__(self) -> "Egress":
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is not None:
            self.control.close()
            return
        status = self.close()
        if exc[0] is None:
            assert status == 0, f"status {status}:\n{self.text}"


def _become(order: dict) -> None:
    """Run in a process of its own: what the keeper and the launcher do between fork and exec."""
    if order["files"]:
        _check(_libc.unshare(CLONE_NEWNS))
        _check(_libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))
        for path, source in order["files"].items():
            _check(_libc.mount(source.encode(), path.encode(), None, MS_BIND, None))
    if order.get("nofile"):
        resource.setrlimit(resource.RLIMIT_NOFILE, (order["nofile"], order["nofile"]))
    for number, fd in enumerate(order.get("fds", ()), 3):
        os.dup2(fd, number)
    if order.get("uid") and os.getuid() == 0:
        os.setgroups([])
        os.setresgid(*[order["uid"]] * 3)
        os.setresuid(*[order["uid"]] * 3)
    os.execvp(order["argv"][0], order["argv"])


if __name__ == "__main__":
    _become(json.loads(sys.argv[1]))
