# SPDX-License-Identifier: MIT
"""The API's own description: rows API-09, API-10, API-12. Schemathesis asks what it promises."""

import json
import re
import subprocess
import sys
from pathlib import Path

import apiserver
import pytest

KEY = "openapi-key-0123456"

# Answers 400, too, say that a request was understood and cannot be done: 422 is "not as described".
# What makes a schedule, a form or a base URL good is more than a schema says.
CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 401, 403, 404, 409]

[[operations]]
include-path-regex = "/crons|/files/upload|/settings"
checks.positive_data_acceptance.enabled = false
"""

# Their event streams stay open, so they are asked only for what they have to refuse.
OPEN_ENDED = "/mcp|/stream|/wait|/join"

# A literal path is matched by a pattern beside it, too, so more methods are allowed than its own:
# /threads/search and /threads/{thread_id}.
LEFT_OUT = "unsupported_method,allow_header_conformance"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with a key whose runs need no model."""
    with apiserver.ApiServer(tmp_path_factory.mktemp("openapi"), key=KEY, API_KEY=KEY, CRONS="true",
                             CHAT_MODEL_PROVIDER="direct", REQUESTS_PER_SECOND="0") as api:
        yield api


def schemathesis(server, directory, *words):
    """Run it; fail with what it found."""
    (directory / "schemathesis.toml").write_text(CONFIG)
    command = [Path(sys.executable).parent / "schemathesis", "--config-file",
               directory / "schemathesis.toml", "run", f"{server.url}/openapi.json",
               "--header", f"x-api-key: {KEY}", "--seed", "1", "--max-examples", "6",
               "--request-timeout", "10", "--exclude-checks", LEFT_OUT, "--max-failures", "50",
               *words]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=240,
                          check=False)
    print(done.stdout[-1500:])
    assert done.returncode == 0, done.stdout[-12000:] + done.stderr[-2000:]
    return int(re.search(r"(\d+) generated", done.stdout).group(1))


def test_what_is_asked_as_described_is_answered_as_described(server, tmp_path):
    generated = schemathesis(server, tmp_path, "--phases", "coverage,fuzzing,stateful",
                             "--exclude-path-regex", OPEN_ENDED)
    assert generated > 1000
    assert server.get("/health").status == 200


def test_what_is_not_as_described_is_refused_by_streams_too(server, tmp_path):
    generated = schemathesis(server, tmp_path, "--phases", "coverage,fuzzing", "--mode", "negative",
                             "--include-path-regex", OPEN_ENDED)
    assert generated > 100
    assert server.get("/health").status == 200


def test_everything_is_described(server):
    described = server.get("/openapi.json").json
    assert described["openapi"].startswith("3.1")
    operations = {(method, path) for path, item in described["paths"].items() for method in item}
    for wanted in [("post", "/threads/{thread_id}/runs/stream"), ("post", "/assistants/search"),
                   ("put", "/store/items"), ("post", "/runs/crons"), ("post", "/mcp"),
                   ("post", "/threads/{thread_id}/files/upload"),
                   ("get", "/threads/{thread_id}/state")]:
        assert wanted in operations
    references = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(described)))
    assert references == set(described["components"]["schemas"])
    for path, item in described["paths"].items():
        for operation in item.values():
            named = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)", path))
            assert operation["summary"]
            assert "default" in operation["responses"]
    identifiers = [operation["operationId"] for item in described["paths"].values()
                   for operation in item.values()]
    assert len(identifiers) == len(set(identifiers))


def test_streams_and_forms_have_their_types(server):
    paths = server.get("/openapi.json").json["paths"]
    stream = paths["/threads/{thread_id}/runs/stream"]["post"]
    assert set(stream["responses"]["200"]["content"]) == {"text/event-stream"}
    assert "Content-Location" in stream["responses"]["200"]["headers"]
    upload = paths["/threads/{thread_id}/files/upload"]["post"]
    assert set(upload["requestBody"]["content"]) == {"multipart/form-data"}
    root = paths["/"]["get"]["responses"]["200"]["content"]
    assert set(root) == {"application/json", "text/html"}
    for kind in root:
        assert server.get("/", headers={"Accept": kind}).headers["content-type"].startswith(kind)


def test_keys_are_described_where_they_are_asked_for(server, tmp_path):
    described = server.get("/openapi.json").json
    assert set(described["components"]["securitySchemes"]) == {"ApiKey", "Bearer"}
    assert described["security"] == [{"ApiKey": []}, {"Bearer": []}]
    for path, item in described["paths"].items():
        for method, operation in item.items():
            if operation.get("security") == []:
                assert server.request(method.upper(), path, headers={"x-api-key": ""}).status == 200
    with apiserver.ApiServer(tmp_path) as open_server:
        open_description = open_server.get("/openapi.json").json
    assert "security" not in open_description
    assert "securitySchemes" not in open_description["components"]


def test_the_page_loads_nothing_and_runs_nothing(server):
    page = server.get("/docs")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    nonce = re.search(r"style-src 'nonce-(\w+)'", policy).group(1)
    assert "default-src 'self'" in policy
    assert page.text.count("<style") == page.text.count(f'<style nonce="{nonce}">') == 1
    assert "<script" not in page.text
    assert not re.search(r"""(src|href)="?(https?:|//)|url\(|@import|\bstyle=""", page.text)
    assert nonce not in server.get("/docs").headers["content-security-policy"]
    for path in server.get("/openapi.json").json["paths"]:
        assert f"<code>{path}</code>" in page.text


def test_health_has_the_members_of_three_contracts(server):
    health = server.get("/health").json
    assert health["status"] == "healthy"
    assert {health[name] for name in ("database", "langgraph_checkpointer", "langgraph_store")} == {
        "connected"}
