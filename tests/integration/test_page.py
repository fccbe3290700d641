# SPDX-License-Identifier: MIT
"""The page that the server gives to browsers: how it is chosen, what comes with it, what it weighs.

What is in the program is served as it was built; what is read from a directory (`--ui-dir`) is
here a page of this test, beside files that must not be reached.
"""

import gzip
import os
import re
import shutil
from urllib.parse import urlsplit

import pytest
from apipeer import Peer, exchange
from apiserver import ApiServer

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
KEY = "page-key-0123456789"
JS_BUDGET = 500 * 1000  # bytes of compressed JavaScript before the first lazy part
MISSING = "This program was built without its page"
STATIC_IMPORT = re.compile(r"""(?:\bfrom|\bimport)\s*["']\./([\w.-]+\.js)["']""")
FETCHED = re.compile(r"""(?:src|href|action|poster|data|srcset)\s*=\s*["']?\s*(?:\w+:)?//"""
                     r"""|url\(\s*["']?(?:https?:)?//|@import""", re.IGNORECASE)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server that asks for a key, with the page of the program."""
    with ApiServer(tmp_path_factory.mktemp("page"), key=KEY, API_KEY=KEY,
                   CHAT_MODEL_PROVIDER="direct") as running:
        yield running


@pytest.fixture(scope="module")
def peer(server):
    """A browser that has no key yet."""
    return Peer(server.url)


@pytest.fixture(scope="module")
def index(peer):
    """The page; what depends on one is skipped where the build had no Node."""
    text = get_page(peer).text
    if MISSING in text:
        pytest.skip("this program was built without its page (make ui)")
    return text


@pytest.fixture
def dist(tmp_path):
    """A page of this test in a directory, and what lies beside it."""
    place = tmp_path / "place" / "dist"
    (place / "assets").mkdir(parents=True)
    (place / "index.html").write_text('<!doctype html><i nonce="__CSP_NONCE__">__CSP_NONCE__</i>')
    (place / "frame.html").write_text("<!doctype html>frame")
    (place / "assets/a.js").write_text("export const a = 1;\n" * 1000)
    (place / "assets/a b%.txt").write_text("odd name")
    (place.parent / "secret.txt").write_text("secret")
    (place / "assets/out.txt").symlink_to(place.parent / "secret.txt")
    (place / "linked").symlink_to(place.parent)
    os.mkfifo(place / "assets/fifo")
    (place / ".hidden").write_text("hidden")
    return place


def get_page(peer, accept=BROWSER, **headers):
    """GET / as a browser does."""
    return peer.get("/", headers={"Accept": accept} | headers)


def files_of(peer, index):
    """Return the paths of all files that the page names, and that those name: path -> text."""
    found, names = {}, set(re.findall(r'(?:src|href)="(/[^"]+)"', index)) | {"/frame.html"}
    while names:
        path = names.pop()
        reply = peer.get(path)
        assert reply.status == 200, path
        found[path] = reply
        if path.endswith((".js", ".css")):
            names |= {f"/assets/{name}" for name in re.findall(
                r"""["'(`/]((?:[\w-]+\.)+(?:js|css|woff2?|ttf))\b""", reply.text)
                if peer.get(f"/assets/{name}").status == 200} - set(found)
    return found


# ---- who gets it

@pytest.mark.parametrize("accept", [
    BROWSER, "text/html", "text/html;q=0.5", "application/json;q=0.5,text/html", "text/*",
    "TEXT/HTML", "text/html, application/json", "*/*;q=0.9, text/html;q=0.9",
    'text/html;a="application/json,";q=0.8, application/json;q=0.7'])
def test_html_is_for_who_asks_for_it(peer, accept):
    reply = get_page(peer, accept)
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert reply.text.lower().startswith("<!doctype html>")
    assert "Accept" in reply.headers["vary"]


@pytest.mark.parametrize("accept", [
    None, "", "*/*", "application/json", "application/json, text/plain, */*", "text/html;q=0",
    "application/json, text/html;q=0.9", "text/html;q=0, */*", "text/html;q=2", "application/*"])
def test_json_is_for_everybody_else(peer, accept):
    reply = peer.get("/", headers={} if accept is None else {"Accept": accept})
    assert reply.status == 200
    assert reply.json["message"] == "sandbox-agent"
    assert "Accept" in reply.headers["vary"]


def test_the_page_needs_no_key_and_the_api_does(peer, index):
    for path in ("/", *re.findall(r'(?:src|href)="(/[^"]+)"', index)):
        assert peer.get(path, headers={"Accept": BROWSER}).status == 200, path
    for path in ("/threads", "/settings", "/assistants", "/metrics"):
        assert peer.get(path, headers={"Accept": BROWSER}).status == 401, path


