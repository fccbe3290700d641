# SPDX-License-Identifier: MIT
"""What Agent Chat UI, LangGraph Studio and CopilotKit ask, request by request, over plain HTTP."""

import json
import uuid

import apiserver
import fakemodel
import pytest

STUDIO = "https://smith.langchain.com"
CHAT = "https://agentchat.vercel.app"
EXPOSED = {"content-location", "location", "x-pagination-total", "x-pagination-next"}


@pytest.fixture(scope="module")
def model():
    """A model that obeys the last message."""
    with fakemodel.FakeModel() as fake:
        yield fake


@pytest.fixture(scope="module")
def api(tmp_path_factory, model):
    """A server that two foreign pages may call."""
    with apiserver.ApiServer(tmp_path_factory.mktemp("api"), model,
                             CORS_ORIGINS=f"{STUDIO},{CHAT}") as server:
        yield server


def words(text):
    """Return a header's list in lower case."""
    return {word.strip().lower() for word in text.split(",")}


def frames_of(stream):
    """Return all frames, after a look at the headers that browsers need."""
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert stream.headers["cache-control"] in ("no-cache", "no-store")
    assert "content-encoding" not in stream.headers
    return list(stream)


# ---- browsers ----


@pytest.mark.parametrize("origin", [STUDIO, CHAT, "http://localhost:3000", "http://127.0.0.1:5173"])
def test_preflight(api, origin):
    asked = "content-type, x-api-key, x-auth-scheme, authorization, last-event-id"
    answer = api.request("OPTIONS", "/threads/search", headers={
        "Origin": origin, "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": asked,
        "Access-Control-Request-Private-Network": "true"})
    assert answer.status in (200, 204)
    headers = answer.headers
    assert headers["access-control-allow-origin"] == origin
    assert headers["access-control-allow-private-network"] == "true"
    assert words(asked) <= words(headers["access-control-allow-headers"])
    assert {"get", "post", "put", "patch", "delete"} <= words(
        headers["access-control-allow-methods"])
    assert int(headers["access-control-max-age"]) >= 600


