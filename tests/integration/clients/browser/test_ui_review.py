# SPDX-License-Identifier: MIT
"""What a review of the page has found: each once went wrong without a word."""

import re

import apiserver
import fakemodel
import pytest
from webpage import expect, until


@pytest.fixture(scope="module")
def careful(tmp_path_factory, model):
    """A server that asks before code is run."""
    with apiserver.ApiServer(tmp_path_factory.mktemp("careful"), model,
                             APPROVE_TOOLS="execute_code") as server:
        yield server


def asked(server, tab_of, code):
    """A tab that asks about this code; it and the question."""
    tab = tab_of(server).open()
    tab.say(f"run: print('{code}')")
    question = tab.page.get_by_role("region", name="The agent wants to call a tool")
    expect(question).to_contain_text(code)
    return tab, question


def results(server, tab):
    """The results of code."""
    return [m["content"] for m in server.messages(tab.thread)
            if m["type"] == "tool" and m["name"] == "execute_code"]


def test_an_edit_is_what_runs_or_is_taken_back(careful, tab_of):
    tab, question = asked(careful, tab_of, "original")
    edit = question.get_by_role("button", name="Edit", exact=True)
    approve = question.get_by_role("button", name="Approve", exact=True)
    field = question.get_by_role("textbox", name="Code to run")
    edit.click()
    expect(approve).to_have_count(0)
    question.get_by_role("button", name="Cancel").click()
    expect(approve).to_be_visible()
    edit.click()
    field.fill("print('changed')")
    edit.click()
    expect(field).to_have_value("print('changed')")
    question.get_by_role("button", name="Go on").click()
    tab.answered(1)
    ran, = results(careful, tab)
    assert "changed" in ran and "original" not in ran


def test_a_double_click_answers_once(careful, tab_of):
    tab, question = asked(careful, tab_of, "only once")
    answers = []
    tab.page.on("request", lambda r: answers.append(r) if '"resume"' in (r.post_data or "")
                else None)
    question.get_by_role("button", name="Approve", exact=True).dblclick()
    tab.answered(1)
    expect(tab.page.get_by_role("alert")).to_have_count(0)
    assert len(answers) == 1


def test_a_refused_answer_shows_the_question_again(careful, tab_of):
    tab, question = asked(careful, tab_of, "refused first")
    tab.allow("status of 400", "HTTP 400")
    tab.page.route("**/runs/stream", lambda route: route.fulfill(
        status=400, content_type="application/json", body='{"detail": "no such question"}'),
        times=1)
    approve = question.get_by_role("button", name="Approve", exact=True)
    with tab.page.expect_response(lambda r: r.status == 400):
        approve.click()
    expect(approve).to_be_enabled()
    expect(tab.page.get_by_role("alert")).to_have_count(0)
    approve.click()
    tab.answered(1)
    assert "refused first" in results(careful, tab)[0]


def test_without_random_uuids_and_a_clipboard_one_can_still_write(api, tab_of):
    tab = tab_of(api)
    tab.page.add_init_script("""delete Crypto.prototype.randomUUID;
        Object.defineProperty(navigator, "clipboard", {value: undefined});""")
    tab.open()
    tab.say("say: on plain http")
    tab.answered(1).get_by_role("button", name="Copy", exact=True).last.click()
    expect(tab.page.get_by_text(
        "The browser did not allow to copy this.", exact=True)).to_be_visible()


def test_a_browser_without_storage_shows_the_page(api, tab_of):
    tab = tab_of(api)
    tab.page.add_init_script("""for (const name of ["localStorage", "sessionStorage"])
        Object.defineProperty(window, name, {get() { throw new DOMException("denied"); }});""")
    tab.open()
    tab.say("say: nothing is kept")
    tab.answered(1)


def attach(tab, name):
    """Attach a file, and wait until it is there."""
    tab.page.get_by_test_id("file-input").set_input_files(
        {"name": name, "mimeType": "text/csv", "buffer": b"a,b\n1,2\n"})
    chips = tab.page.get_by_role("form", name="New message").get_by_role(
        "list", name="Attached files")
    expect(chips).to_contain_text("8 bytes")
    return chips


