# SPDX-License-Identifier: MIT
"""What user code can see and do in a sandbox: isolation rows, by their ids in the test names."""

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import keeper as lib

SLOT_BASE, SLOT_IDS = 0x70000000, 65536


def lines(sandbox, verb):
    """Run the test program; {label: result}."""
    run = sandbox.run("/tmp/sbx-introspect", verb, timeout=120)
    assert run.end["status"] == "ok", (run.end, run.stderr)
    return dict(line.rsplit(" ", 1) for line in run.stdout.decode().splitlines())


@pytest.fixture(scope="module")
def table():
    """{number: (name, action in `default`)}, as the launcher prints its own table."""
    text = subprocess.run([lib.BUILD_DIR / "launcher/sandbox-launch", "--print-seccomp"],
                          check=True, capture_output=True, text=True).stdout
    rows = [line.split("\t") for line in text.splitlines()]
    return {int(number): (name, action) for name, number, action, _ in rows}


def test_iso_01_ids_are_the_slots_and_never_the_hosts(shared, mode):
    pid = shared.opened.pid
    for kind in ("uid_map", "gid_map"):
        inside = shared.run("cat", f"/proc/self/{kind}").stdout.decode()
        ranges = [tuple(map(int, line.split())) for line in inside.splitlines()]
        assert Path(f"/proc/{pid}/{kind}").read_text().split() == inside.split()
        for first, outside, count in ranges:
            assert outside > 0 and not outside <= 65534 < outside + count
            if mode == "root":
                assert (first, count) == (0, SLOT_IDS)
                assert outside == SLOT_BASE + shared.opened.slot * SLOT_IDS
    assert len(ranges) == {"root": 1, "user": 2, "user-one-id": 1}[mode]
    assert ("one uid" in shared.degraded) == (mode == "user-one-id")


def status(text):
    """The fields of /proc/PID/status."""
    return dict(re.split(r":\s*", line, maxsplit=1) for line in text.splitlines() if ":" in line)


def test_iso_02_privileges_of_user_code_and_of_init(shared):
    inside = status(shared.run("cat", "/proc/self/status").stdout.decode())
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(inside[name], 16) == 0
    assert inside["NoNewPrivs"] == "1" and inside["Seccomp"] == "2"
    init = status(Path(f"/proc/{shared.opened.pid}/status").read_text())
    three = 1 << 5 | 1 << 6 | 1 << 7  # KILL, SETGID, SETUID
    assert int(init["CapEff"], 16) == int(init["CapPrm"], 16) == three
    assert int(init["CapBnd"], 16) == int(init["CapAmb"], 16) == 0
    assert init["NoNewPrivs"] == "1" and init["Seccomp"] == "2"


def test_iso_04_no_call_outside_of_the_table_works(shared, table):
    found = lines(shared, "sweep")
    assert len(found) == 512
    wrong = {}
    for number in range(512):
        name, action = table.get(number, ("?", "ENOSYS"))
        result = found[str(number)]
        if action not in ("allow", "arguments") and result != action:
            wrong[number] = result
    # The kernel exempts uretprobe and uprobe from every filter; they refuse all but its own probes.
    for number, refusals in ((335, {"signal:4", "ENOSYS"}), (336, {"ENXIO", "ENOSYS"})):
        assert wrong.pop(number, "ENOSYS") in refusals
    assert not wrong


def test_iso_05_08_36_37_38_dangerous_calls_are_refused(shared):
    found = lines(shared, "named")
    harmless = {"personality-get", "tcgets", "kill-init"}
    works = {name for name, result in found.items() if result == "ok"}
    assert works <= harmless, works - harmless
    for name in ("clone3", "io_uring_setup", "userfaultfd", "memfd_secret", "fsopen", "open_tree"):
        assert found[name] == "ENOSYS", (name, found[name])
    for name in ("mount", "unshare-user", "clone-user", "clone-net", "bpf", "keyctl", "ptrace",
                 "tiocsti", "tiocsti-high", "tioclinux", "personality-exec", "prctl-mm"):
        assert found[name] == "EPERM", (name, found[name])
    # A signal to pid 1 from inside does nothing, whoever may send it.
    assert shared.run("true").end["status"] == "ok"


def test_iso_06_other_ways_into_the_kernel(shared):
    found = lines(shared, "machine")
    if not found:
        pytest.skip("x86-64 only")
    assert found["int80"] == "signal:31"
    assert found["x32"] in ("ENOSYS", "signal:31")
    assert found["modify_ldt"] == "ENOSYS"
    assert found["vsyscall"] in ("ok", "signal:11")


