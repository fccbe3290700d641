# SPDX-License-Identifier: MIT
"""Relaying: bytes, half-close, limits, memory, the coming and going of sandboxes (NET-17, 18)."""

import hashlib
import os
import re
import select
import socket
import threading
import time

import pytest
from egress import Sandbox, echo, is_sanitized, say

PUBLIC = "203.0.113.7"
MIB = 1 << 20


def wait_until(what, seconds=5):
    """Poll for something that becomes true soon."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it did not become true"
        time.sleep(0.02)


def read_all(sock):
    """Read to the end."""
    parts = []
    while data := sock.recv(1 << 16):
        parts.append(data)
    return b"".join(parts)


def verdicts(egress):
    """Count the lines of ended connections, with those that we read too slowly to get."""
    lost = sum(map(int, re.findall(r"(\d+) lines were lost", egress.text)))
    return lost + egress.text.count("verdict=")


# ---- bytes ----

def test_large_transfers_arrive_whole_in_both_directions(start, world):
    world.serve(PUBLIC, 80, echo)
    payload = os.urandom(MIB) * 48
    egress = start()
    with egress.sandbox() as box, box.connect(PUBLIC) as sock:
        sender = threading.Thread(target=lambda: (sock.sendall(payload),
                                                  sock.shutdown(socket.SHUT_WR)))
        sender.start()
        got = read_all(sock)
        sender.join()
        assert hashlib.sha256(got).digest() == hashlib.sha256(payload).digest()
        assert f"sent={len(payload)} received={len(payload)}" in egress.log("verdict=done")


def test_the_client_may_end_first(start, world):
    """The request's end reaches the server, whose answer comes after it."""

    def handler(sock):
        request = read_all(sock)
        sock.sendall(b"got %d" % len(request))

    world.serve(PUBLIC, 80, handler)
    with start().sandbox() as box:
        assert box.fetch(PUBLIC, send=b"x" * 100000) == b"got 100000"


def test_the_server_may_end_first(start, world):
    """The client reads the end and can still send."""
    seen = []

    def handler(sock):
        sock.sendall(b"hello")
        sock.shutdown(socket.SHUT_WR)
        seen.append(read_all(sock))

    world.serve(PUBLIC, 80, handler)
    with start().sandbox() as box, box.connect(PUBLIC) as sock:
        assert read_all(sock) == b"hello"
        sock.sendall(b"late")
        sock.close()
        wait_until(lambda: seen == [b"late"])


def test_the_server_may_speak_first(start, world):
    world.serve(PUBLIC, 80, say(b"220 ready"))
    with start().sandbox() as box, box.connect(PUBLIC) as sock:
        assert sock.recv(100) == b"220 ready"


