# SPDX-License-Identifier: MIT
"""Many runs at once: what they leave behind in the server, and the order of what is told."""

import os
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from apiserver import ApiServer, human
from fakemodel import FakeModel

ALL_MODES = ["values", "updates", "messages-tuple", "messages", "custom", "debug", "tasks",
             "checkpoints", "events", "tools"]
STRATEGIES = ["interrupt", "rollback", "enqueue", "reject"]


@pytest.fixture
def server(tmp_path):
    """A server that does what the last message says, and takes any number of requests."""
    with FakeModel() as model, ApiServer(tmp_path, model, REQUESTS_PER_SECOND=0) as made:
        yield made


def body(text, **members):
    """Return the body of a run."""
    return {"assistant_id": "agent", "input": human(text)} | members


def eventfds(server):
    """Count the event descriptors of the server."""
    folder = Path(f"/proc/{server.pid}/fd")
    return sum("eventfd" in os.readlink(folder / name) for name in os.listdir(folder))


def at_once(count, work, threads=12):
    """Call work(0) ... work(count - 1), many at once; return the results."""
    with ThreadPoolExecutor(threads) as executor:
        return list(executor.map(work, range(count)))


def test_ended_runs_hold_no_descriptors(server):
    """Runs are known for minutes after their end, and would use up all descriptors there are."""
    before = eventfds(server)
    replies = at_once(150, lambda _: server.post("/runs/wait", body("say: x")))
    assert Counter(reply.status for reply in replies) == {200: 150}
    assert eventfds(server) <= before + 20


def test_frames_are_whole_and_in_order(server):
    """Each of many streams has every number once, from metadata to one end."""
    def one(index):
        path = f"/threads/{server.thread()}/runs/stream"
        return list(server.stream(path, body(f"count: {index}", stream_mode=ALL_MODES)))

    for frames in at_once(60, one):
        assert [int(frame.id.rpartition("-")[2]) for frame in frames] == \
            list(range(1, len(frames) + 1))
        assert frames[0].event == "metadata"
        assert [frame.event for frame in frames].count("end") == 1
        assert frames[-1].data == {"status": "success"}


def test_queued_runs_follow_one_another_in_the_events(server):
    """Protocol v2: a run's events begin when the former one's have ended; ids are not doubled."""
    def one(_):
        thread, seen = server.thread(), []
        with server.stream(f"/threads/{thread}/stream/events",
                           {"channels": ["lifecycle", "messages", "values"]}) as stream:
            for number in range(4):
                reply = server.post(f"/threads/{thread}/commands", {
                    "id": number, "method": "run.start",
                    "params": body("count: 5", multitask_strategy="enqueue")}).json
                assert reply["type"] == "success", reply
            for frame in stream:
                assert frame.data["event_id"].rpartition(":")[2] == frame.id
                params = frame.data["params"]
                if frame.event == "lifecycle" and not params["namespace"]:
                    seen.append(params["data"]["event"])
                if seen.count("completed") == 4:
                    return seen

    for seen in at_once(16, one, threads=8):
        assert seen == ["running", "completed"] * 4


def test_every_strategy_leaves_threads_at_rest(server):
    """STO-22: whatever comes upon an active run, each stream ends once and no thread stays busy."""
    chance = random.Random(1)
    plans = [(server.thread(), chance.choice(STRATEGIES)) for _ in range(12)] * 4

    def one(index):
        thread, strategy = plans[index]
        path = f"/threads/{thread}/runs/stream"
        try:
            stream = server.stream(path, body("count: 100", multitask_strategy=strategy))
        except AssertionError as refused:
            assert "409" in str(refused)
            return 1
        return [frame.event for frame in stream].count("end")

    assert Counter(at_once(len(plans), one)) == {1: len(plans)}
    assert server.post("/threads/search", {"status": "busy"}).json == []