def test_iso_09_socket_families(shared):
    found = lines(shared, "sockets")
    allowed = {label for label, result in found.items() if result == "ok"}
    assert allowed == {"family 1", "family 2", "family 10", "netlink 0"}
    assert all(result == "EAFNOSUPPORT" for label, result in found.items()
               if label.startswith("family") and label not in allowed)


PTY = """
import errno, fcntl, json, os, pty
results = {}
master, slave = pty.openpty()
for name, number in (("sti", 0x5412), ("linux", 0x541c)):
    try:
        fcntl.ioctl(slave, number, b"x")
        results[name] = "ok"
    except OSError as e:
        results[name] = errno.errorcode[e.errno]
os.set_blocking(master, False)
try:
    results["read"] = os.read(master, 10).decode()
except OSError as e:
    results["read"] = ""
print(json.dumps(results))
"""


def test_iso_10_no_input_is_pushed_into_a_terminal(shared):
    assert json.loads(shared.python(PTY)) == {"sti": "EPERM", "linux": "EPERM", "read": ""}


FILES = """
import errno, json, os, sys
results = {}
for path in json.loads(sys.argv[1]):
    try:
        fd = os.open(path, FLAGS | os.O_NONBLOCK)
        results[path] = "empty" if FLAGS == os.O_RDONLY and not os.read(fd, 1) else "opens"
        os.close(fd)
    except OSError as e:
        results[path] = errno.errorcode[e.errno]
print(json.dumps(results))
"""


def files(sandbox, flags, paths):
    """Open files inside; {path: errno, "empty" or "opens"}."""
    code = FILES.replace("FLAGS", str(flags))
    run = sandbox.run("python3", "-c", code, json.dumps(paths))
    return json.loads(run.stdout)


def test_iso_12_nothing_of_the_host_can_be_written(shared):
    paths = ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger",
             "/proc/sys/fs/binfmt_misc/register", "/sys/kernel/uevent_helper",
             "/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/vm/overcommit_memory",
             "/proc/sys/kernel/hostname", "/proc/irq/0/smp_affinity", "/dev/kmsg", "/dev/mem",
             "/proc/self/uid_map", "/proc/1/oom_score_adj", "/sys/fs/cgroup/cgroup.procs",
             "/etc/passwd", "/etc/hosts", "/dev/newfile", "/proc/sys/kernel/ns_last_pid"]
    found = files(shared, os.O_WRONLY, paths)
    # A map of ids can be opened by its process, and written once: that is done.
    assert found.pop("/proc/self/uid_map") in ("EACCES", "EROFS", "EPERM", "opens")
    assert not [path for path, result in found.items() if result == "opens"], found
    run = shared.run("sh", "-c", "echo 0 0 1 > /proc/self/uid_map")
    assert run.end["status"] == "error"


def test_iso_13_nothing_of_the_host_can_be_read(shared):
    paths = [f"/proc/{name}" for name in (
        "kcore", "keys", "timer_list", "kmsg", "kallsyms", "slabinfo", "vmallocinfo", "interrupts",
        "config.gz", "cmdline", "iomem", "ioports", "diskstats", "pagetypeinfo", "kpagecount",
        "schedstat", "modules", "key-users")]
    paths += ["/sys/firmware", "/sys/class/powercap", "/sys/devices/system/cpu", "/dev/mem"]
    found = files(shared, os.O_RDONLY, paths)
    assert not [path for path, result in found.items() if result == "opens"], found
    for name in ("acpi", "bus", "fs", "irq", "tty", "driver", "pressure"):
        assert shared.run("sh", "-c", f"ls -A /proc/{name} 2>/dev/null").stdout == b""


def test_iso_16_the_working_directory_is_inside(shared):
    root = shared.run("stat", "-c", "%d:%i", "/").stdout
    # Init refuses what it cannot enter; what it enters has the sandbox's root above it.
    for cwd in [f"/proc/self/fd/{n}" for n in range(3, 21)] + ["/proc/1/cwd", "..", "missing", "/"]:
        run = shared.run("sh", "-c", "cd -P . && while [ \"$(pwd -P)\" != / ]; do cd ..; done; "
                         "stat -c %d:%i .", cwd=cwd)
        assert run.end["status"] == "error" or run.stdout == root, cwd


