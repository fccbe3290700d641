# SPDX-License-Identifier: MIT
"""Addresses of the package registries that this machine uses; tests name no host themselves."""

import functools
import os
import subprocess
import sys


@functools.cache
def pip_index():
    """Return the address of the Python index, with a slash at its end."""
    if url := os.environ.get("PIP_INDEX_URL"):
        return url.rstrip("/") + "/"
    known = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True,
        text=True,
        check=False,
    )
    if known.returncode == 0:
        return known.stdout.strip().rstrip("/") + "/"
    default = subprocess.run(
        [
            sys.executable,
            "-c",
            "from pip._internal.cli import cmdoptions; print(cmdoptions.index_url().default)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return default.stdout.strip().rstrip("/") + "/"


@functools.cache
def npm_registry():
    """Return the address of the npm registry, with a slash at its end."""
    known = subprocess.run(
        ["npm", "config", "get", "registry"], capture_output=True, text=True, check=True
    )
    return known.stdout.strip().rstrip("/") + "/"
