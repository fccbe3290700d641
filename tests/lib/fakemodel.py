# SPDX-License-Identifier: MIT
"""A model provider on loopback that says what a test has written, in four wire formats.

    with FakeModel([
        {"calls": [{"name": "execute_code", "arguments": {"code": "print(1)"}}]},
        {"text": "It printed 1."},
    ]) as model:
        ...  # settings: model.url("openai"), or "anthropic", "google_genai", "ollama"
        assert model.requests[1].last["role"] == "tool"

The format follows from the path: /chat/completions (openai), /messages (anthropic),
:streamGenerateContent (google_genai), /api/chat (ollama); whatever stands before it is taken.

**A script** is a list of turns, one for each request as they arrive; or, with `by_conversation`,
the turn whose number is that of the answers already in the request (so many conversations may run
at once; a script that ends begins again); or a function that gets the Request and returns a turn.
`rules` (the default) is such a function: it obeys the last message, see there.

**A turn** is a dictionary, everything in it optional:

    text, reasoning   a string (sent in small pieces) or a list of pieces, each a string, or
                      {"wait": NAME}: until model.release(NAME); or {"sleep": SECONDS}
    calls             [{"name": ..., "arguments": {...} or any text, "id": ...}]; id None: none is
                      sent; without one it is made up. `pieces`: how many its arguments come in
    order             which of "reasoning", "text", "calls" comes when (default: that order)
    usage             {"input": 11, "output": 7, "cache_read": 0, "reasoning": 0}; None: not sent
    finish            "stop", "tool_calls", "length", "content_filter" (default: by the calls)
    model             the name that is reported (default: what was asked for)
    delay             seconds before each piece

or a fault:

    status, headers   answer this status; `message` is the provider's text, `body` the whole body
    fault             one of FAULTS below; with text and calls it comes in the middle of them

A Request (see modelwire.py) that the client leaves early has `closed` set. Nothing here sleeps
unless it is told to.

As a program (for benches):  fakemodel.py [--port P] [--script FILE.json] [--key KEY]
FILE.json is a list of turns, used by conversation. It prints its address and serves until killed.
"""

import argparse
import contextlib
import gzip
import itertools
import json
import select
import socket
import socketserver
import sys
import threading
import time

from modelwire import WRITERS, Request, decoded, dump

FAULTS = {
    "hang": "never answers, or no further",
    "close": "closes the connection without a reply",
    "cut": "closes it after half of the stream, without its end",
    "error_event": "reports an error in the stream, in the format's own way",
    "no_end": "ends the body well, but without the stream's last events",
    "invalid_sse": "lines that are no events, and data that is no JSON",
    "half_json": "an event whose JSON is cut, then the end",
    "not_utf8": "text of bytes that are no UTF-8",
    "gzip": "a compressed body, though nobody asked for one",
    "redirect": "302 to `to` (default: another host)",
    "endless": "text without end (`bytes`: after so many the connection closes; 10 GB)",
    "endless_line": "one line without end",
    "endless_arguments": "a call whose arguments have no end",
    "endless_comments": "nothing that means anything, without end",
    "endless_headers": "headers without end",
    "html": "a page for people, with status 200",
}

TEN_GB = 10 * 1000**3
PIECE = 8  # characters of a piece of a string


class Gone(Exception):
    """The client has closed its connection, or the test is over."""


RULES = {
    "run": lambda turn, rest: _rule_call(
        turn, "execute_code", {"session_id": "$SESSION", "code": rest.replace("\\n", "\n")}
    ),
    "shell": lambda turn, rest: _rule_call(
        turn, "execute_terminal", {"session_id": "$SESSION", "command": rest}
    ),
    "call": lambda turn, rest: _rule_call(
        turn, rest.partition(" ")[0], decoded(rest.partition(" ")[2] or "{}")
    ),
    "think": lambda turn, rest: turn.update(reasoning=rest),
    "say": lambda turn, rest: turn.setdefault("text", []).append(rest),
    "count": lambda turn, rest: turn.setdefault("text", []).extend(
        f"{i} " for i in range(int(rest))
    ),
    "fault": lambda turn, rest: turn.update(fault=rest),
    "status": lambda turn, rest: turn.update(status=int(rest)),
    "language": lambda turn, rest: turn.update(language=rest),
}


def _rule_call(turn, name, arguments):
    turn.setdefault("calls", []).append({"name": name, "arguments": arguments})


