# SPDX-License-Identifier: MIT
"""What the tests with foreign clients share: a server over HTTP, and a state directory each."""

import mcpstdio
import pytest


@pytest.fixture
def state(tmp_path_factory):
    """A state directory of its own."""
    return tmp_path_factory.mktemp("mcp")


@pytest.fixture(scope="module")
def http_server(tmp_path_factory):
    """A server over HTTP for the tests of a module."""
    directory = tmp_path_factory.mktemp("http")
    with mcpstdio.HttpServer(directory) as server:
        yield server
    mcpstdio.assert_nothing_left(directory, within=5)