def test_attachments_belong_to_the_visit_and_names_to_the_message(api, tab_of):
    tab = tab_of(api).open()
    expect(attach(tab, "data.csv")).to_contain_text("data.csv")
    tab.say("say: with a file")
    tab.answered(1)
    chips = attach(tab, "data.csv")
    expect(chips).to_contain_text("data.csv")
    expect(chips).not_to_contain_text("data-2.csv")
    tab.button("New chat").click()
    expect(chips).to_have_count(0)


def test_what_waits_while_the_conversation_is_made_goes_there(api, tab_of):
    tab = tab_of(api).open()
    held = []
    tab.page.route("**/threads", lambda route: held.append(route))
    tab.say("say: the first")
    expect(tab.button("Stop")).to_be_visible()
    tab.composer.fill("say: the second")
    tab.button("Send after this run").click()
    expect(tab.page.get_by_role("list", name="Messages that wait")).to_contain_text("the second")
    held[0].continue_()
    tab.answered(2)
    expect(tab.sayings).to_contain_text(["say: the first", "say: the second"])


def named(server, title):
    """The ids of the conversations of this title."""
    return [t["thread_id"] for t in server.post("/threads/search", {"limit": 100}).json
            if t["metadata"].get("title") == title]


@pytest.mark.parametrize(("held_path", "to"), [
    ("**/threads", "a new chat"), ("**/threads", "another conversation"),
    ("**/runs/stream", "a new chat"), ("**/runs/stream", "another conversation"),
])
def test_who_leaves_at_once_has_said_it_all_the_same(api, tab_of, held_path, to):
    text = f"say: left for {to} at {held_path.strip('*/')}"
    tab = tab_of(api).open()
    tab.say("say: stays open")
    tab.answered(1)
    other = tab.thread
    tab.button("New chat").click()
    held = []
    tab.page.route(held_path, lambda route: held.append(route), times=1)
    tab.say(text)
    until(lambda: tab.page.evaluate("1") and held, "the request is on its way")
    if to == "a new chat":
        tab.button("New chat").click()
    else:
        tab.page.go_back()
        if tab.thread != other:
            tab.page.go_back()
    expect(tab.sayings).to_have_text([] if to == "a new chat" else [re.compile("stays open")])
    expect(tab.button("Stop")).to_have_count(0)
    held[0].continue_()
    thread, = until(lambda: named(api, text), "its conversation is made")
    until(lambda: len(api.messages(thread)) == 2, "it is answered there")
    assert tab.thread == (None if to == "a new chat" else other)
    expect(tab.sayings).to_have_count(0 if to == "a new chat" else 1)
    expect(tab.page.get_by_role("link", name=text)).to_be_visible()


def test_what_could_not_be_sent_from_elsewhere_is_told(api, tab_of):
    tab = tab_of(api).open()
    tab.allow("status of 400")
    held = []
    tab.page.route("**/threads", lambda route: held.append(route))
    tab.say("say: never arrives")
    until(lambda: tab.page.evaluate("1") and held, "the request is on its way")
    tab.button("New chat").click()
    held[0].fulfill(status=400, content_type="application/json", body='{"detail": "no room"}')
    expect(tab.page.get_by_text("A message could not be sent: no room", exact=True)).to_be_visible()
    expect(tab.page.get_by_role("alert")).to_have_count(0)


def test_what_waits_stays_with_the_message_before_it(api, tab_of):
    tab = tab_of(api).open()
    held = []
    tab.page.route("**/threads", lambda route: held.append(route), times=1)
    tab.say("say: in front")
    expect(tab.button("Stop")).to_be_visible()
    tab.composer.fill("say: behind it")
    tab.button("Send after this run").click()
    waiting = tab.page.get_by_role("list", name="Messages that wait")
    expect(waiting).to_contain_text("behind it")
    tab.button("New chat").click()
    expect(waiting).to_have_count(0)
    held[0].continue_()
    tab.page.get_by_role("link", name="say: in front").click()
    tab.answered(2)
    expect(tab.sayings).to_contain_text(["say: in front", "say: behind it"])


