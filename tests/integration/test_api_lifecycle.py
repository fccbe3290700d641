# SPDX-License-Identifier: MIT
"""Starts, stops, crashes and restarts of the API server, on SQLite and on PostgreSQL."""

import signal
import threading
import time

import pgcluster
import pytest
from apipeer import wait_for
from apiserver import ApiServer, human
from fakemodel import FakeModel


@pytest.fixture
def model():
    """A model that does what the last message says."""
    with FakeModel() as fake:
        yield fake


@pytest.fixture(scope="module")
def cluster():
    """A PostgreSQL for the tests that need one."""
    try:
        with pgcluster.Cluster() as made:
            yield made
    except pgcluster.Missing as missing:
        pytest.skip(str(missing))


def wait_for(check, seconds=20):
    """Wait until check() is true and return its value."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = check()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("it did not come to that in time")


def start_run(server, thread, text, **members):
    """Create a run in the background and return its id."""
    body = {"assistant_id": "agent", "input": human(text)} | members
    return server.post(f"/threads/{thread}/runs", body).json["run_id"]


def run_status(server, thread, run):
    """Return the status of a run."""
    return server.get(f"/threads/{thread}/runs/{run}").json["status"]


def has_busy_session(server):
    """Tell whether a cell is running."""
    return any(session["busy"] for session in server.get("/sessions").json)


def sessions(server):
    """Return the ids of the live sessions."""
    return [session["session_id"] for session in server.get("/sessions").json]


def test_conversations_survive_a_restart(model, tmp_path):
    """State, history and runs are the same after a restart; sessions end with the server."""
    with ApiServer(tmp_path, model) as server:
        thread = server.thread(metadata={"k": "v"})
        server.run(thread, "run: x = 41")
        state = server.state(thread)
        run = server.get(f"/threads/{thread}/runs").json[0]["run_id"]
        assert len(sessions(server)) == 1
        server.restart()
        assert server.state(thread) == state
        assert run_status(server, thread, run) == "success"
        assert sessions(server) == []
        replayed = list(server.stream(f"/threads/{thread}/runs/{run}/stream",
                                      headers={"Last-Event-ID": "-1"}, timeout=10))
        assert [frame.event for frame in replayed] == ["metadata", "values", "end"]
        assert replayed[1].data == state["values"]


def test_sessions_survive_a_restart_when_asked(model, tmp_path):
    """With --keep-sessions variables and exports are there again."""
    with ApiServer(tmp_path, model, "--keep-sessions") as server:
        thread = server.thread()
        server.run(thread, "run: kept = 41; open('/workspace/a.txt', 'w').write('text')")
        [session] = sessions(server)
        server.run(thread, 'call: export_files {"session_id": "$SESSION", '
                           '"files": [{"source": "a.txt"}]}')
        path = f"/threads/{thread}/files/download?session_id={session}&path=%2Fworkspace%2Fa.txt"
        assert server.get(path).text == "text"
        server.restart()
        assert sessions(server) == [session]
        assert server.get(path).text == "text"
        server.run(thread, "run: print(kept + 1)")
        assert "42" in server.messages(thread)[-1]["content"]
        assert server.delete(f"/sessions/{session}").json == {"ok": True, "session_id": session}


def test_a_killed_run_is_taken_up_and_ends_once(model, tmp_path):
    """kill -9 in the middle of a cell: after the restart the run ends, honestly and once."""
    with ApiServer(tmp_path, model) as server:
        thread = server.thread()
        run = start_run(server, thread, "run: import time; time.sleep(60)")
        wait_for(lambda: has_busy_session(server))
        server.restart(signal.SIGKILL)
        assert wait_for(lambda: run_status(server, thread, run) == "success")
        results = [m["content"] for m in server.messages(thread) if m["type"] == "tool"]
        assert "restarted" in results[-1] and '"success":false' in results[-1]
        assert server.get(f"/threads/{thread}").json["status"] == "idle"
        assert len(server.get(f"/threads/{thread}/runs").json) == 1
        assert server.run(thread, "run: print(1)")[-1].data == {"status": "success"}


def test_sto_06_a_stop_ends_runs_and_streams_in_order(model, tmp_path):
    """STO-06: streams get their last event, states are saved, and the exit status is 0."""
    with ApiServer(tmp_path, model) as server:
        threads = [server.thread() for _ in range(4)]
        streams = [server.stream(f"/threads/{thread}/runs/stream", {
            "assistant_id": "agent", "input": human("run: import time; time.sleep(60)")})
            for thread in threads]
        followers = [server.stream(f"/threads/{threads[0]}/stream") for _ in range(40)]
        wait_for(lambda: sum(s["busy"] for s in server.get("/sessions").json) == len(threads))
        server.restart()
        for stream in streams:
            last = list(stream)[-1]
            assert (last.event, last.data) == ("end", {"status": "interrupted"})
        for follower in followers:
            follower.close()
        for thread in threads:
            assert server.get(f"/threads/{thread}").json["status"] == "idle"
            assert server.messages(thread)[0]["content"].startswith("run:")


def test_sto_06_a_second_signal_does_not_wait(model, tmp_path):
    """STO-06: a second SIGTERM ends the process at once."""
    server = ApiServer(tmp_path, model)
    start_run(server, server.thread(), "run: import time; time.sleep(60)")
    wait_for(lambda: has_busy_session(server))
    server.process.send_signal(signal.SIGTERM)
    wait_for(lambda: server.get("/ok").status in (200, 503))
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(2) == 0


def test_a_second_server_on_the_same_state_is_refused(model, tmp_path):
    """The state directory has one server; the second one says who is there."""
    with ApiServer(tmp_path, model):
        with pytest.raises(AssertionError, match="in use|already|another"):
            ApiServer(tmp_path, model)


def test_postgres_needs_all_its_settings(model, tmp_path):
    """POSTGRES_HOST without the others is an error that names the missing one."""
    with pytest.raises(AssertionError, match="POSTGRES_PORT"):
        ApiServer(tmp_path, model, POSTGRES_HOST="127.0.0.1")


SHARED_KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


@pytest.fixture
def pair(model, cluster, tmp_path):
    """Two servers on one PostgreSQL."""
    settings = cluster.environment(ENCRYPTION_KEY=SHARED_KEY)
    for name in "ab":
        (tmp_path / name).mkdir()
    with ApiServer(tmp_path / "a", model, **settings) as a, \
            ApiServer(tmp_path / "b", model, **settings) as b:
        yield a, b


def test_two_servers_share_one_postgres(pair):
    """A run of one server is followed, waited for and cancelled at the other; none runs twice."""
    a, b = pair
    thread = a.thread()
    a.run(thread, "say: one")
    assert b.state(thread) == a.state(thread)
    run = start_run(a, thread, "run: import time; time.sleep(3); print('done')")
    joined = b.get(f"/threads/{thread}/runs/{run}/join").json
    assert "done" in str(joined["messages"][-1])
    thread = a.thread()
    slow = start_run(b, thread, "run: import time; time.sleep(60)")
    wait_for(lambda: has_busy_session(b))
    a.post(f"/threads/{thread}/runs/{slow}/cancel?wait=1")
    wait_for(lambda: run_status(b, thread, slow) == "interrupted")


def test_two_servers_do_no_run_twice(pair):
    """Runs that are created at both servers on the same threads: each is done once, in order."""
    a, b = pair
    threads = [a.thread() for _ in range(10)]
    runs = [(threads[i % 10], start_run((a, b)[i // 10], threads[i % 10], f"say: {i}"))
            for i in range(20)]
    for thread, run in runs:
        wait_for(lambda thread=thread, run=run: run_status(a, thread, run) == "success")
    for number, thread in enumerate(threads):
        messages = a.messages(thread)
        assert [m["type"] for m in messages] == ["human", "ai"] * 2
        assert [m["content"] for m in messages[1::2]] == [str(number), str(number + 10)]


def test_a_killed_servers_runs_go_to_the_other(pair):
    """When a server is killed its lease ends, and the other one takes its run up."""
    a, b = pair
    thread = a.thread()
    run = start_run(a, thread, "run: import time; time.sleep(300)")
    wait_for(lambda: has_busy_session(a))
    a.kill()
    wait_for(lambda: run_status(b, thread, run) == "success", 60)
    assert "not known" in str(b.messages(thread))
    a.restart(signal.SIGKILL)


def test_sto_22_cancel_finish_and_delete_race(model, tmp_path):
    """STO-22: whoever wins, there is one end, and the server goes on."""
    ends = {}

    def race(server, number):
        thread = server.thread()
        stream = server.stream(f"/threads/{thread}/runs/stream", {
            "assistant_id": "agent", "input": human("say: " + "word " * 20)})
        run = stream.headers["content-location"].rsplit("/", 1)[1]
        if number % 3 == 0:
            status = server.post(f"/threads/{thread}/runs/{run}/cancel").status
            assert status in (200, 409)
        elif number % 3 == 1:
            assert server.delete(f"/threads/{thread}").status == 204
        ends[number] = [frame.data for frame in stream if frame.event == "end"]

    with ApiServer(tmp_path, model, REQUESTS_PER_SECOND=0) as server:
        for start in range(0, 240, 8):
            workers = [threading.Thread(target=race, args=(server, start + i)) for i in range(8)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        assert len(ends) == 240 and all(len(end) == 1 for end in ends.values())
        assert server.run(server.thread(), "say: said")[-1].data == {"status": "success"}
        # A run is counted until its thread has ended, which is after its last frame.
        wait_for(lambda: "sandbox_agent_runs_active 0" in server.get("/metrics").text)


def test_a_conversation_with_large_pictures(model, tmp_path):
    """A picture of some megabytes in a message is a run's parameter, a state, and of a list."""
    picture = {"type": "image", "mimeType": "image/png", "data": "A" * (9 << 20)}
    with ApiServer(tmp_path, model) as server:
        thread = server.thread()
        answer = server.post(f"/threads/{thread}/runs/wait", {"assistant_id": "agent", "input": {
            "messages": [{"role": "user", "content": [{"type": "text", "text": "say: seen"},
                                                      picture]}]}}).json
        assert answer["messages"][-1]["content"].startswith("seen")
        assert server.messages(thread)[0]["content"][1] == picture
        assert len(server.post(f"/threads/{thread}/history").json) == 3
        assert server.post("/threads/search").json[0]["values"] == answer


def test_a_history_may_be_of_ids(model, tmp_path):
    """With `ids` a state is the same, but for what its messages say."""
    with ApiServer(tmp_path, model) as server:
        thread = server.thread()
        server.run(thread, "say: one")
        whole = server.post(f"/threads/{thread}/history").json
        for ask in (server.post, server.get):
            light = ask(f"/threads/{thread}/history?ids=true").json
            assert light == [state | {"values": {"messages": [
                {"id": message["id"]} for message in state["values"]["messages"]]}}
                for state in whole]
        head = server.get(f"/threads/{thread}/state?ids=true").json
        assert head["values"] == light[0]["values"]
