# SPDX-License-Identifier: MIT
"""A browser for all tests of the page, servers, and tabs that are checked when a test ends."""

import contextlib

import apiserver
import pytest
import webpage


@pytest.fixture(scope="module")
def chromium():
    """The browser: of one module, since the loop that drives it would be in the way of others."""
    with webpage.chromium() as browser:
        yield browser


@pytest.fixture
def server_of(tmp_path_factory):
    """Makes servers that last for a test: server_of(model, *options, **settings)."""
    with contextlib.ExitStack() as stack:

        def make(*words, **settings):
            directory = tmp_path_factory.mktemp("server")
            return stack.enter_context(apiserver.ApiServer(directory, *words, **settings))

        yield make


@pytest.fixture
def tab_of(chromium, request, server_of):
    """Makes tabs of a server, which they end before: tab_of(server, **options of the context)."""
    made = []

    def make(server, **options):
        made.append(webpage.Tab(chromium, server.url, **options))
        return made[-1]

    yield make
    failed = getattr(request.node, "has_failed", False)
    for tab in reversed(made):
        tab.close(check=not failed)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """Let the fixtures know whether the test itself has failed: then that is what is told."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "call":
        item.has_failed = report.failed


@pytest.fixture(scope="module")
def direct(tmp_path_factory):
    """A server that runs what is typed."""
    with apiserver.ApiServer(tmp_path_factory.mktemp("direct"),
                             CHAT_MODEL_PROVIDER="direct") as server:
        yield server
