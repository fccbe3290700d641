# SPDX-License-Identifier: MIT
"""Hostile archives and paths through import_files and export_files, as a model could send them.

Each has to be refused with a reason, and nothing may appear outside of the target: neither in the
sandbox (every writable place is listed before and after) nor on the host.
"""

import base64
import hashlib
import os
import re
import socket
import stat
from pathlib import Path

import badarchives
import mcpstdio
import pytest

WRITABLE = "/workspace /tmp /home /dev/shm"


def host_tree(path):
    """{name: what it is} of everything below a directory, without following links."""
    found = {}
    for base, dirs, files in os.walk(os.fsencode(path)):
        for name in dirs + files:
            full = os.path.join(base, name)
            info = os.lstat(full)
            data = b""
            if stat.S_ISREG(info.st_mode):
                data = hashlib.sha256(Path(os.fsdecode(full)).read_bytes()).digest()
            found[os.path.relpath(full, os.fsencode(path))] = (info.st_mode, data)
    return found


class Doors:
    """A server with one allowed folder, one session, and a snapshot of both."""

    def __init__(self, server, root):
        self.server, self.root = server, root
        self.session = server.create(network="none")
        self.run("mkdir -p /workspace/a /workspace/ab && echo 1 >/workspace/a/in"
                 " && echo 2 >/workspace/ab/out && ln -s /etc /workspace/link"
                 " && mkfifo /workspace/fifo && echo 3 >/workspace/shut && chmod 0 /workspace/shut"
                 " && truncate -s 3G /workspace/huge")
        self.start = self.inside()
        self.host = host_tree(root.parent)

    def run(self, command):
        """Run a command line and return what it printed."""
        result = self.server.call("execute_terminal",
                                  {"session_id": self.session, "command": command})
        assert result["structuredContent"]["success"], result
        return result["structuredContent"]["stdout"]

    def inside(self):
        """List every writable place of the sandbox."""
        return sorted(self.run(f"find {WRITABLE} -printf '%p %y %s %l\\n'").splitlines())

    def send(self, tool, entry):
        """Call a file tool with one entry; return the reason why it was refused."""
        result = self.server.call(tool, {"session_id": self.session, "files": [entry]})
        payload = result["structuredContent"]
        assert result["isError"] and payload["success"] is False, (entry, payload)
        if payload["error"] == "INVALID_INPUT":
            return " ".join(detail["msg"] for detail in payload["details"])
        if "files" not in payload:
            return payload["error"]
        [one] = payload["files"]
        assert one["success"] is False and one["error"], (entry, payload)
        return one["error"]

    def check(self):
        """Nothing has changed, inside and outside."""
        assert self.inside() == self.start
        assert host_tree(self.root.parent) == self.host


@pytest.fixture(scope="module")
def doors(tmp_path_factory):
    """A host with an allowed folder full of traps, and a server that may read that folder."""
    top = tmp_path_factory.mktemp("host")
    root = top / "in"
    for name in ("in/sub", "in2", "secret"):
        (top / name).mkdir(parents=True)
    (top / "secret/canary").write_text("canary")
    (top / "in2/file").write_text("canary")
    (root / "file").write_text("fine")
    (root / "out").symlink_to(top / "secret")
    (root / "file-out").symlink_to("../secret/canary")
    (root / "etc").symlink_to("/etc")
    (root / "loop").symlink_to("loop")
    for i in range(41):
        (root / f"chain{i}").symlink_to(f"chain{i + 1}" if i < 40 else "../secret")
    (root / "tree").mkdir()
    (root / "tree/escape").symlink_to("../../secret")
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "socket"))
    archives = top / "archives"
    archives.mkdir()
    state = tmp_path_factory.mktemp("doors-state")
    settings = {"IMPORT_ALLOWED_DIRS": f"{root}, {archives}/"}
    with mcpstdio.Server(state, settings=settings) as server:
        server.initialize()
        yield Doors(server, root)


def hostile_sources(root):
    """Host paths that a model must not get."""
    top = root.parent
    return [
        "/etc/passwd", "/etc/shadow", "//etc//passwd", "/proc/self/environ", "/proc/1/environ",
        "/dev/zero", "/dev/null", "/", ".", "..", "etc/passwd", "../../etc/passwd", "~/.ssh/id_rsa",
        "file:///etc/passwd", "/proc/self/root/etc/passwd", "/proc/self/cwd", "/sys/kernel",
        str(top / "in2/file"), f"{root}2/file", str(top / "secret/canary"),
        f"{root}/../secret/canary", f"{root}/sub/../../secret/canary", f"{root}/./../in2/file",
        f"{root}//..//secret//canary", f"{root}/out/canary", f"{root}/out", f"{root}/out/",
        f"{root}/file-out", f"{root}/etc/passwd", f"{root}/etc", f"{root}/loop", f"{root}/chain0",
        f"{root}/chain0/canary", f"{root}/tree", f"{root}/fifo", f"{root}/socket",
        f"{root}/missing", f"{root}/file/", f"{root}/file/x", f"{root}/" + "x" * 5000,
        f"{root}/" + "/".join(["y" * 200] * 30), str(top),
    ]


