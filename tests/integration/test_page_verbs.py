# SPDX-License-Identifier: MIT
"""The verbs around the page: `ui` brings a server and a browser, `api dev` starts itself again."""

import contextlib
import json
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path
from urllib.parse import urlsplit

import mcpstdio
import pytest
from apipeer import Peer
from apiserver import ApiServer, environment
from foreign import free_port
from impostor import Impostor

WAIT = 60


class Verb:
    """A running `sandbox-agent`; each line that it prints is waited for, never for a time."""

    def __init__(self, directory, *words, program=mcpstdio.AGENT, **settings):
        """Start it in a directory, whose state is its own."""
        self.directory, self.lines, self.said = directory, queue.Queue(), []
        self.process = subprocess.Popen(
            [program, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, cwd=directory,
            env=environment(directory, CHAT_MODEL_PROVIDER="direct", **settings))
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            status = self.process.wait(WAIT)
        finally:
            self.process.kill()
        if kind is None:
            assert status == 0, self.said
            mcpstdio.assert_nothing_left(self.directory, within=10)

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def until(self, pattern):
        """Return the match of the next line that has it; fail when the program ends before."""
        while True:
            line = self.lines.get(timeout=WAIT)
            assert line is not None, self.said
            self.said.append(line)
            if found := re.search(pattern, line):
                return found


def is_served(url):
    """Tell whether a server answers there."""
    try:
        return Peer(url).get("/health").status == 200
    except OSError:
        return False


@pytest.fixture
def desktop(tmp_path):
    """A PATH whose only opener writes down what it was asked to open; (settings, the note)."""
    place, note = tmp_path / "bin", tmp_path / "opened"
    place.mkdir()
    os.mkfifo(note)
    opener = place / "xdg-open"
    opener.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{note}\n')
    opener.chmod(0o755)
    return {"PATH": f"{place}:{os.environ['PATH']}", "WAYLAND_DISPLAY": "none"}, note


# ---- ui

def test_ui_starts_a_server_opens_the_page_and_ends_its_server(tmp_path, desktop):
    url = f"http://127.0.0.1:{free_port()}"
    settings, note = desktop
    with Verb(tmp_path, "ui", API_BASE_URL=url, **settings) as verb:
        assert verb.until(r"The page: (\S+)").group(1) == url + "/"
        assert note.read_text() == url + "\n"
        assert is_served(url)
        log = Path(verb.until(r"writes to (\S+);").group(1))
    assert not is_served(url)
    assert f"listening on {url}" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


def test_ui_uses_the_server_that_is_there(tmp_path, desktop):
    (tmp_path / "server").mkdir()
    settings, note = desktop
    with ApiServer(tmp_path / "server") as server:
        with Verb(tmp_path, "ui", API_BASE_URL=server.url, **settings) as verb:
            verb.until("The page")
            assert note.read_text() == server.url + "\n"
            assert verb.process.wait(WAIT) == 0
        assert is_served(server.url)


def test_two_that_start_at_once_have_one_server(tmp_path):
    url = f"http://127.0.0.1:{free_port()}"
    first, second = (Verb(tmp_path, "ui", "--no-open", API_BASE_URL=url) for _ in range(2))
    for verb in (first, second):
        verb.until("The page")
    assert is_served(url)
    owners = [verb for verb in (first, second) if verb.lines.get(timeout=WAIT) is not None]
    assert len(owners) == 1
    for verb in (first, second):
        if verb is not owners[0]:
            assert verb.process.wait(WAIT) == 0
    with owners[0]:
        assert is_served(url)
    assert not is_served(url)


@pytest.mark.parametrize("words, changes", [
    (["--no-open"], {}), ([], {"WAYLAND_DISPLAY": "", "DISPLAY": ""})])
def test_ui_opens_nothing(tmp_path, desktop, words, changes):
    settings, note = desktop
    note.unlink()
    (tmp_path / "server").mkdir()
    with ApiServer(tmp_path / "server") as server, \
            Verb(tmp_path, "ui", *words, API_BASE_URL=server.url, **settings | changes) as verb:
        verb.until("The page")
        assert verb.process.wait(WAIT) == 0
    assert not note.exists()


@pytest.mark.parametrize("settings, reason", [
    ({"API_BASE_URL": "http://192.0.2.1:1", "HTTP_PROXY": "http://127.0.0.1:9"}, "loopback"),
    ({"ENCRYPTION_KEY": "short"}, "ENCRYPTION_KEY")])
def test_ui_says_why_there_is_no_server(tmp_path, settings, reason):
    settings = {"API_BASE_URL": f"http://127.0.0.1:{free_port()}"} | settings
    run = subprocess.run([mcpstdio.AGENT, "ui"], cwd=tmp_path, capture_output=True, text=True,
                         env=environment(tmp_path, **settings), timeout=WAIT, check=False)
    assert run.returncode != 0
    assert reason in run.stderr
    assert "The page" not in run.stdout
    mcpstdio.assert_nothing_left(tmp_path, within=10)


def test_ui_does_not_take_another_program_for_a_server(tmp_path):
    with subprocess.Popen(["python3", "-u", "-m", "http.server", "--bind", "127.0.0.1", "0"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          cwd=tmp_path) as other:
        port = re.search(r"port (\d+)", other.stdout.readline()).group(1)
        run = subprocess.run([mcpstdio.AGENT, "ui"], cwd=tmp_path, capture_output=True, text=True,
                             env=environment(tmp_path, API_BASE_URL=f"http://127.0.0.1:{port}"),
                             timeout=WAIT, check=False)
        other.kill()
    assert run.returncode != 0
    assert "something else" in run.stderr


def test_ui_that_is_killed_leaves_no_server(tmp_path):
    url = f"http://127.0.0.1:{free_port()}"
    verb = Verb(tmp_path, "ui", "--no-open", API_BASE_URL=url)
    verb.until("writes to")
    assert is_served(url)
    with socket.create_connection(("127.0.0.1", urlsplit(url).port), WAIT) as connection:
        verb.process.kill()
        verb.process.wait(WAIT)
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
    mcpstdio.assert_nothing_left(tmp_path, within=10)
    assert not is_served(url)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")
@pytest.mark.parametrize("words", [["ui", "--no-open"], ["cli", "-c", "hello"]])
def test_a_server_of_another_user_is_given_no_key(tmp_path, words):
    with Impostor("open", user=65534) as impostor:
        run = subprocess.run(
            [mcpstdio.AGENT, *words], cwd=tmp_path, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=WAIT, check=False,
            env=environment(tmp_path, API_BASE_URL=impostor.url, API_KEY="key-of-ann-0123456"))
    assert run.returncode != 0
    assert "user 65534 listens" in run.stderr + run.stdout
    assert impostor.asked == ["/info None"]


def test_a_program_of_ours_that_answers_is_taken(tmp_path):
    with Impostor("open") as impostor, \
            Verb(tmp_path, "ui", "--no-open", API_BASE_URL=impostor.url) as verb:
        verb.until("The page")
        assert verb.process.wait(WAIT) == 0


def test_what_is_at_the_port_already_is_not_taken_for_the_server_that_was_started(tmp_path):
    with Impostor("shy") as impostor:
        run = subprocess.run([mcpstdio.AGENT, "ui", "--no-open"], cwd=tmp_path,
                             capture_output=True, text=True, timeout=WAIT, check=False,
                             env=environment(tmp_path, API_BASE_URL=impostor.url))
    assert run.returncode != 0
    assert "has not started" in run.stderr and "in use" in run.stderr
    assert "The page" not in run.stdout
    mcpstdio.assert_nothing_left(tmp_path, within=10)


def fifo(state):
    """Make a log that nobody reads."""
    os.mkfifo(state / "server.log")


def link(state):
    """Make a log that is a link to somewhere else."""
    (state / "server.log").symlink_to(state / "elsewhere")


def foreign_lock(state):
    """Make a lock that is somebody else's."""
    (state / "server.lock").touch()
    os.chown(state / "server.lock", 65534, 65534)


def foreign_state(state):
    """Make a state directory that everybody may write to."""
    state.chmod(0o777)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")
@pytest.mark.parametrize("trap, reason", [
    (fifo, "server.log"), (link, "server.log"), (foreign_lock, "server.lock"),
    (foreign_state, "nobody else may write")])
def test_ui_does_not_fall_for_files_of_others(tmp_path, trap, reason):
    trap(tmp_path)
    url = f"http://127.0.0.1:{free_port()}"
    run = subprocess.run(
        [mcpstdio.AGENT, "ui", "--no-open"], cwd=tmp_path, capture_output=True, text=True,
        timeout=WAIT, check=False,
        env=environment(tmp_path, CHAT_MODEL_PROVIDER="direct", API_BASE_URL=url))
    assert run.returncode != 0
    assert reason in run.stderr
    assert not (tmp_path / "elsewhere").exists()
    if trap is foreign_state:
        assert not (tmp_path / "server.lock").exists()


# ---- api dev

@pytest.fixture
def dev(tmp_path):
    """`api dev` with a program and a page of its own, after its first start; (verb, peer)."""
    program, page = tmp_path / "program", tmp_path / "ui/dist"
    shutil.copy(mcpstdio.AGENT, program)
    page.mkdir(parents=True)
    (page / "index.html").write_text("first")
    with Verb(tmp_path, "api", "dev", "--listen", f"127.0.0.1:{free_port()}", program=program,
              POSTGRES_HOST="nowhere.invalid", SANDBOX_LOG="error") as verb:
        url = verb.until(r"listening on (\S+)").group(1)
        yield verb, Peer(url)


def value_of(peer, thread, code):
    """Run a cell in direct mode; return the result's text."""
    reply = peer.post(f"/threads/{thread}/runs/wait", {
        "assistant_id": "agent", "input": {"messages": [{"role": "user", "content": code}]}})
    assert reply.status == 200, reply.text
    results = [m for m in reply.json["messages"] if m["type"] == "tool"]
    return json.dumps(results[-1]["content"])


def test_api_dev_starts_again_and_keeps_what_it_knows(dev, tmp_path):
    verb, peer = dev
    thread = peer.thread()
    value_of(peer, thread, "x = 4100")
    session = peer.get("/sessions").json[0]["session_id"]

    def program():
        shutil.copy(tmp_path / "program", tmp_path / "new")
        (tmp_path / "new").rename(tmp_path / "program")

    changes = {
        "the page": lambda: (tmp_path / "ui/dist/index.html").write_text("second"),
        "the settings' file": lambda: (tmp_path / ".env").write_text("MAX_ITERATIONS=7\n"),
        "the program": program,
    }
    for number, (name, change) in enumerate(changes.items(), 1):
        change()
        verb.until(f"{name} has changed")
        verb.until("listening on")
        assert peer.get("/", headers={"Accept": "text/html"}).text == "second"
        assert f"{4100 + number}" in value_of(peer, thread, f"x + {number}")
        assert [s["session_id"] for s in peer.get("/sessions").json] == [session]
    assert any("debug: http method=" in line for line in verb.said)


def test_api_dev_waits_for_a_change_when_its_server_ends(dev, tmp_path):
    verb, peer = dev
    (tmp_path / ".env").write_text("ENCRYPTION_KEY=short\n")
    verb.until("ENCRYPTION_KEY")
    verb.until("has ended")
    (tmp_path / ".env").unlink()
    verb.until("listening on")
    assert peer.get("/health").status == 200


def test_api_dev_has_the_page_of_the_program_until_there_is_another(tmp_path):
    with Verb(tmp_path, "api", "dev", "--listen", "127.0.0.1:0",
              "--ui-dir", tmp_path / "dist") as verb:
        html = {"Accept": "text/html"}
        peer = Peer(verb.until(r"listening on (\S+)").group(1))
        assert "<title>sandbox-agent" in peer.get("/", headers=html).text
        (tmp_path / "new").mkdir()
        (tmp_path / "new/index.html").write_text("mine")
        (tmp_path / "new").rename(tmp_path / "dist")
        peer = Peer(verb.until(r"listening on (\S+)").group(1))
        assert peer.get("/", headers=html).text == "mine"


def test_api_dev_waits_for_a_program_that_can_be_started(dev, tmp_path):
    verb, peer = dev
    (tmp_path / "garbage").write_bytes(b"\x7fELF cut")
    (tmp_path / "garbage").chmod(0o755)
    shutil.copy(tmp_path / "program", tmp_path / "new")
    (tmp_path / "garbage").rename(tmp_path / "program")
    verb.until("Exec format error.*tried again")
    (tmp_path / "new").rename(tmp_path / "program")
    verb.until("listening on")
    assert peer.get("/health").status == 200


def test_api_dev_serves_a_file_that_was_added(dev, tmp_path):
    verb, peer = dev
    (tmp_path / "ui/dist/added.js").write_text("'mine'")
    verb.until("the page has changed")
    verb.until("listening on")
    assert peer.get("/added.js").text == "'mine'"


def test_api_dev_that_is_killed_leaves_no_server(tmp_path):
    verb = Verb(tmp_path, "api", "dev", "--listen", "127.0.0.1:0")
    url = verb.until(r"listening on (\S+)").group(1)
    verb.process.kill()
    verb.process.wait(WAIT)
    # Its server writes to the same pipe.
    while verb.lines.get(timeout=WAIT) is not None:
        pass
    mcpstdio.assert_nothing_left(tmp_path, within=10)
    assert not is_served(url)


def test_another_word_is_refused(tmp_path):
    for words in (["prod"], ["dev", "dev"]):
        run = subprocess.run([mcpstdio.AGENT, "api", *words], cwd=tmp_path, capture_output=True,
                             text=True, env=environment(tmp_path), timeout=WAIT, check=False)
        assert run.returncode == 2
        assert "unknown argument" in run.stderr
