# SPDX-License-Identifier: MIT
"""MCP Inspector's command line: what a person types to look at a server."""

import base64
import json
import os
import shlex
import subprocess

import conformance
import mcpstdio
import pytest

LAUNCHER = conformance.CLIENTS / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
TOOLS = {"create_session", "execute_code", "execute_terminal", "import_files", "export_files",
         "stop_session", "list_sessions", "interrupt_session"}
ERAS = ("legacy", "modern")
PLOT = "import matplotlib.pyplot as plt; plt.plot([3, 1, 2]); plt.show()"
OK, USAGE, UNREACHABLE, TOOL_ERROR = 0, 1, 4, 5


@pytest.fixture
def inspector(tmp_path):
    """Runs Inspector; returns its CompletedProcess, `data` being what it printed."""

    def call(*words, era="legacy", timeout=120):
        done = subprocess.run(
            [conformance.NODE, LAUNCHER, "--cli", *map(str, words), "--format", "json", "--quiet",
             "--protocol-era", era],
            capture_output=True, text=True, timeout=timeout, check=False, cwd=tmp_path,
            stdin=subprocess.DEVNULL, env=os.environ | {"HOME": str(tmp_path)})
        done.data = json.loads(done.stdout) if done.stdout.strip() else None
        return done

    return call


@pytest.fixture
def config(tmp_path, state):
    """Writes a configuration as clients keep it; returns the words that select it."""

    def write(*words, **settings):
        environment = {name: value for name, value in
                       mcpstdio.environment(state, **settings).items()
                       if name.startswith(("SANDBOX_", "CONTAINER_", "XDG_"))}
        entry = {"command": str(mcpstdio.AGENT), "args": ["mcp", *words], "env": environment}
        path = tmp_path / "servers.json"
        path.write_text(json.dumps({"mcpServers": {"sandbox": entry}}))
        return ["--config", path, "--server", "sandbox"]

    return write


def result_of(done):
    """Return the result of a call that worked."""
    assert done.returncode == OK, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.data.get("result", done.data)


def call(tool, **arguments):
    """Return the words of a call of a tool."""
    return ["--method", "tools/call", "--tool-name", tool, "--tool-args-json",
            json.dumps(arguments)]


def assert_is_plot(result):
    """The result of a cell that drew: an image block, and no base64 anywhere else."""
    images = [block for block in result["content"] if block["type"] == "image"]
    assert len(images) == 1 and images[0]["mimeType"] == "image/png"
    assert base64.b64decode(images[0]["data"], validate=True).startswith(b"\x89PNG\r\n")
    assert not result.get("isError")
    rest = json.dumps([b for b in result["content"] if b["type"] != "image"])
    for text in (rest, json.dumps(result["structuredContent"])):
        assert images[0]["data"][:60] not in text


@pytest.mark.parametrize("era", ERAS)
def test_stdio_lists_the_eight_tools(inspector, config, state, era):
    done = inspector(*config(), "--method", "tools/list", "--strict", era=era)
    tools = result_of(done)["tools"]
    assert {tool["name"] for tool in tools} == TOOLS and len(tools) == len(TOOLS)
    for tool in tools:
        assert tool["title"] and tool["description"] and tool["outputSchema"]["type"] == "object"
        assert set(tool["annotations"]) >= {"readOnlyHint", "destructiveHint", "idempotentHint",
                                            "openWorldHint"}
    mcpstdio.assert_nothing_left(state, within=2)


def test_stdio_as_the_command_line_of_the_manual(inspector, state, monkeypatch):
    """Inspector hands no more than HOME and PATH on, so that the machine's defaults hold."""
    done = inspector(mcpstdio.AGENT, "mcp", "-e", f"SANDBOX_STATE_DIR={state}",
                     "--method", "tools/list")
    assert {tool["name"] for tool in result_of(done)["tools"]} == TOOLS


@pytest.mark.parametrize("era", ERAS)
def test_stdio_plot_is_an_image_block(inspector, config, state, era):
    """A process for each call, so the session has to live on and be found again."""
    server = config("--keep-sessions", SANDBOX_LEASE_SECONDS=60)
    session = result_of(inspector(*server, *call("create_session"), era=era))[
        "structuredContent"]["session_id"]
    result = result_of(inspector(
        *server, *call("execute_code", session_id=session, code=PLOT), era=era))
    assert_is_plot(result)
    listed = result_of(inspector(*server, *call("list_sessions"), era=era))
    assert session in json.dumps(listed["structuredContent"])
    assert result_of(inspector(*server, *call("stop_session", session_id=session), era=era))[
        "structuredContent"]["success"]
    mcpstdio.assert_nothing_left(state, {session}, within=10)


