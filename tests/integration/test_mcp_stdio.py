# SPDX-License-Identifier: MIT
"""MCP over stdio, line by line: what stdout holds, how it ends, and what hostile input does."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import mcpstdio
import pytest

ERAS = ("legacy", "modern")
MIB = 1 << 20
FORGED = '{"jsonrpc":"2.0","id":1,"result":{"forged":true}}'
SLEEP = "import time; time.sleep(300)"


@pytest.fixture
def state(tmp_path_factory):
    """A state directory of its own."""
    return tmp_path_factory.mktemp("mcp")


@pytest.fixture(params=ERAS)
def era(request):
    """One of the protocol's two eras."""
    return request.param


@pytest.fixture
def start(state):
    """Starts servers that are ready for calls; ends them, and looks at stdout and what is left."""
    servers = []

    def make(era="legacy", *words, **options):
        server = mcpstdio.Server(state, *words, era=era, **options)
        servers.append(server)
        if era == "legacy":
            server.initialize()
        return server

    yield make
    ids = set()
    for server in servers:
        ids |= server.session_ids
        if server.process.poll() is None:
            server.end_input()
            server.wait(20)
        server.check()
    mcpstdio.assert_nothing_left(state, ids, within=2)


def plain(payload):
    """Return the text of a cell's value."""
    return (payload["result"] or {}).get("text/plain")


def end(server, within=2.0):
    """End of input; the process has to be gone, and all it owned, within some seconds."""
    begin = time.monotonic()
    server.end_input()
    status, _ = server.wait(20)
    mcpstdio.assert_nothing_left(server.state_dir, server.session_ids,
                                 within=max(0, begin + within - time.monotonic()))
    took = time.monotonic() - begin
    server.check()
    assert took <= within + 0.3, f"{took:.2f} s from the end of input to the end of everything"
    assert status == 0, server.stderr[-2000:].decode()


def high_water(server):
    """Return the largest resident size of a server so far, in MiB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


# ---- case 44: stdout


NOISE = {
    "python": [
        f"print('{FORGED}')",
        f"import os; os.write(1, b'{FORGED}\\n'); os.write(2, b'x\\n')",
        "import sys; sys.stdout.write('no newline'); sys.stderr.write('\\x1b[31m')",
        "os.system('echo child; echo child >&2')",
        "os.write(1, bytes(range(256)))",
        "print('\\u2028\\u2029\\x00\\ud800'.encode('utf-8', 'surrogatepass'))",
        "import ctypes; ctypes.CDLL(None).puts(b'from C')",
        "import warnings; warnings.warn('careful')",
        "1/0",
        "def f(:",
        "import subprocess, threading\n"
        "threading.Timer(0.3, lambda: print('late')).start()",
        "import time; time.sleep(0.5)",
    ],
    "node": [
        f"console.log('{FORGED}'); console.error('x'); process.stdout.write('y')",
        "require('fs').writeSync(1, '{\"jsonrpc\":\"2.0\"}\\n')",
        "setTimeout(() => console.log('late'), 100); await new Promise(r => setTimeout(r, 300))",
        "Promise.reject(new Error('nobody cares')); 1",
        "throw new Error('thrown')",
    ],
    "r": [
        f"cat('{FORGED}\\n'); message('a message'); print('ü')",
        "warning('careful'); system('echo child; echo child >&2')",
        "stop('stopped')",
        "write('to stderr', stderr())",
    ],
}
DEATHS = {
    "python": "import os; os._exit(5)",
    "node": "process.kill(process.pid, 'SIGKILL')",
    "r": "tools::pskill(Sys.getpid(), 9)",
}


def test_case_44_stdout_is_only_json_rpc(start, era):
    """Whatever user code writes and however kernels end, with all that the log can say."""
    server = start(era, settings={"SANDBOX_LOG": "debug"})
    for language, cells in NOISE.items():
        session = server.create(language)
        for cell in cells:
            payload = server.execute(session, cell)
            assert payload["state"] == "kept", (cell, payload)
        server.call("execute_terminal", {
            "session_id": session,
            "command": f"echo '{FORGED}'; (sleep 1; echo late) & echo x >&2; cat /dev/zero |"
                       " head -c 5000"})
        died = server.execute(session, DEATHS[language])
        assert died["status"] == "died" and died["state"] == "lost", died
        server.execute(session, "1")
    forged = [m for m in server.messages if isinstance(m.get("result"), dict)
              and "forged" in m["result"]]
    assert not forged, "user code answered a request"
    end(server)


def test_case_44_an_image_build_that_fails(start, state):
    """What a build's programs print stays away from stdout, and the tool says what was wrong."""
    server = start(settings={"SANDBOX_IMAGE_DIR": state / "no-images", "PATH": "/nonexistent"})
    result = server.call("create_session", {"language": "node"})
    assert result["isError"] and not result["structuredContent"]["success"]
    assert "image" in result["structuredContent"]["error"]
    assert str(state) not in json.dumps(result), "a path of the host"
    end(server)


def test_case_44_the_end_with_work_under_way(start, era):
    """Cells, commands and children run, and a call is queued, when the input ends."""
    server = start(era)
    one, two = server.create(), server.create("node")
    server.start_call("execute_code", {"session_id": one, "code": SLEEP, "timeout": 300})
    server.start_call("execute_code", {"session_id": one, "code": "1"})
    server.start_call("execute_terminal", {
        "session_id": two, "command": "setsid sleep 300 & trap '' TERM INT; sleep 300"})
    server.start_call("execute_code", {"session_id": two, "code": "for (;;) {}", "timeout": 300})
    time.sleep(1)
    end(server)


def test_the_end_before_anything(state):
    server = mcpstdio.Server(state)
    assert server.close() < 2 and not server.lines
    mcpstdio.assert_nothing_left(state)


