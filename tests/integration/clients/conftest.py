# SPDX-License-Identifier: MIT
"""What the tests with foreign clients share: servers, a model, and a state directory each."""

import apiserver
import fakemodel
import mcpstdio
import pgcluster
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


def script(request):
    """The fake model's rules, and what tests of streams need: a text that waits to be released.

    "hold: NAME" says "Held", waits until model.release(NAME), and says " and released."
    """
    word, _, name = request.last_user_text.partition(": ")
    if word == "hold" and not request.results:
        return {"text": ["Held", {"wait": name}, " and released."]}
    return fakemodel.rules(request)


@pytest.fixture(scope="module")
def model():
    """A model that obeys the last message of the user (see script)."""
    with fakemodel.FakeModel(script) as fake:
        yield fake
        assert not fake.errors, fake.errors


@pytest.fixture(scope="session")
def cluster():
    """A PostgreSQL for all that want one; each of them has a database of its own."""
    with pgcluster.Cluster() as running:
        yield running


@pytest.fixture(scope="module")
def database():
    """The settings of the database: the embedded one, unless a module has its own fixture."""
    return {}


@pytest.fixture(scope="module")
def api(tmp_path_factory, model, database):
    """The agent's server for the tests of a module, with crons."""
    with apiserver.ApiServer(tmp_path_factory.mktemp("api"), model, CRONS="true",
                             **database) as server:
        yield server


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def both_databases(request):
    """The settings of one database after the other."""
    if request.param == "sqlite":
        return {}
    running = request.getfixturevalue("cluster")
    name = request.module.__name__.rpartition(".")[2]
    running.sql(f'CREATE DATABASE "{name}"', database="postgres")
    return running.environment(POSTGRES_DB=name)
