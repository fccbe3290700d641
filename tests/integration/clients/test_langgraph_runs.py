# SPDX-License-Identifier: MIT
"""LangGraph's Python SDK: how runs are queued, left, cancelled, interrupted, resumed, and fail."""

import json
import os
import socket
import subprocess
import threading
import time

import apiserver
import pytest
from langgraph_sdk import errors, get_sync_client

APPROVE = {"configurable": {"approve_tools": ["create_session"]}}


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


@pytest.fixture
def held(sdk, model, thread, request):
    """A run that waits at its model: its id, and the name of the gate."""
    name = request.node.name
    run = start(sdk, thread, f"hold: {name}")
    assert model.reached(name)
    yield run["run_id"], name
    model.release(name)


def start(sdk, thread, text, **options):
    """Start a run in the background."""
    return sdk.runs.create(thread, "agent", input=apiserver.human(text), **options)


def said(sdk, thread):
    """Return what was said in a thread."""
    values = sdk.threads.get_state(thread)["values"]
    return [m["content"] for m in values.get("messages", [])]


def status(sdk, thread, run):
    """Return the status of a run once it has ended."""
    sdk.runs.join(thread, run)
    return sdk.runs.get(thread, run)["status"]


# ---- several runs of one thread ----


def test_enqueue_is_the_default(sdk, model, thread, held):
    run, gate = held
    queued = [start(sdk, thread, text)["run_id"] for text in ("second", "third")]
    assert [sdk.runs.get(thread, r)["status"] for r in [run, *queued]] == [
        "running", "pending", "pending"]
    assert sdk.threads.get(thread)["status"] == "busy"
    model.release(gate)
    assert [status(sdk, thread, r) for r in [run, *queued]] == ["success"] * 3
    assert said(sdk, thread) == [f"hold: {gate}", "Held and released.", "second",
                                 "You said: second", "third", "You said: third"]
    assert sdk.threads.get(thread)["status"] == "idle"


def test_reject(sdk, model, thread, held):
    run, gate = held
    with pytest.raises(errors.ConflictError):
        start(sdk, thread, "second", multitask_strategy="reject")
    model.release(gate)
    assert status(sdk, thread, run) == "success"
    assert start(sdk, thread, "second", multitask_strategy="reject")["status"] == "pending"


def test_interrupt(sdk, thread, held):
    run, gate = held
    second = start(sdk, thread, "second", multitask_strategy="interrupt")["run_id"]
    assert status(sdk, thread, second) == "success"
    assert status(sdk, thread, run) == "interrupted"
    # what was said stays, the unfinished answer does not
    assert said(sdk, thread) == [f"hold: {gate}", "second", "You said: second"]


def test_rollback(sdk, thread, held):
    run, _ = held
    second = start(sdk, thread, "second", multitask_strategy="rollback")["run_id"]
    assert status(sdk, thread, second) == "success"
    assert said(sdk, thread) == ["second", "You said: second"]
    with pytest.raises(errors.NotFoundError):
        sdk.runs.get(thread, run)
    assert len(sdk.threads.get_history(thread, limit=100)) == 3


def test_cancel(sdk, model, thread, held):
    run, gate = held
    sdk.runs.cancel(thread, run, wait=True)
    assert sdk.runs.get(thread, run)["status"] == "interrupted"
    request = next(r for r in model.requests if r.last_user_text == f"hold: {gate}")
    assert request.closed.wait(5), "the model is still asked"
    assert said(sdk, thread) == [f"hold: {gate}"]
    end = list(sdk.runs.join_stream(thread, run, last_event_id="-1"))[-1]
    assert (end.event, end.data) == ("end", {"status": "interrupted"})
    assert status(sdk, thread, start(sdk, thread, "again")["run_id"]) == "success"
    sdk.runs.cancel(thread, run)  # once more: nothing changes
    assert sdk.runs.get(thread, run)["status"] == "interrupted"


def test_cancel_with_rollback(sdk, thread, held):
    run, _ = held
    sdk.runs.cancel(thread, run, wait=True, action="rollback")
    assert said(sdk, thread) == []
    with pytest.raises(errors.NotFoundError):
        sdk.runs.get(thread, run)