def test_signals_end_it_too(state):
    for number in (signal.SIGTERM, signal.SIGINT):
        server = mcpstdio.Server(state)
        server.initialize()
        session = server.create()
        server.start_call("execute_code", {"session_id": session, "code": SLEEP})
        time.sleep(0.5)
        server.process.send_signal(signal.SIGUSR1)  # which is for the server's own use
        time.sleep(0.1)
        server.process.send_signal(number)
        server.wait(5)
        server.check()
        mcpstdio.assert_nothing_left(state, server.session_ids, within=2)


def test_keep_sessions_lets_them_live(start, state):
    first = start("legacy", "--keep-sessions")
    session = first.create()
    first.execute(session, "x = 41")
    first.end_input()
    assert first.wait(10)[0] == 0
    assert mcpstdio.remains(state, {session})
    second = start("modern")
    assert session in json.dumps(second.call("list_sessions")["structuredContent"])
    assert plain(second.execute(session, "x + 1")) == "42"
    second.session_ids.add(session)
    end(second)


def test_the_conversation_is_remembered(start, state):
    """The thread's id is kept as the reference keeps it, and is the same the next time."""
    found = []
    for _ in range(2):
        server = start()
        server.create()
        end(server)
        path = state / "xdg/sandbox-agent/mcp-thread.json"
        found.append(json.loads(path.read_text())["thread_id"])
        assert path.stat().st_mode & 0o077 == 0
    assert found[0] == found[1] and len(found[0]) == 36


# ---- API-29: input that is not what it should be


GARBAGE = [
    b"\n", b" \t\r\n", b"hello\n", b"\x00\x01\x02\n", b"\xff\xfe{\n", b"{\n", b"[]\n", b"[1]\n",
    b"null\n", b"7\n", b'"text"\n', b"{}\n", b'{"jsonrpc":"1.0","id":1,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":1}\n', b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":1,"method":7}\n',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":1}\n',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}\n',
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n',
    b'{"jsonrpc":"2.0","id":"unasked","result":{}}\n',
    b'{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m"}}\n',
    b'{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"m"}}\n',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled"}\n',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}\n',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"none"}}\n',
    b'{"jsonrpc":"2.0","method":"notifications/none","params":{"a":1}}\n',
    b'{"jsonrpc":"2.0","method":"' + b"m" * 5000 + b'"}\n',
    b'{"jsonrpc":"2.0","id":"' + b"i" * 5000 + b'","method":"ping"}\n',
]


def ping(server):
    """Ask for any answer that both eras have."""
    return server.request("ping" if server.era == "legacy" else "tools/list")


def test_api_29_garbage_is_answered_and_skipped(start, era):
    server = start(era)
    for line in GARBAGE:
        server.send_bytes(line)
        assert ping(server) is not None, line
    errors = [m for m in server.messages if "error" in m]
    assert errors and all(isinstance(m["error"]["code"], int) and m["error"]["message"]
                          and len(json.dumps(m)) < 2000 for m in errors)
    assert {m["error"]["code"] for m in errors} <= {-32700, -32600, -32601, -32602}
    assert len(errors) <= len(GARBAGE)


def test_api_29_a_line_of_100_mib(start, era):
    """It is refused, not kept; what follows is served."""
    server = start(era)
    ping(server)
    before = high_water(server)
    server.send_bytes(b'{"jsonrpc":"2.0","id":999,"method":"ping","params":{"x":"')
    for _ in range(100):
        server.send_bytes(b"a" * MIB)
    server.send_bytes(b'"}}\n')
    error = server.expect(lambda m: "error" in m, 60)["error"]
    assert error["code"] in (-32700, -32600)
    assert ping(server) is not None
    assert high_water(server) - before < 100


def test_api_29_utf_8_in_pieces(start, era):
    server = start(era)
    session = server.create()
    message = json.dumps({
        "jsonrpc": "2.0", "id": "päckchen-中", "method": "tools/call",
        "params": {"name": "execute_code",
                   "arguments": {"session_id": session, "code": "'é中😀' + 'x'"}}
        | ({"_meta": server.meta()} if era == "modern" else {})}, ensure_ascii=False).encode()
    for i in range(len(message)):
        server.send_bytes(message[i:i + 1])
    server.send_bytes(b"\r\n")
    assert plain(server.result("päckchen-中")["structuredContent"]) == "'é中😀x'"


@pytest.mark.parametrize("rest", [b"", b"{", b'{"jsonrpc":"2.0","id":5,"method":"ping"}',
                                  b"\xe4\xb8"])
def test_api_29_the_end_inside_of_a_line(start, era, rest):
    """The last line may lack its newline; a piece of one does no harm."""
    server = start(era)
    server.create()
    server.send_bytes(rest)
    end(server)


@pytest.mark.parametrize("how", ["leaves", "closes", "half-closes", "signals"])
def test_api_29_nobody_reads(state, how):
    """A client that closed its end of stdout is gone; one that only stopped reading keeps no end
    of input from being the end, nor a signal."""
    read_end, write_end = os.pipe()
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [mcpstdio.AGENT, "mcp"], stdin=theirs, stdout=write_end,
        stderr=subprocess.DEVNULL, env=mcpstdio.environment(state))
    theirs.close()
    os.close(write_end)
    if how == "leaves":
        os.close(read_end)
    try:
        for number in range(40):
            line = {"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": {
                "_meta": {f"{mcpstdio.META}protocolVersion": mcpstdio.MODERN,
                          f"{mcpstdio.META}clientCapabilities": {}}}}
            try:
                ours.sendall(json.dumps(line).encode() + b"\n")
            except (BrokenPipeError, ConnectionResetError):
                break
            time.sleep(0.01)
        begin = time.monotonic()
        if how == "signals":
            process.terminate()
        elif how == "half-closes":
            ours.shutdown(socket.SHUT_WR)
        else:
            ours.close()
        process.wait(10)
        assert time.monotonic() - begin < 2.5
        assert process.returncode >= 0, "killed by a signal"
    finally:
        process.kill()
        process.wait()
        ours.close()
        if how != "leaves":
            os.close(read_end)
    mcpstdio.assert_nothing_left(state, within=2)


