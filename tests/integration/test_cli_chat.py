# SPDX-License-Identifier: MIT
"""The terminal chat through a pseudo-terminal and through pipes, against a server of its own."""

import json
import os
import re
import signal
import socket
import stat
import urllib.request
from pathlib import Path

import apiserver
import chatpty
import fakemodel
import mcpstdio
import pytest
from apipeer import wait_for
from chatpty import Chat, piped
from cutproxy import CutProxy

ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")
DONE = "All is done."


def script(request):
    """Obey as fakemodel.rules does, but say little about results."""
    turn = fakemodel.rules(request)
    if str(turn.get("text", "")).startswith("Result: "):
        return {"text": DONE}
    return turn


@pytest.fixture(scope="module")
def model():
    """A model that does what it is told."""
    with fakemodel.FakeModel(script) as model:
        yield model


@pytest.fixture(scope="module")
def server(model, tmp_path_factory):
    """A server that asks it."""
    with apiserver.ApiServer(tmp_path_factory.mktemp("server"), model,
                             PRIVATE_MODEL_HOSTS="127.0.0.1") as server:
        yield server


@pytest.fixture
def chat(server, tmp_path):
    """A chat in a new conversation."""
    with Chat(server.url, tmp_path) as chat:
        chat.prompt()
        yield chat


def scripted(turns, tmp_path, **settings):
    """Return a model with those turns and a server that asks it; both are context managers."""
    fake = fakemodel.FakeModel(turns)
    return fake, apiserver.ApiServer(tmp_path / "server", fake, **settings)


@pytest.fixture
def scene(tmp_path):
    """Return what makes a model with turns of its own, its server and a chat."""
    opened = []

    def make(turns, *words, **settings):
        (tmp_path / "server").mkdir(exist_ok=True)
        fake = fakemodel.FakeModel(turns)
        opened.append(fake.__enter__())
        server = apiserver.ApiServer(tmp_path / "server", fake, **settings)
        opened.append(server.__enter__())
        chat = Chat(server.url, tmp_path, *words)
        opened.append(chat.__enter__())
        chat.prompt()
        return fake, server, chat

    yield make
    for entered in reversed(opened):
        entered.__exit__(None, None, None)


def kept_thread(directory):
    """Return the file of the conversation, and its content."""
    path = Path(directory) / "xdg/sandbox-agent/cli-thread.json"
    return path, json.loads(path.read_text())["thread_id"]


# ---- a conversation


def test_it_says_where_it_is(chat, server):
    for text in ("sandbox-agent 0", "fake (openai)", server.url, "/help"):
        assert text in chat.text
    path, thread = kept_thread(chat.state_dir)
    assert thread in chat.text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert server.get(f"/threads/{thread}").json["metadata"]["source"] == "cli"


def test_an_answer_appears_while_it_is_written(scene):
    fake, _, chat = scene([{"text": ["The first part.\n\n", {"wait": "more"}, "**The rest.**"]}])
    chat.say("hello", wait=False)
    chat.expect("The first part.")
    assert fake.reached("more") and "The rest." not in chat.text
    fake.release("more")
    chat.prompt()
    assert chat.text.count("The first part.") == 1
    assert chat.text.count("The rest.") == 1 and "**" not in chat.text


def test_thinking_is_shown_apart(chat):
    chat.say("think: it is a hard one\nsay: forty-two")
    assert "┊ it is a hard one" in chat.text
    assert "forty-two" in chat.text


def test_a_cell_has_a_panel_with_its_output(chat):
    chat.say("run: print(6 * 7)")
    assert re.search(r"╭─ execute_code · python ─+╮\n│ print\(6 \* 7\) +│\n├─ output ─+┤\n"
                     r"│ 42 +│\n╰─ ok · \d\.\d\d s ─+╯", chat.text), chat.text
    assert b"\x1b[" in chat.raw


def test_output_is_shown_while_the_cell_runs(chat):
    chat.say("run: print('early', flush=True); input()\nprint('late')", wait=False)
    chat.expect("│ early")
    assert "│ late" not in chat.text
    chat.type("\r")
    chat.prompt()


@pytest.mark.parametrize(("told", "line"), [
    ("run: 1/0", "error: ZeroDivisionError"),
    ("run: import os; os._exit(3)", "died · exit:3"),
    ('call: execute_code {"session_id": "$SESSION", "code": "while 1: pass", "timeout": 1}',
     "timed out"),
    ("shell: echo out; echo err >&2; exit 3", "error · exit:3"),
])
def test_the_end_of_a_panel_tells_how_it_was(chat, told, line):
    chat.say(told)
    assert f"╰─ {line}" in chat.text, chat.text
    assert DONE in chat.text


