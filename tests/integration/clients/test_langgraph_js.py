# SPDX-License-Identifier: MIT
"""LangGraph's JavaScript SDK, React's hooks, AG-UI and CopilotKit (web/*.mjs walk the paths)."""

import itertools
import json

import cutproxy
import foreign
import pytest


def shape(parts):
    """Return the names of the events, each once for a row of equal ones."""
    return [name for name, _ in itertools.groupby(part["event"] for part in parts)]


@pytest.fixture(scope="module")
def sdk(api):
    """What the SDK has seen."""
    return foreign.node("web", "clients/web/sdk.mjs", {"url": api.url})


def test_sdk_assistants(sdk):
    assert sdk["assistant"]["graph_id"] == "agent"
    assert "input_schema" in sdk["schemas"]
    assert [n["id"] for n in sdk["graph"]["nodes"]] == ["__start__", "model", "tools", "__end__"]


def test_sdk_stream(sdk):
    parts = sdk["parts"]
    assert shape(parts) == ["metadata", "values", *["messages", "updates", "values"] * 5, "end"]
    values = [p["data"] for p in parts if p["event"] == "values"]
    assert json.loads(values[-1]["messages"][-2]["content"])["stdout"] == "42\n"
    run = parts[0]["data"]["run_id"]
    assert [c["run_id"] for c in sdk["created"]] == [run]
    assert sdk["joined"] == parts[sdk["middle"] + 1:] and sdk["again"] == parts
    assert sdk["joinedValues"] == values[-1] == sdk["state"]["values"]
    assert sdk["run"]["status"] == "success" and sdk["runs"] == [run]
    assert [h["values"] for h in sdk["history"][:-1]] == values[::-1]
    assert len(sdk["found"]) == sdk["count"] == 1


def test_sdk_forks_and_edits(sdk):
    said = [m["content"] for m in sdk["forked"]["values"]["messages"]]
    assert said == ["other words", "You said: other words"]
    assert sdk["old"]["values"] == sdk["state"]["values"]
    assert sdk["updated"]["next"] == ["model"] and sdk["patched"]["patched"] is True
    assert sdk["copy"]["thread_id"] not in sdk["found"]


def test_sdk_cancel_and_interrupts(sdk):
    assert sdk["cancelled"] == "interrupted"
    assert shape(sdk["asked"]) == ["metadata", "values", "end"]
    assert sdk["asked"][-2]["data"]["__interrupt__"][0]["value"]["action_requests"]
    assert sdk["waiting"]["status"] == "interrupted" and sdk["waiting"]["interrupts"]
    assert sdk["answered"]["messages"][2]["status"] == "error"
    assert sdk["stateless"]["messages"][-1]["content"] == "You said: hello"


def test_sdk_errors(sdk):
    assert "401" in str(sdk["failed"])
    assert sdk["absent"] == sdk["deleted"] == 404 and sdk["refused"] == 422


def test_sdk_store_and_crons(sdk):
    assert sdk["item"]["value"] == {"x": 1} and sdk["items"] == 1 and sdk["noItem"] is None
    assert sdk["namespaces"] == [["js", "a"]] and sdk["crons"] == [True]


def test_sdk_protocol_v2(sdk):
    messages = [m["kwargs"] for m in sdk["output"]["messages"]]  # instances of LangChain's classes
    assert sdk["said"][-1] == messages[-1]["content"]
    assert json.loads(messages[-2]["content"])["stdout"] == "42\n"


def test_sdk_goes_on_after_a_cut(api):
    cuts = [3000, 900]
    with cutproxy.CutProxy(api.url, cuts) as proxy:
        parts = foreign.node("web", "clients/web/cut.mjs", {"url": proxy.url})
    assert proxy.cut_count == len(cuts)
    thread, run = parts[0]["data"]["thread_id"], parts[0]["data"]["run_id"]
    whole = api.stream(f"/threads/{thread}/runs/{run}/stream?stream_mode=values"
                       "&stream_mode=messages-tuple", headers={"Last-Event-ID": "-1"})
    assert [p["id"] for p in parts[1:]] == [frame.id for frame in whole]
    said = "".join(p["data"][0]["content"] for p in parts if p["event"] == "messages")
    assert said == "".join(f"{i} " for i in range(60))


# ---- React's hooks ----


