# SPDX-License-Identifier: MIT
"""Files in and out of a hostile sandbox: FIL-04, case 49. The init alone is tested in init/."""

import json
import secrets
import stat
import threading
import time
from pathlib import Path

import pytest
import sa as sa_module

MIB = 1 << 20


@pytest.fixture
def canary(tmp_path):
    """A directory of the host with a secret in it, that must never be read, listed or changed."""
    secret = "canary" + secrets.token_hex(8)
    (tmp_path / "secret").write_text(secret)
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()}
    yield tmp_path, secret
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()} == before


@pytest.fixture
def planted(make, canary):
    """A session with links to everywhere."""
    host, _ = canary
    session = make(network="none")
    links = {
        "shadow": "/etc/shadow",
        "root": "/",
        "new": "/nonexist/file",
        "proc": "/proc/self/root/etc",
        "init": "/proc/1/root",
        "host": str(host),
        "secret": f"{host}/secret",
        "up": "../" * 30 + str(host)[1:],
        "loop": "loop",
        "fd": "/proc/self/fd/3",
        "null": "/dev/null",
        "mem": "/proc/self/mem",
        "environ": "/proc/1/environ",
        "kernel": "/opt/sandbox-agent/kernel",
        "home": "/home/sandbox",
    }
    for name, target in links.items():
        assert session.terminal(f"ln -s '{target}' {name}")["success"]
    session.terminal(
        "mkfifo fifo; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\";"
        "ln -s a b; ln -s b a; i=0; ln -s . c0; while [ $i -lt 45 ]; do "
        "ln -s c$i c$((i+1)); i=$((i+1)); done"
    )
    return session, links


def refused(call, *arguments):
    """The error of a call that must fail."""
    start = time.monotonic()
    with pytest.raises(sa_module.Error) as e:
        call(*arguments)
    assert time.monotonic() - start < 5 and str(e.value)
    return e.value


def test_fil_04_case_49_reading_through_planted_links(planted, canary):
    session, _ = planted
    host, secret = canary
    for name in (
        "shadow",
        "new",
        "proc",
        "host",
        "secret",
        "up",
        "loop",
        "a",
        "fd",
        "mem",
        "environ",
        "fifo",
        "sock",
        "null",
        "root",
        "host/secret",
        "up/secret",
        "root" + str(host) + "/secret",
        "init/etc/passwd",
        "proc/shadow",
        "c45/x",
        "/proc/1/environ",
        "/proc/self/maps",
        "/proc/kcore",
        "/dev/zero",
        "/dev/full",
        "/proc/self/root" + str(host) + "/secret",
        "../" * 40 + str(host)[1:] + "/secret",
        ".",
        "..",
        "/",
        "",
    ):
        assert secret not in str(refused(session.read, name)), name
    # What leads to the sandbox's own files is theirs to lead.
    assert b"sandbox:x:65532" in session.read("root/etc/passwd")
    session.write("/home/sandbox/mine", b"yes")
    assert session.read("home/mine") == b"yes"


def test_fil_04_case_49_listing_through_planted_links(planted, canary):
    session, links = planted
    _, secret = canary
    names = {entry["name"]: entry["type"] for entry in session.files("/workspace")}
    assert {names[name] for name in links} == {"link"} and names["fifo"] == names["sock"] == "other"
    inside = {entry["name"] for entry in session.files("root")}
    assert {"workspace", "etc", "proc"} <= inside and "secret" not in inside
    for name in ("host", "up", "init", "loop", "fifo", "secret", "new", "c45", "proc/1/root"):
        assert secret not in str(refused(session.files, name)), name
    for name in ("/proc/1/fd", "/proc/1/task/1/fd", "/proc/self/fd"):
        try:
            assert not [e for e in session.files(name) if str(canary[0]) in e["name"]]
        except sa_module.Error:
            pass


def test_fil_04_case_49_writing_through_planted_links(planted, canary):
    session, _ = planted
    host, _ = canary
    marks = [Path(p) for p in ("/tmp/x-of-a-sandbox", "/nonexist", "/etc/x-of-a-sandbox")]
    # A link at the end is replaced by the file, never followed.
    for name in ("shadow", "new", "secret", "null", "fifo", "sock", "loop", "environ"):
        session.write(name, b"mine")
        assert session.read(name) == b"mine"
        assert session.terminal(f"stat -c %F {name}")["stdout"] == "regular file\n"
    session.write("root/tmp/x-of-a-sandbox", b"mine")
    assert session.terminal("cat /tmp/x-of-a-sandbox")["stdout"] == "mine"
    for name in (
        "root/etc/x-of-a-sandbox",
        "proc/x",
        "init/tmp/x",
        "kernel/kernel.py",
        "c45/x",
        "/proc/self/oom_score_adj",
        "/proc/1/oom_score_adj",
        "/dev/null",
        "/dev/x",
        "/etc/passwd",
        ".",
        "..",
        "/",
        "",
        "/proc/self/fd/1",
    ):
        refused(session.write, name, b"evil")
    # Directories on the way are made inside: the host's path is a path of the sandbox, or nothing.
    try:
        session.write("up/new", b"mine")
        session.write("host/new", b"mine")
    except sa_module.Error:
        pass
    assert not any(mark.exists() for mark in marks) and not (host / "new").exists()