def test_results_that_are_no_runs(chat):
    chat.say("call: list_sessions {}")
    assert '{"success":true,"sessions":[]}' in chat.text
    chat.say('call: stop_session {"session_id": "nothing"}')
    assert "├─ error" in chat.text


def test_a_panel_has_sixty_lines_of_output(chat):
    chat.say("run: for i in range(200): print('row', i)")
    rows = re.findall(r"│ row (\d+) ", chat.text)
    assert len(rows) == 59 and rows[-1] == "199", rows
    assert "141 more lines" in chat.text


def test_calls_side_by_side_come_in_their_order(scene):
    calls = [{"name": "execute_code", "arguments": {"session_id": "$SESSION", "code": code}}
             for code in ("import time; time.sleep(0.5); print('slow')", "print('quick')")]
    _, _, chat = scene([{"calls": [{"name": "create_session", "arguments": {}}]},
                        {"calls": calls}, {"text": DONE}])
    chat.say("go")
    text = chat.text
    assert text.index("│ slow") < text.index("│ quick") < text.index(DONE)
    assert text.count("╭─ execute_code") == text.count("╰─ ok ·") - 1 == 2


def test_nothing_is_printed_again(chat):
    for number in range(3):
        chat.say(f"run: print('run number {number}')")
    text = chat.text
    assert text.count("╭─ execute_code") == 3 and text.count("╭─ create_session") == 1
    for number in range(3):
        assert text.count(f"│ run number {number}") == 1


def test_a_paste_of_lines_is_one_message(chat, model):
    before = len(model.requests)
    chat.type("\x1b[200~say: one\nsay: two\x1b[201~")
    chat.expect("say: two")
    chat.type("\r")
    chat.expect("onetwo")
    chat.prompt()
    assert len(model.requests) == before + 1
    assert model.requests[-1].last_user_text == "say: one\nsay: two"


# ---- stopping


def test_ctrl_c_stops_the_run_and_keeps_the_chat(chat, server):
    chat.say("run: import time\\nfor i in range(600): print('tick', i, flush=True);"
             " time.sleep(0.1)", wait=False)
    chat.expect("│ tick 3")
    chat.type("\x03")
    chat.prompt()
    assert "stopped" in chat.text
    _, thread = kept_thread(chat.state_dir)
    assert server.get(f"/threads/{thread}/runs").json[0]["status"] == "interrupted"
    chat.say("run: print('still here')")
    assert "│ still here" in chat.text and chat.text.count("│ tick 3 ") == 1


def test_ctrl_c_stops_a_model(scene):
    fake, _, chat = scene([{"text": ["so far", {"wait": "never"}]}, {"text": "the next one"}])
    chat.say("hello", wait=False)
    chat.expect("so far")
    chat.type("\x03")
    chat.prompt()
    assert fake.requests[0].closed.wait(10)
    chat.say("again")
    assert "the next one" in chat.text


@pytest.mark.parametrize("keys", ["\x04", "\x03\x03", "exit\r", "quit\r", "q\r", "/quit\r"])
def test_it_ends_when_it_is_told_to(chat, keys):
    for key in re.findall(r"[\x03\x04]|[^\x03\x04]+", keys):
        chat.type(key)
        if key == "\x03":
            chat.expect("Ctrl-C again")
    assert chat.end() == 0


def test_sigterm_ends_it_and_leaves_the_terminal_well(chat):
    chat.process.send_signal(signal.SIGTERM)
    assert chat.end() == 128 + signal.SIGTERM
    assert chat.raw.rfind(b"\x1b[?25h") >= chat.raw.rfind(b"\x1b[?25l")


# ---- going on


def test_the_conversation_goes_on_after_a_restart(server, tmp_path):
    with Chat(server.url, tmp_path) as first:
        first.prompt()
        first.say("run: kept = 'from before'; print('old panel')")
        first.type("\x04")
        assert first.end() == 0
    _, thread = kept_thread(tmp_path)
    with Chat(server.url, tmp_path) as second:
        second.prompt()
        assert thread in second.text and "goes on" in second.text and DONE in second.text
        assert "│ old panel" not in second.text
        second.say("run: print(kept)")
        assert "│ from before" in second.text
        assert "│ old panel" not in second.text
        assert "execute_code · python" in second.text, "the language is known from before"
        second.say("/new")
        assert kept_thread(tmp_path)[1] != thread
        second.say("/threads")
        assert "▸ 1" in second.text and "(empty)" in second.text
        second.say(f"/threads {thread[:13]}")
        assert kept_thread(tmp_path)[1] == thread


