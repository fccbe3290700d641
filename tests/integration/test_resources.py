# SPDX-License-Identifier: MIT
"""Limits through the whole product: what meets one is told so, and costs nobody else anything.

The rows of the launcher alone are in launcher/test_resources.py, those of the relay in egress/.
Scaled: RES-16 (threads and rounds), RES-08 and RES-09 (sizes). Not here: user.max_net_namespaces
of RES-18, which is the whole host's, and a real lack of the host's memory (RES-20).
"""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import leaks
import pytest
import registry
import sa as sa_module

MIB = 1 << 20
ROOT = Path(__file__).resolve().parents[2]


def text(result):
    """The text/plain of a result object's value."""
    return (result["result"] or {}).get("text/plain")


def rss():
    """Resident bytes of this process, which holds the library."""
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def groups(session_id):
    """The control groups of a session on the host, by controller."""
    return {
        path.split("/")[4]: Path(path, session_id)
        for path, names, _ in os.walk("/sys/fs/cgroup")
        if session_id in names
    }


def in_groups(session_id, name):
    """The first file of that name in a session's groups."""
    return next((d / name for d in groups(session_id).values() if (d / name).exists()), None)


@pytest.fixture(scope="module")
def quiet(state_dir):
    """A library with a session that must not notice anything."""
    with sa_module.Library(instance="quiet") as library:
        session = library.create("python", network="none")
        yield session
        assert text(session.execute("1 + 1")) == "2"


# ---- processes ----

