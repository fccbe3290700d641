# SPDX-License-Identifier: MIT
"""Ends and new beginnings: death of the owner, adoption, leases, collection, orderly ends."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import sa as sa_module

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = {
    "python": ("x = 41", "x + 1", "42"),
    "node": ("const x = 41", "x + 1", "42"),
    "r": ("x <- 41", "x + 1", "[1] 42"),
}


class Owner:
    """A process that owns sessions (tests/lib/owner.py)."""

    def __init__(self, state, instance, *flags, **env):
        self.process = subprocess.Popen(
            [sys.executable, ROOT / "tests/lib/owner.py", instance, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "SANDBOX_STATE_DIR": str(state), **env},
        )
        assert json.loads(self.process.stdout.readline()) == {"ready": True}

    def ask(self, do, **query):
        """One command and its answer."""
        self.process.stdin.write(json.dumps({"do": do, **query}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def kill(self):
        """kill -9."""
        self.process.kill()
        self.process.wait()

    def close(self):
        """End of stdin: an ordinary exit."""
        if self.process.poll() is None:
            self.ask("close")
            self.process.stdin.close()
            self.process.wait(timeout=30)


@pytest.fixture
def state(tmp_path_factory, state_dir):
    """A state directory of its own."""
    return tmp_path_factory.mktemp("own")


def traces(state, ids):
    """What is left of sandboxes: processes, cgroups, mounts, directories."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            cgroup = Path(f"/proc/{pid}/cgroup").read_text()
        except OSError:
            continue
        if any(i in cgroup for i in ids):
            found.append(f"process {pid}")
    for root, dirs, _ in os.walk("/sys/fs/cgroup"):
        found += [f"cgroup {root}/{d}" for d in dirs if d in ids]
    mounts = Path("/proc/self/mountinfo").read_text()
    found += [f"mount of {i}" for i in ids if i in mounts]
    found += [f"directory {p}" for p in Path(state).glob("run/*/sb/*") if p.name in ids]
    return found


def wait_gone(state, ids, seconds):
    """Wait until nothing is left; return what is."""
    end = time.monotonic() + seconds
    while (left := traces(state, ids)) and time.monotonic() < end:
        time.sleep(0.5)
    return left


def test_case_31_a_killed_owner_leaves_nothing_after_the_lease(state):
    owner = Owner(state, "gone", SANDBOX_LEASE_SECONDS="5")
    ids = [owner.ask("create", language=language)["id"] for language in LANGUAGES]
    for i in ids:
        owner.ask("start", id=i, code="sleep 1000", kind="command", timeout=2000)
    assert traces(state, ids)
    owner.kill()
    assert wait_gone(state, ids, 20) == []
    end = time.monotonic() + 20
    while list(Path(state).glob("run/*")) and time.monotonic() < end:
        time.sleep(0.5)
    assert list(Path(state).glob("run/*")) == []
    # and the next one starts on clean ground
    again = Owner(state, "gone")
    assert again.ask("list") == {"sessions": []}
    assert (
        again.ask("execute", id=again.ask("create")["id"], code="1 + 1")["result"]["text/plain"]
        == "2"
    )
    again.close()


def test_a_new_owner_adopts_state_and_pending_output(state):
    first = Owner(state, "adopt")
    ids = {language: first.ask("create", language=language)["id"] for language in LANGUAGES}
    for language, i in ids.items():
        first.ask("execute", id=i, code=LANGUAGES[language][0])
    first.ask(
        "start",
        id=ids["python"],
        code="import time\nfor i in range(20):\n"
        "    print('line', i, flush=True); time.sleep(0.1)\ni",
    )
    time.sleep(0.5)
    first.kill()
    second = Owner(state, "adopt")
    sessions = {s["session_id"]: s for s in second.ask("list")["sessions"]}
    assert sorted(sessions) == sorted(ids.values())
    result = second.ask("adopted", id=ids["python"])
    assert result["status"] == "ok" and result["result"]["text/plain"] == "19"
    assert result["stdout"] == "".join(f"line {i}\n" for i in range(20))
    assert second.ask("adopted", id=ids["python"]) is None
    for language, i in ids.items():
        assert (
            second.ask("execute", id=i, code=LANGUAGES[language][1])["result"]["text/plain"]
            == LANGUAGES[language][2]
        )
    second.close()
    assert wait_gone(state, list(ids.values()), 5) == []


def test_an_adopted_session_keeps_its_environment(state):
    first = Owner(state, "env")
    i = first.ask("create", options={"env": {"OWN": "chosen"}})["id"]
    first.kill()
    second = Owner(state, "env")
    second.ask("start", id=i, code="echo $OWN $HOME > out", kind="command")
    time.sleep(1)
    result = second.ask("execute", id=i, code="open('out').read()")
    assert result["result"]["text/plain"] == "'chosen /home/sandbox\\n'"
    second.close()


def test_a_finished_run_waits_for_the_next_owner(state):
    first = Owner(state, "finished")
    i = first.ask("create")["id"]
    first.ask("start", id=i, code="import time; time.sleep(0.7); print('done'); 5")
    time.sleep(0.2)
    first.kill()
    time.sleep(1.5)
    second = Owner(state, "finished")
    result = second.ask("adopted", id=i)
    assert (result["stdout"], result["result"]["text/plain"]) == ("done\n", "5")
    second.close()


