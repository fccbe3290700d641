# SPDX-License-Identifier: MIT
"""Crons over HTTP: what they may say, when they come, and whose they are."""

import time

import pytest
from apiserver import ApiServer, human
from fakemodel import FakeModel

YEARLY = "0 0 1 1 *"


@pytest.fixture(scope="module")
def model():
    """A model that does what the last message says."""
    with FakeModel() as fake:
        yield fake


@pytest.fixture(scope="module")
def server(tmp_path_factory, model):
    """A server that serves crons, for two owners; requests are Ann's."""
    state = tmp_path_factory.mktemp("crons")
    keys = state / "keys"
    keys.write_text("ann:key-of-ann-1234567890\nbob:key-of-bob-1234567890\n")
    keys.chmod(0o600)
    with ApiServer(state, model, key="key-of-ann-1234567890", API_KEYS_FILE=keys,
                   CRONS="true") as started:
        yield started


BOB = {"x-api-key": "key-of-bob-1234567890"}


def wait_for(check, seconds=20):
    """Wait until check() is true and return its value."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := check():
            return value
        time.sleep(0.05)
    raise AssertionError("it did not come to that in time")


def body(schedule=YEARLY, **members):
    """Return the body of a new cron."""
    return {"assistant_id": "agent", "schedule": schedule, "input": human("say: hi")} | members


def create(server, path="/runs/crons", **members):
    """Create a cron and return it."""
    response = server.post(path, body(**members))
    assert response.status == 200, response.text
    return response.json


def threads(server, cron):
    """Return the threads on which runs of a cron have succeeded."""
    found = server.post("/threads/search", {"limit": 1000}).json
    return [t["thread_id"] for t in found
            for run in server.get(f"/threads/{t['thread_id']}/runs").json
            if run["metadata"].get("cron_id") == cron["cron_id"] and run["status"] == "success"]


def test_every_second(server):
    """A schedule with seconds comes again and again, each time on a thread of its own."""
    cron = create(server, schedule="* * * * * *", on_run_completed="keep", metadata={"a": 1})
    assert cron["next_run_date"] and cron["metadata"] == {"a": 1}
    done = wait_for(lambda: len(set(threads(server, cron))) >= 2 and threads(server, cron))
    assert server.messages(done[0])[-1]["content"] == "hi"
    assert server.get(f"/threads/{done[0]}/runs").json[0]["metadata"]["a"] == 1
    assert server.delete(f"/runs/crons/{cron['cron_id']}").status == 204
    assert server.delete(f"/runs/crons/{cron['cron_id']}").status == 404


def test_on_a_thread(server):
    """The conversation goes on; the cron goes with its thread."""
    thread = server.thread()
    cron = create(server, f"/threads/{thread}/runs/crons", schedule="* * * * * *")
    assert cron["thread_id"] == thread
    wait_for(lambda: len(threads(server, cron)) >= 2)
    assert len(server.messages(thread)) >= 4
    assert server.delete(f"/threads/{thread}").status == 204
    assert server.post("/runs/crons/search", {"thread_id": thread}).json == []


def test_threads_of_stateless_runs_go(server):
    """Without on_run_completed "keep" nothing is left of a run but what it did."""
    before = len(server.post("/threads/search", {"limit": 1000}).json)
    cron = create(server, schedule="* * * * * *")
    first = cron["next_run_date"]

    def next_time():
        found = server.post("/runs/crons/search", {"limit": 100}).json
        return next(c["next_run_date"] for c in found if c["cron_id"] == cron["cron_id"])

    wait_for(lambda: next_time() > first)
    server.delete(f"/runs/crons/{cron['cron_id']}")
    wait_for(lambda: len(server.post("/threads/search", {"limit": 1000}).json) == before)


@pytest.mark.parametrize("members", [
    {"schedule": "* * * *"}, {"schedule": "61 * * * *"}, {"schedule": "0 0 30 2 *"},
    {"schedule": ""}, {"schedule": 5}, {"schedule": None}, {"timezone": "Mars/Olympus"},
    {"timezone": "../../etc/passwd"}, {"end_time": "yesterday"},
    {"end_time": "2020-01-01T00:00:00Z"}, {"enabled": "yes"}, {"on_run_completed": "burn"},
    {"metadata": []}, {"input": "text"}, {"stream_mode": "nonsense"}, {"assistant_id": None},
    {"webhook": "http://127.0.0.1/"},
])
def test_what_is_no_cron(server, members):
    """A cron is checked when it is made, as a whole."""
    assert server.post("/runs/crons", body(**members)).status == 422
    assert server.post("/runs/crons/count").json == 0


def test_what_is_not_there(server):
    """Assistants, threads and crons that are not, or not the owner's."""
    assert server.post("/runs/crons", body(assistant_id="nobody")).status == 404
    assert server.post("/threads/nobody/runs/crons", body()).status == 404
    thread = server.thread()
    assert server.post(f"/threads/{thread}/runs/crons", body(), headers=BOB).status == 404
    cron = create(server)
    path = f"/runs/crons/{cron['cron_id']}"
    assert server.request("PATCH", path, {"enabled": False}, BOB).status == 404
    assert server.delete(path, headers=BOB).status == 404
    assert server.post("/runs/crons/search", {}, headers=BOB).json == []
    assert server.delete("/runs/crons/nonsense").status == 422
    assert server.delete(path).status == 204


