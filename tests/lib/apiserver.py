# SPDX-License-Identifier: MIT
"""`sandbox-agent api` for a test: started on a free port, stopped by SIGTERM, nothing left behind.

    with FakeModel() as model, ApiServer(state_dir, model) as server:
        server.url                                     # for any client
        thread = server.post("/threads").json          # plain HTTP: status, headers, text, json
        for frame in server.stream(f"/threads/{t}/runs/stream", {...}):
            frame.event, frame.data, frame.id          # server-sent events
        server.run(thread, "run: print(1)")            # a whole run: its frames

Leaving the block asserts that it ended well, soon, and with no sandbox left. `restart()` and
`kill()` are for tests of what survives. Settings are keyword arguments (CRONS="true"); those of
PostgreSQL come from pgcluster: ApiServer(state_dir, model, **cluster.environment()).
"""

import dataclasses
import http.client
import json
import re
import signal
import subprocess
import threading
from pathlib import Path
from urllib.parse import urlsplit

import mcpstdio

GRAPH = "agent"
LISTENING = re.compile(r"listening on (http://\S+)")


@dataclasses.dataclass
class Response:
    """What a plain request was answered."""

    status: int
    headers: dict
    text: str

    @property
    def json(self):
        """The body, parsed."""
        return json.loads(self.text)


@dataclasses.dataclass
class Frame:
    """A server-sent event; `data` is parsed JSON."""

    event: str
    data: object
    id: str | None


class Stream:
    """An open event stream: an iterator of frames that ends with the body, and can be left."""

    def __init__(self, connection, response):
        self.connection, self.response = connection, response
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.comments = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Leave: the connection is closed, whatever has come."""
        self.response.close()
        self.connection.close()

    def __iter__(self):
        fields = {}
        while line := self.response.readline():
            line = line.decode().rstrip("\r\n")
            if line.startswith(":"):
                self.comments += 1
            elif line:
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
            elif fields:
                data = fields.get("data")
                yield Frame(fields.get("event"), json.loads(data) if data else None,
                            fields.get("id"))
                fields = {}
        self.close()

    def until(self, event, where=lambda data: True):
        """Read up to a frame of this name; return it."""
        for frame in self:
            if frame.event == event and where(frame.data):
                return frame
        raise AssertionError(f"the stream ended without {event}")


def human(text):
    """Return a run's input with one message of a person."""
    return {"messages": [{"role": "user", "content": text}]}


def environment(state_dir, model=None, provider="openai", **settings):
    """Return the environment of a server that asks `model`, a FakeModel or a base URL."""
    ours = {}
    if model is not None:
        base = model if isinstance(model, str) else model.url(provider)
        ours = {"CHAT_MODEL": "fake", "CHAT_MODEL_PROVIDER": provider, "CHAT_MODEL_API_KEY": "key",
                "CHAT_MODEL_BASE_URL": base}
    kept = {name: value for name, value in mcpstdio.environment(state_dir).items()
            if not name.startswith(("CHAT_MODEL", "API_", "POSTGRES_", "CORS_", "CRONS"))}
    return kept | ours | {name: str(value) for name, value in settings.items()}


class ApiServer:
    """A running `api`; a context manager."""

    def __init__(self, state_dir, model=None, *words, provider="openai", key=None, **settings):
        """Start it; words are options of the program, key is what our own requests bear."""
        self.state_dir, self.words, self.key = Path(state_dir), words, key
        self.environment = environment(state_dir, model, provider, **settings)
        self.url, self.log = None, ""
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
        else:
            self.kill()

    # ---- the process

    def start(self):
        """Start it, also again after kill()."""
        self.url, self._listening = None, threading.Event()
        self.process = subprocess.Popen(
            [mcpstdio.AGENT, "api", "--listen", "127.0.0.1:0", *self.words],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            cwd=self.state_dir, env=self.environment)
        self._reader = threading.Thread(target=self._read, args=[self.process], daemon=True)
        self._reader.start()
        if not self._listening.wait(60) or self.url is None:
            self.kill()
            raise AssertionError(f"api does not listen: {self.log[-3000:]}")

    def _read(self, process):
        for line in process.stderr:
            self.log += line
            if found := LISTENING.search(line):
                self.url = found.group(1)
                self._listening.set()
        self._listening.set()

    @property
    def pid(self):
        """The process id of the server."""
        return self.process.pid

    def stop(self, how=signal.SIGTERM, timeout=20):
        """Ask it to end; return its status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"api does not end: {self.log[-3000:]}") from None
        self._reader.join(5)
        return status

    def kill(self):
        """kill -9: what it was doing stays undone."""
        self.process.kill()
        self.process.wait()
        self._reader.join(5)

    def restart(self, how=signal.SIGTERM, **settings):
        """End it, and start it again with the same state, and settings that may have changed."""
        if how == signal.SIGKILL:
            self.kill()
        else:
            assert self.stop(how) == 0, self.log[-3000:]
        self.environment |= {name: str(value) for name, value in settings.items()}
        self.start()

    def close(self):
        """Stop it, and assert that it ended well and left no sandbox."""
        status = self.stop()
        assert status == 0, (status, self.log[-3000:])
        mcpstdio.assert_nothing_left(self.state_dir, within=10)

    # ---- plain HTTP

    def _connect(self, method, path, body, headers, timeout):
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=timeout)
        headers = ({"x-api-key": self.key} if self.key else {}) | (headers or {})
        if body is not None and not isinstance(body, bytes | str):
            body = json.dumps(body)
            headers = {"Content-Type": "application/json"} | headers
        connection.request(method, path, body, headers)
        return connection, connection.getresponse()

    def request(self, method, path, body=None, headers=None, timeout=60):
        """Send a request; a body that is no text or bytes goes as JSON. Return the Response."""
        connection, response = self._connect(method, path, body, headers, timeout)
        names = {name.lower(): value for name, value in response.getheaders()}
        result = Response(response.status, names, response.read().decode())
        connection.close()
        return result

    def get(self, path, **options):
        """GET; the Response."""
        return self.request("GET", path, **options)

    def post(self, path, body=None, **options):
        """POST; the Response."""
        return self.request("POST", path, {} if body is None else body, **options)

    def delete(self, path, **options):
        """DELETE; the Response."""
        return self.request("DELETE", path, **options)

    def stream(self, path, body=None, headers=None, method=None, timeout=60):
        """Open an event stream, by POST if there is a body; return the Stream."""
        method = method or ("GET" if body is None else "POST")
        stream = Stream(*self._connect(method, path, body, headers, timeout))
        if stream.status != 200:
            raise AssertionError(f"{path}: {stream.status} {stream.response.read().decode()}")
        return stream

    # ---- the usual

    def thread(self, **body):
        """Create a thread; return its id."""
        return self.post("/threads", body).json["thread_id"]

    def run(self, thread, text=None, **body):
        """Stream a whole run; return its frames. Without text there is no input."""
        body = {"assistant_id": GRAPH, "stream_mode": ["values"]} | body
        if text is not None:
            body["input"] = human(text)
        return list(self.stream(f"/threads/{thread}/runs/stream", body))

    def state(self, thread):
        """Return the state of a thread."""
        return self.get(f"/threads/{thread}/state").json

    def messages(self, thread):
        """Return the messages of a thread's state."""
        return self.state(thread)["values"].get("messages", [])
