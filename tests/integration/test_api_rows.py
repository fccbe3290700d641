# SPDX-License-Identifier: MIT
"""Hostile clients of the API server, over its own port: the rows API-* of the threat list.

Peer (tests/lib/apipeer.py) looks at each answer of this file for what shows the inside (API-17).
"""

import concurrent.futures
import gzip
import json
import random
import re
import signal
import sqlite3
import stat
import subprocess
import threading
import time
import uuid
from pathlib import Path

import apipeer
import mcpstdio
import pytest
from apipeer import Peer, connect, drain, ended, error_of, exchange, statuses
from apiserver import ApiServer, environment
from fakemodel import FakeModel

SEED = 20261130
ALICE, BOB = "alice-secret-key-0123456789", "bob-secret-key-0123456789ab"
MODEL_KEY = "sk-canary-server-model-key"
CANARY = "CANARY-of-alice"
NOWHERE = str(uuid.UUID(int=7))


@pytest.fixture(scope="module")
def model():
    """A model that does what the last message says."""
    with FakeModel() as fake:
        yield fake
        assert not fake.errors


@pytest.fixture(scope="module")
def server(model, tmp_path_factory):
    """A server without keys, and without a limit of requests."""
    with ApiServer(tmp_path_factory.mktemp("open"), model, CHAT_MODEL_API_KEY=MODEL_KEY,
                   REQUESTS_PER_SECOND=0, SANDBOX_LOG="debug", CRONS="true",
                   CORS_ORIGINS="https://app.example, https://ui.example:8443") as running:
        yield running


@pytest.fixture(scope="module")
def peer(server):
    """Who uses that server."""
    return Peer(server.url, secrets=[MODEL_KEY])


@pytest.fixture(scope="module")
def keyed(model, tmp_path_factory):
    """A server of two owners."""
    directory = tmp_path_factory.mktemp("keyed")
    keys = directory / "keys"
    keys.write_text(f"alice:{ALICE}\nbob:{BOB}\n")
    keys.chmod(0o600)
    with ApiServer(directory, model, CHAT_MODEL_API_KEY=MODEL_KEY, API_KEYS_FILE=keys, CRONS="true",
                   REQUESTS_PER_SECOND=2000, SANDBOX_LOG="debug") as running:
        yield running


def request(server, method, path, body=b"", host=None, **headers):
    """Return the bytes of a request; a header that is None is left out."""
    lines = {"Host": host or f"127.0.0.1:{Peer(server.url).port}", "Content-Length": len(body)}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    text = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
    return f"{method} {path} HTTP/1.1\r\n{text}\r\n".encode("latin-1") + body


# ---- API-01, API-02: JSON ----

WELL = [b"{}", b' \t\r\n{} \n', b'{"metadata":{}}', b'{"metadata":null}', b'{"metadata":{"a":-0}}',
        b'{"metadata":{"a":"\\u00e9\\ud83d\\ude00"}}', b'{"metadata":{"a":1.5e300}}', b'"{}"',
        '{"metadata":{"é":"中"}}'.encode(), b'{"metadata":{"a":[[[[[[[[[[[[1]]]]]]]]]]]]}}', b""]
ILL = [b"{", b"}", b"[", b"null", b"1", b"[]", b'"x"', b"{,}", b'{"a"}', b'{"a":}', b'{"a":1,}',
       b'{"a":01}', b'{"a":+1}', b'{"a":.5}', b'{"a":1.}', b'{"a":1e}', b'{"a":0x1}', b'{"a":NaN}',
       b'{"a":Infinity}', b'{"a":-Infinity}', b'{"a":nul}', b'{"a":True}', b"{'a':1}", b"{a:1}",
       b'{"a":"\n"}', b'{"a":"\t"}', b'{"a":"\\x41"}', b'{"a":"\\u12"}', b'{"a":"\\ud800"}',
       b'{"a":"\\udc00\\ud800"}', b'{"a":"\xff"}', b'{"a":"\xc0\xaf"}', b'{"a":"\xed\xa0\x80"}',
       b'{"a":"\xf4\x90\x80\x80"}', b"{}{}", b"{} x", b"{}\x00", b"\xef\xbb\xbf{}", b"/*x*/{}",
       b'{"a":1}//x', b'{"a":1 "b":2}', b'{"a":1,"a":2}', b'{"metadata":{"a":1,"\\u0061":2}}',
       b'{"a":1e999}', b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
       b'{"a":' * 5000 + b"1" + b"}" * 5000, b"[" * 100_000, b'{"a":"' + b"x" * 1000,
       b"\x1f\x8b\x08", b"\xff\xfe{\x00}\x00", bytes(100)]
JSON_ROUTES = ["/threads", "/threads/search", "/assistants/search", "/store/items/search",
               "/runs/wait", "/threads/" + NOWHERE + "/history"]


@pytest.mark.parametrize("path", JSON_ROUTES)
def test_api_02_bodies_that_are_no_json(peer, path):
    """API-01, API-02: each is refused as the client's fault, and none ends the server."""
    for body in ILL:
        reply = peer.call("POST", path, body, headers={"Content-Type": "application/json"})
        assert reply.status in (400, 422), (path, body[:80], reply.status, reply.text[:200])


def test_api_02_bodies_that_are_json(peer):
    """API-01, API-02: what is JSON is taken, numbers and texts come back as they were sent."""
    for body in WELL:
        reply = peer.call("POST", "/threads", body, headers={"Content-Type": "application/json"})
        assert reply.status == 200, (body, reply.text)
    exact = {"text": "é\u0000\u001b\u2028中😀", "int": 2**63 - 1, "big": 2**64 - 1, "low": -2**63,
             "float": 1.25e-7, "deep": [[[{"a": []}]]], "": {"": None}}
    thread = peer.thread(metadata=exact)
    kept = peer.get(f"/threads/{thread}").json["metadata"]
    assert {name: kept[name] for name in exact} == exact
    huge = b'{"metadata":{"a":"' + b"x" * 40_000_000 + b'"}}'
    reply = peer.call("POST", "/threads", huge, headers={"Content-Type": "application/json"})
    assert reply.status == 413


# ---- API-04, API-05: the wire ----

CHUNKED = "Transfer-Encoding: chunked\r\n"
HIDDEN = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
# (name, headers after Host, body); what could be read as two requests must never be answered twice.
SMUGGLED = [
    ("CL and TE", f"Content-Length: 4\r\n{CHUNKED}", f"0\r\n\r\n{HIDDEN}"),
    ("TE and CL", f"{CHUNKED}Content-Length: 60\r\n", f"0\r\n\r\n{HIDDEN}"),
    ("two CLs", "Content-Length: 0\r\nContent-Length: 61\r\n", HIDDEN),
    ("two equal CLs", "Content-Length: 2\r\nContent-Length: 2\r\n", "{}" + HIDDEN),
    ("CL +5", "Content-Length: +2\r\n", "{}" + HIDDEN),
    ("CL hex", "Content-Length: 0x2\r\n", "{}" + HIDDEN),
    ("CL list", "Content-Length: 2,2\r\n", "{}" + HIDDEN),
    ("CL negative", "Content-Length: -1\r\n", HIDDEN),
    ("CL huge", "Content-Length: 18446744073709551617\r\n", "{}" + HIDDEN),
    ("CL blank inside", "Content-Length: 1 0\r\n", "{}" + HIDDEN),
    ("CL empty", "Content-Length:\r\n", HIDDEN),
    ("TE list", "Transfer-Encoding: chunked, x\r\n", f"0\r\n\r\n{HIDDEN}"),
    ("TE xchunked", "Transfer-Encoding: xchunked\r\n", f"0\r\n\r\n{HIDDEN}"),
    ("TE tab", "Transfer-Encoding: \x0bchunked\r\n", f"0\r\n\r\n{HIDDEN}"),
    ("TE identity", "Transfer-Encoding: identity\r\n", HIDDEN),
    ("TE twice", CHUNKED + CHUNKED, f"0\r\n\r\n{HIDDEN}"),
    ("TE folded", "Transfer-Encoding:\r\n chunked\r\n", f"0\r\n\r\n{HIDDEN}"),
    ("TE blank before colon", "Transfer-Encoding : chunked\r\n", f"0\r\n\r\n{HIDDEN}"),
    ("CL blank before colon", "Content-Length : 61\r\n", HIDDEN),
    ("bare LF before CL", "X: y\nContent-Length: 61\r\n", HIDDEN),
    ("bare CR before CL", "X: y\rContent-Length: 61\r\n", HIDDEN),
    ("NUL in a name", "Content-Le\0ngth: 61\r\n", HIDDEN),
    ("NUL in a value", "Content-Length: 6\x001\r\n", HIDDEN),
    ("no colon", "Content-Length 61\r\n", HIDDEN),
    ("chunk extension with LF", CHUNKED, f"2;x\n{{}}\r\n0\r\n\r\n{HIDDEN}"),
    ("chunk 2^64", CHUNKED, f"10000000000000000\r\n{{}}\r\n0\r\n\r\n{HIDDEN}"),
    ("chunk 0x", CHUNKED, f"0x2\r\n{{}}\r\n0\r\n\r\n{HIDDEN}"),
    ("chunk negative", CHUNKED, f"-1\r\n{{}}\r\n0\r\n\r\n{HIDDEN}"),
    ("chunk too short", CHUNKED, f"1\r\n{{}}\r\n0\r\n\r\n{HIDDEN}"),
    ("trailers", CHUNKED, f"0\r\nContent-Length: 61\r\n\r\n{HIDDEN}"),
    ("two hosts", "Host: evil.test\r\nContent-Length: 0\r\n", HIDDEN),
]


