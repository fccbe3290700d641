# SPDX-License-Identifier: MIT
"""Runs whose model is CopilotKit's aimock: its idea of four wire formats, and its chaos."""

import concurrent.futures
import contextlib
import itertools
import json

import apiserver
import foreign
import pytest

# How each provider's base URL is given.
PROVIDERS = {"openai": "/v1", "anthropic": "", "google_genai": "", "ollama": ""}
PLAIN = "A plain answer, streamed in small pieces: äöü €."

CHAOS = {
    "drop": {"chaos": {"dropRate": 1}},
    "malformed": {"chaos": {"malformedRate": 1}},
    "disconnect": {"chaos": {"disconnectRate": 1}},
    "ratelimit": {"chaos": {"rateLimitRate": 1}},
    "cut": {"truncateAfterChunks": 3},
}


def says(user, response, **more):
    """A fixture for a message of the user."""
    match = {"userMessage": user} | more.pop("match", {})
    return {"match": match, "response": response, "chunkSize": 8, **more}


def fixtures():
    """All that the double knows."""
    calls = [{"name": "list_sessions", "arguments": {}, "id": f"call_{n}"} for n in "ab"]
    known = [
        says("one tool", {"content": "There are none."}, match={"hasToolResult": True}),
        says("one tool", {"toolCalls": calls[:1]}, match={"hasToolResult": False}),
        says("two tools", {"content": "Still none."}, match={"hasToolResult": True}),
        says("two tools", {"content": "I look.", "toolCalls": calls},
             match={"hasToolResult": False}),
        says("think", {"reasoning": "It is easy.", "content": "Done thinking."}),
        says("speak", {"content": PLAIN}),
    ]
    return known + [says(name, {"content": PLAIN}, **how) for name, how in CHAOS.items()]


@pytest.fixture(scope="module")
def double():
    """The double's URL."""
    with foreign.aimock(fixtures()) as url:
        yield url


@pytest.fixture(scope="module")
def servers(double, tmp_path_factory):
    """A server for each provider, whose model is the double."""
    with contextlib.ExitStack() as stack:
        yield {provider: stack.enter_context(apiserver.ApiServer(
            tmp_path_factory.mktemp(provider), double + path, provider=provider))
            for provider, path in PROVIDERS.items()}


@pytest.fixture(scope="module")
def chaotic(servers):
    """A run for each provider and each kind of chaos, all at once: their threads and frames."""
    def one(api, chaos):
        thread = api.thread()
        return thread, run(api, thread, chaos)

    pairs = list(itertools.product(PROVIDERS, CHAOS))
    with concurrent.futures.ThreadPoolExecutor(len(pairs)) as pool:
        started = {pair: pool.submit(one, servers[pair[0]], pair[1]) for pair in pairs}
    return {pair: future.result() for pair, future in started.items()}


@pytest.fixture(params=PROVIDERS)
def api(servers, request):
    """The server of a provider."""
    return servers[request.param]


def run(api, thread, text):
    """Stream a run; return its frames by event."""
    frames = api.run(thread, text, stream_mode=["values", "messages-tuple"])
    by = {}
    for frame in frames:
        by.setdefault(frame.event, []).append(frame.data)
    return by


def test_a_plain_answer(api):
    by = run(api, api.thread(), "speak")
    assert by["end"] == [{"status": "success"}]
    answer = by["values"][-1]["messages"][-1]
    chunks = [m["content"] for m, _ in by["messages"] if m["content"]]
    assert answer["content"] == "".join(chunks) == PLAIN and len(chunks) > 2


@pytest.mark.parametrize(("text", "count"), [("one tool", 1), ("two tools", 2)])
def test_calls(api, text, count):
    by = run(api, api.thread(), text)
    assert by["end"] == [{"status": "success"}], by.get("error")
    messages = by["values"][-1]["messages"]
    assert [m["type"] for m in messages] == ["human", "ai", *["tool"] * count, "ai"]
    calls = messages[1]["tool_calls"]
    assert [c["name"] for c in calls] == ["list_sessions"] * count
    assert len({c["id"] for c in calls}) == count
    assert [m["tool_call_id"] for m in messages[2:-1]] == [c["id"] for c in calls]
    assert all(json.loads(m["content"])["success"] for m in messages[2:-1])


# Not of ollama: the double says "reasoning_content" there, Ollama itself says "thinking".
@pytest.mark.parametrize("provider", [name for name in PROVIDERS if name != "ollama"])
def test_reasoning(servers, provider):
    api = servers[provider]
    by = run(api, api.thread(), "think")
    answer = by["values"][-1]["messages"][-1]
    assert "Done thinking." in json.dumps(answer["content"])
    assert "It is easy." in json.dumps(answer)


@pytest.mark.parametrize("chaos", CHAOS)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_chaos(servers, chaotic, provider, chaos):
    api, (thread, by) = servers[provider], chaotic[provider, chaos]
    assert by["end"] == [{"status": "error"}]
    error, = by["error"]
    assert set(error) == {"error", "message"} and error["message"]
    if chaos == "ratelimit":
        assert error["error"] == "RateLimitError"
    # what was asked stays, and the thread is usable again
    assert [m["content"] for m in api.messages(thread)] == [chaos]
    assert run(api, thread, "speak")["end"] == [{"status": "success"}]
    assert api.messages(thread)[-1]["content"] == PLAIN
