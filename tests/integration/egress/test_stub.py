# SPDX-License-Identifier: MIT
"""The DNS stub: what it answers, and that it never asks (NET-05, NET-09)."""

import ipaddress
import socket
import struct
import time

import pytest
from egress import (NETWORK_ALLOWLIST, NETWORK_NONE, Config, dns_parse, dns_query)

A, NS, PTR, TXT, AAAA, SRV, HTTPS, ANY = 1, 2, 12, 16, 28, 33, 65, 255
NOERROR, FORMERR, NXDOMAIN, NOTIMP, REFUSED = 0, 1, 3, 4, 5
FAKE = ipaddress.ip_network("198.18.0.0/15")


@pytest.fixture
def box(start):
    """A sandbox in mode public."""
    with start().sandbox() as made:
        yield made


def test_a_name_has_one_address(box):
    first = box.resolve("example.test")
    assert ipaddress.ip_address(first) in FAKE
    assert box.resolve("EXAMPLE.Test.") == first
    assert box.resolve("other.test") != first
    assert box.resolve("example.test") == first


def test_other_types_are_empty_for_a_known_and_for_a_new_name(box):
    for name in ("known.test", "new.test"):
        for kind in (AAAA, TXT, HTTPS, SRV, NS, 64, 65535):
            answer = box.ask(dns_query(name, kind))
            assert (answer.rcode, answer.counts) == (NOERROR, (1, 0, 0, 0)), kind
        assert box.ask(dns_query(name, ANY)).addresses == [box.resolve(name)]


def test_an_answer_repeats_id_and_question(box):
    query = dns_query("MiXeD.TeSt", ident=0xBEEF)
    answer = box.ask(query)
    assert answer.ident == 0xBEEF and answer.question == query[12:]
    assert answer.flags & 0x8000 and answer.flags & 0x0100
    assert not answer.flags & 0x0200, "TC is never set"


def test_edns_and_cookies_are_ignored(box):
    opt = b"\0\0\x29\xff\xff\0\0\x80\0\0\x0c\0\x0a\0\x08" + b"c" * 8
    answer = box.ask(dns_query("edns.test", extra=opt, additional=1))
    assert answer.rcode == NOERROR and answer.counts == (1, 1, 0, 0)


def test_localhost_is_the_sandbox_itself(box):
    assert box.resolve("localhost") == "127.0.0.1"
    assert box.resolve("a.LocalHost") == "127.0.0.1"


@pytest.mark.parametrize("wire", [
    b"\x12allowed.test\0.evil\0", b"\x03a#b\x04test\0", b"\x0cevil.test.aa\0", b"\x02\xc3\xbc\0",
    b"\x031.2\x013\x014\0", b"\x03127\x011\0", b"\x0a2130706433\0", b"\x0a0x7f000001\0", b"\0",
    b"\x02-a\x04test\0", b"\x02a-\x04test\0", b"\x01*\x04test\0", b"\x03a b\x04test\0",
])
def test_what_is_no_host_name_does_not_exist(box, wire):
    for kind in (A, AAAA, TXT):
        assert box.ask(dns_query(wire, kind)).rcode == NXDOMAIN


def test_reverse_names_do_not_exist(box):
    assert box.ask(dns_query("1.0.18.198.in-addr.arpa", PTR)).rcode == NXDOMAIN


def test_the_longest_name(box):
    longest = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])
    assert box.resolve(longest)
    assert box.ask(dns_query(longest + "d")).rcode == FORMERR


@pytest.mark.parametrize("packet, rcode", [
    (struct.pack(">HHHHHH", 7, 0x0100, 0, 0, 0, 0), FORMERR),
    (struct.pack(">HHHHHH", 7, 0x0100, 2, 0, 0, 0) + b"\1a\0\0\1\0\1", FORMERR),
    (struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + b"\xc0\x0c\0\1\0\1", FORMERR),
    (struct.pack(">HHHHHH", 7, 0x2800, 1, 0, 0, 0) + b"\1a\0\0\1\0\1", NOTIMP),
    (struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + b"\1a\0\0\1\0\3", REFUSED),
])
def test_malformed_questions_are_answered(box, packet, rcode):
    answer = box.ask(packet)
    assert answer.ident == 7 and answer.rcode == rcode