def test_api_29_the_parent_dies(state):
    """A client that is killed leaves no server and no sandbox behind."""
    script = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); import mcpstdio\n"
        "s = mcpstdio.Server(sys.argv[2]); s.initialize(); i = s.create()\n"
        "s.start_call('execute_code', {'session_id': i, 'code': 'import time; time.sleep(99)'})\n"
        "time.sleep(0.5); print(s.process.pid, i, flush=True); time.sleep(99)\n")
    with subprocess.Popen(
            [sys.executable, "-c", script, Path(mcpstdio.__file__).parent, state],
            stdout=subprocess.PIPE, text=True) as parent:
        pid, session = parent.stdout.readline().split()
        assert mcpstdio.remains(state, {session})
        parent.kill()
    mcpstdio.assert_nothing_left(state, {session}, within=2)
    deadline = time.monotonic() + 2
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{pid}")


# ---- API-01, API-02: JSON


def escapes():
    """Yield texts of strings that JSON has."""
    for letter in '"\\/bfnrt':
        yield f'"\\{letter}"'
    for code in ("0041", "00e9", "4e2d", "FFFD", "fffe", "ffff", "d83d\\uDE00", "0000", "001f",
                 "007F", "2028", "abCD"):
        yield f'"\\u{code}"'


ACCEPT = [
    # numbers
    *"0 -0 1 -1 9 10 123456789 0.0 -0.0 0.1 1.5 -1.5 1e1 1E1 1e+1 1e-1 1E+1 1E-1 0e1 0e+1 0E-1"
    " 1.0e10 -1.25e-7 0e0 123e65 1e22 1e-400 4.9e-324 1.7976931348623157e308 2147483648"
    " 9007199254740993 9223372036854775807 -9223372036854775808 9223372036854775808"
    " 18446744073709551615 18446744073709551616 100000000000000000000000000000".split(),
    # literals
    "true", "false", "null",
    # strings
    '""', '" "', '"a"', '"é"', '"中"', '"😀"', '"\x7f"', '"\u2028\u2029"', '"\ufffe\uffff"',
    '"/"', "\"'\"", '"[{,:}]"', '"// no comment"', '"' + "x" * 70000 + '"', *escapes(),
    # arrays and objects
    "[]", "[ ]", "[\t]", "[\r]", "[[]]", "[[],[]]", "[1]", "[1,2]", "[ 1 , 2 ]", "[null,1,\"a\"]",
    "[[[[[[[[]]]]]]]]", "[" * 60 + "]" * 60, "[" + ",".join("0" * 5000) + "]",
    "{}", "{ }", '{"a":1}', '{"a":{}}', '{"":0}', '{"a":1,"b":2}', '{ "a" : 1 }', '{"a":[]}',
    '{"\\u0061":1}', '{"a":1,"A":1}', '{"é":"ü"}', '{"a":{"a":1}}', '[{"a":1},{"a":1}]',
    # white space around
    " 1", "1 ", "\t1\t", "\r1\r",
]


BROKEN_NUMBERS = """+1 - 01 -01 00 1. .1 -.1 1.e1 1e 1e+ 1e- 1E 1ee1 1e1.5 1.2.3 1+2 1-2 0x1 0x
    0b1 0o7 1_000 1'000 -1x 1a NaN nan -NaN Infinity -Infinity +Infinity inf -inf Inf ١ １ −1 1e999
    -1e999 ½ 1.. ..1 --1 +-1 e1 E1 .e1 -e1 0e 0e+ 1l 1n 1f""".split()


def broken_strings():
    """Yield texts that are strings in some languages, or nearly."""
    yield from ('"', '"a', 'a"', "'a'", "''", "`a`", "a", '"\\"', '"\\', '"\\x41"', '"\\a"',
                '"\\0"', '"\\v"', '"\\\'"', '"\\ "', '"\\u"', '"\\u0"', '"\\u00"', '"\\u004"',
                '"\\u004g"', '"\\u{41}"', '"\\U0041"', '"\\u 041"', '"\\ud800"', '"\\udc00"',
                '"\\ud800\\ud800"', '"\\ud800x"', '"\\udc00\\ud800"', '"\\ud800\\u0041"',
                '"\\ud83d\\"', '"a" "b"', '"a"b', '"a"+"b"', '"""a"""', "“a”", 'u"a"', 'r"a"',
                "\\u0022a\\u0022", '"\\N{DASH}"')
    for code in (*range(0, 0x0A), *range(0x0B, 0x20)):
        yield f'"{chr(code)}"'


