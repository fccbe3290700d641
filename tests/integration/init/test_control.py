# SPDX-License-Identifier: MIT
"""Connections: greeting, mistakes, several clients, replay, the lease, the end."""

import itertools
import os
import random
import resource
import time

import pytest

from places import FAKE
from control import VERSION, ConnectionLost, fields_pack, frame_pack

PYTHON = "/usr/bin/python3"


def refusal(client) -> str:
    """The message with which init ends a connection."""
    zero = client.stream(0)
    with pytest.raises(ConnectionLost):
        while client.read(10):
            pass
    assert zero.frames and zero.frames[-1].kind == "END", zero.order
    return zero.frames[-1].data["message"]


# Greeting and mistakes


def test_welcome(init):
    with init.connect() as first, init.connect() as second:
        assert first.welcome["version"] == VERSION and first.welcome["lease_ms"] == "60000"
        assert first.welcome["boot"] == second.welcome["boot"]
        assert len(first.welcome["boot"]) == 32 and first.welcome["last_stream"] == "0"


def test_other_version_is_refused_by_name(init):
    client = init.connect(hello=None)
    client.send("HELLO", 0, [("version", "1")])
    assert f"version {VERSION}" in refusal(client)


@pytest.mark.parametrize("data, message", [
    (frame_pack("STATUS", 1), "no HELLO"),
    (frame_pack("HELLO", 0), f"version {VERSION}"),
    (b"GET / HTTP/1.1\r\n\r\n", "above the limit"),
    (b"\xff" * 64, "above the limit"),
    (frame_pack(0x7F, 1), "not known"),
    (frame_pack("STDOUT", 1), "not known"),
    (frame_pack("HELLO", 0, b"\x00"), "malformed"),
    (frame_pack("HELLO", 0, fields_pack([("version", VERSION), ("lease_ms", "x")])), "no number"),
    (frame_pack("HELLO", 0, fields_pack([("version", VERSION), ("lease_ms", 0)])), "lease"),
])
def test_mistakes_before_the_greeting(init, data, message):
    client = init.connect(hello=None)
    client.send_bytes(data)
    assert message in refusal(client)
    assert init.connect().status()["kernel"] == "none"


@pytest.mark.parametrize("kind, stream, payload, message", [
    ("HELLO", 0, [("version", VERSION)], "second HELLO"),
    ("SPAWN", 0, [("argv", "true")], "in use"),
    ("SPAWN", 5, b"\x04argv\xff\xff\xff\xff", "behind its frame"),
    ("CREDIT", 5, [("bytes", "-1")], "CREDIT"),
    ("CREDIT", 5, [("bytes", "99999999999999999999999")], "CREDIT"),
    ("LEASE", 0, [("lease_ms", "-5")], "lease"),
    ("ATTACH", 5, [("offset", "many")], "no number"),
])
def test_mistakes(init, kind, stream, payload, message):
    client = init.connect()
    client.send(kind, stream, payload)
    assert message in refusal(client)
    assert init.connect().status()["kernel"] == "none"


def test_stream_in_use(client):
    number = client.spawn(["sleep", "5"]).number
    client.send("SPAWN", number, [("argv", "true")])
    assert "in use" in refusal(client)


@pytest.mark.parametrize("kind, payload", [
    ("SPAWN", [("argv", "true"), ("timeout_ms", "-1")]),
    ("SPAWN", [("argv", "true"), ("timeout_ms", "9999999999999")]),
    ("SPAWN", [("argv", "true"), ("stdin", "x")]),
    ("SPAWN", [("argv", b"a\0b")]),
    ("SPAWN", [("argv", "true"), ("user", "nobody")]),
    ("EXEC", []),
    ("FILE_READ", []),
    ("KERNEL", [("argv", "true"), ("ready_ms", "0")]),
    ("KERNEL", [("argv", "true"), ("sigint_delay_ms", "99999")]),
])
def test_bad_requests_end_with_a_reason(client, kind, payload):
    end = client.request(kind, payload).wait().end
    assert end["status"] == "error" and end["message"]


def test_frames_about_nothing_are_ignored(client):
    for kind in ("INPUT", "INTERRUPT", "KILL", "ACK", "WRITE_DATA"):
        client.send(kind, 999)
    client.send("CREDIT", 999, [("bytes", 5)])
    client.send("WRITE_DATA", 999, b"data")
    assert client.status()["kernel"] == "none"


def test_bytes_one_by_one(init):
    client = init.connect(hello=None)
    data = frame_pack("HELLO", 0, fields_pack([("version", VERSION)])) + frame_pack("STATUS", 1)
    for byte in data:
        client.send_bytes(bytes([byte]))
    stream = client.stream(1)
    assert stream.wait().of("REPORT")


