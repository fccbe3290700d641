# SPDX-License-Identifier: MIT
"""Start guest/init for a test, and tell whether processes of a sandbox live.

SANDBOX_INIT names the program (default: that of build/). Without root there is no pid namespace of
its own with several ids, and everything here is skipped.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/lib"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from control import Init  # noqa: E402
from places import BINARY, FAKE  # noqa: E402


# A parent may ignore a signal that glibc keeps for itself (32); init must not hand that on.
ctypes.CDLL(None).syscall(13 if os.uname().machine == "x86_64" else 134, 32,
                          (ctypes.c_ulong * 8)(signal.SIG_IGN), None, 8)


def pytest_collection_modifyitems(items):
    """Skip what needs root or the program, with the reason."""
    reason = None
    if os.geteuid() != 0:
        reason = "needs root: pid namespace and two ids"
    elif not BINARY.exists():
        reason = f"{BINARY} is not built"
    for item in items:
        if reason and item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def start():
    """Start inits that end with the test."""
    running = []

    def start_init(*options, **named) -> Init:
        init = Init(BINARY, *options, **named)
        running.append(init)
        return init

    yield start_init
    for init in running:
        init.close()


@pytest.fixture
def init(start):
    """One init."""
    return start()


@pytest.fixture
def client(init):
    """A connection to it."""
    with init.connect() as connection:
        yield connection


@pytest.fixture
def fake(client):
    """The connection, with a fake kernel that is ready."""
    end = client.kernel(["/usr/bin/python3", "-I", str(FAKE)]).wait().end
    assert end["status"] == "ok", end
    return client
