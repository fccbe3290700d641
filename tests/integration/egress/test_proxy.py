# SPDX-License-Identifier: MIT
"""The upstream proxy: CONNECT, what must not be led astray, and its secret (NET-06, NET-18)."""

import base64
import socket
import threading
import time

import pytest
from egress import NETWORK_ALLOWLIST, Config, echo, is_sanitized, say

PROXY, PUBLIC, INSIDE = "10.20.30.40", "203.0.113.7", "10.0.0.1"
SECRET = "s3cret-canary"
URL = f"http://agent:{SECRET}@{PROXY}:3128"
CODED = base64.b64encode(f"agent:{SECRET}".encode()).decode()


class Proxy:
    """An HTTP proxy outside; `requests` holds what came, `dial` what a target leads to."""

    def __init__(self, world, port=3128):
        self.world, self.requests = world, []
        self.server = world.serve(PROXY, port, self.handle)

    def handle(self, sock):
        """Serve one CONNECT."""
        request = b""
        while b"\r\n\r\n" not in request:
            if not (data := sock.recv(4096)):
                return
            request += data
        self.requests.append(request.decode())
        self.answer(sock)

    def answer(self, sock):
        """Stand the tunnel and be the far end of it."""
        sock.sendall(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")
        echo(sock)


def answering(data, then=None):
    """Return a Proxy class that answers with these bytes."""

    class Odd(Proxy):
        """Answers wrongly."""

        def answer(self, sock):
            sock.sendall(data)
            if then:
                then(sock)
            else:
                sock.recv(1)

    return Odd


def reset(box, target, port=80):
    """Tell whether the connection was reset without a byte."""
    try:
        box.fetch(target, port)
    except ConnectionResetError:
        return True
    return False


def test_names_go_to_the_proxy_on_every_port(start, world):
    proxy = Proxy(world)
    egress = start(Config(proxy=URL))
    with egress.sandbox() as box:
        for port in (80, 443):
            assert box.fetch("www.example.test", port, b"through") == b"through"
    assert [request.split("\r\n")[:3] for request in proxy.requests] == [
        [f"CONNECT www.example.test:{port} HTTP/1.1", f"Host: www.example.test:{port}",
         f"Proxy-Authorization: Basic {CODED}"] for port in (80, 443)]
    egress.log("name=www.example.test port=443 .*via=proxy verdict=done sent=7 received=7")


def test_a_large_transfer_through_the_tunnel(start, world):
    Proxy(world)
    payload = bytes(range(256)) * 40000
    with start(Config(proxy=URL)).sandbox() as box, box.dial("www.example.test") as sock:
        sender = threading.Thread(target=lambda: (sock.sendall(payload),
                                                  sock.shutdown(socket.SHUT_WR)))
        sender.start()
        got = b""
        while data := sock.recv(1 << 16):
            got += data
        sender.join()
        assert got == payload


@pytest.mark.parametrize("pieces", [
    [b"HTTP/1.1 200 OK\r\n\r\n220 first words"],
    [b"HTTP/1.1 200 OK\r\n", b"\r\n220 first ", b"words"],
    [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n220 ", b"first words"],
    [bytes([c]) for c in b"HTTP/1.0 200\r\nA: b\r\n\r\n220 first words"],
])
def test_what_follows_the_headers_reaches_the_client(start, world, pieces):

    def slowly(sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces[1:]:
            time.sleep(0.01)
            sock.sendall(piece)
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)

    answering(pieces[0], slowly)(world)
    with start(Config(proxy=URL)).sandbox() as box, box.dial("www.example.test") as sock:
        got = b""
        while data := sock.recv(100):
            got += data
        assert got == b"220 first words"


@pytest.mark.parametrize("data, reason", [
    (b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n",
     "other credentials .407.; check SANDBOX_PROXY"),
    (b"HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\n\r\n", "with a redirect .302."),
    (b"HTTP/1.1 200 OK\r\nLocation: http://10.0.0.1/\r\n\r\n", "answered 200 and a redirect"),
    (b"HTTP/1.1 403 Forbidden\r\n\r\n", "the proxy refused .403."),
    (b"SSH-2.0-OpenSSH_9.2\r\n", "answer is not HTTP"),
    (b"\x15\x03\x01\0\2\2\x46", "answer is not HTTP"),
    (b"HTTP/1.1 200 OK\r\nX: \x1b[2J\r\n\r\n", "answer is not HTTP"),
    (b"HTTP/1.1 " + b"9" * 9000, "headers pass 8192 bytes"),
])
def test_a_wrong_answer_is_refused_at_once(start, world, data, reason):
    inside = world.serve(INSIDE, 80, say(b"SECRET"))
    answering(data)(world)
    egress = start(Config(proxy=URL))
    with egress.sandbox() as box:
        began = time.monotonic()
        assert reset(box, "www.example.test")
        assert time.monotonic() - began < 2
        egress.log(f'name=www.example.test .*via=proxy verdict=refused .*reason=".*{reason}')
    assert inside.seen == 0


def test_a_wrong_answer_cannot_speak_in_the_log(start, world):
    answering(f"HTTP/1.1 407 {CODED} \r\nX: {SECRET}\r\n\r\n".encode())(world)
    egress = start(Config(proxy=URL))
    with egress.sandbox() as box:
        assert reset(box, "www.example.test")
    egress.close()
    assert SECRET not in egress.text and CODED not in egress.text


def test_headers_that_never_end(start, world):
    """NET-18: by size, by time; and memory stays."""

    def drip(sock):
        while True:
            sock.sendall(b"X: y\r\n")
            time.sleep(0.05)

    answering(b"HTTP/1.1 200 OK\r\n", drip)(world)
    egress = start(Config(proxy=URL), limits="dial_ms=1000")
    with egress.sandbox() as box:
        began = time.monotonic()
        socks = [box.dial("www.example.test") for _ in range(100)]
        for sock in socks:
            with pytest.raises(ConnectionResetError):
                sock.recv(1)
            sock.close()
        assert time.monotonic() - began < 5
        assert egress.rss() < 16 << 20 or is_sanitized()
        egress.log("the proxy did not answer in time")


def test_headers_that_flood(start, world):

    def flood(sock):
        while True:
            sock.sendall(b"X: y\r\n" * 10000)

    answering(b"HTTP/1.1 200 OK\r\n", flood)(world)
    egress = start(Config(proxy=URL))
    with egress.sandbox() as box:
        assert reset(box, "www.example.test")
        egress.log("headers pass 8192 bytes")


def test_a_proxy_that_ends_or_is_away(start, world):
    answering(b"HTTP/1.1 200 OK\r\nHalf", lambda sock: None)(world)
    egress = start(Config(proxy=URL))
    with egress.sandbox() as box:
        assert reset(box, "www.example.test")
        egress.log("the proxy closed the connection")
    egress = start(Config(proxy=f"http://{PROXY}:3129"))
    with egress.sandbox() as box:
        assert reset(box, "www.example.test")
        egress.log("cannot connect to the proxy: Connection refused")


def test_literals_are_checked_before_the_proxy_sees_them(start, world):
    proxy = Proxy(world)
    inside = world.serve(INSIDE, 80, say(b"SECRET"))
    with start(Config(proxy=URL)).sandbox() as box:
        for address in (INSIDE, "169.254.169.254", "127.0.0.1", "::1", "fd00:ec2::254",
                        world.HOST[0]):
            assert reset(box, address), address
        assert not proxy.requests
        assert box.fetch(PUBLIC) == b"ping"
        assert box.fetch("2001:db8:5::9") == b"ping"
    assert [request.split()[1] for request in proxy.requests] == [
        f"{PUBLIC}:80", "[2001:db8:5::9]:80"]
    assert inside.seen == 0


def test_local_names_do_not_reach_the_proxy(start, world):
    """It would resolve them in its own network."""
    proxy = Proxy(world)
    egress = start(Config(proxy=URL))
    with egress.sandbox() as box:
        for name in ("metadata.google.internal", "db.local", "intranet", "host.sandbox.internal"):
            assert reset(box, name), name
        for name in ("127.1", "2130706433", "0x7f000001"):
            assert box.resolve(name) is None
        egress.log("name=intranet .*a local name behind a proxy")
    assert not proxy.requests


def test_no_proxy_is_dialled_directly_and_checked(start, world):
    proxy = Proxy(world)
    world.serve(PUBLIC, 80, say(b"direct"))
    inside = world.serve(INSIDE, 80, say(b"SECRET"))
    hosts = f"{PUBLIC} near.test\n{INSIDE} inner.near.test\n"
    egress = start(Config(proxy=URL, no_proxy="near.test,203.0.113.0/24"),
                   mounts={"/etc/hosts": hosts})
    with egress.sandbox() as box:
        assert box.fetch("near.test") == b"direct"
        assert box.fetch(PUBLIC) == b"direct"
        assert reset(box, "inner.near.test")
        egress.log("name=inner.near.test .*refused address .private.")
    assert not proxy.requests and inside.seen == 0


def test_listed_names_are_direct_where_they_lie_inside(start, world):
    """An index inside is dialled directly; one outside still needs the proxy."""
    proxy = Proxy(world)
    world.serve(INSIDE, 80, say(b"inside"))
    hosts = f"{INSIDE} index.corp.test\n{PUBLIC} index.example.test\n"
    config = Config(proxy=URL, allow=[(f"index.{zone}.test", 80)
                                      for zone in ("corp", "example", "unknown")])
    with start(config, mounts={"/etc/hosts": hosts,
                               "/etc/nsswitch.conf": "hosts: files\n"}).sandbox() as box:
        assert box.fetch("index.corp.test") == b"inside"
        assert not proxy.requests
        assert box.fetch("index.example.test") == b"ping"
        assert box.fetch("index.unknown.test") == b"ping"
    assert [request.split()[1] for request in proxy.requests] == [
        "index.example.test:80", "index.unknown.test:80"]


def test_allowlist_holds_behind_a_proxy(start, world):
    proxy = Proxy(world)
    config = Config(proxy=URL, list=[("allowed.test", 443)])
    with start(config).sandbox(NETWORK_ALLOWLIST) as box:
        assert box.fetch("allowed.test", 443) == b"ping"
        assert reset(box, "allowed.test", 80)
        assert reset(box, PUBLIC)
    assert len(proxy.requests) == 1


def test_a_proxy_with_a_name(start, world):
    proxy = Proxy(world)
    egress = start(Config(proxy="http://proxy.corp.test:3128"),
                   mounts={"/etc/hosts": f"{PROXY} proxy.corp.test\n"})
    with egress.sandbox() as box:
        assert box.fetch("www.example.test") == b"ping"
    assert "Proxy-Authorization" not in proxy.requests[0]
    egress = start(Config(proxy="http://nowhere.corp.test:3128"),
                   mounts={"/etc/hosts": "", "/etc/nsswitch.conf": "hosts: files\n"})
    with egress.sandbox() as box:
        assert reset(box, "www.example.test")
        egress.log("cannot resolve the proxy")