def test_a_message_during_loading_does_not_rename(api, tab_of):
    tab = tab_of(api).open()
    tab.say("say: the title")
    tab.answered(1)
    held, is_open = [], []
    tab.page.route("**/history**", lambda route: route.continue_() if is_open
                   else held.append(route))
    tab.page.reload()
    tab.say("say: not the title")
    expect(tab.button("Stop")).to_be_visible()
    is_open.append(True)
    for route in held:
        route.continue_()
    tab.answered(2)
    assert api.get(f"/threads/{tab.thread}").json["metadata"]["title"] == "say: the title"


def test_a_prompt_does_not_take_the_keys_of_who_is_writing(api, tab_of):
    tab = tab_of(api).open()
    tab.say("run: import time\\nprint('begun', flush=True)\\ntime.sleep(2)\\ninput('A\\u202eB? ')")
    expect(tab.page.get_by_role("log").get_by_text("begun")).to_be_visible()
    tab.composer.press_sequentially("half a sen")
    field = tab.page.get_by_role("textbox", name="⟨U+202E⟩")
    expect(field).to_be_visible()
    expect(tab.composer).to_be_focused()
    field.fill("x")
    field.press("Enter")
    tab.answered(1)


def test_a_conversation_that_is_not_there_is_called_so(api, tab_of):
    tab = tab_of(api)
    tab.allow("status of 404", "HTTP 404", "not found")
    tab.open("/?thread=00000000-0000-4000-8000-000000000000")
    alert = tab.page.get_by_role("alert")
    expect(alert).to_contain_text("This conversation does not exist.")
    alert.get_by_role("button", name="New chat").click()
    expect(alert).to_have_count(0)
    assert tab.thread is None


def test_hidden_characters_of_a_title_are_seen(api, tab_of):
    thread = api.thread(metadata={"title": "safe\u202egpj"})
    tab = tab_of(api).open(f"/?thread={thread}")
    expect(tab.page.get_by_role("heading", name="safe⟨U+202E⟩gpj")).to_be_visible()
    expect(tab.page).to_have_title("safe⟨U+202E⟩gpj · sandbox-agent")


def test_output_of_direct_mode_is_in_sight_after_a_reload(direct, tab_of):
    tab = tab_of(direct).open()
    tab.say("print('seen')\n1/0")
    tab.answered(1)
    tab.page.reload()
    tab.answered(1)
    expect(tab.page.get_by_role("log")).to_contain_text("seen")


def test_what_waits_outlives_a_reload_but_is_not_in_a_duplicate_of_the_tab(api, model, tab_of):
    tab = tab_of(api).open()
    tab.say("hold: duplicate")
    expect(tab.answers).to_contain_text(["Held"])
    tab.composer.fill("say: after the reload")
    tab.button("Send after this run").click()
    waiting = tab.page.get_by_role("list", name="Messages that wait")
    expect(waiting).to_contain_text("after the reload")
    kept = "() => sessionStorage.getItem('sandbox-agent.queue')"
    assert tab.page.evaluate(kept) is None
    tab.page.reload()
    expect(waiting).to_contain_text("after the reload")
    assert tab.page.evaluate(kept) is None
    model.release("duplicate")
    tab.answered(2)
    expect(tab.sayings).to_contain_text(["hold: duplicate", "say: after the reload"])


def test_a_conversation_beyond_the_list_has_its_title(api, tab_of):
    thread = api.thread(metadata={"title": "very old"})
    tab = tab_of(api)
    tab.page.route("**/threads/search", lambda route: route.continue_()
                   if '"ids"' in route.request.post_data
                   else route.fulfill(content_type="application/json", body="[]"))
    tab.open(f"/?thread={thread}")
    expect(tab.page.get_by_role("heading", name="very old")).to_be_visible()


def test_keys_are_named_and_states_translated(api, tab_of):
    tab = tab_of(api, locale="zh-CN").open()
    tab.page.keyboard.press("Control+,")
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_role("tab", name="关于").click()
    expect(dialog.get_by_role("region", name="键盘快捷键")).to_contain_text("Ctrl/⌘ + Shift + O")


