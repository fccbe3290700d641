# SPDX-License-Identifier: MIT
"""The eight tools over real sandboxes, called through MCP: what their users were used to, and more.

Weaknesses of the reference that these tools must not have are named w05, w06 and so on.
"""

import base64
import io
import json
import re
import tarfile
import time

import mcpstdio
import pytest

NAMES = ["create_session", "execute_code", "execute_terminal", "import_files", "export_files",
         "stop_session", "list_sessions", "interrupt_session"]
LANGUAGES = ("python", "node", "r")
UNKNOWN = "0" * 32

KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
         "integer": int, "number": (int, float)}


def fits(schema, value, where="payload"):
    """Assert that a value fits a schema of the kind that the tools' outputs have."""
    kinds = schema.get("type")
    if kinds:
        kinds = [kinds] if isinstance(kinds, str) else kinds
        assert any(isinstance(value, KINDS[kind]) and (kind == "boolean" or value is not True
                                                       and value is not False)
                   for kind in kinds), f"{where} is no {kinds}: {value!r}"
    if "enum" in schema:
        assert value in schema["enum"], f"{where}: {value!r}"
    if isinstance(value, dict):
        missing = set(schema.get("required", ())) - set(value)
        assert not missing, f"{where} lacks {missing}"
        for key, member in value.items():
            fits(schema.get("properties", {}).get(key, {}), member, f"{where}.{key}")
    if isinstance(value, list):
        for item in value:
            fits(schema.get("items", {}), item, f"{where}[]")