@pytest.mark.parametrize("headers, body", [row[1:] for row in SMUGGLED],
                         ids=[row[0] for row in SMUGGLED])
def test_api_04_no_second_request_out_of_one(server, headers, body):
    """API-04: one answer at most but for what is plain, and no read of the hidden request."""
    head = f"POST /threads/search HTTP/1.1\r\nHost: localhost:{Peer(server.url).port}\r\n"
    hidden = HIDDEN.replace("localhost", f"localhost:{Peer(server.url).port}")
    data = (head + "Content-Type: application/json\r\n" + headers + "\r\n"
            + body.replace(HIDDEN, hidden)).encode("latin-1")
    found, closed = exchange(server.url, data)
    assert closed and len(found) <= 1, (found, closed)
    assert all(status in (200, 400, 413, 422, 501) for status in found), found


def test_api_04_pipelined_requests_are_answered_in_order(server):
    """What is plain keeps working: three requests, three answers."""
    data = b"".join([request(server, "GET", "/ok"), request(server, "GET", "/nothing"),
                     request(server, "GET", "/info", Connection="close")])
    assert exchange(server.url, data) == ([200, 404, 200], True)


TARGETS = [("http://{own}/ok", {200}), ("http://evil.test/ok", {400, 403}), ("{own}", {400}),
           ("*", {400, 404}), ("//ok", {400, 404}), ("/%2e%2e/ok", {400, 404}),
           ("/../ok", {400, 404}),
           ("/ok/..", {400, 404}), ("/./ok", {400, 404}), ("/ok;x", {404}), ("/ok%2f", {400, 404}),
           ("/threads%2fsearch", {400, 404}), ("/ok\\", {400, 404}), ("/o%6b", {200}),
           ("/ok#x", {400}), ("/ok?x=%00", {200, 400}), ("/ok%00", {400, 404}), ("/ok%", {400}),
           ("/ok%zz", {400}), ("/OK", {404}), ("/ok/", {404}), ("/ok\x7f", {400}),
           ("/ok\xe9", {400, 404}), ("/" + "a" * 65536, {400, 414, 431}),
           ("/threads/" + "a" * 200, {404, 422}), ("ok", {400}), ("http://", {400}),
           ("http:///ok", {400}), ("https://{own}/ok", {200, 400}), ("ftp://{own}/ok", {400}),
           ("http://user@{own}/ok", {400, 403}), ("/ok?" + "a=b&" * 2000, {200, 400, 414, 431})]


@pytest.mark.parametrize("target, allowed", TARGETS, ids=[t[:24] for t, _ in TARGETS])
def test_api_05_targets(server, target, allowed):
    """API-05: one normalisation, then the route."""
    own = f"127.0.0.1:{Peer(server.url).port}"
    data = request(server, "GET", target.replace("{own}", own), Connection="close")
    found, closed = exchange(server.url, data)
    assert closed and len(found) <= 1 and set(found) <= allowed, (found, closed)
    assert found or len(target) > 60000


# ---- API-06: slow clients ----

