# SPDX-License-Identifier: MIT
"""A client of the API that speaks plain HTTP as one owner, and looks at every answer.

    peer = Peer(server.url, key="...")
    reply = peer.post("/threads", {})           # Reply: status, headers, body, text, json
    frames = peer.run(reply.json["thread_id"], "say: hello")     # [(event, data, id)]
    answers = exchange(server.url, b"GET /ok HTTP/1.1\\r\\n...")   # what raw bytes are answered

An answer of 4xx or 5xx that shows something of the inside (paths, stacks, SQL, secrets) fails at
once, wherever it comes; so does a 5xx that was not expected.
"""

import dataclasses
import http.client
import json
import os
import re
import socket
import struct
import time
from urllib.parse import urlsplit

INSIDE = re.compile(
    r"/work/|/root|/tmp/|/var/lib|/usr/lib|/home/\w|src/\w+/|\w\.[ch]:\d|Traceback|0x[0-9a-f]{8}"
    r"|\b(SELECT|INSERT|UPDATE|DELETE FROM|WHERE)\b|sqlite|libpq|yyjson|errno", re.IGNORECASE)


class Leak(AssertionError):
    """An answer that shows what it must not, or an unexpected failure of the server."""


@dataclasses.dataclass
class Reply:
    """An answer; names of headers are in lower case."""

    status: int
    headers: dict
    body: bytes

    @property
    def text(self):
        """The body as text."""
        return self.body.decode(errors="replace")

    @property
    def json(self):
        """The body, parsed; None when it is empty."""
        return json.loads(self.body) if self.body else None


def frames_of(response):
    """Yield (event, data, id) of an event stream until its end."""
    fields = {}
    while line := response.readline():
        line = line.decode().rstrip("\r\n")
        if line and not line.startswith(":"):
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif not line and "event" in fields:
            yield fields["event"], json.loads(fields.get("data") or "null"), fields.get("id")
            fields = {}


class Peer:
    """One owner's client. `secrets` are texts that no answer may hold, whatever its status."""

    def __init__(self, url, key=None, secrets=()):
        """Bear this key, if any."""
        self.url, self.key, self.secrets = url, key, list(secrets)
        self.host, self.port = urlsplit(url).hostname, urlsplit(url).port

    def open(self, method, path, body=None, headers=None, timeout=60):
        """Send a request; return (connection, response) with the body still to be read."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        headers = ({"x-api-key": self.key} if self.key else {}) | (headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers = {"Content-Type": "application/json"} | headers
        connection.request(method, path, body, headers)
        return connection, connection.getresponse()

    def call(self, method, path, body=None, headers=None, timeout=60, fails=False):
        """Send a request and return the Reply; `fails`: a 5xx is what is expected."""
        connection, response = self.open(method, path, body, headers, timeout)
        names = {name.lower(): value for name, value in response.getheaders()}
        reply = Reply(response.status, names, response.read())
        connection.close()
        self.look(reply, f"{method} {path[:200]}", fails)
        return reply

    def look(self, reply, what, fails=False):
        """Raise Leak if an answer shows what it must not."""
        if reply.status >= 500 and not fails:
            raise Leak(f"{what}: {reply.status} {reply.text[:500]}")
        shown = reply.status >= 400 and INSIDE.search(reply.text)
        if shown:
            raise Leak(f"{what}: {reply.status} shows {shown.group()!r}: {reply.text[:500]}")
        for secret in self.secrets:
            if secret in reply.text or secret in str(reply.headers):
                raise Leak(f"{what}: {reply.status} shows {secret!r}: {reply.text[:500]}")

    def get(self, path, **options):
        """GET."""
        return self.call("GET", path, **options)

    def post(self, path, body=None, **options):
        """POST."""
        return self.call("POST", path, {} if body is None else body, **options)

    def delete(self, path, **options):
        """DELETE."""
        return self.call("DELETE", path, **options)

    def thread(self, **body):
        """Create a thread; return its id."""
        reply = self.post("/threads", body)
        assert reply.status == 200, reply.text
        return reply.json["thread_id"]

    @staticmethod
    def run_body(text=None, **members):
        """Return the body of a run; with a text it is what a person says."""
        body = {"assistant_id": "agent", "stream_mode": ["values"]} | members
        if text is not None:
            body["input"] = {"messages": [{"role": "user", "content": text}]}
        return body

    def run(self, thread, text=None, timeout=120, **members):
        """Stream a whole run; return its frames."""
        connection, response = self.open("POST", f"/threads/{thread}/runs/stream",
                                         self.run_body(text, **members), timeout=timeout)
        if response.status != 200:
            raise AssertionError(f"{response.status} {response.read()[:500]}")
        frames = list(frames_of(response))
        connection.close()
        self.look(Reply(200, {}, json.dumps(frames).encode()), f"run on {thread}")
        return frames

    def state(self, thread):
        """Return a thread's state."""
        return self.get(f"/threads/{thread}/state").json

    def messages(self, thread):
        """Return the messages of a thread."""
        return self.state(thread)["values"].get("messages", [])