def test_random_bytes(init):
    """Noise ends a connection and nothing else."""
    rng = random.Random(7)
    for _ in range(60):
        client = init.connect(hello=None)
        client.send_bytes(frame_pack("HELLO", 0, fields_pack([("version", VERSION)])))
        try:
            for _ in range(5):
                kind = rng.choice([*range(0x01, 0x0C), *range(0x0E, 0x18)])
                payload = rng.randbytes(rng.randrange(40))
                client.send_bytes(frame_pack(kind, rng.randrange(4), payload))
            client.read(0.01)
        except (ConnectionLost, BrokenPipeError, ConnectionResetError):
            pass
        client.close()
    assert init.connect().status()["kernel"] == "none"


def test_clients_that_vanish(init):
    """In the middle of a frame, of output, of everything."""
    for i in range(30):
        client = init.connect()
        client.spawn(["yes"], timeout_ms=300)
        client.request("FILE_READ", [("path", "/etc/passwd")])
        client.send_bytes(frame_pack("SPAWN", 900, b"x" * 100)[:20 + i])
        client.close()
    with init.connect() as client:
        assert client.spawn(["true"]).wait().end["status"] == "ok"


def test_too_many_clients(init):
    clients = [init.connect() for _ in range(16)]
    with pytest.raises((ConnectionLost, BrokenPipeError, ConnectionResetError)):
        init.connect()
    clients.pop().close()
    time.sleep(0.1)
    assert init.connect().status()["kernel"] == "none"


# Replay


def test_end_is_kept_until_it_is_acknowledged(init):
    with init.connect() as client:
        run = client.spawn(["sh", "-c", "echo out; echo err >&2; exit 4"]).wait()
    with init.connect() as client:
        assert client.runs == {run.number: ("spawn", "done", run.offset)}
        assert client.welcome["last_stream"] == str(run.number)
        again = client.attach(run.number).wait()
        assert [(f.kind, f.payload) for f in again.frames] == \
            [(f.kind, f.payload) for f in run.frames]
        again.ack()
    with init.connect() as client:
        assert client.runs == {}
        end = client.attach(run.number).wait().end
        assert end["errno"] == "2" and end["status"] == "error"


def test_attach_goes_on_from_any_frame(init):
    script = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.05; done"
    with init.connect() as client:
        run = client.spawn(["sh", "-c", script]).wait()
        offset = 0
        for i, frame in enumerate(run.frames):
            with init.connect() as other:
                rest = other.attach(run.number, offset).wait()
                assert [f.payload for f in rest.frames] == [f.payload for f in run.frames[i:]]
                wrong = other.attach(run.number, offset + 1)
                wrong.frames.clear()
                assert wrong.wait().end["errno"] == "22"
            offset += frame.size
        with init.connect() as other:
            assert other.attach(run.number, offset + 1).wait().end["errno"] == "22"


def test_attach_in_the_middle_of_a_run(init):
    with init.connect() as client:
        run = client.spawn(["sh", "-c", "echo one; sleep 0.6; echo two"])
        run.until(lambda: run.stdout)
        offset = run.offset
    with init.connect() as client:
        assert client.runs[run.number] == ("spawn", "running", offset)
        rest = client.attach(run.number, offset).wait()
        assert rest.stdout == b"two\n"


def test_two_clients_follow_one_run(init):
    with init.connect() as first, init.connect() as second:
        run = first.spawn(["sh", "-c", "seq 1 100000"])
        first.status()  # the two connections are not in order with each other
        follow = second.attach(run.number)
        while not (run.ended and follow.ended):
            first.read(0.01)
            second.read(0.01)
        assert run.stdout == follow.stdout and len(run.stdout) == 588895


def test_run_is_acknowledged_while_another_reads(init):
    with init.connect() as first, init.connect(credit=False) as slow:
        slow.numbers = itertools.count(100)
        run = first.spawn(["sh", "-c", "head -c 3000000 /dev/zero"])
        first.status()
        follow = slow.attach(run.number)
        while not run.ended:
            first.read(0.05)
            slow.read(0.0)
        run.ack()
        first.status()
        assert slow.status()["kernel"] == "none"
        assert len(follow.stdout) <= 3000000


