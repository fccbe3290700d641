# SPDX-License-Identifier: MIT
"""Which addresses are dialled: literals, names, rules, modes (NET-02, 04, 06, 08)."""

import itertools
import socket
import struct
import threading

import pytest
from egress import NETWORK_ALLOWLIST, NETWORK_NONE, Config, dns_query, echo, say

# Where clouds and networks keep what a sandbox must not reach.
INSIDE = [
    "169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192",
    "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.1.1", "198.18.0.1",
    "192.88.99.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "0.0.0.0",
    "fd00:ec2::254", "fd20:ce::254", "fd12:3456::1", "fec0::1", "2002:a00:1::1",
    "64:ff9b::a00:1", "64:ff9b:1::1", "2001::1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
    "::10.0.0.1", "100::1", "ff02::1",
]
LISTENABLE = [a for a in INSIDE if not a.startswith(("::", "0.", "22", "24", "25", "ff"))]


class NameServer:
    """A DNS server outside: `zone` maps a name to a function that returns A and AAAA texts."""

    ADDRESS = "203.0.113.53"

    def __init__(self, world):
        self.zone, self.asked = {}, []
        world.address(self.ADDRESS)
        with world.outside.entered():
            self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.sock.bind((self.ADDRESS, 53))
        self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.tcp.bind((self.ADDRESS, 53))
        self.tcp.listen()
        threading.Thread(target=self._udp, daemon=True).start()
        threading.Thread(target=self._stream, daemon=True).start()

    def mounts(self):
        """The files that make egress ask this server."""
        return {"/etc/resolv.conf": f"nameserver {self.ADDRESS}\noptions timeout:1 attempts:1\n",
                "/etc/hosts": "127.0.0.1 localhost\n10.0.0.1 from-hosts.test\n"}

    def _udp(self):
        while True:
            try:
                data, peer = self.sock.recvfrom(4096)
            except OSError:
                return
            if answer := self.answer(data, 1200):
                self.sock.sendto(answer, peer)

    def _stream(self):
        while True:
            try:
                sock, _ = self.tcp.accept()
            except OSError:
                return
            with sock:
                size = struct.unpack(">H", sock.recv(2))[0]
                answer = self.answer(sock.recv(size), 65535)
                sock.sendall(struct.pack(">H", len(answer)) + answer)

    def answer(self, data, room):
        """Answer one question, cut if it does not fit."""
        at, labels = 12, []
        while data[at]:
            labels.append(data[at + 1:at + 1 + data[at]].decode())
            at += 1 + data[at]
        kind = struct.unpack(">H", data[at + 1:at + 3])[0]
        name = ".".join(labels).lower()
        self.asked.append(name)
        found = self.zone.get(name)
        if found is None:
            return data[:2] + b"\x81\x83\0\1\0\0\0\0\0\0" + data[12:at + 5]
        records = b""
        count = 0
        for text in found():
            if text.startswith("CNAME "):
                target = dns_query(text[6:])[12:-4]
                records += b"\xc0\x0c" + struct.pack(">HHIH", 5, 1, 0, len(target)) + target
                count += 1
                continue
            family = socket.AF_INET6 if ":" in text else socket.AF_INET
            if kind == (28 if ":" in text else 1):
                packed = socket.inet_pton(family, text)
                records += b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(packed)) + packed
                count += 1
        flags = 0x8180
        if len(records) + at + 5 > room:
            flags, count, records = 0x8380, 0, b""
        return (data[:2] + struct.pack(">HHHHH", flags, 1, count, 0, 0) + data[12:at + 5] +
                records)

    def close(self):
        """Stop."""
        self.sock.close()
        self.tcp.close()


@pytest.fixture
def names(world):
    """A name server outside."""
    server = NameServer(world)
    yield server
    server.close()


def refused(box, target, port=80):
    """Dial and tell whether the connection was reset without a byte."""
    try:
        return box.fetch(target, port) == b"" and False
    except ConnectionResetError:
        return True


# ---- literal addresses ----

def test_public_addresses_are_reached(start, world):
    targets = ["203.0.113.7", "192.0.2.9", "198.51.100.77", "8.8.8.8", "2001:db8:5::9"]
    for target in targets:
        world.serve(target, 80)
    with start().sandbox() as box:
        for target in targets:
            assert box.fetch(target, send=b"hello") == b"hello", target


def test_no_inside_address_is_dialled(start, world):
    """NET-02, literals: nothing arrives at a listener that really is there."""
    servers = [world.serve(address, 80, say(b"SECRET")) for address in LISTENABLE]
    egress = start()
    with egress.sandbox() as box:
        for address in INSIDE:
            if address in ("255.255.255.255", "0.0.0.0", "224.0.0.1", "ff02::1"):
                with pytest.raises(OSError):
                    box.connect(address).recv(1)
            else:
                assert refused(box, address), address
                plain = address.removeprefix("::ffff:")
                assert f"address={plain} " in egress.log(f"address={plain} .*verdict=refused")
    assert not any(server.seen for server in servers)


