# SPDX-License-Identifier: MIT
"""Fixtures over the real program and library; they need the images (`image build`)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))

import sa as sa_module  # noqa: E402

AGENT = str(sa_module.BUILD / "sandbox-agent")
IMAGES = os.environ.get("SANDBOX_IMAGE_DIR", "/var/lib/sandbox-agent/images")
LANGUAGES = ("python", "node", "r")


@pytest.fixture(scope="session")
def state_dir(tmp_path_factory):
    """A state directory of this test run; the images are shared."""
    path = tmp_path_factory.mktemp("state")
    os.environ["SANDBOX_STATE_DIR"] = str(path)
    os.environ["SANDBOX_IMAGE_DIR"] = IMAGES
    os.environ.setdefault("CONTAINER_MAX_SESSIONS", "40")
    return path


@pytest.fixture(scope="session")
def sa(state_dir):
    """The open library, shared by all tests that need nothing special."""
    library = sa_module.Library(instance="test")
    yield library
    library.close()


@pytest.fixture
def make(sa):
    """Creates sessions that end with the test."""
    made = []

    def create(language="python", **options):
        made.append(sa.create(language, **options))
        return made[-1]

    yield create
    for session in made:
        try:
            session.stop()
        except sa_module.Error:
            pass


@pytest.fixture
def agent(state_dir):
    """Runs the program: agent("run", "-c", "1") -> CompletedProcess with text output."""

    def call(*words, env=None, timeout=180, input=None, **options):
        return subprocess.run(
            [AGENT, *map(str, words)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **(env or {})},
            input=input,
            stdin=None if input is not None else subprocess.DEVNULL,
            check=False,
            **options,
        )

    return call
