# SPDX-License-Identifier: MIT
"""MCP over HTTP with real sandboxes, by raw sockets: rows API-20, API-26, API-28, cases 45, 66."""

import http.client
import json
import socket
import struct
import time
from urllib.parse import urlsplit

import mcpstdio
import pytest

META = {"io.modelcontextprotocol/protocolVersion": mcpstdio.MODERN,
        "io.modelcontextprotocol/clientCapabilities": {}}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
SLEEP = "import time; time.sleep(300)"


class Http:
    """One server and the ways to ask it."""

    def __init__(self, server):
        parts = urlsplit(server.url)
        self.server, self.port, self.path = server, parts.port, parts.path
        self.session = {}

    def send(self, method, body=None, headers=None):
        """Send a request on a connection of its own; return the open connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, self.path, json.dumps(body) if body is not None else None,
                           ACCEPT | (headers or {}))
        return connection

    def ask(self, method, body=None, headers=None):
        """Send a request; return status, headers and the last JSON of the answer."""
        connection = self.send(method, body, headers)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        if response.headers.get_content_type() == "text/event-stream":
            text = [line[6:] for line in text.split("\n") if line.startswith("data: ")][-1]
        return response.status, response.headers, json.loads(text) if text else None

    def modern_headers(self, method, name=None):
        """Return what a modern request says in its headers."""
        headers = {"MCP-Protocol-Version": mcpstdio.MODERN, "Mcp-Method": method}
        return headers | ({"Mcp-Name": name} if name else {})

    def message(self, era, request_id, tool, arguments):
        """Return body and headers of a call of a tool."""
        params = {"name": tool, "arguments": arguments}
        if era == "modern":
            params["_meta"] = META
        body = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}
        return body, (self.modern_headers("tools/call", tool) if era == "modern"
                      else self.session)

    def call(self, era, tool, **arguments):
        """Call a tool; return its structured content."""
        status, _, answer = self.ask("POST", *self.message(era, 1, tool, arguments))
        assert status == 200, answer
        return answer["result"]["structuredContent"]

    def initialize(self, version=mcpstdio.LEGACY):
        """Begin a session of the legacy era; return the result."""
        status, headers, answer = self.ask("POST", {
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {"protocolVersion": version, "capabilities": {},
                       "clientInfo": {"name": "test", "version": "1"}}})
        assert status == 200, answer
        self.session = {"Mcp-Session-Id": headers["Mcp-Session-Id"]}
        status, _, _ = self.ask("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"},
                                self.session)
        assert status == 202
        return answer["result"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server that all tests of this file share."""
    with mcpstdio.HttpServer(tmp_path_factory.mktemp("mcp-http")) as running:
        yield running


@pytest.fixture
def http_client(server):
    """A client of the server without a session yet."""
    return Http(server)




def start_sleeping(client, era, session_id):
    """Start a cell that sleeps, and wait until its answer is an event stream."""
    connection = client.send("POST", *client.message(
        era, 9, "execute_code", {"session_id": session_id, "code": SLEEP}))
    response = connection.getresponse()
    assert response.headers.get_content_type() == "text/event-stream"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-Accel-Buffering"] == "no"
    return connection, response


def leave(connection, response, reset):
    """Close a connection, by a reset or properly."""
    if reset:
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    response.close()
    connection.close()


@pytest.mark.parametrize("reset", [False, True])
def test_api_28_case_45_closing_a_modern_stream_cancels(http_client, reset):
    session = http_client.call("modern", "create_session", language="python")["session_id"]
    http_client.call("modern", "execute_code", session_id=session, code="x = 41")
    leave(*start_sleeping(http_client, "modern", session), reset)
    began = time.monotonic()
    result = http_client.call("modern", "execute_code", session_id=session, code="x + 1")
    assert time.monotonic() - began < 4
    assert (result["result"] or {}).get("text/plain") == "42"
    assert result["state"] == "kept"
    http_client.call("modern", "stop_session", session_id=session)


def test_api_28_a_legacy_client_that_leaves_does_not_cancel(http_client):
    http_client.initialize()
    session = http_client.call("legacy", "create_session", language="python")["session_id"]
    connection = http_client.send("POST", *http_client.message(
        "legacy", 9, "execute_code",
        {"session_id": session, "code": "import time; time.sleep(4); done = 'yes'"}))
    leave(connection, connection.getresponse(), False)
    result = http_client.call("legacy", "execute_code", session_id=session, code="done")
    assert (result["result"] or {}).get("text/plain") == "'yes'"
    http_client.call("legacy", "stop_session", session_id=session)