def test_a_conversation_that_is_gone_begins_anew(server, tmp_path):
    with Chat(server.url, tmp_path) as first:
        first.prompt()
        path, thread = kept_thread(tmp_path)
    assert server.delete(f"/threads/{thread}").status in (200, 204)
    with Chat(server.url, tmp_path) as second:
        second.prompt()
        assert kept_thread(tmp_path)[1] != thread
    path.write_text("{")
    with Chat(server.url, tmp_path) as third:
        third.prompt()
        other = kept_thread(tmp_path)[1]
    with Chat(server.url, tmp_path, "cli", "--thread", "no-such-thread") as fourth:
        assert fourth.end() != 0
        assert "no-such-thread" in fourth.text
    with Chat(server.url, tmp_path, "--new") as fifth:
        fifth.prompt()
        assert kept_thread(tmp_path)[1] != other


def test_a_run_that_goes_on_is_followed(scene, tmp_path):
    fake, server, chat = scene([{"text": ["begun ", {"wait": "end"}, "and ended"]}])
    chat.say("hello", wait=False)
    chat.expect("begun")
    chat.process.kill()
    chat.process.wait()
    with Chat(server.url, tmp_path) as second:
        second.expect("begun")
        fake.release("end")
        second.expect("begun and ended")
        second.prompt()
        assert second.text.count("begun and ended") == 1


# ---- a connection that is cut, a server that dies


def test_a_cut_connection_goes_on_where_it_was(server, tmp_path):
    with CutProxy(server.url, [1500, 3000, 1200, 5000]) as proxy, \
            Chat(proxy.url, tmp_path) as chat:
        chat.prompt()
        chat.say("run: print('in the panel')\nsay: x")
        assert proxy.cut_count >= 2
        assert chat.text.count("│ in the panel") == 1
        assert chat.text.count(DONE) == 1
        assert chat.text.count("╭─ execute_code") == 1


