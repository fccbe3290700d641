# SPDX-License-Identifier: MIT
"""MCP's official Python SDK as the client: two eras, two transports, the whole main path."""

import base64
import contextlib
import time
from typing import Literal

import anyio
import mcp_types
import mcpstdio
import pytest
from jsonschema import Draft202012Validator
from mcp.client import Client, ClientExtension, ResultClaim
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

pytestmark = pytest.mark.anyio

WAYS = [f"{transport}-{era}" for transport in ("stdio", "http") for era in ("legacy", "modern")]
MODES = {"legacy": "legacy", "modern": "auto"}
VERSIONS = {"legacy": mcpstdio.LEGACY, "modern": mcpstdio.MODERN}


@pytest.fixture(scope="module")
def anyio_backend():
    """The event loop of these tests."""
    return "asyncio"


@pytest.fixture(params=WAYS)
def way(request):
    """A transport and an era."""
    return request.param


@pytest.fixture
def connect(state, request):
    """Makes clients: connect("stdio-modern", elicitation_callback=...)."""

    def make(way, **options):
        transport, era = way.split("-")
        if transport == "http":
            server = request.getfixturevalue("http_server").url
        else:
            directory = state / way
            directory.mkdir(exist_ok=True)
            server = StdioServerParameters(command=str(mcpstdio.AGENT), args=["mcp"],
                                           env=mcpstdio.environment(directory))
        return Client(server, mode=MODES[era], **options)

    return make


async def create(client, language="python", **arguments):
    """Create a session and return its id."""
    result = await client.call_tool("create_session", {"language": language, **arguments})
    assert not result.is_error, result
    return result.structured_content["session_id"]


async def execute(client, session, code, **options):
    """Run a cell and return the payload."""
    arguments = {"session_id": session, "code": code} | {
        name: options.pop(name) for name in ("timeout",) if name in options}
    result = await client.call_tool("execute_code", arguments, **options)
    return result.structured_content


@contextlib.asynccontextmanager
async def session_of(client, language="python"):
    """A session for a block; a server over HTTP would keep it."""
    session = await create(client, language)
    try:
        yield session
    finally:
        await client.call_tool("stop_session", {"session_id": session})


def plain(payload):
    """Return the text of a cell's value."""
    return (payload["result"] or {}).get("text/plain")


async def test_main_path(connect, way):
    async with connect(way) as client:
        assert client.protocol_version == VERSIONS[way.split("-")[1]]
        assert client.server_info.name == "sandbox-agent"
        tools = (await client.list_tools()).tools
        assert len(tools) == 8
        for tool in tools:
            Draft202012Validator.check_schema(tool.input_schema)
            Draft202012Validator.check_schema(tool.output_schema)
        async with session_of(client) as session:
            assert (await execute(client, session, "total = 40; print('ü')"))["stdout"] == "ü\n"
            assert plain(await execute(client, session, "total + 2")) == "42"
            result = await client.call_tool("execute_code", {
                "session_id": session, "code": "import matplotlib.pyplot as plt\n"
                "plt.plot([3, 1, 2]); plt.show(); print('drawn')"})
            image, = [block for block in result.content if block.type == "image"]
            assert image.mime_type == "image/png"
            assert base64.b64decode(image.data).startswith(b"\x89PNG\r\n")
            assert image.data[:60] not in str(result.structured_content)
            assert result.structured_content["stdout"] == "drawn\n"
            listed = await client.call_tool("list_sessions", {})
            assert session in str(listed.structured_content)
        listed = await client.call_tool("list_sessions", {})
        assert session not in str(listed.structured_content)


async def test_every_answer_is_as_the_output_schema_says(connect, way):
    """The SDK checks good answers by itself; what is refused is held to the schema, too."""
    unknown = "0123abcd"
    async with connect(way) as client:
        schemas = {tool.name: Draft202012Validator(tool.output_schema)
                   for tool in (await client.list_tools()).tools}
        async with session_of(client) as session:
            calls = [
                ("create_session", {"language": "cobol"}, False),
                ("create_session", {"language": "python", "network": "none"}, True),
                ("execute_code", {"session_id": session, "code": "1/0"}, False),
                ("execute_code", {"session_id": session, "code": "{'a': [1]}"}, True),
                ("execute_code", {"session_id": session}, False),
                ("execute_code", {"session_id": unknown, "code": "1"}, False),
                ("execute_code", {"session_id": session, "code": "while 1: pass", "timeout": 1},
                 False),
                ("execute_terminal", {"session_id": session, "command": "exit 3"}, None),
                ("execute_terminal", {"session_id": unknown, "command": "true"}, False),
                ("import_files", {"session_id": session, "files": [
                    {"file_content": "YWJj", "encoding": "base64", "destination": "a.bin"}]},
                 True),
                ("import_files", {"session_id": session, "files": [{"source": "/etc/passwd"}]},
                 False),
                ("import_files", {"session_id": session, "files": []}, False),
                ("export_files", {"session_id": session, "files": [{"source": "a.bin"}]}, True),
                ("export_files", {"session_id": session, "files": [{"source": "none"}]}, False),
                ("interrupt_session", {"session_id": session}, None),
                ("interrupt_session", {"session_id": unknown}, False),
                ("stop_session", {"session_id": unknown}, False),
                ("list_sessions", {}, None),
            ]
            for name, arguments, success in calls:
                result = await client.call_tool(name, arguments)
                errors = list(schemas[name].iter_errors(result.structured_content))
                assert not errors, (name, arguments, errors[0].message)
                if success is not None:
                    assert result.structured_content["success"] is success, (name, arguments)
                assert result.content and result.content[0].type == "text"


