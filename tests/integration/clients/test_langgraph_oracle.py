# SPDX-License-Identifier: MIT
"""The official JavaScript server does the same as ours: order of frames, and shape of each.

Where ours has more, that is a choice (the union of what servers send). What else may differ is
listed below, each with its reason.
"""

import itertools

import apiserver
import foreign
import pytest
from langgraph_sdk import get_sync_client

MODES = ["values", "messages-tuple", "updates"]
APPROVE = {"configurable": {"approve_tools": "*"}}

# Members that only the oracle has, wherever they stand.
LEFT_OUT = {
    # about the oracle itself, about tracing, or copies of request headers
    "created_by", "langgraph_version", "langgraph_plan", "langgraph_host", "langgraph_api_url",
    "langgraph_request_id", "ls_integration", "versions", "user-agent",
    # the schema of a node without one
    "$schema",
    # a whole message that still has its pieces
    "tool_call_chunks",
}
# And by the member that they stand in.
LEFT_OUT_IN = {
    # copies of the thread's metadata and of `configurable` (which may hold what is nobody's
    # business), and the number of the attempt, which is told once
    "metadata": {"k", "approve_tools", "checkpoint_id", "run_attempt", "graph_id",
                 "assistant_id"},
    "messages[1]": {"k", "approve_tools", "checkpoint_id", "name", "tags"},
    "config": {"configurable", "metadata"},
    "configurable": {"run_id", "thread_id", "graph_id", "assistant_id"},
    # best guesses at pieces of calls, which clients make themselves
    "messages[0]": {"tool_calls", "invalid_tool_calls"},
    # results of steps that are long done, which are in the values
    "tasks[0]": {"result"},
}


def flow(url):
    """Walk the same path on a server; return what it sent, by step."""
    with get_sync_client(url=url) as client:
        seen = {}

        def run(step, thread, text=None, **options):
            given = None if text is None else apiserver.human(text)
            parts = client.runs.stream(thread, "agent", input=given, stream_mode=MODES, **options)
            seen[step] = [(part.event, part.data) for part in parts]

        def look(step, thread):
            seen[f"{step}: state"] = client.threads.get_state(thread)
            seen[f"{step}: history"] = client.threads.get_history(thread, limit=100)
            shown = client.threads.get(thread)
            # by ids of tasks; theirs has tasks without any, too
            shown["interrupts"] = [i for i in shown["interrupts"].values() if i]
            seen[f"{step}: thread"] = shown
            seen[f"{step}: runs"] = client.runs.list(thread)

        thread = client.threads.create(metadata={"k": "v"})["thread_id"]
        seen["new: thread"] = client.threads.get(thread)
        run("plain", thread, "say: a plain answer in pieces")
        look("plain", thread)
        fork = client.threads.get_history(thread, limit=100)[-2]["checkpoint"]
        run("fork", thread, None, checkpoint_id=fork["checkpoint_id"])
        look("fork", thread)

        thread = client.threads.create()["thread_id"]
        seen["plain: wait"] = client.runs.wait(thread, "agent", input=apiserver.human("hi"))
        run("tools", thread, "call: list_sessions {}")
        look("tools", thread)
        seen["tools: update"] = client.threads.update_state(
            thread, {"messages": [{"role": "user", "content": "more"}]})
        seen["updated: state"] = client.threads.get_state(thread)

        thread = client.threads.create()["thread_id"]
        run("interrupt", thread, "call: list_sessions {}", config=APPROVE)
        look("interrupt", thread)
        run("resume", thread, config=APPROVE, command={
            "resume": {"decisions": [{"type": "reject", "message": "no"}]}})
        look("resume", thread)

        thread = client.threads.create()["thread_id"]
        run("breakpoint", thread, "call: list_sessions {}", interrupt_before=["tools"])
        look("breakpoint", thread)
        run("go on", thread)
        look("go on", thread)

        thread = client.threads.create()["thread_id"]
        run("error", thread, "status: 401")
        look("error", thread)
        seen["assistants"] = client.assistants.search(graph_id="agent")
        client.store.put_item(["a"], "k", {"x": 1})
        seen["store: item"] = client.store.get_item(["a"], "k")
        seen["store: absent"] = client.store.get_item(["a"], "none")
        seen["store: items"] = client.store.search_items(["a"])
        seen["store: namespaces"] = client.store.list_namespaces()
        return seen


@pytest.fixture(scope="module")
def both(api):
    """What the oracle sent, and what we sent."""
    with foreign.oracle() as url:
        return flow(url), flow(api.url)