def test_a_server_that_dies_takes_the_run_up_again(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    (tmp_path / "server").mkdir()
    turns = [{"text": ["before ", {"wait": "never"}]}, {"text": "after the restart"}]
    with fakemodel.FakeModel(turns) as fake, \
            apiserver.ApiServer(tmp_path / "server", fake, "--listen",
                                f"127.0.0.1:{port}") as server, \
            Chat(server.url, tmp_path) as chat:
        chat.prompt()
        chat.say("hello", wait=False)
        chat.expect("before")
        server.restart(signal.SIGKILL)
        chat.expect("after the restart", timeout=90)
        chat.prompt()
        assert chat.text.count("after the restart") == 1


def test_a_dead_server_is_told_and_the_chat_stays(tmp_path, model):
    (tmp_path / "server").mkdir()
    server = apiserver.ApiServer(tmp_path / "server", model)
    with Chat(server.url, tmp_path) as chat:
        chat.prompt()
        server.stop()
        chat.say("/sessions")
        assert "✗" in chat.text
        chat.say("hello")
        assert chat.text.count("✗") >= 2
        chat.say("/help")
        chat.type("\x04")
        assert chat.end() == 1


# ---- models


def test_model_settings_go_with_the_run(server, model, tmp_path):
    with fakemodel.FakeModel(script) as other, Chat(server.url, tmp_path) as chat:
        chat.prompt()
        chat.say("/model provider anthropic")
        chat.say(f"/model url {other.url('anthropic')}")
        chat.say("/model other-model")
        chat.say("/model key", wait=False)
        chat.expect("key (not shown)")
        chat.type("very-secret-key\r")
        chat.expect("set  (this chat)")
        chat.prompt()
        chat.say("/model vision off")
        before = len(model.requests)
        chat.say("run: import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")
        assert len(model.requests) == before
        asked = other.requests[-1]
        assert (asked.provider, asked.model, asked.key) == ("anthropic", "other-model",
                                                            "very-secret-key")
        assert not any(m["images"] for m in asked.messages)
        chat.say("/model vision on")
        chat.say("hello")
        assert any(m["images"] for m in other.requests[-1].messages)
        chat.say("/model provider openai")
        assert "forgotten" in chat.text
        chat.say("/model reset")
        chat.say("hello once more")
        assert len(model.requests) == before + 1
        assert b"very-secret-key" not in chat.raw
    for path in (tmp_path / "xdg").rglob("*"):
        assert path.is_dir() or b"very-secret-key" not in path.read_bytes(), path


def test_a_key_behind_the_command_is_refused_and_not_kept(chat):
    chat.say("/model key sk-typed-openly")
    assert "/model key alone" in chat.text
    chat.say("/model provider nonsense")
    assert "there is no provider 'nonsense'" in chat.text
    chat.say("/model url javascript:alert(1)")
    chat.say("/model key 'sk-typed-behind-a-quote")
    chat.say("/model 'key sk-typed-in-quotes")
    assert chat.text.count("✗") == 5
    chat.type("\x04")
    chat.end()
    history = chat.state_dir / "xdg/sandbox-agent/cli-history"
    assert "nonsense" in history.read_text() and "sk-typed" not in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


def test_direct_mode_needs_no_model(tmp_path):
    (tmp_path / "server").mkdir()
    with apiserver.ApiServer(tmp_path / "server", CHAT_MODEL_PROVIDER="direct") as server, \
            Chat(server.url, tmp_path) as chat:
        chat.prompt()
        assert "what you type is run" in chat.text
        chat.say("6 * 7")
        assert "├─ result" in chat.text and "│ 42" in chat.text


PAGE = Path(__file__).parents[2] / "docs/cli.md"


def test_the_transcript_of_the_page(tmp_path):
    """What docs/cli.md shows is what is seen, but for ids, times and addresses."""
    (tmp_path / "server").mkdir()
    with apiserver.ApiServer(tmp_path / "server", CHAT_MODEL_PROVIDER="direct") as server, \
            Chat(server.url, tmp_path, rows=60) as chat:
        chat.prompt()
        chat.say("squares = [n * n for n in range(4)]\nprint(squares)\nsum(squares)")
        chat.say("1 / 0")
        seen = chat.text.strip()
    for found, shown in ((r"session [0-9a-f]{8}", "session 3f9d12c0"),
                         (r"\d\.\d\d s ─", "0.01 s ─"),
                         (r"server  http://127\.0\.0\.1:\d+ *│",
                          f"{'server  http://127.0.0.1:8000':77}│"),
                         (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
                          "7c1c6d0e-52f6-4c8b-9c3a-0d6c8e7a1b42")):
        seen = re.sub(found, shown, seen)
    page = PAGE.read_text()
    begin = page.index("```\n", page.index("<!-- made by")) + 4
    expected = page[begin:page.index("```", begin)]
    if os.environ.get("RENEW_PAGE"):
        PAGE.write_text(page[:begin] + seen + "\n" + page[page.index("```", begin):])
    else:
        assert seen + "\n" == expected


def test_pictures_are_drawn_where_the_terminal_can(server, tmp_path):
    with Chat(server.url, tmp_path, TERM="xterm-kitty", KITTY_WINDOW_ID="1") as chat:
        chat.prompt()
        chat.say("run: import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")
        assert b"\x1b_Ga=T" in chat.raw or re.search(rb"\x1b_G[^\x1b]*a=T", chat.raw)
        assert "image/png" in chat.text


def test_ctrl_c_ends_the_wait_for_a_picture(server, tmp_path):
    helpers, running = tmp_path / "helpers", tmp_path / "running"
    helpers.mkdir()
    decoder = helpers / "sandbox-picture"
    decoder.write_text(f"#!/bin/sh\necho $$ > {running}\nexec sleep 600\n")
    decoder.chmod(0o755)
    with Chat(server.url, tmp_path, TERM="foot", SANDBOX_AGENT_LIBEXEC=helpers) as chat:
        chat.prompt()
        chat.say("run: import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()", wait=False)
        wait_for(lambda: running.exists() and running.read_text().strip())
        chat.type("\x03")
        chat.prompt()
        assert "the picture is not shown: it was stopped" in chat.text
        assert not Path(f"/proc/{running.read_text().strip()}").exists()
        chat.say("say: still here")


# ---- files, sessions, displays


def test_files_go_there_and_back(chat, tmp_path, model):
    (tmp_path / "my data.csv").write_text("a,b\n1,2\n")
    chat.say('/upload "my data.csv" missing.txt')
    assert "uploaded my data.csv (8 bytes)" in chat.text and "missing.txt" in chat.text
    chat.say("say: thanks")
    asked = model.requests[-1].last_user_text
    file = json.loads(asked.splitlines()[-2])
    path = file["path"]
    assert (file["name"], file["size"]) == ("my data.csv", 8)
    chat.say("language: python\nrun: 1")
    chat.say("call: import_files " + json.dumps(
        {"session_id": "$SESSION", "files": [{"source": path, "destination": "in.csv"}]}))
    chat.say("run: open('/workspace/out.csv', 'w').write(open('/workspace/in.csv').read() + '3,4')")
    chat.say('call: export_files {"session_id": "$SESSION", "files": [{"source": "out.csv"}]}')
    assert "✓ /workspace/out.csv (11 bytes)" in chat.text
    chat.say("/files")
    assert "my data.csv  (8 bytes)" in chat.text
    chat.say("/download out.csv")
    assert (tmp_path / "out.csv").read_text() == "a,b\n1,2\n3,4"
    chat.say("/download out.csv")
    assert "is there already" in chat.text
    chat.say("/download /workspace/out.csv kept.csv")
    assert (tmp_path / "kept.csv").read_text() == "a,b\n1,2\n3,4"
    assert not list(tmp_path.glob("*.part"))


def test_a_message_tells_of_uploads_once(chat, model, tmp_path):
    (tmp_path / "x").write_text("1")
    chat.say("/upload x")
    chat.say("say: one")
    text, note = model.requests[-1].last_user_text.split("\n\n")
    assert text == "say: one" and note.startswith("<attached-files>\n{") and note.endswith(
        "}\n</attached-files>")
    assert json.loads(note.splitlines()[1])["name"] == "x"
    chat.say("say: two")
    assert "attached-files" not in model.requests[-1].last_user_text


def test_displays_are_saved_and_named(chat):
    chat.say("run: import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")
    found = re.search(r"image/png \d+x\d+ → (/\S+\.png)", chat.text.replace("\n", ""))
    assert found, chat.text
    path = Path(found.group(1))
    assert path.read_bytes().startswith(b"\x89PNG")
    chat.say("run: from IPython.display import display, HTML; display(HTML('<b>bold</b>'))")
    page = next(path.parent.glob("*.html"))
    assert page.read_text() == "<b>bold</b>"
    assert path.parent.parent == chat.state_dir / "xdg/sandbox-agent/displays"


def test_sessions_are_listed_and_ended(chat, server):
    chat.say("run: 1")
    _, thread = kept_thread(chat.state_dir)
    session = next(s["session_id"] for s in server.get("/sessions").json
                   if s["thread_id"] == thread)
    chat.say("/sessions")
    assert session[:8] in chat.text and "this conversation" in chat.text
    chat.say(f"/sessions interrupt {session[:8]}")
    chat.say(f"/sessions stop {session[:8]}")
    assert f"stopped: {session[:8]}" in chat.text
    assert session not in {s["session_id"] for s in server.get("/sessions").json}
    chat.say("/sessions stop zzz")
    assert "✗" in chat.text


def test_commands_explain_themselves(chat):
    chat.say("/help")
    for word in ("/new", "/threads", "/model", "/files", "/upload", "/download", "/sessions",
                 "/stop", "/quit", "Ctrl-C"):
        assert word in chat.text
    chat.say("/nonsense")
    assert "there is no command '/nonsense'" in chat.text
    chat.say("/stop")
    assert "nothing runs" in chat.text


def test_tab_completes_commands_and_paths(chat, tmp_path):
    (tmp_path / "report-of-today.txt").write_text("x")
    chat.type("/upl\t")
    chat.expect("❯ /upload")
    chat.type("rep\t")
    chat.expect("report-of-today.txt")
    chat.type("\r")
    chat.expect("uploaded report-of-today.txt")


# ---- questions


def test_a_cell_reads_a_line_and_a_password(chat):
    chat.say("run: name = input('who? ')\\nprint('hello', name)", wait=False)
    chat.expect("│ who?")
    chat.type("Ann\r")
    chat.expect("│ hello Ann")
    chat.prompt()
    chat.say("run: import getpass\\nprint('length', len(getpass.getpass('word? ')))", wait=False)
    chat.expect("│ word?")
    chat.type("hidden-word\r")
    chat.expect("│ length 11")
    chat.prompt()
    assert b"hidden-word" not in chat.raw
    assert chat.text.count("╭─ execute_code") == 2


def test_a_password_that_is_typed_ahead_is_a_password(chat, model):
    before = len(model.requests)
    chat.say("run: import getpass\\nname = input('who? ')\\n"
             "print('length', len(getpass.getpass('word? ')))", wait=False)
    chat.expect("│ who?")
    chat.type("bob\rhiddem\x7fn-word\r")
    chat.expect("│ length 11")
    chat.prompt()
    chat.type("/model key\ranother-hidden-word\r")
    chat.expect("set  (this chat)")
    chat.prompt()
    chat.type("\x04")
    chat.end()
    kept = (chat.state_dir / "xdg/sandbox-agent/cli-history").read_bytes()
    for place in (chat.raw, kept, *(str(r.messages).encode() for r in model.requests[before:])):
        assert b"hidden-word" not in place


@pytest.fixture
def approving(scene):
    """Return a chat whose cells have to be approved."""
    return scene(script, APPROVE_TOOLS="execute_code")[2]


def test_a_call_is_approved(approving):
    approving.say("run: print('done so')", wait=False)
    approving.expect("approve?")
    assert "run exactly this?" in approving.text and "print('done so')" in approving.text
    assert "│ done so" not in approving.text
    approving.type("maybe\r")
    approving.expect("y, n, n REASON or e")
    approving.type("y\r")
    approving.expect("│ done so")
    approving.prompt()


def test_a_call_is_refused_with_a_reason(approving):
    approving.say("run: print('done so')", wait=False)
    approving.expect("approve?")
    approving.type("n not today\r")
    approving.prompt()
    assert "not today" in approving.text.split("approve?")[1]
    assert "│ done so" not in approving.text


def test_a_call_is_changed(scene, tmp_path, monkeypatch):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho \"print('another thing')\" > \"$1\"\n")
    editor.chmod(0o755)
    _, server, _ = scene(script, APPROVE_TOOLS="execute_code")
    with Chat(server.url, tmp_path, "--new", EDITOR=str(editor)) as chat:
        chat.prompt()
        chat.say("run: print('one thing')", wait=False)
        chat.expect("approve?")
        chat.type("e\r")
        chat.expect("│ another thing")
        chat.prompt()
        assert "│ one thing" not in chat.text
        assert "print('another thing')" in chat.text


