# SPDX-License-Identifier: MIT
"""Limits (RES rows) at the launcher's level, and that nothing survives an end (ISO-45)."""

import fcntl
import os
import struct
import threading
import time
from pathlib import Path

import pytest

import keeper as lib

MIB = 1 << 20

FORKS = """
import os, time
made = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(100)
        made += 1
except BlockingIOError:
    print(made, flush=True)
"""


@pytest.mark.parametrize("mode", ("root", "user", "user-one-id"))
def test_res_01_a_fork_bomb_meets_its_limit(start, image, mode):
    keeper = start(mode)
    sandbox, other = keeper.open(image, pids=40), keeper.open(image, pids=40)
    made = int(sandbox.python(FORKS))
    assert 20 <= made < 40
    if mode == "root":
        assert int(Path(sandbox.opened.pids_current.decode()).read_text()) <= 40
        assert "max 0" not in Path(sandbox.opened.pids_events.decode()).read_text()
    # The neighbour has its own count.
    assert other.python("print(1)") == "1\n"
    before = time.monotonic()
    sandbox.close()
    assert time.monotonic() - before < 2
    other.close()


def test_res_02_beyond_the_memory_limit_all_ends(start, image):
    keeper = start()
    sandbox, other = keeper.open(image, memory_bytes=64 * MIB), keeper.open(image)
    with sandbox.connect() as client:
        client.spawn(["python3", "-c", "x = bytearray(200 << 20)"])
        event = keeper.wait(lambda e: e.kind == lib.OOM)
        assert event.id.decode() == sandbox.id
        seen = time.monotonic()
        assert keeper.ended(sandbox) == "oom"
        assert time.monotonic() - seen < 1
    assert other.python("print(1)") == "1\n"
    other.close()


def test_res_02_many_children_together(start, image):
    keeper = start()
    sandbox = keeper.open(image, memory_bytes=64 * MIB)
    with sandbox.connect() as client:
        client.spawn(["sh", "-c", "for i in 1 2 3 4 5; do python3 -c 'x = b\"x\" * (45 << 20); "
                      "import time; time.sleep(20)' & done; wait"])
        assert keeper.ended(sandbox) == "oom"


SHARED = """
import mmap, os, sys, time
size, workers = int(sys.argv[1]) << 20, int(sys.argv[2])
memory = mmap.mmap(-1, size)
for _ in range(size >> 20):
    memory.write(b"x" * (1 << 20))
children = []
for _ in range(workers):
    if (child := os.fork()) == 0:
        sum(memory[::4096])
        time.sleep(1.5)
        os._exit(0)
    children.append(child)
time.sleep(1)
for child in children:
    os.waitpid(child, 0)
print("done")
"""


@pytest.mark.parametrize("mode", ("user", "user-one-id"))
def test_res_02_memory_that_is_shared_counts_once_where_it_is_polled(start, image, mode):
    keeper = start(mode)
    fits, passes = (keeper.open(image, memory_bytes=160 * MIB) for _ in range(2))
    assert fits.run("python3", "-c", SHARED, "60", "4").stdout == b"done\n"
    with passes.connect() as client:
        client.spawn(["python3", "-c", SHARED, "300", "0"], env={"PATH": "/usr/bin"})
        assert keeper.ended(passes) == "oom"
    fits.close()


def test_a_tmpfs_is_charged_to_the_memory_limit(start, image):
    keeper = start()
    sandbox = keeper.open(image, memory_bytes=48 * MIB, tmpfs_bytes=256 * MIB)
    with sandbox.connect() as client:
        client.spawn(["dd", "if=/dev/zero", "of=/tmp/x", "bs=1M", "count=200"])
        assert keeper.ended(sandbox) == "oom"


FILL = """
import errno, os, sys
path = sys.argv[1]
results = []
fd = os.open(path + "/big", os.O_RDWR | os.O_CREAT)
size = 0
try:
    while True:
        size += os.write(fd, b"x" * (1 << 20))
except OSError as e:
    results.append(errno.errorcode[e.errno])
try:
    os.posix_fallocate(fd, 0, 1 << 40)
    results.append("ok")
except OSError as e:
    results.append(errno.errorcode[e.errno])
try:
    open(path + "/sparse", "w").close()
    os.truncate(path + "/sparse", 1 << 50)
    results.append("ok")
except OSError as e:
    results.append(errno.errorcode[e.errno])
os.unlink(path + "/big")
print(size >> 20, *results)
"""


@pytest.mark.parametrize("path", ("/tmp", "/workspace", "/home/sandbox", "/dev/shm"))
def test_res_04_a_file_system_is_full_at_its_size(start, image, path):
    sandbox = start().open(image, tmpfs_bytes=8 * MIB, home_bytes=8 * MIB)
    size, *results = sandbox.run("python3", "-c", FILL, path).stdout.decode().split()
    assert 6 <= int(size) <= 8
    assert results[0] == "ENOSPC" and results[1] in ("ENOSPC", "EFBIG") and results[2] == "EFBIG"
    sandbox.close()