@pytest.fixture(scope="module", params=["legacy", "react"])
def hooks(api, model, request):
    """What a page with one of the hooks has shown, and which of them."""
    seen = foreign.node("web", "clients/web/hooks.mjs", {"url": api.url, "hook": request.param},
                        on_line=model.release)
    return request.param, seen


def test_hooks_show_a_run(hooks):
    _, seen = hooks
    kinds = [line.partition(":")[0] for line in seen["tools"]]
    assert kinds == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert json.loads(seen["tools"][4].removeprefix("tool: "))["stdout"] == "42\n"
    assert seen["values"] == 6


def test_hooks_show_pieces(hooks):
    _, seen = hooks
    assert seen["pieces"][0] == "ai: Held" and seen["pieces"][-1] == "ai: Held and released."


def test_hooks_ask(hooks):
    _, seen = hooks
    assert seen["interrupt"]["action_requests"][0]["name"] == "list_sessions"
    assert seen["interruptLater"] is None
    assert seen["afterAnswer"][-2].startswith("tool: ") and "no" in seen["afterAnswer"][-2]


def test_hooks_show_failures(hooks):
    _, seen = hooks
    assert "401" in seen["failure"]
    assert seen["afterFailure"] == ["human: hello", "ai: You said: hello"]


def test_hooks_open_a_page_again(hooks):
    kind, seen = hooks
    # as it goes on, with nothing twice
    assert seen["reopened"][-2:] == [f"human: hold: again {kind}", "ai: Held and released."]
    asked = [line for line in seen["reopened"] if line.startswith("human: ")]
    assert len(asked) == len(set(asked))


def test_hooks_stop(hooks):
    _, seen = hooks
    assert seen["loading"] is True and seen["stopped"] == "interrupted"


def test_hooks_branch(hooks):
    kind, seen = hooks
    if kind == "legacy":
        assert seen["branch"] == ["human: other words", "ai: You said: other words"]
    else:
        assert "execute_code" in seen["toolCalls"]


# ---- AG-UI, alone and in CopilotKit's runtime ----


@pytest.mark.parametrize("way", ["agui", "copilotkit"])
def test_agui(api, way):
    seen = foreign.node("web", "clients/web/agui.mjs", {"url": api.url, "hook": way})
    events = seen["events"]
    kinds = [event["type"] for event in events]
    assert kinds[0] == "RUN_STARTED" and kinds[-1] == "RUN_FINISHED" and "RUN_ERROR" not in kinds

    def of(kind):
        return [event for event in events if event["type"] == kind]

    started = of("TOOL_CALL_START")
    assert [call["toolCallName"] for call in started] == ["create_session", "execute_code"]
    results = {e["toolCallId"]: json.loads(e["content"]) for e in of("TOOL_CALL_RESULT")}
    assert list(results) == [call["toolCallId"] for call in started]
    assert list(results.values())[1]["stdout"] == "42\n"
    for call in started:
        parts = [e["delta"] for e in of("TOOL_CALL_ARGS") if e["toolCallId"] == call["toolCallId"]]
        assert isinstance(json.loads("".join(parts)), dict)
    assert len(of("TEXT_MESSAGE_START")) == len(of("TEXT_MESSAGE_END")) == 1
    said = "".join(event["delta"] for event in of("TEXT_MESSAGE_CONTENT"))
    messages = of("MESSAGES_SNAPSHOT")[-1]["messages"]
    assert said == messages[-1]["content"] == api.messages(seen["threadId"])[-1]["content"]
    assert [m["role"] for m in messages] == [
        "user", "assistant", "tool", "assistant", "tool", "assistant"]


def test_agui_asks(api):
    """A person is asked, and the answer is sent as this bridge does: beside the whole input."""
    seen = foreign.node("web", "clients/web/agui.mjs",
                        {"url": api.url, "hook": "agui", "approve": True})
    events = seen["events"]
    asked = next(e for e in events if e["type"] == "CUSTOM" and e["name"] == "on_interrupt")
    assert json.loads(asked["value"])["action_requests"][0]["name"] == "create_session"
    assert [e["type"] for e in events].count("RUN_FINISHED") == 2
    messages = api.messages(seen["threadId"])
    assert [m["type"] for m in messages] == ["human", "ai", "tool", "ai"]
    assert messages[2]["status"] == "error" and "not today" in messages[2]["content"]