def test_cancel_of_what_waits(sdk, model, thread, held):
    run, gate = held
    queued = start(sdk, thread, "second")["run_id"]
    sdk.runs.cancel(thread, queued, wait=True)
    model.release(gate)
    assert status(sdk, thread, run) == "success"
    assert sdk.runs.get(thread, queued)["status"] == "interrupted"
    assert said(sdk, thread) == [f"hold: {gate}", "Held and released."]


def test_cancel_many(sdk, thread, held):
    run, _ = held
    queued = start(sdk, thread, "second")["run_id"]
    sdk.runs.cancel_many(thread_id=thread, run_ids=[run, queued])
    assert [status(sdk, thread, r) for r in (run, queued)] == ["interrupted"] * 2


def test_delete_of_a_run(sdk, model, thread, held):
    run, gate = held
    with pytest.raises(errors.ConflictError):
        sdk.runs.delete(thread, run)
    model.release(gate)
    assert status(sdk, thread, run) == "success"
    sdk.runs.delete(thread, run)
    with pytest.raises(errors.NotFoundError):
        sdk.runs.get(thread, run)


def test_later(sdk, thread):
    begin = time.monotonic()
    run = start(sdk, thread, "later", after_seconds=1)
    assert run["status"] == "pending"
    assert status(sdk, thread, run["run_id"]) == "success"
    assert 0.9 < time.monotonic() - begin < 10


# ---- without a thread ----


def test_stateless_runs(sdk):
    values = sdk.runs.wait(None, "agent", input=apiserver.human("hi"))
    assert values["messages"][-1]["content"] == "You said: hi"
    parts = list(sdk.runs.stream(None, "agent", input=apiserver.human("hi")))
    assert [p.event for p in parts] == ["metadata", "values", "values", "end"]
    made = []
    list(sdk.runs.stream(None, "agent", input=apiserver.human("hi"), on_run_created=made.append))
    assert made[0]["run_id"]
    for run in sdk.runs.create_batch([
            {"assistant_id": "agent", "input": apiserver.human(t), "on_completion": "keep"}
            for t in "ab"]):
        assert status(sdk, run["thread_id"], run["run_id"]) == "success"


def test_stateless_threads_go_unless_kept(sdk):
    gone = sdk.runs.create(None, "agent", input=apiserver.human("hi"))
    kept = sdk.runs.create(None, "agent", input=apiserver.human("hi"), on_completion="keep")
    assert status(sdk, kept["thread_id"], kept["run_id"]) == "success"
    assert said(sdk, kept["thread_id"]) == ["hi", "You said: hi"]
    deadline = time.monotonic() + 10
    with pytest.raises(errors.NotFoundError):
        while time.monotonic() < deadline:
            sdk.threads.get(gone["thread_id"])


def test_threads_that_do_not_exist(sdk, thread):
    absent = "6f1d3f7e-43ab-4a53-8ed9-1d3b6d1b3b11"
    with pytest.raises(errors.NotFoundError):
        start(sdk, absent, "hi", if_not_exists="reject")
    assert start(sdk, absent, "hi", if_not_exists="create")["thread_id"] == absent
    with pytest.raises(errors.NotFoundError):
        sdk.runs.create(thread, "no such graph", input=apiserver.human("hi"))
    with pytest.raises(errors.UnprocessableEntityError):
        sdk.runs.create(thread, "agent", input=apiserver.human("hi"), multitask_strategy="no")


# ---- interrupts ----


@pytest.mark.parametrize("where", [{"interrupt_before": ["tools"]}, {"interrupt_after": ["model"]},
                                   {"interrupt_before": "*"}])
def test_breakpoints(sdk, thread, where):
    # "*" stops before the model, too
    parts = list(sdk.runs.stream(thread, "agent", input=apiserver.human('call: list_sessions {}'),
                                 stream_mode=["values", "updates"], **where))
    if where.get("interrupt_before") == "*":
        assert sdk.threads.get_state(thread)["next"] == ["model"]
        parts = list(sdk.runs.stream(thread, "agent", input=None,
                                     stream_mode=["values", "updates"], **where))
    assert parts[-1].data == {"status": "interrupted"}
    assert [p.data for p in parts if p.event == "updates"][-1] == {"__interrupt__": []}
    state = sdk.threads.get_state(thread)
    assert state["next"] == ["tools"] and state["interrupts"] == []
    assert sdk.threads.get(thread)["status"] == "interrupted"
    list(sdk.runs.stream(thread, "agent", input=None))
    assert sdk.threads.get_state(thread)["next"] == []
    assert said(sdk, thread)[-1].startswith("Result: ")


