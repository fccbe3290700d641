# SPDX-License-Identifier: MIT
"""Uploads, downloads and displays of threads: what goes in, what comes out, and for whom."""

import base64
import contextlib
import hashlib
import http.client
import io
import json
import os
import socket
import tarfile
import time
import urllib.parse
import zipfile
from pathlib import Path

import pytest
from apiserver import ApiServer
from fakemodel import FakeModel

BOUNDARY = "frontier"
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")


def wait_for(check, seconds=20):
    """Wait until check() is true and return its value."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := check():
            return value
        time.sleep(0.05)
    raise AssertionError("it did not come to that in time")


def form(files, field="files"):
    """Return the bytes of a form with (name, content) as files."""
    out = b""
    for name, content in files:
        out += (f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{field}"; '
                f'filename="{name}"\r\nContent-Type: application/octet-stream\r\n\r\n').encode()
        out += content + b"\r\n"
    return out + f"--{BOUNDARY}--\r\n".encode()


def upload(server, thread, *files, **options):
    """Upload (name, content) pairs; return the Response."""
    return server.request("POST", f"/threads/{thread}/files/upload", form(files), FORM, **options)


def fetch(server, path, headers=None):
    """GET; return status, headers and the body's bytes."""
    address = urllib.parse.urlsplit(server.url)
    with contextlib.closing(
            http.client.HTTPConnection(address.hostname, address.port, timeout=60)) as connection:
        connection.request("GET", path, headers=headers or {})
        response = connection.getresponse()
        names = {name.lower(): value for name, value in response.getheaders()}
        return response.status, names, response.read()


def download(server, thread, session, path, **query):
    """Download an export; return status, headers and the body's bytes."""
    query = urllib.parse.urlencode({"session_id": session, "path": path, **query},
                                   quote_via=lambda text, *_: urllib.parse.quote(text, safe=""))
    return fetch(server, f"/threads/{thread}/files/download?{query}")


def on_disk(state_dir):
    """Return the names of all files below the storage."""
    storage = Path(state_dir) / "storage"
    return sorted(str(path.relative_to(storage)) for path in storage.rglob("*") if path.is_file())


def staged(state_dir):
    """Return what uploads that are under way have."""
    staging = Path(state_dir) / "storage" / ".staging"
    return list(staging.iterdir()) if staging.exists() else []


def results(server, thread):
    """Return what the tools of a thread answered, parsed."""
    return [json.loads(m["content"]) for m in server.messages(thread) if m["type"] == "tool"]


def export(server, thread, *paths):
    """Let the agent export paths of its session; return its answers for each."""
    arguments = {"session_id": "$SESSION", "files": [{"source": path} for path in paths]}
    server.run(thread, f"call: export_files {json.dumps(arguments)}")
    return results(server, thread)[-1]["files"]


@pytest.fixture(scope="module")
def model():
    """A model that does what the last message says."""
    with FakeModel() as fake:
        yield fake


@pytest.fixture(scope="module")
def server(tmp_path_factory, model):
    """A server that takes 1 MiB at once."""
    with ApiServer(tmp_path_factory.mktemp("files"), model, UPLOAD_MAX_SIZE="1m") as started:
        yield started


# ---- uploads


def test_an_upload_is_imported_by_its_path(server):
    """The path in the answer is what import_files takes."""
    thread = server.thread()
    response = upload(server, thread, ("data/a.csv", b"x,y\n1,2\n"), ("../../b.txt", b""))
    assert response.status == 200
    assert [(f["name"], f["size"]) for f in response.json] == [("data/a.csv", 8), ("b.txt", 0)]
    path = response.json[0]["path"]
    assert path.endswith(f"/storage/{thread}/uploads/data/a.csv")
    assert Path(path).read_bytes() == b"x,y\n1,2\n"
    assert Path(path).stat().st_mode & 0o777 == 0o600

    arguments = {"session_id": "$SESSION", "files": [{"source": path, "destination": "in.csv"}]}
    server.run(thread, f"call: import_files {json.dumps(arguments)}")
    assert results(server, thread)[-1]["success"], results(server, thread)[-1]
    server.run(thread, "run: print(open('/workspace/in.csv').read())")
    assert results(server, thread)[-1]["stdout"] == "x,y\n1,2\n\n"
    listed = server.get(f"/threads/{thread}/files").json
    assert [f["name"] for f in listed["uploads"]] == ["b.txt", "data/a.csv"]