def test_api_06_slow_clients_are_cut_and_nobody_waits(server, peer):
    """API-06: slow headers, slow bodies and idle connections, while others are answered at once."""
    fds = apipeer.settled_fds(server.pid)
    head = f"POST /threads HTTP/1.1\r\nHost: 127.0.0.1:{peer.port}\r\n".encode()
    slow = [connect(server.url) for _ in range(60)]
    bodies = [connect(server.url) for _ in range(60)]
    idle = [connect(server.url) for _ in range(400)]
    over = threading.Event()

    def drip():
        for byte in head:
            for sock in slow:
                try:
                    sock.send(bytes([byte]))
                except OSError:
                    pass
            if over.wait(0.5):
                return

    dripper = threading.Thread(target=drip)
    started = time.monotonic()
    dripper.start()
    for sock in bodies:
        sock.sendall(head + b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{")
    times = []
    while time.monotonic() - started < 9:
        began = time.monotonic()
        assert peer.get("/ok").status == 200
        times.append(time.monotonic() - began)
        over.wait(0.02)
    for sock in slow + bodies:
        sock.settimeout(12)
        data = drain(sock)
        assert not data or statuses(data)[0] in (400, 408, 413), data[:200]
        assert time.monotonic() - started < 25
    over.set()
    dripper.join()
    assert sorted(times)[int(len(times) * 0.99)] <= 0.25, sorted(times)[-5:]
    for sock in slow + bodies + idle:
        sock.close()
    apipeer.wait_for(lambda: apipeer.fd_count(server.pid) <= fds + 3)


def test_api_06_half_open_clients_get_their_answer(server):
    """A client that sends no more is answered what it asked."""
    with connect(server.url) as sock:
        sock.sendall(request(server, "GET", "/ok"))
        sock.shutdown(1)
        assert statuses(drain(sock)) == [200]


# ---- API-08, API-12: what a body is ----

@pytest.mark.parametrize("coding", ["gzip", "br", "deflate", "zstd", "GZIP", "identity, gzip", "x"])
def test_api_08_compressed_bodies_are_refused(peer, coding):
    """API-08: 415, and a bomb is not opened."""
    body = gzip.compress(b'{"metadata":{"a":"' + b"x" * 1_000_000 + b'"}}')
    for path in ("/threads", f"/threads/{NOWHERE}/files/upload", "/store/items/search"):
        reply = peer.call("POST", path, body, headers={"Content-Type": "application/json",
                                                       "Content-Encoding": coding})
        assert reply.status == 415, (path, reply.text)


def test_api_12_empty_bodies_get_the_same_checks(keyed, server):
    """API-12: no key is no key, whatever the body; a body that says nothing is an empty object."""
    for headers in ({}, {"Content-Length": "0"}, {"Transfer-Encoding": "chunked"},
                    {"Content-Type": "text/plain"}, {"Content-Type": None}):
        body = b"0\r\n\r\n" if "Transfer-Encoding" in headers else b""
        lines = {"Content_Length": None} | {k.replace("-", "_"): v for k, v in headers.items()}
        for path in ("/threads", "/runs/wait", "/store/items/search"):
            data = request(keyed, "POST", path, Connection="close", **lines) + body
            assert exchange(keyed.url, data)[0] == [401], headers
            data = request(server, "POST", path, Connection="close", **lines) + body
            found, _ = exchange(server.url, data)
            assert len(found) == 1 and found[0] in (200, 411, 415, 422), (path, headers, found)
    data = request(server, "POST", "/threads", Connection="close", Transfer_Encoding="chunked")
    assert exchange(server.url, data + b"0\r\n\r\n")[0] == [400]


# ---- API-09: mutations ----

def seeds(server, thread):
    """Return requests that are well."""
    def json_request(method, path, body):
        return request(server, method, path, json.dumps(body).encode(),
                       Content_Type="application/json", Connection="close")

    run = {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "say: x"}]},
           "stream_mode": ["values", "updates"], "config": {"recursion_limit": 3,
                                                            "configurable": {"chat_model": "m"}}}
    form = (b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\ntext'
            b"\r\n--b--\r\n")
    return [
        request(server, "GET", "/ok", Connection="close"),
        request(server, "GET", f"/threads/{thread}/state", Connection="close"),
        request(server, "GET", f"/threads/{thread}/history?limit=3", Connection="close"),
        request(server, "GET", f"/threads/{thread}/files/download?session_id=a&path=%2Fx",
                Connection="close"),
        request(server, "GET", "/store/items?key=a&namespace=b.c", Connection="close"),
        request(server, "POST", f"/threads/{thread}/files/upload", form, Connection="close",
                Content_Type="multipart/form-data; boundary=b"),
        json_request("POST", "/threads", {"metadata": {"a": [1, 2.5, None, "é"]}}),
        json_request("POST", "/threads/search", {"limit": 5, "offset": 0, "metadata": {"a": 1},
                                                 "sort_by": "created_at", "status": "idle"}),
        json_request("POST", f"/threads/{thread}/state", {"values": {"messages": []}}),
        json_request("POST", f"/threads/{thread}/history", {"limit": 2, "before": None}),
        json_request("POST", f"/threads/{thread}/runs/wait", run),
        json_request("POST", "/runs/wait", run),
        json_request("POST", "/runs/batch", [run]),
        json_request("POST", "/runs/cancel", {"status": "pending"}),
        json_request("POST", "/assistants", {"graph_id": "agent", "name": "n", "config": {}}),
        json_request("POST", "/assistants/search", {"graph_id": "agent", "limit": 2}),
        json_request("PUT", "/store/items", {"namespace": ["a", "b"], "key": "k",
                                             "value": {"v": 1}, "ttl": 5}),
        json_request("POST", "/store/items/search", {"namespace_prefix": ["a"], "query": "v",
                                                     "filter": {"v": {"$gte": 0}}}),
        json_request("POST", "/store/namespaces", {"prefix": ["a"], "max_depth": 2}),
        json_request("PUT", "/settings", {"supportsVision": True}),
        json_request("POST", f"/threads/{thread}/commands",
                     {"id": 1, "method": "run.start", "params": {"assistant_id": "agent"}}),
        json_request("POST", "/runs/crons", {"assistant_id": "agent", "schedule": "5 4 * * 1",
                                             "input": {}}),
        json_request("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    ]


WORDS = [b"null", b"-1", b"1e999", b"99999999999999999999", b'"\\u0000"', b"[]", b"{}", b"true",
         b'""', b"%00", b"..", b"'", b"\\", b"\r\n", b"$ne", b"9223372036854775807", b"\xff"]


def mutate(chance, data):
    """Return data with one to four changes, some of which keep the grammar."""
    data = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data))
        kind = chance.randrange(6)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            del data[at:at + chance.randint(1, 8)]
        elif kind == 2:
            data[at:at] = chance.choice(WORDS)
        elif kind == 3:
            data[at:at + chance.randint(1, 6)] = chance.choice(WORDS)
        else:
            values = list(re.finditer(rb':(\d+|"[^"]*"|null|true|\{\}|\[\])', data)) or None
            if values:
                value = chance.choice(values)
                data[value.start(1):value.end(1)] = chance.choice(WORDS)
        if not data:
            break
    head, gap, body = bytes(data).partition(b"\r\n\r\n")
    if chance.random() < 0.8 and gap:
        head = re.sub(rb"(?i)content-length: *\d+", b"Content-Length: %d" % len(body), head)
    return head + gap + body


def test_api_09_mutated_requests(server, peer):
    """API-09: thousands of requests that are nearly well: no 5xx, and the server lives."""
    thread = peer.thread()
    peer.run(thread, "say: hello")
    wells = seeds(server, thread)
    for data in wells:
        found, _ = exchange(server.url, data, 10)
        assert len(found) == 1 and found[0] < 500, (data, found)

    def work(number):
        chance = random.Random(SEED + number)
        for _ in range(2000):
            data = mutate(chance, chance.choice(wells))
            with connect(server.url, 0.3) as sock:
                try:
                    sock.sendall(data)
                    sock.shutdown(1)
                    received = drain(sock)
                except OSError:
                    continue
            for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", received):
                if int(status) >= 500 and int(status) not in (501, 505):
                    bad.append((data, received[:600]))

    bad = []
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert not bad, (len(bad), bad[0])
    assert peer.get("/ok").status == 200


# ---- API-13: owners ----

class Belongings:
    """What an owner has: one of each thing that has an id, each with the owner's name in it."""

    def __init__(self, peer):
        self.peer = peer
        mark = CANARY
        self.thread = peer.thread(metadata={"mark": mark})
        code = (f"open('/workspace/out.txt','w').write('{mark}')\\n"
                "from IPython.display import display, HTML\\n"
                f"display(HTML('<p>{mark}</p>' * 9000))")
        peer.run(self.thread, f"run: {code}")
        session = peer.get("/sessions").json[0]
        assert session["thread_id"] == self.thread
        self.session = session["session_id"]
        peer.run(self.thread, 'call: export_files {"session_id": "$SESSION", "files": '
                              '[{"source": "out.txt"}]}')
        self.run = peer.get(f"/threads/{self.thread}/runs").json[0]["run_id"]
        state = peer.state(self.thread)
        self.checkpoint = state["checkpoint"]["checkpoint_id"]
        self.blob = re.search(r'"blob\W+([0-9a-f]{64})', json.dumps(state)).group(1)
        form = (f'--b\r\nContent-Disposition: form-data; name="files"; filename="up.txt"\r\n\r\n'
                f"{mark}\r\n--b--\r\n").encode()
        self.upload = peer.post(f"/threads/{self.thread}/files/upload", form, headers={
            "Content-Type": "multipart/form-data; boundary=b"}).json[0]["path"]
        self.assistant = peer.post("/assistants", {
            "graph_id": "agent", "name": mark, "metadata": {"mark": mark},
            "config": {"configurable": {"system_prompt": mark}}}).json["assistant_id"]
        assert peer.call("PUT", "/store/items", {
            "namespace": [mark], "key": "k", "value": {"mark": mark}}).status in (200, 204)
        self.cron = peer.post("/runs/crons", {
            "assistant_id": "agent", "schedule": "0 0 1 1 *", "metadata": {"mark": mark},
            "input": {"messages": [{"role": "user", "content": mark}]}}).json["cron_id"]
        assert peer.call("PUT", "/settings", {"chatModel": mark, "chatModelProvider": "openai",
                                              "chatModelApiKey": mark + "-key"}).status == 200
        self.download = f"session_id={self.session}&path=%2Fworkspace%2Fout.txt"

    def everything(self):
        """Return all that the owner sees of it, but times and what is unrelated."""
        peer = self.peer
        return [peer.state(self.thread), peer.get(f"/threads/{self.thread}").json["metadata"],
                peer.get(f"/threads/{self.thread}/runs/{self.run}").json["status"],
                [s["session_id"] for s in peer.get("/sessions").json],
                peer.get(f"/threads/{self.thread}/files/download?{self.download}").text,
                peer.get(f"/threads/{self.thread}/files").json,
                peer.get(f"/assistants/{self.assistant}").json,
                peer.get(f"/store/items?key=k&namespace={CANARY}").json["value"],
                [c["cron_id"] for c in peer.post("/runs/crons/search").json],
                peer.get("/settings").json]


@pytest.fixture(scope="module")
def alice(keyed):
    """Who has one of everything."""
    return Belongings(Peer(keyed.url, ALICE))


@pytest.fixture(scope="module")
def bob(keyed):
    """Who has nothing, and must see nothing of alice."""
    return Peer(keyed.url, BOB, secrets=[CANARY])