def test_answers_and_scraps_get_no_answer(box):
    for packet in (b"", b"x", b"\0" * 11, struct.pack(">HHHHHH", 7, 0x8180, 1, 0, 0, 0)):
        box.client.send(packet)
    assert box.ask(b"z" * 4000).rcode == NOTIMP
    assert box.resolve("alive.test")


def test_a_thousand_questions_carry_nothing_out(start, world):
    """NET-09: at most 20 new names a second, and not one packet leaves the host."""
    egress = start()
    with egress.sandbox() as box:
        began, addresses, refused = time.monotonic(), 0, 0
        for number in range(1000):
            name = f"{number:04d}".ljust(60, "x") + ".evil.test"
            answer = box.ask(dns_query(name, A if number % 2 else TXT))
            addresses += answer.rcode == NOERROR
            refused += answer.rcode == NXDOMAIN
        seconds = time.monotonic() - began
        assert 20 <= addresses <= 20 * (int(seconds) + 1)
        assert addresses + refused == 1000
        known = "0000".ljust(60, "x") + ".evil.test"
        assert box.resolve(known), "a known name is always answered"
        egress.log("refuses new names")
    with world.host.entered():
        counters = open("/proc/thread-self/net/snmp", encoding="ascii").read()
    udp = [line.split() for line in counters.splitlines() if line.startswith("Udp:")]
    assert dict(zip(*udp))["OutDatagrams"] == "0"


def test_a_flood_of_one_sandbox_does_not_delay_another(start):
    egress = start()
    with egress.sandbox() as loud, egress.sandbox() as quiet:
        quiet.resolve("quiet.test")
        flood = [dns_query("loud.test")] * 3000
        for packet in flood:
            loud.client.send(packet)
        began = time.monotonic()
        assert quiet.resolve("quiet.test")
        assert time.monotonic() - began < 1, "the flood itself lasts for two seconds and more"


def test_sandboxes_have_tables_of_their_own(start):
    egress = start()
    with egress.sandbox() as one, egress.sandbox() as other:
        assert one.resolve("same.test") != other.resolve("same.test")


def test_allowlist_knows_its_names_only(start):
    config = Config(list=[("allowed.test", 443), ("*.wild.test", 0)])
    with start(config).sandbox(NETWORK_ALLOWLIST) as box:
        for name in ("allowed.test", "ALLOWED.test.", "a.wild.test", "a.b.wild.test"):
            assert box.resolve(name), name
        for name in ("wild.test", "xallowed.test", "a.allowed.test", "allowed.test.evil.test",
                     "xwild.test", "a.xwild.test", "test"):
            for kind in (A, AAAA, TXT):
                assert box.ask(dns_query(name, kind)).rcode == NXDOMAIN, name


def test_none_knows_no_name(start):
    with start().sandbox(NETWORK_NONE) as box:
        assert box.ask(dns_query("example.test")).rcode == NXDOMAIN


def test_resolvers_of_the_host_understand_the_stub(box, scratch):
    code = ("import socket; print(sorted({i[4][0] for i in "
            "socket.getaddrinfo('example.test', 80)}))")
    result = box.run("python3", "-c", code, scratch=scratch)
    assert result.stdout.strip() == str([box.resolve("example.test")]), result.stderr
    began = time.monotonic()
    result = box.run("python3", "-c", code, scratch=scratch)
    assert time.monotonic() - began < 2, "a resolver waited for something"


def test_other_name_servers_are_the_stub_or_nothing(box):
    with box.netns.entered():
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(1)
    sock.connect(("8.8.8.8", 53))
    sock.send(dns_query("example.test"))
    with pytest.raises(OSError):
        sock.recv(512)
    for port in (53, 853):
        with pytest.raises(ConnectionRefusedError):
            box.connect("8.8.8.8", port)


def test_dns_parse_of_this_harness_reads_what_it_should():
    query = dns_query("a.test", ident=5)
    answer = dns_parse(query[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + query[12:] +
                       b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4\1\2\3\4")
    assert answer.addresses == ["1.2.3.4"]
