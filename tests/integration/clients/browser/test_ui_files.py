# SPDX-License-Identifier: MIT
"""Files in the page: sent by button, drop and paste, shown with their progress, and got back."""

import base64
import hashlib
import json
import os

import pytest
import webpage
from webpage import expect

# The events are made in the page, as those of a person's mouse come with files only by a desktop.
CARRY = """([name, type, data]) => {
    const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
    const carried = new DataTransfer();
    carried.items.add(new File([bytes], name, {type}));
    return carried;
}"""


@pytest.fixture
def tab(api, tab_of):
    """A tab with a new chat."""
    return tab_of(api).open()


def carried(tab, name, kind, data):
    """A file as a mouse or a clipboard carries it."""
    return tab.page.evaluate_handle(CARRY, [name, kind, base64.b64encode(data).decode()])


def attached(tab):
    """The files beside the message."""
    return tab.page.locator("form").get_by_role("list", name="Attached files").get_by_role(
        "listitem")


def test_files_come_by_button_drop_and_paste(api, tab):
    tab.page.get_by_test_id("file-input").set_input_files([
        {"name": "rows 表.csv", "mimeType": "text/csv", "buffer": b"a,b\n1,2\n"}])
    expect(attached(tab)).to_have_count(1)
    drop = carried(tab, "dropped.bin", "application/octet-stream", bytes(range(256)))
    for event in ("dragenter", "dragover"):
        tab.composer.dispatch_event(event, {"dataTransfer": drop})
    expect(tab.page.get_by_text("Drop files here to attach them")).to_be_visible()
    tab.composer.dispatch_event("drop", {"dataTransfer": drop})
    expect(attached(tab)).to_have_count(2)
    expect(tab.page.get_by_text("Drop files here to attach them")).to_have_count(0)
    paste = carried(tab, "image.png", "image/png", b"\x89PNG\r\n\x1a\n")
    tab.composer.evaluate("""(field, clipboardData) => field.dispatchEvent(
        new ClipboardEvent("paste", {clipboardData, bubbles: true, cancelable: true}))""", paste)
    expect(attached(tab)).to_have_count(3)
    expect(attached(tab)).to_contain_text(["8 bytes", "256 bytes", "8 bytes"])

    tab.say("say: thank you")
    tab.answered(1)
    expect(attached(tab)).to_have_count(0)
    sent = tab.sayings.first.get_by_role("list", name="Attached files").get_by_role("listitem")
    expect(sent).to_contain_text(["rows 表.csv", "dropped.bin", "image.png"])
    said = api.messages(tab.thread)[0]["content"]
    assert all(name in said for name in ("rows 表.csv", "dropped.bin", "image.png")), said


def test_a_file_is_taken_away_before_it_is_sent(api, tab):
    tab.page.get_by_test_id("file-input").set_input_files([
        {"name": "keep.txt", "mimeType": "text/plain", "buffer": b"keep"},
        {"name": "drop.txt", "mimeType": "text/plain", "buffer": b"drop"}])
    expect(attached(tab)).to_contain_text(["keep.txt", "drop.txt"])
    tab.button("Remove drop.txt").click()
    expect(attached(tab)).to_have_count(1)
    tab.say("say: one only")
    tab.answered(1)
    said = api.messages(tab.thread)[0]["content"]
    assert "keep.txt" in said and "drop.txt" not in said


def test_progress_of_a_large_file(api, tab):
    """The connection is slow on purpose, so that the way can be seen."""
    network = tab.context.new_cdp_session(tab.page)
    network.send("Network.enable")
    network.send("Network.emulateNetworkConditions", {
        "offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 1_000_000})
    tab.page.get_by_test_id("file-input").set_input_files([
        {"name": "large.bin", "mimeType": "application/octet-stream", "buffer": bytes(2_000_000)}])
    bar = attached(tab).get_by_role("progressbar", name="large.bin")
    expect(bar).to_be_visible()
    webpage.until(lambda: bar.count() == 0 or 0 < float(bar.get_attribute("value") or 0) < 1,
                  "there is some progress")
    expect(tab.button("Send")).to_be_disabled()
    network.send("Network.emulateNetworkConditions", {
        "offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
    expect(bar).to_have_count(0)
    expect(attached(tab)).to_contain_text(["2 MB"])


def test_an_exported_file_comes_back_byte_by_byte(api, tab, tmp_path):
    data = os.urandom(300_000)
    tab.page.get_by_test_id("file-input").set_input_files([
        {"name": "random.bin", "mimeType": "application/octet-stream", "buffer": data}])
    expect(attached(tab)).to_contain_text(["300 kB"])
    # FIL-26: a download is what was written, unchanged.
    tab.say("run: open('made.csv', 'w', newline='').write('=HYPERLINK(1),@SUM(1)' + chr(13))")
    tab.answered(1)
    path = json.loads(api.messages(tab.thread)[0]["content"].split("\n")[-2])["path"]
    tab.say("call: import_files " + json.dumps({
        "session_id": "$SESSION", "files": [{"source": path, "destination": "copy 份.bin"}]}))
    tab.answered(2)
    tab.say("call: export_files " + json.dumps({
        "session_id": "$SESSION", "files": [{"source": "copy 份.bin"}, {"source": "made.csv"}]}))
    tab.answered(3)
    block = tab.blocks("Export files").last
    for name, expected in (("copy 份.bin", data), ("made.csv", b"=HYPERLINK(1),@SUM(1)\r")):
        expect(block).to_contain_text(name)
        with tab.page.expect_download() as found:
            block.get_by_role("button", name=f"Download: {name}").click()
        found.value.save_as(tmp_path / "got")
        assert found.value.suggested_filename == name
        got = (tmp_path / "got").read_bytes()
        assert hashlib.sha256(got).digest() == hashlib.sha256(expected).digest(), got[:50]


def test_in_direct_mode_code_reads_what_was_attached(direct, tab_of):
    tab = tab_of(direct).open()
    tab.page.get_by_test_id("file-input").set_input_files([
        {"name": "towns.csv", "mimeType": "text/csv", "buffer": "Köln,1\n上海,2\n".encode()}])
    expect(attached(tab)).to_have_count(1)
    tab.say("print(open('towns.csv', encoding='utf-8').read().upper())")
    expect(tab.answered(1)).to_contain_text("KÖLN,1")