def rules(request):
    """The default script: the lines of the last user message are obeyed, then it is said so.

        run: CODE          call execute_code with CODE (\\n stands for a line end)
        shell: COMMAND     call execute_terminal with COMMAND
        language: NAME     what both run in (python, node, r)
        call: NAME JSON    call any tool with any arguments; several calls are parallel
        think: TEXT        reason first
        say: TEXT          say so
        count: N           say N numbers, each a piece of its own
        fault: NAME        one of FAULTS
        status: N          answer this status

    Where the conversation has no session yet, a turn before makes it. After the results of tools it
    says "Result: " and them; to anything else "You said: ".
    """
    turn, asked = {}, request.last_user_text
    for line in asked.splitlines():
        word, colon, rest = (part.strip() for part in line.partition(":"))
        if colon and word in RULES:
            RULES[word](turn, rest)
    language = turn.pop("language", "python")
    needs = "$SESSION" in dump(turn.get("calls", []))
    made = needs and [c["name"] for c in request.last_calls] == ["create_session"]
    answered = request.last["role"] == "tool"  # else they are of calls that a user has cut short
    if answered and not (made and request.session):
        return {"text": "Result: " + "\n".join(r["text"] for r in request.results)}
    if needs and not request.session:
        return {"calls": [{"name": "create_session", "arguments": {"language": language}}]}
    return turn or {"text": "You said: " + asked}


# ---- the server ----


