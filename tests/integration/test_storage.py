# SPDX-License-Identifier: MIT
"""Crashes and broken storage: who is killed, what is torn, and that the next start is clean.

Kills at the named points are in test_failpoints.py, further lives of owners in test_lifecycle.py,
the records of the launcher alone in launcher/. Sampled: moments of a kill (STO-01), faults of
system calls (STO-10: a call, an error and a place each), mutations of a state file (STO-14).
"""

import fcntl
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import leaks
import pytest
import sa as sa_module
from test_lifecycle import Owner, traces, wait_gone

AGENT = sa_module.BUILD / "sandbox-agent"
LEASE = "3"


def text(result):
    """The text/plain of a result object's value."""
    return (result["result"] or {}).get("text/plain")


@pytest.fixture
def state(tmp_path_factory, state_dir):
    """A state directory of its own."""
    return tmp_path_factory.mktemp("storage")


def keeper_of(state, instance):
    """The pid of an instance's keeper."""
    inode = (Path(state) / f"run/{instance}").stat().st_ino
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if (
                b"--keeper" in Path(f"/proc/{pid}/cmdline").read_bytes()
                and os.stat(f"/proc/{pid}/fd/3").st_ino == inode
            ):
                return int(pid)
        except OSError:
            continue
    raise AssertionError("no keeper")


def init_of(session_id):
    """The pid of a session's init on the host."""
    for directory, names, _ in os.walk("/sys/fs/cgroup"):
        if session_id in names:
            for pid in Path(directory, session_id, "cgroup.procs").read_text().split():
                if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sandbox-init"):
                    return int(pid)
    raise AssertionError("no init")


# ---- kills ----

BUSY = """
import sys
sys.path.insert(0, {lib!r})
import sa
library = sa.Library(instance="moments")
print("open", flush=True)
while True:
    session = library.create("python", network="public")
    session.write("f", b"x" * 100000)
    session.execute("open('f').read(); print('y' * 1000)")
    session.terminal("sleep 0.05 & echo done")
    session.stop()
"""


def test_sto_01_the_owner_is_killed_at_any_moment(state):
    before = leaks.snapshot(state, "moments")
    code = BUSY.format(lib=str(Path(sa_module.__file__).parent))
    env = {**os.environ, "SANDBOX_STATE_DIR": str(state), "SANDBOX_LEASE_SECONDS": LEASE}
    for i in range(12):
        process = subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"open\n"
        time.sleep(0.02 + 0.09 * i)
        process.kill()
        process.communicate()
    start = time.monotonic()
    owner = Owner(state, "moments")
    sessions = owner.ask("list")["sessions"]
    assert time.monotonic() - start < 5
    for session in sessions:
        answer = owner.ask("execute", id=session["session_id"], code="6 * 7")
        assert text(answer) == "42" if "status" in answer else answer["failed"] == "DIED", answer
    owner.close()
    leaks.assert_none(before, within=10)


def test_sto_01_the_keeper_is_killed_under_its_sessions(state):
    before = leaks.snapshot(state, "keeper")
    owner = Owner(state, "keeper")
    ids = [owner.ask("create", options={"network": net})["id"] for net in ("none", "public")]
    owner.ask("execute", id=ids[0], code="x = 5")
    owner.ask("start", id=ids[1], code="import time; time.sleep(100)", timeout=200)
    os.kill(keeper_of(state, "keeper-0"), signal.SIGKILL)
    time.sleep(0.2)
    # Nobody can end the old sandboxes or tell of them any more: they are told as lost.
    answer = owner.ask("execute", id=ids[0], code="x")
    assert answer["failed"] == "DIED" and "(lost)" in answer["text"], answer
    # New ones start at once, under the next keeper, and that one has removed the rest.
    i = owner.ask("create")["id"]
    assert text(owner.ask("execute", id=i, code="6 * 7")) == "42"
    assert wait_gone(state, ids, 10) == []
    owner.close()
    leaks.assert_none(before, within=10)