def test_two_chats_edit_apart(scene, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho \"$1\" >> paths\necho 'print(1)' > \"$1\"\n"
                      "echo the editor is open\nread -r line\n")
    editor.chmod(0o755)
    _, server, _ = scene(script, APPROVE_TOOLS="execute_code")
    with Chat(server.url, tmp_path, "--new", EDITOR=str(editor)) as one, \
            Chat(server.url, tmp_path, "--new", EDITOR=str(editor)) as other:
        for chat in (one, other):
            chat.prompt()
            chat.say("run: print('once')", wait=False)
            chat.expect("approve?")
            chat.type("e\r")
            chat.expect("the editor is open")
        for chat in (one, other):
            chat.type("\n")
            chat.prompt()
        first, second = (tmp_path / "paths").read_text().split()
        assert first != second and not Path(first).exists() and not Path(second).exists()


def test_what_is_approved_hides_nothing(scene):
    code = "print('a\u202eb\u200b')  # \x1b[2Jhidden"
    turns = [{"calls": [{"name": "create_session", "arguments": {}}]},
             {"calls": [{"name": "execute_code",
                         "arguments": {"session_id": "$SESSION", "code": code}}]},
             {"text": DONE}]
    _, _, chat = scene(turns, APPROVE_TOOLS="execute_code")
    chat.say("go", wait=False)
    chat.expect("approve?")
    shown = chat.text
    for sign in ("<U+202E>", "<U+200B>", r"\x1b[2Jhidden"):
        assert sign in shown
        assert b"\x1b[0;7m" + sign.split("[")[0].encode() in chat.raw
    chat.type("n\r")
    chat.prompt()


