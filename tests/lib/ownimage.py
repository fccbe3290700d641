# SPDX-License-Identifier: MIT
"""A helper directory with an image recipe of its own: a first use builds an image in seconds.

The recipe copies the Node image that is there already, and fails where its privileges are gone.
"""

import json
import os
import subprocess
from pathlib import Path

BUILD = """#!/bin/sh
set -e
umask 022
cd "$2"
! grep -q '^CapEff:.0*$' /proc/self/status || { echo 'no capabilities left'; exit 1; }
mkdir rootfs
for dir in bin lib lib64 usr etc opt; do cp -a --reflink=auto "$REAL_ROOT/$dir" rootfs/; done
mkdir -p rootfs/proc rootfs/dev rootfs/tmp rootfs/workspace rootfs/home/sandbox
printf '%s\\n' 'bytes 1000' 'packages 2' "version $1 1.2.3" >facts
"""


def environment(agent, directory):
    """Make the helper directory; return the settings that lead a program to it, and the recipe."""
    images = os.environ["SANDBOX_IMAGE_DIR"]
    listed = subprocess.run([agent, "image", "list", "--json"], check=True, capture_output=True,
                            text=True).stdout.splitlines()
    node, = (r for r in map(json.loads, listed) if r["runtime"] == "node" and r["current"])
    libexec = Path(directory, "libexec")
    libexec.mkdir()
    for entry in (Path(agent).parent / "libexec").iterdir():
        if entry.name != "images":
            (libexec / entry.name).symlink_to(entry.resolve())
    for name in ("common", "node"):
        (libexec / "images" / name).mkdir(parents=True)
        (libexec / "images" / name / "packages").write_text("hello\n")
    (libexec / "images/common/suite").write_text("trixie\n")
    recipe = libexec / "images/build"
    recipe.write_text(BUILD)
    recipe.chmod(0o755)
    return {
        "SANDBOX_AGENT_LIBEXEC": str(libexec),
        "SANDBOX_IMAGE_DIR": str(Path(directory, "images")),
        "REAL_ROOT": f"{images}/node/{node['name']}/rootfs",
    }, recipe