def order(frames):
    """Return the names of the frames, each once for a row of equal ones; ours ends with "end"."""
    names = [name for name, _ in itertools.groupby(name for name, _ in frames)]
    return names[:-1] if names[-1] == "end" else names


STREAMS = ["plain", "fork", "tools", "interrupt", "resume", "breakpoint", "go on", "error"]


@pytest.mark.parametrize("step", STREAMS)
def test_order(both, step):
    theirs, ours = both
    assert order(ours[step]) == order(theirs[step])
    assert ours[step][-1][0] == "end"  # 0.1 of the contract: theirs only closes


def missing(theirs, ours, path=""):
    """Yield where ours lacks a member of theirs, or has another kind of value."""
    left_out = LEFT_OUT | LEFT_OUT_IN.get(path.rpartition(".")[2], set())
    if isinstance(theirs, dict):
        if not isinstance(ours, dict):
            yield f"{path}: {type(ours).__name__} for an object"
            return
        for key, value in theirs.items():
            if key in left_out:
                continue
            if key not in ours:
                yield f"{path}.{key} is missing"
            else:
                yield from missing(value, ours[key], f"{path}.{key}")
    elif isinstance(theirs, list):
        if not isinstance(ours, list):
            yield f"{path}: {type(ours).__name__} for an array"
            return
        if len(theirs) != len(ours):
            yield f"{path}: {len(ours)} entries for {len(theirs)}"
        for index, (a, b) in enumerate(zip(theirs, ours, strict=False)):
            yield from missing(a, b, f"{path}[{index}]")
    elif theirs is not None and ours is not None and type(theirs) is not type(ours):
        yield f"{path}: {ours!r} for {theirs!r}"


def comparable(frames):
    """Return one frame for a row of pieces of a message (how many there are is the model's)."""
    result = []
    for name, data in frames:
        if name == "end":
            continue
        key = (name, data[0]["id"]) if name == "messages" else None
        if key and result and result[-1][2] == key:
            continue
        result.append((name, data, key))
    return [(name, data) for name, data, _ in result]


@pytest.mark.parametrize("step", STREAMS)
def test_shape(both, step):
    theirs, ours = (comparable(seen[step]) for seen in both)
    assert len(ours) == len(theirs)
    problems = []
    for (name, a), (_, b) in zip(theirs, ours, strict=True):
        problems += missing(a, b, name)
    assert not problems, "\n".join(problems)


def test_interrupts_have_the_full_state(both):
    theirs, ours = both
    assert set(theirs["interrupt"][-1][1]) == {"__interrupt__"}
    assert set(ours["interrupt"][-2][1]) == {"__interrupt__", "messages"}  # 2.4 of the contract
    assert theirs["breakpoint"][-1][1] == {"__interrupt__": []}


OBJECTS = ["new: thread", "plain: state", "plain: history", "plain: thread", "plain: runs",
           "fork: state", "plain: wait", "tools: state", "tools: history",
           "tools: update", "updated: state", "interrupt: state", "interrupt: thread",
           "resume: state", "resume: thread", "breakpoint: state", "breakpoint: thread",
           "go on: state", "error: state", "error: thread", "error: runs", "assistants",
           "store: item", "store: absent", "store: items", "store: namespaces"]


@pytest.mark.parametrize("name", OBJECTS)
def test_objects(both, name):
    theirs, ours = both
    problems = list(missing(theirs[name], ours[name], name))
    assert not problems, "\n".join(problems)


# Not of the fork: theirs writes a checkpoint for the fork itself, ours begins with the first step.
@pytest.mark.parametrize("step", [step for step in STREAMS if step != "fork"])
def test_what_states_say(both, step):
    def told(seen):
        state, thread = seen[f"{step}: state"], seen[f"{step}: thread"]
        return {
            "next": state["next"], "source": state["metadata"]["source"],
            "step": state["metadata"]["step"], "status": thread["status"],
            "tasks": [(t["name"], len(t["interrupts"]), bool(t.get("error")))
                      for t in state["tasks"]],
            "messages": [(m["type"], m["content"] if m["type"] != "tool" else m.get("status"))
                         for m in state["values"]["messages"]
                         if not m["content"].startswith("Result: ")],
            "history": [(h["next"], h["metadata"]["source"], h["metadata"]["step"])
                        for h in seen[f"{step}: history"]],
        }

    theirs, ours = both
    assert told(ours) == told(theirs)
