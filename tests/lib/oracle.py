# SPDX-License-Identifier: MIT
"""The official Agent Server in JavaScript, in memory, with the graph of clients/oracle.

    with Oracle() as oracle:
        oracle.url

`tools/setup test oracle` installs it; without it Missing is raised.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "build/oracle/node_modules"
NODE = ROOT / "build/clients/node_modules/.bin/node"
SOURCES = ROOT / "tests/integration/clients/oracle"
START_S = 60


class Missing(Exception):
    """It is not installed."""


def free_port():
    """Return a port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Oracle:
    """The running server; a context manager."""

    def __init__(self):
        """Start it; it takes some seconds."""
        if not PACKAGES.is_dir() or not NODE.exists():
            raise Missing("run tools/setup test oracle")
        self.directory = tempfile.TemporaryDirectory()
        place = Path(self.directory.name)
        for name in ("graph.ts", "langgraph.json", "package.json"):
            shutil.copy(SOURCES / name, place)
        (place / "node_modules").symlink_to(PACKAGES)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.log = (place / "log").open("w+b")
        self.process = subprocess.Popen(
            [NODE, PACKAGES / "@langchain/langgraph-cli/dist/cli/cli.mjs", "dev", "--host",
             "127.0.0.1", "--port", str(port), "--no-browser", "--no-reload"],
            cwd=place, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            start_new_session=True,
            env=os.environ | {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1"})
        self._wait()

    def _answers(self):
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError), \
                urllib.request.urlopen(f"{self.url}/ok", timeout=2) as reply:
            return reply.status == 200
        return False

    def _wait(self):
        deadline = time.monotonic() + START_S
        while not self._answers():
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.log.seek(0)
                text = self.log.read().decode(errors="replace")
                self.close()
                raise AssertionError(f"the official server does not start: {text[-3000:]}")
            time.sleep(0.1)

    def close(self):
        """End it, with the worker that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, 15)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()
        self.log.close()
        self.directory.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
