# SPDX-License-Identifier: MIT
"""From inside a sandbox to the package indexes of this machine's own settings, for real."""

import os
import shutil
import subprocess

import pytest
from egress import Config, Egress


def proxy():
    """The machine's own proxy, as the product would read it."""
    for name in ("SANDBOX_PROXY", "HTTPS_PROXY", "https_proxy"):
        if os.environ.get(name):
            return Config(proxy=os.environ[name],
                          no_proxy=os.environ.get("NO_PROXY", os.environ.get("no_proxy", "")))
    return Config()


@pytest.fixture
def box():
    """A sandbox whose egress runs in the machine's own network."""
    with Egress(None, proxy()) as egress, egress.sandbox() as made:
        yield made, egress


def environment():
    """The machine's own without proxies and local package directories: only the stub leads out."""
    return {name: value for name, value in os.environ.items()
            if not name.lower().endswith("_proxy") and name != "PIP_FIND_LINKS"}


def need(*argv):
    """Skip unless the same command works outside of a sandbox."""
    if not shutil.which(argv[0]):
        pytest.skip(f"{argv[0]} is not installed")
    if subprocess.run(argv, capture_output=True, timeout=60, check=False).returncode:
        pytest.skip(f"{' '.join(argv)} does not work on this machine itself")


def test_pip(box, scratch):
    need("pip", "download", "--no-deps", "-d", str(scratch / "outside"), "six")
    result = box[0].run("pip", "download", "--no-deps", "--no-cache-dir", "-d",
                        str(scratch / "inside"), "six", scratch=scratch, env=environment())
    assert result.returncode == 0, result.stderr
    assert [path.name for path in (scratch / "inside").iterdir() if "six" in path.name]
    box[1].log("port=443 .*verdict=(done|broken) sent=[1-9]")


def test_npm(box, scratch):
    need("npm", "view", "left-pad", "version")
    result = box[0].run("npm", "view", "left-pad", "version", "--cache", str(scratch / "cache"),
                        scratch=scratch, env=environment())
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip().count(".") == 2


def test_urllib(box, scratch):
    """The index that pip itself would use."""
    need("pip", "download", "--no-deps", "-d", str(scratch / "outside"), "six")
    code = ("import urllib.request;"
            "from pip._internal.commands.install import InstallCommand as C;"
            "o, _ = C('install', '').parser.parse_args([]);"
            "u = urllib.request.urlopen(o.index_url.rstrip('/') + '/six/');"
            "print(u.status, b'six-' in u.read())")
    result = box[0].run("python3", "-c", code, scratch=scratch, env=environment())
    assert result.stdout.strip() == "200 True", result.stderr