def test_changes(server):
    """What is not named stays; what is not enabled has no next time."""
    cron = create(server, timezone="Europe/Berlin", schedule="0 9 * * *")
    assert cron["next_run_date"][11:16] in ("07:00", "08:00")
    path = f"/runs/crons/{cron['cron_id']}"

    def change(**members):
        response = server.request("PATCH", path, members)
        assert response.status == 200, response.text
        return response.json

    paused = change(enabled=False, metadata={"b": 2})
    assert (paused["enabled"], paused["next_run_date"]) == (False, None)
    assert paused["payload"]["input"] == human("say: hi")
    changed = change(enabled=True, schedule="30 9 * * *", input=human("say: ho"))
    assert changed["next_run_date"][13:16] == ":30" and changed["timezone"] == "Europe/Berlin"
    assert changed["payload"]["input"] == human("say: ho") and changed["metadata"] == {"b": 2}
    assert server.request("PATCH", path, {"schedule": "nonsense"}).status == 422
    assert server.post("/runs/crons/search", {"limit": 1}).json[0]["schedule"] == "30 9 * * *"
    assert server.delete(path).status == 204


def test_keys_stay_secret(server):
    """A key in a cron's config is in no answer, and a change keeps it."""
    config = {"configurable": {"chat_model_api_key": "very-secret-key", "chat_model": "m"}}
    cron = create(server, config=config, context={"chat_model_api_key": "very-secret-key"})
    changed = server.request("PATCH", f"/runs/crons/{cron['cron_id']}", {"schedule": "1 1 1 1 *"})
    for shown in (cron, changed.json, server.post("/runs/crons/search").json):
        assert "very-secret-key" not in str(shown) and "sealed:" not in str(shown)
    assert cron["payload"]["config"] == {"configurable": {"chat_model": "m"}}
    assert b"very-secret-key" not in b"".join(
        path.read_bytes() for path in server.state_dir.glob("*.db*"))
    assert server.delete(f"/runs/crons/{cron['cron_id']}").status == 204


def test_searches_and_counts(server):
    """By assistant and state, in pages."""
    made = [create(server, enabled=i != 2)["cron_id"] for i in range(3)]
    assert server.post("/runs/crons/count", {"assistant_id": "agent"}).json == 3
    assert server.post("/runs/crons/search", {"enabled": False}).json[0]["cron_id"] == made[2]
    page = server.post("/runs/crons/search",
                       {"limit": 2, "sort_by": "created_at", "sort_order": "asc"})
    assert [c["cron_id"] for c in page.json] == made[:2]
    assert page.headers["x-pagination-total"] == "3"
    assert page.headers["x-pagination-next"] == "2"
    assert server.post("/runs/crons/search", {"sort_by": "nonsense"}).status == 422
    for cron in made:
        assert server.delete(f"/runs/crons/{cron}").status == 204


def test_an_end_and_a_limit(server):
    """A cron whose time is over comes no more; an owner has so many."""
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3))
    cron = create(server, schedule="* * * * * *", end_time=end)

    def is_over():
        found = server.post("/runs/crons/search", {"enabled": False}).json
        return [c["cron_id"] for c in found] == [cron["cron_id"]]

    wait_for(is_over)
    assert server.delete(f"/runs/crons/{cron['cron_id']}").status == 204
    made = [create(server)["cron_id"] for _ in range(100)]
    assert server.post("/runs/crons", body()).status == 429
    for cron in made:
        assert server.delete(f"/runs/crons/{cron}").status == 204


def test_a_missed_time_is_made_up_for_once(tmp_path, model):
    """A server that was away starts one run, not all that it missed."""
    with ApiServer(tmp_path, model, CRONS="true") as server:
        cron = create(server, schedule="* * * * * *", on_run_completed="keep")
        wait_for(lambda: threads(server, cron))
        server.restart()
        count = len(threads(server, cron))
        wait_for(lambda: len(threads(server, cron)) > count)
        assert server.delete(f"/runs/crons/{cron['cron_id']}").status == 204


def test_without_the_setting(tmp_path):
    """Nothing is planned that would not come."""
    with ApiServer(tmp_path) as server:
        assert server.post("/runs/crons/search").json == []
        assert server.post("/runs/crons/count").json == 0
        assert server.post("/runs/crons", body()).status == 403
        assert server.get("/info").json["flags"]["crons"] is False