BROKEN_BYTES = [
    b'"\x80"', b'"\xbf"', b'"\xc0\x80"', b'"\xc1\xbf"', b'"\xc3"', b'"\xc3("', b'"\xe4\xb8"',
    b'"\xe4"', b'"\xed\xa0\x80"', b'"\xed\xbf\xbf"', b'"\xe0\x80\x80"', b'"\xf0\x80\x80\x80"',
    b'"\xf0\x9f\x98"', b'"\xf4\x90\x80\x80"', b'"\xf5\x80\x80\x80"', b'"\xf8\x88\x80\x80\x80"',
    b'"\xfc"', b'"\xfe"', b'"\xff"', b'"\xff\xfe"', b"\xc2\xa0", b"\xef\xbb\xbf1", b"\x001",
    b"1\x00", b"\x0c1", b"\x0b1", b"\xa01", b"\xe2\x80\x831", b"\xe9", b'{"\xff":1}', b"\x00",
]
BROKEN = [
    "", "- 1", "1 2", "(1)", *BROKEN_NUMBERS, *broken_strings(),
    # literals
    *"True False None TRUE NULL nul tru fals truee nulll undefined void yes t n".split(),
    # arrays
    *"[ ] [1,] [,] [,1] [1,,2] [1;2] [1:2] [[] []] [} [) [1,2 [1]] [1][2] [[1] [1],".split(),
    "[1 1]", "[1 true]", "[,,]", "[1] [2]",
    "[" * 100000, "[" * 100000 + "]" * 100000, '{"a":' * 100000 + "1" + "}" * 100000,
    # objects
    "{", "}", "{]", '{"a"}', '{"a":}', "{:1}", "{1:1}", "{a:1}", "{'a':1}", '{"a":1,}', "{,}",
    '{,"a":1}', '{"a":1,,"b":2}', '{"a" 1}', '{"a"=1}', '{"a"=>1}', '{"a":1;"b":2}',
    '{"a":1 "b":2}', '{"a"::1}', '{"a":1:2}', "{null:1}", "{true:1}", "{[]:1}", "{{}:1}",
    '{"a":1}}', '{"a":1}{', '{"a":1}[]', '{"a":1}1', "{...a}", '{"a":1,"a":2}',
    '{"a":1,"\\u0061":2}', '{"a":{"b":1,"b":1}}', '[{"a":1,"a":1}]', '{"":1,"":2}',
    # comments and more
    "1//x", "1/*x*/", "/*x*/1", "1#x", "#1", "1;", "1,2", "<1>", "@1", "$1", "1%", "new Date()",
    "function(){}", "1;alert(1)", "!1", "~1", "*", "&", "|", "\\", "?",
]


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    """Tells whether the server takes a text for JSON, as the value of a parameter."""
    server = mcpstdio.Server(tmp_path_factory.mktemp("json"))
    server.initialize()
    count = 0

    def call(value):
        nonlocal count
        count += 1
        server.send_bytes(b'{"jsonrpc":"2.0","id":"c%d","method":"ping","params":{"x":' % count
                          + value + b"}}\n")
        answer = server.expect(lambda m: m.get("id") in (None, f"c{count}"), 20)
        if "error" in answer:
            assert answer["error"]["code"] in (-32700, -32600), answer
            return False
        assert answer["id"] == f"c{count}" and answer["result"] == {}
        return True

    yield call
    server.close()


def test_api_01_what_is_json_is_accepted(judge):
    assert len(ACCEPT) >= 95 and len(set(ACCEPT)) == len(ACCEPT)
    assert [text[:40] for text in ACCEPT if not judge(text.encode())] == []


def test_api_01_what_is_not_json_is_refused(judge):
    broken = [text.encode() for text in BROKEN] + BROKEN_BYTES
    assert len(broken) >= 223 and len(set(broken)) == len(broken)
    assert [text[:40] for text in broken if judge(text)] == []


def test_api_02_depth(judge):
    """No more than 64 values inside each other; the message itself is two of them."""
    assert judge(b"[" * 62 + b"]" * 62)
    assert not judge(b"[" * 63 + b"]" * 63)
    assert judge(b'{"a":' * 62 + b"1" + b"}" * 62)
    assert not judge(b'{"a":' * 63 + b"1" + b"}" * 63)


def test_api_02_numbers_reach_the_tools_whole(start, era):
    """Integers at the edges are no other numbers, and what fits no integer is refused by name."""
    server = start(era)
    session = server.create()
    for text, ok in (("5", True), ('"5"', True), ("5.0", True), ("5e0", True), ("5.5", False),
                     ("-0", False), ("0", False), ("301", False), ("9223372036854775808", False),
                     ("18446744073709551621", False), ("4294967301", False), ("true", False),
                     ('"5 "', None), ("[5]", False), ('"0x5"', False), ("null", True)):
        arguments = json.loads(f'{{"timeout": {text}}}') | {"session_id": session, "code": "1"}
        payload = server.call("execute_code", arguments)["structuredContent"]
        if ok is None:
            continue
        assert payload["success"] is ok, (text, payload)
        if not ok:
            assert payload["error"] == "INVALID_INPUT", (text, payload)
            assert payload["details"][0]["loc"] == ["timeout"], payload


# ---- API-30: arguments of tools


def test_api_30_arguments_that_are_no_arguments(start, era):
    server = start(era)
    for params in ({}, {"name": 5}, {"name": None}, {"name": ""}, {"name": "no_such_tool"},
                   {"name": "x" * 100000}, {"name": "list_sessions", "arguments": []},
                   {"name": "list_sessions", "arguments": "{}"},
                   {"name": "list_sessions", "arguments": 1}, {"arguments": {}}):
        with pytest.raises(mcpstdio.RpcError) as error:
            server.request("tools/call", params)
        assert error.value.code == -32602, params
        assert len(str(error.value)) < 1000


def test_api_30_wrong_and_more_arguments_are_for_the_model_to_mend(start, era):
    server = start(era)
    session = server.create()
    wrong = [
        ("execute_code", {}, {"session_id", "code"}),
        ("execute_code", {"session_id": 5, "code": []}, {"session_id", "code"}),
        ("execute_code", {"session_id": session, "code": None}, {"code"}),
        ("execute_code", {"session_id": "", "code": ""}, {"session_id", "code"}),
        ("execute_code", {"session_id": {"$ref": "http://127.0.0.1:1/x"}, "code": "1"},
         {"session_id"}),
        ("execute_terminal", {"session_id": session, "command": {}}, {"command"}),
        ("import_files", {"session_id": session, "files": {}}, {"files"}),
        ("import_files", {"session_id": session, "files": []}, {"files"}),
        ("import_files", {"session_id": session, "files": [5]}, {"files"}),
        ("export_files", {"session_id": session, "files": [{"source": ""}]}, {"files"}),
        ("stop_session", {"session_id": None}, {"session_id"}),
    ]
    for name, arguments, fields in wrong:
        result = server.call(name, arguments)
        payload = result["structuredContent"]
        assert result["isError"] and not payload["success"], (name, arguments)
        assert payload["error"] == "INVALID_INPUT", (name, arguments, payload)
        assert {detail["loc"][0] for detail in payload["details"]} == fields, payload
    payload = server.execute(session, "6 * 7", nonsense=1, _x={"a": [1]})
    assert plain(payload) == "42"