def ask(sdk, thread, **options):
    """Run up to a question about create_session; return the interrupt and the parts."""
    parts = list(sdk.runs.stream(thread, "agent", input=apiserver.human("run: print(1)"),
                                 config=APPROVE, stream_mode=["values", "updates"], **options))
    assert parts[-1].data == {"status": "interrupted"}
    interrupt, = parts[-2].data["__interrupt__"]
    return interrupt, parts


def answer(sdk, thread, resume, **options):
    """Resume; return the parts."""
    return list(sdk.runs.stream(thread, "agent", command={"resume": resume},
                                stream_mode=["values", "updates"], **options))


def test_what_an_approval_looks_like(sdk, thread):
    interrupt, parts = ask(sdk, thread)
    assert [p.event for p in parts] == [
        "metadata", "values", "updates", "values", "updates", "values", "end"]
    assert parts[-3].data == {"__interrupt__": [interrupt]}
    assert parts[-2].data["messages"] == parts[-4].data["messages"]  # the full state, always
    assert len(interrupt["id"]) == 32 and int(interrupt["id"], 16)
    value = interrupt["value"]
    assert [r["name"] for r in value["action_requests"]] == ["create_session"]
    assert value["action_requests"][0]["args"] == {"language": "python"}
    assert value["review_configs"] == [
        {"action_name": "create_session", "allowed_decisions": ["approve", "edit", "reject"]}]
    state = sdk.threads.get_state(thread)
    assert state["next"] == ["tools"] and state["interrupts"] == [interrupt]
    assert state["tasks"][0]["interrupts"] == [interrupt]
    seen = sdk.threads.get(thread)
    assert seen["status"] == "interrupted"
    assert seen["interrupts"] == {state["tasks"][0]["id"]: [interrupt]}
    assert thread in [t["thread_id"] for t in sdk.threads.search(status="interrupted", limit=100)]


@pytest.mark.parametrize("form", ["plain", "list", "by id"])
def test_approve_and_reject(sdk, thread, form):
    interrupt, _ = ask(sdk, thread)
    decisions = [{"type": "reject", "message": "not today"}]
    resume = {"plain": {"decisions": decisions}, "list": decisions,
              "by id": {interrupt["id"]: {"decisions": decisions}}}[form]
    parts = answer(sdk, thread, resume)
    assert parts[-1].data == {"status": "success"}
    tool = sdk.threads.get_state(thread)["values"]["messages"][2]
    assert tool["status"] == "error" and "not today" in tool["content"]


def test_approve_runs_exactly_what_was_shown(sdk, thread):
    ask(sdk, thread)
    answer(sdk, thread, {"decisions": [{"type": "approve"}]})
    messages = sdk.threads.get_state(thread)["values"]["messages"]
    assert json.loads(messages[2]["content"])["runtime"] == "python"
    assert json.loads(messages[4]["content"])["stdout"] == "1\n"


def test_edit(sdk, thread):
    ask(sdk, thread)
    edited = {"name": "create_session", "args": {"language": "node"}}
    answer(sdk, thread, {"decisions": [{"type": "edit", "edited_action": edited}]})
    messages = sdk.threads.get_state(thread)["values"]["messages"]
    assert messages[1]["tool_calls"][0]["args"] == {"language": "node"}
    assert json.loads(messages[2]["content"])["runtime"] == "node"


def test_an_answer_counts_once(sdk, thread):
    interrupt, _ = ask(sdk, thread)
    resume = {interrupt["id"]: {"decisions": [{"type": "reject"}]}}
    answer(sdk, thread, resume)
    with pytest.raises((errors.BadRequestError, errors.ConflictError)):
        answer(sdk, thread, resume)
    results = [m for m in sdk.threads.get_state(thread)["values"]["messages"]
               if m["type"] == "tool"]
    assert len(results) == 1


