# SPDX-License-Identifier: MIT
"""`mcp` on stdio in front of a running `api`: what goes through it, and when it serves itself."""

import http.server
import json
import os
import socket
import threading
import time
import urllib.request

import apiserver
import mcpstdio
import pytest
from impostor import Impostor
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

ERAS = ("legacy", "modern")
KEY = "relay-key-0123456789"
SLEEP = "import time; time.sleep(600)"


def free_port():
    """Return a port that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_api(state_dir, port=None, **settings):
    """Start an `api` that knows its own address."""
    port = port or free_port()
    state_dir.mkdir(exist_ok=True)
    return apiserver.ApiServer(state_dir, None, "--listen", f"127.0.0.1:{port}",
                               key=settings.get("API_KEY"),
                               API_BASE_URL=f"http://127.0.0.1:{port}", **settings)


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    """An API that all tests of the module share."""
    with start_api(tmp_path_factory.mktemp("api")) as server:
        yield server


@pytest.fixture
def relay(api, tmp_path):
    """Starts `mcp` in front of the API: relay("modern"), initialized in the legacy era."""
    made = []

    def start(era, url=None, **options):
        settings = {"API_BASE_URL": url or api.url} | options.pop("settings", {})
        server = mcpstdio.Server(tmp_path / f"mcp{len(made)}", era=era, settings=settings,
                                 **options)
        made.append(server)
        if era == "legacy":
            server.initialize()
        return server

    yield start
    for server in made:
        server.close()


def fetch(url, key=None):
    """Return the bytes behind a URL."""
    request = urllib.request.Request(url, headers={"x-api-key": key} if key else {})
    with urllib.request.urlopen(request, timeout=30) as response:
        return response.read()


def sessions(api):
    """Return the ids of the sessions that the API lists."""
    return {session["session_id"] for session in api.get("/sessions").json}


def busy_wait(api, session, busy):
    """Wait until a session runs a cell, or runs none."""
    deadline = time.monotonic() + 20
    while next(s["busy"] for s in api.get("/sessions").json if s["session_id"] == session) != busy:
        assert time.monotonic() < deadline, f"busy is not {busy}"
        time.sleep(0.05)


@pytest.mark.parametrize("era", ERAS)
def test_sessions_are_the_apis_and_files_can_be_downloaded(api, relay, era):
    server = relay(era)
    session = server.create()
    assert session in sessions(api)
    result = server.execute(session, "open('a b.csv', 'w').write('x,y\\n1,2\\n'); 6 * 7")
    assert result["result"]["text/plain"] == "42"
    exported = server.call("export_files", {"session_id": session, "files": [
        {"source": "a b.csv"}]})["structuredContent"]["files"][0]
    assert exported["download_url"].startswith(f"{api.url}/threads/")
    assert fetch(exported["download_url"]) == b"x,y\n1,2\n"
    server.call("stop_session", {"session_id": session})
    assert session not in sessions(api)
    assert b"handed on" in server.stderr


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.anyio
async def test_the_python_sdk_goes_through(api, tmp_path, mode):
    parameters = StdioServerParameters(
        command=str(mcpstdio.AGENT), args=["mcp"],
        env=mcpstdio.environment(tmp_path, API_BASE_URL=api.url))
    async with Client(parameters, mode=mode) as client:
        tools = await client.list_tools()
        assert "execute_code" in {tool.name for tool in tools.tools}
        created = await client.call_tool("create_session", {"language": "python"})
        session = created.structured_content["session_id"]
        await client.call_tool("execute_code", {"session_id": session,
                                                "code": "open('r.txt', 'w').write('hello')"})
        exported = await client.call_tool("export_files", {
            "session_id": session, "files": [{"source": "r.txt"}]})
        url = exported.structured_content["files"][0]["download_url"]
        assert fetch(url) == b"hello"
        await client.call_tool("stop_session", {"session_id": session})


@pytest.fixture(scope="module")
def anyio_backend():
    """The event loop of these tests."""
    return "asyncio"


@pytest.mark.parametrize("era", ERAS)
def test_calls_run_side_by_side_and_those_of_one_sandbox_in_order(relay, era):
    server = relay(era)
    first, second = server.create(), server.create()
    server.execute(first, "seen = []")
    slow = server.start_call("execute_code", {"session_id": first,
                                              "code": "import time; time.sleep(3); seen.append(0)"})
    others = [server.start_call("execute_code", {"session_id": first,
                                                 "code": f"seen.append({n}); seen"})
              for n in range(1, 6)]
    quick = server.execute(second, "'other'")
    assert quick["result"]["text/plain"] == "'other'"
    assert not [m for m in server.messages if m.get("id") == slow]
    assert server.result(slow)["structuredContent"]["success"]
    last = [server.result(call) for call in others][-1]["structuredContent"]
    assert last["result"]["text/plain"] == "[0, 1, 2, 3, 4, 5]"


@pytest.mark.parametrize("era", ERAS)
def test_a_cancelled_call_ends_in_its_sandbox_and_has_no_answer(api, relay, era):
    server = relay(era)
    session = server.create()
    call = server.start_call("execute_code", {"session_id": session, "code": SLEEP})
    busy_wait(api, session, True)
    server.notify("notifications/cancelled", {"requestId": call, "reason": "test"})
    begun = time.monotonic()
    assert server.execute(session, "1 + 1", timeout=30)["result"]["text/plain"] == "2"
    assert time.monotonic() - begun < 20
    assert not [m for m in server.messages if m.get("id") == call]


def test_the_api_may_ask_the_client(relay):
    server = relay("legacy", capabilities={"elicitation": {}})
    session = server.create()
    call = server.start_call("execute_code", {"session_id": session,
                                              "code": "name = input('who? '); name.upper()"})
    question = server.expect("elicitation/create")
    field = next(iter(question["params"]["requestedSchema"]["properties"]))
    server.send({"jsonrpc": "2.0", "id": question["id"],
                 "result": {"action": "accept", "content": {field: "ann"}}})
    assert server.result(call)["structuredContent"]["result"]["text/plain"] == "'ANN'"


@pytest.mark.parametrize("era", ERAS)
def test_the_end_of_input_ends_everything(api, relay, era):
    server = relay(era)
    session = server.create()
    server.start_call("execute_code", {"session_id": session, "code": SLEEP})
    busy_wait(api, session, True)
    assert server.close() < 5
    busy_wait(api, session, False)


def test_errors_of_the_api_are_the_clients(relay):
    server = relay("legacy")
    with pytest.raises(mcpstdio.RpcError, match="-3260"):
        server.request("no/such/method")
    assert server.call("execute_code", {"session_id": "0" * 32, "code": "1"})["isError"]
    server.send_bytes(b"{not json\n")
    assert server.expect(lambda m: "error" in m and m["id"] is None)["error"]["code"] == -32700
    assert server.request("ping") == {}


def test_a_client_with_the_key_is_let_through_and_one_without_serves_itself(tmp_path):
    with start_api(tmp_path / "api", API_KEY=KEY) as api:
        settings = {"API_BASE_URL": api.url}
        with mcpstdio.Server(tmp_path / "with", settings=settings | {"API_KEY": KEY}) as server:
            server.initialize()
            session = server.create()
            assert session in sessions(api)
            exported = server.execute(session, "open('f', 'w').write('z')") and server.call(
                "export_files", {"session_id": session, "files": [{"source": "f"}]})
            url = exported["structuredContent"]["files"][0]["download_url"]
            assert fetch(url, KEY) == b"z"
            server.call("stop_session", {"session_id": session})
        with mcpstdio.Server(tmp_path / "wrong",
                             settings=settings | {"API_KEY": "wrong-key-0123456"}) as server:
            server.initialize()
            assert server.create() not in sessions(api)
            assert b"API_KEY" in server.stderr
            assert b"wrong-key" not in server.stderr
        mcpstdio.assert_nothing_left(tmp_path / "wrong", within=10)


@pytest.mark.parametrize("era", ERAS)
def test_without_an_api_it_serves_itself(tmp_path, era):
    settings = {"API_BASE_URL": f"http://127.0.0.1:{free_port()}"}
    with mcpstdio.Server(tmp_path, era=era, settings=settings) as server:
        if era == "legacy":
            server.initialize()
        session = server.create()
        server.execute(session, "open('f', 'w').write('z')")
        exported = server.call("export_files", {"session_id": session, "files": [{"source": "f"}]})
        assert exported["structuredContent"]["files"][0]["download_url"] is None
        assert b"handed on" not in server.stderr
    mcpstdio.assert_nothing_left(tmp_path, within=10)


ASKED = []


class Stranger(http.server.BaseHTTPRequestHandler):
    """A server of another name; what it is asked is kept in ASKED."""

    def do_GET(self):
        """Answer everything with a name."""
        ASKED.append((self.path, dict(self.headers)))
        body = json.dumps({"name": "somebody"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


def test_another_server_at_that_address_gets_nothing(tmp_path):
    stranger = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger)
    threading.Thread(target=stranger.serve_forever, daemon=True).start()
    settings = {"API_BASE_URL": f"http://127.0.0.1:{stranger.server_port}", "API_KEY": KEY}
    with mcpstdio.Server(tmp_path, settings=settings) as server:
        server.initialize()
        server.create()
    stranger.shutdown()
    assert [path for path, _ in ASKED] == ["/info"]
    assert KEY not in str(ASKED)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")
def test_a_server_of_another_user_is_given_no_key(tmp_path):
    with Impostor("open", user=65534) as impostor:
        settings = {"API_BASE_URL": impostor.url, "API_KEY": KEY}
        with mcpstdio.Server(tmp_path, settings=settings) as server:
            server.initialize()
            server.create()
        assert b"user 65534 listens" in server.stderr
        assert b"handed on to the API at" not in server.stderr
    assert impostor.asked == ["/info None"]


def test_an_api_that_starts_anew_is_found_again(tmp_path):
    with (start_api(tmp_path / "api") as api,
          mcpstdio.Server(tmp_path / "mcp", settings={"API_BASE_URL": api.url}) as server):
        server.initialize()
        server.create()
        api.restart()
        assert server.request("ping") == {}
        session = server.create()
        assert server.execute(session, "3")["result"]["text/plain"] == "3"
        server.call("stop_session", {"session_id": session})


def test_an_api_that_is_gone_is_an_error_and_not_a_silence(tmp_path):
    with (start_api(tmp_path / "api") as api,
          mcpstdio.Server(tmp_path / "mcp", settings={"API_BASE_URL": api.url}) as server):
        server.initialize()
        api.stop()
        with pytest.raises(mcpstdio.RpcError, match="does not answer"):
            server.request("ping", timeout=20)