def test_what_is_too_long_to_be_shown_can_only_be_refused(scene):
    _, _, chat = scene(calls_of("1," * 1400000 + "print('unseen')"),
                       APPROVE_TOOLS="execute_code")
    chat.say("go", wait=False)
    chat.expect("approve?")
    assert "not all of it: n no" in chat.text and "some of it is missing" in chat.text
    for count, answer in enumerate(("y", "yes", "e", ""), 1):
        chat.type(f"{answer}\r")
        chat.expect("cannot be approved: n, n REASON", count=count)
    chat.type("n too long\r")
    chat.prompt()
    assert "too long" in chat.text.split("n too long")[1]
    assert "│ unseen" not in chat.text and DONE in chat.text


def test_code_with_a_zero_byte_is_edited_whole(scene, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\ncat \"$1\" > before\n"
                      "printf 'import os\\nprint(\"changed\")  # \\000 end' > \"$1\"\n")
    editor.chmod(0o755)
    code = "print('a\0b')\n# behind it"
    _, server, _ = scene(calls_of(code), APPROVE_TOOLS="execute_code")
    with Chat(server.url, tmp_path, "--new", EDITOR=str(editor)) as chat:
        chat.prompt()
        chat.say("go", wait=False)
        chat.expect("approve?")
        assert r"print('a\x00b')" in chat.text and "# behind it" in chat.text
        chat.type("e\r")
        chat.prompt()
        assert (tmp_path / "before").read_text() == code
        assert r'print("changed")  # \x00 end' in chat.text
        _, thread = kept_thread(tmp_path)
    messages = server.get(f"/threads/{thread}/state").json["values"]["messages"]
    assert [call["args"]["code"] for m in messages for call in m.get("tool_calls", [])
            if call["name"] == "execute_code"] == ['import os\nprint("changed")  # \0 end']


def calls_of(*codes):
    """Return a model's turns: cells of the session, all in one message."""
    return [{"calls": [{"name": "create_session", "arguments": {}}]},
            {"calls": [{"name": "execute_code", "arguments": {"session_id": "$SESSION",
                                                              "code": code}}
                       for code in codes]},
            {"text": DONE}]


def test_keys_before_a_question_do_not_answer_it(scene):
    _, _, chat = scene(calls_of("print('first')", "print('second')"),
                       APPROVE_TOOLS="execute_code")
    chat.say("go", wait=False)
    chat.expect("approve?")
    chat.type("y\ry\r")
    chat.expect("approve?", count=2)
    chat.type("n\r")
    chat.prompt()
    assert "│ first" in chat.text and "│ second" not in chat.text