class Answer:
    """One answer on its connection: sends pieces, waits, and knows when the client has left."""

    def __init__(self, model, sock, request, turn):
        self.fake, self.sock, self.request, self.turn = model, sock, request, turn
        self.writer = WRITERS[request.provider](request, turn)
        self.pending = []  # sent at once, unless somebody has to see them before

    def raw(self, data):
        """Bytes as they are."""
        try:
            self.sock.sendall(data)
        except OSError as e:
            self.request.closed.set()
            raise Gone from e

    def send(self, data):
        """A piece of the chunked body."""
        if data:
            self.pending.append(b"%x\r\n%s\r\n" % (len(data), data))
        if len(self.pending) > 256:
            self.flush()

    def flush(self):
        """What waits goes."""
        if self.pending:
            self.raw(b"".join(self.pending))
            self.pending = []

    def wait(self, event=None, seconds=None):
        """Until the event, or so long; ends early by Gone when the client leaves."""
        self.flush()
        until = None if seconds is None else time.monotonic() + seconds
        while not (event and event.is_set()):
            left = 0.02 if until is None else min(0.02, until - time.monotonic())
            if left <= 0:
                return
            readable, _, _ = select.select([self.sock], [], [], left)
            if self.fake.over.is_set() or (readable and not self.peek()):
                self.request.closed.set()
                raise Gone

    def peek(self):
        """Whether the connection is still there."""
        try:
            return self.sock.recv(1, socket.MSG_PEEK) != b""
        except OSError:
            return False

    # the parts of a turn

    def head(self, status=200, content_type=None, **headers):
        """The status and headers of a chunked body."""
        lines = [f"HTTP/1.1 {status} Status", f"Content-Type: {content_type or 'text/plain'}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.raw("\r\n".join([*lines, "", ""]).encode())

    def whole(self, status, body, headers=None):
        """A body whose length is known."""
        data = body if isinstance(body, bytes) else dump(body).encode()
        kind = "application/json"
        if isinstance(body, str):
            data, kind = body.encode(), "text/plain"
        lines = {"Content-Type": kind, **(headers or {}), "Content-Length": len(data)}
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.raw(f"HTTP/1.1 {status} Status\r\n{text}\r\n".encode() + data)

    def pieces(self, value):
        """The pieces of a text, with the waits in between done."""
        if isinstance(value, str):
            value = [value[i : i + PIECE] for i in range(0, len(value), PIECE)]
        for piece in value:
            if isinstance(piece, str):
                yield piece
            elif "wait" in piece:
                self.fake.gate(piece["wait"]).reached.set()
                self.wait(self.fake.gate(piece["wait"]).open)
            else:
                self.wait(seconds=piece["sleep"])

    def parts(self):
        """All pieces of the turn as bytes, in order."""
        turn, writer = self.turn, self.writer
        yield writer.begin()
        for kind in turn.get("order", ("reasoning", "text", "calls")):
            if kind != "calls" and turn.get(kind):
                yield writer.switch(kind)
                yield from map(getattr(writer, kind), self.pieces(turn[kind]))
            elif kind == "calls":
                for index, call in enumerate(turn.get("calls", [])):
                    yield writer.switch("call")
                    yield from writer.call(index, call)
        yield writer.switch(None)

    def paced(self, parts):
        """Pieces, as fast as the turn wants."""
        for part in parts:
            if self.turn.get("delay"):
                self.wait(seconds=self.turn["delay"])
            self.send(part)

    def stream(self):
        """A turn that is well, up to its fault."""
        self.head(200, self.writer.content_type, Transfer_Encoding="chunked")
        fault, parts = self.turn.get("fault"), filter(None, self.parts())
        if fault:
            listed = list(parts)
            middle = len(listed) if fault == "no_end" else (len(listed) + 1) // 2
            self.paced(listed[:middle])
            self.flush()
            getattr(self, "fault_" + fault)()
            parts = listed[middle:]
        self.paced(parts)
        if fault != "no_end":
            self.send(self.writer.end())
        self.pending.append(b"0\r\n\r\n")
        self.flush()

    def answer(self):
        """The turn, whatever it is. Raises Gone when the connection must end."""
        turn = self.turn
        early = {"hang", "close", "gzip", "redirect", "endless_headers", "endless_line", "html"}
        fault, speaks = turn.get("fault"), any(turn.get(k) for k in ("text", "calls", "reasoning"))
        if fault and fault not in FAULTS:
            raise ValueError(f"no such fault: {fault}")
        if "status" in turn:
            message = turn.get("message", f"the fake model answers {turn['status']}")
            body = turn.get("body", self.writer.error(turn["status"], message))
            self.whole(turn["status"], body, turn.get("headers"))
        elif fault in early and not (fault == "hang" and speaks):
            getattr(self, "fault_" + fault)()
        else:
            self.stream()

    # faults

    def fault_hang(self):
        """Until the client leaves."""
        self.wait()

    def fault_close(self):
        """At once."""
        raise Gone

    fault_cut = fault_close

    def fault_no_end(self):
        """Nothing more."""

    def fault_error_event(self):
        """The format's own, and then no more."""
        self.send(self.writer.failure(self.turn.get("message", "the fake model has failed")))
        self.flush()
        raise Gone

    def fault_invalid_sse(self):
        """Then it goes on as if nothing was."""
        self.send(b"this is no field\n\n:::\nevent\ndata: {not json]\n\n")

    def fault_half_json(self):
        """The beginning of an event."""
        whole = self.writer.text("half of this is missing")
        self.send(whole[: len(whole) // 2] + b"\n\n")

    def fault_not_utf8(self):
        """A piece of text with bytes that nothing allows."""
        self.send(self.writer.text("@@@@").replace(b"@@@@", b"\xff\xfe\xc3("))

    def fault_gzip(self):
        """A bomb: 10 MB of zeros."""
        body = gzip.compress(bytes(10_000_000))
        headers = {"Content-Type": self.writer.content_type, "Content-Encoding": "gzip"}
        self.whole(200, body, headers)

    def fault_redirect(self):
        """To a host that nobody may follow to."""
        to = self.turn.get("to", "http://elsewhere.invalid/v1/chat/completions")
        self.whole(302, "moved", {"Location": to})

    def fault_html(self):
        """What a captive portal says."""
        self.whole(200, b"<!doctype html><title>Sign in</title>", {"Content-Type": "text/html"})

    def flood(self, data):
        """The same bytes until there were enough of them."""
        left = self.turn.get("bytes", TEN_GB)
        while left > 0 and not self.fake.over.is_set():
            self.raw(data)
            left -= len(data)
        raise Gone

    def flood_chunk(self, data):
        """The same as one chunk."""
        self.flood(b"%x\r\n%s\r\n" % (len(data), data))

    def fault_endless(self):
        """Text."""
        self.flood_chunk(self.writer.text("0123456789abcdef" * 4096))

    def fault_endless_arguments(self):
        """A call, in pieces."""
        self.send(self.writer.switch("call"))
        for part in self.writer.call(0, {"name": "execute_code", "arguments": '{"code":"'}):
            self.send(part)
        self.flush()
        self.flood_chunk(self.writer.more(0, "0123456789abcdef" * 4096))

    def fault_endless_comments(self):
        """Comments, or empty lines where there are none."""
        sse_like = self.writer.content_type == "text/event-stream"
        self.flood_chunk((b": still here\n\n" if sse_like else b"\n") * 4096)

    def fault_endless_line(self):
        """One line."""
        self.head(200, self.writer.content_type, Transfer_Encoding="chunked")
        self.send(b'data: {"')
        self.flush()
        self.flood_chunk(b"x" * 65536)

    def fault_endless_headers(self):
        """Headers."""
        self.raw(b"HTTP/1.1 200 OK\r\n")
        self.flood(b"X-More: of this\r\n" * 1024)


class Handler(socketserver.BaseRequestHandler):
    """One connection; requests are read by hand, for speed."""

    def setup(self):
        """No delays."""
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data = b""

    def more(self):
        """Another piece of the request; Gone at its end."""
        piece = self.request.recv(1 << 18)
        if not piece:
            raise Gone
        return piece

    def read(self):
        """One request: its method, target, headers and body."""
        while b"\r\n\r\n" not in self.data:
            self.data += self.more()
        head, _, rest = self.data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        length, parts = int(headers.get("content-length", 0)), [rest]
        have = len(rest)
        while have < length:
            parts.append(self.more())
            have += len(parts[-1])
        rest = b"".join(parts)
        self.data = rest[length:]
        method, target, _ = first.split(" ")
        return method, target, headers, rest[:length]

    def handle(self):
        """Requests until one of us ends it."""
        with contextlib.suppress(Gone, OSError):
            while not self.server.fake.over.is_set():
                self.server.fake.answer(self.request, *self.read())


class Server(socketserver.ThreadingTCPServer):
    """A thread for each connection."""

    allow_reuse_address = daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def handle_error(self, request, client_address):
        """A defect of a script: the test must see it."""
        self.fake.errors.append(sys.exc_info()[1])
        super().handle_error(request, client_address)


class Gate:
    """A place in a turn: `reached` once an answer waits there, `open` lets it pass."""

    def __init__(self):
        self.reached, self.open = threading.Event(), threading.Event()


class FakeModel:
    """The server. `requests` lists what was asked; `errors` what went wrong in a script.

    key: what a request must bear, else 401. images: False refuses those with an image by 400.
    by_conversation: see the top of this file. keep: False keeps no requests (for benches).
    """

    def __init__(
        self, script=rules, port=0, key=None, images=True, by_conversation=False, keep=True
    ):
        self.script, self.wanted_key, self.takes_images = script, key, images
        self.by_conversation, self.keep = by_conversation, keep
        self.requests, self.errors, self._gates = [], [], {}
        self._count, self._lock = itertools.count(), threading.Condition()
        self.over = threading.Event()
        self.server = Server(("127.0.0.1", port), Handler)
        self.server.fake = self
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Stop serving; what hangs is let go."""
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

    def url(self, provider="openai"):
        """The base URL to configure."""
        return f"http://127.0.0.1:{self.port}" + ("/v1" if provider == "openai" else "")

    # synchronisation

    def gate(self, name):
        """The gate of this name."""
        with self._lock:
            return self._gates.setdefault(name, Gate())

    def reached(self, name, timeout=30):
        """Wait until an answer waits at {"wait": name}; whether one does."""
        return self.gate(name).reached.wait(timeout)

    def release(self, name):
        """Let all pass that wait or will wait there."""
        self.gate(name).open.set()

    def wait_requests(self, count, timeout=30):
        """Wait until so many requests have come; the list of them."""
        with self._lock:
            if not self._lock.wait_for(lambda: len(self.requests) >= count, timeout):
                raise AssertionError(f"only {len(self.requests)} of {count} requests came")
            return list(self.requests)

    # answers

    def turn(self, request):
        """What the script says to this request."""
        if callable(self.script):
            return self.script(request)
        if self.by_conversation:
            return self.script[request.answers % len(self.script)]
        if request.number < len(self.script):
            return self.script[request.number]
        return {"status": 400, "message": f"the script has no turn {request.number}"}

    def refusal(self, request):
        """A turn for a request that no script has to see, or None."""
        if self.wanted_key is not None and request.key != self.wanted_key:
            return {"status": 401, "message": "this key is not valid"}
        if not self.takes_images and request.images:
            return {"status": 400, "message": "this model does not support image input"}
        return None

    def answer(self, sock, method, target, headers, raw):
        """One request."""
        request = Request(0, method, target, headers, raw)
        if request.provider is None or method != "POST":
            self.answer_other(sock, request)
            return
        with self._lock:
            request.number = next(self._count)
            if self.keep:
                self.requests.append(request)
            self._lock.notify_all()
        Answer(self, sock, request, self.refusal(request) or self.turn(request)).answer()

    def answer_other(self, sock, request):
        """Lists of models, where a client looks for them; else 404."""
        path = request.path
        body, status = {"error": {"message": f"no such path: {path}"}}, 404
        if request.method == "GET" and path.endswith("/models"):
            body, status = {"object": "list", "data": [{"id": "fake", "object": "model"}]}, 200
        elif request.method == "GET" and path.endswith("/api/tags"):
            body, status = {"models": [{"name": "fake", "model": "fake"}]}, 200
        data = dump(body).encode()
        sock.sendall(
            f"HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n\r\n".encode()
            + data
        )


def main():
    """Serve until killed."""
    parser = argparse.ArgumentParser(description="A fake model provider.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", help="a JSON file with a list of turns")
    parser.add_argument("--key", help="what requests must bear")
    options = parser.parse_args()
    script = rules
    if options.script:
        with open(options.script, encoding="utf-8") as file:
            script = json.load(file)
    model = FakeModel(script, options.port, options.key, by_conversation=True, keep=False)
    print(f"http://127.0.0.1:{model.port}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()
    model.close()


if __name__ == "__main__":
    main()
