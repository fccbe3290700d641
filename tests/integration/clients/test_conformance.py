# SPDX-License-Identifier: MIT
"""MCP's official conformance suite: each scenario that the two eras require, over HTTP."""

import conformance
import mcpstdio
import pytest

EXPECTED = {"2025-11-25": 30, "2026-07-28": 37}


@pytest.fixture(scope="module", params=list(conformance.REQUIRED))
def revision(request):
    """One of the two revisions."""
    return request.param


@pytest.fixture(scope="module")
def outcome(revision, tmp_path_factory):
    """What the suite found in a revision, run once."""
    directory = tmp_path_factory.mktemp("conformance")
    with mcpstdio.HttpServer(directory / "state", "--conformance-fixture") as server:
        found = conformance.run(revision, server.url, directory / "results")
    print(conformance.table(revision, found[0]))
    return found


def test_the_suite_runs_what_is_required(outcome, revision):
    scenarios, status, printed = outcome
    required = conformance.REQUIRED[revision]
    assert len(required) == len(set(required)) == EXPECTED[revision]
    assert not set(required) - set(scenarios)
    assert status == 0, printed[-6000:]


CASES = [(revision, name) for revision, names in conformance.REQUIRED.items() for name in names]


@pytest.mark.parametrize(("revision", "name"), CASES, indirect=["revision"], scope="module")
def test_conformance(outcome, name):
    scenarios, _, _ = outcome
    assert name in scenarios, "it did not run"
    assert not scenarios[name].problems
