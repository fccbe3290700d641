# SPDX-License-Identifier: MIT
"""MCP at /mcp of the API: a conversation for each owner, and files by the API's own routes."""

import apiserver
import mcpstdio
import pytest

KEYS = {"ann": "key-of-ann-0123456", "bob": "key-of-bob-0123456"}
META = {"io.modelcontextprotocol/protocolVersion": mcpstdio.MODERN,
        "io.modelcontextprotocol/clientCapabilities": {}}


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    """A server with two owners."""
    directory = tmp_path_factory.mktemp("api")
    keys = directory / "keys"
    keys.write_text("".join(f"{name}:{key}\n" for name, key in KEYS.items()))
    keys.chmod(0o600)
    with apiserver.ApiServer(directory, API_KEYS_FILE=keys,
                             API_BASE_URL="http://files.example:8000") as server:
        yield server


def call(api, owner, tool, **arguments):
    """Call a tool as an owner; return its structured content."""
    headers = {"x-api-key": KEYS[owner], "MCP-Protocol-Version": mcpstdio.MODERN,
               "Mcp-Method": "tools/call", "Mcp-Name": tool, "Content-Type": "application/json",
               "Accept": "application/json"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments, "_meta": META}}
    response = api.post("/mcp", body, headers=headers, timeout=120)
    assert response.status == 200, response.text
    return response.json["result"]["structuredContent"]


def listed(api, owner):
    """Return thread and session ids of an owner's sandboxes."""
    return {(s["thread_id"], s["session_id"])
            for s in api.get("/sessions", headers={"x-api-key": KEYS[owner]}).json}


def test_owners_have_conversations_of_their_own(api):
    session = call(api, "ann", "create_session", language="python")["session_id"]
    assert call(api, "ann", "execute_code", session_id=session, code="1 + 1")["success"]
    refused = call(api, "bob", "execute_code", session_id=session, code="1 + 1")
    assert not refused["success"]
    assert session not in str(call(api, "bob", "list_sessions"))
    assert [s for _, s in listed(api, "ann")] == [session]
    assert listed(api, "bob") == set()
    call(api, "ann", "stop_session", session_id=session)


def test_a_key_is_needed(api):
    assert api.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 401
    assert api.get("/mcp").status == 401
    assert api.delete("/mcp").status == 401


def test_exports_are_downloaded_from_the_conversations_thread(api):
    session = call(api, "ann", "create_session", language="python")["session_id"]
    call(api, "ann", "execute_code", session_id=session, code="open('a b', 'w').write('12')")
    exported = call(api, "ann", "export_files", session_id=session, files=[{"source": "a b"}])
    url = exported["files"][0]["download_url"]
    assert url.startswith("http://files.example:8000/threads/")
    path = url.removeprefix("http://files.example:8000")
    assert api.get(path, headers={"x-api-key": KEYS["ann"]}).text == "12"
    assert api.get(path, headers={"x-api-key": KEYS["bob"]}).status == 404
    call(api, "ann", "stop_session", session_id=session)


def test_a_network_that_the_owner_turned_off_is_off_here_too(api):
    """From the next call on, for this owner alone, and until it is turned on again."""
    def created(owner, **arguments):
        result = call(api, owner, "create_session", language="python", **arguments)
        if result["success"]:
            call(api, owner, "stop_session", session_id=result["session_id"])
        return result

    def put(**settings):
        headers = {"x-api-key": KEYS["ann"]}
        assert api.request("PUT", "/settings", settings, headers=headers).status == 200

    assert created("ann")["network"] == "public"
    put(networkEnabled=False)
    assert created("ann")["network"] == "none"
    refused = created("ann", network="public")
    assert not refused["success"] and "networkEnabled" in str(refused)
    assert created("bob")["network"] == "public"
    put(networkEnabled=True)
    assert created("ann")["network"] == "public"


def test_the_thread_is_one_like_any_other_and_comes_again(api):
    session = call(api, "ann", "create_session", language="python")["session_id"]
    thread = next(t for t, s in listed(api, "ann") if s == session)
    headers = {"x-api-key": KEYS["ann"]}
    found = api.post("/threads/search", {"metadata": {"source": "mcp"}}, headers=headers).json
    assert [t["thread_id"] for t in found] == [thread]
    assert api.delete(f"/threads/{thread}", headers=headers).status == 204
    assert listed(api, "ann") == set()
    assert not call(api, "ann", "execute_code", session_id=session, code="1")["success"]
    session = call(api, "ann", "create_session", language="python")["session_id"]
    assert listed(api, "ann") == {(thread, session)}
    call(api, "ann", "stop_session", session_id=session)


def test_the_conversation_is_the_same_after_a_restart(api):
    first = call(api, "bob", "create_session", language="python")["session_id"]
    thread = next(t for t, s in listed(api, "bob") if s == first)
    api.restart()
    second = call(api, "bob", "create_session", language="python")["session_id"]
    assert listed(api, "bob") == {(thread, second)}
    call(api, "bob", "stop_session", session_id=second)