def test_routes_of_the_api_come_first(server):
    keyed = Peer(server.url, key=KEY)
    for path in ("/info", "/ok", "/health", "/openapi.json", "/threads", "/settings", "/sessions"):
        reply = keyed.get(path, headers={"Accept": BROWSER})
        assert reply.status == 200, path
        assert reply.headers["content-type"] == "application/json", path


# ---- what comes with it

def test_the_page_has_its_policy_and_a_new_nonce_each_time(peer, index):
    policies = []
    for _ in range(3):
        reply = get_page(peer)
        policy = dict(part.split(" ", 1) for part in
                      reply.headers["content-security-policy"].split("; "))
        nonce = re.search(r"'nonce-([0-9a-f]{32})'", policy["style-src"]).group(1)
        assert policy["default-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == policy["object-src"] == "'none'"
        assert "script-src" not in policy
        assert "__CSP_NONCE__" not in reply.text
        assert nonce in reply.text
        assert reply.headers["cross-origin-opener-policy"] == "same-origin"
        assert reply.headers["cache-control"] == "no-cache"
        assert "etag" not in reply.headers
        policies.append(nonce)
    assert len(set(policies)) == 3


def test_every_file_has_its_type_and_is_not_sniffed(peer, index):
    types = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml",
             "html": "text/html", "woff2": "font/woff2"}
    for path, reply in files_of(peer, index).items():
        assert reply.headers["content-type"].startswith(types[path.rsplit(".", 1)[1]]), path
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert reply.headers["cache-control"] == (
            "public, max-age=31536000, immutable" if path.startswith("/assets/") else "no-cache")
        assert re.fullmatch(r'"[0-9a-f]{32}"', reply.headers["etag"])


def test_the_frame_is_locked_up(peer, index):
    policy = peer.get("/frame.html").headers["content-security-policy"].split("; ")
    assert policy[:2] == ["sandbox allow-scripts", "default-src 'none'"]
    assert "frame-ancestors 'self'" in policy
    assert not any("http" in part or "*" in part for part in policy)


def test_compressed_and_plain_are_the_same(peer, index):
    for path, plain in files_of(peer, index).items():
        packed = peer.get(path, headers={"Accept-Encoding": "br, gzip;q=0.5"})
        assert "content-encoding" not in plain.headers
        assert len(plain.body) == int(plain.headers["content-length"])
        if packed.headers.get("content-encoding") != "gzip":
            assert len(gzip.compress(plain.body)) > 0.9 * len(plain.body), path
            continue
        assert gzip.decompress(packed.body) == plain.body, path
        assert packed.headers["etag"] != plain.headers["etag"]
        assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
        assert peer.get(path, headers={"Accept-Encoding": "gzip;q=0"}).body == plain.body


def test_what_a_browser_has_is_not_sent_again(peer, index):
    path = re.search(r'src="(/assets/[^"]+\.js)"', index).group(1)
    for coding in ("identity", "gzip"):
        headers = {"Accept-Encoding": coding}
        tag = peer.get(path, headers=headers).headers["etag"]
        for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
            reply = peer.get(path, headers=headers | {"If-None-Match": known})
            assert reply.status == 304
            assert reply.body == b""
            assert reply.headers["etag"] == tag
            assert "immutable" in reply.headers["cache-control"]
        for other in ('"x"', tag.strip('"'), "", '"'):
            assert peer.get(path, headers=headers | {"If-None-Match": other}).status == 200


def test_head_has_the_headers_of_get(peer, index):
    path = re.search(r'href="(/assets/[^"]+\.css)"', index).group(1)
    for target in (path, "/favicon.svg"):
        get, head = (peer.call(method, target) for method in ("GET", "HEAD"))
        assert head.status == 200
        assert head.body == b""
        assert {k: v for k, v in head.headers.items() if k != "date"} == {
            k: v for k, v in get.headers.items() if k != "date"}
    head = peer.call("HEAD", "/", headers={"Accept": BROWSER})
    assert head.headers["content-type"].startswith("text/html")
    assert head.body == b""


def test_other_methods_and_other_paths(peer, index):
    assert peer.call("POST", "/favicon.svg", b"").status == 405
    assert peer.call("DELETE", "/assets/x.js").status == 405
    for path in ("/assets/none.js", "/assets/", "/assets", "/index.html", "/none", "/assets/a/b",
                 "/favicon.svg/", "/favicon.svg/x", "//favicon.svg", "/FAVICON.SVG"):
        reply = peer.get(path, headers={"Accept": BROWSER})
        assert reply.status == 404, path
        assert reply.json["error"] == "NOT_FOUND"


