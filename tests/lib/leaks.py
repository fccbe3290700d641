# SPDX-License-Identifier: MIT
"""What sandboxes may leave behind on a host, and the check that nothing is left.

    before = leaks.snapshot(state_dir)
    ...
    leaks.assert_none(before)

Only additions count, and only those that are still there after a while: a sandbox that ends takes
a moment, and an unrelated process may come and go. Needs root to see other users' processes.

Where other programs use sandboxes at the same time, name the instance that is to be looked at
("lib" of "lib-0"): then id slots and namespaces of nobody are left out, since they tell no owner.
"""

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

# How our things are named on a host: programs, cgroups, mounts of images and run directories.
OUR_PROGRAMS = re.compile(r"sandbox-(agent|launch|egress|init)\b")
OUR_PATHS = re.compile(r"sandbox-agent|/sbx")
SLOTS = Path("/run/sandbox-agent/slots")


@dataclass(frozen=True)
class Snapshot:
    """Sets of what was found, by kind, and the state directory that was looked at."""

    state_dir: Path | None
    instance: str | None
    found: dict

    def added_since(self, before):
        """Return {kind: what is here and was not there before}, without empty kinds."""
        added = {kind: sorted(items - before.found[kind]) for kind, items in self.found.items()}
        return {kind: items for kind, items in added.items() if items}


def _read(path):
    """Return a file's text; empty if it is gone or not ours to read."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _link(path):
    """Return where a link leads; empty if it is gone or not ours to read."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _is_of_sandbox(pid):
    """Tell whether a process lives in a user namespace other than ours."""
    namespace = _link(f"/proc/{pid}/ns/user")
    return bool(namespace) and namespace != os.readlink("/proc/self/ns/user")


def _processes(pids):
    """Return our programs and everything inside sandboxes, with the start time against reuse."""
    found = set()
    for pid in pids:
        command = _read(f"/proc/{pid}/cmdline").replace("\0", " ").strip()
        program = os.path.basename(_link(f"/proc/{pid}/exe").removesuffix(" (deleted)"))
        if OUR_PROGRAMS.match(program) or _is_of_sandbox(pid):
            start = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()[19:20]
            found.add(f"{pid} started {''.join(start)}: {command or program}")
    return found


def _net_namespaces(pids):
    """Return the network namespaces that processes hold or that are bound to a path."""
    held = {_link(f"/proc/{pid}/ns/net") for pid in pids} - {""}
    bound = {line.split()[4] for line in _read("/proc/self/mountinfo").splitlines()
             if line.split()[3].startswith("net:[")}
    return held | bound


def _pids_of(instance):
    """Return the processes of an instance, by their control groups and their command line."""
    ours = re.compile(rf"/sandbox-agent/{re.escape(instance)}-\d|/run/{re.escape(instance)}-\d")
    return [pid for pid in _pids()
            if ours.search(_read(f"/proc/{pid}/cgroup") + _read(f"/proc/{pid}/cmdline"))]


def _cgroups(instance):
    """Return our control groups in every hierarchy, or those of an instance."""
    ours = re.compile(rf"/sandbox-agent/{re.escape(instance)}-\d") if instance else OUR_PATHS
    mounts = {line.split()[4] for line in _read("/proc/self/mountinfo").splitlines()
              if re.search(r" - cgroup2? ", line)}
    return {directory for mount in mounts for directory, _, _ in os.walk(mount)
            if ours.search(directory)}


def _mounts(state_dir, instance):
    """Return the mount points of this namespace that belong to us, or to the state directory."""
    found = set()
    for line in _read("/proc/self/mountinfo").splitlines():
        _, _, _, root, point = line.split()[:5]
        if not instance and OUR_PATHS.search(point) or (
                state_dir and point.startswith(f"{state_dir}/")):
            found.add(f"{point} of {root}")
    return found


def _loop_devices():
    return {f"{path.parent.parent.name} {_read(path).strip()}"
            for path in Path("/sys/block").glob("loop*/loop/backing_file")}


def _slots():
    """Return the locked ranges of the host's table of id slots."""
    try:
        inode = SLOTS.stat().st_ino
    except OSError:
        return set()
    return {" ".join(line.split()[-2:]) for line in _read("/proc/locks").splitlines()
            if f":{inode} " in line and "->" not in line}


def _entries(*directories):
    return {str(entry) for directory in directories if directory.is_dir()
            for entry in directory.iterdir()}


def snapshot(state_dir=None, instance=None):
    """Look at the host now; with a state directory also at its run directories."""
    state_dir = Path(state_dir) if state_dir else None
    pids = _pids_of(instance) if instance else _pids()
    run = _entries(state_dir / "run") if state_dir else set()
    return Snapshot(state_dir, instance, {
        "processes": _processes(pids),
        "network namespaces": _net_namespaces(pids),
        "cgroups": _cgroups(instance),
        "mounts": _mounts(state_dir, instance),
        "loop devices": set() if instance else _loop_devices(),
        "id slots": set() if instance else _slots(),
        "shared memory": set() if instance else _entries(Path("/dev/shm")),
        "run directories": {e for e in run if not instance or f"/run/{instance}-" in e},
    })


def wait_for_none(before, within=10.0):
    """Wait until nothing is added since `before`; return what still is when time is up."""
    deadline = time.monotonic() + within
    while True:
        added = snapshot(before.state_dir, before.instance).added_since(before)
        if not added or time.monotonic() > deadline:
            return added
        time.sleep(0.1)


def assert_none(before, within=10.0):
    """Fail with the list of what was left behind."""
    added = wait_for_none(before, within)
    assert not added, "left behind:\n" + "\n".join(
        f"  {kind}: {item}" for kind, items in added.items() for item in items)


def descriptors(pid):
    """Return what the descriptors of a process lead to, to compare a daemon before and after."""
    return sorted(_link(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))


def settled_fds(fds):
    """Count our descriptors until there are no more than so many, for two seconds at most.

    The last holder of a sandbox that has ended may be another thread of the library, which closes
    its socket some milliseconds after stop() has returned; what leaks stays.
    """
    deadline = time.monotonic() + 2
    while (count := len(os.listdir("/proc/self/fd"))) > fds and time.monotonic() < deadline:
        time.sleep(0.01)
    return count