async def test_case_08_long_cell_reports_progress(connect):
    """75 seconds, through each transport in each era at once."""
    seen = {way: [] for way in WAYS}

    async def watch(way):
        async with connect(way) as client, session_of(client) as session:
            start = time.monotonic()

            async def progress(value, _total, message):
                seen[way].append((time.monotonic() - start, value, message))

            payload = await execute(
                client, session, "import time\nfor i in range(75):\n    time.sleep(1)\n"
                "    if i % 30 == 9: print('second', i)\n'done'", timeout=120,
                progress_callback=progress)
            took = time.monotonic() - start
            assert plain(payload) == "'done'" and 75 <= took < 90
            count = len(seen[way])
            await anyio.sleep(3)
            assert len(seen[way]) == count, "progress after the result"
            moments = [0, *(moment for moment, _, _ in seen[way]), took]
            gaps = [b - a for a, b in zip(moments, moments[1:], strict=False)]
            assert max(gaps) <= 20, gaps
            values = [value for _, value, _ in seen[way]]
            assert all(a < b for a, b in zip(values, values[1:], strict=False)), values
            assert "second" in str([message for _, _, message in seen[way]]), "no live output"

    async with anyio.create_task_group() as group:
        for way in WAYS:
            group.start_soon(watch, way)


async def test_case_45_cancel_frees_the_slot(connect, way):
    async with connect(way) as client, session_of(client) as session:
        assert plain(await execute(client, session, "kept = 7; kept")) == "7"
        with anyio.move_on_after(2) as scope:
            await execute(client, session, "import time; time.sleep(300)", timeout=300)
        assert scope.cancelled_caught
        start = time.monotonic()
        payload = await execute(client, session, "kept")
        assert plain(payload) == "7" and payload["state"] == "kept"
        assert time.monotonic() - start < 2


class Answers:
    """Answers elicitations, and remembers what was asked."""

    def __init__(self, line, action="accept"):
        self.line, self.action, self.asked = line, action, []

    async def __call__(self, _context, params):
        self.asked.append(params)
        if self.action != "accept":
            return mcp_types.ElicitResult(action=self.action)
        names = list(params.requested_schema["properties"])
        return mcp_types.ElicitResult(action="accept", content=dict.fromkeys(names, self.line))


async def test_case_57_input_is_answered_by_the_client(connect, way):
    answers = Answers("Ada")
    async with connect(way, elicitation_callback=answers) as client, \
            session_of(client) as session:
        payload = await execute(
            client, session, "print('first')\nname = input('name? ')\nprint('hello', name)\nname")
        assert plain(payload) == "'Ada'" and payload["status"] == "ok"
        assert payload["stdout"].startswith("first\n") and "hello Ada\n" in payload["stdout"]
        assert len(answers.asked) == 1 and "name? " in answers.asked[0].message
        payload = await execute(client, session, "a = input('1'); b = input('2'); a + b")
        assert plain(payload) == "'AdaAda'" and len(answers.asked) == 3
        # A form is no place for a password, says the protocol: the code is told so at once.
        payload = await execute(client, session, "import getpass; getpass.getpass('word? ')")
        assert payload["status"] == "error" and len(answers.asked) == 3


@pytest.mark.parametrize(("language", "code"), [
    ("r", "x <- readline('name? '); x"), ("node", "prompt('name? ')")])
async def test_case_57_other_languages(connect, way, language, code):
    answers = Answers("Ada")
    async with connect(way, elicitation_callback=answers) as client, \
            session_of(client, language) as session:
        payload = await execute(client, session, code)
        assert "Ada" in plain(payload) and "name? " in answers.asked[0].message


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_case_57_a_refusal_ends_input_at_once(connect, way, action):
    async with connect(way, elicitation_callback=Answers("", action)) as client, \
            session_of(client) as session:
        start = time.monotonic()
        payload = await execute(client, session, "input('name? ')")
        assert payload["status"] == "error" and payload["state"] == "kept"
        assert time.monotonic() - start < 10
        assert plain(await execute(client, session, "1 + 1")) == "2"