def test_host_and_origin_are_checked_as_ever(server, index):
    port = urlsplit(server.url).port
    for path in ("/", "/favicon.svg", "/frame.html"):
        for host, status in ((f"127.0.0.1:{port}", 200), (f"localhost:{port}", 200),
                             ("evil.example", 403), (f"evil.example:{port}", 403),
                             ("127.0.0.1", 403), (f"127.0.0.1.evil.example:{port}", 403)):
            request = (f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/html\r\n"
                       "Connection: close\r\n\r\n")
            assert exchange(server.url, request.encode())[0] == [status], (path, host)
        reply = Peer(server.url).get(path, headers={"Origin": "https://evil.example"})
        assert reply.status == 403, path


@pytest.mark.parametrize("path", [
    "/../etc/passwd", "/assets/../../etc/passwd", "/assets/%2e%2e/%2e%2e/etc/passwd",
    "/assets/..%2f..%2fetc%2fpasswd", "/assets/%2fetc/passwd", "/assets/..%5c..%5cx",
    "/assets/%00", "/%2e/favicon.svg", "/assets/%252e%252e/x", "/assets//etc/passwd",
    "/assets/./x", "/.made-from", "/assets%2f..%2ffavicon.svg"])
def test_no_path_leads_out(server, path):
    request = f"GET {path} HTTP/1.1\r\nHost: {urlsplit(server.url).netloc}\r\n" \
              "Connection: close\r\n\r\n"
    assert exchange(server.url, request.encode())[0] in ([400], [404]), path


# ---- what is in it

def test_nothing_is_loaded_from_elsewhere(peer, index):
    for path, reply in {"/": get_page(peer), **files_of(peer, index)}.items():
        if not path.endswith(".js"):
            assert not FETCHED.search(reply.text), (path, FETCHED.search(reply.text))
        assert not re.search(r"""(?:import|importScripts|fetch|WebSocket|EventSource)\(\s*"""
                             r"""["'`](?:https?:|wss?:)?//""", reply.text), path
    assert "<style" not in index
    assert not re.search(r"<script(?![^>]*\bsrc=)", index)
    assert not re.search(r"""\s(?:style|on\w+)=""", index)


def test_the_page_weighs_little(peer, index):
    names = set(re.findall(r'(?:src|href)="/assets/([^"]+\.js)"', index))
    seen, total = set(), 0
    while names:
        name = names.pop()
        seen.add(name)
        packed = peer.get(f"/assets/{name}", headers={"Accept-Encoding": "gzip"})
        total += len(packed.body)
        names |= set(STATIC_IMPORT.findall(gzip.decompress(packed.body).decode())) - seen
    print(f"{total} bytes of compressed JavaScript in {len(seen)} files before lazy parts")
    assert 10_000 < total <= JS_BUDGET


# ---- from a directory

def test_files_of_a_directory(tmp_path, dist):
    with ApiServer(tmp_path, None, "--ui-dir", dist) as server:
        peer = Peer(server.url)
        page = get_page(peer)
        nonce = re.search(r"'nonce-(\w+)'", page.headers["content-security-policy"]).group(1)
        assert page.text == f'<!doctype html><i nonce="{nonce}">{nonce}</i>'
        script = peer.get("/assets/a.js", headers={"Accept-Encoding": "gzip"})
        assert script.body == (dist / "assets/a.js").read_bytes()
        assert script.headers["cache-control"] == "no-cache"
        tag = script.headers["etag"]
        assert peer.get("/assets/a.js", headers={"If-None-Match": tag}).status == 304
        (dist / "assets/a.js").write_text("export const a = 2;\n")
        assert peer.get("/assets/a.js", headers={"If-None-Match": tag}).text == \
            "export const a = 2;\n"
        for path in ("/assets/out.txt", "/assets/fifo", "/linked/secret.txt", "/.hidden",
                     "/assets", "/linked", "/assets/..%2findex.html"):
            assert peer.get(path).status in (400, 404), path
        shutil.rmtree(dist)
        assert MISSING in get_page(peer).text
        assert peer.get("/assets/a.js").status == 404


def test_without_a_page_it_says_how_to_build_one(tmp_path):
    with ApiServer(tmp_path, None, "--ui-dir", tmp_path / "nothing") as server:
        reply = get_page(Peer(server.url))
        assert reply.status == 200
        assert MISSING in reply.text
        assert "make ui" in reply.text
        assert Peer(server.url).get("/").json["status"] == "running"
