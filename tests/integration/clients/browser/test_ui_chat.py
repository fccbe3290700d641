# SPDX-License-Identifier: MIT
"""Conversations in the page: the list of them, what is said anew, stopped, asked, reloaded."""

import re

import apiserver
import foreign
import pytest
import webpage
from webpage import expect


@pytest.fixture(scope="module")
def api(api, model):
    """The server of this module, with its model at hand."""
    api.model = model
    return api


@pytest.fixture
def tab(api, tab_of):
    """A tab with a new chat."""
    return tab_of(api).open()


def said(api, tab):
    """What the server has of the conversation: the texts of the person and of the model."""
    return [m["content"] for m in api.messages(tab.thread)
            if m["type"] in ("human", "ai") and m["content"]]


def assert_same(api, tab):
    """Assert that the page shows what the server has, in order, nothing of it missing or twice."""
    turns = []
    for message in api.messages(tab.thread):
        if message["type"] == "human":
            turns.append((message["content"], []))
        elif message["type"] == "ai" and message["content"]:
            turns[-1][1].append(message["content"])
    expect(tab.sayings).to_have_count(len(turns))
    expect(tab.answers).to_have_count(len(turns))
    for i, (human, texts) in enumerate(turns):
        shown = tab.sayings.nth(i).text_content()
        assert shown.count(human) == 1, (human, shown)
        shown = tab.answers.nth(i).text_content()
        assert [shown.count(text) for text in texts] == [1] * len(texts), (texts, shown)


# ---- the list of conversations


def thread_item(tab, title):
    """A conversation of the list."""
    return tab.page.get_by_role("navigation", name="Conversations").get_by_role(
        "link", name=title, exact=True)


def from_menu(tab, title, word):
    """Choose from the menu of a conversation."""
    thread_item(tab, title).hover()
    tab.button(f"More for “{title}”").click()
    tab.page.get_by_role("menuitem", name=word).click()


def test_conversations_are_created_renamed_found_resumed_and_deleted(api, tab):
    tab.say("say: apples are red")
    tab.answered(1)
    first = tab.thread
    tab.button("New chat").click()
    expect(tab.answers).to_have_count(0)
    assert tab.thread is None
    tab.say("say: skies are blue")
    tab.answered(1)
    second = tab.thread
    assert first != second and second

    from_menu(tab, "say: apples are red", "Rename")
    title = tab.page.get_by_role("textbox", name="Title of the conversation")
    title.fill("Fruit & Gemüse 水果")
    title.press("Enter")
    expect(thread_item(tab, "Fruit & Gemüse 水果")).to_be_visible()
    webpage.until(lambda: api.get(f"/threads/{first}").json["metadata"]["title"]
                  == "Fruit & Gemüse 水果", "the title is kept")

    search = tab.page.get_by_role("searchbox", name="Search conversations")
    search.fill("Fruit")
    expect(thread_item(tab, "say: skies are blue")).to_have_count(0)
    expect(thread_item(tab, "Fruit & Gemüse 水果")).to_be_visible()
    search.fill("no such title at all")
    expect(tab.page.get_by_text("No conversation has such a title.")).to_be_visible()
    search.press("Escape")

    thread_item(tab, "Fruit & Gemüse 水果").click()
    expect(tab.answers).to_have_text([re.compile("apples are red")])
    assert tab.thread == first
    tab.say("say: resumed")
    tab.answered(2)
    assert_same(api, tab)
    tab.page.go_back()
    expect(tab.answers).to_have_text([re.compile("skies are blue")])
    tab.page.go_forward()
    expect(tab.answers).to_have_count(2)

    from_menu(tab, "Fruit & Gemüse 水果", "Delete")
    dialog = tab.page.get_by_role("alertdialog")
    dialog.get_by_role("button", name="Cancel").click()
    expect(thread_item(tab, "Fruit & Gemüse 水果")).to_be_visible()
    from_menu(tab, "Fruit & Gemüse 水果", "Delete")
    dialog.get_by_role("button", name="Delete").click()
    expect(thread_item(tab, "Fruit & Gemüse 水果")).to_have_count(0)
    expect(tab.answers).to_have_count(0)
    assert tab.thread is None
    assert api.get(f"/threads/{first}").status == 404
    assert api.get(f"/threads/{second}").status == 200


