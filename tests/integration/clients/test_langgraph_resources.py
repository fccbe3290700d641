# SPDX-License-Identifier: MIT
"""LangGraph's Python SDK: assistants, threads, the store and crons."""

import time

import apiserver
import pytest
from langgraph_sdk import errors, get_sync_client


@pytest.fixture(scope="module")
def database(both_databases):
    """All of these on both databases."""
    return both_databases


@pytest.fixture(scope="module")
def sdk(api):
    """The synchronous client."""
    with get_sync_client(url=api.url) as client:
        yield client


@pytest.fixture
def thread(sdk):
    """The id of a new thread."""
    return sdk.threads.create()["thread_id"]


# ---- assistants ----


@pytest.mark.parametrize("name", ["agent", "sandbox-agent"])
def test_the_graph_by_both_names(sdk, name):
    found, = sdk.assistants.search(graph_id=name, metadata={"created_by": "system"})
    assert found["graph_id"] == name and found["version"] == 1
    assert sdk.assistants.get(name)["assistant_id"] == found["assistant_id"]
    schemas = sdk.assistants.get_schemas(name)
    assert set(schemas) >= {"graph_id", "input_schema", "output_schema", "state_schema",
                            "config_schema", "context_schema"}
    for key in ("input_schema", "output_schema", "config_schema", "context_schema"):
        assert isinstance(schemas[key]["properties"], dict)
    assert "messages" in schemas["input_schema"]["properties"]
    assert sdk.assistants.get_subgraphs(name, recurse=True) == {}
    for xray in (False, True, 2):
        graph = sdk.assistants.get_graph(name, xray=xray)
        assert [n["id"] for n in graph["nodes"]] == ["__start__", "model", "tools", "__end__"]
        edges = {(e["source"], e["target"], bool(e.get("conditional"))) for e in graph["edges"]}
        assert edges == {("__start__", "model", False), ("model", "tools", True),
                         ("model", "__end__", True), ("tools", "model", False)}


def test_ids_are_those_of_every_server(sdk):
    assert sdk.assistants.get("fe096781-5601-53d2-b2f6-0d3403f7e9ca")["graph_id"] in (
        "agent", "sandbox-agent")


def test_assistants_have_versions(sdk):
    made = sdk.assistants.create("agent", config={"recursion_limit": 7}, name="first",
                                 metadata={"team": "blue"})
    key = made["assistant_id"]
    assert made["version"] == 1 and made["config"]["recursion_limit"] == 7
    changed = sdk.assistants.update(key, name="second", metadata={"more": 1})
    assert changed["version"] == 2 and changed["metadata"] == {"team": "blue", "more": 1}
    versions = sdk.assistants.get_versions(key)
    assert [(v["version"], v["name"]) for v in versions] == [(2, "second"), (1, "first")]
    back = sdk.assistants.set_latest(key, 1)
    assert back["name"] == "first" and sdk.assistants.get(key)["version"] == 1
    with pytest.raises(errors.NotFoundError):
        sdk.assistants.set_latest(key, 9)
    assert [a["assistant_id"] for a in sdk.assistants.search(metadata={"team": "blue"})] == [key]
    assert sdk.assistants.search(name="IRS") != []
    assert sdk.assistants.count(metadata={"team": "blue"}) == 1
    sdk.assistants.delete(key)
    with pytest.raises(errors.NotFoundError):
        sdk.assistants.get(key)


def test_an_assistant_configures_its_runs(sdk, thread):
    key = sdk.assistants.create("agent", config={"configurable": {"approve_tools": "*"}}
                                )["assistant_id"]
    values = sdk.runs.wait(thread, key, input=apiserver.human("run: 1"))
    assert values["__interrupt__"]
    assert sdk.threads.get(thread)["metadata"]["assistant_id"] == key
    sdk.assistants.delete(key)