def test_another_threads_upload_is_not_imported(server):
    """A thread reaches its own uploads only."""
    theirs, ours = server.thread(), server.thread()
    path = upload(server, theirs, ("a", b"theirs")).json[0]["path"]
    arguments = {"session_id": "$SESSION", "files": [{"source": path}]}
    server.run(ours, f"call: import_files {json.dumps(arguments)}")
    assert not results(server, ours)[-1]["success"]


@pytest.mark.parametrize("name", ["..", "/", "a\x01b", "x" * 256, "d/" * 33 + "x"])
def test_names_that_are_none(server, name):
    """FIL-20: nothing is written for a name that cannot be one."""
    thread = server.thread()
    assert upload(server, thread, ("good", b"1"), (name, b"2")).status == 400
    assert server.get(f"/threads/{thread}/files").json["uploads"] == []
    assert staged(server.state_dir) == []


@pytest.mark.parametrize("body", [
    b"", b"--frontier--\r\n", b"no form at all", form([("a", b"1")])[:-8],
    form([("a", b"1")], field="other"),
    (b"--frontier\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a\"; "
     b"filename=\"b\"\r\n\r\n1\r\n--frontier--\r\n"),
    b"--frontier\r\nX: " + b"y" * (1 << 20) + b"\r\n\r\n1\r\n--frontier--\r\n",
], ids=["empty", "no part", "no form", "cut", "other field", "two names", "header"])
def test_forms_that_are_none(server, body):
    """FIL-20: a form that is malformed leaves nothing."""
    thread = server.thread()
    response = server.request("POST", f"/threads/{thread}/files/upload", body, FORM)
    assert response.status in (400, 413, 422), response.text
    assert server.get(f"/threads/{thread}/files").json["uploads"] == []
    assert staged(server.state_dir) == []


def test_a_boundary_in_the_data_is_data(server):
    """FIL-20: only a boundary at the start of a line with its two dashes ends a part."""
    content = f"--{BOUNDARY}x\r\n {BOUNDARY}\r\n--frontie\r\n".encode() + bytes(range(256))
    thread = server.thread()
    response = upload(server, thread, ("a", content))
    assert Path(response.json[0]["path"]).read_bytes() == content


def test_limits_of_an_upload(server):
    """Too many bytes or files are refused as they come, and leave nothing."""
    thread = server.thread()
    assert upload(server, thread, ("a", b"x" * (1 << 20))).status == 200
    assert upload(server, thread, ("b", b"x" * ((1 << 20) + 1))).status == 413
    assert upload(server, thread, *((f"f{i}", b"") for i in range(1001))).status == 413
    assert [f["name"] for f in server.get(f"/threads/{thread}/files").json["uploads"]] == ["a"]
    assert staged(server.state_dir) == []