def test_kernel_survives_its_client(init):
    with init.connect() as client:
        client.kernel([PYTHON, "-I", str(FAKE)]).wait()
        client.exec("total = 40; k.display('d')").wait().ack()
        pending = client.exec("time.sleep(0.4); k.out('pending'); k.result('r')")
        time.sleep(0.1)
    with init.connect() as client:
        assert client.welcome["kernel"] == "ready"
        assert client.runs[pending.number][:2] == ("exec", "running")
        cell = client.attach(pending.number).wait()
        assert cell.stdout == b"pending" and cell.of("RESULT")
        assert client.exec("k.out(str(total + 2))").wait().stdout == b"42"


def test_client_goes_while_the_kernel_starts(init):
    with init.connect() as client:
        client.kernel([PYTHON, "-I", str(FAKE), "time.sleep(0.4)"])
        client.status()
    with init.connect() as client:
        assert client.welcome["kernel"] == "starting" and client.runs == {}
        assert client.exec("k.out('x')").wait().stdout == b"x"


def test_input_request_is_answered_by_a_later_client(init):
    with init.connect() as client:
        client.kernel([PYTHON, "-I", str(FAKE)]).wait()
        cell = client.exec("k.out(k.input('?'))", stdin=True)
        cell.until(lambda: cell.of("INPUT_REQUEST"))
    with init.connect() as client:
        cell = client.attach(cell.number)
        cell.until(lambda: cell.of("INPUT_REQUEST"))
        cell.input(b"\1late").wait()
        assert cell.stdout == b"late"


# The lease and the end


def test_lease_ends_the_sandbox(start):
    init = start(lease_ms=700)
    with init.connect() as client:
        client.spawn(["sleep", "300"])
        time.sleep(1.2)
        assert client.status()["processes"] == "1"
    begin = time.monotonic()
    assert init.wait(5) == 0
    assert 0.5 < time.monotonic() - begin < 2


def test_lease_runs_from_the_start(start):
    begin = time.monotonic()
    assert start(lease_ms=500).wait(5) == 0
    assert time.monotonic() - begin < 3


def test_lease_is_renewed_by_a_connection(start):
    init = start(lease_ms=800)
    for _ in range(4):
        time.sleep(0.5)
        init.connect().close()
    assert init.alive()
    assert init.wait(5) == 0


def test_lease_can_be_changed(start):
    init = start(lease_ms=60000)
    with init.connect(hello=[("lease_ms", 30000)]) as client:
        assert client.welcome["lease_ms"] == "30000"
        client.send("LEASE", 0, [("lease_ms", 300)])
        client.status()
    assert init.wait(5) == 0


def test_frozen_time_does_not_count(start):
    init = start(lease_ms=3000)
    init.connect().close()
    os.kill(init.pid, 19)
    time.sleep(4)
    os.kill(init.pid, 18)
    time.sleep(1)
    assert init.alive()
    assert init.wait(6) == 0


def test_shutdown(init):
    client = init.connect()
    client.spawn(["sh", "-c", "trap '' TERM INT HUP; sleep 300 & sleep 300"])
    time.sleep(0.1)
    begin = time.monotonic()
    client.send("SHUTDOWN", 0)
    assert init.wait(5) == 0 and time.monotonic() - begin < 1


def test_signals_do_not_end_init(init):
    with init.connect() as client:
        kill = "import os, signal\nfor s in set(range(1, 65)) - {32, 33}:\n" \
               " try: os.kill(1, s)\n except OSError: pass\n"
        client.spawn([PYTHON, "-c", kill]).wait()
        for number in (1, 2, 3, 10, 12, 13, 14, 15, 17, 29):
            os.kill(init.pid, number)
        time.sleep(0.1)
        assert client.status()["kernel"] == "none"


def test_descriptors_run_out(start):
    """With few descriptors what needs more fails by name, and all goes on afterwards."""
    init = start()
    init.connect().close()
    resource.prlimit(init.pid, resource.RLIMIT_NOFILE, (40, 40))
    with init.connect() as client:
        runs = [client.spawn(["cat"], stdin=True) for _ in range(20)]
        for run in runs:  # all are there, or were refused, when the first one may end
            run.input(b"")
        ends = [run.wait().end for run in runs]
        failed = [end for end in ends if end["status"] == "error"]
        assert failed and all(end.get("errno") == "24" for end in failed), failed
        assert any(end["status"] == "ok" for end in ends)
        for run in runs:
            run.ack()
        assert client.spawn(["true"]).wait().end["status"] == "ok"


@pytest.mark.parametrize("options", [["--nonsense"], ["--uid"], ["--uid", "x"], ["--as-root"],
                                     ["--root-uid", "0"], ["--seccomp", "on"],
                                     ["--writable", "relative"]])
def test_wrong_options_end_init_at_once(start, options):
    init = start(*options)
    assert init.wait(5) == 2
    assert "sandbox-init: " in init.process.stderr.read1(400).decode()
