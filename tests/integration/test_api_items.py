# SPDX-License-Identifier: MIT
"""The long-term store over HTTP: items, searches, namespaces, and what is no item."""

import pytest
from apiserver import ApiServer


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with two owners; requests are Ann's."""
    state = tmp_path_factory.mktemp("items")
    keys = state / "keys"
    keys.write_text("ann:key-of-ann-1234567890\nbob:key-of-bob-1234567890\n")
    keys.chmod(0o600)
    with ApiServer(state, key="key-of-ann-1234567890", API_KEYS_FILE=keys) as started:
        yield started


BOB = {"x-api-key": "key-of-bob-1234567890"}


def put(server, namespace, key, value, **body):
    """Put an item; return the status."""
    return server.request("PUT", "/store/items", {"namespace": namespace, "key": key,
                                                  "value": value} | body).status


def found(server, **body):
    """Return (namespace, key) of what a search finds."""
    response = server.post("/store/items/search", body)
    assert response.status == 200, response.text
    return [(".".join(i["namespace"]), i["key"]) for i in response.json["items"]]


def test_an_item_and_its_owner(server):
    """Put, get, replace and delete; another owner has none of it."""
    assert put(server, ["u", "x"], "k", {"a": [1, "ü"]}) == 204
    path = "/store/items?namespace=u.x&key=k"
    item = server.get(path).json
    assert (item["namespace"], item["key"], item["value"]) == (["u", "x"], "k", {"a": [1, "ü"]})
    assert server.get("/store/items?namespace=u&namespace=x&key=k").json == item
    assert put(server, ["u", "x"], "k", {"a": 2}) == 204
    again = server.get(path).json
    assert again["value"] == {"a": 2} and again["created_at"] == item["created_at"]
    missing = server.get(path, headers=BOB)
    assert (missing.status, missing.json) == (200, None)
    assert server.request("DELETE", "/store/items", {"namespace": ["u", "x"], "key": "k"},
                          BOB).status == 204
    assert server.get(path).json == again
    assert server.request("DELETE", "/store/items",
                          {"namespace": ["u", "x"], "key": "k"}).status == 204
    assert server.get(path).json is None
    assert server.delete(path).status == 204


def test_a_large_item(server):
    """As large as a body may be."""
    value = {"text": "x" * (20 << 20)}
    assert put(server, ["large"], "k", value) == 204
    assert server.get("/store/items?namespace=large&key=k").json["value"] == value
    assert found(server, namespace_prefix=["large"]) == [("large", "k")]


@pytest.mark.parametrize("body", [
    {"namespace": [], "key": "k", "value": {}},
    {"namespace": ["a.b"], "key": "k", "value": {}},
    {"namespace": [""], "key": "k", "value": {}},
    {"namespace": ["a\0b"], "key": "k", "value": {}},
    {"namespace": [1], "key": "k", "value": {}},
    {"namespace": "..", "key": "k", "value": {}},
    {"namespace": {}, "key": "k", "value": {}},
    {"namespace": ["a"] * 33, "key": "k", "value": {}},
    {"namespace": ["x" * 513], "key": "k", "value": {}},
    {"namespace": ["a"], "key": "", "value": {}},
    {"namespace": ["a"], "key": 1, "value": {}},
    {"namespace": ["a"], "key": "k\0", "value": {}},
    {"namespace": ["a"], "value": {}},
    {"namespace": ["a"], "key": "k"},
    {"namespace": ["a"], "key": "k", "value": [1]},
    {"namespace": ["a"], "key": "k", "value": {}, "ttl": 0},
    {"namespace": ["a"], "key": "k", "value": {}, "ttl": "1"},
])
def test_what_is_no_item(server, body):
    """Every member has its form."""
    assert server.request("PUT", "/store/items", body).status == 422


def test_searches(server):
    """By prefix, value, text and page."""
    for i in range(12):
        assert put(server, ["s", f"n{i % 2}"], f"k{i:02}", {"i": i, "of": {"x": i % 3}}) == 204
    assert put(server, ["s2"], "other", {"i": 0}) == 204
    assert len(found(server, namespace_prefix=["s"])) == 10
    assert len(found(server, namespace_prefix=["s"], limit=100)) == 12
    assert len(found(server, namespace_prefix=["s"], limit=100, offset=10)) == 2
    assert {n for n, _ in found(server, namespace_prefix=["s", "n1"], limit=100)} == {"s.n1"}
    assert len(found(server, namespace_prefix=["s"], filter={"of": {"x": 1}}, limit=100)) == 4
    assert found(server, namespace_prefix=["s"], filter={"i": 7}) == [("s.n1", "k07")]
    assert found(server, namespace_prefix=["s"], query='"i":11') == [("s.n1", "k11")]
    assert found(server, namespace_prefix=["no"]) == []
    assert server.post("/store/items/search", {"filter": {"i": {"$gt": 3}}}).status == 422
    assert server.post("/store/items/search", {"limit": 0}).status == 422
    assert server.post("/store/items/search", {"limit": 1001}).status == 422
    assert server.post("/store/items/search", {}, headers=BOB).json["items"] == []


def test_time_to_live(server):
    """An item whose time is over is gone at once."""
    assert put(server, ["ttl"], "short", {}, ttl=0.0000001) == 204
    assert put(server, ["ttl"], "long", {}, ttl=5) == 204
    assert found(server, namespace_prefix=["ttl"]) == [("ttl", "long")]
    assert server.get("/store/items?namespace=ttl&key=short").json is None


def test_namespaces(server):
    """By prefix, suffix, wildcard and depth; each once, sorted."""
    for namespace in (["z", "a", "x"], ["z", "a", "y"], ["z", "b", "x"], ["z"], ["z-z"]):
        assert put(server, namespace, "k", {}) == 204

    def names(**body):
        response = server.post("/store/namespaces", body)
        assert response.status == 200, response.text
        return [".".join(n) for n in response.json["namespaces"] if n[0].startswith("z")]

    assert names() == ["z", "z-z", "z.a.x", "z.a.y", "z.b.x"]
    assert names(prefix=["z"]) == ["z", "z.a.x", "z.a.y", "z.b.x"]
    assert names(prefix=["z", "*", "x"]) == ["z.a.x", "z.b.x"]
    assert names(suffix=["x"]) == ["z.a.x", "z.b.x"]
    assert names(prefix=["z"], max_depth=2) == ["z", "z.a", "z.b"]
    assert names(prefix=["z"], limit=1, offset=1) == ["z.a.x"]
    assert server.post("/store/namespaces", {"max_depth": 0}).status == 422
    assert server.post("/store/namespaces", {}, headers=BOB).json == {"namespaces": []}
