# SPDX-License-Identifier: MIT
"""The program as an ordinary user: subordinate ids, no control groups, the rest of the profile."""

import json
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import index
import pytest
import sa as sa_module

IMAGES = os.environ.get("SANDBOX_IMAGE_DIR", "/var/lib/sandbox-agent/images")

USER = "sbx-rootless"


@pytest.fixture(scope="module")
def rootless():
    """Runs the program as an ordinary user: rootless("run", "-c", "1")."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make an ordinary user")
    if not shutil.which("newuidmap"):
        pytest.skip("needs newuidmap")
    made = subprocess.run(["useradd", "--create-home", USER], check=False).returncode == 0
    # The images of root lie below a directory of mode 0700, as do pytest's own directories, and
    # another run of pytest sets that mode again.
    place = Path(tempfile.mkdtemp(prefix="images-"))
    place.chmod(0o755)
    view = place / "view"
    view.mkdir()
    subprocess.run(["mount", "--bind", IMAGES, view], check=True)
    view.chmod(view.stat().st_mode | 0o055)
    home = pwd.getpwnam(USER).pw_dir

    def call(*words, env=None, timeout=120):
        settings = {
            "HOME": home,
            "PATH": os.environ["PATH"],
            "SANDBOX_IMAGE_DIR": str(view),
            **{k: v for k, v in os.environ.items() if k == "SSL_CERT_FILE"},
            **(env or {}),
        }
        return subprocess.run(
            [
                "setpriv",
                "--reuid",
                USER,
                "--regid",
                USER,
                "--clear-groups",
                "--",
                sa_module.BUILD / "sandbox-agent",
                *map(str, words),
            ],
            cwd="/",
            env=settings,
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    yield call
    subprocess.run(["umount", view], check=True)
    view.rmdir()
    place.rmdir()
    if made:
        subprocess.run(["userdel", "--remove", USER], check=False, stderr=subprocess.DEVNULL)


def build_is_reachable():
    """Whether an ordinary user can read the build tree."""
    return all(
        p.stat().st_mode & 0o005 == 0o005 for p in [sa_module.BUILD, *sa_module.BUILD.parents]
    )


pytestmark = pytest.mark.skipif(
    not build_is_reachable(), reason="the build tree is closed to other users"
)


@pytest.mark.parametrize(
    "language,cells,out",
    [
        ("python", ("x = 41", "x + 1"), "42\n"),
        ("node", ("const x = 41", "x + 1"), "42\n"),
        ("r", ("x <- 41", "x + 1"), "[1] 42\n"),
    ],
)
def test_cells_run(rootless, language, cells, out):
    done = rootless("run", "-l", language, "-c", cells[0], "-c", cells[1])
    assert (done.stdout, done.returncode) == (out, 0), done.stderr


def test_never_the_callers_own_id_for_user_code(rootless):
    done = rootless(
        "run", "-c", "import os; print(os.getuid()); print(open('/proc/self/uid_map').read())"
    )
    uid, *lines = done.stdout.split("\n")
    maps = {
        int(inside): int(outside)
        for inside, outside, _ in (line.split() for line in lines if line.strip())
    }
    assert uid == "65532" and maps[65532] not in (0, 65534, pwd.getpwnam(USER).pw_uid)
    assert maps[0] == pwd.getpwnam(USER).pw_uid


def test_memory_limit_by_polling(rootless):
    done = rootless(
        "run",
        "--json",
        "--memory",
        "256m",
        "-c",
        "blob = bytearray(3 * 1024**3); blob[::4096] = b'x' * len(blob[::4096])\n"
        "import time; time.sleep(5)",
    )
    result = json.loads(done.stdout)
    assert (result["status"], result["cause"]) == ("died", "oom")


def test_process_limit(rootless):
    done = rootless(
        "run",
        "--json",
        "-c",
        "import os\nwhile True: os.fork()",
        env={"CONTAINER_PIDS_LIMIT": "64"},
    )
    assert json.loads(done.stdout)["cause"] == "pids"


def test_network_and_installs(rootless):
    done = rootless("run", "--dep", "six", "-c", "import six; print(six.__name__)", timeout=300)
    assert done.stdout == "six\n", done.stderr
    done = rootless(
        "run",
        "--network",
        "public",
        "-c",
        f"import urllib.request\nprint(urllib.request.urlopen('{index.pip_index()}six/').status)",
    )
    assert done.stdout == "200\n", done.stderr


def test_doctor_tells_what_is_less(rootless):
    done = rootless("doctor")
    assert done.returncode == 0
    assert "note  memory-cgroup" in done.stdout and "fix:" in done.stdout


def test_one_id_is_degraded_and_named(rootless):
    saved = open("/etc/subuid", encoding="ascii").read()
    try:
        with open("/etc/subuid", "w", encoding="ascii") as f:
            f.write(
                "".join(line for line in saved.splitlines(True) if not line.startswith(USER + ":"))
            )
        done = rootless("run", "-c", "print(6 * 7)")
        assert done.stdout == "42\n", done.stderr
        assert (
            "one uid" in rootless("doctor").stdout or "subordinate-ids" in rootless("doctor").stdout
        )
    finally:
        with open("/etc/subuid", "w", encoding="ascii") as f:
            f.write(saved)