def test_the_host_itself_is_not_dialled(start, world):
    """NET-08: loopback, and the host's own addresses though they are public."""
    servers = [world.serve(address, 80, say(b"SECRET"), on_host=True)
               for address in ("127.0.0.1", "::1", *world.HOST)]
    egress = start()
    with egress.sandbox() as box:
        for address in ("127.0.0.1", "127.0.0.2", "::1", *world.HOST):
            assert refused(box, address), address
        egress.log(f"{world.HOST[0]} is a refused address .this host's own.")
    assert not any(server.seen for server in servers)


def test_ports_without_a_listener_are_refused_inside(start, world):
    """NET-06, NET-08: SSH, mail, Redis, Docker, Postgres."""
    server = world.serve("203.0.113.7", 22)
    with start().sandbox() as box:
        for port in (22, 25, 2375, 2376, 5432, 6379, 8000):
            with pytest.raises(ConnectionRefusedError):
                box.connect("203.0.113.7", port)
    assert server.seen == 0


def test_none_reaches_nothing(start, world):
    server = world.serve("203.0.113.7", 80)
    with start().sandbox(NETWORK_NONE) as box:
        assert refused(box, "203.0.113.7")
    assert server.seen == 0


# ---- names ----

def test_a_name_is_resolved_on_the_host(start, world, names):
    world.serve("203.0.113.7", 80)
    names.zone["www.example.test"] = lambda: ["203.0.113.7"]
    egress = start(mounts=names.mounts())
    with egress.sandbox() as box:
        assert box.fetch("WWW.example.test", send=b"x" * 5000) == b"x" * 5000
        line = egress.log("name=www.example.test .*verdict=done")
        assert "address=203.0.113.7 via=direct" in line
        assert "sent=5000 received=5000" in line


@pytest.mark.parametrize("address", INSIDE + ["127.0.0.1", "::1"])
def test_a_name_that_leads_inside_is_refused(start, world, names, address):
    """NET-02 and NET-04 by name; the listener is there where one can be."""
    server = None
    if address in LISTENABLE:
        server = world.serve(address, 80, say(b"SECRET"))
    names.zone["metadata.google.internal"] = lambda: [address]
    egress = start(mounts=names.mounts())
    with egress.sandbox() as box:
        assert refused(box, "metadata.google.internal")
        egress.log("metadata.google.internal .*verdict=refused")
    assert server is None or server.seen == 0


def test_each_dial_is_checked(start, world, names):
    """NET-04: public first, private second."""
    inside = world.serve("10.0.0.1", 80, say(b"SECRET"))
    world.serve("203.0.113.7", 80, say(b"public"))
    turns = itertools.chain([["203.0.113.7"]], itertools.repeat(["10.0.0.1"]))
    state = {"now": next(turns)}
    names.zone["rebind.test"] = lambda: state["now"]
    egress = start(mounts=names.mounts())
    with egress.sandbox() as box:
        assert box.fetch("rebind.test") == b"public"
        state["now"] = next(turns)
    with egress.sandbox() as box:
        assert refused(box, "rebind.test")
    assert inside.seen == 0


def test_an_alias_to_the_inside_is_refused(start, names):
    names.zone["alias.test"] = lambda: ["CNAME localhost"]
    names.zone["localhost"] = lambda: ["127.0.0.1"]
    with start(mounts=names.mounts()).sandbox() as box:
        assert refused(box, "alias.test")
        assert refused(box, "from-hosts.test")


def test_mixed_answers_are_filtered(start, world, names):
    inside = world.serve("10.0.0.1", 80, say(b"SECRET"))
    public = world.serve("203.0.113.7", 80, say(b"public"))
    names.zone["mixed.test"] = lambda: ["10.0.0.1", "203.0.113.7", "127.0.0.1", "fd00:ec2::254"]
    names.zone["fifty.test"] = lambda: [f"10.0.0.{n}" for n in range(1, 50)] + ["203.0.113.7"]
    names.zone["all-inside.test"] = lambda: [f"10.0.0.{n}" for n in range(1, 51)]
    with start(mounts=names.mounts()).sandbox() as box:
        assert box.fetch("mixed.test") == b"public"
        assert box.fetch("fifty.test") == b"public"
        assert refused(box, "all-inside.test")
    assert inside.seen == 0 and public.seen == 2


def test_the_next_address_is_tried(start, world, names):
    world.serve("203.0.113.7", 80, say(b"second"))
    world.address("203.0.113.6")
    names.zone["two.test"] = lambda: ["203.0.113.6", "203.0.113.7"]
    names.zone["black-hole.test"] = lambda: ["203.0.113.5", "203.0.113.7"]
    world.outside.ip("route add blackhole 203.0.113.5/32")
    with start(mounts=names.mounts(), limits="connect_ms=300").sandbox() as box:
        assert box.fetch("two.test") == b"second"
        assert box.fetch("black-hole.test") == b"second"