def crossings(own):
    """Return every route with alice's ids as bob asks for it: {route: (path, body, statuses)}.

    Statuses are what may be answered; where 200 is, the answer holds nothing of alice.
    """
    thread, run = f"/threads/{own.thread}", f"/threads/{own.thread}/runs/{own.run}"
    ask = Peer.run_body("say: stolen")
    gone = {404}
    assistant = f"/assistants/{own.assistant}"
    return {
        "POST /assistants/search": ("", {"metadata": {"mark": CANARY}}, {200}),
        "POST /assistants/count": ("", {"metadata": {"mark": CANARY}}, {200}),
        "GET /assistants": ("", None, {200}),
        "POST /assistants": ("", {"graph_id": "agent", "assistant_id": own.assistant,
                                  "if_exists": "do_nothing"}, {404, 409, 422}),
        "GET /assistants/{assistant_id}": (assistant, None, gone),
        "PATCH /assistants/{assistant_id}": (assistant, {"name": "stolen"}, gone),
        "DELETE /assistants/{assistant_id}": (assistant, None, gone),
        "GET /assistants/{assistant_id}/graph": (assistant + "/graph", None, gone),
        "GET /assistants/{assistant_id}/schemas": (assistant + "/schemas", None, gone),
        "GET /assistants/{assistant_id}/subgraphs": (assistant + "/subgraphs", None, gone),
        "GET /assistants/{assistant_id}/subgraphs/{namespace}":
            (assistant + "/subgraphs/x", None, gone),
        "POST /assistants/{assistant_id}/versions": (assistant + "/versions", {}, gone),
        "POST /assistants/{assistant_id}/latest": (assistant + "/latest", {"version": 1}, gone),
        "POST /threads/search": ("", {"metadata": {"mark": CANARY}, "ids": [own.thread]}, {200}),
        "POST /threads/count": ("", {"metadata": {"mark": CANARY}}, {200}),
        "POST /threads/prune": ("", {"thread_ids": [own.thread], "strategy": "delete"}, {200, 404}),
        "GET /threads": ("", None, {200}),
        "POST /threads": ("", {"thread_id": own.thread, "if_exists": "do_nothing"}, {404, 409}),
        "GET /threads/{thread_id}": (thread, None, gone),
        "PATCH /threads/{thread_id}": (thread, {"metadata": {"mark": "stolen"}}, gone),
        "DELETE /threads/{thread_id}": (thread, None, gone),
        "POST /threads/{thread_id}/copy": (thread + "/copy", {}, gone),
        "GET /threads/{thread_id}/state": (thread + "/state", None, gone),
        "POST /threads/{thread_id}/state":
            (thread + "/state", {"values": {"messages": []}, "as_node": "model"}, gone),
        "POST /threads/{thread_id}/state/checkpoint":
            (thread + "/state/checkpoint", {"checkpoint": {"checkpoint_id": own.checkpoint}}, gone),
        "GET /threads/{thread_id}/state/{checkpoint_id}":
            (f"{thread}/state/{own.checkpoint}", None, gone),
        "POST /threads/{thread_id}/history": (thread + "/history", {}, gone),
        "GET /threads/{thread_id}/history": (thread + "/history", None, gone),
        "POST /threads/{thread_id}/runs": (thread + "/runs", ask, gone),
        "POST /threads/{thread_id}/runs/stream": (thread + "/runs/stream", ask, gone),
        "POST /threads/{thread_id}/runs/wait": (thread + "/runs/wait", ask, gone),
        "GET /threads/{thread_id}/runs": (thread + "/runs", None, gone),
        "GET /threads/{thread_id}/runs/{run_id}": (run, None, gone),
        "DELETE /threads/{thread_id}/runs/{run_id}": (run, None, gone),
        "PATCH /threads/{thread_id}/runs/{run_id}": (run, {"status": "interrupted"}, gone),
        "GET /threads/{thread_id}/runs/{run_id}/stream": (run + "/stream", None, gone),
        "GET /threads/{thread_id}/runs/{run_id}/join": (run + "/join", None, gone),
        "POST /threads/{thread_id}/runs/{run_id}/cancel": (run + "/cancel", {}, gone),
        "POST /runs/stream": ("", ask | {"thread_id": own.thread}, {404, 409}),
        "POST /runs/wait": ("", ask | {"thread_id": own.thread}, {404, 409}),
        "POST /runs": ("", ask | {"assistant_id": own.assistant}, gone),
        "POST /runs/batch": ("", [ask | {"thread_id": own.thread}], {404, 409}),
        "POST /runs/cancel": ("", {"thread_id": own.thread, "run_ids": [own.run]}, {204, 404}),
        "POST /threads/{thread_id}/commands": (thread + "/commands", {
            "id": 1, "method": "run.start",
            "params": {"assistant_id": "agent", "input": ask["input"]}}, {200, 404}),
        "GET /threads/{thread_id}/stream": (thread + "/stream", None, gone),
        "PUT /store/items": ("", {"namespace": ["own"], "key": "k", "value": {}}, {200, 204}),
        "GET /store/items": (f"/store/items?key=k&namespace={CANARY}", None, {200, 404}),
        "DELETE /store/items": ("", {"namespace": [CANARY], "key": "k"}, {200, 204, 404}),
        "POST /store/items/search": ("", {"namespace_prefix": []}, {200}),
        "POST /store/namespaces": ("", {}, {200}),
        "POST /threads/{thread_id}/files/upload": (thread + "/files/upload", b"--b--\r\n", gone),
        "GET /threads/{thread_id}/files/download":
            (f"{thread}/files/download?{own.download}", None, gone),
        "GET /threads/{thread_id}/files": (thread + "/files", None, gone),
        "GET /threads/{thread_id}/blobs/{sha256}": (f"{thread}/blobs/{own.blob}", None, gone),
        "GET /settings": ("", None, {200}),
        "PUT /settings": ("", {"supportsVision": False}, {200}),
        "GET /sessions": ("", None, {200}),
        "DELETE /sessions/{session_id}": (f"/sessions/{own.session}", None, gone),
        "POST /sessions/{session_id}/interrupt": (f"/sessions/{own.session}/interrupt", {}, gone),
        "POST /runs/crons": ("", {"assistant_id": own.assistant, "schedule": "0 0 1 1 *",
                                  "input": {}}, gone),
        "POST /runs/crons/search": ("", {"assistant_id": own.assistant}, {200, 404}),
        "POST /runs/crons/count": ("", {}, {200}),
        "PATCH /runs/crons/{cron_id}": (f"/runs/crons/{own.cron}", {"enabled": False}, gone),
        "DELETE /runs/crons/{cron_id}": (f"/runs/crons/{own.cron}", None, gone),
        "POST /threads/{thread_id}/runs/crons": (thread + "/runs/crons", {
            "assistant_id": "agent", "schedule": "0 0 1 1 *", "input": {}}, gone),
    }


OPEN_ROUTES = {"GET /", "GET /info", "GET /ok", "GET /health", "GET /ready", "GET /live",
               "GET /metrics", "GET /openapi.json", "GET /docs"}
MCP_ROUTES = {"POST /mcp", "GET /mcp", "DELETE /mcp"}
# A client may follow a thread that is still to be made, so this one is no 404; see its own test.
FOLLOWED = {"POST /threads/{thread_id}/stream/events"}