def test_sto_01_init_is_killed(state):
    owner = Owner(state, "init")
    ids = [owner.ask("create")["id"] for _ in range(2)]
    os.kill(init_of(ids[0]), signal.SIGKILL)
    time.sleep(0.5)
    answer = owner.ask("execute", id=ids[0], code="1")
    assert answer["failed"] == "DIED" and "signal:9" in answer["text"], answer
    assert text(owner.ask("execute", id=ids[1], code="6 * 7")) == "42"
    assert wait_gone(state, ids[:1], 6) == []
    owner.close()


def test_sto_01_everything_is_stopped_and_continued(state):
    """A keeper that hangs makes calls wait or fail by name, and is used again when it goes on."""
    owner = Owner(state, "stopped")
    i = owner.ask("create")["id"]
    keeper = keeper_of(state, "stopped-0")
    os.kill(keeper, signal.SIGSTOP)
    assert text(owner.ask("execute", id=i, code="6 * 7")) == "42"
    threading.Timer(1, os.kill, (keeper, signal.SIGCONT)).start()
    assert text(owner.ask("execute", id=owner.ask("create")["id"], code="6 * 7")) == "42"
    os.kill(init_of(i), signal.SIGSTOP)
    threading.Timer(1, os.kill, (init_of(i), signal.SIGCONT)).start()
    assert text(owner.ask("execute", id=i, code="6 * 7")) == "42"
    owner.close()


def test_sto_02_owner_and_keeper_die_while_they_recover(state):
    before = leaks.snapshot(state, "both")
    owner = Owner(state, "both", SANDBOX_LEASE_SECONDS=LEASE)
    ids = [owner.ask("create")["id"] for _ in range(3)]
    os.kill(keeper_of(state, "both-0"), signal.SIGKILL)
    owner.kill()
    for delay in (0.02, 0.06, 0.1):
        process = subprocess.Popen(
            [sys.executable, sa_module.ROOT / "tests/lib/owner.py", "both"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "SANDBOX_STATE_DIR": str(state)},
        )
        time.sleep(delay)
        try:
            os.kill(keeper_of(state, "both-0"), signal.SIGKILL)
        except (AssertionError, OSError):
            pass
        process.kill()
        process.communicate()
    start = time.monotonic()
    owner = Owner(state, "both")
    assert owner.ask("list") == {"sessions": []}
    assert time.monotonic() - start < 8
    assert wait_gone(state, ids, 10) == []
    owner.close()
    leaks.assert_none(before, within=10)


def test_sto_04_without_owner_and_keeper_nothing_runs_for_ever(state):
    before = leaks.snapshot(state, "gone")
    owner = Owner(state, "gone", SANDBOX_LEASE_SECONDS=LEASE)
    i = owner.ask("create")["id"]
    owner.ask(
        "start",
        id=i,
        kind="command",
        timeout=500,
        code="trap '' TERM INT HUP; setsid sleep 500 & while :; do sleep 50; done",
    )
    init = init_of(i)
    namespace = os.readlink(f"/proc/{init}/ns/pid")
    os.kill(keeper_of(state, "gone-0"), signal.SIGKILL)
    owner.kill()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and os.path.exists(f"/proc/{init}"):
        time.sleep(0.1)
    left = [
        pid
        for pid in filter(str.isdigit, os.listdir("/proc"))
        if _link(f"/proc/{pid}/ns/pid") == namespace
    ]
    assert left == []
    # What no process holds (directories, groups) is taken by the next start.
    Owner(state, "gone").close()
    leaks.assert_none(before, within=5)


def _link(path):
    try:
        return os.readlink(path)
    except OSError:
        return None


def test_sto_01_a_killed_keeper_leaves_no_loop_device(state):
    before = leaks.snapshot(state, "loops")
    owner = Owner(state, "loops", SANDBOX_DISK="32m")
    i = owner.ask("create")["id"]
    owner.ask("execute", id=i, code="open('f', 'w').write('x')")
    os.kill(keeper_of(state, "loops-0"), signal.SIGKILL)
    owner.kill()
    Owner(state, "loops").close()
    assert wait_gone(state, [i], 5) == []
    assert not [e for e in leaks.snapshot(state).found["loop devices"] if i in e]
    leaks.assert_none(before, within=5)


