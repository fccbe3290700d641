# SPDX-License-Identifier: MIT
"""Play the daemon for one keeper: the messages of src/wire/job.h.

    with Keeper(tmp_path) as keeper:
        sandbox = keeper.open(Job(rootfs=image))
        with sandbox.connect() as client:
            run = client.spawn(["id", "-u"])

The layouts are those of the C structs (ctypes lays out as C does). Nothing waits without a limit.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import secrets
import select
import signal
import socket
import subprocess
import time
from pathlib import Path

from control import Client

ID, PATH, PORTS, MOUNTS, META = 32, 512, 64, 8, 4096
JOB_MAGIC, KEEPER_MAGIC, EGRESS_MAGIC, VERSION = 0x5342584A, 0x5342584B, 0x53425845, 1
OVERLAY_ROOT, AS_ROOT, INSTALL_NETWORK, ALLOW_DEGRADED = 1, 2, 4, 8
NETWORK = {"none": 0, "public": 1, "allowlist": 2}
INFO, OPEN, CLOSE, SEAL, LIST, STOP, BUILD = range(1, 8)
IS, OPENED, FAILED, ENDED, SANDBOX, DONE, OOM = range(1, 8)
DEGRADED = ("one uid", "no memory cgroup", "no pids cgroup", "no cpu cgroup", "no landlock",
            "no quota", "no seccomp", "no idmapped mounts", "egress uid", "no network namespace",
            "no user namespace")
MIB = 1 << 20
TIMEOUT = 30.0

F_ADD_SEALS, SEALS = 1033, 1 | 2 | 4 | 8

ROOT = Path(__file__).resolve().parents[2]
BUILD_DIR = Path(os.environ.get("SANDBOX_AGENT", ROOT / "build/sandbox-agent")).resolve().parent


class MountStruct(ctypes.Structure):
    """struct job_mount"""

    _fields_ = [("source", ctypes.c_char * PATH), ("target", ctypes.c_char * 256),
                ("writable", ctypes.c_uint32)]


class JobStruct(ctypes.Structure):
    """struct launch_job"""

    _fields_ = [
        ("magic", ctypes.c_uint32), ("version", ctypes.c_uint32), ("flags", ctypes.c_uint32),
        ("network", ctypes.c_uint32), ("id", ctypes.c_char * (ID + 1)),
        ("owner", ctypes.c_char * 129), ("hostname", ctypes.c_char * 65),
        ("runtime", ctypes.c_char * 17), ("rootfs", ctypes.c_char * PATH),
        ("memory_bytes", ctypes.c_uint64), ("tmpfs_bytes", ctypes.c_uint64),
        ("home_bytes", ctypes.c_uint64), ("disk_bytes", ctypes.c_uint64),
        ("cpu_quota_us", ctypes.c_uint32), ("cpu_period_us", ctypes.c_uint32),
        ("pids", ctypes.c_uint32), ("nofile", ctypes.c_uint32), ("lease_ms", ctypes.c_uint32),
        ("port_count", ctypes.c_uint32), ("ports", ctypes.c_uint16 * PORTS),
        ("mount_count", ctypes.c_uint32), ("mounts", MountStruct * MOUNTS),
        ("created_ms", ctypes.c_int64), ("meta", ctypes.c_char * META)]


class RequestStruct(ctypes.Structure):
    """struct keeper_request"""

    _fields_ = [("magic", ctypes.c_uint32), ("op", ctypes.c_uint32), ("serial", ctypes.c_uint64),
                ("id", ctypes.c_char * (ID + 1)), ("arg", ctypes.c_char * 65)]


class EventStruct(ctypes.Structure):
    """struct keeper_event"""

    _fields_ = [
        ("magic", ctypes.c_uint32), ("kind", ctypes.c_uint32), ("serial", ctypes.c_uint64),
        ("id", ctypes.c_char * (ID + 1)), ("code", ctypes.c_int32), ("sys", ctypes.c_int32),
        ("text", ctypes.c_char * 400), ("cause", ctypes.c_char * 32),
        ("degraded", ctypes.c_uint32), ("pid", ctypes.c_int32), ("slot", ctypes.c_uint32),
        ("uid", ctypes.c_uint32), ("running", ctypes.c_uint32),
        ("pids_events", ctypes.c_char * PATH), ("pids_current", ctypes.c_char * PATH),
        ("memory_current", ctypes.c_char * PATH), ("memory_events", ctypes.c_char * PATH)]


class KeeperError(Exception):
    """The keeper answered KEEPER_FAILED."""

    def __init__(self, event):
        super().__init__(event.text.decode())
        self.event = event


class EgressRule(ctypes.Structure):
    """struct egress_rule"""

    _fields_ = [("host", ctypes.c_char * 254), ("port", ctypes.c_uint16)]


class EgressConfig(ctypes.Structure):
    """struct egress_config"""

    _fields_ = [
        ("magic", ctypes.c_uint32), ("version", ctypes.c_uint32), ("proxy", ctypes.c_char * 1024),
        ("no_proxy", ctypes.c_char * 2048), ("allow_count", ctypes.c_uint32),
        ("allow", EgressRule * 128), ("list_count", ctypes.c_uint32), ("list", EgressRule * 128)]


def job(rootfs, **values):
    """Return a JobStruct with small limits; `mounts` is a list of (source, target, writable)."""
    settings = dict(
        magic=JOB_MAGIC, version=VERSION, id=secrets.token_hex(16).encode(),
        rootfs=os.fsencode(rootfs),
        memory_bytes=256 * MIB, tmpfs_bytes=32 * MIB, home_bytes=32 * MIB, pids=64, nofile=1024,
        lease_ms=60000, created_ms=int(time.time() * 1000))
    mounts, ports = values.pop("mounts", []), values.pop("ports", [])
    settings["network"] = NETWORK[values.pop("network", "none")]
    settings.update(values)
    result = JobStruct(**settings)
    result.mount_count, result.port_count = len(mounts), len(ports)
    for i, (source, target, writable) in enumerate(mounts):
        result.mounts[i] = MountStruct(os.fsencode(source), os.fsencode(target), writable)
    for i, port in enumerate(ports):
        result.ports[i] = port
    return result


def sealed(data, seals=SEALS):
    """Return a memfd that holds bytes, sealed."""
    fd = os.memfd_create("job", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


def degraded(event):
    """Return the names of what a sandbox goes without."""
    return [name for bit, name in enumerate(DEGRADED) if event.degraded & (1 << bit)]


def _groups(name):
    mounts = {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()
              if " - cgroup" in line}
    return [path for mount in mounts for path, _, _ in os.walk(mount) if f"/{name}" in path]


def _processes(name):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            groups = Path(f"/proc/{pid}/cgroup").read_text()
            if f"/{name}/" in groups:
                found.append(f"{pid} {Path(f'/proc/{pid}/cmdline').read_bytes()}")
        except OSError:
            continue
    return found


def _loops(directory):
    return [str(path) for path in Path("/sys/block").glob("loop*/loop/backing_file")
            if str(directory) in path.read_text()]


class Sandbox:
    """One running sandbox."""

    def __init__(self, keeper, opened):
        self.keeper, self.opened, self.id = keeper, opened, opened.id.decode()
        self._clients = []

    @property
    def degraded(self):
        """What it goes without."""
        return degraded(self.opened)

    def connect(self):
        """Return a connected client of its init."""
        path = self.keeper.dir / "sb" / self.id / "control"
        client = Client(str(path))
        self._clients.append(client)
        return client

    def run(self, *argv, user="sandbox", timeout=TIMEOUT, env=None, cwd="/workspace"):
        """Run a process to its end; its stream, with stdout, stderr and end."""
        client = self._clients[0] if self._clients else self.connect()
        run = client.spawn(list(argv), user=user, cwd=cwd,
                           env={"PATH": "/usr/local/bin:/usr/bin:/bin", **(env or {})})
        run.wait(timeout)
        return run.ack()

    def python(self, code, **options):
        """Run a Python program; its stdout as text, or the error as an exception."""
        run = self.run("python3", "-c", code, **options)
        if run.end.get("exit_code") != "0":
            raise RuntimeError(f"{run.end}\n{run.stdout.decode()}{run.stderr.decode()}")
        return run.stdout.decode()

    def close(self):
        """End it; the KEEPER_ENDED that answers."""
        for client in self._clients:
            client.close()
        self._clients = []
        return self.keeper.request(CLOSE, self.id)


class Keeper:
    """A keeper process of an instance directory, and one client connection to it."""

    def __init__(self, directory, env=None, user=None, start=True, options=(), linger_ms=200,
                 init=None, egress=None, stderr=None):
        self.dir = Path(directory)
        self.dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.env, self.user = env or {}, user
        self.options = [*options, "--linger-ms", str(linger_ms)]
        self.init = init or BUILD_DIR / "guest/init/sandbox-init"
        self.egress = egress or BUILD_DIR / "egress/sandbox-egress"
        self.stderr = stderr
        self.config = bytes(EgressConfig(EGRESS_MAGIC, VERSION))
        self.events, self.fds, self.serial, self.process, self.sock = [], {}, 0, None, None
        if user:
            os.chown(self.dir, *user)
        if start:
            self.start()

    def start(self):
        """Start the program with its descriptors and connect to it."""
        path = self.dir / "keeper.sock"
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(str(path))
        listener.listen(16)
        if self.user:
            os.chown(path, *self.user)
        egress_config = sealed(self.config)
        given = [os.open(self.dir, os.O_RDONLY | os.O_DIRECTORY), listener.fileno(),
                 os.open(self.init, os.O_RDONLY), os.open(self.egress, os.O_RDONLY), egress_config]
        binary = str(BUILD_DIR / "launcher/sandbox-launch")
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in given]

        def prepare():
            for number, fd in enumerate(high, 3):
                os.dup2(fd, number)

        identity = {}
        if self.user:
            identity = {"user": self.user[0], "group": self.user[1], "extra_groups": []}
        self.process = subprocess.Popen(
            [binary, "--keeper", *self.options], preexec_fn=prepare, pass_fds=range(3, 8),
            env={"PATH": os.environ["PATH"], **self.env}, stdin=subprocess.DEVNULL,
            stderr=self.stderr, cwd="/", **identity)
        for fd in [*high, given[0], *given[2:]]:
            os.close(fd)
        listener.close()
        self.connect()

    def connect(self):
        """Connect (again); a lost connection keeps its sandboxes."""
        if self.sock:
            self.sock.close()
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.connect(str(self.dir / "keeper.sock"))

    def send(self, op, id="", arg="", fds=(), raw=None):
        """Send a request; its serial."""
        self.serial += 1
        data = raw if raw is not None else bytes(
            RequestStruct(KEEPER_MAGIC, op, self.serial, id.encode(), arg.encode()))
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.sock.sendmsg([data], control)
        return self.serial

    def receive(self, timeout=TIMEOUT):
        """Return the next event, with its descriptor in `fds`; None at the end."""
        if not select.select([self.sock], [], [], timeout)[0]:
            raise TimeoutError("no event from the keeper")
        data, ancillary, _, _ = self.sock.recvmsg(ctypes.sizeof(EventStruct) + 1,
                                                  socket.CMSG_SPACE(4))
        if not data:
            return None
        event = EventStruct.from_buffer_copy(data)
        event.fd = None
        for _, _, payload in ancillary:
            event.fd = array.array("i", payload)[0]
        return event

    def wait(self, match, timeout=TIMEOUT):
        """Return the first event that matches, kept or new; the others are kept."""
        deadline = time.monotonic() + timeout
        for i, event in enumerate(self.events):
            if match(event):
                return self.events.pop(i)
        while True:
            event = self.receive(max(0.0, deadline - time.monotonic()))
            if event is None:
                raise ConnectionError("the keeper closed the connection")
            if match(event):
                return event
            self.events.append(event)

    def answer(self, serial, timeout=TIMEOUT):
        """Return the answer to a request; KEEPER_FAILED is an exception."""
        event = self.wait(lambda e: e.serial == serial, timeout)
        if event.kind == FAILED:
            raise KeeperError(event)
        return event

    def request(self, op, id="", arg="", fds=(), timeout=TIMEOUT):
        """Send a request and return its answer."""
        return self.answer(self.send(op, id, arg, fds), timeout)

    def send_open(self, launch_job):
        """Send a job; the serial of the answer to come."""
        fd = sealed(bytes(launch_job))
        try:
            return self.send(OPEN, fds=[fd])
        finally:
            os.close(fd)

    def open(self, rootfs=None, launch_job=None, **values):
        """Start a sandbox from a job, or from the values of one."""
        launch_job = launch_job or job(rootfs, **values)
        return Sandbox(self, self.answer(self.send_open(launch_job)))

    def ended(self, sandbox, timeout=TIMEOUT):
        """Wait for the event that a sandbox has ended; its cause."""
        event = self.wait(lambda e: e.kind == ENDED and e.id.decode() == sandbox.id, timeout)
        return event.cause.decode()

    @property
    def group_name(self):
        """The name of this instance's control groups."""
        info = self.dir.stat()
        return f"{self.dir.name[:32]}-{info.st_dev:x}-{info.st_ino:x}"

    def leftovers(self, within=10.0):
        """What of this instance is still on the host, after waiting for it to go."""
        deadline = time.monotonic() + within
        while True:
            found = [*_groups(self.group_name), *_processes(self.group_name), *_loops(self.dir)]
            found += [str(path) for path in self.dir.glob("sb/*")]
            if self.process and self.process.poll() is None:
                # A living keeper keeps the instance's own groups.
                found = [item for item in found if not item.endswith(self.group_name)]
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.05)

    def kill(self):
        """Kill the keeper, as a crash would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(TIMEOUT)

    def stop(self):
        """End everything in order, if it still runs."""
        if self.process and self.process.poll() is None:
            try:
                self.connect()
                self.request(STOP)
            except (OSError, ConnectionError):
                self.process.terminate()
            try:
                self.process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        if self.sock:
            self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
