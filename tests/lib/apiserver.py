# SPDX-License-Identifier: MIT
"""A running `sandbox-agent api` on a free port of loopback, with a state directory of its own.

    with FakeModel() as model, ApiServer(tmp_path, model=model) as server:
        server.get("/info")
        server.post("/threads", {})          # parsed JSON; HttpError for another status than 2xx
        with server.open("POST", "/runs/stream", {...}) as reply:
            for event, data, id in events(reply): ...

The end is asked for by SIGTERM, and a server that does not end well fails the test.
"""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import sa

IMAGES = os.environ.get("SANDBOX_IMAGE_DIR", "/var/lib/sandbox-agent/images")
START_S = 30
STOP_S = 40


class HttpError(Exception):
    """An answer that is not 2xx: `status`, and `body` as it came (parsed where it is JSON)."""

    def __init__(self, status, body, headers):
        """Keep the answer."""
        super().__init__(f"{status}: {body}")
        self.status, self.body, self.headers = status, body, headers


def parsed(raw):
    """Return JSON bytes as a value, and anything else as text."""
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")


def events(reply):
    """Yield (event, data, id) of an event stream; comments are passed over."""
    event = data = ident = None
    for raw in reply:
        line = raw.decode().rstrip("\n")
        if line.startswith("event: "):
            event = line[7:]
        elif line.startswith("data: "):
            data = json.loads(line[6:])
        elif line.startswith("id: "):
            ident = line[4:]
        elif not line and event:
            yield event, data, ident
            event = data = ident = None


class ApiServer:
    """The server as a context manager; `start` and `stop` may be called again and again."""

    def __init__(self, directory, model=None, env=None, options=(), provider="openai", key=None):
        """Prepare it: `model` is a FakeModel, `env` further settings, `key` what is sent."""
        self.directory = Path(directory)
        self.state_dir = self.directory / "state"
        self.storage = self.directory / "storage"
        self.options = list(options)
        self.key = key
        self.process = self.url = self.log = None
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(("CONTAINER_", "SESSION_", "CHAT_", "POSTGRES_"))}
        self.env |= {"SANDBOX_STATE_DIR": str(self.state_dir), "SANDBOX_IMAGE_DIR": IMAGES,
                     "STORAGE_DIR": str(self.storage), "CONTAINER_MAX_SESSIONS": "40",
                     "REQUESTS_PER_SECOND": "0", "CHAT_MODEL_PROVIDER": provider}
        if model is not None:
            self.env |= {"CHAT_MODEL": "gpt-4o", "CHAT_MODEL_BASE_URL": model.url(provider),
                         "CHAT_MODEL_API_KEY": "test-key-of-the-server"}
        self.env |= env or {}

    @property
    def pid(self):
        """The process id."""
        return self.process.pid

    def start(self):
        """Start it and wait until it listens."""
        self.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.log = self.directory / "server.log"
        with self.log.open("ab") as log:
            offset = log.tell()
            self.process = subprocess.Popen(
                [sa.BUILD / "sandbox-agent", "api", "--listen", "127.0.0.1:0", *self.options],
                env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.directory)
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            text = self.log.read_bytes()[offset:].decode(errors="replace")
            if "listening on " in text:
                self.url = text.split("listening on ")[1].split()[0]
                return self
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}:\n{text}")
            time.sleep(0.02)
        self.process.kill()
        raise AssertionError(f"the server does not listen:\n{self.log.read_text()}")

    def stop(self, sig=signal.SIGTERM):
        """End it; another status than 0 after SIGTERM is a failure."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        status = self.process.wait(STOP_S)
        if sig == signal.SIGTERM and status != 0:
            raise AssertionError(f"the server ended with {status}:\n{self.log.read_text()[-4000:]}")

    def __enter__(self):
        """Start it."""
        return self.start()

    def __exit__(self, kind, error, trace):
        """Stop it; what a failed test left does not hide the failure."""
        if self.process.poll() is None or kind is None:
            with contextlib.ExitStack() as stack:
                if kind is not None:
                    stack.enter_context(contextlib.suppress(AssertionError,
                                                            subprocess.TimeoutExpired))
                self.stop()
        if self.process.poll() is None:
            self.process.kill()

    def connect(self, timeout=60):
        """Return a connection of http.client."""
        return http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=timeout)

    def open(self, method, path, body=None, headers=None, timeout=60):
        """Send a request and return its HTTPResponse, whatever its status; closing it hangs up."""
        connection = self.connect(timeout)
        headers = dict(headers or {})
        if self.key:
            headers.setdefault("x-api-key", self.key)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        connection.request(method, path, body, headers)
        reply = connection.getresponse()
        reply.connection = connection  # kept as long as the reply is
        return reply

    def request(self, method, path, body=None, headers=None, timeout=60):
        """Send a request and return its parsed answer; HttpError when it is not 2xx."""
        with self.open(method, path, body, headers, timeout) as reply:
            raw = reply.read()
            value = parsed(raw) if raw else None
            if not 200 <= reply.status < 300:
                raise HttpError(reply.status, value, reply.headers)
            return value

    def get(self, path, **options):
        """GET."""
        return self.request("GET", path, **options)

    def post(self, path, body=None, **options):
        """POST."""
        return self.request("POST", path, {} if body is None else body, **options)

    def delete(self, path, **options):
        """DELETE."""
        return self.request("DELETE", path, **options)

    def thread(self, **body):
        """Create a thread and return its id."""
        return self.post("/threads", body)["thread_id"]

    def body(self, text, **members):
        """Return the body of a run whose input is one human message."""
        return {"assistant_id": "agent",
                "input": {"messages": [{"role": "user", "content": text}]}} | members

    def stream(self, thread, text=None, **members):
        """Stream a run on a thread to its end and return [(event, data, id)]."""
        body = self.body(text, **members) if text is not None else members
        body.setdefault("assistant_id", "agent")
        with self.open("POST", f"/threads/{thread}/runs/stream", body) as reply:
            if reply.status != 200:
                raise HttpError(reply.status, parsed(reply.read()), reply.headers)
            return list(events(reply))

    def state(self, thread):
        """Return the state of a thread."""
        return self.get(f"/threads/{thread}/state")
