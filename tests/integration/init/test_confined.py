# SPDX-License-Identifier: MIT
"""Landlock and seccomp as init applies them, and that it can still do its own work."""

import ctypes
import platform
import struct
import time
from pathlib import Path

import pytest

from places import FAKE

SYSINFO = {"x86_64": 99, "aarch64": 179}.get(platform.machine())


def landlock_abi() -> int:
    create_ruleset, version = 444, 1
    return ctypes.CDLL(None).syscall(create_ruleset, None, 0, version)


needs_landlock = pytest.mark.skipif(landlock_abi() < 1, reason="this kernel has no Landlock")


def insn(code, jt, jf, k) -> bytes:
    return struct.pack("<HBBI", code, jt, jf, k)


def program() -> bytes:
    """A filter that refuses sysinfo with ENOSYS and allows the rest."""
    return b"".join([
        insn(0x20, 0, 0, 0),                     # load the number
        insn(0x15, 0, 1, SYSINFO),               # is it sysinfo?
        insn(0x06, 0, 0, 0x00050000 | 38),       # ENOSYS
        insn(0x06, 0, 0, 0x7FFF0000),            # allow
    ])


@needs_landlock
def test_landlock_confines_what_is_started(start):
    init = start(landlock=True)
    outside = init.dir / "open-to-all"
    outside.mkdir()
    outside.chmod(0o777)
    with init.connect() as client:
        assert client.status()["landlock"] == str(landlock_abi())
        script = f"touch {outside}/x; echo $?; touch mine; echo $?; " \
                 "cat /etc/hostname >/dev/null; echo $?; echo x >/dev/null; echo $?; " \
                 "mkdir a b; touch a/f; mv a/f b/; echo $?; " \
                 "head -c 4 /dev/zero | wc -c; : > mine; echo $?"
        run = client.spawn(["sh", "-c", script]).wait()
        assert run.stdout.decode().split() == ["1", "0", "0", "0", "0", "4", "0"], run.stderr
        assert list(outside.iterdir()) == []


@needs_landlock
def test_landlock_leaves_init_its_work(start):
    init = start(landlock=True)
    outside = init.dir / "open-to-all"
    outside.mkdir()
    outside.chmod(0o777)
    with init.connect() as client:
        assert client.write("f", b"data", mode="600")["status"] == "ok"
        assert client.write("d/e/f", b"data", mkdirs=1)["status"] == "ok"
        assert client.file("RENAME", "f", to="d/f").end["status"] == "ok"
        assert client.read_file("d/f").raw("DATA") == b"data"
        assert client.file("REMOVE", "d", recursive=1).end["status"] == "ok"
        assert client.write(f"{outside}/x", b"x")["errno"] == "13"
        assert client.kernel(["/usr/bin/python3", "-I", str(FAKE)]).wait().end["status"] == "ok"
        cell = client.exec("k.out('on'); time.sleep(60)", timeout_ms=300).wait()
        assert cell.end["status"] == "timeout" and cell.end["state"] == "kept"
        run = client.spawn(["sh", "-c", "(setsid sleep 60 &); sleep 60"], timeout_ms=300).wait()
        assert run.end["status"] == "timeout"
        assert client.spawn(["cat", "/proc/self/oom_score_adj"]).wait().stdout == b"1000\n"
        assert client.sweep()["status"] == "ok"


@needs_landlock
def test_processes_of_a_sandbox_may_signal_each_other(start):
    """One domain for all: a domain for each process would split the session."""
    with start(landlock=True).connect() as client:
        sleeper = client.spawn(["sh", "-c", "echo up; exec sleep 60"])
        sleeper.until(lambda: sleeper.stdout)
        time.sleep(0.1)
        client.spawn(["pkill", "-x", "sleep"]).wait()
        assert sleeper.wait(5).end["cause"] == "signal:15"


@pytest.mark.skipif(SYSINFO is None, reason="no number of sysinfo for this machine")
def test_seccomp_program_is_loaded(start):
    init = start(seccomp=program())
    probe = ("import ctypes, os; c = ctypes.CDLL(None, use_errno=True); "
             f"print(c.syscall({SYSINFO}, bytes(256)), ctypes.get_errno())")
    with init.connect() as client:
        assert client.status()["seccomp"] == "1"
        run = client.spawn(["/usr/bin/python3", "-c", probe]).wait()
        assert run.stdout == b"-1 38\n"
        run = client.spawn(["grep", "^Seccomp", "/proc/self/status"]).wait()
        assert run.stdout.split() == [b"Seccomp:", b"2", b"Seccomp_filters:", b"1"]
        client.kernel(["/usr/bin/python3", "-I", str(FAKE)]).wait()
        cell = client.exec(f"import ctypes\nk.out(str(ctypes.CDLL(None).syscall({SYSINFO}, 0)))")
        assert cell.wait().stdout == b"-1"


@pytest.mark.parametrize("content", [b"", b"1234567", b"x" * 8 * 5000])
def test_no_start_without_a_program(start, content):
    init = start("--uid", "65532", seccomp=content or b"\0")
    assert init.wait(5) == 2


def test_a_program_that_the_kernel_refuses_starts_nothing(start):
    init = start(seccomp=insn(0xFF, 0, 0, 0))
    with init.connect() as client:
        end = client.spawn(["true"]).wait().end
        assert end["status"] == "error" and "seccomp" in end["message"] and end["errno"] == "22"


def test_root_of_the_namespace(start):
    """With --as-root user code may be uid 0; it has no capability all the same."""
    init = start("--as-root", "--root-uid", "0")
    with init.connect() as client:
        script = "id -u; grep ^Cap /proc/self/status"
        root = client.spawn(["sh", "-c", script], user="root").wait()
        user = client.spawn(["sh", "-c", script], user="sandbox").wait()
        no_caps = [f"{name}:\t{0:016x}"
                   for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")]
        assert root.stdout.decode().splitlines() == ["0", *no_caps]
        assert user.stdout.decode().splitlines() == ["65532", *no_caps]


def test_root_may_open_its_pipes_again(start):
    with start("--as-root", "--root-uid", "0").connect() as client:
        run = client.spawn(["sh", "-c", "echo e > /dev/stderr"], user="root").wait()
        assert run.stderr == b"e\n"


def test_one_uid(start):
    """With one id only, what is started has that of init, and still no capability."""
    init = start("--one-uid", "--uid", "0", "--gid", "0")
    with init.connect() as client:
        run = client.spawn(["sh", "-c", "id -u; grep ^CapEff /proc/self/status"]).wait()
        assert run.stdout.split() == [b"0", b"CapEff:", b"0" * 16]
        run = client.spawn(["sh", "-c", "(setsid sleep 60 &); sleep 60"], timeout_ms=300).wait()
        assert run.end["status"] == "timeout"
        assert client.spawn(["pgrep", "sleep"]).wait().stdout == b""
        assert client.read_file("/etc/passwd").end["status"] == "ok"
        probe = "open('/proc/1/mem', 'rb')"
        assert client.spawn(["/usr/bin/python3", "-c", probe]).wait().end["status"] == "error"


def test_init_keeps_three_capabilities(init):
    init.connect().close()
    lines = Path(f"/proc/{init.pid}/status").read_text().splitlines()
    status = dict(line.split(":\t") for line in lines if ":\t" in line)
    assert status["CapPrm"] == status["CapEff"] == f"{0xe0:016x}"
    assert int(status["CapInh"], 16) == int(status["CapBnd"], 16) == int(status["CapAmb"], 16) == 0