def without_ids(text):
    """Return a text with all ids made equal."""
    return re.sub("[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)


def routes_of(peer):
    """Return all routes that the server describes, "METHOD path"."""
    paths = peer.get("/openapi.json").json["paths"]
    return {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}


def test_api_13_another_owners_things_do_not_exist(alice, bob):
    """API-13: each route, with alice's ids and bob's key; and alice's things are as before."""
    before = alice.everything()
    rows = crossings(alice)
    missing = routes_of(bob) - set(rows) - OPEN_ROUTES - MCP_ROUTES - FOLLOWED
    assert not missing, f"routes that no row of this test is about: {missing}"
    assert set(rows) <= routes_of(bob), set(rows) - routes_of(bob)
    for route, (path, body, allowed) in rows.items():
        method, _, own_path = route.partition(" ")
        headers = {"Content-Type": "multipart/form-data; boundary=b"} if "upload" in path else None
        reply = bob.call(method, path or own_path, body, headers=headers)
        if reply.status == 200 and route == "POST /threads/{thread_id}/commands":
            assert reply.json["type"] == "error", reply.text
            continue
        assert reply.status in allowed, (route, reply.status, reply.text[:300])
        if reply.status == 404 and body is None:
            unknown = re.sub(f"{alice.thread}|{alice.assistant}|{alice.cron}", NOWHERE, path)
            nothing = bob.call(method, unknown.replace(alice.session, "0" * 32))
            assert nothing.status == 404, (route, nothing.status, nothing.text[:300])
            assert without_ids(nothing.text) == without_ids(reply.text), route
    assert alice.everything() == before


def test_api_13_ids_of_another_owner_inside_of_own_things(alice, bob):
    """API-13: alice's ids in bob's own threads, runs, tools and MCP sessions are unknown."""
    thread = bob.thread()
    bob.run(thread, "say: mine")
    for path in (f"/threads/{thread}/state/{alice.checkpoint}",
                 f"/threads/{thread}/runs/{alice.run}",
                 f"/threads/{thread}/runs/{alice.run}/join",
                 f"/threads/{thread}/runs/{alice.run}/stream",
                 f"/threads/{thread}/blobs/{alice.blob}",
                 f"/threads/{thread}/files/download?{alice.download}"):
        assert bob.get(path).status == 404, path
    reply = bob.post(f"/threads/{thread}/runs/wait",
                     Peer.run_body("say: forked", checkpoint_id=alice.checkpoint))
    assert reply.status in (404, 422) or "__error__" in reply.text, reply.text
    reply = bob.post(f"/threads/{thread}/state", {
        "values": {"messages": []}, "checkpoint": {"checkpoint_id": alice.checkpoint}})
    assert reply.status in (404, 422), reply.text
    for call in (f'execute_code {{"session_id": "{alice.session}", "code": "1"}}',
                 f'execute_terminal {{"session_id": "{alice.session}", "command": "cat out.txt"}}',
                 f'stop_session {{"session_id": "{alice.session}"}}',
                 f'interrupt_session {{"session_id": "{alice.session}"}}',
                 "list_sessions {}"):
        bob.run(thread, f"call: {call}")
        result = json.loads(bob.messages(thread)[-2]["content"])
        assert not result["success"] or result.get("sessions") == [], (call, result)
    bob.run(thread, "run: 1")
    bob.run(thread, 'call: import_files {"session_id": "$SESSION", "files": '
                    f'[{{"source": "{alice.upload}"}}]}}\nsay: x')
    result = json.loads(bob.messages(thread)[-2]["content"])
    assert "up.txt" not in json.dumps(result.get("imported", [])), result
    bob.run(thread, "shell: cat up.txt /workspace/up.txt out.txt")
    assert alice.peer.get("/sessions").json[0]["session_id"] == alice.session
    bob.delete(f"/threads/{thread}")


def test_api_13_events_of_a_thread_are_its_owners(alice, bob):
    """API-13: whoever else follows a thread by protocol v2 is told nothing of it."""
    thread = alice.peer.thread()
    path, asked = f"/threads/{thread}/stream/events", {"channels": ["values", "lifecycle"]}
    theirs, stolen = bob.open("POST", path, asked)
    own, response = alice.peer.open("POST", path, asked)
    alice.peer.post(f"/threads/{thread}/commands", {"id": 1, "method": "run.start", "params": {
        "assistant_id": "agent", "input": {"messages": [{"role": "user", "content": CANARY}]}}})
    text = b""
    while b"completed" not in text:
        text += response.readline()
    assert CANARY.encode() in text
    assert stolen.status in (200, 404)
    while stolen.status == 200 and (line := stolen.readline()).strip():
        assert line.startswith(b":"), line
    assert stolen.status == 404 or not line.strip()
    theirs.close()
    own.close()


def test_api_13_mcp_is_each_owners_own(alice, bob):
    """API-13: a session of the transport is unknown to another key, and so are its sandboxes."""
    begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": mcpstdio.LEGACY, "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}}
    accept = {"Accept": "application/json, text/event-stream"}
    first = alice.peer.post("/mcp", begin, headers=accept)
    assert first.status == 200, first.text
    own = accept | {"Mcp-Session-Id": first.headers["mcp-session-id"]}
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert alice.peer.post("/mcp", listing, headers=own).status == 200
    assert bob.post("/mcp", listing, headers=own).status == 404
    assert bob.get("/mcp", headers=own | {"Accept": "text/event-stream"}).status == 404
    assert bob.delete("/mcp", headers=own).status == 404
    assert alice.peer.post("/mcp", listing, headers=own).status == 200
    mine = bob.post("/mcp", begin, headers=accept).headers["mcp-session-id"]
    for tool, arguments in (("execute_code", {"session_id": alice.session, "code": "1"}),
                            ("stop_session", {"session_id": alice.session}),
                            ("list_sessions", {})):
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                "params": {"name": tool, "arguments": arguments}}
        reply = bob.post("/mcp", call, headers=accept | {"Mcp-Session-Id": mine})
        assert alice.session not in reply.text.replace(json.dumps(arguments), "") or \
            '"isError":true' in reply.text.replace(" ", ""), reply.text
    assert alice.peer.get("/sessions").json[0]["session_id"] == alice.session


# ---- API-14, API-32: guesses and rates ----

def test_api_14_ids_are_random(alice, keyed):
    """API-14: 122 random bits in ids of threads and assistants, 128 in those of sessions."""
    ids = [uuid.UUID(alice.peer.thread()) for _ in range(200)]
    assert all(one.version == 4 for one in [*ids, uuid.UUID(alice.assistant)])
    fixed = (1 << 128) - 1
    for one in ids:
        fixed &= ~(one.int ^ ids[0].int)
    assert fixed.bit_count() == 6, "bits that are the same in all ids"
    assert re.fullmatch("[0-9a-f]{32}", alice.session)
    with sqlite3.connect(f"file:{database(keyed)}?mode=ro", uri=True) as db:
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type='table'")]
    assert "threads" in " ".join(tables)


def database(server):
    """Return the path of a server's SQLite database."""
    found = [path for path in Path(server.state_dir).rglob("*")
             if path.is_file() and path.open("rb").read(16) == b"SQLite format 3\0"]
    assert len(found) == 1, found
    return found[0]


def rate(url, key, path, method, seconds, body=None):
    """Ask on one connection as fast as it goes; return the statuses."""
    peer = Peer(url, key)
    found, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        found.append(peer.call(method, path, body).status)
    return found


def test_api_14_and_32_each_owner_has_a_rate(model, tmp_path):
    """API-14, API-32: guesses of keys are slowed down; who asks too much is, and nobody else."""
    keys = tmp_path / "keys"
    keys.write_text(f"alice:{ALICE}\nbob:{BOB}\n")
    keys.chmod(0o600)
    with ApiServer(tmp_path, model, API_KEYS_FILE=keys, REQUESTS_PER_SECOND=20) as server, \
            concurrent.futures.ThreadPoolExecutor(8) as pool:
        work = [pool.submit(rate, server.url, ALICE, "/threads/search", "POST", 3, {})
                for _ in range(3)]
        guess = [pool.submit(rate, server.url, f"guess-{i}-0123456789", "/threads", "GET", 3)
                 for i in range(3)]
        peer, others = Peer(server.url, BOB), []
        while not all(one.done() for one in work + guess):
            others.append(peer.get("/threads").status)
            time.sleep(0.3)
        asked = [status for one in work for status in one.result()]
        guessed = [status for one in guess for status in one.result()]
        assert set(asked) == {200, 429} and 30 <= asked.count(200) <= 40 + 20 * 4, asked.count(200)
        assert set(guessed) == {401, 429} and guessed.count(401) <= 4 + 2 * 4, guessed.count(401)
        assert set(others) == {200}
        limited = Peer(server.url, ALICE)
        while (reply := limited.post("/threads/search")).status != 429:
            pass
        assert int(reply.headers["retry-after"]) >= 1


# ---- API-18: logs ----

LINE = re.compile(r"(sandbox-agent: (error|warning|warn|info|debug): |listening on )[ -~]*")