def test_answers_to_pages(api):
    answer = api.get("/info", headers={"Origin": STUDIO})
    assert answer.headers["access-control-allow-origin"] == STUDIO
    assert words(answer.headers["access-control-expose-headers"]) >= EXPOSED
    assert "*" not in answer.headers["access-control-allow-origin"]
    stranger = api.get("/info", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in stranger.headers
    refused = api.post("/threads", {}, headers={"Origin": "https://evil.example"})
    assert refused.status == 403


# ---- Agent Chat UI ----


def test_agent_chat_ui(api):
    headers = {"Origin": CHAT, "X-Api-Key": "none", "X-Auth-Scheme": "langsmith"}
    assert api.get("/info", headers=headers).status == 200

    def history(key):
        found = api.post("/threads/search", {"metadata": key, "limit": 100, "offset": 0},
                         headers=headers)
        return {t["thread_id"]: t for t in found.json}

    before = history({"graph_id": "agent"})
    thread = api.post("/threads", {}, headers=headers).json["thread_id"]
    assert api.post(f"/threads/{thread}/history", {"limit": 10}, headers=headers).json == []
    body = {
        "input": {"messages": [
            {"id": "do-not-render-1", "type": "tool", "tool_call_id": "none", "name": "x",
             "content": "Successfully handled tool call."},
            {"id": "h1", "type": "human",
             "content": [{"type": "text", "text": "call: list_sessions {}"}]}],
            "context": {"artifact": "unknown to the graph"}},
        "stream_mode": ["values", "messages-tuple", "custom"], "stream_subgraphs": True,
        "stream_resumable": True, "on_disconnect": "continue", "assistant_id": "agent",
        "config": {"configurable": {"approve_tools": "*"}}}
    stream = api.stream(f"/threads/{thread}/runs/stream", body, headers=headers)
    frames = frames_of(stream)
    run = frames[0].data["run_id"]
    assert stream.headers["content-location"] == f"/threads/{thread}/runs/{run}"
    assert stream.headers["location"].startswith(f"/threads/{thread}/runs/{run}/")
    assert words(stream.headers["access-control-expose-headers"]) >= EXPOSED

    # the list on the left, by either key
    seen = history({"graph_id": "agent"})
    assert set(seen) == {*before, thread}
    assert "list_sessions" in json.dumps(seen[thread]["values"]["messages"])
    assistant = api.post("/assistants/search", {"graph_id": "agent"}).json[0]["assistant_id"]
    assert thread in history({"assistant_id": assistant})

    # a question, answered as its buttons do: an empty input beside the command
    interrupt, = frames[-2].data["__interrupt__"]
    assert interrupt["value"]["action_requests"] and interrupt["value"]["review_configs"]
    assert api.state(thread)["tasks"][0]["interrupts"] == [interrupt]
    frames = frames_of(api.stream(f"/threads/{thread}/runs/stream", {
        **body, "input": {}, "command": {"resume": {"decisions": [{"type": "approve"}]}}}))
    assert frames[-1].data == {"status": "success"}
    states = api.post(f"/threads/{thread}/history", {"limit": 10}).json
    assert all(isinstance(s["next"], list) and isinstance(s["tasks"], list) for s in states)
    assert states[0]["checkpoint"]["checkpoint_id"] and "__interrupt__" not in states[0]["values"]

    # again from the AI's message, without an input; the head's checkpoint has no thread_id
    asked = next(s for s in states if s["next"] == ["model"] and len(s["values"]["messages"]) == 2)
    checkpoint = {k: v for k, v in asked["checkpoint"].items() if k != "thread_id"}
    again = {k: v for k, v in body.items() if k not in ("input", "config")}
    frames = frames_of(api.stream(f"/threads/{thread}/runs/stream",
                                  {**again, "checkpoint": checkpoint}))
    assert frames[-1].data == {"status": "success"}
    joined = frames_of(api.stream(
        f"/threads/{thread}/runs/{frames[0].data['run_id']}/stream"
        "?stream_mode=%5B%22values%22%5D&cancel_on_disconnect=0", headers={"Last-Event-ID": "-1"}))
    assert joined[-1].event == "end"


def test_mark_as_resolved(api):
    thread = api.thread()
    api.run(thread, "call: list_sessions {}", config={"configurable": {"approve_tools": "*"}})
    frames = api.run(thread, command={"goto": "__end__"}, input={})
    assert frames[-1].data == {"status": "success"}
    assert api.state(thread)["next"] == [] and api.state(thread)["interrupts"] == []


# ---- LangGraph Studio ----


def plain(api, path, body, times=1):
    """POST JSON as text/plain, as Studio does to need no preflight; encoded twice if so told."""
    for _ in range(times):
        body = json.dumps(body)
    return api.post(path, body, headers={"Content-Type": "text/plain;charset=UTF-8",
                                         "Origin": STUDIO, "x-auth-scheme": "langsmith"})


@pytest.mark.parametrize("times", [1, 2])
def test_studio(api, times):
    info = api.get("/info").json
    assert tuple(map(int, info["version"].split(".")[:3])) > (0, 4, 35)
    assert info["flags"]["assistants"] is True and info["flags"]["crons"] is False
    assert api.get("/ok").json == {"ok": True}
    found = plain(api, "/assistants/search",
                  {"limit": 10, "offset": 0, "metadata": {"created_by": "system"}}, times).json
    key = found[0]["assistant_id"]
    graph = api.get(f"/assistants/{key}/graph?xray=true").json
    assert graph["nodes"] and graph["edges"]
    assert api.get(f"/assistants/{key}/schemas").json["state_schema"]["properties"]
    assert api.get(f"/assistants/{key}/subgraphs?recurse=true").json == {}
    versions = plain(api, f"/assistants/{key}/versions", {"metadata": {}, "limit": 10}, times).json
    assert [v["version"] for v in versions] == [1]
    assert isinstance(plain(api, "/threads/search", {"limit": 10}, times).json, list)
    thread = plain(api, "/threads", {}, times).json["thread_id"]
    state = api.get(f"/threads/{thread}/state?subgraphs=true").json
    assert state["values"] == {} and state["next"] == []
    assert plain(api, f"/threads/{thread}/history", {"limit": 100}, times).json == []

    # a run with a breakpoint, as the debugger draws it
    body = {"assistant_id": key, "input": apiserver.human("call: list_sessions {}"),
            "stream_mode": ["debug", "messages"], "stream_subgraphs": True,
            "interrupt_before": ["tools"], "multitask_strategy": "rollback",
            "metadata": {"from_studio": True, "LANGGRAPH_API_URL": api.url},
            "config": {"configurable": {}}, "checkpoint_during": True}
    text = body
    for _ in range(times):
        text = json.dumps(text)
    frames = frames_of(api.stream(f"/threads/{thread}/runs/stream", text,
                                  headers={"Content-Type": "text/plain", "Origin": STUDIO}))
    debug = [f.data for f in frames if f.event == "debug"]
    assert {d["type"] for d in debug} == {"checkpoint", "task", "task_result"}
    for entry in debug:
        payload = entry["payload"]
        assert isinstance(entry["step"], int) and entry["timestamp"]
        if entry["type"] == "checkpoint":
            assert set(payload) >= {"config", "parent_config", "values", "metadata", "next",
                                    "tasks", "checkpoint", "parent_checkpoint"}
            assert payload["config"]["configurable"]["thread_id"] == thread
        else:
            assert payload["id"] and payload["name"] in ("model", "tools", "__start__")
    assert api.state(thread)["next"] == ["tools"]

    # an edit as a node, a fork, a copy, and the store's panel
    head = api.state(thread)["checkpoint_id"]
    edit = plain(api, f"/threads/{thread}/state", {
        "values": {"messages": [{"type": "ai", "content": "by hand", "id": "m9"}]},
        "as_node": "model", "checkpoint_id": head}, times)
    assert edit.status == 200 and edit.json["checkpoint"]["checkpoint_id"] > head
    assert api.state(thread)["next"] == []
    fork = plain(api, f"/threads/{thread}/state", {
        "values": None, "as_node": "__copy__",
        "checkpoint": {"checkpoint_id": head, "checkpoint_ns": "", "thread_id": thread}}, times)
    assert fork.status == 200 and api.state(thread)["next"] == ["tools"]
    by_get = api.get(f"/threads/{thread}/state/{head}").json
    by_post = api.post(f"/threads/{thread}/state/checkpoint",
                       {"checkpoint": {"checkpoint_id": head}}).json
    assert by_get == by_post and by_get["checkpoint_id"] == head
    assert api.post(f"/threads/{thread}/copy").json["thread_id"] != thread
    assert plain(api, "/store/namespaces", {"limit": 100}, times).json == {"namespaces": []}
    assert plain(api, "/store/items/search", {"namespace_prefix": []}, times).json["items"] == []


# ---- CopilotKit ----


def test_copilotkit(api):
    found = api.post("/assistants/search", {"graph_id": "agent", "limit": 1}).json
    assert len(found) == 1 and found[0]["graph_id"] == "agent"
    key, thread = found[0]["assistant_id"], str(uuid.uuid4())
    assert api.get(f"/threads/{thread}").status == 404
    assert api.post("/threads", {"thread_id": thread, "metadata": {}}).json["thread_id"] == thread
    assert api.state(thread)["values"] == {}
    schemas = api.get(f"/assistants/{key}/schemas").json
    for name in ("input_schema", "output_schema", "config_schema", "context_schema"):
        assert isinstance(schemas[name]["properties"], dict)
    assert "messages" in schemas["input_schema"]["properties"]
    assert api.get(f"/assistants/{key}/graph").json["nodes"]
    frames = frames_of(api.stream(f"/threads/{thread}/runs/stream", {
        "assistant_id": key, "stream_subgraphs": True,
        "stream_mode": ["events", "values", "updates", "messages-tuple"],
        "input": {**apiserver.human("call: list_sessions {}"), "tools": [],
                  "copilotkit": {"actions": [], "context": []}},
        "config": {"configurable": {"copilotkit_forwarded_headers": {"x": "y"},
                                    "thread_id": thread}}}))
    events = [f.data for f in frames if f.event == "events"]
    for event in events:
        assert isinstance(event["metadata"], dict) and isinstance(event["data"], dict)
        if event["event"] == "on_chat_model_stream":
            chunk = event["data"]["chunk"]
            assert isinstance(chunk["response_metadata"], dict)
            if chunk["response_metadata"].get("finish_reason"):
                assert chunk["content"] == "" and not chunk["tool_call_chunks"]
        if event["event"] == "on_tool_end":
            assert event["data"]["output"]["tool_call_id"] and event["data"]["output"]["content"]
            assert event["data"]["input"] == {}
    # the model's pieces come as events before they come as tuples
    order = [(f.event, f.data["event"] if f.event == "events" else None) for f in frames]
    assert order.index(("events", "on_chat_model_stream")) < order.index(("messages", None))

    # again from a message: history, an edit of the past, and a run from there
    states = api.post(f"/threads/{thread}/history", {"limit": 100}).json
    base = next(s for s in states if len(s["values"].get("messages", [])) == 1)
    made = api.post(f"/threads/{thread}/state", {
        "values": base["values"], "checkpoint_id": base["checkpoint"]["checkpoint_id"],
        "as_node": "__start__"}).json["checkpoint"]
    frames = api.run(thread, checkpoint_id=made["checkpoint_id"])
    assert frames[-1].data == {"status": "success"}
    assert len(api.messages(thread)) == 4

    run = api.post(f"/threads/{thread}/runs", {
        "assistant_id": key, "input": apiserver.human("hi"), "after_seconds": 60}).json
    stopped = api.post(f"/threads/{thread}/runs/{run['run_id']}/cancel?wait=0&action=interrupt")
    assert stopped.status == 200 and stopped.json["run_id"] == run["run_id"]
