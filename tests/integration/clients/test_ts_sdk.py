# SPDX-License-Identifier: MIT
"""MCP's official TypeScript SDKs, old and new, as clients (driver.mjs walks the path)."""

import json
import os
import subprocess
from pathlib import Path

import conformance
import mcpstdio
import pytest

DRIVER = Path(__file__).with_name("driver.mjs")
WAYS = [("v1", "legacy"), ("v2", "legacy"), ("v2", "modern")]


@pytest.fixture(scope="module")
def drivers(tmp_path_factory, request):
    """One driver for each way and transport, all of them under way at once."""
    home = tmp_path_factory.mktemp("drivers")
    (home / "node_modules").symlink_to(conformance.CLIENTS)
    driver = home / DRIVER.name
    driver.write_bytes(DRIVER.read_bytes())
    started = {}
    for sdk, era in WAYS:
        for transport in ("stdio", "http"):
            state = tmp_path_factory.mktemp("mcp")
            options = {"sdk": sdk, "era": era}
            if transport == "http":
                options["url"] = request.getfixturevalue("http_server").url
            else:
                options |= {"command": str(mcpstdio.AGENT), "env": mcpstdio.environment(state)}
            process = subprocess.Popen(
                [conformance.NODE, driver, json.dumps(options)], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, env=os.environ | {"HOME": str(home)})
            started[sdk, era, transport] = process, state
    yield started
    for process, _ in started.values():
        process.kill()
        process.communicate()


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize(("sdk", "era"), WAYS)
def test_main_path(drivers, sdk, era, transport):
    process, state = drivers[sdk, era, transport]
    stdout, stderr = process.communicate(timeout=200)
    assert process.returncode == 0, stderr[-3000:]
    seen = json.loads(stdout)

    assert seen["server"]["name"] == "sandbox-agent" and len(seen["tools"]) == 8
    assert seen["kept"] == "42" and seen["input"] == "'Ada'" and "name? " in seen["asked"][0]
    images = [block for block in seen["blocks"] if block["type"] == "image"]
    assert len(images) == 1 and images[0]["mimeType"] == "image/png"
    assert images[0]["start"] == "iVBORw0K"
    assert seen["long"] == "'done'"
    progress = seen["progress"]
    assert progress and all(a < b for a, b in zip(progress, progress[1:], strict=False))
    assert seen["aborted"] and seen["afterAbort"] == "7" and seen["afterAbortMs"] < 2000
    assert seen["listed"] and seen["file"] == "a,b\n"
    assert seen["missing"] and seen["refused"] is True
    if transport == "stdio":
        mcpstdio.assert_nothing_left(state, {seen["session"]}, within=2)
