# SPDX-License-Identifier: MIT
"""LangGraph's Python SDK against `sandbox-agent api`: runs, their streams, states and forks.

What is expected is what the contract says or what the official JavaScript server sent for the same
steps; test_langgraph_oracle.py compares with that one live.
"""

import asyncio
import collections
import itertools
import json

import apiserver
import cutproxy
import pytest
from langgraph_sdk import errors, get_client, get_sync_client

ALL_MODES = ["values", "messages", "messages-tuple", "updates", "events", "debug", "tasks",
             "checkpoints", "custom", "tools"]


@pytest.fixture(scope="module")
def database(both_databases):
    """All of these on both databases."""
    return both_databases


@pytest.fixture(scope="module")
def sdk(api):
    """The synchronous client."""
    with get_sync_client(url=api.url) as client:
        yield client


@pytest.fixture
def thread(sdk):
    """The id of a new thread."""
    return sdk.threads.create()["thread_id"]


def stream(sdk, thread, text=None, modes=("values",), **options):
    """Stream a run; return its parts."""
    given = None if text is None else apiserver.human(text)
    return list(sdk.runs.stream(thread, "agent", input=given, stream_mode=list(modes), **options))


def shape(parts):
    """Return the names of the events, each once for a row of equal ones."""
    return [name for name, _ in itertools.groupby(part.event for part in parts)]


def texts(state):
    """Return type and text of each message of a state."""
    return [(m["type"], m["content"]) for m in state["values"]["messages"]]


def last_values(parts):
    """Return the last full state of a stream."""
    return [part.data for part in parts if part.event == "values"][-1]


@pytest.fixture(scope="module")
def tool_run(sdk):
    """A run in a real sandbox: its thread, and its stream with three modes."""
    thread = sdk.threads.create(metadata={"kind": "tool run"})["thread_id"]
    parts = stream(sdk, thread, "run: print(40 + 2)", ["values", "messages-tuple", "updates"])
    return thread, parts


# ---- a run that calls execute_code ----


def test_order_of_a_run_with_tools(tool_run):
    _, parts = tool_run
    step = ["messages", "updates", "values"]
    # create_session and execute_code, each with the model before, and the model's last word
    assert shape(parts) == ["metadata", "values", *step * 5, "end"]
    assert parts[0].data["attempt"] == 1 and parts[-1].data == {"status": "success"}
    nodes = [list(part.data) for part in parts if part.event == "updates"]
    assert nodes == [["model"], ["tools"], ["model"], ["tools"], ["model"]]
    ids = [part.id for part in parts]
    assert all(ids) and len(set(ids)) == len(ids)


def test_what_the_tool_gave(tool_run):
    _, parts = tool_run
    result = json.loads(last_values(parts)["messages"][-2]["content"])
    assert result["status"] == "ok" and result["stdout"] == "42\n"


def test_chunks_add_up_to_messages(tool_run):
    _, parts = tool_run
    final = {m["id"]: m for m in last_values(parts)["messages"]}
    seen = {}
    for part in parts:
        if part.event == "messages":
            message, metadata = part.data
            seen.setdefault(message["id"], []).append(message)
            assert metadata["langgraph_node"] in ("model", "tools")
            assert metadata["run_id"] == parts[0].data["run_id"]
    assert list(seen) == [i for i, m in final.items() if m["type"] != "human"]
    for chunks in seen.values():
        whole = final[chunks[0]["id"]]
        if whole["type"] == "tool":
            assert chunks == [whole]
            continue
        assert {c["type"] for c in chunks} == {"AIMessageChunk"}
        assert "".join(c["content"] for c in chunks) == whole["content"]
        fragments = [f for c in chunks for f in c["tool_call_chunks"]]
        assert all(len(c["tool_call_chunks"]) <= 1 for c in chunks)
        if fragments:
            call, = whole["tool_calls"]
            assert json.loads("".join(f["args"] for f in fragments)) == call["args"]
            assert [f["id"] for f in fragments if f["id"]] == [call["id"]]
        assert [c["usage_metadata"] for c in chunks if c["usage_metadata"]] == [
            whole["usage_metadata"]]
        ends = [c for c in chunks if c["response_metadata"].get("finish_reason")]
        assert ends == chunks[-1:] and ends[0]["content"] == ""


