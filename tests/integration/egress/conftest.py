# SPDX-License-Identifier: MIT
"""Worlds for the tests of sandbox-egress. They need root, for network namespaces; nothing that a
test sends leaves the namespaces which it made, except in the tests of the package indexes."""

import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lib"))

import egress as lib  # pylint: disable=wrong-import-position


@pytest.fixture(autouse=True)
def _needs():
    if os.getuid() != 0:
        pytest.skip("network namespaces need root")
    if not lib.binary().exists():
        pytest.fail(f"{lib.binary()} is not built")


@pytest.fixture
def world():
    """A host namespace and an outside."""
    with lib.World() as made:
        yield made


@pytest.fixture
def scratch(tmp_path):
    """A directory that other users can read."""
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(0o755)
    return tmp_path


@pytest.fixture
def start(world, scratch):
    """Return a function that starts egress in the world's host, with the settings given."""
    running = []

    def begin(config=None, netns=world.host, **options):
        egress = lib.Egress(netns, config or lib.Config(), scratch=scratch, **options)
        running.append(egress)
        return egress

    yield begin
    for egress in running:
        if egress.process.poll() is None:
            assert egress.close() == 0, egress.text
        else:  # it refused its configuration, or the test killed it; anything else is a crash
            assert egress.process.returncode in (0, 3, -signal.SIGKILL), egress.text
            egress.control.close()