# ---- what is said anew


def test_edit_makes_a_branch_and_both_can_be_seen(api, tab):
    tab.say("say: old words")
    tab.answered(1)
    tab.say("say: later words")
    tab.answered(2)
    tab.sayings.first.hover()
    tab.sayings.first.get_by_role("button", name="Edit").click()
    field = tab.page.get_by_role("textbox", name="Your message")
    expect(field).to_have_value("say: old words")
    field.fill("say: new words")
    field.press("Enter")
    expect(tab.answers).to_have_count(1)
    expect(tab.answered(1)).to_contain_text("new words")
    assert_same(api, tab)
    versions = tab.page.get_by_role("group", name="Versions")
    expect(versions).to_have_text(["2 of 2"])
    tab.button("Version before").click()
    expect(tab.answers).to_have_count(2)
    expect(tab.sayings).to_contain_text(["say: old words", "say: later words"])
    expect(versions.first).to_have_text("1 of 2")
    tab.button("Next version").first.click()
    expect(tab.sayings).to_contain_text(["say: new words"])
    tab.say("say: on the new branch")
    tab.answered(2)
    assert said(api, tab) == ["say: new words", "new words", "say: on the new branch",
                              "on the new branch"]
    assert_same(api, tab)


def test_answer_again(api, tab):
    tab.say("hold: again")
    api.model.release("again")
    tab.answered(1)
    tab.button("Answer again").click()
    expect(tab.page.get_by_role("group", name="Versions")).to_have_text(["2 of 2"])
    tab.answered(1)
    assert_same(api, tab)


def test_an_error_is_told_and_tried_again(api, tab):
    tab.allow("AuthenticationError: OpenAI answered 401")
    tab.say("status: 401")
    alert = tab.page.get_by_role("alert")
    expect(alert).to_contain_text("The run has ended with an error")
    expect(alert).to_contain_text("401")
    asked = len(api.model.requests)
    alert.get_by_role("button", name="Try again").click()
    webpage.until(lambda: len(api.model.requests) > asked, "the model is asked again")
    expect(alert).to_be_visible()
    expect(tab.sayings).to_have_count(1)
    alert.get_by_role("button", name="Open settings").click()
    expect(tab.page.get_by_role("dialog", name="Settings")).to_be_visible()


# ---- runs


def test_stop_ends_the_run_and_keeps_the_chat(api, tab):
    tab.say("hold: never")
    expect(tab.answers).to_contain_text(["Held"])
    tab.button("Stop").click()
    expect(tab.button("Stop")).to_have_count(0)
    webpage.until(lambda: api.get(f"/threads/{tab.thread}").json["status"] != "busy", "it ends")
    runs = api.get(f"/threads/{tab.thread}/runs").json
    assert [run["status"] for run in runs] == ["interrupted"]
    tab.say("say: still here")
    expect(tab.answers.last).to_contain_text("still here")
    expect(tab.button("Stop")).to_have_count(0)
    assert said(api, tab)[-2:] == ["say: still here", "still here"]


def test_stop_ends_a_cell(api, tab):
    tab.say("run: import time\\nprint('begun', flush=True)\\ntime.sleep(600)")
    expect(tab.page.get_by_role("log").get_by_text("begun")).to_be_visible()
    tab.button("Stop").click()
    expect(tab.button("Stop")).to_have_count(0)
    webpage.until(lambda: not any(s["busy"] for s in api.get("/sessions").json), "the cell ends")


