# SPDX-License-Identifier: MIT
"""MCP's official conformance suite: each scenario that the two eras require, over HTTP."""

import functools

import conformance
import mcpstdio
import pytest

EXPECTED = {"2025-11-25": 30, "2026-07-28": 37}
UNCHECKED = {"tasks-status-notifications"}  # the suite itself skips it


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """Tells what the suite found in a revision; runs it once."""

    @functools.cache
    def run(revision):
        directory = tmp_path_factory.mktemp("conformance")
        with mcpstdio.HttpServer(directory / "state", "--conformance-fixture") as server:
            found = conformance.run(revision, server.url, directory / "results")
        print(conformance.table(revision, found[0]))
        return found

    return run


@pytest.mark.parametrize("revision", EXPECTED)
def test_the_suite_runs_what_is_required(outcome, revision):
    scenarios, status, printed = outcome(revision)
    required = conformance.REQUIRED[revision]
    assert len(required) == len(set(required)) == EXPECTED[revision]
    assert not set(required) - set(scenarios)
    assert status == 0, printed[-6000:]


@pytest.mark.parametrize(("revision", "name"), [
    (revision, name) for revision, names in conformance.REQUIRED.items() for name in names])
def test_conformance(outcome, revision, name):
    scenarios, _, _ = outcome(revision)
    assert name in scenarios, "it did not run"
    assert not scenarios[name].problems


@pytest.mark.parametrize("revision", EXPECTED)
def test_what_is_not_required_passes_too(outcome, revision):
    scenarios, _, _ = outcome(revision)
    others = set(scenarios) - set(conformance.REQUIRED[revision]) - UNCHECKED
    assert others
    assert not {name: scenarios[name].problems for name in others if scenarios[name].problems}