@pytest.mark.parametrize("era", ERAS)
def test_http_plot_and_export(inspector, http_server, era):
    """A session, a plot, a file that is exported and read as a resource, over HTTP."""
    server = [http_server.url, "--transport", "http"]
    assert {tool["name"] for tool in
            result_of(inspector(*server, "--method", "tools/list", era=era))["tools"]} == TOOLS
    session = result_of(inspector(*server, *call("create_session"), era=era))[
        "structuredContent"]["session_id"]
    assert_is_plot(result_of(inspector(
        *server, *call("execute_code", session_id=session, code=PLOT), era=era)))
    result_of(inspector(*server, *call(
        "execute_terminal", session_id=session, command="printf 'a,b\\n' > ü.csv"), era=era))
    exported = result_of(inspector(*server, *call(
        "export_files", session_id=session, files=[{"source": "ü.csv"}]), era=era))
    links = [block for block in exported["content"] if block["type"] == "resource_link"]
    assert len(links) == 1 and exported["structuredContent"]["files"][0]["success"]
    resources = result_of(inspector(*server, "--method", "resources/list", era=era))["resources"]
    assert links[0]["uri"] in [resource["uri"] for resource in resources]
    read = result_of(inspector(*server, "--method", "resources/read", "--uri", links[0]["uri"],
                               era=era))["contents"]
    assert read[0]["uri"] == links[0]["uri"]
    assert read[0].get("text", base64.b64decode(read[0].get("blob", "")).decode()) == "a,b\n"
    result_of(inspector(*server, *call("stop_session", session_id=session), era=era))


@pytest.mark.parametrize("era", ERAS)
def test_exit_status(inspector, config, http_server, era):
    """What a script sees: each kind of failure by its own number."""
    server = config()
    bad = inspector(*server, *call("execute_code", session_id="0123abcd", code="1"), era=era)
    assert bad.returncode == TOOL_ERROR, (bad.returncode, bad.stdout, bad.stderr)
    assert "create_session" in bad.stdout + bad.stderr or "not found" in bad.stdout + bad.stderr
    bad = inspector(*server, *call("execute_code", session_id=5), era=era)
    assert bad.returncode == TOOL_ERROR and "INVALID_INPUT" in bad.stdout + bad.stderr
    bad = inspector(http_server.url, *call("no_such_tool"), era=era)
    assert bad.returncode == TOOL_ERROR
    assert inspector(*server, "--method", "no/such", era=era).returncode == USAGE
    bad = inspector("http://127.0.0.1:1/mcp", "--method", "tools/list", era=era)
    assert bad.returncode == UNREACHABLE
    assert json.loads(bad.stderr.strip().splitlines()[-1])


@pytest.mark.parametrize("client", ("claude", "cursor"))
def test_printed_configuration_is_used_as_it_is(inspector, tmp_path, client):
    """What --print-config prints is a configuration, with paths that need no PATH and no cwd."""
    printed = subprocess.run([mcpstdio.AGENT, "mcp", "--print-config", client],
                             capture_output=True, text=True, check=True)
    servers = json.loads(printed.stdout)["mcpServers"]
    (name, entry), = servers.items()
    assert os.path.isabs(entry["command"]) and entry["args"][0] == "mcp"
    path = tmp_path / "printed.json"
    path.write_text(printed.stdout)
    done = inspector("--config", path, "--server", name, "--method", "tools/list")
    assert {tool["name"] for tool in result_of(done)["tools"]} == TOOLS


def test_printed_configuration_has_the_other_options(tmp_path):
    settings = tmp_path / "it's.env"
    settings.write_text("")
    words = ["--keep-sessions", "--env-file", os.path.relpath(settings, tmp_path)]

    def printed(client, *options):
        return subprocess.run([mcpstdio.AGENT, "mcp", "--print-config", client, *options],
                              capture_output=True, text=True, check=False, cwd=tmp_path)

    entry = json.loads(printed("vscode", *words).stdout)["servers"]["sandbox-agent"]
    assert entry["type"] == "stdio"
    assert entry["args"] == ["mcp", "--keep-sessions", "--env-file", str(settings)]
    assert shlex.split(printed("claude-code", *words).stdout)[8:] == entry["args"]
    entry = json.loads(printed("vscode", "--http", "127.0.0.1:8900").stdout)["servers"]
    assert entry == {"sandbox-agent": {"type": "http", "url": "http://127.0.0.1:8900/mcp"}}
    assert printed("claude", "--http", "127.0.0.1:8900").returncode == 2
    assert printed("claude", "--env-file", "missing").returncode == 2
    assert printed("emacs").returncode == 2
