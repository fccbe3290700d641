# SPDX-License-Identifier: MIT
"""The leak checker must see a leak; otherwise no test that uses it shows anything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

import leaks  # noqa: E402 (the path above comes first)


def kinds_added(before):
    return set(leaks.snapshot(before.state_dir, before.instance).added_since(before))


def test_nothing_is_nothing(tmp_path):
    leaks.assert_none(leaks.snapshot(tmp_path, "nobody"), within=0)


def test_run_directory_and_shared_memory(tmp_path):
    before = leaks.snapshot(tmp_path)
    (tmp_path / "run/left").mkdir(parents=True)
    shared = Path(f"/dev/shm/leaks-test-{os.getpid()}")
    shared.touch()
    try:
        assert {"run directories", "shared memory"} <= kinds_added(before)
        with pytest.raises(AssertionError, match="run directories: .*/run/left"):
            leaks.assert_none(before, within=0.2)
    finally:
        shared.unlink()


def test_process_and_network_namespace():
    before = leaks.snapshot()
    with subprocess.Popen(["unshare", "--user", "--net", "sh", "-c", "echo; exec sleep 30"],
                          stdout=subprocess.PIPE) as process:
        try:
            if not process.stdout.readline():
                pytest.skip("no user namespaces here")
            assert {"processes", "network namespaces"} <= kinds_added(before)
        finally:
            process.kill()
    left = leaks.snapshot().added_since(before).get("processes", [])
    assert not [item for item in left if item.startswith(f"{process.pid} ")]


def test_an_instance_is_seen_by_its_command_line(tmp_path):
    before = leaks.snapshot(tmp_path, "leaktest")
    command = ["unshare", "--user", "sh", "-c", "echo; sleep 30 # /run/leaktest-0/"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            if not process.stdout.readline():
                pytest.skip("no user namespaces here")
            assert "processes" in kinds_added(before)
            assert not leaks.snapshot(tmp_path, "other").found["processes"]
        finally:
            process.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")
def test_mount(tmp_path):
    before = leaks.snapshot(tmp_path)
    (tmp_path / "m").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", tmp_path / "m"], check=True)
    try:
        assert "mounts" in kinds_added(before)
    finally:
        subprocess.run(["umount", tmp_path / "m"], check=True)