def test_assistants_that_exist(sdk):
    key = "11f0c4a1-62a0-4b0e-9d5a-2f6c8f1d8d10"
    sdk.assistants.create("agent", assistant_id=key)
    with pytest.raises(errors.ConflictError):
        sdk.assistants.create("agent", assistant_id=key)
    same = sdk.assistants.create("agent", assistant_id=key, if_exists="do_nothing")
    assert same["assistant_id"] == key
    with pytest.raises((errors.NotFoundError, errors.BadRequestError,
                        errors.UnprocessableEntityError)):
        sdk.assistants.create("no such graph")
    sdk.assistants.delete(key)


def test_lists_come_in_pages(sdk):
    keys = [sdk.assistants.create("agent", name=f"page {i}", metadata={"pages": True})
            ["assistant_id"] for i in range(5)]
    seen, offset = [], 0
    while True:
        page = sdk.assistants.search(metadata={"pages": True}, sort_by="name", sort_order="asc",
                                     limit=2, offset=offset, response_format="object")
        seen += [a["name"] for a in page["assistants"]]
        if page["next"] is None:
            break
        offset = int(page["next"])
    assert seen == [f"page {i}" for i in range(5)]
    for key in keys:
        sdk.assistants.delete(key)


# ---- threads ----


def test_threads(sdk):
    key = "4f6b6a2e-8d49-4f7a-9a35-0c8e0a6a5f01"
    made = sdk.threads.create(thread_id=key, metadata={"color": "red"})
    assert made["thread_id"] == key and made["status"] == "idle"
    assert set(made) >= {"created_at", "updated_at", "state_updated_at", "metadata", "config",
                         "status", "values", "interrupts"}
    with pytest.raises(errors.ConflictError):
        sdk.threads.create(thread_id=key)
    assert sdk.threads.create(thread_id=key, if_exists="do_nothing")["thread_id"] == key
    assert sdk.threads.update(key, metadata={"size": 2})["metadata"] == {"color": "red", "size": 2}
    state = sdk.threads.get_state(key)
    assert state["values"] == {} and state["next"] == [] and state["tasks"] == []
    assert sdk.threads.get_history(key) == []
    sdk.threads.delete(key)
    for call in (sdk.threads.get, sdk.threads.get_state, sdk.threads.delete):
        with pytest.raises(errors.NotFoundError):
            call(key)


def test_search_of_threads(sdk):
    keys = [sdk.threads.create(metadata={"find": "me", "n": i})["thread_id"] for i in range(4)]
    sdk.runs.wait(keys[1], "agent", input=apiserver.human("hello there"))

    def found(**options):
        return [t["thread_id"] for t in sdk.threads.search(**options)]

    # the one that has changed last comes first
    assert found(metadata={"find": "me"}) == [keys[1], keys[3], keys[2], keys[0]]
    assert found(metadata={"find": "me"}, sort_by="created_at", sort_order="asc") == keys
    assert found(metadata={"find": "me"}, sort_by="created_at", sort_order="asc", limit=2,
                 offset=1) == keys[1:3]
    assert found(metadata={"find": "me", "n": 2}) == [keys[2]]
    assert found(metadata={"find": "you"}) == []
    assert set(found(ids=keys[:2])) == set(keys[:2])
    assert found(ids=keys, status="busy") == []
    for name in ("agent", "sandbox-agent"):  # as Agent Chat UI lists them
        assert keys[1] in found(metadata={"graph_id": name}, limit=100)
    one, = sdk.threads.search(metadata={"n": 1}, select=["thread_id", "values"])
    assert set(one) == {"thread_id", "values"}
    assert one["values"]["messages"][0]["content"] == "hello there"
    taken, = sdk.threads.search(ids=[keys[1]], extract={"last": "values.messages[-1]"})
    assert taken["extracted"]["last"]["content"] == "You said: hello there"
    assert sdk.threads.count(metadata={"find": "me"}) == 4
    assert sdk.threads.count(metadata={"find": "me"}, status="idle") == 4
    with pytest.raises(errors.UnprocessableEntityError):
        found(limit=0)