def test_a_missing_name_and_a_dead_server_are_reset(start, world, names):
    world.address("203.0.113.6")
    names.zone["dead.test"] = lambda: ["203.0.113.6"]
    egress = start(mounts=names.mounts())
    with egress.sandbox() as box:
        assert refused(box, "missing.test")
        egress.log('name=missing.test .*verdict=refused .*reason="cannot resolve')
        assert refused(box, "dead.test")
        egress.log('name=dead.test .*address=203.0.113.6 .*reason="cannot connect: Connection ref')


def test_a_fake_address_without_a_name_is_refused(start):
    egress = start()
    with egress.sandbox() as box:
        box.resolve("one.test")
        known = box.resolve("one.test").split(".")
        known[2] = str((int(known[2]) + 128) % 256)
        assert refused(box, ".".join(known))
        egress.log("an address that stands for no name")


# ---- rules ----

def test_allow_opens_a_private_address_for_its_port(start, world, names):
    world.serve("10.0.0.1", 80, say(b"database"))
    world.serve("10.0.0.1", 443, say(b"SECRET"))
    world.serve("10.0.0.2", 80, say(b"literal"))
    names.zone["db.corp.test"] = lambda: ["10.0.0.1"]
    names.zone["evil.test"] = lambda: ["10.0.0.1"]
    config = Config(allow=[("db.corp.test", 80), ("10.0.0.2", 80)])
    with start(config, mounts=names.mounts()).sandbox() as box:
        assert box.fetch("db.corp.test") == b"database"
        assert refused(box, "db.corp.test", 443)
        assert refused(box, "evil.test")
        assert refused(box, "10.0.0.1")
        assert box.fetch("10.0.0.2") == b"literal"


def test_allow_opens_no_metadata_by_a_name(start, world, names):
    server = world.serve("169.254.169.254", 80, say(b"SECRET"))
    names.zone["db.corp.test"] = lambda: ["169.254.169.254"]
    with start(Config(allow=[("db.corp.test", 0)]), mounts=names.mounts()).sandbox() as box:
        assert refused(box, "db.corp.test")
    assert server.seen == 0


def test_the_hosts_loopback_is_reached_by_its_name_only(start, world):
    world.serve("127.0.0.1", 8080, say(b"mine"), on_host=True)
    world.serve("::1", 9090, say(b"mine too"), on_host=True)
    secret = world.serve("127.0.0.1", 80, say(b"SECRET"), on_host=True)
    config = Config(allow=[("host.sandbox.internal", 8080), ("host.sandbox.internal", 9090)])
    egress = start(config)
    with egress.sandbox(ports=(80, 8080, 9090)) as box:
        assert box.fetch("host.sandbox.internal", 8080) == b"mine"
        assert box.fetch("host.sandbox.internal", 9090) == b"mine too"
        assert refused(box, "host.sandbox.internal", 80)
        assert refused(box, "127.0.0.1", 8080)
        egress.log("this port of the host is not in NETWORK_ALLOW")
    with start().sandbox(ports=(8080,)) as box:
        assert refused(box, "host.sandbox.internal", 8080)
    assert secret.seen == 0


def test_allowlist_reaches_its_list_only(start, world, names):
    for address in ("203.0.113.7", "203.0.113.8"):
        for port in (80, 443):
            world.serve(address, port, echo)
    for name in ("allowed.test", "a.wild.test", "other.test"):
        names.zone[name] = lambda: ["203.0.113.7"]
    config = Config(list=[("allowed.test", 443), ("*.wild.test", 0), ("203.0.113.8", 443)])
    with start(config, mounts=names.mounts()).sandbox(NETWORK_ALLOWLIST) as box:
        assert box.fetch("allowed.test", 443) == b"ping"
        assert refused(box, "allowed.test", 80)
        assert box.fetch("a.wild.test", 80) == b"ping"
        assert box.fetch("203.0.113.8", 443) == b"ping"
        assert refused(box, "203.0.113.8", 80)
        assert refused(box, "203.0.113.7", 443)
        assert box.resolve("other.test") is None
        assert names.asked.count("other.test") == 0


def test_allowlist_refuses_private_addresses_too(start, world, names):
    server = world.serve("10.0.0.1", 443, say(b"SECRET"))
    names.zone["allowed.test"] = lambda: ["10.0.0.1"]
    config = Config(list=[("allowed.test", 443)])
    with start(config, mounts=names.mounts()).sandbox(NETWORK_ALLOWLIST) as box:
        assert refused(box, "allowed.test", 443)
    assert server.seen == 0


def test_names_are_not_resolved_before_a_connection(start, names):
    with start(mounts=names.mounts()).sandbox() as box:
        for number in range(10):
            box.resolve(f"secret-{number}.evil.test")
    assert not names.asked