def test_iso_17_descriptors(shared):
    code = ("import os\nfor fd in sorted(os.listdir('/proc/self/fd'), key=int):\n"
            "    try: print(fd, os.readlink('/proc/self/fd/' + fd))\n    except OSError: pass")
    found = dict(line.split(" ", 1) for line in shared.python(code).splitlines())
    # The listing's own descriptor is closed by the time it is read.
    assert set(found) == {"0", "1", "2"}
    for target in found.values():
        assert re.fullmatch(r"pipe:\[\d+\]|socket:\[\d+\]|/dev/null", target), found


def test_iso_18_stdout_is_no_file_of_the_host(shared):
    code = ("import os, stat\nfor fd in (0, 1, 2):\n"
            "    assert not stat.S_ISREG(os.fstat(fd).st_mode)\nprint('fine')")
    assert shared.python(code) == "fine\n"


def test_iso_20_init_shows_nothing(shared, mode):
    for name in ("environ", "mem", "maps", "root", "cwd", "exe", "cmdline", "fd"):
        run = shared.run("sh", "-c", f"cat /proc/1/{name} || ls -l /proc/1/{name}/")
        # With one id pid 1 is seen; its command line has only our own words.
        if mode == "user-one-id" and name == "cmdline":
            assert run.stdout.startswith(b"sandbox-init")
        else:
            assert run.stdout == b"", (name, run.stdout)


def test_iso_22_only_own_processes(shared, mode):
    pids = [int(p) for p in shared.python(
        "import os; print(*[p for p in os.listdir('/proc') if p.isdigit()])").split()]
    assert (1 in pids) == (mode == "user-one-id")
    assert len(pids) <= 3
    code = "import os\ntry: os.kill(-1, 0); print('somebody')\nexcept OSError as e: print(e.errno)"
    assert shared.python(code).strip() in ("3", "1", "somebody")
    host = Path(f"/proc/{shared.opened.pid}/ns")
    for name in ("user", "pid", "mnt", "ipc", "uts", "net", "cgroup"):
        inside = os.readlink(host / name)
        assert inside != os.readlink(f"/proc/self/ns/{name}")
        assert shared.run("readlink", f"/proc/self/ns/{name}").stdout.decode().strip() == inside


TAMPER = """
import ctypes, mmap, os, sys
target = "/usr/bin/env"
works = []
def attempt(name, call):
    try:
        call()
        works.append(name)
    except OSError:
        pass
attempt("open", lambda: os.open(target, os.O_RDWR))
attempt("truncate", lambda: os.truncate(target, 0))
attempt("unlink", lambda: os.unlink(target))
attempt("rename", lambda: os.rename(target, "/workspace/env"))
attempt("link", lambda: os.link(target, "/usr/bin/env2"))
attempt("chmod", lambda: os.chmod(target, 0o777))
attempt("utime", lambda: os.utime(target))
attempt("proc", lambda: os.open(f"/proc/self/fd/{os.open(target, os.O_RDONLY)}", os.O_RDWR))
def shared_map():
    fd = os.open(target, os.O_RDONLY)
    mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_WRITE)
attempt("mmap", shared_map)
def splice_in():
    read, write = os.pipe()
    os.splice(os.open(target, os.O_RDONLY), write, 4096)
    os.write(write, b"x" * 100)
    os.splice(read, os.open(target, os.O_WRONLY), 4096)
attempt("splice", splice_in)
print(works)
"""


def test_iso_30_the_image_cannot_be_altered(shared, image):
    def digest():
        return hashlib.sha256((image / "usr/bin/env").read_bytes()).hexdigest()

    before = digest()
    assert shared.python(TAMPER) == "[]\n"
    assert digest() == before


SETUID = """
import os, shutil, subprocess
shutil.copy("/bin/sh", "/workspace/sh")
os.chmod("/workspace/sh", 0o6755)
try:
    os.setxattr("/workspace/sh", "security.capability",
                bytes.fromhex("0100000201000000" + "00" * 12))
except OSError:
    pass
show = "id -u; grep -E 'CapEff|CapPrm' /proc/self/status"
print(subprocess.run(["/workspace/sh", "-p", "-c", show], capture_output=True, text=True).stdout)
"""


def test_iso_32_no_identity_from_a_file(shared):
    uid, *caps = shared.python(SETUID).split("\n")[:3]
    assert uid == "65532"
    assert all(int(line.split()[1], 16) == 0 for line in caps)


def test_iso_33_control_groups_are_not_seen(shared):
    groups = shared.run("cat", "/proc/self/cgroup").stdout.decode().splitlines()
    assert groups
    ours = {line.split(":", 2)[0]: line.split(":", 2)[2]
            for line in Path("/proc/self/cgroup").read_text().splitlines()}
    for line in groups:
        number, _, path = line.split(":", 2)
        # Where this host lets us make no group, our own is the root of the view.
        assert path == "/" or path == ours.get(number), line
    assert b" - cgroup" not in shared.run("cat", "/proc/self/mountinfo").stdout