def test_a_question_may_be_left_and_taken_up(scene, tmp_path):
    _, server, chat = scene(script)
    chat.say("run: print('got', input('later? '))", wait=False)
    chat.expect("│ later?")
    chat.type("\x03")
    chat.prompt()
    assert "/answer" in chat.text
    chat.type("\x04")
    chat.end()
    with Chat(server.url, tmp_path) as second:
        second.expect("│ later?")
        second.type("now\r")
        second.expect("│ got now")
        second.prompt()


# ---- hostile


HOSTILE = ("\x1b]0;title\x07\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b[?1049h\x1b[6n\x1bP+q\x1b\\"
           "\x9b31m\u202eright\u2066\u200b\x08\x7f\x1b[10;10Hend-of-it")


def assert_harmless(raw):
    """Nothing but drawing is in the bytes, except what the program asks at its start."""
    for bad in (b"\x1b]0;", b"\x1b]52", b"\x1b[2J", b"\x1b[?1049h", b"\x1b[10;10H", b"\x9b31m",
                "\u202e".encode(), "\u2066".encode()):
        assert bad not in raw, bad


def test_what_models_and_tools_say_is_harmless(scene):
    code = f"print({HOSTILE!r})"
    calls = [{"name": "execute_code", "arguments": {"session_id": "$SESSION", "code": code}},
             {"name": HOSTILE, "arguments": {"x": HOSTILE}}]
    _, _, chat = scene([{"calls": [{"name": "create_session", "arguments": {}}]},
                        {"calls": calls},
                        {"reasoning": "thought " + HOSTILE, "text": "answer " + HOSTILE},
                        {"status": 400, "message": HOSTILE}])
    chat.say("go")
    for word in ("thought", "answer"):
        assert word in chat.text
    assert chat.text.count("end-of-it") >= 4
    chat.say("fail")
    assert "✗" in chat.text
    assert_harmless(chat.raw)


def test_titles_and_names_of_files_are_harmless(server, tmp_path):
    with Chat(server.url, tmp_path) as chat:
        chat.prompt()
        _, thread = kept_thread(tmp_path)
        server.request("PATCH", f"/threads/{thread}", {"metadata": {"title": HOSTILE}})
        chat.say("/threads")
        assert "end-of-it" in chat.text
        chat.say("run: open('/workspace/\\x1b[2Jname\\u202e', 'w').write('1')".replace(
            "\\x1b", r"\x1b").replace("\\u202e", r"\u202e"))
        chat.say('call: export_files {"session_id": "$SESSION", "files": '
                 '[{"source": "\\u001b[2Jname\\u202e"}]}')
        chat.say("run: open('/workspace/x' + chr(10) + 'forged line', 'w').write('1')")
        chat.say('call: export_files {"session_id": "$SESSION", "files": '
                 '[{"source": "x\\nforged line"}]}')
        chat.say("/files")
        assert "x forged line (1 byte" in chat.text and "x forged line  (1 byte" in chat.text
        assert not re.search("^(│ )?forged", chat.text, re.MULTILINE)
        assert_harmless(chat.raw)


# ---- without a terminal


def test_lines_of_a_pipe_are_messages(server, tmp_path):
    done = piped(server.url, tmp_path, "cli",
                 input="say: first\nrun: print('in a pipe')\n/sessions\nexit\nsay: never\n")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout and "╭" not in done.stdout
    for text in ("first", "[execute_code · python]", "  in a pipe", "this conversation"):
        assert text in done.stdout
    assert "never" not in done.stdout


def test_one_message_and_its_answer(server, tmp_path):
    done = piped(server.url, tmp_path, "-c", "run: print('not shown')")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, DONE, "")
    done = piped(server.url, tmp_path, "cli", "--message", "-", input="say: by the pipe\n")
    assert (done.returncode, done.stdout.strip()) == (0, "by the pipe")
    failed = piped(server.url, tmp_path, "-c", "status: 400")
    assert failed.returncode == 1 and failed.stdout.strip() == ""
    assert "400" in failed.stderr


def test_a_question_that_nobody_can_answer_is_a_failure(server, tmp_path):
    done = piped(server.url, tmp_path, "-c", "run: input('who? ')", "--new")
    assert done.returncode == 1 and "waits for an answer" in done.stderr


def test_plain_output_has_no_escapes(server, tmp_path):
    with Chat(server.url, tmp_path, "--plain") as chat:
        chat.expect("ends]")
        chat.type("run: print('plain')\n")
        chat.expect(DONE)
        assert b"\x1b" not in chat.raw
        assert "[execute_code · python]" in chat.text


def test_the_key_of_the_server(tmp_path, model):
    (tmp_path / "server").mkdir()
    with apiserver.ApiServer(tmp_path / "server", model, key="the-key-0123456789",
                             API_KEY="the-key-0123456789") as server:
        refused = piped(server.url, tmp_path, "-c", "say: x")
        assert refused.returncode != 0 and "API_KEY" in refused.stderr
        done = piped(server.url, tmp_path, "-c", "say: let in", API_KEY="the-key-0123456789")
        assert done.stdout.strip() == "let in"


