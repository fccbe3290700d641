# SPDX-License-Identifier: MIT
"""MCP resources over real sessions: what was exported is read, what was not is not found."""

import base64
import io
import tarfile

import mcpstdio
import pytest

NOT_FOUND = {"legacy": -32002, "modern": -32602}
FILES = """
import os
open('/workspace/a b%.txt', 'w').write('héllo')
open('/workspace/table.csv', 'w').write('a,b\\n')
open('/workspace/x.bin', 'wb').write(bytes(range(256)))
open('/workspace/plain', 'w').write('no suffix')
open('/workspace/nul.txt', 'wb').write(b'a\\0b')
open('/workspace/large.bin', 'wb').write(b'x' * ((16 << 20) + 1))
open('/workspace/secret.txt', 'w').write('not exported')
os.makedirs('/workspace/folder/deep')
open('/workspace/folder/deep/f.txt', 'w').write('deep')
os.makedirs('/workspace/folder2')
open('/workspace/folder2/f.txt', 'w').write('of another folder')
"""
EXPORTED = ("a b%.txt", "table.csv", "x.bin", "plain", "nul.txt", "large.bin", "folder")


@pytest.fixture(params=("legacy", "modern"))
def served(request, tmp_path):
    """A server of one era with a session that has exported files: (server, session id)."""
    with mcpstdio.Server(tmp_path, era=request.param) as server:
        if request.param == "legacy":
            server.initialize()
        session = server.create()
        assert server.execute(session, FILES)["success"]
        exported = server.call("export_files", {
            "session_id": session, "files": [{"source": name} for name in EXPORTED]})
        links = {block["name"]: block["uri"] for block in exported["content"]
                 if block["type"] == "resource_link"}
        assert set(links) == set(EXPORTED)
        yield server, session, links


def read(server, uri):
    """Return what a resource holds."""
    contents = server.request("resources/read", {"uri": uri})["contents"]
    assert len(contents) == 1 and contents[0]["uri"] == uri
    return contents[0]


def error_of(server, uri):
    """Return the error that a read gives."""
    with pytest.raises(mcpstdio.RpcError) as refused:
        server.request("resources/read", {"uri": uri})
    return refused.value


def test_exported_files_are_listed_and_read(served):
    """Text as text, bytes as base64, a folder as an archive; the list agrees with the links."""
    server, _, links = served
    listed = {r["name"]: r for r in server.request("resources/list")["resources"]}
    assert {name: r["uri"] for name, r in listed.items()} == links
    assert listed["x.bin"]["size"] == 256 and "size" not in listed["folder"]
    assert listed["table.csv"]["mimeType"] == "text/csv" and "mimeType" not in listed["plain"]
    assert read(server, links["a b%.txt"])["text"] == "héllo"
    assert read(server, links["plain"]) | {"uri": ""} == {
        "uri": "", "mimeType": "text/plain", "text": "no suffix"}
    assert base64.b64decode(read(server, links["x.bin"])["blob"]) == bytes(range(256))
    assert base64.b64decode(read(server, links["nul.txt"])["blob"]) == b"a\0b"
    folder = read(server, links["folder"])
    assert folder["mimeType"] == "application/gzip"
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(folder["blob"]))) as archive:
        assert archive.extractfile("deep/f.txt").read() == b"deep"
    assert read(server, links["folder"] + "/deep/f.txt")["text"] == "deep"


def test_a_file_is_read_anew_each_time(served):
    """Code may change a file at any moment; a modern client is told not to keep it."""
    server, _, links = served
    result = server.request("resources/read", {"uri": links["plain"]})
    assert result.get("ttlMs") == (0 if server.era == "modern" else None)


def test_what_is_too_large_is_refused_with_its_size(served):
    """16 MiB and a byte: the error names both numbers and what to do."""
    server, _, links = served
    message = str(error_of(server, links["large.bin"]))
    assert "16777217" in message and "16777216" in message and "execute_code" in message


def test_fil_17_nothing_else_is_found(served):
    """Double and overlong encodings, other names and sessions: one answer for all of them."""
    server, session, links = served
    start = f"sandbox://{session}/files/workspace/"
    wrong = [start + tail for tail in (
        "secret.txt", "missing", "x.bi", "x.bin2", "folder2/f.txt", "folder/../secret.txt",
        "folder/%2e%2e/secret.txt", "folder/%252e%252e/secret.txt", "folder/..%2fsecret.txt",
        "folder/%c0%ae%c0%ae/secret.txt", "folder/%00", "x.bin%00", "x.bin;", "x.bin?a=b",
        "x.bin#a", "/x.bin", "./x.bin", "%2575.bin", "")]
    wrong += [f"sandbox://{session}/files/etc/passwd", f"sandbox://{session}/displays/1.png",
              f"sandbox://{session}", links["x.bin"].replace(session, "0" * 32),
              links["x.bin"].replace("files/", "files%2f"), "file:///etc/passwd",
              "test://static-text"]
    for uri in wrong:
        error = error_of(server, uri)
        assert (error.code, error.data) == (NOT_FOUND[server.era], {"uri": uri}), uri
    server.call("stop_session", {"session_id": session})
    assert error_of(server, links["x.bin"]).code == NOT_FOUND[server.era]
    assert server.request("resources/list")["resources"] == []


def test_changes_are_told_to_who_listens(served):
    """A file that is exported again is said to have changed, to its subscribers only."""
    server, session, links = served
    if server.era == "legacy":
        server.request("resources/subscribe", {"uri": links["x.bin"]})
    else:
        server.start("subscriptions/listen", {"notifications": {
            "resourcesListChanged": True, "resourceSubscriptions": [links["x.bin"]]}})
        server.expect("notifications/subscriptions/acknowledged")
    for name in ("plain", "x.bin"):
        server.call("export_files", {"session_id": session, "files": [{"source": name}]})
    updated = server.expect("notifications/resources/updated")["params"]
    server.expect("notifications/resources/list_changed")
    assert updated["uri"] == links["x.bin"]
    assert len(server.notifications("notifications/resources/updated")) == 1


def test_a_display_is_a_resource(served):
    """A plot is kept whole, and read by its URI."""
    server, session, _ = served
    server.execute(session, "from PIL import Image; display(Image.new('RGB', (9, 9)))")
    uris = [r["uri"] for r in server.request("resources/list")["resources"]
            if "/displays/" in r["uri"]]
    assert len(uris) == 1
    assert base64.b64decode(read(server, uris[0])["blob"]).startswith(b"\x89PNG")