def test_sto_05_the_keeper_outlives_the_thread_that_started_it(state, monkeypatch):
    monkeypatch.setenv("SANDBOX_STATE_DIR", str(state))
    opened = []
    thread = threading.Thread(target=lambda: opened.append(sa_module.Library(instance="thread")))
    thread.start()
    thread.join()
    time.sleep(0.5)
    with opened[0] as library:
        session = library.create("python", network="public")
        time.sleep(0.5)
        assert text(session.execute("6 * 7")) == "42"


# ---- system calls that fail ----

FAULTS = [
    ("openat", "EMFILE", 40),
    ("openat", "ENOENT", 90),
    ("read", "EIO", 60),
    ("write", "ENOSPC", 15),
    ("fsync", "EIO", 1),
    ("renameat2,rename,renameat", "ENOSPC", 1),
    ("clone,clone3", "EAGAIN", 2),
    ("clone,clone3", "ENOMEM", 4),
    ("mount,fsmount,move_mount", "EPERM", 3),
    ("socket", "EMFILE", 2),
    ("epoll_wait,poll", "EINTR", 2),
    ("pidfd_open", "EPERM", 1),
    ("sendmsg", "ENOMEM", 3),
    ("recvmsg", "EIO", 4),
    ("ftruncate", "ENOSPC", 1),
    ("mkdirat,mkdir", "ENOSPC", 2),
    ("memfd_create", "ENFILE", 1),
    ("socketpair", "ENFILE", 1),
    ("accept4", "EMFILE", 1),
    ("seccomp", "EINVAL", 1),
    ("setns,unshare", "EPERM", 1),
    ("connect", "ECONNREFUSED", 2),
]


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.parametrize("call,error,when", FAULTS, ids=[f"{c}-{e}" for c, e, _ in FAULTS])
def test_sto_10_a_call_fails_anywhere(state, call, error, when):
    """In the program, the keeper, init or the kernel, wherever it is the n-th call of a process."""
    process = subprocess.Popen(
        [
            "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "--seccomp-bpf",
            "-e",
            f"trace={call}",
            "-e",
            f"inject={call}:error={error}:when={when}",
            AGENT,
            "run",
            "--timeout",
            "20",
            "-c",
            "print(6 * 7)",
        ],
        env={**os.environ, "SANDBOX_STATE_DIR": str(state), "SANDBOX_LEASE_SECONDS": LEASE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, err = process.communicate(timeout=90)
    assert process.returncode in (0, 1, 3, 124), (process.returncode, out, err)
    if process.returncode == 0:
        assert out == "42\n"
    else:
        assert err.strip(), "a failure without a word"
    done = subprocess.run(
        [AGENT, "run", "-c", "print(6 * 7)"],
        capture_output=True,
        text=True,
        env={**os.environ, "SANDBOX_STATE_DIR": str(state)},
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr
    deadline = time.monotonic() + 8
    while (left := list(state.glob("run/*/sb/*"))) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left == [], err


# ---- storage that fails ----


@pytest.fixture
def small(tmp_path, state_dir):
    """A state directory that is a file system of its own."""
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m,nr_inodes=200", "none", tmp_path], check=True
    )
    yield tmp_path
    subprocess.run(["umount", "-l", tmp_path], check=True)


BROKEN = {
    "full": (
        lambda p: subprocess.run(
            ["dd", "if=/dev/zero", f"of={p}/filler", "bs=4096"],
            check=False,
            stderr=subprocess.DEVNULL,
        ),
        lambda p: (p / "filler").unlink(),
        "No space left",
    ),
    "no inodes": (
        lambda p: fill_inodes(p / "many"),
        lambda p: shutil.rmtree(p / "many"),
        "No space left",
    ),
}


def fill_inodes(directory):
    """Make empty files until there are no more."""
    directory.mkdir()
    try:
        for i in range(1000):
            (directory / str(i)).touch()
    except OSError:
        pass


@pytest.mark.parametrize("kind", BROKEN)
def test_sto_12_13_a_full_state_directory_is_told_and_heals(small, kind):
    owner = Owner(small, "broken")
    i = owner.ask("create")["id"]
    owner.ask("execute", id=i, code="x = 41")
    break_it, heal, message = BROKEN[kind]
    break_it(small)
    failed = owner.ask("create")
    assert failed.get("failed") in ("DISK", "SYSTEM") and message in failed["text"], failed
    # What runs goes on, and nothing is left of what failed.
    assert text(owner.ask("execute", id=i, code="x + 1")) == "42"
    assert [s["session_id"] for s in owner.ask("list")["sessions"]] == [i]
    heal(small)
    again = owner.ask("create")["id"]
    assert text(owner.ask("execute", id=again, code="6 * 7")) == "42"
    owner.close()
    assert wait_gone(small, [i, again], 5) == []


def test_sto_13_a_read_only_state_directory(small):
    env = {**os.environ, "SANDBOX_STATE_DIR": str(small)}
    for option, status in (("ro", 3), ("rw", 0)):
        subprocess.run(["mount", "-o", f"remount,{option}", small], check=True)
        done = subprocess.run(
            [AGENT, "run", "-c", "print(1)"], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stderr
        assert status == 0 or "Read-only file system" in done.stderr


@pytest.fixture
def ext4(tmp_path, state_dir):
    """A state directory on an ext4 of its own."""
    image, mount = tmp_path / "image", tmp_path / "mount"
    with open(image, "wb") as file:
        file.truncate(32 << 20)
    mount.mkdir()
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    done = subprocess.run(
        ["mount", "-o", "loop", image, mount], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no loop mount here: {done.stderr.strip()}")
    yield mount
    subprocess.run(["umount", "-l", mount], check=True)


EXT4_SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32): from now on every operation is EIO


def test_sto_13_a_state_directory_whose_device_fails(ext4):
    owner = Owner(ext4, "failing")
    i = owner.ask("create")["id"]
    init = init_of(i)
    owner.ask("execute", id=i, code="x = 41")
    fd = os.open(ext4, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, EXT4_SHUTDOWN, struct.pack("I", 2))
    except OSError as error:
        pytest.skip(f"this kernel has no shutdown of a file system: {error}")
    finally:
        os.close(fd)
    failed = owner.ask("create")
    assert failed.get("failed") in ("SYSTEM", "DISK") and "error" in failed["text"], failed
    assert text(owner.ask("execute", id=i, code="x + 1")) == "42"
    owner.close()
    # The directory cannot be removed any more; everything else is.
    assert [trace for trace in wait_gone("/nonexistent", [i], 5)] == []
    assert not os.path.exists(f"/proc/{init}")
    done = subprocess.run(
        [AGENT, "run", "-c", "1"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SANDBOX_STATE_DIR": str(ext4)},
    )
    assert done.returncode == 3 and "Input/output error" in done.stderr, done.stderr


@pytest.fixture
def torn(state):
    """The directory of an instance whose processes are all dead: (directory, session id)."""
    owner = Owner(state, "torn", SANDBOX_LEASE_SECONDS=LEASE)
    i = owner.ask("create")["id"]
    init = init_of(i)
    os.kill(keeper_of(state, "torn-0"), signal.SIGKILL)
    owner.kill()
    os.kill(init, signal.SIGKILL)
    directory = Path(state) / "run/torn-0"
    made = directory.stat()
    yield directory, i
    # A test that makes the directory anew takes the name of its control groups away.
    group = f"torn-0-{made.st_dev:x}-{made.st_ino:x}"
    for path, names, _ in os.walk("/sys/fs/cgroup", topdown=False):
        if os.path.basename(path) == group:
            for name in names:
                os.rmdir(os.path.join(path, name))
            os.rmdir(path)


def mutations(data, count, seed):
    """Flips, cuts, doublings and insertions, always the same ones."""
    rng = random.Random(seed)
    for _ in range(count):
        mutant = bytearray(data)
        kind = rng.randrange(4)
        at = rng.randrange(len(mutant))
        if kind == 0:
            mutant[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del mutant[at:]
        elif kind == 2:
            mutant[at:at] = mutant[:at]
        else:
            mutant[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 40)))
        yield bytes(mutant)


def test_sto_14_a_record_that_was_changed(torn, state, monkeypatch):
    """Each opening cleans up what it understands, harms nobody else, and works."""
    directory, i = torn
    monkeypatch.setenv("SANDBOX_STATE_DIR", str(state))
    run = directory / "sb" / i
    record = (run / "record").read_bytes()
    assert b"pid " in record
    with (
        sa_module.Library(instance="bystander") as other,
        subprocess.Popen(["sleep", "500"]) as stranger,
    ):
        bystander = other.create("python", network="none")
        named = record.replace(record.split(b"pid ")[1].split(b"\n")[0], b"%d" % stranger.pid, 1)
        group = os.path.dirname(record.split(b"cgroup ")[1].split(b" ", 2)[2].split(b"\n")[0])
        special = [
            named,
            record.replace(i.encode(), b".."),
            record.replace(b"/" + i.encode(), b""),
            record.replace(group, os.path.dirname(group)),
            b"",
            b"\0" * 5000,
            b"x" * 200000,
        ]
        for mutant in (*special, *mutations(record, 40, 1)):
            run.mkdir(parents=True, exist_ok=True)
            (run / "record").write_bytes(mutant)
            with sa_module.Library(instance="torn") as library:
                assert library.list() == []
            assert not run.exists()
            assert stranger.poll() is None
        assert text(bystander.execute("6 * 7")) == "42"
        with sa_module.Library(instance="torn") as library:
            assert text(library.create("python", network="none").execute("6 * 7")) == "42"
        stranger.kill()


ODD = ("file", "directory", "link", "dangling", "fifo", "garbage")


def make_odd(path, kind, sentinel):
    """Put something else in a state file's place."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    {
        "file": path.touch,
        "directory": path.mkdir,
        "link": lambda: path.symlink_to(sentinel),
        "dangling": lambda: path.symlink_to("/nonexistent/x"),
        "fifo": lambda: os.mkfifo(path),
        "garbage": lambda: path.write_bytes(os.urandom(5000)),
    }[kind]()


@pytest.mark.parametrize(
    "name",
    (
        "lock",
        "keeper.lock",
        "keeper.sock",
        "sb",
        "sb/ID",
        "sb/ID/record",
        "sb/ID/control",
        "sb/ID/more",
    ),
)
def test_sto_14_odd_things_in_the_place_of_state_files(torn, state, tmp_path, monkeypatch, name):
    """Used again, removed or refused by name; never followed."""
    directory, i = torn
    monkeypatch.setenv("SANDBOX_STATE_DIR", str(state))
    sentinel = tmp_path / "sentinel"
    sentinel.mkdir()
    (sentinel / "keep").write_text("kept")
    pristine = tmp_path / "pristine"
    shutil.copytree(directory, pristine, ignore=shutil.ignore_patterns("*.sock", "control"))
    for kind in ODD:
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(pristine, directory)
        (directory / name.replace("ID", i)).parent.mkdir(exist_ok=True)
        make_odd(directory / name.replace("ID", i), kind, sentinel)
        start = time.monotonic()
        try:
            with sa_module.Library(instance="torn") as library:
                assert library.list() == []
                assert text(library.create("python", network="none").execute("6 * 7")) == "42"
        except sa_module.Error as error:
            assert error.name in (
                "SYSTEM",
                "UNAVAILABLE",
                "INVALID",
                "BUSY",
                "DISK",
                "DENIED",
                "EXISTS",
            )
            assert len(str(error)) > 10
        assert time.monotonic() - start < 15, kind
        assert (sentinel / "keep").read_text() == "kept" and os.listdir(sentinel) == ["keep"]
    shutil.rmtree(directory, ignore_errors=True)
    with sa_module.Library(instance="torn") as library:
        assert library.list() == []


def test_sto_14_torn_settings_and_ca_files(state, agent, tmp_path):
    env = {"SANDBOX_STATE_DIR": str(state)}
    for content in (
        b"\0\0\0",
        b"CONTAINER_PIDS_LIMIT",
        b"=\n=x\n",
        b"\xff\xfe" * 50,
        b"A" * 2_000_000,
        b"CONTAINER_PIDS_LIMIT='12\n",
        b"export X=1\n#\n\r\n",
    ):
        (state / ".env").write_bytes(content)
        done = subprocess.run(
            [AGENT, "run", "-c", "print(1)"],
            capture_output=True,
            check=False,
            env={**os.environ, **env},
        )
        assert done.returncode in (0, 2, 3), (content[:20], done.returncode, done.stderr)
        assert done.returncode == 0 or b".env" in done.stderr or b"CONTAINER_" in done.stderr
    (state / ".env").unlink()
    for ca in (tmp_path / "missing", tmp_path, "/dev/zero"):
        done = agent("run", "-c", "print(1)", env={**env, "EXTRA_CA": str(ca)}, timeout=30)
        assert done.returncode in (2, 3) and "EXTRA_CA" in done.stderr, (ca, done.stderr)


def test_sto_28_a_stranger_with_a_recorded_pid_is_not_touched(torn, state, monkeypatch):
    directory, i = torn
    monkeypatch.setenv("SANDBOX_STATE_DIR", str(state))
    record = directory / "sb" / i / "record"
    lines = record.read_text().splitlines()
    with subprocess.Popen(["sleep", "100"]) as stranger:
        for change in ({"pid": stranger.pid}, {"pid": stranger.pid, "start": 0}, {"pid": 1}):
            record.parent.mkdir(parents=True, exist_ok=True)
            record.write_text(
                "".join(
                    f"{line.split()[0]} {change.get(line.split()[0], line.split(' ', 1)[1])}\n"
                    for line in lines
                )
            )
            with sa_module.Library(instance="torn") as library:
                assert library.list() == []
            assert stranger.poll() is None and not record.exists()
        stranger.kill()


def test_sto_29_two_servers_on_one_state_directory(state, monkeypatch):
    monkeypatch.setenv("SANDBOX_STATE_DIR", str(state))
    owner = Owner(state, "server")
    i = owner.ask("create")["id"]
    with pytest.raises(sa_module.Error, match=f"process id {owner.process.pid} ") as e:
        sa_module.Library(instance="server")
    assert e.value.name == "BUSY"
    assert text(owner.ask("execute", id=i, code="6 * 7")) == "42"
    # Others of other names work beside it.
    with sa_module.Library(instance="beside") as library:
        assert text(library.create("python", network="none").execute("1")) == "1"
    owner.kill()
    with sa_module.Library(instance="server") as library:
        assert [s["session_id"] for s in library.list()] == [i]


# ---- cases ----


@pytest.fixture
def foreign():
    """Control groups of somebody else, with a process in them, in every hierarchy."""
    made, process = [], subprocess.Popen(["sleep", "500"])
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if " - cgroup" not in line:
            continue
        mount = Path(line.split()[4])
        for name in (
            f"foreign-{os.getpid()}",
            f"sandbox-agent/foreign-{os.getpid()}-0/" + "f" * 32,
        ):
            group = mount / name
            try:
                group.mkdir(parents=True)
            except OSError:
                continue
            made.append(group)
            try:
                (group / "cgroup.procs").write_text(str(process.pid))
            except OSError:
                pass
    yield process, made
    process.kill()
    process.wait()
    for group in made:
        group.rmdir()
        if "sandbox-agent" in str(group):
            group.parent.rmdir()


def test_case_31_foreign_groups_are_not_touched(state, foreign):
    process, made = foreign
    owner = Owner(state, "cases", SANDBOX_LEASE_SECONDS=LEASE)
    ids = [owner.ask("create")["id"] for _ in range(3)]
    for i in ids:
        owner.ask("start", id=i, code="sleep 1000", kind="command", timeout=2000)
    keeper = keeper_of(state, "cases-0")
    owner.kill()
    os.kill(keeper, signal.SIGKILL)
    again = Owner(state, "cases")
    assert again.ask("list") == {"sessions": []}
    assert wait_gone(state, ids, 6) == []
    assert process.poll() is None and all(group.is_dir() for group in made)
    again.close()
    assert process.poll() is None and all(group.is_dir() for group in made)


def doctor(*words, prefix=(), env=None, **options):
    """`doctor --json`: (exit status, {name: finding})."""
    done = subprocess.run(
        [*prefix, AGENT, "doctor", "--json", *words],
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        check=False,
        **options,
    )
    return done.returncode, {f["name"]: f for f in map(json.loads, done.stdout.splitlines())}


NO_USERNS = (
    "unshare",
    "-U",
    "-r",
    "sh",
    "-c",
    'echo 0 > /proc/sys/user/max_user_namespaces; exec "$0" "$@"',
)


def test_case_36_doctor_without_user_namespaces(state):
    """Really: in a user namespace whose own limit is 0."""
    env = {"SANDBOX_STATE_DIR": str(state)}
    status, found = doctor(prefix=NO_USERNS, env=env)
    assert status == 3 and found["user-namespaces"]["result"] == "missing"
    assert "user.max_user_namespaces" in found["user-namespaces"]["fix"]
    done = subprocess.run(
        [*NO_USERNS, AGENT, "run", "-c", "1"],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        check=False,
    )
    assert done.returncode == 3 and "user namespaces" in done.stderr and "doctor" in done.stderr
    assert "ermission denied" not in done.stderr


def test_case_36_doctor_without_delegation(state):
    """Really: as an ordinary user, who may make no control groups here."""
    if not all(
        p.stat().st_mode & 0o005 == 0o005 for p in [sa_module.BUILD, *sa_module.BUILD.parents]
    ):
        pytest.skip("the build tree is closed to other users")
    status, found = doctor(
        env={"SANDBOX_STATE_DIR": "/tmp/none", "HOME": "/tmp"},
        user=12345,
        group=12345,
        extra_groups=[],
        cwd="/",
    )
    if found["memory-cgroup"]["result"] == "ok":
        pytest.skip("this host delegates control groups to everybody")
    assert status in (0, 3) and found["memory-cgroup"]["result"] == "degraded"
    assert "Delegate=yes" in found["memory-cgroup"]["fix"]


FAKES = {
    "cgroup v2 only": "memory-cgroup\tdegraded\tno memory controller here\tDelegate=yes",
    "apparmor": "user-namespaces\tmissing\ta user namespace has no privileges inside\t"
    "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    "WSL2": "seccomp\tmissing\tno filters\tuse a Linux kernel of version 5.15 or later",
}


@pytest.mark.parametrize("host", FAKES)
def test_case_36_doctor_of_other_hosts(tmp_path, host):
    (tmp_path / "fake").write_text(FAKES[host] + "\n")
    name, result, detail, fix = FAKES[host].split("\t")
    status, found = doctor("--fake", str(tmp_path / "fake"))
    assert found[name] == {"name": name, "result": result, "detail": detail, "fix": fix}
    assert status == (3 if result == "missing" else 0)
    shown = subprocess.run(
        [AGENT, "doctor", "--fake", tmp_path / "fake"], capture_output=True, text=True, check=False
    ).stdout
    assert f"fix: {fix}" in shown


def test_traces_see_what_they_look_for(state):
    """The checks above would be worth nothing if these did not."""
    owner = Owner(state, "seen")
    i = owner.ask("create")["id"]
    kinds = {entry.split()[0] for entry in traces(state, [i])}
    assert {"process", "cgroup", "directory"} <= kinds
    owner.close()
