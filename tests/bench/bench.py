#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Times sessions through the C library beside the image's own interpreter, in one run.

Everything is measured back to back and with idle gaps, since a machine that slept is slower. The
interpreter is started from the image's tree by chroot: bare, and with what a kernel imports. Where
Docker runs, the same tree is imported there and `docker exec` is measured too. The exit status
tells whether the goals hold.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))

import sa  # noqa: E402 (the path above comes first)

IMAGES = Path(os.environ.get("SANDBOX_IMAGE_DIR", "/var/lib/sandbox-agent/images"))
CHROOT = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin")
GAP = 0.06
COLD_ROUNDS = 9
KERNEL = "/opt/sandbox-agent/kernel"
BARE = {
    "python": ["python3", "-c", "1+1"],
    "node": ["node", "-e", "1+1"],
    "r": ["Rscript", "-e", "1+1"],
}
# What the kernels import before the first cell; for Python only, where it is most of the start.
LOADED = {"python": ["python3", "-s", "-c", f"import sys; sys.path.insert(0, {KERNEL!r}); "
                     "import sandbox_kernel.kernel"]}

HANDSHAKE = [
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"}}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]

GOAL_BARE = 8
GOAL_DOCKER = 30
GOAL_COLD_FACTOR, GOAL_COLD_MS = 1.3, 20
GOAL_MCP_FACTOR, GOAL_MCP_MS = 2, 0.3


def timed(function, rounds, gap=0.0):
    """Call a function again and again and return the milliseconds that each call took."""
    times = []
    for _ in range(rounds):
        time.sleep(gap)
        start = time.perf_counter()
        function()
        times.append((time.perf_counter() - start) * 1000)
    return times


def show(what, times):
    """Print a row and return its median."""
    ordered = sorted(times)
    p90, p99 = (ordered[min(len(ordered) - 1, len(ordered) * p // 100)] for p in (90, 99))
    print(f"  {what:32}{statistics.median(times):9.2f}{p90:9.2f}{p99:9.2f}  n={len(times)}",
          flush=True)
    return statistics.median(times)


def rootfs(language):
    """Return the image's tree, or None where there is no image."""
    output = subprocess.run([ROOT / "build/sandbox-agent", "image", "list", "--json"],
                            capture_output=True, text=True, check=True).stdout
    for line in output.splitlines():
        image = json.loads(line)
        if image["runtime"] == language and image["current"]:
            return IMAGES / language / image["name"] / "rootfs"
    return None


def chrooted(root, command):
    """Return a function that runs a command in the image's tree."""
    def call():
        subprocess.run([CHROOT, root, *command], check=True, stdout=subprocess.DEVNULL,
                       env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp"})
    return call


def measure_cold(library, language, root):
    """Print the rows of a cold start and of what it is compared with, taken in turns."""
    cold, loaded, sessions = [], [], []

    def create():
        sessions.append(library.create(language))
        assert sessions[-1].execute("1+1")["status"] == "ok"

    for _ in range(COLD_ROUNDS):
        cold += timed(create, 1, GAP)
        sessions.pop().stop()
        if language in LOADED:
            loaded += timed(chrooted(root, LOADED[language]), 1, GAP)
    cold_ms = show("create to first result", cold)
    if not loaded:
        return True
    loaded_ms = show("interpreter and imports", loaded)
    return verdict("create to first result, ms", cold_ms,
                   GOAL_COLD_FACTOR * loaded_ms + GOAL_COLD_MS, at_least=False)


def measure_calls(library, language):
    """Print the rows of calls in one session and return the median of a cell."""
    session = library.create(language)
    for _ in range(20):
        session.execute("1+1")
    cell_ms = show("cell 1+1", timed(lambda: session.execute("1+1"), 200))
    show("cell 1+1, idle gaps", timed(lambda: session.execute("1+1"), 50, GAP))
    show("terminal: true", timed(lambda: session.terminal("true"), 50))
    show("terminal: true, idle gaps", timed(lambda: session.terminal("true"), 30, GAP))
    session.stop()
    return cell_ms


def docker_answers():
    """Tell whether a Docker engine can be reached."""
    return shutil.which("docker") is not None and subprocess.run(
        ["docker", "info"], capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def docker_engine():
    """Have a Docker engine: the one that runs, or one of our own without a network."""
    program = shutil.which("dockerd", path="/usr/sbin:/usr/bin")
    if docker_answers() or program is None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="bench-docker-") as scratch:
        os.environ["DOCKER_HOST"] = f"unix://{scratch}/socket"
        with open(f"{scratch}/log", "wb") as log, subprocess.Popen(
                [program, "--data-root", f"{scratch}/data", "--exec-root", f"{scratch}/exec",
                 "--host", os.environ["DOCKER_HOST"], "--pidfile", f"{scratch}/pid",
                 "--iptables=false", "--ip6tables=false", "--bridge=none"],
                stdout=log, stderr=log) as engine:
            for _ in range(60):
                if docker_answers() or engine.poll() is not None:
                    break
                time.sleep(0.5)
            try:
                yield
            finally:
                engine.terminate()
                engine.wait(timeout=60)


def measure_docker(root, language):
    """Print the Docker row and return its median, or None where Docker does not run."""
    docker = "docker"
    if not docker_answers():
        print("  docker exec                      skipped: no Docker here")
        return None
    name = f"sandbox-agent-bench-{os.getpid()}"
    with subprocess.Popen(["tar", "-C", root, "--one-file-system", "-c", "."],
                          stdout=subprocess.PIPE) as tar:
        subprocess.run([docker, "import", "-", name], stdin=tar.stdout, check=True,
                       stdout=subprocess.DEVNULL)
    try:
        subprocess.run([docker, "run", "-d", "--name", name, "--network", "none", name,
                        "sleep", "600"], check=True, stdout=subprocess.DEVNULL)
        return show("docker exec, bare interpreter", timed(
            lambda: subprocess.run([docker, "exec", name, *BARE[language]], check=True,
                                   stdout=subprocess.DEVNULL), 10, GAP))
    finally:
        subprocess.run([docker, "rm", "-f", name], capture_output=True, check=False)
        subprocess.run([docker, "rmi", name], capture_output=True, check=False)


def verdict(what, ratio, goal, at_least=True):
    """Print whether a goal holds and return it."""
    holds = ratio >= goal if at_least else ratio <= goal
    print(f"  {what}: {ratio:.1f} (goal {'>=' if at_least else '<='} {goal:.1f})"
          f" {'ok' if holds else 'MISSED'}")
    return holds


def bench(library, language):
    """Measure one language and return whether its goals hold."""
    root = rootfs(language)
    if root is None:
        print(f"{language}: skipped: no image; make it with: sandbox-agent image build {language}")
        return True
    print(f"{language}{'':28}{'p50 ms':>9}{'p90':>9}{'p99':>9}")
    holds = measure_cold(library, language, root)
    cell_ms = measure_calls(library, language)
    bare_ms = show("bare interpreter", timed(chrooted(root, BARE[language]), 15, GAP))
    holds &= verdict("bare interpreter / cell", bare_ms / cell_ms, GOAL_BARE)
    docker_ms = measure_docker(root, language)
    if docker_ms is not None:
        holds &= verdict("docker exec / cell", docker_ms / cell_ms, GOAL_DOCKER)
    return holds


class McpPipe:
    """A client of `sandbox-agent mcp` that does nothing but write a line and read one."""

    def __init__(self):
        self.process = subprocess.Popen([sa.BUILD / "sandbox-agent", "mcp"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, bufsize=0)
        self.lines = os.fdopen(self.process.stdout.fileno(), "rb", closefd=False)
        for message in HANDSHAKE:
            self.write(message)
        assert "result" in json.loads(self.lines.readline())

    def write(self, message):
        """Send one message."""
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    def call(self, tool, **arguments):
        """Call a tool; return its payload."""
        self.write({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                    "params": {"name": tool, "arguments": arguments}})
        return json.loads(self.lines.readline())["result"]["structuredContent"]

    def close(self):
        """End of input, and of the process."""
        self.process.stdin.close()
        self.process.wait(30)


def measure_mcp(library):
    """Print the rows of one cell by tools/call through stdio and by the C API, in turns."""
    print(f"mcp{'':31}{'p50 ms':>9}{'p90':>9}{'p99':>9}")
    session, pipe = library.create("python"), McpPipe()
    other = pipe.call("create_session", language="python")["session_id"]

    def through_api():
        assert session.execute("1+1")["success"]

    def through_mcp():
        assert pipe.call("execute_code", session_id=other, code="1+1")["success"]

    times = {through_api: [], through_mcp: []}
    for _ in range(20):
        for function in times:
            function()
    for _ in range(300):
        for function, taken in times.items():
            taken += timed(function, 1)
    api_ms = show("C API: cell 1+1", times[through_api])
    mcp_ms = show("tools/call on stdio: cell 1+1", times[through_mcp])
    pipe.close()
    session.stop()
    bound = GOAL_MCP_FACTOR * api_ms + GOAL_MCP_MS
    holds = mcp_ms <= bound
    print(f"  tools/call {mcp_ms:.2f} ms, C API {api_ms:.2f} ms"
          f" (goal <= {GOAL_MCP_FACTOR} x {api_ms:.2f} + {GOAL_MCP_MS} = {bound:.2f})"
          f" {'ok' if holds else 'MISSED'}")
    return holds


def with_kernels_bound():
    """Bind kernels and /dev into read-only views of the images, in a mount namespace of our own."""
    if os.environ.get("BENCH_BOUND"):
        return
    script = []
    for language in BARE:
        root = rootfs(language)
        if root is not None and (root / KERNEL.lstrip("/")).is_dir():
            kernel = ROOT / "build/libexec/kernels" / language
            script += [
                f"mount --bind '{root}' '{root}'",
                f"mount --bind '{kernel}' '{root}{KERNEL}'",
                f"mount --rbind /dev '{root}/dev'",
                f"mount -t tmpfs none '{root}/tmp'",
                f"mount -o remount,bind,ro '{root}'",
            ]
    script.append('exec "$@"')
    os.environ["BENCH_BOUND"] = "1"
    os.execvp("unshare", ["unshare", "-m", "sh", "-ec", "\n".join(script), "sh", sys.executable,
                          *sys.argv])


def main():
    """Measure the languages named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("languages", nargs="*", default=list(BARE))
    languages = parser.parse_args().languages
    if os.geteuid() != 0:
        sys.exit("bench: run as root: the bare interpreter is started by chroot")
    with_kernels_bound()
    with docker_engine(), sa.Library(no_build=1) as library:
        results = [bench(library, language) for language in languages]
        if "python" in languages and rootfs("python") is not None:
            results.append(measure_mcp(library))
    sys.exit(0 if all(results) else 1)


main()