def hostile_entries(session):
    """Entries whose session, path or destination is wrong, with a word of the reason."""
    inline = {"file_content": "x"}
    other = "0" * 32
    return [
        {"session_id": other, "path": "/workspace/a"},
        {"session_id": "../x", "path": "/workspace/a"},
        {"session_id": session, "path": "/workspace/ab/out"},
        {"session_id": session, "path": "/workspace/a/../ab/out"},
        {"session_id": session, "path": "/etc/passwd"},
        {"session_id": session, "path": "/workspace/../etc/passwd"},
        {"session_id": session, "path": "../../etc/passwd"},
        {"session_id": session, "path": "/proc/1/environ"},
        {"session_id": session, "path": "link/passwd"},
        {"session_id": session},
        {"path": "/workspace/a"},
        {},
        {"destination": "/workspace/x"},
        {"source": ""},
        {"file_content": "!!!", "encoding": "base64", "destination": "x"},
        {"file_content": "x", "encoding": "utf-16", "destination": "x"},
        inline,
        inline | {"destination": "/proc/self/mem"},
        inline | {"destination": "/proc/sysrq-trigger"},
        inline | {"destination": "/etc/passwd"},
        inline | {"destination": "/usr/bin/python3"},
        inline | {"destination": "/dev/null/x"},
        inline | {"destination": "/opt/sandbox-agent/kernel/kernel.py"},
        inline | {"destination": "/workspace/a/in/below-a-file"},
        inline | {"destination": "/workspace/a"},
        inline | {"destination": "/"},
        inline | {"destination": "a\0b"},
        inline | {"destination": "n" * 300},
        inline | {"destination": "/".join(["d" * 200] * 30)},
        inline | {"destination": "link/x"},
        {"file_content": base64.b64encode(b"not an archive").decode(), "encoding": "base64",
         "destination": "x/", "extract": True},
        {"file_content": "", "destination": "x/", "extract": True},
    ]


HOSTILE_EXPORTS = [
    "/etc/passwd", "../etc/passwd", "/workspace/../etc/passwd", "/workspace/..", "..", "/", "",
    "/proc/self/environ", "/proc/1/root/etc/passwd", "/workspacex", "/workspace2/a", "/tmp", "fifo",
    "missing", "a/missing", "a/in/x", "link/../../etc/passwd", "a\0b", "x" * 5000, "~/x",
    "/dev/zero",
    "/home/sandbox/.profile", "file:///workspace/a", "%2e%2e/etc/passwd", "/dev/shm",
]


def test_case_48_50_every_hostile_archive_and_path_is_refused_with_a_reason(doors):
    count = 0
    doors.server.call("export_files",
                      {"session_id": doors.session, "files": [{"source": "/workspace/a"}]})
    for name, data, pattern in badarchives.hostile():
        if len(data) > 20 << 20:
            path = doors.root.parent / "archives" / "x"
            path.write_bytes(data)
            entry = {"source": str(path)}
        else:
            entry = {"file_content": base64.b64encode(data).decode(), "encoding": "base64"}
        reason = doors.send("import_files", entry | {"destination": "/workspace/t/",
                                                     "extract": True})
        (doors.root.parent / "archives" / "x").unlink(missing_ok=True)
        # What is too much for an archive may be too much for the sandbox before.
        assert re.search(f"{pattern}|No space left", reason), (name, pattern, reason)
        count += 1
    for source in hostile_sources(doors.root):
        reason = doors.send("import_files", {"source": source, "destination": "got"})
        assert "canary" not in reason.replace(source[:400], ""), (source, reason)
        count += 1
    for entry in hostile_entries(doors.session):
        assert doors.send("import_files", entry), entry
        count += 1
    for source in HOSTILE_EXPORTS:
        assert doors.send("export_files", {"source": source}), source
        count += 1
    doors.check()
    assert count >= 200, count
    print(f"{count} hostile archives and paths refused")


def test_fil_01_what_is_allowed_goes_in(doors):
    entry = {"source": str(doors.root / "file"), "destination": "/tmp/fine/"}
    result = doors.server.call("import_files", {"session_id": doors.session, "files": [entry]})
    assert not result["isError"], result
    assert doors.run("cat /tmp/fine/file; rm -r /tmp/fine") == "fine"
    doors.check()