def test_a_reset_of_the_server_is_a_reset_for_the_client(start, world):

    def handler(sock):
        sock.recv(1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    world.serve(PUBLIC, 80, handler)
    egress = start()
    with egress.sandbox() as box, box.connect(PUBLIC) as sock:
        sock.sendall(b"x")
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
        egress.log('verdict=broken .*reason="server: ')


def test_a_reset_of_the_client_reaches_the_server(start, world):
    ends = []

    def handler(sock):
        try:
            sock.recv(100)
            ends.append(sock.recv(100))
        except ConnectionResetError:
            ends.append("reset")

    world.serve(PUBLIC, 80, handler)
    with start().sandbox() as box:
        sock = box.connect(PUBLIC)
        sock.sendall(b"x")
        time.sleep(0.1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.close()
        wait_until(lambda: ends)
        assert ends == ["reset"]


def test_small_messages_are_not_held_back(start, world):
    world.serve(PUBLIC, 80, echo)
    with start().sandbox() as box, box.connect(PUBLIC) as sock:
        began = time.monotonic()
        for _ in range(200):
            sock.sendall(b"ping")
            assert sock.recv(10) == b"ping"
        assert time.monotonic() - began < 2


# ---- limits ----

def test_idle_connections_end(start, world):
    world.serve(PUBLIC, 80, echo)
    egress = start(limits="idle_ms=400")
    with egress.sandbox() as box, box.connect(PUBLIC) as sock:
        for _ in range(5):
            time.sleep(0.2)
            sock.sendall(b"x")
            assert sock.recv(1) == b"x"
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
        egress.log("verdict=idle sent=5 received=5")


def test_half_closed_connections_end_sooner(start, world):
    world.serve(PUBLIC, 80, lambda sock: (read_all(sock), time.sleep(5)))
    egress = start(limits="half_ms=300")
    with egress.sandbox() as box, box.connect(PUBLIC) as sock:
        sock.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
        egress.log("verdict=idle")


def test_a_server_that_does_not_answer_is_given_up(start, world):
    world.address("203.0.113.5")
    world.outside.ip("route add blackhole 203.0.113.4/32")
    egress = start(limits="dial_ms=400")
    with egress.sandbox() as box:
        began = time.monotonic()
        with pytest.raises(ConnectionResetError):
            box.fetch("203.0.113.4")
        assert time.monotonic() - began < 2
        egress.log("cannot connect: Connection timed out")


def test_a_sandbox_has_its_number_of_connections(start, world):
    world.serve(PUBLIC, 80, echo)
    egress = start(limits="conns=4")
    with egress.sandbox() as box, egress.sandbox() as other:
        socks = [box.connect(PUBLIC) for _ in range(4)]
        for sock in socks:
            sock.sendall(b"x")
            assert sock.recv(1) == b"x"
        with pytest.raises(ConnectionResetError):
            box.fetch(PUBLIC)
        egress.log("too many connections of this sandbox")
        assert other.fetch(PUBLIC) == b"ping", "another sandbox is not affected"
        socks.pop().close()
        wait_until(lambda: "verdict=done sent=1 received=1" in egress.text)
        assert box.fetch(PUBLIC) == b"ping"
        for sock in socks:
            sock.close()


def test_new_connections_have_a_rate(start, world):
    world.serve(PUBLIC, 80, say(b"x"))
    egress = start(limits="conn_rate=5,conn_burst=10")
    with egress.sandbox() as box, egress.sandbox() as other:
        began = time.monotonic()
        socks = [box.connect(PUBLIC) for _ in range(30)]
        assert other.fetch(PUBLIC) == b"x"
        assert time.monotonic() - began < 2, "another sandbox waits for nobody"
        for sock in socks:
            assert read_all(sock) == b"x", "what is over the rate waits, and is served"
            sock.close()
        assert time.monotonic() - began > 3


def test_names_that_never_resolve_hold_up_one_sandbox_only(start, world, scratch):
    """Two threads at most for one sandbox; the other's lookup is served at once."""
    world.serve(PUBLIC, 80, say(b"x"))
    world.outside.ip("route add blackhole 203.0.113.4/32")
    egress = start(mounts={"/etc/resolv.conf": "nameserver 203.0.113.4\n",
                           "/etc/hosts": f"{PUBLIC} good.test\n"}, limits="resolve_ms=4000")
    with egress.sandbox() as bad, egress.sandbox() as good:
        socks = [bad.dial(f"never-{n}.test") for n in range(15)]
        time.sleep(0.1)
        began = time.monotonic()
        assert good.fetch("good.test") == b"x"
        assert time.monotonic() - began < 2
        for sock in socks:
            with pytest.raises(ConnectionResetError):
                sock.recv(1)
            sock.close()
        egress.log("never-0.test .*the name was not resolved in time")


def test_one_busy_connection_leaves_turns_to_others(start, world):
    world.serve(PUBLIC, 80, echo)
    world.serve(PUBLIC, 443, lambda sock: [sock.sendall(b"z" * MIB) for _ in range(10 ** 6)])
    with start().sandbox() as box:
        stop = threading.Event()
        busy = box.connect(PUBLIC, 443)

        def drain():
            while not stop.is_set():
                busy.recv(MIB)

        thread = threading.Thread(target=drain)
        thread.start()
        with box.connect(PUBLIC) as sock:
            for _ in range(20):
                began = time.monotonic()
                sock.sendall(b"ping")
                assert sock.recv(10) == b"ping"
                assert time.monotonic() - began < 2
        stop.set()
        thread.join()
        busy.close()


def test_standing_connections_cost_nothing_while_idle(start, world):
    world.serve(PUBLIC, 80, lambda sock: sock.recv(1))
    egress = start()
    with egress.sandbox() as box:
        socks = [box.connect(PUBLIC) for _ in range(50)]
        socks[0].shutdown(socket.SHUT_WR)
        time.sleep(0.2)
        cpu = egress.cpu()
        time.sleep(1)
        assert egress.cpu() - cpu < 0.05
        for sock in socks:
            sock.close()


# ---- memory and descriptors ----

def test_a_thousand_slow_clients(start, world):
    """NET-18: four sandboxes, 250 connections each, 100 MiB and more that nobody reads."""
    stop = threading.Event()

    def pour(sock):
        sock.settimeout(0.5)
        try:
            while not stop.is_set():
                sock.sendall(b"y" * 65536)
        except TimeoutError:
            stop.wait()

    world.serve(PUBLIC, 80, pour)
    world.serve(PUBLIC, 443, echo)
    egress = start()
    boxes = [Sandbox() for _ in range(4)]
    idle_fds = egress.fd_count()
    try:
        for box in boxes:
            egress.add(box)
        socks = [box.connect(PUBLIC, timeout=60) for box in boxes for _ in range(250)]
        poll = select.poll()
        for sock in socks:
            poll.register(sock, select.POLLIN)
        wait_until(lambda: len(poll.poll(0)) == 1000, 60)
        time.sleep(2)
        rss, fds = egress.rss(), egress.fd_count()
        print(f"1000 slow clients: RSS {rss / MIB:.1f} MiB, {fds} descriptors")
        assert rss <= 64 * MIB or is_sanitized()
        assert fds <= 1000 * 6 + 200
        began = time.monotonic()
        assert boxes[0].fetch(PUBLIC, 443) == b"ping"
        assert time.monotonic() - began < 5
        stop.set()
        for sock in socks:
            sock.close()
        wait_until(lambda: verdicts(egress) >= 1001, 30)
        assert egress.rss() <= 64 * MIB or is_sanitized()
        for box in boxes:
            egress.remove(box)
        assert egress.fd_count() <= idle_fds + 2 * 32, "only kept pipes are left"
    finally:
        stop.set()
        for box in boxes:
            box.close()


def test_100_mib_for_a_client_that_does_not_read(start, world):
    sent = []

    def pour(sock):
        sock.settimeout(1)
        try:
            for _ in range(1600):
                sock.sendall(b"y" * 65536)
                sent.append(65536)
        except TimeoutError:
            pass
        sock.recv(1)

    world.serve(PUBLIC, 80, pour)
    egress = start()
    with egress.sandbox() as box, box.connect(PUBLIC) as sock:
        time.sleep(2)
        assert sum(sent) < 64 * MIB, "the server is slowed down"
        assert egress.rss() <= 64 * MIB or is_sanitized()
        sock.sendall(b"x")


def test_few_descriptors_make_connections_wait_or_fail_but_nothing_dies(start, world):
    world.serve(PUBLIC, 80, echo)
    egress = start(nofile=256)
    with egress.sandbox() as box:
        socks = []
        for _ in range(60):
            sock = box.connect(PUBLIC, timeout=1)
            sock.sendall(b"x")
            socks.append(sock)
        served = reset = waiting = 0
        time.sleep(0.5)
        for sock in socks:
            sock.settimeout(0.02)
            try:
                served += sock.recv(1) == b"x"
            except ConnectionResetError:
                reset += 1
            except TimeoutError:
                waiting += 1
        assert served >= 8 and served + reset + waiting == 60
        assert egress.fd_count() <= 256
        for sock in socks:
            sock.close()
        time.sleep(0.3)
        assert box.fetch(PUBLIC) == b"ping"


def test_sandboxes_that_hold_all_connections_make_room_for_a_new_one(start, world):
    """Of 24 places three sandboxes take eight each; a fourth one has its share all the same."""
    world.serve(PUBLIC, 80, echo)
    egress = start(nofile=330)
    with egress.sandbox() as first, egress.sandbox() as second, egress.sandbox() as third:
        held = []
        for box in (first, second, third) * 20:
            try:
                sock = box.connect(PUBLIC, timeout=1)
                held.append(sock)
                sock.sendall(b"x")
            except ConnectionResetError:
                continue  # one too many: that is how it is refused, before or after the first byte
        egress.log("too many connections of this sandbox")
        with egress.sandbox() as new:
            began = time.monotonic()
            for _ in range(4):
                held.append(new.connect(PUBLIC, timeout=2))
                held[-1].sendall(b"ping")
                held[-1].settimeout(2)
                assert held[-1].recv(10) == b"ping"
            assert time.monotonic() - began < 2
            egress.log("verdict=evicted .*another sandbox has less than its share")
        for sock in held:
            sock.close()


def test_ten_thousand_connections_leak_nothing(start, world):
    """RES-12: one after the other, some reset, some refused."""
    world.serve(PUBLIC, 80, say(b"x"))
    egress = start(limits="conn_rate=100000,conn_burst=100000,conns=2000")
    with egress.sandbox() as box:
        def some(count):
            for number in range(count):
                try:
                    sock = box.connect(PUBLIC if number % 3 else "10.0.0.1")
                except ConnectionResetError:
                    continue
                if number % 2:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                sock.close()
        some(1000)
        time.sleep(0.5)
        rss, fds = egress.rss(), egress.fd_count()
        some(9000)
        wait_until(lambda: verdicts(egress) >= 10000, 30)
        assert egress.fd_count() <= fds + 4
        assert egress.rss() <= rss + MIB or is_sanitized(), "a sanitizer keeps freed memory"


# ---- sandboxes come and go ----

def test_remove_ends_everything_of_that_sandbox(start, world):
    ends = []

    def handler(sock):
        try:
            while sock.recv(100):
                pass
            ends.append("end")
        except ConnectionResetError:
            ends.append("reset")

    world.serve(PUBLIC, 80, handler)
    egress = start()
    box, other = Sandbox(), Sandbox()
    egress.add(box)
    egress.add(other)
    sock, kept = box.connect(PUBLIC), other.connect(PUBLIC)
    sock.sendall(b"x")
    kept.sendall(b"x")
    time.sleep(0.1)
    fds = egress.fd_count()
    egress.remove(box)
    with pytest.raises(ConnectionResetError):
        sock.recv(1)
    wait_until(lambda: ends == ["reset"])
    assert egress.fd_count() <= fds - 5
    line = egress.log(f"sandbox={box.id} ended")
    assert "accepted=1 refused=0 sent=1 received=0" in line
    egress.remove(box)  # unknown by now; answered all the same
    kept.sendall(b"y")
    cpu = egress.cpu()
    late = box.connect(PUBLIC, timeout=0.5)  # the keeper's copy still listens
    box.client.send(b"late question")
    with pytest.raises(TimeoutError):
        late.recv(1)
    assert egress.cpu() - cpu < 0.1, "sockets that are not ours any more do not wake us"
    for end in (box, other, sock, kept, late):
        end.close()


def test_remove_while_names_are_resolved(start, world):
    world.outside.ip("route add blackhole 203.0.113.4/32")
    egress = start(mounts={"/etc/resolv.conf":
                           "nameserver 203.0.113.4\noptions timeout:1 attempts:1\n"})
    for _ in range(3):
        with egress.sandbox() as box:
            socks = [box.dial(f"n{number}.test") for number in range(10)]
            time.sleep(0.05)
            egress.remove(box)
            for sock in socks:
                with pytest.raises(ConnectionResetError):
                    sock.recv(1)
                sock.close()
    time.sleep(2.5)  # what was under way comes back to nobody
    with egress.sandbox() as box:
        assert box.resolve("alive.test")


def test_a_killed_egress_leaves_no_network_and_a_new_one_heals(start, world):
    """NET-17."""
    server = world.serve(PUBLIC, 80, echo)
    egress = start()
    box = Sandbox()
    egress.add(box)
    assert box.fetch(PUBLIC) == b"ping"
    standing = box.connect(PUBLIC)
    standing.sendall(b"x")
    assert standing.recv(1) == b"x"
    seen = server.seen
    egress.process.kill()
    egress.process.wait()
    egress.control.close()
    with pytest.raises(ConnectionResetError):
        standing.recv(1) or (_ for _ in ()).throw(ConnectionResetError())
    with box.connect(PUBLIC, timeout=0.5) as sock, pytest.raises(TimeoutError):
        sock.sendall(b"x")
        sock.recv(1)
    box.client.settimeout(0.3)
    with pytest.raises(TimeoutError):
        box.resolve("example.test")
    assert server.seen == seen, "nothing got out"
    egress.start()
    egress.add(box)
    box.client.settimeout(5)
    while box.ask(b"\0\1\1\0\0\1\0\0\0\0\0\0\4heal\0\0\1\0\1").ident != 1:
        pass
    assert box.fetch(PUBLIC) == b"ping"
    box.close()
    standing.close()


def test_an_old_fake_address_means_nothing_after_a_restart(start):
    first = start()
    box = Sandbox()
    first.add(box)
    old = {box.resolve(f"old-{number}.test") for number in range(15)}
    first.close()
    second = start()
    second.add(box)
    time.sleep(1)
    new = {box.resolve(f"new-{number}.test") for number in range(15)}
    assert len(old & new) <= 2, "the table begins elsewhere"
    box.close()


def test_many_sandboxes(start, world):
    world.serve(PUBLIC, 80, echo)
    egress = start()
    fds = egress.fd_count()
    boxes = [Sandbox() for _ in range(40)]
    for box in boxes:
        egress.add(box)
    for box in boxes:
        assert box.fetch(PUBLIC) == b"ping"
        assert box.resolve("a.test")
    for box in boxes:
        egress.remove(box)
        box.close()
    assert egress.fd_count() <= fds + 64


def test_add_with_many_ports(start, world):
    ports = list(range(10000, 10064))
    for port in (ports[0], ports[-1]):
        world.serve(PUBLIC, port, echo)
    egress = start()
    with egress.sandbox(ports=ports) as box:
        assert box.fetch(PUBLIC, ports[0]) == b"ping"
        assert box.fetch(PUBLIC, ports[-1]) == b"ping"
