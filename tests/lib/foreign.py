# SPDX-License-Identifier: MIT
"""Clients in environments of their own, which are made when the first test asks for them.

    foreign.node("web", "clients/web/sdk.mjs", {"url": ...})   # what the script prints, as JSON

A script lies below tests/integration; it gets its options as JSON in its first argument.
"""

import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NODE = ROOT / "build/clients/node_modules/.bin/node"
QUIET = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "NO_COLOR": "1",
         "COPILOTKIT_TELEMETRY_DISABLED": "true", "DO_NOT_TRACK": "1"}


@functools.cache
def environment(name):
    """Make an environment of tools/setup if need be; return its directory."""
    done = subprocess.run([ROOT / "tools/setup", name], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, f"tools/setup {name}: {done.stderr[-3000:]}"
    return ROOT / "build" / name


@contextlib.contextmanager
def home(name, script=None):
    """A directory in which the packages of an environment are found, and the script's copy."""
    with tempfile.TemporaryDirectory(prefix="foreign-") as directory:
        directory = Path(directory)
        (directory / "node_modules").symlink_to(environment(name) / "node_modules")
        if script:
            source = ROOT / "tests/integration" / script
            for file in source.parent.glob("*.mjs"):
                (directory / file.name).write_bytes(file.read_bytes())
            yield directory, directory / source.name
        else:
            yield directory, None


def node(name, script, options, timeout=120, on_line=None):
    """Run a script to its end; return the object that it printed as its last line.

    A line "@WORD" that it prints before is a call of on_line(WORD).
    """
    lines = []
    with home(name, script) as (directory, path):
        process = subprocess.Popen(
            [NODE, path, json.dumps(options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, cwd=directory, env=os.environ | QUIET | {"HOME": str(directory)})
        late = threading.Timer(timeout, process.kill)
        late.start()
        errors = []
        reader = threading.Thread(target=lambda: errors.append(process.stderr.read()))
        reader.start()
        for line in process.stdout:
            lines.append(line)
            if line.startswith("@") and on_line:
                on_line(line[1:].strip())
        status = process.wait()
        late.cancel()
        reader.join()
    assert status == 0, f"{script}: {status} {errors[0][-4000:]} {lines[-3:]}"
    return json.loads(lines[-1])


def python(name, script, options, timeout=120, **settings):
    """Run a Python script in an environment of its own; return what it printed last, as JSON."""
    with tempfile.TemporaryDirectory(prefix="foreign-") as directory:
        done = subprocess.run(
            [environment(name) / "bin/python", ROOT / "tests/integration" / script,
             json.dumps(options)], capture_output=True, text=True, timeout=timeout, check=False,
            cwd=directory, env=os.environ | QUIET | settings | {"HOME": directory})
    assert done.returncode == 0, f"{script}: {done.stderr[-4000:]}"
    return json.loads(done.stdout.splitlines()[-1])


def free_port():
    """Return a port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(url):
    """Tell whether a server gives a good answer."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except OSError:
        return False


@contextlib.contextmanager
def served(directory, words, probe, timeout=60):
    """Run a server of Node until it answers at `probe`, and end it with all its children."""
    log = directory / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [NODE, *words], cwd=directory, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True, env=os.environ | QUIET | {"HOME": str(directory)})
    until = time.monotonic() + timeout
    try:
        while not answers(probe):
            assert process.poll() is None and time.monotonic() < until, log.read_text()[-3000:]
            time.sleep(0.1)
        yield log
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def oracle():
    """The official Agent Server in JavaScript, in memory, with clients/oracle/graph.ts; its URL."""
    with home("oracle") as (directory, _):
        graph = ROOT / "tests/integration/clients/oracle/graph.ts"
        (directory / "graph.ts").write_bytes(graph.read_bytes())
        (directory / "package.json").write_text('{"type": "module"}')
        (directory / "langgraph.json").write_text(
            json.dumps({"node_version": "24", "graphs": {"agent": "./graph.ts:graph"}, "env": {}}))
        port = free_port()
        cli = directory / "node_modules/@langchain/langgraph-cli/dist/cli/cli.mjs"
        words = [cli, "dev", "--host", "127.0.0.1", "--port", str(port), "--no-browser",
                 "--no-reload"]
        url = f"http://127.0.0.1:{port}"
        with served(directory, words, f"{url}/ok"):
            yield url


@contextlib.contextmanager
def aimock(fixtures):
    """A double of all providers, by CopilotKit's aimock: its URL. Fixtures are a list of theirs."""
    with home("web") as (directory, _):
        (directory / "fixtures.json").write_text(json.dumps({"fixtures": fixtures}))
        port = free_port()
        words = [directory / "node_modules/@copilotkit/aimock/dist/cli.js", "-p", str(port),
                 "-f", directory / "fixtures.json", "--validate-on-load", "--strict"]
        url = f"http://127.0.0.1:{port}"
        with served(directory, words, f"{url}/v1/models"):
            yield url