def test_api_18_nothing_is_injected_into_the_log(server, peer):
    """API-18: one line per event, no control characters, whatever is in a request."""
    evil = "%0d%0asandbox-agent:%20info:%20forged%1b[31m%00%e2%80%a8%ff"
    peer.get("/threads/" + evil)
    peer.get("/ok?" + evil)
    peer.get("/" + evil)
    thread = peer.thread(metadata={"a": "\r\nsandbox-agent: info: forged\x1b[31m\u2028"})
    peer.run(thread, "say: \x1b[31m")
    peer.run(thread, "status: 500", config={"configurable": {"chat_model": "m\r\n\x1b[31mforged"}})
    for value in ("a\x1b[31mb", "x" * 10_000):
        with connect(server.url) as sock:
            sock.sendall(request(server, "GET", "/ok", X_Value=value, Connection="close"))
            drain(sock)
    with connect(server.url) as sock:
        try:
            sock.sendall(request(server, "GET", "/ok", X_Value="x" * (1 << 20)))
        except OSError:
            pass
        assert not (data := drain(sock)) or statuses(data)[0] in (400, 413, 431)
    for line in server.log.splitlines():
        assert LINE.fullmatch(line), line
        assert len(line) < 5000 and "forged\x1b" not in line


def test_api_18_secrets_are_nowhere(keyed, alice):
    """API-18, STO-32: not in the log, not in metrics, not in the database or any file."""
    secrets = ["sk-canary-of-a-run-0123456789", CANARY + "-key", MODEL_KEY, ALICE, BOB,
               "guess-canary-0123456789", "bearer-canary-0123456789"]
    peer = alice.peer
    for status in ("say: x", "status: 500", "status: 401"):
        peer.run(peer.thread(), status, config={"configurable": {"chat_model_api_key": secrets[0]}})
    peer.post("/runs", Peer.run_body("say: x", config={
        "configurable": {"chat_model_api_key": secrets[0]}}, after_seconds=3600))
    assert Peer(keyed.url, secrets[5]).get("/threads").status in (401, 429)
    reply = Peer(keyed.url).get("/threads", headers={"Authorization": f"Bearer {secrets[6]}"})
    assert reply.status in (401, 429)
    Peer(keyed.url).get(f"/ok?api_key={secrets[5]}", headers={"Cookie": secrets[5]})
    shown = [keyed.log, peer.get("/metrics").text, peer.get("/openapi.json").text,
             peer.post("/threads/search").text, peer.get("/settings").text]
    for thread in peer.post("/threads/search").json:
        shown.append(peer.get(f"/threads/{thread['thread_id']}/runs").text)
        shown.append(peer.get(f"/threads/{thread['thread_id']}/history").text)
    files = [path for path in Path(keyed.state_dir).rglob("*") if path.is_file()
             and not path.is_symlink() and path.name != "keys"]
    assert any(path == database(keyed) for path in files)
    for secret in secrets:
        assert not any(secret in text for text in shown), secret
        for path in files:
            assert secret.encode() not in path.read_bytes(), (secret, path)


# ---- API-20, API-21, API-22, API-25: browsers ----

HOSTS = [("127.0.0.1:{port}", True), ("localhost:{port}", True), ("[::1]:{port}", True),
         ("LOCALHOST:{port}", True), ("evil.test", False), ("evil.test:{port}", False),
         ("127.0.0.1.evil.test:{port}", False), ("localhost.evil.test:{port}", False),
         ("127.0.0.1:1", False), ("user@localhost:{port}", False), ("0.0.0.0:{port}", False),
         ("2130706433:{port}", False), ("[::]:{port}", False), ("", False), (" ", False),
         ("localhost:{port},evil.test", False), ("evil.test/localhost:{port}", False)]
ORIGINS = [(None, True), ("http://127.0.0.1:{port}", True), ("http://localhost:3000", True),
           ("http://[::1]:5173", True), ("https://app.example", True),
           ("https://ui.example:8443", True), ("HTTP://LOCALHOST:3000", True),
           ("null", False), ("http://evil.test", False), ("http://localhost.evil.test", False),
           ("http://127.0.0.1.evil.test:{port}", False), ("https://app.example.evil.test", False),
           ("http://app.example", False), ("https://app.example:444", False),
           ("https://ui.example", False), ("https://evil-app.example", False),
           ("http://localhost@evil.test", False), ("file://", False), ("", False),
           ("chrome-extension://abcdefgh", False), ("http://0.0.0.0:{port}", False),
           ("http://localhost:3000, http://evil.test", False), ("localhost", False)]
DOORS = [("GET", "/ok"), ("POST", "/threads/search"), ("GET", "/threads/{thread}/stream"),
         ("OPTIONS", "/threads/search"), ("POST", "/mcp")]


def matrix_answer(server, door, thread, host, origin):
    """Ask once; return the status and the CORS header of the answer."""
    method, path = door
    body = b"{}" if method == "POST" else b""
    headers = {"Content_Type": "application/json", "Connection": "close", "Origin": origin}
    if method == "OPTIONS":
        headers["Access_Control_Request_Method"] = "POST"
    data = request(server, method, path.replace("{thread}", thread), body, host=host or "x",
                   **headers)
    if not host:
        data = data.replace(b"Host: x", b"Host: " + host.encode())
    with connect(server.url) as sock:
        sock.sendall(data)
        head = drain(sock, lambda received: b"\r\n\r\n" in received).partition(b"\r\n\r\n")[0]
    allowed = re.search(rb"(?im)^access-control-allow-origin: *(.*?)\r?$", head)
    return int(head.split()[1]), allowed and allowed.group(1).decode()


@pytest.mark.parametrize("door", DOORS, ids=[f"{m} {p}" for m, p in DOORS])
def test_api_20_origin_and_host(server, peer, door):
    """API-20, API-21, API-25: a foreign page or name gets 403 and no leave to read it."""
    port, thread, rows = str(peer.port), peer.thread(), 0
    for host, host_good in HOSTS:
        for origin, origin_good in ORIGINS:
            rows += 1
            named = origin and origin.replace("{port}", port)
            status, allowed = matrix_answer(server, door, thread, host.replace("{port}", port),
                                            named)
            row = (door, host, origin, status, allowed)
            if host_good and origin_good:
                assert status in (200, 204) or (door[1] == "/mcp" and status not in (401, 403)), row
                assert allowed == named, row
            else:
                assert status in (400, 403), row
                assert allowed is None or (origin_good and allowed == named), row
    assert rows >= 60


def test_api_20_a_key_does_not_open_the_door_to_pages(keyed):
    """API-20: Origin and Host are looked at although the key is right, and before it is."""
    for key in (ALICE, "wrong-key-0123456789"):
        peer = Peer(keyed.url, key)
        assert peer.get("/threads", headers={"Origin": "http://evil.test"}).status == 403
        assert peer.get("/threads", headers={"Host": f"evil.test:{peer.port}"}).status == 403
    data = request(keyed, "GET", "/ok", Origin="http://localhost:1", Connection="close")
    double = data.replace(b"\r\n\r\n", b"\r\nOrigin: http://evil.test\r\n\r\n")
    assert exchange(keyed.url, double)[0] in ([400], [403])


def test_api_22_forms_of_foreign_pages(server, peer):
    """API-22: what a page can send without asking first changes nothing, whatever its Origin."""
    bodies = [("text/plain", b"{}"), ("application/x-www-form-urlencoded", b"a=b"),
              ("multipart/form-data; boundary=b", b"--b--\r\n")]
    paths = [("POST", "/threads"), ("POST", "/runs"), ("POST", "/runs/wait"),
             ("POST", "/assistants"), ("POST", "/threads/prune"), ("PUT", "/store/items"),
             ("PUT", "/settings"), ("POST", "/mcp"), ("POST", "/runs/cancel")]
    for kind, body in bodies:
        for method, path in paths:
            if kind != "text/plain":  # Studio sends JSON under this name
                reply = peer.call(method, path, body, headers={"Content-Type": kind})
                assert reply.status in (400, 415, 422), (kind, path, reply.text)
            for origin in ("http://evil.test", "null"):
                reply = peer.call(method, path, body,
                                  headers={"Content-Type": kind, "Origin": origin})
                assert reply.status == 403, (kind, path, origin)