def test_copy_has_all_of_the_history(sdk, thread):
    sdk.runs.wait(thread, "agent", input=apiserver.human("hello"))
    copy = sdk.threads.copy(thread)["thread_id"]
    assert copy != thread
    assert sdk.threads.get_state(copy)["values"] == sdk.threads.get_state(thread)["values"]
    assert len(sdk.threads.get_history(copy)) == 3
    sdk.runs.wait(copy, "agent", input=apiserver.human("more"))
    assert len(sdk.threads.get_state(copy)["values"]["messages"]) == 4
    assert len(sdk.threads.get_state(thread)["values"]["messages"]) == 2


def test_threads_with_a_past(sdk):
    made = sdk.threads.create(graph_id="agent", supersteps=[
        {"updates": [{"values": apiserver.human("once"), "as_node": "__start__"}]},
        {"updates": [{"values": {"messages": [{"role": "ai", "content": "then"}]},
                      "as_node": "model"}]}])
    state = sdk.threads.get_state(made["thread_id"])
    assert [m["content"] for m in state["values"]["messages"]] == ["once", "then"]
    assert state["next"] == []


def test_prune(sdk):
    keys = [sdk.threads.create()["thread_id"] for _ in range(3)]
    for key in keys:
        sdk.runs.wait(key, "agent", input=apiserver.human("hello"))
    assert sdk.threads.prune(keys[:1], strategy="keep_latest")["pruned_count"] == 1
    history = sdk.threads.get_history(keys[0])
    assert len(history) == 1 and len(history[0]["values"]["messages"]) == 2
    assert sdk.threads.prune(keys[1:])["pruned_count"] == 2
    for key in keys[1:]:
        with pytest.raises(errors.NotFoundError):
            sdk.threads.get(key)


def test_join_of_a_thread(sdk, thread):
    parts = sdk.runs.stream(thread, "agent", input=apiserver.human("hello"))
    streamed = [p for p in parts if p.event == "values"]
    joined = []
    for part in sdk.threads.join_stream(thread, last_event_id="-1"):
        joined.append(part)
        if part.event == "end":
            break
    assert [p for p in joined if p.event == "values"] == streamed


# ---- the store ----


def test_store(sdk):
    store = sdk.store
    assert store.get_item(["shop", "fruit"], "absent") is None
    store.put_item(["shop", "fruit"], "apple", {"price": 3, "kinds": ["red", "green"]})
    store.put_item(["shop", "fruit"], "pear", {"price": 4})
    store.put_item(["shop", "tools", "sharp"], "saw", {"price": 30})
    item = store.get_item(["shop", "fruit"], "apple")
    assert item["namespace"] == ["shop", "fruit"] and item["key"] == "apple"
    assert item["value"] == {"price": 3, "kinds": ["red", "green"]}
    assert set(item) >= {"created_at", "updated_at"}
    assert {i["key"] for i in store.search_items(["shop"])["items"]} == {"apple", "pear", "saw"}
    assert [i["key"] for i in store.search_items(["shop"], filter={"price": 4})["items"]] == [
        "pear"]
    assert len(store.search_items(["shop"], limit=1, offset=2)["items"]) == 1
    assert [i["key"] for i in store.search_items(["shop"], query="green")["items"]][:1] == [
        "apple"]
    spaces = store.list_namespaces(prefix=["shop"])["namespaces"]
    assert sorted(spaces) == [["shop", "fruit"], ["shop", "tools", "sharp"]]
    assert sorted(store.list_namespaces(prefix=["shop"], max_depth=2)["namespaces"]) == [
        ["shop", "fruit"], ["shop", "tools"]]
    assert store.list_namespaces(suffix=["sharp"])["namespaces"] == [["shop", "tools", "sharp"]]
    store.delete_item(["shop", "fruit"], "apple")
    assert store.get_item(["shop", "fruit"], "apple") is None
    with pytest.raises(ValueError, match=r"\."):
        store.put_item(["a.b"], "key", {})  # the client itself