def test_a_cancelled_legacy_request_frees_its_slot(http_client):
    http_client.initialize()
    session = http_client.call("legacy", "create_session", language="python")["session_id"]
    connection, response = start_sleeping(http_client, "legacy", session)
    status, _, _ = http_client.ask(
        "POST", {"jsonrpc": "2.0", "method": "notifications/cancelled",
                 "params": {"requestId": 9}}, http_client.session)
    assert status == 202
    began = time.monotonic()
    result = http_client.call("legacy", "execute_code", session_id=session, code="1 + 1")
    assert time.monotonic() - began < 4
    assert (result["result"] or {}).get("text/plain") == "2"
    assert b"data:" not in response.read()
    connection.close()
    http_client.call("legacy", "stop_session", session_id=session)


def test_case_66_a_session_ends_by_delete(http_client):
    assert http_client.initialize("1999-01-01")["protocolVersion"] == mcpstdio.LEGACY
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert http_client.ask("POST", ping, http_client.session)[0] == 200
    assert http_client.ask("DELETE", None, http_client.session)[0] in (200, 204)
    assert http_client.ask("POST", ping, http_client.session)[0] == 404
    assert http_client.ask("DELETE", None, http_client.session)[0] == 404
    assert http_client.ask("POST", ping)[0] == 400


@pytest.mark.parametrize(("method", "headers", "params", "status", "code"), [
    ("server/discover", {}, {"_meta": META}, 200, None),
    ("tools/list", {}, {}, 400, -32602),
    ("tools/list", {"Mcp-Method": "tools/call"}, {"_meta": META}, 400, -32020),
    ("tools/list", {"MCP-Protocol-Version": "2025-11-25"}, {"_meta": META}, 400, -32020),
    ("tools/call", {"Mcp-Name": "other"}, {"name": "list_sessions", "_meta": META}, 400, -32020),
    ("tools/call", {"Mcp-Name": "=?base64?bGlzdF9zZXNzaW9ucw==?="},
     {"name": "list_sessions", "_meta": META}, 200, None),
    ("server/discover", {"MCP-Protocol-Version": "2099-01-01"},
     {"_meta": META | {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}}, 400, -32022),
    ("no/method", {}, {"_meta": META}, 404, -32601),
])
def test_api_26_modern_headers(http_client, method, headers, params, status, code):
    got, _, answer = http_client.ask(
        "POST", {"jsonrpc": "2.0", "id": 5, "method": method, "params": params},
        http_client.modern_headers(method) | headers)
    assert (got, answer.get("error", {}).get("code")) == (status, code)
    assert answer["id"] == 5
    if code == -32022:
        assert answer["error"]["data"] == {"supported": [mcpstdio.MODERN],
                                           "requested": "2099-01-01"}


@pytest.mark.parametrize("headers", [
    {"Origin": "http://evil.test"}, {"Origin": "null"}, {"Host": "evil.test"},
    {"Host": "localhost.evil.test"}])
def test_case_66_api_20_foreign_pages_and_rebound_names_are_refused(http_client, headers):
    assert http_client.ask("POST", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers)[0] == 403


def test_other_addresses_than_loopback_are_refused(tmp_path):
    process = mcpstdio.subprocess.run(
        [mcpstdio.AGENT, "mcp", "--http", "0.0.0.0:0"], capture_output=True, text=True, timeout=60,
        stdin=mcpstdio.subprocess.DEVNULL, env=mcpstdio.environment(tmp_path), check=False)
    assert process.returncode != 0
    assert "other machines" in process.stderr


def test_a_stop_ends_a_running_cell_and_leaves_nothing(tmp_path):
    with mcpstdio.HttpServer(tmp_path) as running:
        client = Http(running)
        session = client.call("modern", "create_session", language="python")["session_id"]
        connection, response = start_sleeping(client, "modern", session)
        began = time.monotonic()
        running.close()
        assert time.monotonic() - began < 8
        response.close()
        connection.close()
    mcpstdio.assert_nothing_left(tmp_path, [session], within=2)