@pytest.mark.parametrize(("code", "title", "words", "said"), [
    ("import os\nos.kill(os.getpid(), 9)", "运行代码", "进程被信号 9 终止。",
     "服务器提示：the kernel was ended by signal 9"),
    ("x = 1", "运行代码", "没有输出。", None),
])
def test_how_a_cell_ended_is_told_in_the_language_of_the_page(direct, tab_of, code, title, words,
                                                              said):
    tab = tab_of(direct, locale="zh-CN").open()
    tab.type(code)
    tab.composer.press("Enter")
    block = tab.blocks(title)
    expect(block).to_contain_text(words)
    if said:
        expect(block.locator("> button")).to_contain_text(words)
        expect(block).to_contain_text(said)
        expect(block.get_by_text("Died", exact=False)).to_have_count(0)


def test_why_a_run_ended_is_told_in_the_language_of_the_page(server_of, tab_of):
    with fakemodel.FakeModel(key="another") as strict:
        tab = tab_of(server_of(strict), locale="zh-CN").open()
        tab.allow("AuthenticationError")
        tab.type("say: hello")
        tab.composer.press("Enter")
        alert = tab.page.get_by_role("alert")
        expect(alert).to_contain_text("模型服务不接受此密钥。")
        expect(alert).to_contain_text("服务器提示：AuthenticationError")


def test_nothing_is_shown_as_nothing(direct, tab_of):
    tab = tab_of(direct).open()
    for code, count in (("x = 1", 1), ("```sh\ntrue\n```", 1), ("1 + 1", 0), ("print(1)", 0)):
        tab.open().say(code)
        tab.answered(1)
        block = tab.blocks("Run").last
        expect(block.locator("> button")).to_contain_text("Done")
        expect(block.get_by_text("No output.", exact=True)).to_have_count(count)


def test_a_question_says_where_the_code_will_run(careful, tab_of):
    tab, question = asked(careful, tab_of, "in its place")
    expect(question).to_contain_text("Session ")
    session, = (s for s in careful.get("/sessions").json if s["thread_id"] == tab.thread)
    expect(question).to_contain_text(f"Session {session['session_id']}")
    expect(question).not_to_contain_text("execute_code")
    question.get_by_role("button", name="Approve", exact=True).click()
    tab.answered(1)


def test_escape_closes_the_dialog_and_not_the_note(direct, tab_of):
    tab = tab_of(direct).open()
    tab.say("x = 1")
    tab.answered(1)
    dialog = tab.settings("Sessions")
    dialog.get_by_role("button", name=re.compile("^Stop ")).first.click()
    tab.page.get_by_role("alertdialog").get_by_role("button", name="Stop", exact=True).click()
    note = tab.page.get_by_text("Stopped.", exact=True)
    expect(note).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(note).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(note).to_have_count(0)


def test_on_a_phone_the_line_of_an_error_can_be_read(direct, tab_of):
    tab = tab_of(direct, viewport={"width": 360, "height": 720}, is_mobile=True, has_touch=True)
    tab.open().say("raise KeyError('which one')")
    tab.answered(1)
    line = tab.blocks().locator("> button").get_by_text("KeyError: 'which one'")
    expect(line).to_be_visible()
    assert line.evaluate("(e) => e.scrollWidth <= e.clientWidth"), "it is cut off"


def test_what_is_stopped_before_there_is_a_conversation_makes_none(api, tab_of):
    tab = tab_of(api).open()
    held = []
    for number in ("one", "two"):
        text = f"say: stopped {number}"
        tab.page.route("**/threads", lambda route: held.append(route), times=1)
        tab.say(text)
        tab.button("Stop").click()
        expect(tab.button("Stop")).to_have_count(0)
        expect(tab.sayings).to_contain_text([text])
        with tab.page.expect_response(lambda r: r.request.method == "DELETE"):
            held[-1].continue_()
        assert not named(api, text)
        tab.button("New chat").click()
        expect(tab.sayings).to_have_count(0)
    tab.say("say: goes on")
    tab.answered(1)