def test_api_22_no_get_changes_anything(keyed, alice):
    """API-22: after each GET route, all that alice has is as before."""
    before = alice.everything()
    ids = {"thread_id": alice.thread, "run_id": alice.run, "checkpoint_id": alice.checkpoint,
           "assistant_id": alice.assistant, "session_id": alice.session, "sha256": alice.blob,
           "cron_id": alice.cron, "namespace": "x"}
    for route in sorted(routes_of(alice.peer)):
        method, _, path = route.partition(" ")
        if method != "GET" or path in ("/mcp", "/threads/{thread_id}/stream"):
            continue
        path = re.sub(r"\{(\w+)\}", lambda found: ids[found.group(1)], path)
        reply = alice.peer.get(path)
        assert reply.status in (200, 404, 422), (route, reply.status, reply.text[:200])
    assert alice.everything() == before
    for path in ("/threads", f"/threads/{alice.thread}"):
        for method in ("TRACE", "CONNECT", "PROPFIND", "get"):
            data = request(keyed, method, path, Connection="close", X_Api_Key=ALICE)
            found, _ = exchange(keyed.url, data)
            assert found and set(found) <= {400, 404, 405, 501}, (method, path, found)


# ---- API-24: where it listens ----

def begin(state_dir, listen, **settings):
    """Start a server that may refuse to; return the process."""
    return subprocess.Popen([mcpstdio.AGENT, "api", "--listen", listen],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True, cwd=state_dir,
                            env=environment(state_dir, "http://127.0.0.1:9/v1", **settings))


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0"])
def test_api_24_only_loopback_without_a_key(tmp_path, listen):
    """API-24: others' addresses need a key; with one it starts, and Host is still looked at."""
    refused = begin(tmp_path, listen)
    _, text = refused.communicate(timeout=30)
    assert refused.returncode != 0 and "key" in text.lower(), text
    if listen.startswith("["):
        return
    opened = begin(tmp_path, listen, API_KEY=ALICE)
    try:
        for line in opened.stderr:
            if "listening on" in line:
                break
        port = int(line.strip().rpartition(":")[2])
        url = f"http://127.0.0.1:{port}"
        assert Peer(url).get("/threads").status == 401
        assert Peer(url, ALICE).get("/threads").status == 200
        assert Peer(url, ALICE).get("/threads", headers={"Host": f"evil.test:{port}"}).status == 403
    finally:
        opened.send_signal(signal.SIGTERM)
        opened.communicate(timeout=30)
    assert opened.returncode == 0


@pytest.mark.parametrize("text, mode", [("alice:short\n", 0o600), ("alice\n", 0o600),
                                        ("alice:" + ALICE + "\n", 0o644),
                                        ("anonymous:" + ALICE + "\n", 0o600)])
def test_api_24_keys_that_cannot_be_used_are_refused(tmp_path, text, mode):
    """A short key, a line without one, a file that others can read: no start, and no key shown."""
    keys = tmp_path / "keys"
    keys.write_text(text)
    keys.chmod(mode)
    refused = begin(tmp_path, "127.0.0.1:0", API_KEYS_FILE=keys)
    _, said = refused.communicate(timeout=30)
    assert refused.returncode != 0 and "API_KEYS_FILE" in said and ALICE not in said


# ---- API-33: streams that nobody reads ----

def test_api_33_streams_that_nobody_reads(server, peer):
    """API-33: 200 of them and a loud run: memory and descriptors stay, others are answered."""
    thread = peer.thread()
    peer.run(thread, "say: warm")
    fds, memory = apipeer.settled_fds(server.pid), apipeer.rss(server.pid)
    followers = []
    for _ in range(200):
        sock = connect(server.url, receive=2048)
        sock.sendall(request(server, "GET", f"/threads/{thread}/stream"))
        followers.append(sock)
    apipeer.wait_for(lambda: apipeer.fd_count(server.pid) >= fds + 200)
    for _ in range(3):
        frames = peer.run(thread, "count: 3000", stream_mode=["messages-tuple", "values"])
        assert ended(frames) == "success"
    began = time.monotonic()
    assert peer.get("/ok").status == 200
    assert time.monotonic() - began < 0.5
    assert apipeer.rss(server.pid) - memory < 80_000_000, apipeer.rss(server.pid) - memory
    for number, sock in enumerate(followers):
        apipeer.reset(sock) if number % 2 else sock.close()
    # Some more stay: of the database and of models, both of which keep connections.
    apipeer.wait_for(lambda: apipeer.fd_count(server.pid) <= fds + 20)


def test_api_33_clients_that_come_and_go(server, peer):
    """API-33: a stream that is left every 10 ms leaves nothing; a quiet one is kept alive."""
    thread = peer.thread()
    fds = apipeer.settled_fds(server.pid)
    for _ in range(150):
        sock = connect(server.url)
        sock.sendall(request(server, "GET", f"/threads/{thread}/stream"))
        time.sleep(0.01)
        apipeer.reset(sock)
    apipeer.wait_for(lambda: apipeer.fd_count(server.pid) <= fds + 3)
    with connect(server.url) as sock:
        sock.sendall(request(server, "GET", f"/threads/{thread}/stream"))
        data = drain(sock, lambda received: b"\n:" in received or b"\r\n: " in received)
        assert b":" in data.partition(b"\r\n\r\n")[2], data


# ---- API-36, API-37: keys ----

def sealed_server(directory, model, **settings):
    """Return a server whose secrets are sealed with what the settings say."""
    return ApiServer(directory, model, REQUESTS_PER_SECOND=0, **settings)


def test_api_36_a_wrong_encryption_key_is_an_error(model, tmp_path):
    """API-36: what cannot be opened is an error that says so, is kept, and comes back."""
    first, second = "A" * 43 + "=", "B" * 42 + "E="
    secret = "sk-canary-sealed-0123456789"
    with sealed_server(tmp_path, model, ENCRYPTION_KEY=first) as server:
        put = {"chatModel": "mine", "chatModelApiKey": secret}
        assert Peer(server.url).call("PUT", "/settings", put).status == 200
        server.restart(ENCRYPTION_KEY=second)
        peer = Peer(server.url, secrets=[secret])
        reply = peer.get("/settings", fails=True)
        assert reply.status == 500 and "ENCRYPTION_KEY" in reply.text
        reply = peer.call("PUT", "/settings", {"chatModel": "x"}, fails=True)
        assert reply.status == 500
        frames = peer.run(peer.thread(), "say: x")
        assert ended(frames) == "error" and "ENCRYPTION_KEY" in error_of(frames)["message"]
        server.restart(ENCRYPTION_KEY=f"{second},{first}")
        peer = Peer(server.url, secrets=[secret])
        assert peer.get("/settings").json["chatModel"] == "mine"
        peer.run(peer.thread(), "say: x")
        assert model.requests[-1].key == secret
        assert peer.call("PUT", "/settings", {"chatModel": "newer"}).status == 200
        server.restart(ENCRYPTION_KEY=second)
        assert Peer(server.url).get("/settings").json["chatModel"] == "newer", "sealed anew"
        server.restart(ENCRYPTION_KEY=first)
        peer = Peer(server.url)
        assert peer.get("/settings", fails=True).status == 500
        reply = peer.call("PUT", "/settings", {"chatModel": "reset", "reset": True})
        assert reply.status == 200 and reply.json["chatModelApiKeyHint"] != secret
        assert secret not in server.log and first not in server.log and second not in server.log


@pytest.mark.parametrize("value", ["short", "A" * 44, "=" * 44, "é" * 22])
def test_api_36_a_key_that_is_none_is_refused(tmp_path, value):
    """API-36: a short or malformed ENCRYPTION_KEY: no start, a reason, and the value not shown."""
    refused = begin(tmp_path, "127.0.0.1:0", ENCRYPTION_KEY=value)
    _, text = refused.communicate(timeout=30)
    assert refused.returncode != 0 and "ENCRYPTION_KEY" in text
    assert value == "short" or value not in text


