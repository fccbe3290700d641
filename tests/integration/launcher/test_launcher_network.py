# SPDX-License-Identifier: MIT
"""A sandbox's network as the launcher makes it: none, brokered listeners, and their end."""

import os
import signal
import time
from pathlib import Path

import pytest

import keeper as lib

CONNECT = """
import errno, socket
results = []
for family, address in ((socket.AF_INET, "198.51.100.1"), (socket.AF_INET, "10.0.0.1"),
                        (socket.AF_INET, "169.254.169.254"), (socket.AF_INET6, "2001:db8::1")):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        s = socket.socket(family, kind)
        s.settimeout(3)
        try:
            s.connect((address, 80))
            results.append("ok")
        except OSError as e:
            results.append(errno.errorcode.get(e.errno, str(e)))
print(*results)
"""

RAW = """
import errno, socket
results = []
for options in ((socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_PACKET, socket.SOCK_RAW, 0)):
    try:
        socket.socket(*options); results.append("ok")
    except OSError as e:
        results.append(errno.errorcode[e.errno])
s = socket.socket()
for level, name in ((socket.SOL_IP, 19), (socket.SOL_SOCKET, 36)):
    try:
        s.setsockopt(level, name, 1); results.append("ok")
    except OSError as e:
        results.append(errno.errorcode[e.errno])
print(*results)
"""

NAMES = "import socket; print(socket.gethostbyname('example.com'))"


@pytest.mark.parametrize("mode", ("root", "user", "user-one-id"))
def test_net_01_none_reaches_nothing(start, image, mode):
    sandbox = start(mode).open(image)
    assert set(sandbox.python(CONNECT).split()) == {"ENETUNREACH"}
    assert sandbox.run("python3", "-c", NAMES).end["status"] == "error"
    # lo is there, and is its own.
    assert sandbox.python("import socket as s; a = s.create_server(('127.0.0.1', 0)); "
                          "s.create_connection(a.getsockname()); print('fine')") == "fine\n"
    sandbox.close()


def test_net_12_13_no_raw_sockets_no_changes(start, image):
    sandbox = start().open(image, network="public", ports=[80])
    found = sandbox.python(RAW).split()
    assert found[0] == "EPERM" and found[1] == "EAFNOSUPPORT"
    assert found[2:4] == ["EPERM", "EPERM"]
    sandbox.close()


@pytest.mark.parametrize("mode", ("root", "user"))
def test_listeners_are_served_by_egress(start, image, mode):
    keeper = start(mode)
    sandbox = keeper.open(image, network="public", ports=[80, 443])
    assert sandbox.python(NAMES).startswith(("198.18.", "198.19."))
    tables = sandbox.run("cat", "/proc/net/tcp6", "/proc/net/udp").stdout.decode()
    assert ":0050 " in tables and ":01BB " in tables and ":0035 " in tables
    egress = egress_of(keeper)
    uid = os.stat(f"/proc/{egress}").st_uid
    assert uid == (0x70000000 if mode == "root" else keeper.user[0])
    # A port without a listener is refused by the sandbox itself.
    refused = sandbox.run("python3", "-c",
                          "import socket; socket.create_connection(('10.1.1.1', 25), 3)")
    assert b"ConnectionRefused" in refused.stderr
    sandbox.close()


def egress_of(keeper):
    """The pid of the keeper's egress process."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        children = Path(f"/proc/{keeper.process.pid}/task/{keeper.process.pid}/children").read_text()
        for pid in children.split():
            if "sandbox-egress" in Path(f"/proc/{pid}/cmdline").read_bytes().decode():
                return int(pid)
        time.sleep(0.05)
    raise AssertionError("no egress process")


@pytest.mark.parametrize("mode", ("root", "user"))
def test_the_install_network_goes_away(start, image, mode):
    keeper = start(mode)
    sandbox = keeper.open(image, flags=lib.INSTALL_NETWORK, ports=[80])
    assert sandbox.python(NAMES).startswith(("198.18.", "198.19."))
    assert keeper.request(lib.SEAL, sandbox.id).kind == lib.DONE
    assert set(sandbox.python(CONNECT).split()) == {"ENETUNREACH"}
    tables = sandbox.run("cat", "/proc/net/tcp6", "/proc/net/udp").stdout.decode()
    assert ":0050 " not in tables and ":0035 " not in tables
    # Nobody on the host holds a descriptor of that namespace any more.
    assert keeper.request(lib.SEAL, sandbox.id).kind == lib.DONE
    sandbox.close()


def test_net_17_egress_is_killed_and_comes_back(start, image):
    keeper = start()
    sandbox = keeper.open(image, network="public", ports=[80])
    assert sandbox.python(NAMES).startswith(("198.18.", "198.19."))
    for _ in range(2):
        pid = egress_of(keeper)
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and egress_of(keeper) == pid:
            time.sleep(0.05)
        assert egress_of(keeper) != pid
        assert sandbox.python(NAMES).startswith(("198.18.", "198.19."))
    sandbox.close()


def test_egress_that_dies_during_the_end(start, image):
    keeper = start()
    sandbox = keeper.open(image, network="public", ports=[80])
    os.kill(egress_of(keeper), signal.SIGSTOP)
    before = time.monotonic()
    assert sandbox.close().kind == lib.ENDED
    assert time.monotonic() - before < 5


def test_egress_ends_with_the_keeper(start, image):
    keeper = start()
    keeper.open(image, network="public", ports=[80], lease_ms=500)
    pid = egress_of(keeper)
    keeper.kill()
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}/exe").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    state = Path(f"/proc/{pid}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"
    keeper.start()
