# SPDX-License-Identifier: MIT
"""The settings: the model and its key, the network of sandboxes, live sessions, the server."""

import fakemodel
import webpage
from webpage import expect

KEY = "secret-of-the-model"


def test_a_model_is_connected_and_its_key_never_comes_back(server_of, tab_of):
    server = server_of(PRIVATE_MODEL_HOSTS="127.0.0.1")
    with fakemodel.FakeModel(key=KEY) as model:
        tab = tab_of(server).open()
        tab.button("Connect a model").click()
        dialog = tab.page.get_by_role("dialog", name="Settings")
        dialog.get_by_role("textbox", name="Model", exact=True).fill("fake")
        dialog.get_by_label("API key").fill(KEY)
        dialog.get_by_label("Base URL").fill("no address")
        dialog.get_by_role("button", name="Save").click()
        expect(dialog.get_by_text("This has to be an http or https address.")).to_be_visible()
        dialog.get_by_label("Base URL").fill(model.url())
        dialog.get_by_role("button", name="Save").click()
        expect(dialog.get_by_text("Saved.")).to_be_visible()
        tab.page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        tab.say("say: connected")
        expect(tab.answered(1)).to_contain_text("connected")
        assert KEY not in tab.page.content()
        tab.page.reload()
        dialog = tab.settings("Model")
        expect(dialog.get_by_label("Base URL")).to_have_value(model.url())
        expect(dialog.get_by_label("API key")).to_have_value("")
        assert not model.errors
        assert KEY not in server.get("/settings").text
        dialog.get_by_role("button", name="Forget my settings").click()
        question = tab.page.get_by_role("alertdialog")
        question.get_by_role("button", name="Forget my settings").click()
        expect(dialog.get_by_text("Not ready")).to_be_visible()
        assert server.get("/settings").json["ready"] is False


def test_sandboxes_without_a_network(server_of, tab_of):
    server = server_of(CHAT_MODEL_PROVIDER="direct")
    tab = tab_of(server).open()
    switch = tab.settings("Sandboxes").get_by_role("switch", name="Network in sandboxes")
    expect(switch).to_be_checked()
    switch.click()
    expect(switch).not_to_be_checked()
    webpage.until(lambda: server.get("/settings").json["networkEnabled"] is False, "it is kept")
    tab.page.keyboard.press("Escape")
    tab.say("import socket\nprint([name for _, name in socket.if_nameindex()])")
    expect(tab.answered(1).get_by_role("log")).to_have_text("['lo']")


def test_the_operators_word_on_the_network_counts(server_of, tab_of):
    tab = tab_of(server_of(CHAT_MODEL_PROVIDER="direct", CONTAINER_NETWORK_ENABLED="false")).open()
    dialog = tab.settings("Sandboxes")
    expect(dialog.get_by_role("switch", name="Network in sandboxes")).to_be_disabled()
    expect(dialog.get_by_text("Turned off for all by the server's operator")).to_be_visible()


def test_sessions_are_listed_interrupted_and_stopped(server_of, tab_of):
    server = server_of(CHAT_MODEL_PROVIDER="direct")
    tab = tab_of(server).open()
    expect(tab.settings("Sessions").get_by_text("No sandbox is alive.")).to_be_visible()
    tab.page.keyboard.press("Escape")
    tab.say("import time\nprint('begun', flush=True)\ntime.sleep(600)")
    expect(tab.page.get_by_role("log")).to_contain_text("begun")
    session = server.get("/sessions").json[0]["session_id"]
    dialog = tab.settings("Sessions")
    row = dialog.get_by_role("listitem").filter(has_text=session[:8])
    expect(row).to_contain_text("busy")
    row.get_by_role("button", name=f"Interrupt Python {session[:8]}").click()
    expect(tab.page.get_by_text("Interrupted.", exact=True).first).to_be_visible()
    expect(row).not_to_contain_text("busy")
    row.get_by_role("button", name=f"Stop Python {session[:8]}").click()
    question = tab.page.get_by_role("alertdialog")
    expect(question).to_contain_text("Its variables and its files are lost")
    question.get_by_role("button", name="Stop", exact=True).click()
    expect(row).to_have_count(0)
    assert server.get("/sessions").json == []
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
    tab.answered(1)
    expect(tab.blocks().last.locator("> button")).to_contain_text("Interrupted")


def test_what_the_server_says_of_itself(direct, tab_of):
    dialog = tab_of(direct).open().settings("About")
    expect(dialog).to_contain_text(direct.get("/health").json["version"])
    expect(dialog).to_contain_text("works")
    expect(dialog.get_by_role("link", name="API reference")).to_have_attribute("href", "/docs")