def test_a_length_that_cannot_fit_is_refused_at_its_start(server):
    """A body of a terabyte is not waited for."""
    thread = server.thread()
    address = urllib.parse.urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=20) as sock:
        sock.sendall(f"POST /threads/{thread}/files/upload HTTP/1.1\r\nHost: {address.netloc}\r\n"
                     f"Content-Type: {FORM['Content-Type']}\r\nContent-Length: {1 << 40}\r\n\r\n"
                     .encode() + form([("a", b"1")])[:50])
        assert sock.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_an_upload_that_is_cut_leaves_nothing(server):
    """The client leaves in the middle of a file."""
    thread = server.thread()
    address = urllib.parse.urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=20) as sock:
        body = form([("a", b"x" * 500000)])
        sock.sendall(f"POST /threads/{thread}/files/upload HTTP/1.1\r\nHost: {address.netloc}\r\n"
                     f"Content-Type: {FORM['Content-Type']}\r\nContent-Length: {len(body)}\r\n\r\n"
                     .encode() + body[:300000])
        wait_for(lambda: staged(server.state_dir))
    wait_for(lambda: not staged(server.state_dir))
    assert server.get(f"/threads/{thread}/files").json["uploads"] == []


@pytest.mark.parametrize(
    "thread", ["nobody", "..", "%2e%2e", "..%2f..", "a%2f..%2fb", "%00", "a.b"])
def test_threads_that_are_none(server, thread):
    """Weakness 29 of the reference: a thread's id is no path, and the thread has to be there."""
    before = on_disk(server.state_dir)
    assert upload(server, thread, ("a", b"1")).status in (400, 404, 405, 422)
    assert on_disk(server.state_dir) == before
    assert staged(server.state_dir) == []


def test_a_folder_and_a_file_of_one_name(server):
    """What is there keeps its kind; the same file is replaced."""
    thread = server.thread()
    assert upload(server, thread, ("d/x", b"1")).status == 200
    assert upload(server, thread, ("new", b"1"), ("d", b"1")).status == 409
    assert upload(server, thread, ("d/x/y", b"1")).status == 409
    assert upload(server, thread, ("d/x", b"22")).status == 200
    listed = server.get(f"/threads/{thread}/files").json["uploads"]
    assert [(f["name"], f["size"]) for f in listed] == [("d/x", 2)]


# ---- downloads


def test_an_export_is_downloaded(server):
    """A file as it is, under its own name, by the address that the tool gives."""
    thread = server.thread()
    server.run(thread, "run: open('/workspace/ä %2e;.txt', 'w').write('one')")
    exported = export(server, thread, "/workspace/ä %2e;.txt")[0]
    session, path = exported["session_id"], exported["path"]
    status, headers, body = download(server, thread, session, path)
    assert (status, body) == (200, b"one")
    assert headers["content-type"] == "application/octet-stream"
    assert headers["content-length"] == "3"
    assert headers["content-disposition"] == (
        "attachment; filename=\"_ _2e;.txt\"; filename*=UTF-8''%C3%A4%20%252e%3B.txt")
    listed = server.get(f"/threads/{thread}/files").json["exports"]
    assert [(f["session_id"], f["path"], f["size"]) for f in listed] == [(session, path, 3)]
    where = urllib.parse.urlsplit(listed[0]["download_url"])
    assert listed[0]["download_url"] == exported["download_url"]
    assert exported["download_url"].startswith(f"{server.url}/threads/"), "the port of --listen :0"
    assert fetch(server, f"{where.path}?{where.query}")[::2] == (200, b"one")
    assert server.get(f"/threads/{thread}/files/download?session_id={session}"
                      f"&path={urllib.parse.quote(path)}", headers={"X": "y"}).text == "one"


def test_an_exported_folder_is_an_archive(server):
    """.tar.gz, called so; zip where it is asked for."""
    thread = server.thread()
    server.run(thread, "run: import os; os.makedirs('/workspace/d/e'); "
                       "open('/workspace/d/e/f', 'w').write('two')")
    session = export(server, thread, "d")[0]["session_id"]
    status, headers, body = download(server, thread, session, "/workspace/d")
    assert status == 200
    assert headers["content-disposition"] == 'attachment; filename="d.tar.gz"'
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        assert archive.extractfile("e/f").read() == b"two"
    status, headers, body = download(server, thread, session, "/workspace/d", format="zip")
    assert (status, headers["content-type"]) == (200, "application/zip")
    assert zipfile.ZipFile(io.BytesIO(body)).read("e/f") == b"two"
    assert download(server, thread, session, "/workspace/d", format="rar")[0] == 422


