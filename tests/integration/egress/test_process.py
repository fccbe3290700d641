# SPDX-License-Identifier: MIT
"""The process itself: what it gave up, what it refuses to start with, and bad messages."""

import array
import os
import re
import socket
import struct
import time
from pathlib import Path

import pytest
from egress import (EGRESS_ADD, EGRESS_GONE, EGRESS_MAGIC, EGRESS_REMOVE, MESSAGE, Config, Sandbox,
                    echo, is_sanitized, memfd)


def status(egress):
    """Return /proc/PID/status as a dict."""
    text = Path(f"/proc/{egress.process.pid}/status").read_text()
    return dict(re.findall(r"(\w+):\s+(.*)", text))


def ended(egress):
    """Wait for the end and return the exit status."""
    code = egress.process.wait(5)
    egress._reader.join(5)  # pylint: disable=protected-access
    return code


def test_it_gave_up_what_it_does_not_need(start):
    egress = start()
    with egress.sandbox() as box:
        box.resolve("ready.test")
        seen = status(egress)
        assert seen["Uid"].split() == [str(egress.uid)] * 4
        assert all(int(seen[f"Cap{which}"], 16) == 0 for which in ("Inh", "Prm", "Eff", "Amb"))
        assert seen["NoNewPrivs"] == "1"
        assert int(seen["Threads"]) <= 10
        if is_sanitized():
            pytest.skip("seccomp: a sanitizer's build has no filter")
        for task in os.listdir(f"/proc/{egress.process.pid}/task"):
            text = Path(f"/proc/{egress.process.pid}/task/{task}/status").read_text()
            assert "Seccomp:\t2" in text, "each thread is under the filter"


def test_it_keeps_the_descriptors_it_needs_and_no_other(start):
    egress = start()
    with egress.sandbox() as box:
        box.resolve("ready.test")
        links = [os.readlink(f"/proc/{egress.process.pid}/fd/{fd}")
                 for fd in os.listdir(f"/proc/{egress.process.pid}/fd")]
        assert not [link for link in links if "memfd" in link], "the configuration is closed"
        kinds = sorted(link.split(":")[0] for link in links)
        assert kinds == ["/dev/null"] * 2 + ["anon_inode"] * 2 + ["pipe"] + ["socket"] * 4


def test_a_dead_keeper_ends_it(start):
    egress = start()
    box = Sandbox()
    egress.add(box)
    assert egress.close() == 0
    box.close()


@pytest.mark.parametrize("data, reason", [
    (b"", "another size"),
    (Config().pack() + b"x", "another size"),
    (b"\0" * len(Config().pack()), "malformed"),
    (Config(allow=[("a b", 80)]).pack(), "NETWORK_ALLOW: rule 1"),
    (Config(list=[("*.", 80)]).pack(), "NETWORK_ALLOWLIST: rule 1"),
    (Config(proxy="https://u:s3cret@p:1").pack(), "SANDBOX_PROXY"),
    (struct.pack("=II", EGRESS_MAGIC, 1) + b"a" * (len(Config().pack()) - 8), "malformed"),
])
def test_a_bad_configuration_is_refused_with_its_name(start, data, reason):
    egress = start(raw_config=memfd(data))
    assert ended(egress) == 3
    assert reason in egress.text and egress.text.count("\n") <= 2
    assert "s3cret" not in egress.text


def test_a_configuration_must_be_sealed(start):
    egress = start(raw_config=memfd(Config().pack(), seals=0))
    assert ended(egress) == 3
    assert "not sealed" in egress.text


