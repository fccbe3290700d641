# SPDX-License-Identifier: MIT
"""A client of the MCP server over stdio that hides nothing: lines out, lines in.

    with mcpstdio.Server(state_dir) as server:
        server.initialize()                        # legacy; or Server(..., era="modern")
        result = server.call("create_session")     # the result of tools/call
        server.request("ping")                     # the result, or RpcError

Each line of the server's stdout is kept in `lines` and has to be one JSON-RPC message; what is not
goes to `violations`, which close() asserts to be empty. Messages wait in a queue until somebody
expects them. HttpServer starts the same program with its other transport.
"""

import json
import os
import re
import subprocess
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AGENT = Path(os.environ.get("SANDBOX_AGENT", ROOT / "build/sandbox-agent")).resolve()
IMAGES = os.environ.get("SANDBOX_IMAGE_DIR", "/var/lib/sandbox-agent/images")
LEGACY = "2025-11-25"
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
TASKS = META + "tasks"
# What a machine's own settings could change; tests say what they want themselves.
SETTINGS = ("CONTAINER_", "SESSION_", "NETWORK_", "MAX_", "SANDBOX_", "IMPORT_", "STORAGE_")


class RpcError(Exception):
    """An error response: `code`, `data` and the message as text."""

    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.code, self.data, self.error = error["code"], error.get("data"), error


def environment(state_dir, **settings):
    """Return the environment of a server that works in a state directory of its own."""
    inherited = {name: value for name, value in os.environ.items()
                 if not name.startswith(SETTINGS)}
    return inherited | {
        "SANDBOX_STATE_DIR": str(state_dir),
        "SANDBOX_IMAGE_DIR": IMAGES,
        "SANDBOX_AGENT_LIBEXEC": str(AGENT.parent / "libexec"),
        "XDG_STATE_HOME": str(Path(state_dir) / "xdg"),
        "API_BASE_URL": "http://127.0.0.1:9",  # so that `mcp` finds no `api` that runs by chance
        "CONTAINER_MAX_SESSIONS": "40",
        "CONTAINER_MAX_SESSIONS_PER_THREAD": "40",
    } | {name: str(value) for name, value in settings.items()}


def strict_json(data):
    """Parse JSON as the standard has it: no NaN, no key twice."""
    def members(pairs):
        result = dict(pairs)
        if len(result) != len(pairs):
            raise ValueError("a key twice")
        return result

    def refuse(word):
        raise ValueError(f"{word} is not JSON")

    return json.loads(data, object_pairs_hook=members, parse_constant=refuse)


def message_problem(message):
    """Tell what keeps a parsed line from being one JSON-RPC message; None if nothing does."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return "not a JSON-RPC object"
    kinds = [kind for kind in ("method", "result", "error") if kind in message]
    if len(kinds) != 1:
        return f"has {kinds} of method, result and error"
    allowed = {"jsonrpc", "id", *kinds} | ({"params"} if kinds == ["method"] else set())
    if set(message) - allowed:
        return f"has members that it may not have: {set(message) - allowed}"
    if kinds != ["method"] and "id" not in message:
        return "a response without an id"
    return None


def text_of(result):
    """Return the text blocks of a tool's result, joined."""
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