def test_store_refuses_what_is_no_object(api):
    answer = api.request("PUT", "/store/items", {"namespace": ["a"], "key": "k", "value": [1]})
    assert answer.status == 422 and answer.json["detail"]
    answer = api.request("PUT", "/store/items", {"namespace": ["a.b"], "key": "k", "value": {}})
    assert answer.status == 422


# ---- crons ----


def test_crons(sdk, thread):
    made = sdk.crons.create_for_thread(thread, "agent", schedule="0 5 * * *", timezone="UTC",
                                       input=apiserver.human("good morning"), metadata={"c": 1})
    assert made["cron_id"]
    found, = sdk.crons.search(thread_id=thread)
    assert found["cron_id"] == made["cron_id"] and found["schedule"] == "0 5 * * *"
    assert found["next_run_date"][11:16] == "05:00" and found["enabled"] is True
    changed = sdk.crons.update(made["cron_id"], schedule="30 6 * * 1", enabled=False)
    assert changed["schedule"] == "30 6 * * 1" and changed["enabled"] is False
    assert sdk.crons.count(thread_id=thread) == 1
    sdk.crons.delete(made["cron_id"])
    assert sdk.crons.search(thread_id=thread) == []
    with pytest.raises(errors.NotFoundError):
        sdk.crons.delete(made["cron_id"])
    for schedule in ("* * *", "61 * * * *", "nonsense"):
        with pytest.raises(errors.UnprocessableEntityError):
            sdk.crons.create("agent", schedule=schedule)


def test_a_cron_fires(sdk, thread):
    made = sdk.crons.create_for_thread(thread, "agent", schedule="* * * * * *",
                                       input=apiserver.human("tick"))
    deadline = time.monotonic() + 20
    while len(sdk.runs.list(thread)) < 2:
        assert time.monotonic() < deadline, "it does not fire"
        time.sleep(0.1)
    sdk.crons.delete(made["cron_id"])
    for run in sdk.runs.list(thread):
        sdk.runs.join(thread, run["run_id"])
    messages = sdk.threads.get_state(thread)["values"]["messages"]
    assert {m["content"] for m in messages} == {"tick", "You said: tick"}


def test_crons_go_with_their_thread(sdk, thread):
    made = sdk.crons.create_for_thread(thread, "agent", schedule="0 5 * * *")
    sdk.threads.delete(thread)
    assert made["cron_id"] not in [c["cron_id"] for c in sdk.crons.search(limit=100)]


# ---- several owners ----


def test_owners_see_only_their_own(tmp_path, model):
    keys = tmp_path / "keys"
    keys.write_text("alice:alice-key-123456\nbob:bob-key-1234567\n")
    keys.chmod(0o600)
    with apiserver.ApiServer(tmp_path, model, API_KEYS_FILE=keys) as server:
        alice, bob = (get_sync_client(url=server.url, api_key=f"{name}")
                      for name in ("alice-key-123456", "bob-key-1234567"))
        thread = alice.threads.create()["thread_id"]
        run = alice.runs.create(thread, "agent", input=apiserver.human("hi"))
        alice.runs.join(thread, run["run_id"])
        assert bob.threads.search() == [] and bob.threads.count() == 0
        for call in (bob.threads.get, bob.threads.get_state, bob.threads.get_history,
                     bob.threads.delete, bob.threads.copy, bob.runs.list):
            with pytest.raises(errors.NotFoundError):
                call(thread)
        for call in (bob.runs.get, bob.runs.cancel):
            with pytest.raises(errors.NotFoundError):
                call(thread, run["run_id"])
        with pytest.raises(errors.NotFoundError):
            bob.runs.create(thread, "agent", input=apiserver.human("hi"))
        alice.store.put_item(["a"], "k", {"x": 1})
        assert bob.store.get_item(["a"], "k") is None
        with pytest.raises(errors.AuthenticationError):
            get_sync_client(url=server.url, api_key="no such key").threads.search()
        with pytest.raises(errors.AuthenticationError):
            get_sync_client(url=server.url, api_key=None).threads.search()
        assert server.get("/ok").status == 200