BREAK_OUT = """
import os
works = []
try:
    os.chroot("/tmp"); works.append("chroot")
except OSError:
    pass
fd = os.open("/workspace", os.O_RDONLY)
top = os.open("../../../../../..", os.O_RDONLY, dir_fd=fd)
root = os.stat("/")
assert (os.fstat(top).st_dev, os.fstat(top).st_ino) == (root.st_dev, root.st_ino)
print(works)
"""


def test_iso_34_there_is_nothing_above_the_root(shared):
    assert shared.python(BREAK_OUT) == "[]\n"


LIMITS = """
import json, os, resource as r
found = {n: r.getrlimit(getattr(r, n)) for n in dir(r) if n.startswith("RLIMIT_")}
works = []
for name in ("RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_CORE", "RLIMIT_MEMLOCK", "RLIMIT_FSIZE"):
    soft, hard = found[name]
    try:
        r.setrlimit(getattr(r, name), (hard + 1, hard + 1)); works.append(name)
    except (OSError, ValueError):
        pass
try:
    r.prlimit(1, r.RLIMIT_NOFILE, (3, 3)); works.append("prlimit 1")
except OSError:
    pass
print(json.dumps([found, works]))
"""


def test_iso_37_limits(shared):
    found, works = json.loads(shared.python(LIMITS))
    assert works == []
    assert found["RLIMIT_CORE"] == [1, 1] and found["RLIMIT_MSGQUEUE"] == [0, 0]
    # Where a control group counts tasks, the user's own count is only a second line.
    tasks = 128 if "no pids cgroup" in shared.degraded else 256
    assert found["RLIMIT_NOFILE"] == [1024, 1024] and found["RLIMIT_NPROC"] == [tasks, tasks]
    assert found["RLIMIT_MEMLOCK"] == [65536, 65536] and found["RLIMIT_STACK"][0] == 8 << 20
    assert found["RLIMIT_RTPRIO"] == [0, 0] and found["RLIMIT_AS"] == [-1, -1]


def test_own_devices(shared):
    listing = shared.python("import os; print(*sorted(os.listdir('/dev')))").split()
    assert listing == sorted(["fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr",
                              "stdin", "stdout", "tty", "urandom", "zero"])
    code = ("import os, pty\nopen('/dev/null', 'w').write('x')\n"
            "assert open('/dev/zero','rb').read(2) == bytes(2)\nassert len(os.urandom(8)) == 8\n"
            "pty.openpty()\nopen('/dev/shm/x', 'w').write('y')\nprint('fine')")
    assert shared.python(code) == "fine\n"


def test_mounts_have_their_flags(shared):
    mounts = {}
    for line in shared.run("cat", "/proc/self/mountinfo").stdout.decode().splitlines():
        fields = line.split()
        mounts[fields[4]] = set(fields[5].split(","))
    assert {"ro", "nosuid", "nodev"} <= mounts["/"]
    assert {"ro", "nosuid", "noexec"} <= mounts["/dev"]
    assert {"nosuid", "nodev", "noexec"} <= mounts["/proc"]
    for path in ("/tmp", "/workspace", "/home/sandbox"):
        assert {"rw", "nosuid", "nodev"} <= mounts[path] and "noexec" not in mounts[path]
    assert "noexec" in mounts["/dev/shm"] and "ro" in mounts["/proc/sys"]
    assert not [path for path in mounts if path.startswith("/sys")]


def test_programs_run_from_the_writable_directories(shared):
    script = "cp /bin/true $d/t && $d/t && echo ran"
    for path in ("/tmp", "/workspace", "/home/sandbox"):
        assert shared.run("sh", "-c", script, env={"d": path}).stdout == b"ran\n"
    assert shared.run("sh", "-c", script, env={"d": "/dev/shm"}).stdout == b""


def test_threads_and_processes_of_python_work(shared):
    code = ("import multiprocessing, threading\n"
            "t = threading.Thread(target=lambda: None); t.start(); t.join()\n"
            "with multiprocessing.get_context('fork').Pool(2) as p: print(p.map(abs, [-1, -2]))")
    assert shared.python(code) == "[1, 2]\n"


def test_host_name_and_hosts_file(shared):
    assert shared.run("hostname").stdout == b"sandbox\n"
    code = "import socket; print(socket.gethostbyname(socket.gethostname()))"
    assert shared.python(code) == "127.0.0.1\n"
