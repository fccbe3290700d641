# SPDX-License-Identifier: MIT
"""The keeper: its protocol, its events, its death and what the next one makes of it."""

import ctypes
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

import keeper as lib

MIB = 1 << 20


def is_gone(pid):
    """Whether a process has ended; nobody may have reaped it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_open_list_close(start, bare):
    keeper = start()
    job = lib.job(bare, owner=b"thread", meta=b"mine")
    sandbox = keeper.open(launch_job=job)
    assert sandbox.opened.pid > 1 and sandbox.opened.slot >= 1
    assert Path(sandbox.opened.pids_current.decode()).read_text().strip() == "1"
    serial = keeper.send(lib.LIST)
    listed = keeper.wait(lambda e: e.serial == serial)
    assert listed.kind == lib.SANDBOX and listed.id.decode() == sandbox.id
    data = os.pread(listed.fd, ctypes.sizeof(lib.JobStruct), 0)
    os.close(listed.fd)
    assert data == bytes(job)
    assert keeper.answer(serial).kind == lib.DONE
    info = keeper.request(lib.INFO)
    assert info.running == 1 and info.pid == keeper.process.pid
    ended = sandbox.close()
    assert ended.kind == lib.ENDED and ended.cause == b"closed"
    assert keeper.leftovers(0) == []


def test_two_sandboxes_have_nothing_in_common(start, image):
    keeper = start()
    one, two = keeper.open(image), keeper.open(image)
    assert one.opened.slot != two.opened.slot and one.opened.uid != two.opened.uid
    one.python("open('/tmp/x', 'w').write('one'); open('/dev/shm/x', 'w').write('one')")
    assert two.python("import os; print(os.listdir('/tmp'), os.listdir('/dev/shm'))") == "[] []\n"
    for name in ("user", "pid", "mnt", "ipc", "uts", "net", "cgroup"):
        assert (os.readlink(f"/proc/{one.opened.pid}/ns/{name}")
                != os.readlink(f"/proc/{two.opened.pid}/ns/{name}"))
    one.close()
    assert two.run("true").end["status"] == "ok"
    two.close()


@pytest.mark.parametrize("change, text", (
    ({"magic": 1}, "another version"),
    ({"version": 99}, "another version"),
    ({"flags": 1 << 30}, "another version"),
    ({"id": b"../../../../../../../../../../etc"}, "a text has no end|bad id"),
    ({"rootfs": b"relative"}, "bad root path"),
    ({"rootfs": b"/a/../b"}, "bad root path"),
    ({"hostname": b"a b"}, "bad host name"),
    ({"mount_count": 9}, "too many mounts"),
    ({"port_count": 65}, "bad network"),
    ({"network": 7}, "bad network"),
    ({"memory_bytes": 1}, "too small"),
))
def test_a_bad_job_is_refused(start, bare, change, text):
    job = lib.job(bare)
    for name, value in change.items():
        setattr(job, name, value)
    with pytest.raises(lib.KeeperError, match=text):
        start().open(launch_job=job)


def test_a_job_must_be_sealed_and_whole(start, bare):
    keeper, data = start(), bytes(lib.job(bare))
    for content, seals in ((data, 1), (data, 2 | 8), (data[:-1], lib.SEALS),
                           (data + b"x", lib.SEALS)):
        fd = lib.sealed(content, seals)
        with pytest.raises(lib.KeeperError, match="not sealed|another size"):
            keeper.request(lib.OPEN, fds=[fd])
        os.close(fd)
    with pytest.raises(lib.KeeperError, match="not sealed"):
        keeper.request(lib.OPEN, fds=[0])
    with pytest.raises(lib.KeeperError, match="no launch job"):
        keeper.request(lib.OPEN)


def test_a_malformed_request_ends_the_connection_only(start, bare):
    keeper = start()
    sandbox = keeper.open(bare)
    good = bytes(lib.RequestStruct(lib.KEEPER_MAGIC, lib.INFO, 1, b"", b""))
    for bad in (b"x", good[:-1], good + b"x", b"\0" * len(good),
                bytes(lib.RequestStruct(lib.KEEPER_MAGIC, 99, 1, b"", b"")),
                bytes(lib.RequestStruct(lib.KEEPER_MAGIC, lib.INFO, 0, b"", b"")),
                bytes(lib.RequestStruct(lib.KEEPER_MAGIC, lib.CLOSE, 1, b"", b""))):
        keeper.send(0, raw=bad)
        assert keeper.receive() is None
        keeper.connect()
    many = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
    keeper.send(lib.INFO, fds=many)
    assert keeper.receive() is None
    keeper.connect()
    keeper.request(lib.INFO)
    before = len(os.listdir(f"/proc/{keeper.process.pid}/fd"))
    for _ in range(20):
        keeper.request(lib.INFO, fds=many[:1])
    # The last one is answered before its descriptor is closed; the next answer is later.
    keeper.request(lib.INFO)
    assert len(os.listdir(f"/proc/{keeper.process.pid}/fd")) == before
    for fd in many:
        os.close(fd)
    assert keeper.request(lib.INFO).running == 1
    sandbox.close()


def test_another_user_is_not_served(start, user):
    keeper = start()
    os.chmod(keeper.dir, 0o777)
    os.chmod(keeper.dir.parent, 0o777)
    os.chmod(keeper.dir / "keeper.sock", 0o777)
    code = ("import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); "
            "s.connect(sys.argv[1]); s.settimeout(5); print(repr(s.recv(1)))")
    run = subprocess.run(["python3", "-c", code, str(keeper.dir / "keeper.sock")], user=user[0],
                         group=user[1], capture_output=True, text=True, check=False)
    assert run.stdout == "b''\n" or "ConnectionReset" in run.stderr


def test_the_same_id_twice(start, bare):
    keeper = start()
    job = lib.job(bare)
    sandbox = keeper.open(launch_job=job)
    with pytest.raises(lib.KeeperError, match="already"):
        keeper.open(launch_job=job)
    sandbox.close()
    keeper.open(launch_job=job).close()


def test_unknown_ids(start):
    keeper = start()
    for op in (lib.CLOSE, lib.SEAL):
        with pytest.raises(lib.KeeperError, match="no sandbox"):
            keeper.request(op, "0" * 32)


def test_every_client_hears_of_an_end(start, image):
    keeper = start()
    sandbox = keeper.open(image)
    with lib.Keeper(keeper.dir, start=False) as other:
        other.connect()
        other.request(lib.INFO)
        os.kill(sandbox.opened.pid, signal.SIGKILL)
        assert keeper.ended(sandbox) == "signal:9"
        assert other.ended(sandbox) == "signal:9"
    sandbox = keeper.open(image)
    with sandbox.connect() as client:
        client.send("SHUTDOWN", 0)
    assert keeper.ended(sandbox) == "exit:0"


def test_close_while_it_starts(start, bare):
    keeper = start()
    job = lib.job(bare)
    opening = keeper.send_open(job)
    closing = keeper.send(lib.CLOSE, job.id.decode())
    with pytest.raises(lib.KeeperError, match="closed while it started"):
        keeper.answer(opening)
    assert keeper.answer(closing).kind == lib.ENDED
    assert keeper.leftovers(1) == []


def test_many_at_once(start, bare):
    keeper = start()
    serials = [keeper.send_open(lib.job(bare)) for _ in range(12)]
    opened = [keeper.answer(serial, 60) for serial in serials]
    assert len({event.slot for event in opened}) == 12
    closing = [keeper.send(lib.CLOSE, event.id.decode()) for event in opened]
    assert all(keeper.answer(serial).kind == lib.ENDED for serial in closing)


def test_stop_ends_all_in_parallel(start, bare):
    keeper = start()
    for _ in range(5):
        keeper.open(bare)
    before = time.monotonic()
    assert keeper.request(lib.STOP).kind == lib.DONE
    assert time.monotonic() - before < 3
    assert keeper.process.wait(5) == 0
    assert keeper.leftovers(0) == [] and not (keeper.dir / "keeper.sock").exists()


def test_it_stays_for_its_sandboxes_and_then_goes(start, bare):
    keeper = start(linger_ms=300)
    sandbox = keeper.open(bare, lease_ms=1000)
    keeper.sock.close()
    time.sleep(0.6)
    assert keeper.process.poll() is None
    # The lease of init, which nobody has talked to, ends the sandbox and then the keeper.
    assert keeper.process.wait(10) == 0
    assert keeper.leftovers(0) == [], sandbox.id


def test_a_new_daemon_finds_the_sandboxes(start, image):
    keeper = start()
    sandbox = keeper.open(image)
    sandbox.python("open('/workspace/state', 'w').write('kept')")
    keeper.connect()
    serial = keeper.send(lib.LIST)
    found = keeper.wait(lambda e: e.serial == serial)
    os.close(found.fd)
    again = lib.Sandbox(keeper, found)
    assert again.python("print(open('/workspace/state').read())") == "kept\n"
    again.close()


def test_a_second_keeper_is_refused(start):
    keeper = start()
    keeper.request(lib.INFO)
    second = lib.Keeper(keeper.dir, start=False, stderr=subprocess.PIPE)
    with pytest.raises(ConnectionError):
        second.start()
        second.request(lib.INFO)
    assert second.process.wait(10) != 0
    assert b"another keeper" in second.process.stderr.read()


@pytest.mark.parametrize("mode", ("root", "user"))
def test_the_next_keeper_removes_what_a_killed_one_left(start, image, mode):
    keeper = start(mode)
    sandbox = keeper.open(image, network="public", ports=[80])
    sandbox.run("sh", "-c", "setsid sleep 1000 & setsid sleep 1000 &")
    pid, slot = sandbox.opened.pid, sandbox.opened.slot
    keeper.kill()
    assert not is_gone(pid)
    # The ids stay taken while anything lives with them.
    other = start(mode)
    mine = other.open(image)
    if mode == "root":
        assert mine.opened.slot != slot
    mine.close()
    keeper.start()
    assert keeper.request(lib.INFO).running == 0
    assert is_gone(pid)
    assert keeper.leftovers(2) == []


def test_sto_28_a_stranger_with_the_recorded_pid_is_not_touched(start, bare):
    keeper = start()
    sandbox = keeper.open(bare)
    record = keeper.dir / "sb" / sandbox.id / "record"
    text = record.read_text()
    keeper.kill()
    os.kill(sandbox.opened.pid, signal.SIGKILL)
    with subprocess.Popen(["sleep", "100"]) as stranger:
        record.write_text(text.replace(f"pid {sandbox.opened.pid}\n", f"pid {stranger.pid}\n"))
        keeper.start()
        keeper.request(lib.INFO)
        assert stranger.poll() is None
        stranger.kill()
    assert keeper.leftovers(2) == []


@pytest.mark.parametrize("damage", (lambda t: "", lambda t: t[:len(t) // 2], lambda t: "\0" * 100,
                                    lambda t: t.replace("pid ", "pid -"), lambda t: "x" * 100000))
def test_sto_14_a_torn_record_is_survived(start, bare, damage):
    keeper = start()
    sandbox = keeper.open(bare, lease_ms=500)
    record = keeper.dir / "sb" / sandbox.id / "record"
    text = record.read_text()
    keeper.kill()
    record.write_text(damage(text))
    keeper.start()
    assert keeper.request(lib.INFO).running == 0
    assert not record.exists()


STEPS = ("slot-alloc", "cgroup-mkdir", "cgroup-mkdir:2", "cgroup-limit", "clone", "uid-map",
         "mount-root", "mount-proc", "mask", "pivot", "listener-fd-pass")


@pytest.mark.parametrize("point", STEPS)
def test_a_failed_step_is_rolled_back(start, bare, point):
    keeper = start(env={"SBX_FAIL": f"{point}:err=EIO"})
    # Without a count the point fails each time.
    for _ in range(1 if ":" in point else 2):
        with pytest.raises(lib.KeeperError, match="Input/output error"):
            keeper.open(bare, network="public", ports=[80])
        assert keeper.leftovers(1) == []
    assert keeper.request(lib.INFO).running == 0


@pytest.mark.parametrize("point", STEPS[6:])
def test_a_child_that_dies_on_the_way(start, bare, point):
    keeper = start(env={"SBX_FAIL": f"{point}:kill"})
    with pytest.raises(lib.KeeperError, match="ended during its start"):
        keeper.open(bare, network="public", ports=[80])
    assert keeper.leftovers(1) == []


POINTS = ("slot-alloc", "cgroup-mkdir", "cgroup-mkdir:2", "cgroup-limit", "clone", "uid-map",
          "init-ready", "kill-sent", "reap", "unmount", "rmdir", "slot-free")


@pytest.mark.parametrize("point", POINTS)
def test_sto_01_killed_at_a_step_the_next_one_cleans(start, bare, point):
    keeper = start(env={"SBX_FAIL": f"{point}:kill"})
    try:
        sandbox = keeper.open(bare, disk_bytes=16 * MIB)
        sandbox.close()
    except (ConnectionError, OSError):
        pass
    assert keeper.process.wait(10) == -signal.SIGKILL
    keeper.env = {}
    keeper.start()
    assert keeper.request(lib.INFO).running == 0
    assert keeper.leftovers(5) == []


def test_build_runs_the_agent(start, tmp_path):
    agent = tmp_path / "agent"
    agent.write_text("#!/bin/sh\necho \"$@\"\necho err >&2\nexit ${CODE:-0}\n")
    agent.chmod(0o755)
    keeper = start(options=["--agent", str(agent)])
    read, write = os.pipe()
    assert keeper.request(lib.BUILD, arg="python", fds=[write]).kind == lib.DONE
    os.close(write)
    assert os.read(read, 100) == b"image build python\nerr\n"
    with pytest.raises(lib.KeeperError, match="not the name"):
        keeper.request(lib.BUILD, arg="-x; rm", fds=[read])
    os.close(read)
    failing = start(options=["--agent", str(agent)], env={"CODE": "3"})
    null = os.open("/dev/null", os.O_WRONLY)
    with pytest.raises(lib.KeeperError, match="exit status 3"):
        failing.request(lib.BUILD, arg="r", fds=[null])
    os.close(null)


def test_a_client_that_does_not_read_is_dropped(start, bare):
    keeper = start()
    sandbox = keeper.open(bare)
    slow = lib.Keeper(keeper.dir, start=False)
    slow.connect()
    slow.sock.settimeout(5)
    try:
        for _ in range(20000):
            slow.send(lib.INFO)
    except (OSError, socket.timeout):
        pass
    assert keeper.request(lib.INFO).running == 1
    slow.sock.close()
    sandbox.close()


def test_init_is_a_sealed_copy(start, bare):
    sandbox = start().open(bare)
    exe = os.readlink(f"/proc/{sandbox.opened.pid}/exe")
    assert exe.startswith("/memfd:sandbox-init")
    with pytest.raises(OSError):
        os.open(f"/proc/{sandbox.opened.pid}/exe", os.O_WRONLY)
    assert Path(f"/proc/{sandbox.opened.pid}/environ").read_bytes() == b""
    sandbox.close()