def test_api_30_huge_arguments_are_bounded(start, era):
    server = start(era)
    session = server.create()
    for name, arguments in (
            ("execute_code", {"session_id": "x" * (8 * MIB), "code": "1"}),
            ("execute_code", {"session_id": session, "code": 7, "x" * MIB: "y" * MIB}),
            ("export_files", {"session_id": session, "files": [{"source": "f"}] * 50000}),
            ("import_files", {"session_id": session, "files": [{"source": "/x"}] * 50000}),
            ("import_files", {"session_id": session, "files": [7] * 50000}),
            ("create_session", {"dependencies": {f"p{i}": "" for i in range(20000)}})):
        begin = time.monotonic()
        result = server.call(name, arguments)
        assert result["isError"], (name, str(result)[:500])
        assert time.monotonic() - begin < 20
        assert max(map(len, server.lines)) < 4 * MIB
    payload = server.execute(session, "len('" + "x" * (4 * MIB) + "')")
    assert plain(payload) == str(4 * MIB)
    assert high_water(server) < 400


def test_api_30_schemas_name_nothing_remote(start, era):
    """No $ref leads out of a schema, and the list is the same each time."""
    server = start(era)
    lists = [server.request("tools/list")["tools"] for _ in range(3)]
    assert lists[0] == lists[1] == lists[2]

    def refs(value):
        if isinstance(value, dict):
            yield from (v for k, v in value.items() if k in ("$ref", "$dynamicRef"))
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                yield from refs(item)

    assert all(str(ref).startswith("#") for ref in refs(lists[0]))


# ---- case 66 and the eras


@pytest.mark.parametrize(("asked", "given"), [
    ("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2025-03-26", "2025-03-26"),
    ("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25"), ("", "2025-11-25"),
    ("2026-07-28", "2025-11-25"), ("9999-99-99", "2025-11-25")])
def test_case_66_versions_of_the_legacy_era(state, asked, given):
    with mcpstdio.Server(state) as server:
        result = server.initialize(asked)
        assert result["protocolVersion"] == given
        assert result["serverInfo"]["name"] == "sandbox-agent" and result["capabilities"]["tools"]
        assert len(server.request("tools/list")["tools"]) == 8


def test_case_66_requests_before_the_handshake(state):
    with mcpstdio.Server(state) as server:
        assert server.request("ping") == {}
        for method in ("tools/list", "resources/list", "logging/setLevel"):
            with pytest.raises(mcpstdio.RpcError) as error:
                server.request(method)
            assert error.value.code in (-32600, -32602), method
        server.send({"jsonrpc": "2.0", "id": "a", "method": "initialize"})
        assert "error" in server.response("a")
        server.initialize()
        assert server.request("tools/list")["tools"]
        assert server.request("ping") == {}


def test_case_66_discover_first(state):
    with mcpstdio.Server(state, era="modern") as server:
        result = server.request("server/discover")
        assert mcpstdio.MODERN in result["supportedVersions"] and result["capabilities"]["tools"]
        assert result["resultType"] == "complete"
        assert result["ttlMs"] >= 0 and result["cacheScope"] in ("public", "private")
        result = server.request("tools/list")
        assert len(result["tools"]) == 8 and result["resultType"] == "complete"
        with pytest.raises(mcpstdio.RpcError) as error:
            server.request("ping")
        assert error.value.code == -32601


def test_case_66_a_version_that_nobody_has_and_then_the_handshake(state):
    with mcpstdio.Server(state) as server:
        meta = {f"{mcpstdio.META}protocolVersion": "2099-01-01",
                f"{mcpstdio.META}clientCapabilities": {}}
        for method in ("server/discover", "tools/list"):
            with pytest.raises(mcpstdio.RpcError) as error:
                server.request(method, meta=meta)
            assert error.value.code == -32022
            assert error.value.data["requested"] == "2099-01-01"
            assert mcpstdio.MODERN in error.value.data["supported"]
        assert server.initialize()["protocolVersion"] == mcpstdio.LEGACY
        assert server.request("tools/list")["tools"]


def test_case_66_modern_requests_carry_their_meta(state):
    with mcpstdio.Server(state, era="modern") as server:
        server.request("server/discover")
        version, capabilities = (f"{mcpstdio.META}{name}"
                                 for name in ("protocolVersion", "clientCapabilities"))
        for meta in (None, {}, {version: mcpstdio.MODERN}, {capabilities: {}}, [], "x",
                     {version: 5, capabilities: {}}, {version: mcpstdio.MODERN, capabilities: 5}):
            params = {} if meta is None else {"_meta": meta}
            server.send({"jsonrpc": "2.0", "id": "m", "method": "tools/list", "params": params})
            assert server.response("m")["error"]["code"] == -32602, meta
        assert server.request("tools/list")["tools"]


def test_an_id_of_every_kind_comes_back(start):
    server = start()
    for request_id in (0, -1, 2**53, -(2**63), 2**63 - 1, "", "0", "é中", "a" * 200, "\x00\x1f"):
        server.send({"jsonrpc": "2.0", "id": request_id, "method": "ping"})
        answer = server.expect(lambda m: "result" in m or "error" in m)
        assert answer["id"] == request_id and type(answer["id"]) is type(request_id)