def ended(frames):
    """Return the status in the last frame of a run."""
    event, data, _ = frames[-1]
    assert event == "end", frames[-1]
    return data["status"]


def error_of(frames):
    """Return the data of a run's error frame; None when there is none."""
    return next((data for event, data, _ in frames if event == "error"), None)


def connect(url, timeout=20, receive=None):
    """Return a socket to a server; `receive`: the size of its receive buffer."""
    sock = socket.socket()
    if receive:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    sock.settimeout(timeout)
    sock.connect((urlsplit(url).hostname, urlsplit(url).port))
    return sock


def reset(sock):
    """Close a socket by RST."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def drain(sock, until=None):
    """Read a socket until it is closed, or `until` (a function of the bytes) is true."""
    data = b""
    try:
        while not (until and until(data)) and (piece := sock.recv(65536)):
            data += piece
    except (TimeoutError, ConnectionResetError):
        pass
    return data


def statuses(data):
    """Return the status of each answer in what a connection has brought; bodies are passed over."""
    found = []
    while data:
        head, gap, rest = data.partition(b"\r\n\r\n")
        match = re.match(rb"HTTP/1\.[01] (\d{3}) ", head)
        if not gap or not match:
            raise AssertionError(f"no answer: {data[:300]!r}")
        found.append(int(match.group(1)))
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        if length is None:
            return found
        data = rest[int(length.group(1)):]
    return found


def exchange(url, data, timeout=3):
    """Send bytes, and nothing more; return the statuses of all answers, and whether it was closed.

    Not closed means that nothing came for `timeout` seconds.
    """
    with connect(url, timeout) as sock:
        try:
            sock.sendall(data)
        except OSError:
            pass
        received, closed = b"", True
        try:
            while piece := sock.recv(65536):
                received += piece
        except TimeoutError:
            closed = False
        except ConnectionResetError:
            pass
    return statuses(received), closed


def wait_for(check, seconds=20):
    """Wait until check() is true; return its value."""
    deadline = time.monotonic() + seconds
    while not (value := check()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{check} did not come true in {seconds} s")
        time.sleep(0.02)
    return value


def fd_count(pid):
    """Return how many descriptors a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def settled_fds(pid):
    """Return how many descriptors a process has once connections of before have ended."""
    counts = [fd_count(pid)]
    deadline = time.monotonic() + 30
    while len(counts) < 6 or len(set(counts[-6:])) > 1:
        if time.monotonic() > deadline:
            raise AssertionError(f"descriptors come and go: {counts[-20:]}")
        time.sleep(0.1)
        counts.append(fd_count(pid))
    return counts[-1]


def rss(pid):
    """Return the resident memory of a process in bytes."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096
