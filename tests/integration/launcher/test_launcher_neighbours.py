# SPDX-License-Identifier: MIT
"""What a sandbox can take from, or see of, the others on its host."""

import subprocess

import pytest

WATCH = """
import ctypes, fcntl, os, sys, time
held = open("/usr/bin/env")
fcntl.flock(held, fcntl.LOCK_EX)
libc = ctypes.CDLL(None)
watch = libc.inotify_init1(os.O_NONBLOCK)
for path in sys.argv[1:]:
    assert libc.inotify_add_watch(watch, path.encode(), 0x20) > 0  # IN_OPEN
print("watching", flush=True)
sys.stdin.readline()
try:
    print(len(os.read(watch, 65536)))
except BlockingIOError:
    print("nothing")
"""

USE = """
import fcntl, os, subprocess, sys
subprocess.run(["/usr/bin/id"], check=True, stdout=subprocess.DEVNULL)
for path in sys.argv[1:]:
    os.listdir(path)
fcntl.flock(open("/usr/bin/env"), fcntl.LOCK_SH | fcntl.LOCK_NB)
print("free")
"""

TERMINALS = """
import errno, os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
held = []
try:
    while len(held) < 400:
        held.append(os.posix_openpt(os.O_RDWR | os.O_NOCTTY))
except OSError as error:
    print(len(held), errno.errorcode[error.errno])
"""


def test_terminals_of_the_host_are_shared_out(start, image):
    sandbox = start().open(image)
    assert sandbox.python(TERMINALS) == "64 ENOSPC\n"


@pytest.mark.parametrize("mode", ("root", "user"))
def test_neighbours_of_one_image_cannot_watch_or_lock_its_files(start, image, scratch, mode):
    (scratch / f"shared-{mode}").mkdir(mode=0o755)
    shared = (str(scratch / f"shared-{mode}"), "/tmp/shared", 0)
    keeper = start(mode)
    watcher, user = (keeper.open(image, mounts=[shared]) for _ in range(2))
    places = ["/usr/bin", "/tmp/shared"]
    with watcher.connect() as client:
        run = client.spawn(["python3", "-c", WATCH, *places], env={"PATH": "/usr/bin"}, stdin=True)
        run.until(lambda: run.stdout or run.ended)
        done = user.run("python3", "-c", USE, *places)
        assert done.stdout == b"free\n", done.stderr
        run.input(b"go\n").wait()
        assert run.stdout == b"watching\nnothing\n", run.stderr


def test_no_path_of_the_host_is_in_the_table_of_mounts(start, image, tmp_path):
    (tmp_path / "secret-name").mkdir(mode=0o755)
    sandbox = start().open(image, mounts=[(str(tmp_path / "secret-name"), "/tmp/shared", 0)])
    text = sandbox.run("cat", "/proc/self/mountinfo").stdout.decode()
    assert " /tmp/shared " in text
    assert "secret-name" not in text and str(image.parent) not in text and "rootfs" not in text


@pytest.fixture
def stacked(image, scratch):
    """The image behind as many overlays as the kernel lays over each other."""
    empty, points = scratch / "empty", [scratch / "first", scratch / "second"]
    lower = image
    for path in (empty, *points):
        path.mkdir()
    for point in points:
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower}:{empty}",
                        point], check=True)
        lower = point
    yield points[-1]
    for point in reversed(points):
        subprocess.run(["umount", point], check=True)
        point.rmdir()
    empty.rmdir()


def test_where_no_overlay_can_be_the_image_does_as_it_is(start, stacked):
    sandbox = start().open(stacked)
    root = next(line for line in sandbox.run("cat", "/proc/self/mountinfo").stdout.splitlines()
                if line.split()[4] == b"/")
    assert b"lowerdir=lower" not in root and root.split()[5].startswith(b"ro,nosuid,nodev")
    assert sandbox.python("print(1)") == "1\n"
    sandbox.close()