# ---- cases 8, 38, 45: calls under way


def test_case_08_progress_only_for_who_asked(start):
    """Two long cells at once in each era, one with a token and one without."""
    servers = [start(era) for era in ERAS]
    sessions = [(server.create(), server.create()) for server in servers]
    code = "import time; time.sleep(45); 'done'"
    calls = [[server.start_call("execute_code", {"session_id": session, "code": code,
                                                 "timeout": 90}, meta)
              for session, meta in zip(pair, ({}, {"progressToken": "p1"}), strict=True)]
             for server, pair in zip(servers, sessions, strict=True)]
    moments = {server: [time.monotonic()] for server in servers}
    deadline = time.monotonic() + 60
    while any(server.process.poll() is None and time.monotonic() < deadline
              and not any(m.get("id") == loud for m in server.messages)
              for server, (_, loud) in zip(servers, calls, strict=True)):
        for server in servers:
            if len(server.notifications("notifications/progress")) >= len(moments[server]):
                moments[server].append(time.monotonic())
        time.sleep(0.2)
    for server, (quiet, loud) in zip(servers, calls, strict=True):
        for call in (loud, quiet):
            assert plain(server.result(call)["structuredContent"]) == "'done'"
        seen = server.notifications("notifications/progress")
        assert {p["progressToken"] for p in seen} == {"p1"} and len(seen) >= 2
        values = [p["progress"] for p in seen]
        assert all(a < b for a, b in zip(values, values[1:], strict=False))
        times = moments[server]
        assert max(b - a for a, b in zip(times, times[1:], strict=False)) <= 20
    time.sleep(2)
    for server, (_, loud) in zip(servers, calls, strict=True):
        order = [m.get("id", m.get("method")) for m in server.messages]
        assert "notifications/progress" not in order[order.index(loud):]


@pytest.mark.parametrize("token", [7, "", "é", "x" * 1000])
def test_progress_tokens_come_back_as_they_are(start, era, token):
    server = start(era)
    session = server.create()
    server.execute(session, "import time\nfor i in range(4):\n    print(i); time.sleep(0.7)",
                   meta={"progressToken": token})
    seen = server.notifications("notifications/progress")
    assert seen and all(p["progressToken"] == token and type(p["progressToken"]) is type(token)
                        for p in seen)


def test_case_38_two_calls_in_flight(start, era):
    server = start(era)
    one, two = server.create(), server.create()
    first = server.start_call("execute_code", {
        "session_id": one, "code": "import time; print('A1'); time.sleep(1); print('A2')"})
    second = server.start_call("execute_code", {"session_id": one, "code": "print('B')"})
    done = []
    for _ in range(2):
        message = server.expect(lambda m: m.get("id") in (first, second))
        done.append((message["id"], message["result"]["structuredContent"]["stdout"]))
    assert done == [(first, "A1\nA2\n"), (second, "B\n")]
    begin = time.monotonic()
    calls = [server.start_call("execute_code", {"session_id": session,
                                                "code": f"import time; time.sleep(1); {number}"})
             for number, session in enumerate((one, two))]
    for number, call in reversed(list(enumerate(calls))):
        assert plain(server.result(call)["structuredContent"]) == str(number)
    assert time.monotonic() - begin < 1.6


def test_many_calls_in_flight(start, era):
    """Sixty cells at once; each is answered with its own value, and a session keeps the order."""
    server = start(era)
    sessions = [server.create() for _ in range(3)]
    for session in sessions:
        server.execute(session, "order = []")
    calls = {server.start_call("execute_code", {
        "session_id": sessions[n % 3], "code": f"order.append({n}); {n} * 10"}): n
        for n in range(60)}
    for call, number in calls.items():
        assert plain(server.result(call)["structuredContent"]) == str(number * 10)
    for first, session in enumerate(sessions):
        assert plain(server.execute(session, "order")) == str(list(range(first, 60, 3)))


def cancel(server, call, **more):
    """Send notifications/cancelled."""
    server.notify("notifications/cancelled", {"requestId": call, "reason": "enough", **more})


@pytest.mark.parametrize(("language", "code"), [
    ("python", SLEEP), ("python", "while True: pass"),
    ("python", "import subprocess; subprocess.run(['sleep', '300'])"),
    ("node", "for (;;) {}"), ("node", "await new Promise(() => {})"),
    ("r", "repeat {}"), ("r", "Sys.sleep(300)")])
def test_case_45_cancel_frees_the_slot(start, era, language, code):
    server = start(era)
    session = server.create(language)
    keep = {"python": "kept = 7", "node": "const kept = 7", "r": "kept <- 7"}[language]
    server.execute(session, keep)
    call = server.start_call("execute_code", {"session_id": session, "code": code, "timeout": 300},
                             {"progressToken": "c"})
    time.sleep(1)
    cancel(server, call)
    begin = time.monotonic()
    payload = server.execute(session, "kept")
    assert time.monotonic() - begin < 2
    assert plain(payload).endswith("7") and payload["state"] == "kept"
    count = len(server.notifications("notifications/progress", "c"))
    server.silent(1, lambda m: m.get("id") == call)
    assert len(server.notifications("notifications/progress", "c")) == count


