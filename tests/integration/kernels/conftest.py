# SPDX-License-Identifier: MIT
"""Let the kernels be tested with the interpreters of the built images.

$KERNEL_PYTHON, $KERNEL_NODE and $KERNEL_R name other interpreters. Where they are not set, and this
is root with the images at hand, each becomes a script that enters a read-only view of its image and
then is the interpreter: only exec, so that pid, process group and descriptors are as the harness
made them.
"""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "lib"))

AGENT = Path(os.environ.get("SANDBOX_AGENT", ROOT / "build/sandbox-agent"))
LIBEXEC = AGENT.resolve().parent / "libexec"

WRAPPER = """#!/bin/sh
exec unshare --mount --propagation private sh -ec '
    root=$1 view=$2 cwd=$3
    shift 3
    mount --bind "$root" "$view"
    mount -o remount,bind,ro "$view"
    for dir in proc dev tmp; do mount --rbind /$dir "$view/$dir"; done
    exec chroot "$view" sh -c "cd \\"\\$1\\"; shift; exec \\"\\$@\\"" sh "$cwd" "$@"
' sh {root} {view} "$PWD" {program} "$@"
"""


def image_roots():
    """Return {runtime: root} of the current images; empty without the program."""
    try:
        listed = subprocess.run(
            [AGENT, "image", "list", "--json"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return {}
    images = Path(os.environ.get("SANDBOX_IMAGE_DIR", "/var/lib/sandbox-agent/images"))
    rows = [json.loads(line) for line in listed.stdout.splitlines()]
    return {
        r["runtime"]: images / r["runtime"] / r["name"] / "rootfs"
        for r in rows
        if r.get("current", True)
    }


def wrap(scratch, runtime, root, program):
    """Write the script for one image; return its path."""
    view = scratch / f"view-{runtime}"
    view.mkdir()
    script = scratch / runtime
    script.write_text(WRAPPER.format(root=root, view=view, program=program))
    script.chmod(0o755)
    return str(script)


def use_images():
    """Set what is not set."""
    roots = image_roots()
    scratch = Path(tempfile.mkdtemp(prefix="kernels-", dir="/tmp"))
    scratch.chmod(0o755)
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    for name in ("python", "r"):
        # What the image sees of the host is /tmp, so the kernels are copied there.
        shutil.copytree(LIBEXEC / "kernels" / name, scratch / f"kernel-{name}")
    if "python" in roots and "KERNEL_PYTHON" not in os.environ:
        os.environ["KERNEL_PYTHON"] = wrap(scratch, "python", roots["python"], "python3")
        os.environ["KERNEL_PYTHON_SCRIPT"] = str(scratch / "kernel-python/kernel.py")
    if "r" in roots and "KERNEL_R" not in os.environ:
        os.environ["KERNEL_R"] = wrap(scratch, "r", roots["r"], "R")
        os.environ["KERNEL_R_DIR"] = str(scratch / "kernel-r")
    if "node" in roots:
        os.environ.setdefault("KERNEL_NODE", str(roots["node"] / "usr/local/bin/node"))


if os.geteuid() == 0 and LIBEXEC.exists():
    use_images()