def test_a_message_during_a_run_waits_for_its_end(api, tab):
    tab.say("hold: queue")
    expect(tab.answers).to_contain_text(["Held"])
    tab.composer.fill("say: after that")
    tab.button("Send after this run").click()
    waiting = tab.page.get_by_role("list", name="Messages that wait")
    expect(waiting).to_contain_text("say: after that")
    api.model.release("queue")
    expect(waiting).to_have_count(0)
    tab.answered(2)
    assert said(api, tab) == ["hold: queue", "Held and released.", "say: after that", "after that"]
    assert_same(api, tab)


def test_thoughts_are_shown_apart(tab):
    tab.say("think: first I ponder\nsay: then I speak")
    answer = tab.answered(1)
    expect(answer).to_contain_text("then I speak")
    expect(answer.get_by_text("first I ponder")).to_have_count(0)
    tab.button("Thoughts").click()
    expect(answer.get_by_text("first I ponder")).to_be_visible()


# ---- questions


def test_input_is_asked_for_and_given(tab):
    tab.say("run: name = input('Your name? ')\\nprint('Hello,', name)")
    field = tab.page.locator("form").get_by_label("Your name?")
    expect(field).to_be_focused()
    field.fill("Ada 李")
    field.press("Enter")
    expect(tab.answered(1)).to_contain_text("Hello, Ada 李")


def test_a_password_is_not_shown(tab):
    tab.say("run: import getpass\\nn = len(getpass.getpass('Secret: '))\\nprint('length', n)")
    field = tab.page.locator("form").get_by_label("Secret:")
    expect(field).to_have_attribute("type", "password")
    field.fill("hush hush")
    field.press("Enter")
    expect(tab.answered(1)).to_contain_text("length 9")
    expect(tab.page.get_by_text("hush hush")).to_have_count(0)


@pytest.fixture(scope="module")
def careful(tmp_path_factory, model):
    """A server that asks before code is run."""
    with apiserver.ApiServer(tmp_path_factory.mktemp("careful"), model,
                             APPROVE_TOOLS="execute_code") as server:
        yield server


def approval(tab):
    """The question."""
    return tab.page.get_by_role("region", name="The agent wants to call a tool")


def results(server, tab):
    """The results of code."""
    return [m["content"] for m in server.messages(tab.thread)
            if m["type"] == "tool" and m["name"] == "execute_code"]


def test_a_call_is_approved(careful, tab_of):
    tab = tab_of(careful).open()
    tab.say("run: print(6 * 7)")
    expect(approval(tab)).to_contain_text("print(6 * 7)")
    assert results(careful, tab) == []
    approval(tab).get_by_role("button", name="Approve").click()
    tab.answered(1)
    assert '"stdout":"42\\n"' in results(careful, tab)[0]
    expect(approval(tab)).to_have_count(0)


def test_a_call_is_edited(careful, tab_of):
    tab = tab_of(careful).open()
    tab.say("run: print('as the model wants')")
    approval(tab).get_by_role("button", name="Edit").click()
    approval(tab).get_by_role("textbox", name="Code to run").fill("print('as I want')")
    approval(tab).get_by_role("button", name="Go on").click()
    tab.answered(1)
    assert "as I want" in results(careful, tab)[0]


def test_a_call_is_rejected_also_after_a_reload(careful, tab_of):
    tab = tab_of(careful).open()
    tab.say("run: print('never')")
    expect(approval(tab)).to_be_visible()
    tab.page.reload()
    approval(tab).get_by_role("button", name="Reject").click()
    approval(tab).get_by_role("textbox").fill("not today")
    approval(tab).get_by_role("button", name="Go on").click()
    expect(tab.answered(1)).to_contain_text("not today")
    assert "not today" in results(careful, tab)[0] and "stdout" not in results(careful, tab)[0]


# ---- reloads, tabs, servers that die


def test_reload_while_the_model_speaks(api, tab):
    tab.say("hold: reload")
    expect(tab.answers).to_contain_text(["Held"])
    tab.page.reload()
    expect(tab.button("Stop")).to_be_visible()
    expect(tab.sayings).to_have_count(1)
    api.model.release("reload")
    expect(tab.answered(1)).to_contain_text("Held and released.")
    assert_same(api, tab)
    assert len(api.get(f"/threads/{tab.thread}/runs").json) == 1