def test_what_is_not_downloaded(server):
    """FIL-17: only what was exported, of the thread's own sessions, and paths are decoded once."""
    thread, other = server.thread(), server.thread()
    server.run(thread, "run: import os; os.makedirs('/workspace/ab'); "
                       "open('/workspace/ab/x', 'w').write('1'); "
                       "open('/workspace/a', 'w').write('2')")
    session = export(server, thread, "/workspace/a")[0]["session_id"]

    def status(where, sid, path):
        return download(server, where, sid, path)[0]

    assert status(thread, session, "/workspace/a") == 200
    assert status(thread, session, "/workspace/ab/x") == 403
    assert status(thread, session, "/workspace/ab") == 403
    assert status(thread, session, "/etc/passwd") == 403
    assert status(thread, session, "/workspace/%61") == 403
    assert status(thread, session, "/workspace/x/%2e%2e/a") == 403
    assert status(thread, session, "") == 422
    assert status(thread, "", "/workspace/a") == 422
    assert status(thread, "0" * 32, "/workspace/a") == 404
    assert status(other, session, "/workspace/a") == 404
    assert status("nobody", session, "/workspace/a") == 404
    assert fetch(server, f"/threads/{thread}/files/download")[0] == 422
    raw = f"/threads/{thread}/files/download?session_id={session}&path="
    assert fetch(server, raw + "/workspace/a%00b")[0] == 400
    assert fetch(server, raw + "a/" * 3000)[0] in (400, 403, 414)


# ---- displays


def test_large_displays_are_fetched_by_their_hash(server):
    """A page that a cell drew cannot run where it is opened; a picture is one."""
    thread, other = server.thread(), server.thread()
    png = PNG + bytes(20000)
    server.run(thread, "run: from IPython.display import display\\n"
                       "import base64\\n"
                       f"png = bytes.fromhex('{PNG.hex()}') + bytes(20000)\\n"
                       "display({'image/png': base64.encodebytes(png).decode()}, raw=True)\\n"
                       "display({'text/html': '<script>1</script>' * 2000}, raw=True)")
    shown = results(server, thread)[-1]["display_outputs"]
    assert [d["type"] for d in shown] == ["image/png", "text/html"], shown

    picture, page = (f"/threads/{thread}/blobs/{d['blob']}" for d in shown)
    status, headers, body = fetch(server, picture)
    assert (status, headers["content-type"], body) == (200, "image/png", png)
    assert headers["etag"] == f'"{shown[0]["blob"]}"'
    assert "immutable" in headers["cache-control"] and "private" in headers["cache-control"]
    assert "content-disposition" not in headers
    assert fetch(server, picture, {"If-None-Match": headers["etag"]})[::2] == (304, b"")

    status, headers, body = fetch(server, page)
    assert (status, body) == (200, b"<script>1</script>" * 2000)
    assert hashlib.sha256(body).hexdigest() == shown[1]["blob"]
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["content-disposition"] == "attachment"
    assert headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert headers["x-content-type-options"] == "nosniff"

    assert fetch(server, page.replace(thread, other))[0] == 404
    assert fetch(server, f"/threads/{thread}/blobs/{'0' * 64}")[0] == 404
    assert fetch(server, f"/threads/{thread}/blobs/{'z' * 64}")[0] == 422
    assert fetch(server, f"/threads/{thread}/blobs/..%2f{'0' * 61}")[0] in (400, 422)


# ---- owners, and the end of threads