def test_two_answers_at_once(api, sdk, thread):
    interrupt, _ = ask(sdk, thread)
    body = {"assistant_id": "agent",
            "command": {"resume": {interrupt["id"]: {"decisions": [{"type": "reject"}]}}}}
    answers = []
    workers = [threading.Thread(target=lambda: answers.append(
        api.post(f"/threads/{thread}/runs/wait", body).status)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert min(answers) == 200 and all(s in (200, 400, 409) for s in answers)
    messages = sdk.threads.get_state(thread)["values"]["messages"]
    assert [m["type"] for m in messages] == ["human", "ai", "tool", "ai"]


def test_resolved_without_an_answer(sdk, thread):
    ask(sdk, thread)
    list(sdk.runs.stream(thread, "agent", command={"goto": "__end__"}))
    state = sdk.threads.get_state(thread)
    assert state["next"] == [] and state["interrupts"] == []
    assert sdk.threads.get(thread)["status"] == "idle"
    assert status(sdk, thread, start(sdk, thread, "more")["run_id"]) == "success"


def test_command_update(sdk, thread):
    ask(sdk, thread)
    list(sdk.runs.stream(thread, "agent", command={
        "update": {"messages": [{"role": "user", "content": "by the way"}]}, "goto": "__end__"}))
    assert said(sdk, thread)[-1] == "by the way"


def test_input_of_a_cell(sdk, thread):
    code = r"run: name = input('name? ')\nprint('hello ' + name)"
    parts = list(sdk.runs.stream(thread, "agent", input=apiserver.human(code),
                                 stream_mode=["values"]))
    interrupt, = parts[-2].data["__interrupt__"]
    assert interrupt["value"]["type"] == "input_request"
    assert interrupt["value"]["prompt"] == "name? "
    answer(sdk, thread, "Ada")
    result = json.loads(sdk.threads.get_state(thread)["values"]["messages"][-2]["content"])
    assert result["status"] == "ok" and result["stdout"].endswith("hello Ada\n")


# ---- failures ----


def test_a_model_that_fails(sdk, thread):
    parts = list(sdk.runs.stream(thread, "agent", input=apiserver.human("status: 401")))
    assert [p.event for p in parts] == ["metadata", "values", "error", "end"]
    assert set(parts[-2].data) == {"error", "message"}
    assert parts[-1].data == {"status": "error"}
    run = sdk.runs.get(thread, parts[0].data["run_id"])
    assert run["status"] == "error" and run["error_message"] == parts[-2].data["message"]
    seen = sdk.threads.get(thread)
    assert seen["status"] == "error"
    state = sdk.threads.get_state(thread)
    assert state["next"] == ["model"] and isinstance(state["tasks"][0]["error"], str)
    # and it is usable again
    assert status(sdk, thread, start(sdk, thread, "again")["run_id"]) == "success"
    assert sdk.threads.get(thread)["status"] == "idle"


def test_wait_tells_of_errors(sdk, thread):
    with pytest.raises(Exception, match="401"):
        sdk.runs.wait(thread, "agent", input=apiserver.human("status: 401"))
    values = sdk.runs.wait(thread, "agent", input=apiserver.human("status: 401"),
                           raise_error=False)
    assert set(values["__error__"]) == {"error", "message"}


def test_wait_tells_of_interrupts(sdk, thread):
    values = sdk.runs.wait(thread, "agent", input=apiserver.human("run: print(1)"), config=APPROVE)
    assert len(values["__interrupt__"]) == 1 and values["messages"]


def test_recursion_limit(sdk, thread):
    parts = list(sdk.runs.stream(thread, "agent", input=apiserver.human("call: list_sessions {}"),
                                 config={"recursion_limit": 2}))
    assert parts[-2].event == "error" and parts[-2].data["error"] == "GraphRecursionError"
    assert len(said(sdk, thread)) == 3


def test_a_malformed_call(sdk, thread):
    values = sdk.runs.wait(thread, "agent", input=apiserver.human("call: execute_code {not json"))
    kinds = [m["type"] for m in values["messages"]]
    assert kinds == ["human", "ai", "tool", "ai"]
    assert values["messages"][1]["invalid_tool_calls"] or values["messages"][2]["status"] == "error"


# ---- cases from the field ----


def test_case_03_client_gone(api, sdk, thread):
    """The cell of a run whose client has left stops, and the next one runs."""
    def cell(text):
        return json.loads(sdk.runs.wait(thread, "agent", input=apiserver.human(text))
                          ["messages"][-2]["content"])

    cell("run: print('warm')")
    code = r"run: import time\nfor i in range(600):\n  print(i, flush=True); time.sleep(1)"
    for way in ("cancel", "continue"):
        stream = api.stream(f"/threads/{thread}/runs/stream", {
            "assistant_id": "agent", "input": apiserver.human(code), "on_disconnect": way,
            "stream_mode": ["custom"]})
        run = stream.until("metadata").data["run_id"]
        stream.until("custom")
        stream.close()
        if way == "cancel":
            begin = time.monotonic()
            assert cell("run: 1+1")["result"]["text/plain"] == "2"
            assert time.monotonic() - begin < 6
            assert sdk.runs.get(thread, run)["status"] == "interrupted"
        else:
            assert sdk.runs.get(thread, run)["status"] == "running"
            for part in sdk.runs.join_stream(thread, run, stream_mode=["custom"],
                                             last_event_id="-1"):
                if part.event == "custom" and "2" in part.data["data"]:
                    break
            sdk.runs.cancel(thread, run, wait=True)
    assert cell("run: 1+1")["result"]["text/plain"] == "2"


def test_case_38_two_calls(sdk, model, thread):
    """Calls of one session are done one after another, those of two side by side."""
    sdk.runs.wait(thread, "agent", input=apiserver.human("run: 1"))
    text = ("run: import time; print('A1'); time.sleep(1); print('A2')\n"
            "run: print('B')")
    values = sdk.runs.wait(thread, "agent", input=apiserver.human(text))
    first, second = (json.loads(m["content"]) for m in values["messages"][-3:-1])
    assert first["stdout"] == "A1\nA2\n" and second["stdout"] == "B\n"

    made = sdk.runs.wait(thread, "agent", input=apiserver.human(
        'call: create_session {"language": "python"}\ncall: create_session {"language": "python"}'))
    sessions = [json.loads(m["content"])["session_id"] for m in made["messages"][-3:-1]]
    calls = "\n".join("call: execute_code " + json.dumps(
        {"session_id": s, "code": "import time; time.sleep(1)"}) for s in sessions)
    begin = time.monotonic()
    values = sdk.runs.wait(thread, "agent", input=apiserver.human(calls))
    assert time.monotonic() - begin < 1.6
    assert all(json.loads(m["content"])["status"] == "ok" for m in values["messages"][-3:-1])


def test_case_42_drop_and_join_again(api, sdk, model, thread):
    """A thread's stream waits for runs; a run that was left is followed from where it was."""
    seen, opened = [], threading.Event()

    def follow():
        with api.stream(f"/threads/{thread}/stream", timeout=30) as stream:
            opened.set()
            for frame in stream:
                seen.append(frame)
                if frame.event == "end":
                    return

    follower = threading.Thread(target=follow)
    follower.start()
    assert opened.wait(10)
    body = {"assistant_id": "agent", "input": apiserver.human("hold: case 42"),
            "on_disconnect": "continue", "stream_mode": ["messages-tuple"]}
    stream = api.stream(f"/threads/{thread}/runs/stream", body)
    first = [stream.until("metadata"), stream.until("messages")]
    stream.close()
    run = first[0].data["run_id"]
    model.release("case 42")
    rest = list(api.stream(f"/threads/{thread}/runs/{run}/stream?stream_mode=messages-tuple",
                           headers={"Last-Event-ID": first[1].id}))
    whole = list(api.stream(f"/threads/{thread}/runs/{run}/stream?stream_mode=messages-tuple",
                            headers={"Last-Event-ID": "-1"}))
    assert first + rest == whole and whole[0].event == "metadata" and whole[-1].event == "end"
    follower.join(20)
    assert [f.event for f in seen][:1] == ["metadata"] and seen[-1].data == {"status": "success"}


def test_case_42_only_a_real_close_cancels(api, sdk, model, thread):
    """A client that only sends no more is still there."""
    for way, end in (("half", "success"), ("whole", "interrupted")):
        gate = f"{way} {thread}"
        stream = api.stream(f"/threads/{thread}/runs/stream", {
            "assistant_id": "agent", "input": apiserver.human(f"hold: {gate}"),
            "on_disconnect": "cancel", "stream_mode": ["messages-tuple"]})
        run = stream.until("metadata").data["run_id"]
        stream.until("messages")
        with socket.socket(fileno=os.dup(stream.response.fileno())) as again:
            again.shutdown(socket.SHUT_WR if way == "half" else socket.SHUT_RDWR)
        if way == "half":
            model.release(gate)
            assert stream.until("end").data == {"status": end}
        stream.close()
        assert status(sdk, thread, run) == end
        model.release(gate)


def test_silence_is_broken(api, sdk, model, thread):
    """Streams in which nothing happens have a comment within six seconds."""
    stream = api.stream(f"/threads/{thread}/runs/stream", {
        "assistant_id": "agent", "input": apiserver.human(f"hold: {thread}"),
        "stream_mode": ["custom"]})
    others = [api.stream(f"/threads/{thread}/stream"),
              api.stream(f"/threads/{thread}/stream/events", {"channels": ["custom"]})]
    begin = time.monotonic()
    for open_stream in (stream, *others):
        while not open_stream.response.readline().startswith(b":"):
            pass
    assert time.monotonic() - begin < 6
    model.release(thread)
    assert stream.until("end").data == {"status": "success"}
    for open_stream in others:
        open_stream.close()


def test_the_end_of_a_former_run_is_not_told_to_whom_a_new_one_is(api, model, thread):
    """Protocol v2: a stream that is opened behind a command tells of what goes on."""
    def command(text):
        return api.post(f"/threads/{thread}/commands", {"id": 1, "method": "run.start", "params": {
            "assistant_id": "agent", "input": apiserver.human(text)}}).json["result"]["run_id"]

    def told(last, **options):
        events = []
        with api.stream(f"/threads/{thread}/stream/events", {
                "channels": ["lifecycle"], "namespaces": [[]], "depth": 0}, **options) as stream:
            for frame in stream:
                data = frame.data["params"]["data"]
                events.append((data["run_id"], data["event"]))
                if events[-1] == last:
                    return events
        raise AssertionError(events)

    first = command("hi")
    former = [(first, "running"), (first, "completed")]
    assert told(former[-1]) == former
    present = (command(f"hold: {thread}"), "running")
    assert told(present) == [present]
    assert told(present, headers={"Last-Event-ID": "-1"}) == [*former, present]
    model.release(thread)


def test_states_are_not_edited_while_a_run_goes_on(sdk, model, thread, held):
    with pytest.raises(errors.ConflictError):
        sdk.threads.update_state(thread, apiserver.human("meanwhile"))
    run, gate = held
    model.release(gate)
    assert status(sdk, thread, run) == "success"
    sdk.threads.update_state(thread, apiserver.human("afterwards"))


def test_case_43_nobody_reads(api, sdk, thread):
    """A run whose stream nobody reads ends, memory stays bounded, others go on."""
    sdk.runs.wait(thread, "agent", input=apiserver.human("run: 1"))
    stream = api.stream(f"/threads/{thread}/runs/stream", {
        "assistant_id": "agent", "on_disconnect": "continue", "stream_mode": ["custom", "values"],
        "input": apiserver.human(r"run: for i in range(100):\n  print('x' * 1000000)")})
    run = stream.until("metadata").data["run_id"]
    other = sdk.threads.create()["thread_id"]
    assert sdk.runs.wait(other, "agent", input=apiserver.human("hi"))["messages"]
    assert status(sdk, thread, run) == "success"
    memory = subprocess.run(["ps", "-o", "rss=", "-p", str(api.pid)], capture_output=True,
                            text=True, check=True)
    assert int(memory.stdout) < 300_000, "kB"
    frames = list(stream)
    assert frames[-1].event == "end" and sum(f.event == "gap" for f in frames) <= 1


def test_case_52_secrets_are_not_echoed(tmp_path, model):
    """A key of a run is in no answer, no log and no metrics."""
    secret = "s3cr3t-xyz-4711"
    with apiserver.ApiServer(tmp_path, model, CHAT_MODEL_API_KEY=secret + "-server") as server:
        thread = server.thread()
        config = {"configurable": {"chat_model_api_key": secret}}
        told = [repr(server.run(thread, text, config=config, stream_mode=[
            "values", "debug", "events", "messages-tuple"])) for text in ("hi", "status: 401")]
        paths = [f"/threads/{thread}", f"/threads/{thread}/state", f"/threads/{thread}/history",
                 f"/threads/{thread}/runs", "/metrics", "/settings", "/info"]
        told += [server.get(path).text for path in paths]
        assert model.requests[-1].key == secret
        stored = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
        told += [server.log, stored.decode("latin-1")]
        for text in told:
            assert secret not in text