BOMBS = {
    "python": ("code", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"),
    "node": (
        "code",
        "for (;;) require('child_process').spawn('sleep', ['100']).on('error', () => {});",
    ),
    "r": ("code", "while (TRUE) system('sleep 100', wait = FALSE)"),
    "terminal": ("command", "bash -c ':(){ :|:& };:' 2>/dev/null; sleep 30"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_res_01_a_fork_bomb_meets_its_limit(make, quiet, name):
    kind, code = BOMBS[name]
    session = make("python" if name == "terminal" else name, pids=60, network="none")
    session.execute("1")
    most, waits, over = [], [], threading.Event()

    def sample():
        current = in_groups(session.id, "pids.current")
        while not over.wait(0.02):
            most.append(int(current.read_text()))

    sampler = threading.Thread(target=sample)
    sampler.start()
    with session.run(code, kind=kind, timeout=3) as run:
        while not over.is_set():
            before = time.monotonic()
            assert text(quiet.execute("1 + 1", timeout=10)) == "2"
            waits.append(time.monotonic() - before)
            try:
                result = run.result(timeout=0.05)
                over.set()
            except sa_module.Error as error:
                assert error.name == "TIMEOUT"
    sampler.join()
    assert max(most) <= 60
    assert result["cause"] in ("pids", "timeout") and result["status"] != "ok", result
    if result["cause"] == "pids":
        assert "60" in result["message"] and "CONTAINER_PIDS_LIMIT" in result["message"]
    assert sorted(waits)[len(waits) // 2] < 1, waits
    assert text(session.execute("1 + 1", timeout=20)) in ("2", "[1] 2")


ORPHANS = """
import os
made = 0
while made < 3000:
    pid = os.fork()
    if pid == 0:
        os.fork()
        os._exit(0)
    os.waitpid(pid, 0)
    made += 1
print(made)
"""

UNWAITED = """
import os
made = 0
try:
    while True:
        if os.fork() == 0: os._exit(0)
        made += 1
except OSError:
    pass
made > 100
"""


def test_res_13_init_reaps(make):
    session = make(pids=200, network="none")
    session.write("orphans.py", ORPHANS)
    assert session.terminal("python3 -IS orphans.py", timeout=60)["stdout"] == "3000\n"
    time.sleep(1)
    states = session.terminal("cat /proc/[0-9]*/stat 2>/dev/null")["stdout"]
    assert not re.search(r"\) Z ", states), states
    # Children whose parent lives and never waits are its own; they count, and go with it.
    result = session.execute(UNWAITED, timeout=30)
    assert result["cause"] == "pids" or text(result) == "True", result
    assert session.execute("import os; os._exit(1)")["status"] == "died"
    time.sleep(1)
    states = session.terminal("cat /proc/[0-9]*/stat 2>/dev/null")["stdout"]
    assert not re.search(r"\) Z ", states), states


# ---- memory ----


def test_res_02_many_children_are_one_session(make, quiet):
    session = make(memory_bytes=160 * MIB, network="none")
    session.execute("1")
    child = "python3 -c 'x = bytearray(70 << 20); import time; time.sleep(30)'"
    before = time.monotonic()
    result = session.terminal(f"for i in 1 2 3 4; do {child} & done; wait", timeout=30)
    assert (result["status"], result["cause"]) == ("died", "oom"), result
    assert "160 MiB" in result["message"] and "CONTAINER_MEMORY_LIMIT" in result["message"]
    assert time.monotonic() - before < 15
    with pytest.raises(sa_module.Error, match=r"died \(oom\)"):
        session.execute("1")
    # No half-dead session is left behind: the sandbox goes as a whole.
    deadline = time.monotonic() + 6
    while groups(session.id) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert groups(session.id) == {}


HIDDEN = {
    "pipes": """
import fcntl, os
kept = []
while True:
    r, w = os.pipe()
    fcntl.fcntl(w, 1031, 1 << 20)
    os.set_blocking(w, False)
    os.write(w, bytes(1 << 20))
    kept.append((r, w))
""",
    "memfd": """
import os
kept = []
while True:
    kept.append(os.memfd_create("x"))
    os.write(kept[-1], bytes(8 << 20))
""",
    "sysv": """
import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
while True:
    ctypes.memset(libc.shmat(libc.shmget(0, 8 << 20, 0o1666), None, 0), 1, 8 << 20)
""",
    "tmpfs": """
i = 0
while True:
    open(f"/home/sandbox/{i}", "wb").write(bytes(8 << 20))
    i += 1
""",
    "sockets": """
import socket
kept = []
while True:
    a, b = socket.socketpair()
    a.setblocking(False)
    kept.append((a, b))
    try:
        while True:
            a.send(bytes(65536))
    except BlockingIOError:
        pass
""",
}


@pytest.mark.parametrize("kind", HIDDEN)
def test_res_02_memory_that_is_no_heap_counts_too(make, quiet, kind):
    session = make(memory_bytes=128 * MIB, tmpfs_bytes=512 * MIB, network="none")
    session.execute("1")
    result = session.execute(HIDDEN[kind], timeout=20)
    # Ended by the memory limit, or held before it by another (descriptors, pages of pipes, size).
    assert result["cause"] == "oom" or result["status"] == "error", result
    used = in_groups(session.id, "memory.max_usage_in_bytes")
    if used:
        assert int(used.read_text()) <= 128 * MIB


def test_res_20_sandboxes_are_the_first_that_the_host_ends(make):
    session = make(network="none")
    session.execute("1")
    scores = {}
    for pid in in_groups(session.id, "cgroup.procs").read_text().split():
        name = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
        scores[name] = int(Path(f"/proc/{pid}/oom_score_adj").read_text())
    assert scores.pop("sandbox-init") == 900 and set(scores.values()) == {1000}, scores
    own = int(Path("/proc/self/oom_score_adj").read_text())
    for pid in keeper_pids():
        assert int(Path(f"/proc/{pid}/oom_score_adj").read_text()) == own


def keeper_pids():
    """Our keepers: children of this process."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    found = [
        pid
        for task in os.listdir("/proc/self/task")
        for pid in Path(f"/proc/self/task/{task}/children").read_text().split()
    ]
    return [
        pid
        for pid in set(children + found)
        if b"--keeper" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


# ---- files ----

FILL = """
import errno, os
results = []
for path in ("/tmp", "/workspace", "/home/sandbox", "/dev/shm"):
    fd, size = os.open(path + "/big", os.O_RDWR | os.O_CREAT), 0
    try:
        while True:
            size += os.write(fd, bytes(1 << 20))
    except OSError as e:
        results.append(errno.errorcode[e.errno])
    assert size <= 16 << 20, size
    for call in (lambda: os.posix_fallocate(fd, 0, 1 << 40), lambda: os.ftruncate(fd, 1 << 50)):
        try:
            call(); results.append("ok")
        except OSError as e:
            results.append(errno.errorcode[e.errno])
    os.unlink(path + "/big"); os.close(fd)
print(*results)
"""


def test_res_04_files_end_at_their_size(state_dir, monkeypatch):
    monkeypatch.setenv("SANDBOX_PACKAGES_SIZE", "16m")
    with sa_module.Library(instance="sizes") as library:
        session = library.create("python", tmpfs_bytes=16 * MIB, network="none")
        before = os.statvfs("/").f_bavail
        found = session.execute(FILL, timeout=30)["stdout"].split()
        assert set(found[0::3]) == {"ENOSPC"} and set(found[2::3]) == {"EFBIG"}
        assert set(found[1::3]) <= {"ENOSPC", "EFBIG"}
        assert before - os.statvfs("/").f_bavail < 64 * MIB // os.statvfs("/").f_frsize


def test_res_04_a_disk_ends_at_its_size(state_dir, monkeypatch):
    monkeypatch.setenv("SANDBOX_DISK", "64m")
    with sa_module.Library(instance="disk") as library:
        session = library.create("python", network="none")
        if any("quota" in entry for entry in session.info()["degraded"]):
            pytest.skip("no loop devices: no disk of its own")
        result = session.terminal("dd if=/dev/zero of=big bs=1M", timeout=60)
        assert (result["status"], result["cause"]) == ("error", "disk"), result
        assert "64 MiB together (SANDBOX_DISK)" in result["message"]
        assert 40 * MIB < int(session.terminal("stat -c %s big")["stdout"]) <= 64 * MIB
        image = next(Path(state_dir).glob(f"run/*/sb/{session.id}/disk"))
        assert image.stat().st_blocks * 512 <= 66 * MIB
        assert session.terminal("truncate -s 1P sparse")["status"] == "error"
        assert session.terminal("rm big && pip --version")["success"]
        loop = leaks.snapshot(state_dir).found["loop devices"]
        assert any(session.id in entry for entry in loop)
        session.stop()
        loop = leaks.snapshot(state_dir).found["loop devices"]
        assert not any(session.id in entry for entry in loop)


def test_res_04_a_file_larger_than_memory_is_read_by_nobody(make):
    session = make(tmpfs_bytes=64 * MIB, network="none")
    session.terminal("truncate -s 3G sparse; truncate -s 900M fits")
    before, start = rss(), time.monotonic()
    with pytest.raises(sa_module.Error, match="larger"):
        session.read("sparse")
    assert time.monotonic() - start < 20 and rss() - before < 300 * MIB
    entry = next(e for e in session.files() if e["name"] == "sparse")
    assert entry["size"] == 3 << 30
    assert text(session.execute("1 + 1")) == "2"


MANY = """
import os
os.chdir("/workspace")
counts = []
for make in (lambda i: os.close(os.open(f"{i:06d}" + "n" * 249, os.O_CREAT)),
             lambda i: os.link("000000" + "n" * 249, f"l{i}"),
             lambda i: (os.mkdir("d"), os.chdir("d"))):
    i = 0
    if len(counts) == 2: os.chdir("/tmp")
    try:
        while i < (60000 if len(counts) < 2 else 3000):
            make(i); i += 1
    except OSError as e:
        pass
    counts.append(i)
    if i > 2000 and len(counts) == 1:
        for k in range(2000, i): os.unlink(f"{k:06d}" + "n" * 249)
print(*counts)
"""


def test_res_05_many_files_and_deep_directories(make):
    session = make(tmpfs_bytes=64 * MIB, network="none")
    files, links, depth = map(int, session.execute(MANY, timeout=60)["stdout"].split())
    assert 1000 < files <= 64 * MIB // 4096 and links > 1000 and depth > 1000
    assert len(session.files("/workspace")) >= links
    before = time.monotonic()
    session.remove("/tmp/d")
    assert time.monotonic() - before < 30
    before = time.monotonic()
    session.stop()
    assert time.monotonic() - before < 5


DESCRIPTORS = """
import errno, os, select, socket, ctypes
libc = ctypes.CDLL(None)
for make in (lambda: os.open("/dev/null", os.O_RDONLY), lambda: socket.socket().detach(),
             lambda: os.dup(0), lambda: os.eventfd(0), lambda: os.memfd_create("x"),
             lambda: os.open("/workspace", os.O_PATH)):
    fds = []
    try:
        while True:
            fds.append(make())
    except OSError as e:
        print(len(fds) < 4096, errno.errorcode[e.errno])
    for fd in fds:
        os.close(fd)
"""


DIALS = """
import socket
kept = []
try:
    while True:
        kept.append(socket.socket())
        kept[-1].setblocking(False)
        kept[-1].connect_ex(("203.0.113.9", 80))
except OSError:
    pass
len(kept) > 500
"""


def test_res_06_descriptors_run_out_inside_only(make):
    session = make(network="public")
    session.execute("1")
    keepers = {pid: len(os.listdir(f"/proc/{pid}/fd")) for pid in keeper_pids()}
    own = len(os.listdir("/proc/self/fd"))
    assert set(session.execute(DESCRIPTORS)["stdout"].splitlines()) == {"True EMFILE"}
    assert text(session.execute(DIALS, timeout=30)) == "True"
    assert text(session.execute("1 + 1")) == "2"
    assert leaks.settled_fds(own) <= own
    assert {pid: len(os.listdir(f"/proc/{pid}/fd")) for pid in keepers} == keepers


# ---- output ----

OUTPUTS = {
    "no newline": (
        "import os\nb = b'z' * (1 << 20)\nfor i in range(192): os.write(1, b)\n'end'",
        192 * MIB,
    ),
    "many lines": (
        "import sys\nfor i in range(1000000): sys.stdout.write('line\\n')\n'end'",
        5_000_000,
    ),
    "closed": ("import os\nprint('x', flush=True)\nkeep = os.dup(1)\nos.close(1)\n'end'", 2),
    "both": (
        "import os\nfor i in range(20000): os.write(1, b'o' * 100); os.write(2, b'e' * 100)\n'end'",
        2_000_000,
    ),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_res_08_output_is_bounded_and_the_end_is_told(make, name):
    session = make(network="none")
    session.execute("1")
    code, size = OUTPUTS[name]
    before = rss()
    result = session.execute(code, timeout=60)
    assert result["status"] == "ok" and text(result) == "'end'", result["error"]
    assert result["output"]["stdout_bytes"] == size
    assert len(result["stdout"]) <= 51_000 and rss() - before < 60 * MIB
    if name == "closed":
        again = session.execute("os.dup2(keep, 1); print('back')")
        assert again["status"] == "ok"
    assert text(session.execute("1 + 1")) == "2"


def test_res_08_a_command_that_floods(make):
    session = make(network="none")
    before = rss()
    result = session.terminal("head -c 200000000 /dev/zero | tr '\\0' x; echo LAST", timeout=60)
    assert result["success"] and result["stdout"].endswith("LAST\n")
    assert result["output"] == {"stdout_bytes": 200_000_005, "stderr_bytes": 0, "truncated": True}
    assert rss() - before < 60 * MIB


FIELDS = {
    "message": "raise ValueError('m' * 30_000_000)",
    "name": "raise type('N' * 1_000_000, (Exception,), {})()",
    "traceback": "def f(n):\n    if n: f(n - 1)\n    else: raise ValueError('x' * 100000)\n"
    "import sys; sys.setrecursionlimit(10**5)\nf(20000)",
    "result": "'r' * 60_000_000",
    "display": "from IPython.display import display\nfor i in range(12):\n"
    "    display({'text/html': 'h' * 10_000_000}, raw=True)",
    "many displays": "from IPython.display import display\n"
    "for i in range(3000): display({'text/plain': str(i)}, raw=True)",
    "many kinds": "from IPython.display import display\n"
    "display({f'x/{i}': 'y' for i in range(20000)}, raw=True)",
    "deep json": "from IPython.display import display\nx = []\nfor i in range(900): x = [x]\n"
    "display({'application/json': x}, raw=True)",
    "surrogates": "'\\ud800' * 1000",
}


@pytest.mark.parametrize("name", FIELDS)
def test_res_09_each_field_is_capped(make, name):
    session = make(network="none")
    session.execute("keep = 7")
    before = rss()
    result = session.execute(FIELDS[name], timeout=60)
    assert result["status"] in ("ok", "error"), result
    assert len(json.dumps(result)) < 80 * MIB
    assert len((result["error"] or {}).get("message", "")) <= 130_000
    assert len(json.dumps(result["error"])) < 400_000
    assert len(text(result) or "") <= 31_000
    assert rss() - before < 400 * MIB
    assert text(session.execute("keep")) == "7"


# ---- time ----


def test_res_10_the_cpu_quota_holds(make, quiet):
    session = make(cpu_quota=50_000, network="none")
    session.execute("1")
    usage = in_groups(session.id, "cpuacct.usage") or in_groups(session.id, "cpu.stat")

    def spent():
        found = usage.read_text()
        return int(found) / 1e9 if found.strip().isdigit() else int(found.split()[1]) / 1e6

    spin = "for i in $(seq 40); do nice -n -20 sh -c 'while :; do :; done' 2>/dev/null & done; wait"
    with session.run(spin, kind="command", timeout=4) as run:
        time.sleep(0.5)
        cpu, clock = spent(), time.monotonic()
        assert text(quiet.execute("1 + 1", timeout=5)) == "2"
        time.sleep(2)
        assert (spent() - cpu) / (time.monotonic() - clock) <= 0.5 * 1.1
        assert run.result(timeout=20)["status"] == "timeout"


STUBBORN = {
    "python ignores": (
        "python",
        "code",
        "import signal, time\nfor s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)\n"
        + "while True: time.sleep(1)",
    ),
    "python catches all": (
        "python",
        "code",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    ),
    "python stops itself": (
        "python",
        "code",
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    ),
    "node busy": (
        "node",
        "code",
        "process.on('SIGINT', () => {}); for (;;) { try { for (;;); } catch {} }",
    ),
    "r traps": ("r", "code", "repeat tryCatch(repeat {}, interrupt = function(e) NULL)"),
    "shell traps": (
        "python",
        "command",
        "trap '' INT TERM HUP QUIT TSTP; while :; do sleep 60; done",
    ),
    "stopped group": ("python", "command", "kill -STOP 0; sleep 100"),
    "pipe to a daemon": (
        "python",
        "command",
        "setsid sh -c 'trap \"\" INT TERM; sleep 600' & sleep 600",
    ),
}


@pytest.mark.parametrize("name", STUBBORN)
def test_res_14_the_ladder_ends_everything(make, name):
    language, kind, code = STUBBORN[name]
    session = make(language, network="none")
    session.execute("1")
    with session.run(code, kind=kind, timeout=1) as run:
        start = time.monotonic()
        result = run.result(timeout=30)
    assert result["status"] == "timeout" and result["cause"] == "timeout", result
    assert time.monotonic() - start < 1 + 3 + 1.5  # a loaded machine
    assert text(session.execute("1 + 1", timeout=20)) in ("2", "[1] 2")
    assert session.terminal("pgrep -c sleep; true")["stdout"].strip() == "0"


# ---- many ----


def test_res_16_many_sessions_leave_nothing(state_dir):
    with sa_module.Library(instance="many") as library:
        library.create("python", network="none").stop()
        before = leaks.snapshot(state_dir, "many")
        fds, errors = len(os.listdir("/proc/self/fd")), []

        def work(network):
            try:
                for _ in range(4):
                    session = library.create("python", network=network)
                    assert text(session.execute("6 * 7", timeout=60)) == "42"
                    session.stop()
            except (AssertionError, sa_module.Error) as error:
                errors.append(error)

        threads = [
            threading.Thread(target=work, args=(("none", "public")[i % 2],)) for i in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors, errors
        size = rss()
        for _ in range(20):
            library.create("node", network="none").stop()
        assert rss() <= size * 1.05 + MIB
        assert leaks.settled_fds(fds) <= fds
        leaks.assert_none(before, within=5)


def test_res_17_a_race_for_the_limit(state_dir, monkeypatch):
    monkeypatch.setenv("CONTAINER_MAX_SESSIONS", "5")
    with sa_module.Library(instance="race") as library:
        made, refused, start = [], [], threading.Barrier(50)

        def work():
            start.wait()
            try:
                made.append(library.create("python", network="none"))
            except sa_module.Error as error:
                refused.append(error.name)

        threads = [threading.Thread(target=work) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 5 and refused == ["LIMIT"] * 45
        made[0].stop()
        assert text(library.create("python", network="none").execute("1")) == "1"


SLOTS = r"""
import fcntl, os, struct, subprocess, sys
os.makedirs("/run/sandbox-agent", 0o755)
with open("/run/sandbox-agent/slots", "w+b") as file:
    fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 1, 0, 0))
    done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
print(done.returncode, done.stderr.strip().splitlines()[-1])
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
print(done.returncode, done.stdout.strip())
"""


def test_res_18_the_ids_of_the_host_run_out(state_dir):
    """In a mount namespace with a /run of its own, so that nobody else is held up."""
    agent = sa_module.BUILD / "sandbox-agent"
    script = (
        f"mount -t tmpfs none /run && exec {sys.executable} -c \"$0\" {agent} run -c 'print(1)'"
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, SLOTS],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    full, free = done.stdout.splitlines()
    assert full.startswith("3 ") and "id slots" in full, full
    assert free == "0 1"
    assert not list(Path(state_dir).glob("run/run-*"))


# ---- arguments and threads ----


def test_res_21_threads_follow_the_cpu_limit(make):
    session = make(cpu_quota=100_000, pids=64, network="none")
    assert text(session.execute("import os; os.environ['OPENBLAS_NUM_THREADS']")) == "'1'"
    code = "import numpy as np; float((np.ones((300, 300)) @ np.ones((300, 300))).sum())"
    assert text(session.execute(code, timeout=30)) == "27000000.0"
    many = make(
        pids=64, env={"OPENBLAS_NUM_THREADS": "64", "OMP_NUM_THREADS": "64"}, network="none"
    )
    result = many.execute(code, timeout=30)
    assert result["status"] in ("ok", "error") or result["cause"] in ("pids", "signal:11"), result
    assert text(many.execute("1 + 1", timeout=30)) == "2"


def test_res_22_long_arguments_are_refused_before_any_start(make, sa):
    session = make(network="none")
    with pytest.raises(sa_module.Error) as e:
        session.execute("x = 1\n" * (50 * MIB // 6))
    assert e.value.name == "INVALID" and "limit" in str(e.value)
    with pytest.raises(sa_module.Error) as e:
        session.terminal("echo " + "a" * (2 * MIB))
    assert e.value.name == "INVALID" and "limit" in str(e.value)
    listed = len(sa.list())
    for env in ({f"V{i}": "x" for i in range(10_000)}, {"BIG": "x" * (2 * MIB)}):
        with pytest.raises(sa_module.Error) as e:
            sa.create("python", env=env)
        assert e.value.name == "LIMIT" and "environment" in str(e.value)
    for options in ({"owner": "o" * 129}, {"language": "p" * 5000}, {"image": "/" + "i" * 5000}):
        with pytest.raises(sa_module.Error):
            sa.create(**options)
    assert len(sa.list()) == listed
    with pytest.raises(sa_module.Error):
        session.write("d/" * 3000 + "f", b"x")
    with pytest.raises(sa_module.Error):
        session.write("n" * 300, b"x")
    assert text(session.execute("1 + 1")) == "2"


# ---- installers ----


@pytest.fixture(scope="module")
def index():
    """A package index with hostile packages."""
    with registry.Registry() as made:
        made.endless_wheel("huge", 1 << 30)
        made.pip("fails", hook="echo the hook says no >&2; exit 3")
        made.pip("endless", hook="echo installing; sleep 1000")
        made.pip(
            "bomb",
            hook="bash -c ':(){ :|:& };:'; sleep 20; exit 1",
        )
        made.pip("eats", hook="python3 -c 'x = bytearray(3 << 30)'")
        made.npm("fails", hook="echo the hook says no >&2; exit 3")
        made.npm("bomb", hook="bash -c ':(){ :|:& };:'; sleep 20; exit 1")
        made.r("fails", hook="echo the hook says no >&2; exit 3")
        yield made


@pytest.fixture(scope="module")
def installing(state_dir, index):
    """A library that installs from it; what its packages leave is looked for at the end."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in index.settings().items():
            patch.setenv(name, value)
        with sa_module.Library(instance="installing") as library:
            before = leaks.snapshot(state_dir, "installing")
            yield library
            assert library.list() == []
            leaks.assert_none(before, within=5)


SCRIPTS = {"NPM_CONFIG_DANGEROUSLY_ALLOW_ALL_SCRIPTS": "true"}

BAD = [
    ("python", "huge", {}, "LIMIT", "SANDBOX_PACKAGES_SIZE|space"),
    ("python", "fails", {}, "UPSTREAM", "not a problem with pip"),
    ("python", "eats", {"memory_bytes": 256 * MIB}, "LIMIT", "memory limit of 256 MiB"),
    ("node", "fails", {}, "UPSTREAM", "the hook says no|exit:3|code 3"),
    ("r", "fails", {}, "UPSTREAM", "configur|non-zero|fails"),
    ("python", "no-such-package-here", {}, "UPSTREAM", "No matching distribution"),
    ("r", "nosuchpackage", {}, "UPSTREAM", "not in the repository"),
]


@pytest.mark.parametrize(
    "language,name,options,code,message", BAD, ids=[f"{b[0]}-{b[1]}" for b in BAD]
)
def test_res_24_a_bad_package_fails_the_create(installing, language, name, options, code, message):
    before = time.monotonic()
    with pytest.raises(sa_module.Error) as e:
        installing.create(language, dependencies=[name], network="none", env=SCRIPTS, **options)
    assert re.fullmatch(code, e.value.name) and re.search(message, str(e.value)), (
        e.value.name,
        e.value,
    )
    assert time.monotonic() - before < 60
    assert installing.list() == []


@pytest.mark.parametrize("language", ("python", "node"))
def test_res_24_a_fork_bomb_in_a_package(installing, quiet, language):
    """It cannot pass its limit, and the create ends when the sandbox is ended from beside."""
    failed = []

    def create():
        try:
            installing.create(language, dependencies=["bomb"], network="none", env=SCRIPTS, pids=60)
        except sa_module.Error as error:
            failed.append(error)

    thread = threading.Thread(target=create)
    thread.start()
    deadline = time.monotonic() + 20
    while not (listed := installing.list()) and time.monotonic() < deadline:
        time.sleep(0.05)
    current = None
    while not current and time.monotonic() < deadline:
        current = in_groups(listed[0]["session_id"], "pids.current")
        time.sleep(0.05)
    most = 0
    while most < 50 and time.monotonic() < deadline:
        most = max(most, int(current.read_text()))
        time.sleep(0.02)
    assert 50 <= most <= 60
    assert text(quiet.execute("1 + 1", timeout=10)) == "2"
    installing.session(listed[0]["session_id"]).stop()
    thread.join(timeout=20)
    assert not thread.is_alive() and failed


def test_res_24_an_endless_installer_ends_with_its_starter(state_dir, index):
    with subprocess.Popen(
        [sa_module.BUILD / "sandbox-agent", "run", "--dep", "endless", "-c", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **index.settings()},
    ) as process:
        time.sleep(3)
        assert process.poll() is None, process.communicate()
        (made,) = Path(state_dir).glob("run/run-*/sb/*")
        assert groups(made.name)
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        process.communicate(timeout=20)
        assert time.monotonic() - start < 10 and process.returncode in (1, 130)
    assert groups(made.name) == {} and not list(Path(state_dir).glob("run/run-*"))


def test_res_24_too_many_packages(installing):
    with pytest.raises(sa_module.Error, match="more than 100") as e:
        installing.create("python", dependencies=[f"p{i}" for i in range(500)])
    assert e.value.name == "INVALID"
