# SPDX-License-Identifier: MIT
"""What code can see and do, through the whole product and by every way in; rows by their ids.

The rows of the launcher alone, in each of its modes, are in launcher/test_isolation.py. Not here:
ISO-14 (hostile images: launcher/test_images.py), ISO-41 (the other engines), ISO-46.
"""

import concurrent.futures
import contextlib
import hashlib
import json
import os
import pty
import re
import secrets
import select
import socket
import subprocess
import time
from pathlib import Path

import entries
import pytest
import registry
import sa as sa_module

SLOT_BASE, SLOT_IDS = 0x70000000, 65536


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The static test program."""
    return entries.build(tmp_path_factory.mktemp("introspect"))


@pytest.fixture(scope="module")
def ways(state_dir, program):
    """{name: entry} for all of them; the sessions live as long as the module."""
    with registry.Registry() as index:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in index.settings().items():
                patch.setenv(name, value)
            library = sa_module.Library(instance="isolation")
        sessions = {
            lang: entries.make_kernel(library, lang, program, network="none")
            for lang in entries.KERNELS
        }
        found = {lang: entries.Kernel(session, lang) for lang, session in sessions.items()}
        found["terminal"] = entries.Terminal(sessions["python"], "python")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            made = {
                name: pool.submit(
                    entries.make_installer, library, index, entries.LANGUAGE[name], program
                )
                for name in entries.INSTALLERS
            }
        found |= {name: entries.Installer(future.result()) for name, future in made.items()}
        yield found
        library.close()


@pytest.fixture(params=entries.ALL)
def way(request, ways):
    """Each entry in turn."""
    return ways[request.param]


@pytest.fixture(params=(*entries.KERNELS, "terminal"))
def live(request, ways):
    """Each entry that can run anything."""
    return ways[request.param]


def host_pids(session_id):
    """The host's pids of what is in a session's control groups."""
    found = set()
    for directory, names, _ in os.walk("/sys/fs/cgroup"):
        if session_id in names:
            found |= set(map(int, Path(directory, session_id, "cgroup.procs").read_text().split()))
    return sorted(found)


def init_of(session_id):
    """The host's pid of a session's init."""
    return next(
        pid
        for pid in host_pids(session_id)
        if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sandbox-init")
    )


def lines(text):
    """{label: result} of the test program."""
    return dict(line.rsplit(" ", 1) for line in text.splitlines())


def status(text):
    """The fields of /proc/PID/status."""
    return dict(re.split(r":\s*", line, maxsplit=1) for line in text.splitlines() if ":" in line)


# ---- ids and privileges ----


def test_iso_01_ids_are_the_slots(way):
    uids, gids = way.output("maps").splitlines()
    assert uids == gids
    first, outside, count = map(int, uids.split())
    assert (first, count) == (0, SLOT_IDS)
    assert outside > SLOT_BASE and (outside - SLOT_BASE) % SLOT_IDS == 0
    pids = host_pids(way.session.id)
    assert pids
    for pid in pids:
        for kind in ("uid_map", "gid_map"):
            assert Path(f"/proc/{pid}/{kind}").read_text().split() == uids.split()
        owner = os.stat(f"/proc/{pid}").st_uid
        assert outside <= owner < outside + SLOT_IDS or owner == 0, owner  # 0: not dumpable
        assert "Uid:\t0" not in Path(f"/proc/{pid}/status").read_text()


def test_iso_02_no_privilege_by_any_way(way):
    found = status(way.output("status"))
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(found[name], 16) == 0
    assert found["NoNewPrivs"] == "1" and found["Seccomp"] == "2"
    assert found["Uid"].split() == found["Gid"].split() == ["65532"] * 4
    assert found["Groups"].split() in ([], ["65532"])


@pytest.mark.parametrize("name", entries.KERNELS)
def test_iso_02_the_kernels_and_init_themselves(ways, name):
    found = status(ways[name].read("/proc/self/status"))
    assert all(int(found[f"Cap{kind}"], 16) == 0 for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb"))
    assert found["NoNewPrivs"] == "1" and found["Seccomp"] == "2"
    init = status(Path(f"/proc/{init_of(ways[name].session.id)}/status").read_text())
    assert int(init["CapEff"], 16) == int(init["CapPrm"], 16) == 0b11100000  # KILL, SETGID, SETUID
    assert int(init["CapBnd"], 16) == 0
    assert init["NoNewPrivs"] == "1" and init["Seccomp"] == "2"


def test_iso_02_04_05_root_of_a_sandbox_has_no_power(state_dir, program, table, monkeypatch):
    monkeypatch.setenv("CONTAINER_EXECUTE_AS_ROOT", "true")
    with sa_module.Library(instance="asroot") as library:
        session = library.create("python", network="none")
        session.write(entries.INTROSPECT, program)
        session.execute(f"import os; os.chmod({entries.INTROSPECT!r}, 0o755)")
        root = entries.Terminal(session, "python")
        found = status(root.output("status"))
        assert found["Uid"].split() == ["0"] * 4 and found["NoNewPrivs"] == "1"
        assert all(int(found[f"Cap{k}"], 16) == 0 for k in ("Inh", "Prm", "Eff", "Bnd", "Amb"))
        sweep = lines(root.output("sweep"))
        wrong = {
            n
            for n in range(512)
            if n not in (335, 336)
            and table.get(n, "ENOSYS") not in ("allow", "arguments", sweep[str(n)])
        }
        assert not wrong
        works = {n for n, result in lines(root.output("named")).items() if result == "ok"}
        assert works <= {"personality-get", "tcgets", "kill-init"}
        assert root.output("init") == "" and "sandbox-init" not in root.output("ps")
        for change in (
            "touch /etc/x",
            "touch /usr/bin/x",
            "mount -t tmpfs x /tmp",
            "kill -9 1",
            "chroot / true",
            "mknod /tmp/n b 7 0",
            "chown 5 /tmp",
            "hostname x",
        ):
            assert session.terminal(change)["status"] == "error", change
        # The kernel is the sandbox's user all the same; a set-uid file of root gives it nothing.
        session.terminal("cp /usr/bin/id /tmp/id; chmod 6755 /tmp/id")
        out = session.execute(
            "import subprocess; subprocess.run(['/tmp/id', '-u'], stdout=-1).stdout"
        )
        assert out["result"]["text/plain"] == "b'65532\\n'"


def thread_statuses(pid):
    """The status of each thread of the process; one that ends while it is read is left out."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.append(status((task / "status").read_text()))
    return found