def send_raw(egress, data, fds=()):
    """Send bytes and descriptors as they are."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    egress.control.sendmsg([data], rights)


def test_bad_messages_are_dropped_and_leak_nothing(start, world):
    world.serve("203.0.113.7", 80, echo)
    egress = start()
    box = Sandbox()
    good = MESSAGE.pack(EGRESS_MAGIC, EGRESS_ADD, 1, 2, box.id.encode(), 80, 443, *[0] * 62)
    plain = socket.socket()
    with egress.sandbox() as ready:
        ready.resolve("ready.test")
        fds = egress.fd_count()
        bad = [
            (b"x", box.fds),
            (good[:-1], box.fds),
            (good + b"x", box.fds),
            (b"\0" * len(good), box.fds),
            (good, box.fds[:2]),
            (good, box.fds + [0]),
            (good, []),
            (good, [box.fds[0], box.fds[0], box.fds[0]]),
            (good, [plain.fileno()] * 3),
            (good, [0, 1, 2]),
            (good, [box.fds[2], box.fds[1], box.fds[0]]),
            (MESSAGE.pack(EGRESS_MAGIC, 9, 1, 2, box.id.encode(), *[80] * 64), box.fds),
            (MESSAGE.pack(EGRESS_MAGIC, EGRESS_GONE, 1, 0, box.id.encode(), *[0] * 64), box.fds),
            (MESSAGE.pack(EGRESS_MAGIC, EGRESS_ADD, 7, 2, box.id.encode(), *[80] * 64), box.fds),
            (MESSAGE.pack(EGRESS_MAGIC, EGRESS_ADD, 1, 65, box.id.encode(), *[80] * 64), box.fds),
            (MESSAGE.pack(EGRESS_MAGIC, EGRESS_ADD, 1, 2, b"../" + b"a" * 29, *[80] * 64), box.fds),
            (MESSAGE.pack(EGRESS_MAGIC, EGRESS_ADD, 1, 2, box.id.encode(), 0, *[1] * 63), box.fds),
            (good, [box.fds[0]] * 200),
            (MESSAGE.pack(EGRESS_MAGIC, EGRESS_ADD, 1, 2, ready.id.encode(), 80, 443, *[0] * 62),
             box.fds),
        ]
        for data, passed in bad:
            send_raw(egress, data, passed)
        assert ready.resolve("alive.test")
        time.sleep(0.1)
        assert egress.fd_count() == fds
        send_raw(egress, good, box.fds)
        assert box.fetch("203.0.113.7") == b"ping"
        egress.remove(box)
    plain.close()
    box.close()


def test_a_keeper_that_reads_late_loses_no_answer(start):
    egress = start()
    with egress.sandbox() as box:
        sent = 0
        egress.control.settimeout(0.5)
        with pytest.raises(TimeoutError):
            while sent < 100000:
                egress.control.sendmsg([MESSAGE.pack(EGRESS_MAGIC, EGRESS_REMOVE, 0, 0,
                                                     b"%032x" % sent, *[0] * 64)])
                sent += 1
        assert box.resolve("alive.test"), "the sandboxes are served meanwhile"
        for number in range(sent):
            assert MESSAGE.unpack(egress.control.recv(4096))[4] == b"%032x\0" % number


def test_a_log_that_nobody_reads_stops_nothing(start, world, monkeypatch):
    world.serve("203.0.113.7", 80, echo)
    monkeypatch.setattr("egress.Egress._read", lambda self, fd: None)
    egress = start(limits="conn_rate=100000,conn_burst=100000")
    with egress.sandbox() as box:
        for _ in range(1000):  # more lines than a pipe holds
            try:
                box.connect("10.0.0.1").close()
            except ConnectionResetError:
                pass
        assert box.fetch("203.0.113.7") == b"ping"


def test_lines_are_whole_and_printable(start):
    egress = start(mounts={"/etc/nsswitch.conf": "hosts: files\n"})
    with egress.sandbox() as box:
        for name in ("g" * 63, "x.test"):
            box.resolve(name)
            try:
                box.fetch(name)
            except ConnectionResetError:
                pass
    egress.close()
    for line in egress.text.splitlines():
        assert re.fullmatch(r"sandbox-egress: [ -~]+", line), line
