# SPDX-License-Identifier: MIT
"""The first use of an image that is not there, by MCP: case 44 and the progress of the build."""

import json

import mcpstdio
import ownimage
import pytest


@pytest.mark.usefixtures("state_dir")
@pytest.mark.parametrize("era", ("legacy", "modern"))
def test_case_44_a_first_use_builds_and_tells_how_far_it_is(tmp_path, era):
    settings, _ = ownimage.environment(mcpstdio.AGENT, tmp_path)
    with mcpstdio.Server(tmp_path / "state", era=era, settings=settings) as server:
        if era == "legacy":
            server.initialize()
        result = server.call("create_session", {"language": "node"}, {"progressToken": "b"}, 300)
        assert not result["isError"], result
        told = server.notifications("notifications/progress", "b")
        assert any("building image" in params.get("message", "") for params in told), told
        values = [params["progress"] for params in told]
        assert values == sorted(set(values))
        session = result["structuredContent"]["session_id"]
        assert server.execute(session, "6 * 7")["result"]["text/plain"] == "42"
    assert all(json.loads(line) for line in server.lines)