def test_fil_04_case_49_removing_through_planted_links(planted, canary):
    session, links = planted
    for name in links:
        session.remove(name)
    for name in ("fifo", "sock", "a", "b", "c3"):
        session.remove(name)
    left = {entry["name"] for entry in session.files()}
    assert not left & (set(links) | {"fifo", "sock", "a", "b", "c3"})
    assert session.terminal("ls -d /etc/passwd /home/sandbox")["success"]
    for name in ("/", "/etc", "/workspace", "/proc/1", "/usr/bin/env", ".", "..", "/dev/null"):
        refused(session.remove, name)
    session.terminal(
        "mkdir -p tree/deep; ln -s / tree/deep/root; touch /tmp/stays; ln -s /tmp tree/t; "
        "chmod 000 tree/deep"
    )
    session.remove("tree")
    assert session.terminal("ls /tmp/stays; ls -d tree")["stdout"] == "/tmp/stays\n"


SWAP = """
import os, shutil, time
def fresh():
    for name in ("real", "kept", "link", "gone"):
        if os.path.islink(name):
            os.unlink(name)
        shutil.rmtree(name, ignore_errors=True)
    os.makedirs("real")
    open("real/secret", "w").write("inside")
fresh()
print("go", flush=True)
while not os.path.exists("stop"):
    try:
        os.symlink({target!r}, "link")
        os.rename("real", "kept"); os.rename("link", "real")
        os.rename("real", "gone"); os.rename("kept", "real")
        os.unlink("gone")
    except OSError:  # a write has made the directory in between
        fresh()
"""


def test_fil_04_case_49_a_directory_and_a_link_swapped_in_a_loop(make, canary):
    host, secret = canary
    session = make(network="none")
    session.write("swap.py", SWAP.format(target=str(host)))
    with session.run("exec python3 swap.py", kind="command", timeout=60) as run:
        while run.next(timeout=20) != ("stdout", b"go\n"):
            pass
        seen = {"inside": 0}
        for i in range(1000):
            try:
                if i % 4 == 3:
                    session.write("real/new", b"mine")
                elif i % 4 == 2:
                    assert {e["name"] for e in session.files("real")} <= {"secret", "new"}
                else:
                    data = session.read("real/secret").decode()
                    assert data != secret
                    seen[data] = seen.get(data, 0) + 1
            except sa_module.Error as error:
                seen[error.name] = seen.get(error.name, 0) + 1
        session.write("stop", b"")
        assert run.result(timeout=60)["status"] in ("ok", "error")
    assert seen["inside"] > 3 and not (host / "new").exists(), seen


def test_fil_04_files_that_change_while_they_are_moved(make):
    """A file that grows, shrinks or goes away while it is read: the bytes or an error, no hang."""
    session = make(network="none", tmpfs_bytes=64 * MIB)
    grow = (
        "import os\nwhile not os.path.exists('stop'):\n    with open('f', 'wb') as f:\n"
        "        for i in range(20): f.write(bytes(1 << 18)); f.flush()\n        f.truncate(100)\n"
        "    os.unlink('f')\n"
    )
    session.write("grow.py", grow)
    with session.run("exec python3 grow.py", kind="command", timeout=60) as run:
        for _ in range(60):
            try:
                assert set(session.read("f")) <= {0}
            except sa_module.Error as error:
                assert error.name in ("NOT_FOUND", "SYSTEM"), error
        session.write("stop", b"")
        run.result(timeout=60)


NAMES = [
    b"\xff\xfe",
    b"new\nline",
    b"esc\x1b[2J",
    b"quote\"'\\",
    b"x" * 255,
    "\u202egpj.exe".encode(),
    b" ",
    b"-rf",
    b"\xed\xa0\x80",
    b"*",
]


def test_fil_04_names_of_any_bytes(make):
    session = make(network="none")
    for i, name in enumerate(NAMES):
        session.write(name, str(i))
    listed = session.files()  # it is JSON whatever the names hold
    assert len(listed) == len(NAMES) and json.dumps(listed)
    for i, name in enumerate(NAMES):
        assert session.read(name) == str(i).encode()
    for name in NAMES:
        session.remove(name)
    assert session.files() == []


def test_fil_04_many_transfers_at_once(make):
    """Streams of one session do not mix, and a hostile cell beside them does not stop them."""
    session = make(network="none", tmpfs_bytes=128 * MIB)
    errors = []

    def work(i):
        try:
            data = bytes([i]) * (MIB + i)
            for _ in range(5):
                session.write(f"f{i}", data)
                assert session.read(f"f{i}") == data
        except (AssertionError, sa_module.Error) as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    with session.run("import os\nwhile True: os.write(1, b'x' * 65536)", timeout=60) as run:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run.cancel()
        assert run.result(timeout=30)["status"] in ("interrupted", "timeout")
    assert not errors, errors


def test_fil_04_modes_and_owners(make):
    session = make(network="none")
    session.write("plain", b"x")
    assert session.terminal("stat -c '%a %u %g' plain")["stdout"] == "644 65532 65532\n"
    session.terminal("chmod 4755 plain")
    session.write("plain", b"y")
    mode = int(session.terminal("stat -c %a plain")["stdout"], 8)
    assert mode & stat.S_ISUID == 0 or session.terminal("./plain; id -u")["stdout"].endswith(
        "65532\n"
    )
    session.terminal("mkdir closed && chmod 000 closed")
    refused(session.write, "closed/x", b"x")
    refused(session.read, "closed/x")
