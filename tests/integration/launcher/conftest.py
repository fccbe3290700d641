# SPDX-License-Identifier: MIT
"""Keepers for the tests of sandbox-launch: as root, rootless with two ids, rootless with one id.

They need root, which makes the ordinary user. Images are read from SANDBOX_IMAGE_DIR.
"""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "lib"))

import keeper as lib  # noqa: E402  pylint: disable=wrong-import-position

MODES = ("root", "user", "user-one-id")
INTROSPECT = "/tmp/sbx-introspect"


@pytest.fixture(autouse=True, scope="session")
def _needs():
    if os.getuid() != 0:
        pytest.skip("the tests of the launcher need root")
    for program in ("launcher/sandbox-launch", "guest/init/sandbox-init", "egress/sandbox-egress"):
        if not (lib.BUILD_DIR / program).exists():
            pytest.fail(f"{lib.BUILD_DIR / program} is not built")


@pytest.fixture(scope="session")
def scratch():
    """A directory that every user can enter."""
    path = Path(tempfile.mkdtemp(prefix="sbx-launcher-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def _find_image(runtime):
    base = Path(os.environ.get("SANDBOX_IMAGE_DIR", "/var/lib/sandbox-agent/images"))
    found = [path for path in base.glob(f"{runtime}/*/rootfs") if (path / "usr").is_dir()]
    if not found:
        pytest.skip(f"there is no image '{runtime}' below {base}; sandbox-agent image build")
    return max(found, key=lambda path: path.stat().st_mtime)


@pytest.fixture(scope="session")
def image(scratch):
    """The Python image, at a path that every user may see."""
    point = scratch / "image"
    point.mkdir()
    subprocess.run(["mount", "--bind", _find_image("python"), point], check=True)
    yield point
    subprocess.run(["umount", "-l", point], check=True)
    point.rmdir()


@pytest.fixture
def bare(scratch):
    """A new image with the directories that are needed, and nothing in them."""
    path = Path(tempfile.mkdtemp(prefix="bare-", dir=scratch))
    path.chmod(0o755)
    for name in ("dev", "proc", "tmp", "workspace", "home/sandbox", "etc"):
        (path / name).mkdir(parents=True)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def user():
    """(uid, gid) of an ordinary user with subordinate ids, who is gone afterwards."""
    name = f"sbxtest{os.getpid()}"
    subprocess.run(["useradd", "--no-create-home", "--shell", "/bin/sh", name], check=True)
    entry = pwd.getpwnam(name)
    if f"{name}:" not in Path("/etc/subuid").read_text():
        subprocess.run(["usermod", "--add-subuids", "400000-465535", "--add-subgids",
                        "400000-465535", name], check=True)
    yield entry.pw_uid, entry.pw_gid
    subprocess.run(["userdel", name], check=True, stderr=subprocess.DEVNULL)


@pytest.fixture(scope="session")
def introspect(scratch):
    """The static test program, built; a mount that brings it inside."""
    binary = scratch / "sbx-introspect"
    subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-static", "-o", binary,
                    ROOT / "tests/lib/sbx-introspect.c"], check=True)
    return (str(binary), INTROSPECT, 0)


class Maker:
    """Starts keepers that end with their scope, and then checks that nothing of them is left."""

    def __init__(self, directory, user):
        self.directory, self.user, self.keepers = directory, user, []

    def __call__(self, mode="root", env=None, **options):
        path = Path(tempfile.mkdtemp(prefix="run-", dir=self.directory)) / "instance"
        env = dict(env or {})
        if mode != "root":
            os.chown(path.parent, *self.user)
            options["user"] = self.user
        if mode == "user-one-id":
            env["SBX_WITHOUT"] = ",".join(filter(None, [env.get("SBX_WITHOUT"), "subuid"]))
        keeper = lib.Keeper(path, env=env, **options)
        self.keepers.append(keeper)
        return keeper

    def close(self):
        """End all; what is left behind is a failure."""
        for keeper in self.keepers:
            keeper.stop()
            left = keeper.leftovers()
            assert not left, f"left behind: {left}"
            shutil.rmtree(keeper.dir.parent)


@pytest.fixture
def start(scratch, user):
    """start(mode="root", env={}) -> Keeper"""
    maker = Maker(scratch, user)
    yield maker
    maker.close()


@pytest.fixture(scope="module", params=MODES)
def mode(request):
    """How the keeper runs."""
    return request.param


@pytest.fixture(scope="module")
def shared(scratch, user, image, introspect, mode):
    """One sandbox of the Python image for all tests of a module that only look, in each mode."""
    maker = Maker(scratch, user)
    sandbox = maker(mode).open(image, mounts=[introspect], pids=128)
    yield sandbox
    sandbox.close()
    maker.close()