async def test_case_57_a_client_that_cannot_answer(connect, way):
    async with connect(way) as client, session_of(client) as session:
        start = time.monotonic()
        payload = await execute(client, session, "input('name? ')")
        assert payload["status"] == "error" and time.monotonic() - start < 5
        assert payload["error"]["message"]


async def test_exported_files_are_resources(connect, way):
    async with connect(way) as client, session_of(client) as session:
        await execute(client, session, "open('ü.csv', 'w').write('a,b\\n1,2\\n')\n"
                      "open('x.bin', 'wb').write(bytes(range(256)))")
        exported = await client.call_tool("export_files", {
            "session_id": session, "files": [{"source": "ü.csv"}, {"source": "x.bin"}]})
        assert exported.structured_content["success"]
        links = {str(block.name): block for block in exported.content
                 if block.type == "resource_link"}
        assert set(links) == {"ü.csv", "x.bin"}
        listed = {str(resource.uri): resource
                  for resource in (await client.list_resources()).resources}
        for link in links.values():
            assert str(link.uri) in listed
        content, = (await client.read_resource(links["ü.csv"].uri)).contents
        assert content.text == "a,b\n1,2\n"
        content, = (await client.read_resource(links["x.bin"].uri)).contents
        assert base64.b64decode(content.blob) == bytes(range(256))
        with pytest.raises(MCPError) as error:
            await client.read_resource(str(links["x.bin"].uri) + "-not")
        assert error.value.code == -32602 or way.endswith("legacy")
    with_nothing = links["x.bin"].uri
    async with connect(way) as client:
        with pytest.raises(MCPError):
            await client.read_resource(with_nothing)


async def test_an_unknown_tool_is_an_error_of_the_protocol(connect, way):
    async with connect(way) as client:
        with pytest.raises(MCPError) as error:
            await client.call_tool("no_such_tool", {})
        assert error.value.code == -32602


class TaskResult(mcp_types.Result):
    """The answer to a call that goes on as a task."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    poll_interval_ms: int | None = None


class TaskParams(mcp_types.RequestParams):
    """Which task."""

    task_id: str


class TaskRequest(mcp_types.Request[TaskParams, str]):
    """A request about a task."""

    name_param = "taskId"
    method: str
    params: TaskParams


class TaskState(mcp_types.Result):
    """What tasks/get tells."""

    task_id: str
    status: str
    result: dict | None = None
    error: dict | None = None


class Tasks(ClientExtension):
    """The extension io.modelcontextprotocol/tasks: polls a task until it is at its end."""

    identifier = mcpstdio.TASKS

    def __init__(self):
        self.polled, self.task = [], None

    def claims(self):
        """Take over results of the kind `task`."""
        return [ResultClaim(result_type="task", model=TaskResult, resolve=self.resolve)]

    async def ask(self, session, method, task_id):
        """Send a request about a task."""
        request = TaskRequest(method=method, params=TaskParams(task_id=task_id))
        return await session.send_request(request, TaskState)

    async def resolve(self, task, context):
        """Poll."""
        self.task = task
        while True:
            await anyio.sleep((task.poll_interval_ms or 1000) / 1000)
            state = await self.ask(context.session, "tasks/get", task.task_id)
            self.polled.append(state.status)
            if state.status != "working":
                break
        assert state.status == "completed", state
        return mcp_types.CallToolResult.model_validate(state.result)


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_case_08_a_long_cell_becomes_a_task(connect, transport):
    tasks = Tasks()
    async with connect(f"{transport}-modern", extensions=[tasks]) as client, \
            session_of(client) as session:
        assert plain(await execute(client, session, "short = 1; short")) == "1"
        assert tasks.task is None, "a short call is answered at once"
        start = time.monotonic()
        payload = await execute(client, session, "import time; time.sleep(20); 'done'",
                                timeout=60)
        assert plain(payload) == "'done'" and 20 <= time.monotonic() - start < 30
        assert tasks.task is not None and tasks.polled[-1] == "completed"
        assert set(tasks.polled) <= {"working", "completed"}


async def test_case_38_two_calls_at_once(connect, way):
    async with connect(way) as client, session_of(client) as one, session_of(client) as two:
        ends, payloads = {}, {}

        async def cell(name, session, code):
            payloads[name] = await execute(client, session, code)
            ends[name] = time.monotonic()

        async with anyio.create_task_group() as group:
            group.start_soon(cell, "a", one,
                             "import time; print('A1'); time.sleep(1); print('A2')")
            await anyio.sleep(0.2)
            group.start_soon(cell, "b", one, "print('B')")
        assert payloads["a"]["stdout"] == "A1\nA2\n" and payloads["b"]["stdout"] == "B\n"
        assert ends["a"] <= ends["b"]
        start = time.monotonic()
        async with anyio.create_task_group() as group:
            for name, session in (("x", one), ("y", two)):
                group.start_soon(cell, name, session, "import time; time.sleep(1)")
        assert time.monotonic() - start < 1.6