def test_state_is_the_last_values(sdk, tool_run):
    thread, parts = tool_run
    state = sdk.threads.get_state(thread)
    assert state["values"] == last_values(parts)
    assert state["next"] == [] and state["tasks"] == [] and state["interrupts"] == []
    assert state["checkpoint"]["thread_id"] == thread
    assert state["metadata"]["step"] == 5 and state["metadata"]["source"] == "loop"


def test_history_is_a_chain(sdk, tool_run):
    thread, parts = tool_run
    history = sdk.threads.get_history(thread, limit=100)
    assert [h["metadata"]["step"] for h in history] == [5, 4, 3, 2, 1, 0, -1]
    assert history[-1]["metadata"]["source"] == "input"
    assert [h["next"] for h in history] == [
        [], ["model"], ["tools"], ["model"], ["tools"], ["model"], ["__start__"]]
    ids = [h["checkpoint"]["checkpoint_id"] for h in history]
    assert ids == sorted(ids, reverse=True) and len(set(ids)) == 7
    parents = [h["parent_checkpoint"] and h["parent_checkpoint"]["checkpoint_id"] for h in history]
    assert parents == [*ids[1:], None]
    assert [len(h["values"].get("messages", [])) for h in history] == [6, 5, 4, 3, 2, 1, 0]
    streamed = [part.data for part in parts if part.event == "values"]
    assert [h["values"] for h in history[:-1]] == streamed[::-1]
    # older than one, and one by one
    assert sdk.threads.get_history(thread, before=ids[2], limit=2) == history[3:5]
    for entry in history:
        same = sdk.threads.get_state(thread, checkpoint=entry["checkpoint"])
        assert same["values"] == entry["values"] and same["next"] == entry["next"]
        by_id = sdk.threads.get_state(
            thread, checkpoint_id=entry["checkpoint"]["checkpoint_id"])
        assert by_id == same