# ---- a server of its own


def free_url():
    """Return an address that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def answers(url):
    """Whether somebody listens there."""
    host, port = url.removeprefix("http://").split(":")
    try:
        socket.create_connection((host, int(port)), 2).close()
    except OSError:
        return False
    return True


def test_a_server_is_started_and_ended(tmp_path):
    url = free_url()
    with Chat(url, tmp_path, CHAT_MODEL_PROVIDER="direct") as chat:
        chat.prompt(timeout=90)
        assert "started here" in chat.text
        chat.say("6 * 7")
        assert "│ 42" in chat.text
        assert answers(url)
        chat.type("\x04")
        assert chat.end() == 0
    assert not answers(url)
    mcpstdio.assert_nothing_left(tmp_path, within=10)


def server_of(chat):
    """Return the process id of the server that a chat has started."""
    pids = [int(pid) for path in Path(f"/proc/{chat.process.pid}/task").glob("*/children")
            for pid in path.read_text().split()]
    assert len(pids) == 1, pids
    return pids[0]


def has_ended(pid):
    """Whether a process is gone, or waits with none of its threads to be taken note of."""
    try:
        return (") Z " in Path(f"/proc/{pid}/stat").read_text()
                and len(os.listdir(f"/proc/{pid}/task")) < 2)
    except (FileNotFoundError, ProcessLookupError):
        return True


ANOTHER = "the server that was started here has ended; another one was started"


def said(chat, text):
    """Whether a text is there, wherever its lines are broken."""
    return "".join(text.split()) in "".join(chat.text.split())


def test_a_server_of_ours_that_is_killed_is_started_again(tmp_path):
    url = free_url()
    with Chat(url, tmp_path, CHAT_MODEL_PROVIDER="direct") as chat:
        chat.prompt(timeout=90)
        chat.say("first = 6; first * 5")
        thread = kept_thread(tmp_path)[1]
        server = server_of(chat)
        os.kill(server, signal.SIGKILL)
        # Its sockets are closed before it counts as ended, which is what the chat can see.
        wait_for(lambda: has_ended(server))
        chat.say("6 * 7")
        assert said(chat, ANOTHER) and "│ 42" in chat.text
        assert kept_thread(tmp_path)[1] == thread
        with urllib.request.urlopen(f"{url}/threads/{thread}/state") as answer:
            asked = [m["content"] for m in json.load(answer)["values"]["messages"]
                     if m["type"] == "human"]
        assert asked == ["first = 6; first * 5", "6 * 7"]
        chat.type("\x04")
        assert chat.end() == 0
    mcpstdio.assert_nothing_left(tmp_path, within=10)


def test_a_server_of_ours_that_is_killed_during_a_run_is_started_again(tmp_path):
    url = free_url()
    with Chat(url, tmp_path, CHAT_MODEL_PROVIDER="direct") as chat:
        chat.prompt(timeout=90)
        thread = kept_thread(tmp_path)[1]
        chat.say("import time\nfor i in range(6000): print('tick', i, flush=True); time.sleep(0.1)",
                 wait=False)
        chat.expect("│ tick 3")
        os.kill(server_of(chat), signal.SIGKILL)
        chat.prompt(timeout=90)
        assert said(chat, ANOTHER)
        chat.say("6 * 7")
        assert "│ 42" in chat.text and chat.text.count("│ tick 3 ") == 1
        assert kept_thread(tmp_path)[1] == thread
        assert chat.text.count("another one was started") == 1
        chat.type("\x04")
        assert chat.end() == 0
    mcpstdio.assert_nothing_left(tmp_path, within=10)


def test_a_chat_that_is_killed_takes_its_server_along(tmp_path):
    url = free_url()
    with Chat(url, tmp_path, CHAT_MODEL_PROVIDER="direct") as chat:
        chat.prompt(timeout=90)
        chat.say("6 * 7")
        server = server_of(chat)
        chat.process.kill()
        chat.process.wait()
        wait_for(lambda: has_ended(server))
        assert not answers(url)
    mcpstdio.assert_nothing_left(tmp_path, within=10)


def test_a_server_elsewhere_is_not_started(tmp_path):
    done = piped("http://192.0.2.1:9", tmp_path, "-c", "x", timeout=60)
    assert done.returncode not in (0, 1) and "no server answers" in done.stderr


def test_bad_options_are_refused(tmp_path):
    done = piped("http://127.0.0.1:9", tmp_path, "--colour")
    assert done.returncode == 2 and "--colour" in done.stderr
    assert chatpty.PROMPT not in done.stdout