def test_case_45_what_waits_is_cancelled_too(start, era):
    """A queued call never runs; a command's processes end; a second cancel does nothing."""
    server = start(era)
    session = server.create()
    running = server.start_call("execute_code", {"session_id": session, "code": SLEEP,
                                                 "timeout": 300})
    queued = server.start_call("execute_code", {"session_id": session, "code": "ran = True"})
    time.sleep(0.5)
    cancel(server, queued)
    cancel(server, running)
    cancel(server, running)
    cancel(server, 424242)
    assert server.execute(session, "ran")["error"]["type"] == "NameError"
    command = server.start_call("execute_terminal", {
        "session_id": session, "command": "sleep 301 & sleep 302", "timeout": 300})
    time.sleep(0.5)
    cancel(server, command)
    begin = time.monotonic()
    result = server.call("execute_terminal", {
        "session_id": session, "command": "sleep 0.5; cat /proc/*/cmdline | tr '\\0' ' '"})
    assert "sleep 30" not in result["structuredContent"]["stdout"]
    assert time.monotonic() - begin < 3
    server.silent(0.5, lambda m: m.get("id") in (running, queued, command))


# ---- case 57 by hand, in both eras


def test_case_57_input_legacy_by_elicitation(start):
    server = start("legacy", capabilities={"elicitation": {}})
    session = server.create()
    call = server.start_call("execute_code", {"session_id": session, "code": "input('name? ')"})
    asked = server.expect("elicitation/create")
    assert "name? " in asked["params"]["message"]
    name, = asked["params"]["requestedSchema"]["properties"]
    server.send({"jsonrpc": "2.0", "id": asked["id"],
                 "result": {"action": "accept", "content": {name: "Ada"}}})
    assert plain(server.result(call)["structuredContent"]) == "'Ada'"
    call = server.start_call("execute_code", {"session_id": session, "code": "input('again? ')"})
    asked = server.expect("elicitation/create")
    server.send({"jsonrpc": "2.0", "id": asked["id"],
                 "error": {"code": -32603, "message": "no person here"}})
    assert server.result(call)["structuredContent"]["status"] == "error"


def test_case_57_input_modern_by_input_required(start):
    server = start("modern", capabilities={"elicitation": {"form": {}}})
    session = server.create()
    arguments = {"session_id": session,
                 "code": "a = input('name? '); b = input('age? '); (a, b)"}
    result = server.call("execute_code", arguments)
    for answer in ("Ada", "36"):
        assert result["resultType"] == "input_required"
        (key, asked), = result["inputRequests"].items()
        assert asked["method"] == "elicitation/create"
        field, = asked["params"]["requestedSchema"]["properties"]
        result = server.request("tools/call", {
            "name": "execute_code", "arguments": arguments,
            "requestState": result["requestState"],
            "inputResponses": {key: {"action": "accept", "content": {field: answer}}}})
    assert result["resultType"] == "complete"
    assert plain(result["structuredContent"]) == "('Ada', '36')"