def test_files_are_their_owners(tmp_path, model):
    """Another owner's thread is as good as none."""
    keys = tmp_path / "keys"
    keys.write_text("ann:key-of-ann-1234567890\nbob:key-of-bob-1234567890\n")
    keys.chmod(0o600)
    with ApiServer(tmp_path, model, key="key-of-ann-1234567890", API_KEYS_FILE=keys) as server:
        bob = {"x-api-key": "key-of-bob-1234567890"}
        thread = server.thread()
        assert upload(server, thread, ("a", b"1")).status == 200
        server.run(thread, "run: open('/workspace/a', 'w').write('1')")
        session = export(server, thread, "/workspace/a")[0]["session_id"]
        for path in ("", "/download?session_id={session}&path=/workspace/a"):
            path = f"/threads/{thread}/files{path.format(session=session)}"
            assert server.get(path).status == 200
            assert server.get(path, headers=bob).status == 404
            assert fetch(server, path)[0] == 401
        response = server.request("POST", f"/threads/{thread}/files/upload", form([("b", b"2")]),
                                  FORM | bob)
        assert response.status == 404
        assert on_disk(tmp_path) == [f"{thread}/uploads/a"]
        assert server.get(f"/threads/{thread}/blobs/{'0' * 64}", headers=bob).status == 404
        server.delete(f"/threads/{thread}")


def test_a_deleted_thread_leaves_nothing(server):
    """Its sessions end, and its uploads and exports go."""
    thread = server.thread()
    upload(server, thread, ("a", b"1"))
    server.run(thread, "run: open('/workspace/a', 'w').write('1')")
    session = export(server, thread, "/workspace/a")[0]["session_id"]
    assert server.delete(f"/threads/{thread}").status == 204
    assert not [path for path in on_disk(server.state_dir) if path.startswith(thread)]
    assert session not in [s["session_id"] for s in server.get("/sessions").json]
    assert download(server, thread, session, "/workspace/a")[0] == 404
    assert not (Path(server.state_dir) / "storage" / thread).exists()


def test_eviction_keeps_the_conversation_and_uploads(tmp_path, model):
    """Past SESSION_MAX_ACTIVE_THREADS only sandboxes end."""
    with ApiServer(tmp_path, model, SESSION_MAX_ACTIVE_THREADS=1) as server:
        first, second = server.thread(), server.thread()
        upload(server, first, ("a", b"1"))
        server.run(first, "run: print(1)")
        before = server.messages(first)
        server.run(second, "run: print(2)")
        wait_for(lambda: {s["thread_id"] for s in server.get("/sessions").json} == {second})
        assert server.messages(first) == before
        assert [f["name"] for f in server.get(f"/threads/{first}/files").json["uploads"]] == ["a"]
        server.run(first, "say: still here")
        assert server.messages(first)[-1]["content"] == "still here"


def test_a_thread_whose_time_is_over_goes_with_its_files(tmp_path, model):
    """The sweep deletes it, and keeps one whose strategy says so."""
    with ApiServer(tmp_path, model) as server:
        short = server.thread(ttl=0.00001)
        kept = server.thread(ttl={"ttl": 0.00001, "strategy": "keep_latest"})
        upload(server, short, ("a", b"1"))
        upload(server, kept, ("b", b"1"))
        server.restart()
        wait_for(lambda: server.get(f"/threads/{short}").status == 404)
        assert server.get(f"/threads/{kept}").status == 200
        wait_for(lambda: on_disk(tmp_path) == [f"{kept}/uploads/b"])


def test_what_a_killed_server_had_staged_is_swept(tmp_path, model):
    """A process that died left its files aside; they go at the next start, once they are old."""
    with ApiServer(tmp_path, model) as server:
        thread = server.thread()
        upload(server, thread, ("a", b"1"))
        left = tmp_path / "storage" / ".staging" / ("0" * 32)
        left.mkdir()
        (left / "0").write_bytes(base64.b64decode("AAAA"))
        os.utime(left, (0, 0))
        server.restart()
        wait_for(lambda: not left.exists())
        assert on_disk(tmp_path) == [f"{thread}/uploads/a"]