def test_api_36_the_key_file(model, tmp_path):
    """API-36: made 0600, never shown; one that others can read is not used."""
    with sealed_server(tmp_path, model) as server:
        Peer(server.url).call("PUT", "/settings", {"chatModelApiKey": "sk-canary-0123456789"})
        found = [path for path in tmp_path.rglob("*") if path.is_file()
                 and re.fullmatch(rb"[A-Za-z0-9_-]{43}=\n?", path.read_bytes()[:100])]
        assert len(found) == 1, found
        assert stat.S_IMODE(found[0].stat().st_mode) == 0o600
        assert found[0].read_text().strip() not in server.log
    found[0].chmod(0o644)
    refused = begin(tmp_path, "127.0.0.1:0")
    try:
        _, text = refused.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        refused.kill()
        refused.communicate()
        raise AssertionError("it starts with a key file that others can read") from None
    assert refused.returncode != 0 and found[0].name in text


@pytest.fixture(scope="module")
def elsewhere():
    """A model at another port, that nobody gave a key for."""
    with FakeModel() as fake:
        yield fake


def test_api_37_a_key_goes_where_it_was_given_for(server, peer, model, elsewhere):
    """API-37: neither the server's nor the owner's key reaches another origin."""
    def keys_seen(**configurable):
        seen = len(elsewhere.requests)
        frames = peer.run(peer.thread(), "say: x", config={"configurable": configurable})
        return [request.key for request in elsewhere.requests[seen:]], ended(frames)

    other = elsewhere.url()
    assert keys_seen(chat_model_base_url=other) == ([""], "success")
    assert keys_seen(chat_model_base_url=other, chat_model_api_key="sk-of-the-run-0123")[0] == \
        ["sk-of-the-run-0123"]
    try:
        assert peer.call("PUT", "/settings", {"chatModelBaseUrl": other}).status == 200
        assert keys_seen() == ([""], "success")
        mine = "sk-owner-key-0123456789"
        assert peer.call("PUT", "/settings", {"chatModelApiKey": mine,
                                              "chatModelBaseUrl": model.url()}).status == 200
        peer.run(peer.thread(), "say: x")
        assert model.requests[-1].key == mine
        assert keys_seen(chat_model_base_url=other) == ([""], "success")
        for moved in (other, other.replace("127.0.0.1", "localhost"), other + "/x"):
            peer.call("PUT", "/settings", {"chatModelApiKey": mine,
                                           "chatModelBaseUrl": model.url()})
            reply = peer.call("PUT", "/settings", {"chatModelBaseUrl": moved})
            assert reply.status == 200 and mine[-4:] not in reply.json["chatModelApiKeyHint"]
            seen, _ = keys_seen()
            assert seen and set(seen) == {""}, moved
            peer.call("PUT", "/settings", {"chatModelBaseUrl": model.url()})
            peer.run(peer.thread(), "say: x")
            assert model.requests[-1].key != mine, "a key that was dropped does not come back"
    finally:
        peer.call("PUT", "/settings", {"chatModelBaseUrl": "", "chatModelProvider": ""})


PRIVATE = ["http://127.0.0.1:{port}/v1", "http://localhost:{port}/v1", "http://127.1:{port}/v1",
           "http://2130706433:{port}/v1", "http://0x7f000001:{port}/v1", "http://0177.0.0.1:{port}",
           "http://[::1]:{port}/v1", "http://[::ffff:127.0.0.1]:{port}/v1", "http://0.0.0.0:{port}",
           "http://[::]:{port}/v1", "http://localhost.:{port}/v1", "http://x.localhost:{port}/v1",
           "http://{name}:{port}/v1", "http://LOCALHOST:{port}/v1", "http://10.0.0.1/v1",
           "http://169.254.169.254/latest", "http://192.168.1.1/v1", "http://172.16.0.1/v1",
           "http://100.64.0.1/v1", "http://[fe80::1]/v1", "http://[fd00::1]/v1",
           "http://[64:ff9b::7f00:1]/v1", "http://[2002:7f00:1::]/v1", "http://224.0.0.1/v1",
           "http://255.255.255.255/v1", "http://user:pw@127.0.0.1:{port}/v1", "file:///etc/passwd",
           "gopher://127.0.0.1:{port}/", "http://127.0.0.1:{port}#@example.com/",
           "http://example.com@127.0.0.1:{port}/v1", "http://127.0.0.1%00.example.com:{port}/",
           "//127.0.0.1:{port}/v1", "http://", "http://127。0。0。1:{port}/v1"]


def private_name():
    """Return a name of this host's own table, beside localhost, that leads to loopback."""
    for line in Path("/etc/hosts").read_text().splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        for name in names:
            if (address.startswith("127.") or address == "::1") and name != "localhost":
                return name
    return None


def test_api_37_private_addresses_are_not_asked(model, tmp_path):
    """API-37: a client's base URL leads to no private address, by no spelling and no name."""
    name = private_name()
    if name is None:
        print("skip: a name in /etc/hosts that leads to loopback")
    with ApiServer(tmp_path, model, REQUESTS_PER_SECOND=0, PRIVATE_MODEL_HOSTS="",
                   CHAT_MODEL_API_KEY=MODEL_KEY) as server:
        peer = Peer(server.url, secrets=[MODEL_KEY])
        assert ended(peer.run(peer.thread(), "say: x")) == "success", "the operator's own"
        count = len(model.requests)
        for url in PRIVATE:
            if "{name}" in url and name is None:
                continue
            url = url.replace("{port}", str(model.port)).replace("{name}", name or "")
            frames = peer.run(peer.thread(), "say: x",
                              config={"configurable": {"chat_model_base_url": url}})
            assert ended(frames) == "error", (url, frames)
            reply = peer.call("PUT", "/settings", {"chatModelBaseUrl": url})
            if reply.status == 200:
                assert ended(peer.run(peer.thread(), "say: x")) == "error", url
            else:
                assert reply.status == 422, (url, reply.text)
        assert len(model.requests) == count
        peer.call("PUT", "/settings", {"chatModelBaseUrl": ""})
        assert ended(peer.run(peer.thread(), "say: x")) == "success"


# ---- API-38: filters ----

def test_api_38_filters_cost_little(peer):
    """API-38: what clients search by is bounded and linear; no filter reaches the database."""
    for number in range(30):
        peer.call("PUT", "/store/items", {
            "namespace": ["a", str(number)], "key": "k" * 400,
            "value": {"text": "a" * 20_000, "number": number}})
        peer.thread(metadata={"text": "a" * 20_000, "number": number})
    words = ["(a+)+$", "a" * 19_999 + "b", "%" * 5000, "_" * 5000, "*" * 5000, "a%" * 2500,
             "' OR 1=1 --", '"; DROP TABLE threads; --', "\\", "[" * 1000, "$" * 1000, "\x00"]
    began = time.monotonic()
    for word in words:
        for path, body in (
                ("/store/items/search", {"namespace_prefix": ["a"], "query": word}),
                ("/store/items/search", {"namespace_prefix": [], "filter": {"text": word}}),
                ("/store/items/search", {"filter": {"text": {"$gt": word}}}),
                ("/store/items/search", {"filter": {word: {word: word}}}),
                ("/store/namespaces", {"prefix": [word[:500]], "suffix": [word[:500]]}),
                ("/threads/search", {"metadata": {"text": word}}),
                ("/threads/search", {"metadata": {word[:500]: {word[:500]: [word]}}}),
                ("/threads/search", {"sort_by": word, "sort_order": word}),
                ("/threads/search", {"select": [word], "status": word}),
                ("/assistants/search", {"name": word, "metadata": {"x": word}})):
            reply = peer.post(path, body)
            assert reply.status in (200, 400, 422), (path, word[:40], reply.text[:300])
    for limit, offset in ((10**18, 0), (10, 10**18), (-1, 0), (0, -1), (1e999, 0), ("x", None)):
        body = json.dumps({"limit": limit, "offset": offset}).replace("Infinity", "1e400").encode()
        for path in ("/threads/search", "/store/items/search", "/assistants/search"):
            reply = peer.call("POST", path, body, headers={"Content-Type": "application/json"})
            assert reply.status in (200, 400, 422), (path, body, reply.text)
    assert time.monotonic() - began < 20
    found = peer.post("/threads/search", {"metadata": {"text": "' OR 1=1 --"}})
    assert found.json == []