def test_sto_04_the_lease_does_not_run_while_an_owner_lives(state):
    owner = Owner(state, "lease", SANDBOX_LEASE_SECONDS="2")
    i = owner.ask("create")["id"]
    time.sleep(4)
    assert owner.ask("execute", id=i, code="1 + 1")["result"]["text/plain"] == "2"
    owner.close()


def test_sto_02_killed_while_recovering_twice(state):
    owner = Owner(state, "twice")
    i = owner.ask("create")["id"]
    owner.ask("execute", id=i, code="x = 5")
    owner.kill()
    for delay in (0.01, 0.05):
        process = subprocess.Popen(
            [sys.executable, ROOT / "tests/lib/owner.py", "twice"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "SANDBOX_STATE_DIR": str(state)},
        )
        time.sleep(delay)
        process.kill()
        process.wait()
    third = Owner(state, "twice")
    assert third.ask("execute", id=i, code="x")["result"]["text/plain"] == "5"
    third.close()
    assert wait_gone(state, [i], 5) == []


def test_keep_sessions_leaves_them_to_the_next(state):
    owner = Owner(state, "keep", "keep")
    i = owner.ask("create")["id"]
    owner.ask("execute", id=i, code="x = 6")
    owner.close()
    assert traces(state, [i])
    owner = Owner(state, "keep")
    assert owner.ask("execute", id=i, code="x")["result"]["text/plain"] == "6"
    owner.close()
    assert wait_gone(state, [i], 5) == []


def test_an_ordinary_end_removes_every_trace(state):
    owner = Owner(state, "end")
    ids = [owner.ask("create", language=language)["id"] for language in LANGUAGES]
    start = time.monotonic()
    owner.close()
    assert time.monotonic() - start < 5
    assert wait_gone(state, ids, 2) == []
    assert list(Path(state).glob("run/*")) == []


def test_sto_05_sessions_outlive_the_thread_that_made_them(sa):
    made = []
    thread = threading.Thread(target=lambda: made.append(sa.create()))
    thread.start()
    thread.join()
    time.sleep(0.5)
    assert made[0].execute("1 + 1")["result"]["text/plain"] == "2"
    made[0].stop()


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_run_ends_in_order_on_signals(state, signum):
    process = subprocess.Popen(
        [
            str(sa_module.BUILD / "sandbox-agent"),
            "run",
            "-c",
            "import time; print('up', flush=True); time.sleep(100)",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SANDBOX_STATE_DIR": str(state)},
    )
    assert process.stdout.readline() == "up\n"
    process.send_signal(signum)
    assert process.wait(timeout=15) == 1
    assert list(Path(state).glob("run/*/sb/*")) == []


def test_idle_and_old_sessions_are_collected_but_never_a_busy_one(state, monkeypatch):
    owner = Owner(state, "idle", SESSION_IDLE_TTL_SECONDS="2", SESSION_GC_INTERVAL_SECONDS="1")
    idle, busy = owner.ask("create")["id"], owner.ask("create")["id"]
    result = owner.ask("execute", id=busy, code="import time; time.sleep(6); 1", timeout=30)
    assert result["status"] == "ok"
    answer = owner.ask("execute", id=idle, code="1")
    assert answer["failed"] == "DIED" and "expired" in answer["text"]
    owner.close()


def test_owners_past_the_limit_are_evicted_least_recently_used_first(state):
    owner = Owner(
        state,
        "evict",
        SESSION_MAX_ACTIVE_THREADS="2",
        SESSION_GC_INTERVAL_SECONDS="1",
        CONTAINER_MAX_SESSIONS="10",
    )
    ids = []
    for name in "abc":
        ids.append(owner.ask("create", options={"owner": name})["id"])
        time.sleep(0.1)
    time.sleep(2.5)
    status = {s["session_id"]: s["status"] for s in owner.ask("list")["sessions"]}
    assert [status[i] for i in ids] == ["dead", "running", "running"]
    owner.close()


def test_ps_and_stop_see_all_instances(state, agent):
    owner = Owner(state, "seen")
    i = owner.ask("create")["id"]
    env = {"SANDBOX_STATE_DIR": str(state)}
    rows = [json.loads(line) for line in agent("ps", "--json", env=env).stdout.splitlines()]
    assert [(r["id"], r["instance"], r["runtime"]) for r in rows] == [(i, "seen-0", "python")]
    assert agent("stop", i[:8], env=env).returncode == 0
    assert traces(state, [i]) == []
    assert agent("stop", i[:8], env=env).returncode == 3
    assert owner.ask("execute", id=i, code="1")["failed"] == "DIED"
    owner.close()


def test_ps_shows_an_owner_without_control_characters(sa, agent):
    session = sa.create("python", network="none", owner="eve\x1b]0;title\x07\x9b2J\r\u00e9")
    try:
        shown = agent("ps").stdout
        assert "eve?]0;title??2J?\u00e9" in shown and "\x1b" not in shown
    finally:
        session.stop()