def test_res_04_a_disk_of_its_own(start, image):
    keeper = start()
    sandbox = keeper.open(image, disk_bytes=64 * MIB)
    assert "no quota" not in sandbox.degraded
    image_file = keeper.dir / "sb" / sandbox.id / "disk"
    size, *results = sandbox.run("python3", "-c", FILL, "/workspace").stdout.decode().split()
    assert 40 <= int(size) <= 64 and results[0] == "ENOSPC"
    assert image_file.stat().st_blocks * 512 <= 65 * MIB
    found = sandbox.python("import os\nfor p in ('/workspace', '/home/sandbox'):\n"
                           "    open(p + '/f', 'w').write('x')\n"
                           "    print(os.stat(p).st_dev, os.stat(p).st_uid)\n"
                           "print(os.stat('/tmp').st_dev)").split()
    assert found[0] == found[2] != found[4] and found[1] == found[3] == "65532"
    sandbox.close()
    assert keeper.leftovers(0) == []


INODES = """
import errno, os
os.chdir("/workspace")
made = 0
try:
    while True:
        os.close(os.open(f"f{made}" + "x" * 200, os.O_CREAT))
        made += 1
except OSError as e:
    print(made, errno.errorcode[e.errno])
"""

DEEP = """
import os
os.chdir("/tmp")
depth = 0
try:
    while depth < 100000:
        os.mkdir("d"); os.chdir("d"); depth += 1
except OSError:
    pass
print(depth)
"""


def test_res_05_inodes_run_out_and_the_end_is_quick(start, image):
    sandbox = start().open(image, tmpfs_bytes=16 * MIB)
    made, error = sandbox.python(INODES).split()
    assert int(made) <= 16 * MIB // 4096 and error == "ENOSPC"
    assert int(sandbox.python(DEEP)) > 1000
    before = time.monotonic()
    sandbox.close()
    assert time.monotonic() - before < 5


DESCRIPTORS = """
import errno, os, select, socket
for make in (lambda: os.open("/dev/null", os.O_RDONLY), lambda: socket.socket().detach(),
             lambda: select.epoll().fileno() and os.dup(0), lambda: os.eventfd(0)):
    fds = []
    try:
        while True:
            fds.append(make())
    except OSError as e:
        print(len(fds), errno.errorcode[e.errno])
    for fd in fds:
        os.close(fd)
"""


def test_res_06_descriptors_run_out(start, image):
    keeper = start()
    sandbox = keeper.open(image, nofile=256)
    before = len(os.listdir(f"/proc/{keeper.process.pid}/fd"))
    for line in sandbox.python(DESCRIPTORS).splitlines():
        count, error = line.split()
        assert int(count) < 256 and error == "EMFILE"
    assert len(os.listdir(f"/proc/{keeper.process.pid}/fd")) == before
    sandbox.close()


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


@pytest.mark.parametrize("mode", ("root", "user"))
def test_iso_45_nothing_survives_an_end(start, image, mode):
    keeper = start(mode)
    sandbox = keeper.open(image, pids=60)
    pid_namespace = os.readlink(f"/proc/{sandbox.opened.pid}/ns/pid")
    client = sandbox.connect()
    run = client.spawn(["python3", "-c", SPIN])
    run.until(lambda: run.stdout)
    time.sleep(0.3)
    before = time.monotonic()
    sandbox.close()
    assert time.monotonic() - before < 2
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            assert os.readlink(f"/proc/{pid}/ns/pid") != pid_namespace
        except OSError:
            continue
    assert keeper.leftovers(1) == []


def test_res_10_the_cpu_quota_holds(start, image):
    sandbox = start().open(image, cpu_quota_us=20000, cpu_period_us=100000)
    code = ("import time\nend = time.monotonic() + 2\nstart = time.process_time()\n"
            "while time.monotonic() < end: pass\nprint(time.process_time() - start)")
    used = float(sandbox.python(code))
    assert used < 0.2 * 2 * 1.5
    sandbox.close()


def test_res_16_many_in_a_row_leave_nothing(start, bare):
    keeper = start()

    def state():
        # The end of the last one is told before its descriptors are closed; this is answered later.
        keeper.request(lib.INFO)
        status = Path(f"/proc/{keeper.process.pid}/status").read_text()
        rss = int(status.split("VmRSS:")[1].split()[0])
        return len(os.listdir(f"/proc/{keeper.process.pid}/fd")), rss

    for _ in range(5):
        keeper.open(bare).close()
    fds, rss = state()
    for _ in range(60):
        keeper.open(bare).close()
    after = state()
    assert after[0] == fds and after[1] <= rss * 1.05 + 64
    assert keeper.leftovers(1) == []


def test_res_18_the_slots_run_out(start, bare):
    keeper = start("user")
    keeper.open(bare).close()
    with open(keeper.dir.parent / ".slots/slots", "r+b") as file:
        # Somebody holds all slots but two: F_OFD_SETLK from the third on.
        fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 3, 0, 0))
        first, second = keeper.open(bare), keeper.open(bare)
        with pytest.raises(lib.KeeperError, match="id slots of this host are in use"):
            keeper.open(bare)
        assert len(list(keeper.dir.glob("sb/*"))) == 2
        second.close()
        third = keeper.open(bare)
        assert third.opened.slot == second.opened.slot
        first.close()
        third.close()


def test_parallel_starts_and_ends(start, image):
    keeper = start()
    errors = []

    def work():
        own = lib.Keeper(keeper.dir, start=False)
        own.connect()
        try:
            for _ in range(3):
                sandbox = own.open(image)
                assert sandbox.python("print(2)") == "2\n"
                sandbox.close()
        except Exception as error:  # pylint: disable=broad-except
            errors.append(error)
        finally:
            own.sock.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert keeper.leftovers(1) == []