LINES = 150


def test_reload_while_a_cell_prints(api, tab):
    tab.say(f"run: import time\\nfor i in range({LINES}):\\n    print(f'line {{i}}', flush=True)"
            "\\n    time.sleep(0.03)")
    expect(tab.page.get_by_role("log")).to_contain_text("line 20")
    tab.page.reload()
    expect(tab.button("Stop")).to_be_visible()
    log = tab.page.get_by_role("log")
    expect(log).to_contain_text(re.compile(r"line 0.*line 40", re.DOTALL))
    tab.answered(1)
    tab.opened(tab.blocks().last)
    lines = [line for line in log.inner_text().split("\n") if line]
    assert lines == [f"line {i}" for i in range(LINES)]
    assert len(api.get(f"/threads/{tab.thread}/runs").json) == 1


def test_two_tabs_on_one_conversation(api, tab, tab_of):
    tab.say("say: from the first")
    tab.answered(1)
    other = tab_of(api, context=tab.context).open(tab.page.url.removeprefix(api.url))
    other.answered(1)
    tab.say("hold: tabs")
    expect(tab.answers.last).to_contain_text("Held")
    expect(other.sayings).to_have_count(2)
    expect(other.answers.last).to_contain_text("Held")
    api.model.release("tabs")
    tab.answered(2)
    other.answered(2)
    other.say("say: from the second")
    other.answered(3)
    expect(tab.answers).to_have_count(3)
    tab.answered(3)
    assert_same(api, tab)
    assert_same(api, other)


def test_a_dead_server_is_told_and_found_again(server_of, model, tab_of):
    mortal = server_of(model, "--listen", f"127.0.0.1:{foreign.free_port()}")
    tab = tab_of(mortal).open()
    tab.allow("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET",
              "ERR_EMPTY_RESPONSE", "ConnectionError: Unable to connect")
    tab.say("say: before")
    tab.answered(1)
    tab.say("hold: death")
    expect(tab.answers.last).to_contain_text("Held")
    mortal.kill()
    banner = tab.page.get_by_text("The server does not answer. It is tried again by itself.")
    expect(banner).to_be_visible()
    model.release("death")
    mortal.start()
    expect(banner).to_have_count(0)
    expect(tab.answered(2)).to_contain_text("Held and released.")
    assert_same(mortal, tab)
    tab.say("say: after")
    tab.answered(3)
    assert_same(mortal, tab)


# ---- keys


def test_a_key_is_asked_for_and_kept_for_the_tab_only(server_of, model, tab_of):
    key = "sesame-0123456789"
    server = server_of(model, key=key, API_KEY=key)
    tab = tab_of(server)
    tab.allow("status of 401")
    tab.page.goto(server.url)
    dialog = tab.page.get_by_role("dialog", name="This server asks for a key")
    field = dialog.get_by_label("Key", exact=True)
    field.fill("a wrong one")
    dialog.get_by_role("button", name="Use this key").click()
    expect(dialog).to_contain_text("The server does not accept this key.")
    field.fill(key)
    field.press("Enter")
    expect(dialog).to_have_count(0)
    tab.say("say: let in")
    tab.answered(1)
    tab.page.reload()
    tab.answered(1)
    expect(dialog).to_have_count(0)
    assert_same(server, tab)
    assert not [r.url for r in tab.requests if key in r.url]
    kept = tab.page.evaluate("() => JSON.stringify([{...localStorage}, document.cookie])")
    assert key not in kept and key not in tab.page.url
    assert key in tab.page.evaluate("() => JSON.stringify({...sessionStorage})")
    other = tab_of(server, context=tab.context)
    other.allow("status of 401")
    other.page.goto(server.url)
    expect(other.page.get_by_role("dialog", name="This server asks for a key")).to_be_visible()
    assert key not in server.log