def test_iso_02_the_program_itself_gives_up_what_it_needs_no_more(state_dir):
    """It reads what sandboxes send, so it has no privilege; only the keeper has."""
    with subprocess.Popen(
        [sa_module.BUILD / "sandbox-agent", "run", "-c", "print('up', flush=True); input()"],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == b"up\n"
        threads = thread_statuses(process.pid)
        assert threads
        for found in threads:
            assert found["NoNewPrivs"] == "1"
            assert all(int(found[f"Cap{k}"], 16) == 0 for k in ("Inh", "Prm", "Eff", "Bnd", "Amb"))
        process.communicate()


# ---- system calls ----


@pytest.fixture(scope="module")
def table():
    """{number: action} of the launcher's own table."""
    text = subprocess.run(
        [sa_module.BUILD / "launcher/sandbox-launch", "--print-seccomp"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    rows = [line.split("\t") for line in text.splitlines()]
    return {int(number): action for _, number, action, _ in rows}


def test_iso_04_no_call_outside_of_the_table_works(way, table):
    found = lines(way.output("sweep"))
    assert len(found) == 512
    wrong = {
        number: found[str(number)]
        for number in range(512)
        if table.get(number, "ENOSYS") not in ("allow", "arguments", found[str(number)])
    }
    # uretprobe and uprobe pass every filter, and refuse all but the kernel's own probes.
    for number, refusals in ((335, {"signal:4", "ENOSYS"}), (336, {"ENXIO", "ENOSYS"})):
        assert wrong.pop(number, "ENOSYS") in refusals
    assert not wrong


def test_iso_05_08_36_37_dangerous_calls_are_refused(way):
    found = lines(way.output("named"))
    works = {name for name, result in found.items() if result == "ok"}
    assert works <= {"personality-get", "tcgets", "kill-init"}, works
    for name in ("clone3", "io_uring_setup", "userfaultfd", "memfd_secret"):
        assert found[name] == "ENOSYS"


def test_iso_06_38_other_ways_into_the_kernel(way):
    found = lines(way.output("machine"))
    if not found:
        pytest.skip("x86-64 only")
    assert found["int80"] == "signal:31" and found["x32"] in ("ENOSYS", "signal:31")
    assert found["modify_ldt"] == "ENOSYS" and found["vsyscall"] in ("ok", "signal:11")


INT80 = r"""
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
"""


def test_iso_06_a_foreign_call_in_the_kernel_is_told_as_a_signal(make):
    session = make()
    result = session.execute(INT80)
    assert (result["status"], result["cause"], result["state"]) == ("died", "signal:31", "lost")
    assert session.execute("1 + 1")["result"]["text/plain"] == "2"


def test_iso_09_socket_families(way):
    found = lines(way.output("sockets"))
    assert {label for label, result in found.items() if result == "ok"} == {
        "family 1",
        "family 2",
        "family 10",
        "netlink 0",
    }


TTY = """
import errno, fcntl, os
for path in ("/dev/tty", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2", "/dev/console"):
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOCTTY)
    except OSError as e:
        continue
    for number in (0x5412, 0x541c, 0x100005412 & 0xffffffff):
        try:
            fcntl.ioctl(fd, number, b"x")
            print("works", path, number)
        except OSError as e:
            if e.errno not in (errno.EPERM, errno.ENOTTY):
                print(path, e)
import pty
master, slave = pty.openpty()
for number in (0x5412, 0x541c):
    try:
        fcntl.ioctl(slave, number, b"x"); print("works on a pty")
    except OSError as e:
        assert e.errno == errno.EPERM
print("tried")
"""


def on_a_terminal(*words):
    """What `run` writes to a terminal that is its own."""
    pid, master = pty.fork()
    if pid == 0:
        os.execv(sa_module.BUILD / "sandbox-agent", ["sandbox-agent", "run", *words])
    out, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline and select.select([master], [], [], 20)[0]:
        try:
            data = os.read(master, 4096)
        except OSError:
            break
        out += data
    os.waitpid(pid, 0)
    os.close(master)
    return out


def test_iso_10_the_operators_terminal_gets_no_input(state_dir, tmp_path):
    (tmp_path / "tty.py").write_text(TTY)
    out = on_a_terminal(str(tmp_path / "tty.py"))
    assert b"tried" in out and b"works" not in out, out
    # Echo would have shown a pushed byte as a line of its own.
    assert b"\r\nx" not in out


ASKS = r"\x1b[6n \x1b[c \x1b]0;title\x07 \x1bP$qm\x1b\\ \x9b6n \x1b[?1000h \x1b[2J \x1bc \x0e"


@pytest.mark.parametrize(
    "code",
    [
        f"print('{ASKS}')",
        f"import sys; sys.stderr.write('{ASKS}')",
        f"raise ValueError('{ASKS}')",
        f"raise type('{ASKS}', (Exception,), {{}})('x')",
        f"from IPython.display import display; display({{'text/plain': '{ASKS}'}}, raw=True)",
        f"from IPython.display import display; display({{'x/{ASKS}': 'x'}}, raw=True)",
        f"class R:\n    def __repr__(self): return '{ASKS}'\nR()",
        "import os\nfor c in b'\\x1b[6n\\x1b]2;t\\x07':\n"
        + "    os.write(1, bytes([c])); os.write(2, bytes([c]))",
    ],
    ids=["stdout", "stderr", "message", "type", "display", "mime", "repr", "pieces"],
)
def test_iso_10_output_cannot_make_the_terminal_answer(state_dir, code):
    """Some sequences are questions, whose answers come as if typed; others change the terminal."""
    out = on_a_terminal("-c", code)
    for sequence in re.findall(rb"\x1b.{0,8}", out):
        assert re.match(rb"\x1b\[[0-9;]*[mK]", sequence), (sequence, out)
    assert b"\x9b" not in out and b"\x07" not in out and b"\x0e" not in out


def test_iso_10_colours_get_through_and_pipes_are_exact(state_dir, agent):
    code = r"print('\x1b[1;31mred\x1b[0m\x1b[K \u4e2d \x1b[6n')"
    out = on_a_terminal("-c", code)
    assert b"\x1b[1;31mred\x1b[0m\x1b[K \xe4\xb8\xad ^[[6n" in out, out
    assert agent("run", "-c", code).stdout == "\x1b[1;31mred\x1b[0m\x1b[K \u4e2d \x1b[6n\n"


# ---- files of the host ----

OPEN = """
import errno, os, sys
for path in {paths!r}:
    try:
        fd = os.open(path, {flags} | os.O_NONBLOCK)
        print(path, "opens" if {flags} != os.O_RDONLY or os.read(fd, 1) else "empty")
    except OSError as e:
        print(path, errno.errorcode[e.errno])
"""

WRITABLE = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sysrq-trigger",
    "/proc/sys/fs/binfmt_misc/register",
    "/sys/kernel/uevent_helper",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/kernel/hostname",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/irq/0/smp_affinity",
    "/dev/kmsg",
    "/dev/mem",
    "/proc/1/oom_score_adj",
    "/proc/self/oom_score_adj",
    "/sys/fs/cgroup/cgroup.procs",
    "/etc/passwd",
    "/etc/hosts",
    "/etc/resolv.conf",
    "/dev/newfile",
    "/dev/null/x",
    "/opt/sandbox-agent/kernel/kernel.py",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/self/setgroups",
    "/proc/self/mem",
    "/proc/self/attr/current",
    "/proc/self/timerslack_ns",
    "/proc/self/clear_refs",
]
READABLE = [
    f"/proc/{name}"
    for name in (
        "kcore",
        "keys",
        "timer_list",
        "kmsg",
        "kallsyms",
        "slabinfo",
        "vmallocinfo",
        "interrupts",
        "config.gz",
        "cmdline",
        "iomem",
        "ioports",
        "diskstats",
        "pagetypeinfo",
        "kpagecount",
        "modules",
        "key-users",
        "sched_debug",
        "schedstat",
    )
]
READABLE += [
    "/sys/firmware",
    "/sys/class/powercap",
    "/sys/devices",
    "/dev/mem",
    "/dev/kmsg",
    "/sys/class/thermal",
    "/sys/kernel/debug",
]


def opened(live, paths, flags):
    """{path: errno, "empty" or "opens"}: by Python where there is one, else by the shell."""
    code = OPEN.format(paths=paths, flags=flags)
    if isinstance(live, entries.Terminal):
        live.session.write("open.py", code)
        text = live.shell("python3 open.py")
    elif live.language == "python":
        text = live.session.execute(code)["stdout"]
    else:
        how = "head -c1 $p | grep -q ." if flags == os.O_RDONLY else "(exec 3>>$p)"
        text = live.shell(
            f"for p in {' '.join(paths)}; do if {how}; then echo $p opens; "
            "else echo $p refused; fi; done 2>/dev/null"
        )
    found = dict(line.rsplit(" ", 1) for line in text.splitlines())
    assert set(found) == set(paths), text
    return found


def test_iso_12_nothing_of_the_host_can_be_written(live):
    found = opened(live, WRITABLE, os.O_WRONLY)
    assert not {path for path, result in found.items() if result == "opens"}


def test_iso_13_nothing_of_the_host_can_be_read(live):
    found = opened(live, READABLE, os.O_RDONLY)
    assert not {path for path, result in found.items() if result == "opens"}
    for name in ("acpi", "bus", "fs", "irq", "tty", "driver", "pressure"):
        assert live.shell(f"ls -A /proc/{name} 2>/dev/null") == ""


def test_iso_16_the_working_directory_is_inside(make):
    session = make(network="none")
    root = session.terminal("stat -c %d:%i /")["stdout"]
    climb = 'cd -P . && while [ "$(pwd -P)" != / ]; do cd ..; done; stat -c %d:%i .'
    for cwd in [f"/proc/self/fd/{n}" for n in range(3, 12)] + [
        "/proc/1/cwd",
        "/proc/1/root",
        "..",
        "../../..",
        "missing",
        "/",
        "/proc/self/cwd",
    ]:
        with session.run(climb, kind="command", cwd=cwd) as run:
            result = run.result(timeout=20)
        assert result["status"] == "error" or result["stdout"] == root, (cwd, result)


def test_iso_17_18_descriptors_are_pipes_sockets_and_null(way):
    for target in way.output("fds").split():
        assert re.fullmatch(
            r"(pipe|socket):\[\d+\]|/dev/null|/proc/\d+/fd(/\d+)?|anon_inode:.*", target
        ) or target.startswith(("/workspace/probe/", "/tmp/", "/opt/sandbox-agent/kernel/")), target


@pytest.mark.parametrize("name", entries.KERNELS)
def test_iso_17_18_descriptors_of_the_kernels(ways, name):
    """No file of the host is among them, but init's own lock of its id slot."""
    ways[name].read("/proc/self/status")  # the kernel is up
    session = ways[name].session
    seen = 0
    for pid in host_pids(session.id):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                target = os.readlink(f"/proc/{pid}/fd/{fd}")
            except OSError:
                continue
            seen += 1
            inside = target.startswith(("pipe:", "socket:", "anon_inode:", "/dev/", "/memfd:"))
            # Init's own: /, /proc and its lock of the id slot; the kernels': their own programs.
            known = target in (
                "/",
                "/proc",
                "/run/sandbox-agent/slots",
                "/workspace",
            ) or target.startswith(("/opt/sandbox-agent/kernel", "/usr/", "/tmp/", "/proc/"))
            assert inside or known, (pid, fd, target)
            if target == "/run/sandbox-agent/slots":
                assert pid == init_of(session.id)
    assert seen > 6


REOPEN = """
import os, stat
for fd in (0, 1, 2):
    assert not stat.S_ISREG(os.fstat(fd).st_mode)
    try:
        again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
        os.ftruncate(again, 0)
        print("truncated")
    except OSError:
        pass
"""


def test_iso_18_stdout_cannot_be_truncated(ways):
    assert ways["python"].session.execute(REOPEN)["stdout"] == ""
    assert ways["terminal"].shell(f"python3 -c '{REOPEN}'") == ""


def test_iso_20_22_init_is_not_seen(way):
    assert way.output("init") == ""
    rows = [line.split(None, 2) for line in way.output("ps").splitlines()]
    assert rows and "1" not in {pid for pid, _, _ in rows}
    assert {user for _, user, _ in rows} == {"sandbox"}
    ours = re.compile(r"sandbox-(init|launch|egress)|sandbox-agent run|owner\.py|pytest")
    assert not [args for _, _, args in rows if ours.search(args)]


def test_iso_22_signals_reach_nobody_else(ways):
    code = "import os\ntry:\n    os.kill(1, 9)\nexcept OSError as e: print(e.errno)\nprint('up')"
    assert ways["python"].session.execute(code)["stdout"].splitlines()[-1] == "up"
    # Everybody of this user, the kernel too, may be signalled; init and the host may not.
    result = ways["terminal"].session.terminal("kill -0 1; echo $?")
    assert result["stdout"] == "1\n"


CANARY_NAMES = (
    "PGPASSWORD",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "DATABASE_URL",
    "API_KEY",
    "OPENSANDBOX_API_KEY",
    "SETTINGS_KEY",
    "SSH_AUTH_SOCK",
    "LD_PRELOAD_X",
    "MY_SECRET",
    "HTTP_COOKIE",
    "SUDO_COMMAND",
    "NPM_TOKEN",
    "PIP_SECRET",
    "R_TOKEN",
    "NODE_SECRET",
    "HF_TOKEN",
)


def test_iso_21_no_secret_of_the_owner_is_inside(state_dir, tmp_path, agent):
    needle = "canary" + secrets.token_hex(8)
    env = {name: f"{needle}-{i}" for i, name in enumerate(CANARY_NAMES)}
    env["SANDBOX_PROXY"] = f"http://user:{needle}-proxy@127.0.0.1:9"
    (tmp_path / needle).mkdir()
    env["SANDBOX_STATE_DIR"] = str(tmp_path / needle / "state")
    (tmp_path / "settings.env").write_text(f"OPENAI_API_KEY={needle}-file\n")
    for language in entries.KERNELS:
        quoted = json.dumps(entries.search(needle))
        code = entries.RUN_SHELL[language].format(quoted)
        done = agent(
            "run",
            "-l",
            language,
            "--network",
            "public",
            "--env-file",
            tmp_path / "settings.env",
            "-c",
            code,
            env=env,
            cwd=tmp_path / needle,
        )
        assert (done.returncode, done.stdout.strip()) == (0, ""), (
            language,
            done.stdout,
            done.stderr,
        )
        assert needle not in done.stderr


# ---- the protocol ----

FRAME = (
    "import struct\n"
    "def frame(kind, stream, body):\n"
    "    return struct.pack('<IBI', len(body), kind, stream) + body\n"
    "token = bytes(16)\n"
    'body = token + b\'{"data":{"text/plain":"forged"},"status":"ok"}\'\n'
    "forged = b''.join(frame(kind, stream, body)\n"
    "                  for stream in range(3) for kind in (0x32, 0x34, 0x44, 0x4f))\n"
)

FLOODS = {
    "python": FRAME + "import os\nfor fd in range(3, 1024):\n"
    "    for data in (forged, os.urandom(1 << 20)):\n"
    "        try: os.set_blocking(fd, False); os.write(fd, data)\n"
    "        except OSError: pass\n"
    "import time; time.sleep(20)",
    "node": "const fs = require('fs'), crypto = require('crypto');\n"
    "for (let fd = 3; fd < 1024; fd++) { try {"
    " fs.writeSync(fd, Buffer.from('2a0000003200000000', 'hex'));"
    " fs.writeSync(fd, crypto.randomBytes(1 << 16)); } catch {} }\n"
    "await new Promise(r => setTimeout(r, 20000))",
}


@pytest.mark.parametrize("language", FLOODS)
def test_iso_24_frames_to_every_descriptor_end_the_kernel_only(make, language):
    session = make(language)
    session.execute("1")
    result = session.execute(FLOODS[language], timeout=15)
    # Node's cells run away from its channel, so there may be nothing to be found.
    assert result["status"] in ("died",) or (language == "node" and result["status"] != "ok"), (
        result
    )
    # Python has its pipes open more than once, so the bytes may show as output, and no more.
    assert result["result"] is None and result["display_outputs"] == [], result
    assert "forged" not in json.dumps(result["error"])
    if result["status"] == "died":
        assert result["cause"] in ("protocol", "exit:1", "signal:6", "signal:9", "signal:13"), (
            result
        )
    assert session.execute("1 + 1", timeout=30)["result"]["text/plain"] == "2"


def test_iso_24_a_native_writer_in_r(make):
    session = make("r")
    session.write(
        "w.c",
        b"#include <unistd.h>\n#include <string.h>\nvoid w(int *fd) {"
        b"char b[65536]; memset(b, 0x32, sizeof b); write(*fd, b, sizeof b); }\n",
    )
    assert session.terminal("R CMD SHLIB w.c", timeout=60)["success"]
    result = session.execute(
        "dyn.load('w.so'); for (fd in 3:255) .C('w', as.integer(fd)); Sys.sleep(20)", timeout=10
    )
    assert result["status"] == "died" and result["cause"] == "protocol", result
    assert session.execute("1 + 1", timeout=60)["result"]["text/plain"] == "[1] 2"


# The code of a cell runs in the kernel's own process, so it can find the token and speak for it: in
# its own session. What it says then must not harm the process that owns the session.
OWN_WORDS = """
import os, struct, sys, time
def find():
    seen, todo, frame = set(), [get_ipython()], sys._getframe()
    while frame:
        todo += frame.f_locals.values()
        frame = frame.f_back
    while todo:
        thing = todo.pop(0)
        if type(thing).__name__ == "Channel":
            return thing
        if id(thing) not in seen and hasattr(thing, "__dict__"):
            todo += vars(thing).values()
        seen.add(id(thing))
channel = find()
def say(kind, body):
    data = channel._token + body
    data = struct.pack("<IBI", len(data), kind, channel._cell) + data
    while data:
        data = data[os.write(channel._fd, data):]
"""

WORDS = {
    "no json": "for i in range(10): say(0x31, b'{not json')",
    "deep json": "say(0x31, b'{\"data\":' + b'[' * 500000 + b']' * 500000 + b'}')",
    "odd displays": "for b in (b'{\"data\": 5}', b'[]', b'null', b''): say(0x31, b)",
    "odd kinds": 'say(0x31, b\'{"data": {"text/plain": 5, "image/png": [1], "": {}}}\')',
    "odd result": 'say(0x32, b\'{"data": {"text/plain": "a\\\\u0000\\\\ud800"}}\')',
    "odd error": 'say(0x33, b\'{"type": 5, "message": [], "traceback": {}, "errno": 1e400}\')',
    "two results": 'for i in range(2): say(0x32, b\'{"data": {"text/plain": "x"}}\')',
    "done early": 'say(0x34, b\'{"status":"ok"}\'); time.sleep(0.5)',
    "odd end": 'say(0x34, b\'{"status":"timeout"}\'); time.sleep(0.5)',
    "questions": 'for i in range(50): say(0x35, b\'{"prompt": 5, "password": "x"}\')',
    "many": 'for i in range(50000): say(0x31, b\'{"data":{"text/plain":"x"}}\')',
    "many keys": "keys = b','.join(b'\"%d\":1' % i for i in range(10**6))\n"
    "say(0x31, b'{\"data\":{' + keys + b'}}')",
    "large": "text = b'x' * 30_000_000\n"
    'for i in range(8): say(0x31, b\'{"data":{"text/html":"\' + text + b\'"}}\')',
    "long frame": "os.write(channel._fd, struct.pack('<IBI', 2**32 - 1, 0x31, channel._cell))",
    "unknown": "say(0x77, b'x')",
}


@pytest.mark.parametrize("name", WORDS)
def test_iso_24_the_kernels_own_words_harm_no_owner(make, name):
    session, other = make(network="none"), make(network="none")
    session.execute("1")
    before = int(Path("/proc/self/statm").read_text().split()[1])
    result = session.execute(OWN_WORDS + WORDS[name], timeout=20)
    assert result["status"] in ("ok", "error", "died"), result
    assert len(json.dumps(result)) < 80 << 20
    assert (int(Path("/proc/self/statm").read_text().split()[1]) - before) * 4096 < 400 << 20
    assert other.execute("6 * 7")["result"]["text/plain"] == "42"
    assert session.execute("1", timeout=20)["status"] in ("ok", "died")
    assert session.execute("6 * 7", timeout=20)["result"]["text/plain"] == "42"


STEAL = """
import os, socket
pid = {pid}
works = []
for fd in os.listdir(f"/proc/{{pid}}/fd"):
    target = os.readlink(f"/proc/{{pid}}/fd/{{fd}}")
    for flags in (os.O_RDWR, os.O_RDONLY, os.O_WRONLY):
        try:
            got = os.open(f"/proc/{{pid}}/fd/{{fd}}", flags | os.O_NONBLOCK)
            if target.startswith("socket:"):
                works.append((fd, target, flags))
            os.close(got)
        except OSError:
            pass
for path in ("mem",):
    try:
        os.open(f"/proc/{{pid}}/{{path}}", os.O_RDWR); works.append(path)
    except OSError:
        pass
for line in open("/proc/net/unix").read().splitlines()[1:]:
    name = line.split()[7:]
    if name:
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(name[0].replace("@", "\\0", 1)); works.append(name)
        except OSError:
            pass
print(works)
"""


def test_iso_25_a_command_cannot_speak_for_the_kernel(make):
    session = make()
    pid = session.execute("import os; os.getpid()")["result"]["text/plain"]
    session.write("steal.py", STEAL.format(pid=pid).encode())
    with session.run("import time; time.sleep(1.5); 'mine'") as run:
        time.sleep(0.2)
        assert run.result(timeout=30)["result"]["text/plain"] == "'mine'"
    assert session.terminal("python3 steal.py")["stdout"] == "[]\n"
    # While a cell runs, too: from a child of the kernel itself.
    result = session.execute(
        "import subprocess\nprint(subprocess.run(['python3', 'steal.py'],"
        " capture_output=True, text=True).stdout, end='')\n7"
    )
    assert result["stdout"] == "[]\n" and result["result"]["text/plain"] == "7"


def test_iso_26_abstract_sockets_of_the_host_are_not_reached(ways):
    name = "sbx-canary-" + secrets.token_hex(8)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + name)
        listener.listen()
        listener.settimeout(0.2)
        code = (
            "import socket, errno\ns = socket.socket(socket.AF_UNIX)\n"
            f"try: s.connect('\\0{name}'); print('connected')\n"
            "except OSError as e: print(errno.errorcode[e.errno])"
        )
        assert ways["python"].session.execute(code)["stdout"] == "ECONNREFUSED\n"
        assert ways["terminal"].shell(f'python3 -c "{code}"') == "ECONNREFUSED\n"
        with pytest.raises(TimeoutError):
            listener.accept()


def test_iso_28_there_are_no_keyrings(way):
    found = lines(way.output("named"))
    assert [found[name] for name in ("add_key", "keyctl", "request_key")] == ["EPERM"] * 3


# ---- sessions beside each other ----

PLACES = "/tmp /workspace /dev/shm /home/sandbox /home/sandbox/.cache/pip /tmp/.npm /home/sandbox/R"


@pytest.mark.parametrize("language", entries.KERNELS)
def test_iso_29_nothing_of_a_session_is_in_the_next(make, language):
    needle = "canary" + secrets.token_hex(8)
    first, other = make(language), make(language)
    first.terminal(f"for d in {PLACES}; do mkdir -p $d && echo {needle} >$d/{needle}; done")
    assert needle in first.terminal(f"ls {PLACES}")["stdout"]
    quoted = entries.search(needle)
    assert other.terminal(quoted, timeout=60)["stdout"] == ""
    first.stop()
    third = make(language)
    assert third.terminal(quoted, timeout=60)["stdout"] == ""


TAMPER = """
import mmap, os, shutil
works = []
def attempt(name, call):
    try:
        call(); works.append(name)
    except OSError:
        pass
for target in ("/usr/bin/env", "/usr/lib/python3/dist-packages/pip/__init__.py", "/etc/passwd",
               "/opt/sandbox-agent/kernel/kernel.py", "/etc/hosts"):
    attempt("open", lambda: os.open(target, os.O_RDWR))
    attempt("truncate", lambda: os.truncate(target, 0))
    attempt("unlink", lambda: os.unlink(target))
    attempt("rename", lambda: os.rename(target, "/workspace/env"))
    attempt("link", lambda: os.link(target, "/workspace/link"))
    attempt("chmod", lambda: os.chmod(target, 0o777))
    attempt("utime", lambda: os.utime(target))
    attempt("xattr", lambda: os.setxattr(target, "user.x", b"y"))
    attempt("proc", lambda: os.open(f"/proc/self/fd/{os.open(target, os.O_RDONLY)}", os.O_RDWR))
    attempt("mmap", lambda: mmap.mmap(os.open(target, os.O_RDONLY), 0, mmap.MAP_SHARED,
                                      mmap.PROT_WRITE))
    def splice_in():
        # The dirty pipe: a page of the file in a pipe, then bytes behind it.
        read, write = os.pipe()
        os.write(write, b"x" * 65536); os.read(read, 65536)
        fd = os.open(target, os.O_RDONLY)
        os.splice(fd, write, 1, offset_src=0)
        os.write(write, b"tampered")
        os.splice(read, os.open(target, os.O_WRONLY), 4096)
    attempt("splice", splice_in)
    attempt("copy", lambda: os.copy_file_range(os.open("/etc/hostname", os.O_RDONLY),
                                               os.open(target, os.O_WRONLY), 10))
print(works)
"""


def digest(root, *places):
    """Of the contents of files and of what is said of them; read through the page cache."""
    sums = hashlib.sha256()
    for place in places:
        for path in sorted((root / place).rglob("*")):
            info = path.lstat()
            sums.update(
                f"{path} {info.st_mode} {info.st_size} {info.st_mtime_ns} {info.st_uid}".encode()
            )
            if path.is_file() and not path.is_symlink():
                sums.update(path.read_bytes())
    return sums.hexdigest()


def test_iso_30_the_image_cannot_be_altered(make):
    session = make(network="none")
    images = Path(os.environ["SANDBOX_IMAGE_DIR"], "python").resolve().glob("*/rootfs")
    roots = sorted(image for image in images if (image / "usr").is_dir())
    assert roots
    places = ("etc", "usr/bin", "usr/lib/python3/dist-packages/pip", "opt")
    kernel = sa_module.BUILD / "libexec/kernels"

    def digests():
        return [digest(root, *places) for root in roots] + [digest(kernel, "python")]

    before = digests()
    result = session.execute(TAMPER)
    assert result["stdout"] == "[]\n", result["error"]
    session.write("tamper.py", TAMPER.encode())
    assert session.terminal("python3 tamper.py")["stdout"] == "[]\n"
    for path in ("/usr/bin/env", "/etc/passwd", "/usr/bin/new", "/etc/../usr/bin/env"):
        with pytest.raises(sa_module.Error):
            session.write(path, b"x")
        with pytest.raises(sa_module.Error):
            session.remove(path)
    assert digests() == before


# ---- more ways out ----

SETUID = """
import os, shutil, subprocess
shutil.copy("/bin/sh", "/tmp/sh")
os.chmod("/tmp/sh", 0o6755)
for version in (0x02000001, 0x03000001):
    try:
        os.setxattr("/tmp/sh", "security.capability",
                    version.to_bytes(4, "little") + b"\\xff" * (16 if version < 0x03000000 else 20))
    except OSError:
        pass
print(subprocess.run(["/tmp/sh", "-p", "-c",
                      "id -u; grep -E 'CapEff|CapPrm|NoNew' /proc/self/status"],
                     capture_output=True, text=True).stdout)
"""


def test_iso_32_no_identity_from_a_file(ways):
    uid, *fields = ways["python"].session.execute(SETUID)["stdout"].split("\n")[:4]
    assert uid == "65532"
    assert {line.split()[1] for line in fields} == {"0" * 16, "1"}
    assert (
        ways["terminal"].shell(
            "find / -xdev -perm /6000 -type f 2>/dev/null | while read f; do "
            "$f --version </dev/null >/dev/null 2>&1; done; id -u"
        )
        == "65532\n"
    )


def test_iso_33_control_groups_are_not_seen(way):
    session = way.session
    text = session.terminal(
        "cat /proc/self/cgroup; grep -e '- cgroup' /proc/self/mountinfo; "
        "ls -A /sys; "
        "find / -xdev -name release_agent -o -name 'devices.allow' 2>/dev/null"
    )
    for line in text["stdout"].splitlines():
        assert re.fullmatch(r"\d+:[^:]*:/", line), line
    assert (
        session.terminal("mount -t cgroup cgroup /tmp || mount -t cgroup2 x /tmp")["status"]
        == "error"
    )


BREAK_OUT = """
import os
works = []
fd = os.open("/", os.O_RDONLY)
for attempt in (lambda: os.chroot("/tmp"), lambda: os.pivot_root("/tmp", "/tmp")):
    try:
        attempt(); works.append(attempt)
    except (OSError, AttributeError):
        pass
for start in ("/workspace", "/proc/self", "/dev/shm", "/proc/self/root", "/proc/self/cwd"):
    here = os.open(start, os.O_RDONLY)
    for path in ("../../../../../..", "../" * 50, "/proc/self/root/../.."):
        top = os.open(path, os.O_RDONLY, dir_fd=here)
        if not os.path.samestat(os.fstat(top), os.fstat(fd)):
            works.append((start, path))
for fd in map(int, os.listdir("/proc/self/fd")):
    try:
        info = os.fstat(fd)
        up = os.open("..", os.O_RDONLY, dir_fd=fd)
        if os.stat("..", dir_fd=up).st_ino != os.stat("/").st_ino:
            works.append(fd)
    except OSError:
        pass
print(works)
"""


def test_iso_34_there_is_nothing_above_the_root(ways):
    assert ways["python"].session.execute(BREAK_OUT)["stdout"] == "[]\n"
    ways["terminal"].session.write("out.py", BREAK_OUT.encode())
    assert ways["terminal"].shell("python3 out.py") == "[]\n"


def test_iso_36_the_host_keeps_its_name_and_time(live):
    name, before = os.uname().nodename, time.time()
    live.shell(
        "hostname evil; date -s '2001-01-01'; swapon /tmp/x; reboot -f; "
        "echo evil >/proc/sys/kernel/hostname; true 2>/dev/null"
    )
    assert os.uname().nodename == name and 0 <= time.time() - before < 60
    assert live.shell("hostname; uname -n").split() == ["sandbox", "sandbox"]


LIMITS = """
import json, os, resource as r
found = {n: r.getrlimit(getattr(r, n)) for n in dir(r) if n.startswith("RLIMIT_")}
works = []
for name in ("RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_CORE", "RLIMIT_MEMLOCK", "RLIMIT_FSIZE"):
    try:
        r.setrlimit(getattr(r, name), (found[name][1] + 1, found[name][1] + 1)); works.append(name)
    except (OSError, ValueError):
        pass
def attempt(name, call):
    try:
        call(); works.append(name)
    except OSError:
        pass
attempt("prlimit 1", lambda: r.prlimit(1, r.RLIMIT_NOFILE, (3, 3)))
attempt("nice", lambda: os.nice(-5))
attempt("fifo", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
attempt("mlockall", lambda: libc.mlockall(3) == 0 or os.open("/nonexistent", 0))
print(json.dumps([found, works]))
"""


@pytest.mark.parametrize("how", ("cell", "command"))
def test_iso_37_limits(ways, how):
    session = ways["python"].session
    if how == "cell":
        text = session.execute(LIMITS)["stdout"]
    else:
        session.write("limits.py", LIMITS.encode())
        text = session.terminal("python3 limits.py")["stdout"]
    found, works = json.loads(text)
    assert works == []
    assert found["RLIMIT_CORE"] == [1, 1] and found["RLIMIT_MSGQUEUE"] == [0, 0]
    assert found["RLIMIT_NOFILE"] == [1024, 4096] and found["RLIMIT_MEMLOCK"] == [65536, 65536]
    assert found["RLIMIT_RTPRIO"] == [0, 0] and found[
        "RLIMIT_NICE" if "RLIMIT_NICE" in found else "RLIMIT_RTPRIO"
    ] == [0, 0]


PLANTS = {
    "sitecustomize.py": "open('/workspace/ran-sitecustomize', 'w')",
    "usercustomize.py": "open('/workspace/ran-usercustomize', 'w')",
    ".npmrc": "script-shell=/workspace/shim/sh\nnode-options=--require /workspace/evil.js\n",
    "evil.js": "require('fs').writeFileSync('/workspace/ran-node', '')",
    ".Rprofile": "file.create('/workspace/ran-r')",
    ".Renviron": "R_PROFILE_USER=/workspace/.Rprofile\n",
    "startup.py": "open('/workspace/ran-startup', 'w')",
    "os.py": "open('/workspace/ran-os', 'w')",
    "IPython.py": "open('/workspace/ran-ipython', 'w')",
    "json.py": "open('/workspace/ran-json', 'w')",
    "package.json": '{"type": "module"}',
}
SHIM = "#!/bin/sh\n: >/workspace/ran-$(basename $0)\nexit 0\n"


@pytest.mark.parametrize("language,code", [("python", "1 + 1"), ("node", "1 + 1"), ("r", "1 + 1")])
def test_iso_40_plants_change_no_helper(make, language, code):
    """Files where programs look for them; then files, a restart of the kernel, an end."""
    session = make(language)
    session.execute(code)
    for name, text in PLANTS.items():
        session.write(name, text)
        session.write(f"/home/sandbox/{name}", text)
    for name in ("sh", "python3", "node", "R", "Rscript", "npm", "cat", "tar", "git"):
        session.write(f"/home/sandbox/.local/bin/{name}", SHIM)
        session.write(f"/workspace/node_modules/.bin/{name}", SHIM)
    session.terminal(
        "chmod +x /home/sandbox/.local/bin/* node_modules/.bin/*; mkdir -p "
        "/home/sandbox/.local/lib/python3.13/site-packages; cp *.py "
        "/home/sandbox/.local/lib/python3.13/site-packages/; rm -f ran-*"
    )
    kill = {"python": "import os; os._exit(3)", "node": "process.exit(3)", "r": "quit(status=3)"}
    session.execute(kill[language])
    again = session.execute(code, timeout=30)
    assert again["status"] == "ok" and "2" in again["result"]["text/plain"], again
    session.write("data", b"bytes")
    assert session.read("data") == b"bytes"
    assert "data" in {entry["name"] for entry in session.files()}
    ran = sorted(e["name"] for e in session.files() if e["name"].startswith("ran-"))
    assert ran == [], ran
    session.stop()
    assert not list(Path("/workspace").glob("ran-*")) if Path("/workspace").exists() else True


@pytest.fixture(scope="module")
def switches(state_dir):
    """Skip where this build has no switches that take a feature away."""
    done = subprocess.run(
        [sa_module.BUILD / "sandbox-agent", "run", "-c", "1"],
        text=True,
        check=False,
        capture_output=True,
        env={**os.environ, "SBX_WITHOUT": "seccomp"},
    )
    if done.returncode == 0:
        pytest.skip("a build without failpoints cannot take a feature away")


@pytest.mark.parametrize(
    "feature,name",
    [
        ("seccomp", "seccomp filters"),
        ("userns", "user namespaces"),
        ("netns", "network namespaces"),
    ],
)
def test_iso_42_a_required_feature_is_refused_by_name(switches, agent, feature, name):
    done = agent("run", "-c", "print(1)", env={"SBX_WITHOUT": feature})
    assert done.returncode == 3 and f"no {name}" in done.stderr and done.stdout == ""
    assert "doctor" in done.stderr
    done = agent("run", "--allow-degraded", "-c", "print(1)", env={"SBX_WITHOUT": feature})
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_iso_42_what_is_weaker_is_listed(switches, state_dir, monkeypatch):
    monkeypatch.setenv("SBX_WITHOUT", "landlock,cgroup,idmap")
    with sa_module.Library(instance="weaker") as library:
        session = library.create("python", network="none")
        assert session.execute("6 * 7")["result"]["text/plain"] == "42"
        listed = " ".join(session.info()["degraded"]).lower()
        for word in ("landlock", "memory", "pids", "idmap"):
            assert word in listed.replace("id-map", "idmap"), listed


def test_iso_44_no_sockets_of_the_host(live):
    found = live.shell(
        "find / -xdev -type s 2>/dev/null; find /run /var/run -type s 2>/dev/null; "
        "ls -d /var/run/docker.sock /run/containerd /run/systemd /run/dbus 2>/dev/null; true"
    )
    # Rootless X and tmux sockets of the host would show here too.
    assert found.strip() == ""


SPIN = """
import os, ctypes
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
print("go", flush=True)
while True:
    try:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                continue
            os._exit(0)
        os.waitpid(-1, os.WNOHANG)
    except OSError:
        pass
"""


@pytest.mark.parametrize(
    "how,end",
    [("cell", "stop"), ("command", "stop"), ("command", "timeout"), ("command", "cancel")],
)
def test_iso_45_nothing_survives_an_end(make, how, end):
    """Forks that leave their session and their parents, at the moment of the end."""
    session = make(pids=80, network="none")
    session.execute("1")
    namespace = os.readlink(f"/proc/{init_of(session.id)}/ns/pid")
    text, kind = (SPIN, "code") if how == "cell" else (f"exec python3 -c '{SPIN}'", "command")
    with session.run(text, kind=kind, timeout=2 if end == "timeout" else 60) as run:
        while run.next(timeout=20) != ("stdout", b"go\n"):
            pass
        time.sleep(0.2)
        started = time.monotonic()
        if end == "stop":
            session.stop()
            assert time.monotonic() - started < 5
        else:
            if end == "cancel":
                run.cancel()
            result = run.result(timeout=30)
            assert result["status"] in ("timeout", "interrupted"), result
        # Init and the kernel stay where the session does.
        left, deadline = 0 if end == "stop" else 2, time.monotonic() + 1
        while (found := _inside(namespace)) > left and time.monotonic() < deadline:
            time.sleep(0.05)
        assert found <= left
    if end != "stop":
        assert session.execute("1 + 1", timeout=30)["result"]["text/plain"] == "2"


def _inside(namespace):
    """How many processes are in a pid namespace."""
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            count += os.readlink(f"/proc/{pid}/ns/pid") == namespace
        except OSError:
            continue
    return count


# ---- case 51 ----

TRICKS = """
import ctypes, os, subprocess, socket
libc = ctypes.CDLL(None, use_errno=True)
libc.system(b"id -u > /tmp/system")
print("system", open("/tmp/system").read().strip())
print("root", os.path.exists("/proc/1/root/etc"))
for name, call in (("unshare", lambda: libc.unshare(0x10000000)),
                   ("mount", lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)),
                   ("ptrace", lambda: libc.ptrace(16, os.getppid(), 0, 0)),
                   ("keyctl", lambda: libc.syscall(250, 0, -3, 1)),
                   ("io_uring", lambda: libc.syscall(425, 4, ctypes.create_string_buffer(200))),
                   ("kmsg", lambda: os.open("/dev/kmsg", os.O_RDONLY)),
                   ("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1) and 0)):
    try:
        print(name, "works" if call() >= 0 else "refused")
    except OSError:
        print(name, "refused")
"""


def test_case_51_runtime_tricks_of_python(ways):
    out = ways["python"].session.execute(TRICKS)["stdout"].split("\n")
    assert out[:2] == ["system 65532", "root False"]
    assert [line.split()[1] for line in out[2:-1]] == ["refused"] * 7


def test_case_51_runtime_tricks_of_node_and_r(ways):
    node = ways["node"].session
    code = "this.constructor.constructor('return process')().getuid()"
    assert node.execute(code)["result"]["text/plain"] == "65532"
    code = (
        "const p = this.constructor.constructor('return process')();"
        "[Object.keys(p.env).filter(k => /KEY|SECRET|SANDBOX_STATE/.test(k)).length,"
        " p.mainModule === undefined || typeof p.mainModule]"
    )
    assert node.execute(code)["status"] == "ok"
    assert (
        node.execute("try { process.dlopen({exports: {}}, '/tmp/no.node') } catch (e) { 'no' }")[
            "result"
        ]["text/plain"]
        == "'no'"
    )
    r = ways["r"].session
    assert r.execute('system("id -u", intern = TRUE)')["result"]["text/plain"] == '[1] "65532"'
    assert r.execute('file.exists("/proc/1/root/etc")')["result"]["text/plain"] == "[1] FALSE"


def test_case_51_own_namespaces(ways):
    for name in entries.KERNELS:
        session = ways[name].session
        host = Path(f"/proc/{init_of(session.id)}/ns")
        for kind in ("user", "pid", "mnt", "ipc", "uts", "net", "cgroup"):
            inside = os.readlink(host / kind)
            assert inside != os.readlink(f"/proc/self/ns/{kind}")
            assert session.terminal(f"readlink /proc/self/ns/{kind}")["stdout"].strip() == inside