def test_case_57_a_request_state_is_not_forged(start):
    """Each byte counts; a state belongs to its own request, and an old one is of no use."""
    server = start("modern", capabilities={"elicitation": {"form": {}}})
    session = server.create()
    arguments = {"session_id": session, "code": "input('name? ')"}
    first = server.call("execute_code", arguments)
    (key, asked), = first["inputRequests"].items()
    field, = asked["params"]["requestedSchema"]["properties"]
    good = first["requestState"]
    answers = {key: {"action": "accept", "content": {field: "Ada"}}}
    other = arguments | {"code": "input('other? ')"}
    broken = [(arguments, good[:i] + ("A" if good[i] != "A" else "B") + good[i + 1:])
              for i in range(0, len(good), max(1, len(good) // 20))]
    for changed, state in [*broken, (other, good), (arguments, good[:-1]), (arguments, "x"),
                           (arguments, good + "A")]:
        with pytest.raises(mcpstdio.RpcError) as error:
            server.request("tools/call", {"name": "execute_code", "arguments": changed,
                                          "requestState": state, "inputResponses": answers})
        assert error.value.code == -32602
    result = server.request("tools/call", {"name": "execute_code", "arguments": arguments,
                                           "requestState": good, "inputResponses": answers})
    assert plain(result["structuredContent"]) == "'Ada'"


# ---- cases 27, 28, 50 through the tools


def read_resource(server, uri):
    """Return the first content of a resource."""
    return server.request("resources/read", {"uri": uri})["contents"][0]


def export(server, session, *paths):
    """Export files; return the payload and {path: link}."""
    result = server.call("export_files", {"session_id": session,
                                          "files": [{"source": path} for path in paths]})
    links = [block for block in result["content"] if block["type"] == "resource_link"]
    return result["structuredContent"], {link["name"]: link for link in links}


def test_case_27_a_huge_file_costs_nothing(start, era):
    server = start(era)
    session = server.create()
    server.call("execute_terminal", {"session_id": session, "command": "truncate -s 2G z.bin"})
    export(server, session, "none")
    before = high_water(server)
    begin = time.monotonic()
    payload, links = export(server, session, "z.bin")
    assert payload["success"] and payload["files"][0]["size"] == 2 << 30
    assert links["z.bin"]["size"] == 2 << 30
    assert time.monotonic() - begin < 1
    begin = time.monotonic()
    with pytest.raises(mcpstdio.RpcError) as error:
        read_resource(server, links["z.bin"]["uri"])
    assert time.monotonic() - begin < 1
    assert str(2 << 30) in str(error.value) or "2.0 GiB" in str(error.value) \
        or "2 GiB" in str(error.value)
    assert high_water(server) - before < 50


def test_case_27_binary_files_are_no_text(start, era):
    """Office files and images come back byte for byte, and text in any script as text."""
    server = start(era)
    session = server.create()
    server.execute(session, """
import zipfile, base64
for name in ("a.xlsx", "b.docx"):
    with zipfile.ZipFile(name, "w") as z:
        z.writestr("[Content_Types].xml", "<Types/>")
open("c.png", "wb").write(b"\\x89PNG\\r\\n\\x1a\\n" + bytes(range(256)))
open("d.txt", "w").write("täxt 中\\n")
open("e.txt", "wb").write(b"caf\\xe9\\n")
""")
    names = ["a.xlsx", "b.docx", "c.png", "d.txt", "e.txt"]
    payload, links = export(server, session, *names)
    assert payload["success"] and set(links) == set(names)
    assert read_resource(server, links["d.txt"]["uri"])["text"] == "täxt 中\n"
    for name in names:
        if name == "d.txt":
            continue
        blob = read_resource(server, links[name]["uri"])["blob"]
        same = server.execute(session, f"base64.b64encode(open('{name}','rb').read()).decode()"
                              f" == '{blob}'")
        assert plain(same) == "True", name


def test_case_28_node_declares_again_and_leaks_nothing(start, era):
    server = start(era)
    session = server.create("node")
    for value in (1, 2):
        payload = server.execute(session, f"const k = {value}; let v = {value}; class C {{}}; k")
        assert payload["success"] and plain(payload) == str(value)
    server.execute(session, "process.env.LEFT = 'x'; require('fs').writeFileSync('/tmp/left', 'x');"
                   "require('fs').writeFileSync('left', 'x'); globalThis.left = 1")
    other = server.create("node")
    payload = server.execute(other, "[typeof left, process.env.LEFT, "
                             "require('fs').existsSync('/tmp/left'), "
                             "require('fs').existsSync('left')].join()")
    assert plain(payload) == "'undefined,,false,false'"
    for _ in range(20):
        session = server.create("node")
        assert plain(server.execute(session, "const value = 2; value")) == "2"
        assert server.call("stop_session", {"session_id": session})["structuredContent"]["success"]


HOSTILE = """
import os, socket
os.makedirs("tree/sub")
open("tree/ok.txt", "w").write("fine")
os.symlink("/etc/passwd", "tree/absolute")
os.symlink("../../../../../../etc/passwd", "tree/upwards")
os.symlink("/", "tree/root")
os.symlink("sub", "tree/inside")
os.symlink("missing", "tree/dangling")
os.symlink("self", "tree/self")
os.link("tree/ok.txt", "tree/hard")
os.mkfifo("tree/fifo")
socket.socket(socket.AF_UNIX).bind("tree/socket")
open("tree/ü\\n\\x7f", "w").write("name")
"""


def test_case_50_a_hostile_tree_from_another_session(start, era):
    """Links are links or are refused; nothing of the other side's file system is followed."""
    server = start(era)
    source, target = server.create(), server.create()
    server.execute(source, HOSTILE)
    export(server, source, "tree")
    server.execute(target, "import os; os.mkdir('tree'); os.symlink('/tmp', 'tree/sub')")
    result = server.call("import_files", {"session_id": target, "files": [
        {"session_id": source, "path": "tree", "destination": "copy"}]})
    entry, = result["structuredContent"]["files"]
    assert entry["success"] or "not exported" not in entry["error"], entry
    payload = server.execute(target, """
found = {}
for base, folders, files in os.walk("copy"):
    for name in folders + files:
        path = os.path.join(base, name)
        info = os.lstat(path)
        found[path] = (info.st_mode & 0o170000, os.path.realpath(path).startswith(os.getcwd()))
bad = {path for path, (kind, inside) in found.items()
       if not inside or kind not in (0o100000, 0o040000, 0o120000)}
sorted(bad)""")
    assert plain(payload) == "[]", payload
    if entry["success"]:
        assert plain(server.execute(target, "open('copy/ok.txt').read()")) == "'fine'"


@pytest.mark.parametrize(("make", "limit"), [
    ("path = 'tree'\nfor _ in range(80):\n    path += '/d'\nos.makedirs(path)",
     "more than 64 components of path"),
    ("os.mkdir('tree')\nfor name in 'abc':\n    with open(f'tree/{name}', 'wb') as file:\n"
     "        file.truncate(1900 << 20)", "4294967296"),
], ids=["depth", "bytes"])
def test_case_50_limits_have_names(start, era, make, limit):
    """The first door that a tree passes names what it is too much of; nothing of it is left."""
    server = start(era)
    source, target = server.create(), server.create()
    assert server.execute(source, f"import os\n{make}")["success"]
    begin = time.monotonic()
    exported, _ = export(server, source, "tree")
    result = server.call("import_files", {"session_id": target, "files": [
        {"session_id": source, "path": "tree", "destination": "copy"}]})
    entry, = result["structuredContent"]["files"]
    assert not entry["success"]
    assert limit in exported["files"][0]["error"] + entry["error"], (exported, entry)
    assert time.monotonic() - begin < 20
    left = server.call("execute_terminal", {"session_id": target, "command": "ls -A"})
    assert left["structuredContent"]["stdout"] == "", "a piece of it is left"


def test_case_50_destinations_stay_inside(start, era):
    server = start(era)
    session = server.create()
    server.call("execute_terminal", {"session_id": session,
                                     "command": "ln -s / d; ln -s /etc e; mkdir f"})
    for destination in ("../../x", "/abs-x", "d/x", "e/x", "f/../../x", "..", ".", "/", "d", "f/",
                        "a\x00b", "/etc/x", "/proc/1/x", "/opt/sandbox-agent/x"):
        result = server.call("import_files", {"session_id": session, "files": [
            {"file_content": "hostile", "destination": destination}]})
        entry = (result["structuredContent"].get("files") or [{}])[0]
        found = server.call("execute_terminal", {
            "session_id": session,
            "command": "grep -rlsF hostile / --include='*x' --include=abs-x --exclude-dir=proc"
                       " --exclude-dir=sys 2>/dev/null"})["structuredContent"]["stdout"].split()
        assert all(path.startswith("/workspace/") for path in found), (destination, entry, found)
        server.call("execute_terminal", {"session_id": session, "command": "rm -rf x f/x abs-x"})
        assert not os.path.exists("/abs-x") and not os.path.exists("/etc/x")