def test_join_goes_on_after_any_frame(sdk, tool_run):
    thread, parts = tool_run
    run = parts[0].data["run_id"]
    for last in (0, 1, len(parts) // 2, len(parts) - 2, len(parts) - 1):
        rest = list(sdk.runs.join_stream(
            thread, run, last_event_id=parts[last].id,
            stream_mode=["values", "messages-tuple", "updates"]))
        assert rest == parts[last + 1:], f"after frame {last}"
    everything = list(sdk.runs.join_stream(
        thread, run, last_event_id="-1", stream_mode=["values", "messages-tuple", "updates"]))
    assert everything == parts
    # a part of the modes
    values = list(sdk.runs.join_stream(thread, run, last_event_id="-1", stream_mode="values"))
    assert values == [p for p in parts if p.event in ("metadata", "values", "end")]
    # the values at the end, for those who want no stream
    assert sdk.runs.join(thread, run) == last_values(parts)


def test_run_and_thread_know_each_other(sdk, tool_run):
    thread, parts = tool_run
    run = sdk.runs.get(thread, parts[0].data["run_id"])
    assert run["status"] == "success" and run["thread_id"] == thread
    assert run["kwargs"]["stream_mode"] == ["values", "messages-tuple", "updates"]
    assert run["output"] == last_values(parts)
    assert [r["run_id"] for r in sdk.runs.list(thread)] == [run["run_id"]]
    assert sdk.runs.list(thread, status="error") == []
    seen = sdk.threads.get(thread)
    assert seen["status"] == "idle" and seen["values"] == last_values(parts)
    assert seen["metadata"]["kind"] == "tool run" and seen["interrupts"] == {}
    assert {"graph_id", "assistant_id"} <= set(seen["metadata"])


# ---- forks and edits ----


def test_fork_from_a_checkpoint(sdk, thread):
    stream(sdk, thread, "first")
    stream(sdk, thread, "second")
    before = sdk.threads.get_history(thread)
    base = before[3]  # the end of the first run
    assert base["next"] == [] and texts(base)[-1] == ("ai", "You said: first")
    asked = {k: base["checkpoint"][k] for k in ("checkpoint_id", "checkpoint_ns")}
    stream(sdk, thread, "third", checkpoint=asked)

    state = sdk.threads.get_state(thread)
    assert [t for _, t in texts(state)] == ["first", "You said: first", "third", "You said: third"]
    history = sdk.threads.get_history(thread, limit=100)
    assert history[3:] == before  # the other branch is as it was
    forks = [h for h in history if h["parent_checkpoint"]
             and h["parent_checkpoint"]["checkpoint_id"] == base["checkpoint_id"]]
    assert len(forks) == 2
    old_head = before[0]["checkpoint_id"]
    assert texts(sdk.threads.get_state(thread, checkpoint_id=old_head))[-1] == (
        "ai", "You said: second")
    assert state["checkpoint_id"] > old_head


def test_regenerate_and_edit(sdk, thread):
    stream(sdk, thread, "one")
    history = sdk.threads.get_history(thread)
    asked = history[1]  # the model comes next
    first_answer = sdk.threads.get_state(thread)["values"]["messages"][-1]
    parts = list(sdk.runs.stream(thread, "agent", checkpoint_id=asked["checkpoint_id"],
                                 stream_mode=["values", "updates"]))
    assert shape(parts)[0] == "metadata" and parts[-1].data == {"status": "success"}
    messages = sdk.threads.get_state(thread)["values"]["messages"]
    assert len(messages) == 2 and messages[1]["id"] != first_answer["id"]
    # the person's message in other words, in place of the first
    edited = messages[0] | {"content": "two"}
    list(sdk.runs.stream(thread, "agent", input={"messages": [edited]},
                         checkpoint_id=history[-1]["checkpoint_id"]))
    assert texts(sdk.threads.get_state(thread)) == [("human", "two"), ("ai", "You said: two")]


def test_update_state(sdk, thread):
    stream(sdk, thread, "one")
    head = sdk.threads.get_state(thread)
    answer = head["values"]["messages"][-1]
    # the same id replaces, others append, "remove" removes
    sdk.threads.update_state(thread, {"messages": [
        answer | {"content": "changed"}, {"role": "user", "content": "more"}]})
    state = sdk.threads.get_state(thread)
    assert texts(state) == [("human", "one"), ("ai", "changed"), ("human", "more")]
    assert state["metadata"]["source"] == "update"
    assert state["parent_checkpoint"]["checkpoint_id"] == head["checkpoint_id"]
    sdk.threads.update_state(thread, {"messages": [{"type": "remove", "id": answer["id"]}]})
    assert texts(sdk.threads.get_state(thread)) == [("human", "one"), ("human", "more")]
    # as a node: what comes after it is next
    sdk.threads.update_state(
        thread, {"messages": [{"role": "user", "content": "go"}]}, as_node="__start__")
    assert sdk.threads.get_state(thread)["next"] == ["model"]
    list(sdk.runs.stream(thread, "agent", input=None))
    assert texts(sdk.threads.get_state(thread))[-1] == ("ai", "You said: go")
    sdk.threads.update_state(
        thread, {"messages": [{"role": "ai", "content": "the last word"}]}, as_node="model")
    assert sdk.threads.get_state(thread)["next"] == []
    # from an older checkpoint
    made = sdk.threads.update_state(thread, {"messages": [{"role": "user", "content": "aside"}]},
                                    checkpoint_id=head["checkpoint_id"])
    assert made["checkpoint"]["checkpoint_id"] == sdk.threads.get_state(thread)["checkpoint_id"]
    assert [t for _, t in texts(sdk.threads.get_state(thread))] == [
        "one", "You said: one", "aside"]
    # unchanged, as Studio forks
    sdk.threads.update_state(thread, None, as_node="__copy__", checkpoint_id=head["checkpoint_id"])
    copy = sdk.threads.get_state(thread)
    assert copy["values"] == head["values"] and copy["metadata"]["source"] == "fork"


# ---- modes ----


def test_every_mode_at_once(sdk, thread):
    parts = stream(sdk, thread, "run: print(1)", ALL_MODES)
    names = {part.event for part in parts}
    assert names >= {"metadata", "values", "messages", "messages/metadata", "messages/complete",
                     "messages/partial", "updates", "events", "debug", "tasks", "checkpoints",
                     "custom", "tools", "end"}
    by = {name: [p.data for p in parts if p.event == name] for name in names}
    assert [d["data"] for d in by["custom"]] == ["1\n"]
    assert [t["event"] for t in by["tools"]] == ["on_tool_start", "on_tool_end",
                                                 "on_tool_start", "on_tool_event", "on_tool_end"]
    kinds = [d["type"] for d in by["debug"]]
    assert kinds[:2] == ["checkpoint", "checkpoint"] and kinds.count("task") == 5
    assert kinds.count("task_result") == 5 and kinds.count("checkpoint") == 7
    assert by["checkpoints"] == [d["payload"] for d in by["debug"] if d["type"] == "checkpoint"]
    assert by["tasks"] == [d["payload"] for d in by["debug"] if d["type"] != "checkpoint"]
    events = [e["event"] for e in by["events"]]
    assert events[0] == "on_chain_start" and events[-1] == "on_chain_end"
    assert events.count("on_chat_model_start") == events.count("on_chat_model_end") == 3
    assert events.count("on_tool_start") == events.count("on_tool_end") == 2
    for event in by["events"]:
        if event["event"] == "on_chat_model_stream":
            assert isinstance(event["data"]["chunk"]["response_metadata"], dict)
            assert isinstance(event["metadata"], dict)
    partial = [d[0] for d in by["messages/partial"] if d[0]["type"] != "tool"]
    final = last_values(parts)["messages"][-1]
    assert partial[-1]["id"] == final["id"] and partial[-1]["content"] == final["content"]


@pytest.mark.parametrize("mode", ALL_MODES)
def test_each_mode_alone(sdk, thread, mode):
    parts = stream(sdk, thread, "hello", [mode])
    expected = {"messages-tuple": {"messages"}, "custom": set(), "tools": set(),
                "messages": {"messages/metadata", "messages/partial"}}.get(mode, {mode})
    assert {p.event for p in parts} == expected | {"metadata", "end"}


def test_unknown_mode_is_refused(sdk, thread):
    with pytest.raises(errors.UnprocessableEntityError):
        stream(sdk, thread, "hello", ["no such mode"])


# ---- the same by the asynchronous client, and streaming protocol v2 ----


def test_async_client(api):
    async def walk():
        async with get_client(url=api.url) as client:
            thread = (await client.threads.create())["thread_id"]
            created = []
            parts = [part async for part in client.runs.stream(
                thread, "agent", input=apiserver.human("hi"), stream_mode=["values"],
                on_run_created=created.append)]
            run = await client.runs.create(thread, "agent", input=apiserver.human("ho"))
            joined = await client.runs.join(thread, run["run_id"])
            return thread, created, parts, joined

    thread, created, parts, joined = asyncio.run(walk())
    # from Content-Location, exactly
    assert created == [{"run_id": parts[0].data["run_id"], "thread_id": thread}]
    assert joined["messages"][-1]["content"] == "You said: ho"


def test_thread_stream(api):
    async def walk():
        async with (get_client(url=api.url) as client,
                    client.threads.stream(assistant_id="agent") as thread):
            await thread.run.start(input=apiserver.human("run: print(6 * 7)"))

            seen = {"messages": [], "tool_calls": [], "values": []}
            channels = list(seen)
            async for channel, item in thread.interleave_projections(channels):
                seen[channel].append(item)
            said = [str(await message.text) for message in seen["messages"]]
            called = [(call.name, await call.output) for call in seen["tool_calls"]]
            return said, called, seen["values"], await thread.output

    said, called, values, output = asyncio.run(walk())
    messages = output["messages"]
    assert values[-1] == output
    assert said == [m["content"] for m in messages if m["type"] == "ai"]
    assert [name for name, _ in called] == ["create_session", "execute_code"]
    assert called[1][1]["status"] == "success"
    assert json.loads(called[1][1]["content"])["stdout"] == "42\n"


def test_thread_stream_answers_an_interrupt(api):
    async def walk():
        async with (get_client(url=api.url) as client,
                    client.threads.stream(assistant_id="agent") as thread):
            await thread.run.start(
                input=apiserver.human("run: print(1)"),
                config={"configurable": {"approve_tools": ["create_session"]}})
            async for _ in thread.values:
                pass  # it ends when a person is asked
            asked = list(thread.interrupts)
            await thread.run.respond({"decisions": [{"type": "reject"}]})
            return asked, await thread.output

    asked, output = asyncio.run(walk())
    assert asked[0]["value"]["action_requests"][0]["name"] == "create_session"
    assert [m["type"] for m in output["messages"]] == ["human", "ai", "tool", "ai"]
    assert output["messages"][2]["status"] == "error"


# ---- connections that break ----


def test_a_cut_stream_goes_on(api):
    cuts = [3000, 900]
    with cutproxy.CutProxy(api.url, cuts) as proxy, get_sync_client(url=proxy.url) as client:
        thread = client.threads.create()["thread_id"]
        parts = stream(client, thread, "count: 60", ["values", "messages-tuple"])
    assert proxy.cut_count == len(cuts), "the stream was shorter than where it was to be cut"
    resumed = [(path, headers["last-event-id"]) for _, path, headers in proxy.requests
               if "last-event-id" in headers]
    assert len(resumed) == len(cuts)
    # each frame once, in order, as if nothing had been
    run = parts[0].data["run_id"]
    with get_sync_client(url=api.url) as client:
        whole = list(client.runs.join_stream(thread, run, last_event_id="-1",
                                             stream_mode=["values", "messages-tuple"]))
    assert parts == whole
    text = "".join(p.data[0]["content"] for p in parts if p.event == "messages")
    assert text == "".join(f"{i} " for i in range(60))


# ---- the path that two other servers were recorded on ----


def test_the_recorded_path(sdk):
    found, *_ = sdk.assistants.search(graph_id="agent")
    assert sdk.assistants.get_schemas(found["assistant_id"])["graph_id"]
    assert sdk.assistants.get_graph(found["assistant_id"])["nodes"]
    before = sdk.threads.count()
    thread = sdk.threads.create(metadata={"recorded": "path"})["thread_id"]
    parts = stream(sdk, thread, "hi", ["values", "messages-tuple", "updates"])
    counts = collections.Counter(part.event for part in parts)
    assert counts.pop("messages") > 1
    assert counts == {"metadata": 1, "values": 2, "updates": 1, "end": 1}
    run = sdk.runs.create(thread, "agent", input=apiserver.human("hi"))
    assert len(sdk.runs.join(thread, run["run_id"])["messages"]) == 4
    assert sdk.runs.get(thread, run["run_id"])["status"] == "success"
    assert len(sdk.runs.list(thread)) == 2
    assert len(sdk.threads.get_state(thread)["values"]["messages"]) == 4
    assert len(sdk.threads.get_history(thread, limit=10)) == 6
    assert len(sdk.runs.wait(thread, "agent", input=apiserver.human("hi"))["messages"]) == 6
    assert len(sdk.runs.wait(None, "agent", input=apiserver.human("hi"))["messages"]) == 2
    resumable = sdk.runs.create(thread, "agent", input=apiserver.human("hi"),
                                stream_mode=["values"], stream_resumable=True)
    assert [part.event for part in sdk.runs.join_stream(
        thread, resumable["run_id"], last_event_id="-1")] == ["metadata", "values", "values", "end"]
    assert [t["thread_id"] for t in sdk.threads.search(metadata={"recorded": "path"})] == [thread]
    edited = sdk.threads.update_state(thread, apiserver.human("edited"))
    assert set(edited["checkpoint"]) >= {"thread_id", "checkpoint_ns", "checkpoint_id"}
    copy = sdk.threads.copy(thread)
    assert copy["metadata"]["recorded"] == "path"
    assert sdk.threads.count() == before + 2
    sdk.threads.delete(thread)
    with pytest.raises(errors.NotFoundError) as caught:
        sdk.threads.get(thread)
    assert caught.value.response.status_code == 404