class Server:
    """A running `mcp` process and both ends of its pipes."""

    def __init__(self, state_dir, *words, era="legacy", capabilities=None, settings=None,
                 argv=None):
        self.state_dir, self.era = Path(state_dir), era
        self.capabilities = capabilities if capabilities is not None else {}
        self.lines, self.violations, self.session_ids = [], [], set()
        self.stderr = b""
        self._waiting, self._seen, self._next_id = [], [], 0
        self._changed = threading.Condition()
        self._ended = False
        self.process = subprocess.Popen(
            argv or [AGENT, "mcp", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=environment(state_dir, **(settings or {})))
        self._threads = [threading.Thread(target=target, daemon=True)
                         for target in (self._read_stdout, self._read_stderr)]
        for thread in self._threads:
            thread.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
        else:
            self.kill()

    # ---- what comes

    def _read_stdout(self):
        for line in self.process.stdout:
            with self._changed:
                self._take(line)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self, line):
        self.lines.append(line)
        try:
            message = strict_json(line.decode())
            problem = message_problem(message) or (
                None if line.endswith(b"\n") else "a line without its end")
        except ValueError as error:
            message, problem = None, str(error)
        if problem:
            self.violations.append((problem, line[:300]))
        else:
            self._waiting.append(message)
            self._seen.append(message)

    def _read_stderr(self):
        while chunk := os.read(self.process.stderr.fileno(), 1 << 16):
            self.stderr += chunk

    @property
    def messages(self):
        """Every message that has come."""
        with self._changed:
            return list(self._seen)

    def notifications(self, method, token=None):
        """Return the params of the notifications of a method (progress: of a token) so far."""
        return [m["params"] for m in self.messages if m.get("method") == method and "id" not in m
                and (token is None or m["params"].get("progressToken") == token)]

    def expect(self, wanted, timeout=60):
        """Wait for a message that `wanted` (a method or a function) accepts, and take it."""
        accepts = (lambda m: m.get("method") == wanted) if isinstance(wanted, str) else wanted
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                for message in self._waiting:
                    if accepts(message):
                        self._waiting.remove(message)
                        return message
                left = deadline - time.monotonic()
                if left <= 0 or self._ended:
                    raise AssertionError(
                        f"no such message within {timeout} s: {wanted}; the server "
                        f"{'has ended' if self._ended else 'lives'}; last lines "
                        f"{self.lines[-3:]}; stderr: {self.stderr[-2000:].decode()}")
                self._changed.wait(left)

    def silent(self, seconds, wanted):
        """Fail if within some seconds there is a message that `wanted` accepts."""
        try:
            message = self.expect(wanted, seconds)
        except AssertionError:
            return
        raise AssertionError(f"unexpected: {message}")

    # ---- what goes

    def send_bytes(self, data):
        """Write bytes as they are."""
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        """Write a message, or whatever JSON that is."""
        self.send_bytes(json.dumps(message, ensure_ascii=False).encode() + b"\n")

    def meta(self):
        """Return what a request of the modern era has to carry."""
        return {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": self.capabilities,
                f"{META}clientInfo": {"name": "lines", "version": "1"}}

    def start(self, method, params=None, meta=None):
        """Send a request; return its id."""
        self._next_id += 1
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        params = dict(params or {})
        meta = (self.meta() if self.era == "modern" else {}) | (meta or {})
        if meta:
            params["_meta"] = meta
        if params:
            message["params"] = params
        self.send(message)
        return message["id"]

    def response(self, request_id, timeout=60):
        """Wait for a response, as it is."""
        return self.expect(lambda m: "method" not in m and m["id"] == request_id, timeout)

    def result(self, request_id, timeout=60):
        """Wait for a response; return its result or raise RpcError."""
        response = self.response(request_id, timeout)
        if "error" in response:
            raise RpcError(response["error"])
        return response["result"]

    def request(self, method, params=None, meta=None, timeout=60):
        """Send a request; return its result or raise RpcError."""
        return self.result(self.start(method, params, meta), timeout)

    def notify(self, method, params=None):
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method} | ({"params": params} if params else {}))

    def initialize(self, version=LEGACY):
        """The handshake of the legacy era; return the server's answer."""
        result = self.request("initialize", {
            "protocolVersion": version, "capabilities": self.capabilities,
            "clientInfo": {"name": "lines", "version": "1"}})
        self.notify("notifications/initialized")
        return result

    def start_call(self, name, arguments=None, meta=None):
        """Send a tools/call; return its id."""
        return self.start("tools/call", {"name": name, "arguments": arguments or {}}, meta)

    def call(self, name, arguments=None, meta=None, timeout=120):
        """Call a tool; return the result of tools/call."""
        return self.result(self.start_call(name, arguments, meta), timeout)

    def create(self, language="python", **arguments):
        """Create a session and return its id."""
        result = self.call("create_session", {"language": language, **arguments})
        assert not result.get("isError"), result
        self.session_ids.add(result["structuredContent"]["session_id"])
        return result["structuredContent"]["session_id"]

    def execute(self, session, code, timeout=120, meta=None, **arguments):
        """Run a cell and return the payload of the tool."""
        return self.call("execute_code", {"session_id": session, "code": code, **arguments},
                         meta, timeout)["structuredContent"]

    # ---- the end

    def end_input(self):
        """Close stdin."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    def wait(self, timeout=10):
        """Wait for the end of the process; return its status and the seconds that it took."""
        start = time.monotonic()
        status = self.process.wait(timeout)
        for thread in self._threads:
            thread.join(5)
        return status, time.monotonic() - start

    def close(self, timeout=10):
        """End of input, then of the process; asserts that stdout held messages only."""
        self.end_input()
        try:
            status, seconds = self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self.check()
        assert status == 0, (status, self.stderr[-2000:])
        return seconds

    def check(self):
        """Assert that stdout held messages only."""
        assert not self.violations, self.violations[:5]

    def kill(self):
        """kill -9, for tests that failed already."""
        self.process.kill()
        self.end_input()
        self.wait()


class HttpServer:
    """`mcp --http` on a free port; `url` is where it listens."""

    def __init__(self, state_dir, *words, settings=None):
        self.state_dir, self.stderr, self.url = Path(state_dir), "", None
        self.process = subprocess.Popen(
            [AGENT, "mcp", "--http", "127.0.0.1:0", *words], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment(state_dir, **(settings or {})))
        self._listening = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._listening.wait(30) or self.url is None:
            self.close()
            raise AssertionError(f"mcp --http does not listen: {self.stderr}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read(self):
        for line in self.process.stderr:
            self.stderr += line
            if found := re.search(r"listening on (http://\S+)", line):
                self.url = found.group(1)
                self._listening.set()
        self._listening.set()

    def close(self):
        """SIGTERM and the end."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join(5)
        assert self.process.stdout.read() == "", "mcp --http writes to stdout"


def remains(state_dir, session_ids=()):
    """Return what is left of a server: processes, control groups, mounts, run directories."""
    state, found = str(state_dir), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            group = Path(f"/proc/{pid}/cgroup").read_text()
        except (OSError, UnicodeDecodeError):
            continue
        if f"{state}/run" in command or any(i in group for i in session_ids):
            found.append(f"process {pid} {command}")
    for root, directories, _ in os.walk("/sys/fs/cgroup"):
        found += [f"cgroup {root}/{d}" for d in directories if d in session_ids]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    found += [f"mount {line.split()[4]}" for line in mounts
              if f" {state}/" in line or any(i in line for i in session_ids)]
    found += [f"directory {path}" for path in Path(state).glob("run/*")]
    return found


def assert_nothing_left(state_dir, session_ids=(), within=0.0):
    """Fail with the list of what is left, after waiting for so long."""
    deadline = time.monotonic() + within
    while (found := remains(state_dir, session_ids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not found, "left behind:\n  " + "\n  ".join(found)