class Tools:
    """One MCP server, whose every payload is checked against its tool's output schema."""

    def __init__(self, state, **settings):
        self.state = state
        self.server = mcpstdio.Server(state, settings=settings)
        self.server.initialize()
        self.list = self.server.request("tools/list")["tools"]
        self.schemas = {tool["name"]: tool["outputSchema"] for tool in self.list}

    def start(self, tool, **arguments):
        """Begin a call; its id."""
        return self.server.start_call(tool, arguments)

    def end(self, tool, number, wait=120):
        """The payload of a call that was begun."""
        result = self.server.result(number, wait)
        payload = result["structuredContent"]
        fits(self.schemas[tool], payload)
        assert result.get("isError", False) is not payload["success"]
        assert str(self.state) not in json.dumps(payload), "a path of the host"
        return payload

    def __call__(self, tool, wait=120, **arguments):
        return self.end(tool, self.start(tool, **arguments), wait)

    def create(self, language="python", **arguments):
        """A new session's id."""
        payload = self("create_session", language=language, **arguments)
        assert payload["success"], payload
        return payload["session_id"]

    def code(self, session, text, **arguments):
        """A cell's payload."""
        return self("execute_code", session_id=session, code=text, **arguments)

    def value(self, session, text):
        """The text of a cell's value."""
        payload = self.code(session, text)
        assert payload["success"], payload
        return payload["result"]["text/plain"]

    def sh(self, session, command, **arguments):
        """A command's payload."""
        return self("execute_terminal", session_id=session, command=command, **arguments)

    def files(self, tool, session, *entries):
        """The payload of an import or export."""
        return self(tool, session_id=session, files=list(entries))

    def owner(self):
        """The conversation that the server has remembered."""
        path, = self.state.glob("xdg/sandbox-agent/mcp-thread.json")
        return json.loads(path.read_text())["thread_id"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders of the host: `in` is allowed, `in2` and `out` are not."""
    root = tmp_path_factory.mktemp("host")
    for name in ("in", "in2", "out", "also"):
        (root / name).mkdir()
        (root / name / "data.csv").write_text("a,b\n1,2\n")
    (root / "in" / "tree" / "deep").mkdir(parents=True)
    (root / "in" / "tree" / "one.txt").write_text("one")
    (root / "in" / "tree" / "deep" / "two.txt").write_text("two")
    (root / "in" / "etc").symlink_to("/etc")
    (root / "in" / "link").symlink_to(root / "out" / "data.csv")
    return root


@pytest.fixture(scope="module")
def tools(tmp_path_factory, folders):
    """A server that all tests of this file share."""
    state = tmp_path_factory.mktemp("state")
    server = Tools(state, IMPORT_ALLOWED_DIRS=f"{folders}/in/, {folders}/also")
    yield server
    server.server.close(20)
    mcpstdio.assert_nothing_left(state, within=2)


@pytest.fixture
def make(tools):
    """Creates sessions that end with the test."""
    made = []

    def create(language="python", **arguments):
        made.append(tools.create(language, **arguments))
        return made[-1]

    yield create
    for session in made:
        tools("stop_session", session_id=session)


@pytest.fixture
def own(tmp_path_factory):
    """Starts a server with settings of its own."""
    servers = []

    def start(**settings):
        servers.append(Tools(tmp_path_factory.mktemp("own"), **settings))
        return servers[-1]

    yield start
    for server in servers:
        server.server.close(20)


def refused(payload, error):
    """A payload of a call that failed as a whole."""
    assert payload["success"] is False
    assert re.match(error, payload["error"]), payload["error"]
    assert isinstance(payload["active_sessions"], list) and payload["hint"]
    assert "traceback" not in payload
    return payload


def invalid(payload, *loc, kind=None):
    """A payload of a call whose arguments were wrong; the first detail."""
    assert payload["success"] is False and payload["error"] == "INVALID_INPUT", payload
    detail = payload["details"][0]
    assert detail["loc"] == list(loc), detail
    assert {"type", "msg", "input"} <= set(detail)
    assert kind is None or detail["type"] == kind, detail
    return detail


# ---- the list


def test_the_tools_are_listed_in_order_with_texts_and_schemas(tools):
    assert [tool["name"] for tool in tools.list] == NAMES
    for tool in tools.list:
        assert tool["title"] and len(tool["description"]) > 200
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        for name, schema in tool["inputSchema"]["properties"].items():
            assert schema["description"], name
    hints = {tool["name"]: tool["annotations"] for tool in tools.list}
    assert hints["list_sessions"]["readOnlyHint"] is True
    assert hints["stop_session"]["destructiveHint"] is True
    assert hints["export_files"]["destructiveHint"] is False
    assert hints["import_files"]["openWorldHint"] is False


# ---- sessions


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_session_of_each_language_keeps_its_state(tools, language):
    created = tools("create_session", language=language)
    session = created["session_id"]
    assert created["runtime"] == language and created["status"] == "running"
    assert created["dependencies"] == {} and "stderr" not in created
    name = {"python": "x = 42", "node": "var x = 42", "r": "x <- 42"}[language]
    assert tools.code(session, name)["success"]
    assert "84" in tools.value(session, "x * 2")
    listed = tools.sh(session, "echo there; ls /")
    assert listed["success"] and listed["exit_code"] == 0
    assert listed["stdout"].startswith("there\n") and "workspace" in listed["stdout"]
    assert tools("stop_session", session_id=session) == {"success": True, "session_id": session}
    refused(tools.code(session, "x"), r"ValueError: unknown session: '\w+' not found")
    again = tools("stop_session", session_id=session)
    assert again.pop("hint").startswith("There is nothing to stop")
    assert again == {"success": False, "session_id": session, "active_sessions": []}


def test_python_is_the_default_and_bad_languages_are_refused(tools):
    created = tools("create_session")
    assert created["runtime"] == "python"
    tools("stop_session", session_id=created["session_id"])
    for language in ("ruby", "julia", "", "Python", None, "python --version"):
        detail = invalid(tools("create_session", language=language), "language", kind="enum")
        assert detail["ctx"]["expected"] == "'python', 'node' or 'r'"


def test_case_01_state_lives_in_the_session_not_the_call(tools, make):
    session, other = make(), make()
    assert tools.code(session, "total = 40")["success"]
    payload = tools.code(session, "total + 2")
    assert payload["result"]["text/plain"] == "42" and payload["state"] == "kept"
    assert tools.code(other, "total")["error"]["type"] == "NameError"
    refused(tools.code(UNKNOWN, "total"), "ValueError: unknown session")


def test_case_02_a_death_is_named_then_and_later(tools):
    session = tools.create(memory_limit="256m")
    assert tools.code(session, "keep = 7")["success"]
    payload = tools.code(session, "blob = bytearray(3 * 1024**3)\n"
                                  "blob[::4096] = b'x' * len(blob[::4096])")
    assert (payload["success"], payload["status"], payload["cause"]) == (False, "died", "oom")
    assert payload["state"] == "lost" and "256 MiB" in payload["message"]
    assert payload["session_id"] == session and "stop_session" in payload["hint"]
    assert {"session_id": session, "runtime": "python", "status": "dead"} in \
        payload["active_sessions"]
    for call in (lambda: tools.code(session, "keep"), lambda: tools.sh(session, "ls"),
                 lambda: tools.files("export_files", session, {"source": "x"}),
                 lambda: tools.files("import_files", session,
                                     {"file_content": "x", "destination": "x"}),
                 lambda: tools("interrupt_session", session_id=session)):
        later = refused(call(), r"CONTAINER_DIED: the memory limit is exhausted \(oom\)")
        assert later["session_id"] == session
    assert tools("stop_session", session_id=session)["success"] is True


def test_case_07_partial_output_and_state_after_a_time_out(tools, make):
    session = make()
    begin = time.monotonic()
    payload = tools.code(session, 'import time\nmark = "here"\nprint("before", flush=True)\n'
                                  "while True: time.sleep(0.05)", timeout="2")
    assert 2 <= time.monotonic() - begin < 3.5
    assert (payload["status"], payload["stdout"], payload["state"]) == \
        ("timeout", "before\n", "kept")
    assert payload["error"]["type"] == "TimeoutError"
    assert tools.value(session, "mark") == "'here'"


def test_case_09_w04_a_commands_time_out_ends_all_that_it_started(tools, make):
    session = make()
    payload = tools.sh(session, "echo begun; sh -c 'sleep 300 & sleep 300'", timeout=1)
    assert (payload["status"], payload["stdout"]) == ("timeout", "begun\n")
    assert payload["success"] is False
    assert tools.sh(session, "ps -e | grep -c '[s]leep'")["stdout"] == "0\n"


def test_case_41_limits_are_answers(own):
    tools = own(CONTAINER_MAX_SESSIONS=2, CONTAINER_MAX_SESSIONS_PER_THREAD=2)
    first, second = tools.create(), tools.create()
    for _ in range(3):
        payload = refused(tools("create_session"), "RuntimeError: limit_reached")
        assert "CONTAINER_MAX_SESSIONS" in payload["error"] and first in payload["error"]
        assert {s["session_id"] for s in payload["active_sessions"]} == {first, second}
    tools("stop_session", session_id=second)
    assert tools.create()


def test_w05_the_configured_time_out_is_the_tools_default(own):
    tools = own(CONTAINER_EXECUTION_TIMEOUT_SECONDS=1)
    session = tools.create()
    assert tools.code(session, "import time; time.sleep(9)")["status"] == "timeout"
    assert tools.sh(session, "sleep 9")["status"] == "timeout"
    assert tools.sh(session, "sleep 2", timeout=5)["status"] == "ok"


def test_time_outs_end_at_300_seconds(tools, make):
    session = make()
    for value in (0, -1, 301, 1.5, "x", True, [1]):
        invalid(tools.code(session, "1", timeout=value), "timeout")
        invalid(tools.sh(session, "ls", timeout=value), "timeout")
    for value in (1, 300, "300", 2.0, None):
        assert tools.code(session, "1", timeout=value)["success"]


def test_w39_calls_of_different_sessions_run_at_the_same_time(tools, make):
    sessions = [make(), make()]
    begin = time.monotonic()
    calls = [tools.start("execute_code", session_id=s, code="import time; time.sleep(1)")
             for s in sessions]
    for call in calls:
        assert tools.end("execute_code", call)["success"]
    assert time.monotonic() - begin < 1.9


def test_w41_sessions_are_listed_and_interrupted(tools, make):
    session = make("python", network="none")
    assert tools("interrupt_session", session_id=session)["interrupted"] is False
    call = tools.start("execute_code", session_id=session,
                       code="kept = 1\nimport time\nprint('on', flush=True)\ntime.sleep(60)")
    time.sleep(1)
    listed = {s["session_id"]: s for s in tools("list_sessions")["sessions"]}
    assert listed[session]["busy"] is True and listed[session]["network"] == "none"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", listed[session]["created_at"])
    answer = tools("interrupt_session", session_id=session)
    assert answer == {"success": True, "session_id": session, "interrupted": True}
    payload = tools.end("execute_code", call)
    assert (payload["status"], payload["state"], payload["stdout"]) == \
        ("interrupted", "kept", "on\n")
    assert tools.value(session, "kept") == "1"
    refused(tools("interrupt_session", session_id=UNKNOWN), "ValueError: unknown session")


def test_w41_limits_and_network_of_a_session(tools, make):
    session = make(memory_limit="300m", tmpfs_size="20m", pids_limit=60, cpu_quota=50000,
                   network="none", env={"GREETING": "a'b\"$(id)\nc"})
    assert tools.value(session, "import os; os.environ['GREETING']") == repr("a'b\"$(id)\nc")
    assert tools.sh(session, 'printf %s "$GREETING"')["stdout"] == "a'b\"$(id)\nc"
    full = tools.sh(session, "head -c 30000000 /dev/zero > /workspace/z")
    assert (full["success"], full["cause"]) == (False, "disk") and "20 MiB" in full["message"]
    payload = tools.code(session, "import urllib.request as u; u.urlopen('http://192.0.2.1', "
                                  "timeout=3)")
    assert payload["success"] is False
    for name, value in (("memory_limit", "64g"), ("tmpfs_size", "64g"), ("pids_limit", 999999),
                        ("cpu_quota", 99999999)):
        refused(tools("create_session", **{name: value}), f"ValueError: {name} is above CONTAINER_")
    refused(tools("create_session", memory_limit="1k"), "ValueError: .*32 MiB")
    for name, value in (("memory_limit", "much"), ("memory_limit", 512), ("pids_limit", 1),
                        ("network", "all"), ("env", {"A": 1}), ("env", ["A=1"])):
        invalid(tools("create_session", **{name: value}), name, *(["A"] if value == {"A": 1}
                                                                  else []))


# ---- running


def test_code_gives_output_value_and_error(tools, make):
    session = make()
    payload = tools.code(session, "import sys\nprint('out')\nprint('err', file=sys.stderr)\n1 + 1")
    assert (payload["stdout"], payload["stderr"]) == ("out\n", "err\n")
    assert payload["result"] == {"text/plain": "2"} and payload["error"] is None
    payload = tools.code(session, "print('first')\n1/0")
    assert payload["success"] is False and payload["status"] == "error"
    assert payload["error"]["type"] == "ZeroDivisionError" and payload["stdout"] == "first\n"
    assert "hint" not in payload
    assert tools.value(session, "2 + 3") == "5"


def test_w13_commands_tell_whether_they_succeeded(tools, make):
    session = make()
    payload = tools.sh(session, "echo out; echo err >&2; false")
    assert (payload["success"], payload["status"], payload["exit_code"]) == (False, "error", 1)
    assert (payload["stdout"], payload["stderr"]) == ("out\n", "err\n")
    payload = tools.sh(session, "kill -9 $$")
    assert (payload["success"], payload["exit_code"], payload["signal"]) == (False, 137, 9)
    assert tools.sh(session, "pwd")["stdout"] == "/workspace\n"
    refused(tools.sh(UNKNOWN, "ls"), "ValueError: unknown session")


# ---- dependencies


@pytest.mark.parametrize(("language", "name", "use"), [
    ("python", "tabulate", "import tabulate; tabulate.__name__"),
    ("node", "left-pad", "require('left-pad')('x', 3)"),
    ("r", "praise", "nchar(praise::praise()) > 0")])
def test_dependencies_are_installed_before_the_first_cell(tools, language, name, use):
    created = tools("create_session", 600, language=language, dependencies={name: None})
    if language == "r" and "PACKAGES" in created.get("error", ""):
        pytest.skip(f"no repository of R packages can be reached: {created['error']}")
    assert created["success"], created
    assert created["dependencies"] == {name: ""}
    assert tools.code(created["session_id"], use)["success"]
    tools("stop_session", session_id=created["session_id"])


def test_w01_a_failed_install_fails_the_create(tools):
    before = tools("list_sessions")["sessions"]
    payload = refused(tools("create_session", 600, dependencies={"no-such-package-77-x": "1.0"}),
                      r"\w+: cannot install the dependencies")
    assert "no-such-package-77-x" in payload["error"]
    assert tools("list_sessions")["sessions"] == before


@pytest.mark.parametrize(("language", "name", "version"), [
    ("python", "six; touch /tmp/pwn", ""), ("python", "--index-url=http://evil.test", ""),
    ("python", "../../etc", ""), ("python", "-r/etc/passwd", ""), ("python", "x[y]", ""),
    ("python", "six", "1.0 --index-url=http://x.test"), ("python", "six", "git+ssh://x.test/y"),
    ("node", "x", "file:/etc"), ("node", "x", "git+https://x.test/y"),
    ("node", "x@file:/", ""), ("r", 'x");system("id', ""), ("r", "x", "1; system('id')")])
def test_api_16_case_47_w34_package_names_and_versions_are_data(tools, language, name, version):
    begin = time.monotonic()
    payload = refused(tools("create_session", language=language, dependencies={name: version}),
                      "ValueError: .* is no (package name|version)")
    assert time.monotonic() - begin < 1, "a sandbox was started for it"
    assert name[:20] in payload["error"] or version[:20] in payload["error"]


def test_case_47_session_ids_are_data(tools):
    for session in ("../x", "a; touch /tmp/pwn", "%s%n", "x" * 100000, "ü\n", "."):
        payload = refused(tools.code(session, "1"), "ValueError: ")
        assert len(payload["error"]) < 400
        assert tools("stop_session", session_id=session)["success"] is False


# ---- export


def test_a_file_is_exported(tools, make):
    session = make()
    tools.code(session, "open('output.csv', 'w').write('a,b\\n1,2\\n')")
    payload = tools.files("export_files", session, {"source": "output.csv"})
    assert payload["success"] is True and payload["error"] == ""
    entry, = payload["files"]
    assert entry["session_id"] == session and entry["path"] == "/workspace/output.csv"
    assert (entry["success"], entry["size"], entry["error"]) == (True, 8, "")
    assert entry["download_url"] is None


def test_several_exports_fail_one_by_one(tools, make):
    session = make()
    tools.sh(session, "mkdir -p results/sub; echo 12345 > results/sub/a; echo 1 > b")
    payload = tools.files("export_files", session, {"source": "b", "destination": "ignored"},
                          {"source": "missing"}, {"source": "/workspace/b"},
                          {"source": "results/"})
    assert payload["success"] is False
    good, missing, absolute, folder = payload["files"]
    assert good["success"] and good["path"] == absolute["path"] == "/workspace/b"
    assert missing["success"] is False and missing["error"] and missing["download_url"] is None
    assert folder["success"] and folder["path"] == "/workspace/results"
    assert (folder["type"], folder["size"]) == ("directory", 6)


@pytest.mark.parametrize("path", ["../etc/passwd", "/etc/passwd", "a/../../etc", "/", "..",
                                  "/workspace/../etc/passwd", "/workspaceX"])
def test_exports_stay_inside_the_workspace(tools, make, path):
    session = make()
    entry, = tools.files("export_files", session, {"source": path})["files"]
    assert entry["success"] is False and "outside" in entry["error"], entry


def test_exports_of_nothing_and_of_nobody(tools, make):
    session = make()
    detail = invalid(tools.files("export_files", session, {"source": ""}), "files", 0, "source")
    assert detail["type"] == "string_too_short"
    invalid(tools.files("export_files", session), "files", kind="too_short")
    detail = invalid(tools.files("export_files", session, {}), "files", 0, "source")
    assert (detail["type"], detail["msg"]) == ("missing", "Field required")
    refused(tools.files("export_files", UNKNOWN, {"source": "a"}), "ValueError: unknown session")


def test_a_stop_drops_what_was_exported(tools, make):
    source, target = make(), make()
    tools.sh(source, "echo 1 > a")
    assert tools.files("export_files", source, {"source": "a"})["success"]
    entry = {"session_id": source, "path": "a"}
    assert tools.files("import_files", target, entry)["success"]
    tools("stop_session", session_id=source)
    failed, = tools.files("import_files", target, entry)["files"]
    assert failed["success"] is False and failed["error"]


# ---- import


def test_a_hosts_file_and_folder_are_imported(tools, make, folders):
    session = make()
    payload = tools.files("import_files", session, {"source": f"{folders}/in/data.csv"},
                          {"source": f"{folders}/in/data.csv", "destination": "sub/renamed.csv"},
                          {"source": f"{folders}/in/tree", "destination": "copied"},
                          {"source": f"{folders}/also/data.csv", "destination": "also/"})
    assert payload["success"] is True, payload
    first, renamed, folder, also = payload["files"]
    assert first["source"] == f"{folders}/in/data.csv"
    assert (first["destination"], first["size"]) == ("/workspace/data.csv", 8)
    assert renamed["destination"] == "/workspace/sub/renamed.csv"
    assert (folder["destination"], folder["size"]) == ("/workspace/copied", 6)
    assert also["destination"] == "/workspace/also/data.csv"
    found = tools.sh(session, "find . -type f | sort; cat copied/deep/two.txt")["stdout"]
    assert found.split() == ["./also/data.csv", "./copied/deep/two.txt", "./copied/one.txt",
                             "./data.csv", "./sub/renamed.csv", "two"]


def test_case_48_w15_only_allowed_folders_are_read(tools, make, folders):
    session = make()
    for path in ("/etc/passwd", f"{folders}/out/data.csv", f"{folders}/in2/data.csv",
                 f"{folders}/in/../out/data.csv", f"{folders}/in/etc/passwd", f"{folders}/in/link",
                 f"{folders}/in/etc", "in/data.csv", "relative", f"{folders}", "/"):
        payload = tools.files("import_files", session, {"source": path})
        entry, = payload["files"]
        assert payload["success"] is False and entry["success"] is False, path
        assert entry["source"] == path and entry["size"] == 0 and entry["error"]
    assert tools.sh(session, "ls -A")["stdout"] == ""


def test_w28_an_owners_uploads_are_not_anothers(tools, make):
    session = make()
    for owner, ok in ((tools.owner(), True), ("11111111-2222", False)):
        folder = tools.state / "storage" / owner / "uploads"
        folder.mkdir(parents=True)
        (folder / "up.txt").write_text("uploaded")
        # The caller's own path is in the payload, so it is not checked for paths of the host here.
        result = tools.server.call("import_files", {
            "session_id": session, "files": [{"source": str(folder / "up.txt")}]})
        entry, = result["structuredContent"]["files"]
        assert entry["success"] is ok, entry


@pytest.mark.parametrize("name", ["plain.txt", "販売データ_今週.csv", "a b'c\"d$e.txt", "-rf",
                                  "sub/dir/x.bin"])
def test_content_is_imported_as_text_and_as_bytes(tools, make, name):
    session, blob = make(), bytes(range(256)) * 9
    text = "Zeile eins\r\nzwei ✓\n\0end"
    payload = tools.files(
        "import_files", session, {"file_content": text, "destination": name},
        {"file_content": base64.b64encode(blob).decode(), "encoding": "base64",
         "destination": name + ".b"},
        {"file_content": base64.encodebytes(blob).decode(), "encoding": "base64",
         "destination": f"/workspace/{name}.c"},
        {"file_content": "", "destination": name + ".empty"})
    assert payload["success"] is True, payload
    assert [f["size"] for f in payload["files"]] == [len(text.encode()), len(blob), len(blob), 0]
    code = f"[open({name!r} + s, 'rb').read() for s in ('', '.b', '.c', '.empty')]"
    same = tools.value(session, f"{code} == [{text.encode()!r}, {blob!r}, {blob!r}, b'']")
    assert same == "True"


def test_a_sandbox_that_is_full_of_small_files_says_so(tools, make):
    session = make(tmpfs_size="1m")
    filled = tools.code(session, "for i in range(1000): open(f'e{i}', 'w').close()")
    assert not filled["success"]
    failed, = tools.files("import_files", session,
                          {"file_content": "", "destination": "one"})["files"]
    assert "no more than 256 files fit there" in failed["error"], failed
    assert "CONTAINER_TMPFS_SIZE" in failed["error"], failed


def test_w06_imports_are_checked_with_and_without_a_destination(tools, make):
    session = make()
    for entry in ({}, {"destination": "x"}, {"session_id": "a"}, {"path": "a", "destination": "b"},
                  {"source": None}):
        failed, = tools.files("import_files", session, entry)["files"]
        assert failed["success"] is False and "give source, or" in failed["error"]
    good, failed = tools.files("import_files", session,
                               {"file_content": "x", "destination": "w06"},
                               {"file_content": "x"})["files"]
    assert good["success"] is True and "destination is missing" in failed["error"]
    invalid(tools.files("import_files", session, {"source": 5}), "files", 0, "source",
            kind="string_type")
    invalid(tools.files("import_files", session), "files", kind="too_short")
    failed, = tools.files("import_files", session, {"file_content": "***", "encoding": "base64",
                                                    "destination": "x"})["files"]
    assert failed["success"] is False and "base64" in failed["error"]
    refused(tools.files("import_files", UNKNOWN, {"file_content": "x", "destination": "y"}),
            "ValueError: unknown session")


@pytest.mark.parametrize("language", LANGUAGES)
def test_w25_files_and_folders_go_from_session_to_session(tools, make, language):
    source, target = make("python"), make(language)
    tools.sh(source, "mkdir -p out/deep; printf x > out/deep/y; "
                     "printf 'a,b\\n1,2\\n' > out/data.csv")
    entry = {"session_id": source, "path": "out", "destination": "taken"}
    failed, = tools.files("import_files", target, entry)["files"]
    assert failed["success"] is False and "export" in failed["error"]
    assert failed["source"] == f"{source}:out"
    assert tools.files("export_files", source, {"source": "out"})["success"]
    payload = tools.files("import_files", target, entry,
                          {"session_id": source, "path": "/workspace/out/data.csv",
                           "source": "/etc/passwd", "destination": "renamed.csv"})
    assert payload["success"] is True, payload
    assert [f["size"] for f in payload["files"]] == [9, 8]
    assert tools.sh(target, "cat renamed.csv taken/deep/y; ls taken")["stdout"].split() == \
        ["a,b", "1,2", "xdata.csv", "deep"]
    blocked, good = tools.files(
        "import_files", target, {**entry, "destination": "renamed.csv"},
        {"session_id": source, "path": "out/deep/y", "destination": "y"})["files"]
    assert blocked["success"] is False and blocked["error"], "a folder over a file"
    assert good["success"] is True
    assert tools.sh(target, "cat renamed.csv")["stdout"] == "a,b\n1,2\n"


def test_archives_are_unpacked_when_asked(tools, make, folders):
    session, packed = make(), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(folders / "in" / "tree", "tree")
    (folders / "in" / "tree.tar.gz").write_bytes(packed.getvalue())
    payload = tools.files(
        "import_files", session, {"source": f"{folders}/in/tree.tar.gz", "destination": "kept/"},
        {"source": f"{folders}/in/tree.tar.gz", "destination": "host", "extract": True},
        {"file_content": base64.b64encode(packed.getvalue()).decode(), "encoding": "base64",
         "destination": "inline", "extract": "true"},
        {"file_content": "no archive", "destination": "none", "extract": True})
    kept, host, inline, none = payload["files"]
    assert kept["destination"] == "/workspace/kept/tree.tar.gz"
    assert (host["success"], host["size"]) == (inline["success"], inline["size"]) == (True, 6), host
    assert none["success"] is False and none["error"]
    found = tools.sh(session, "cat host/tree/one.txt inline/tree/deep/two.txt; ls")["stdout"]
    assert found == "onetwohost\ninline\nkept\n"


def test_an_unknown_source_session_is_the_entrys_failure(tools, make):
    session = make()
    payload = tools.files("import_files", session, {"session_id": UNKNOWN, "path": "x"},
                          {"file_content": "x", "destination": "y"})
    assert payload["success"] is False
    assert [f["success"] for f in payload["files"]] == [False, True]
    assert payload["files"][0]["source"] == f"{UNKNOWN}:x"


# ---- errors


def test_the_callers_own_paths_are_named_in_errors(tools, make):
    names = ("/etc/x", "/opt/x/../y", "x\0y")
    payload = tools.files("import_files", make(), *(
        {"file_content": "1", "destination": name} for name in names), {"source": "/a\0b"})
    assert [name in entry["error"] for name, entry in zip(
        ("/etc/x", "/opt/y", "NUL", "NUL"), payload["files"], strict=True)] == [True] * 4, payload


def test_api_17_w31_errors_hold_no_trace_and_no_path_of_the_host(tools, make, folders):
    session = make()
    payloads = [
        tools.code(UNKNOWN, "1"), tools.sh(session, "x" * 200000),
        tools("create_session", dependencies={"-x": ""}),
        tools.files("import_files", session, {"source": f"{folders}/in/none"}),
        tools.files("export_files", session, {"source": "none"}),
        tools("create_session", memory_limit="1m"),
    ]
    for payload in payloads:
        text = json.dumps(payload).replace(str(folders), "")
        assert payload["success"] is False
        assert "Traceback" not in text and "/src/" not in text and ".c:" not in text
        for path in ("/var/lib", "/usr/local", "/run/", "libexec"):
            assert path not in text, text
