# SPDX-License-Identifier: MIT
"""What a settings page needs to know: whether a model can be asked, and what is really applied."""

import json

import pytest
from apipeer import Peer, ended
from apiserver import ApiServer
from fakemodel import FakeModel


@pytest.fixture(scope="module")
def model():
    """A model that writes down who asked it."""
    with FakeModel() as fake:
        yield fake


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A server that was given no model and no key."""
    with ApiServer(tmp_path_factory.mktemp("bare"), CHAT_MODEL_PROVIDER="openai",
                   CHAT_MODEL_API_KEY="", PRIVATE_MODEL_HOSTS="",
                   REQUESTS_PER_SECOND=0) as server:
        yield server


@pytest.fixture
def peer(bare):
    """A client of the bare server, whose settings are empty."""
    peer = Peer(bare.url)
    assert peer.call("PUT", "/settings", {"reset": True}).status == 200
    return peer


def put(peer, **members):
    """Change settings; return the answer, which a later GET repeats."""
    reply = peer.call("PUT", "/settings", members)
    assert reply.status == 200, reply.text
    assert peer.get("/settings").json == reply.json
    return reply.json


def test_a_first_visit_is_told_that_there_is_no_key(peer):
    """Not ready, and why; a run fails for the same reason."""
    settings = peer.get("/settings").json
    assert settings["ready"] is False and "key" in settings["reason"], settings
    assert settings["chatModelApiKeyHint"] == ""
    frames = peer.run(peer.thread(), "print(1)")
    assert ended(frames) == "error"


@pytest.mark.parametrize("members", [
    {"chatModelProvider": "direct"},
    {"chatModelProvider": "ollama", "chatModel": "m", "chatModelBaseUrl": "https://example.com"},
    {"chatModelApiKey": "sk-0123456789abcdef"},
    {"chatModelProvider": "anthropic", "chatModel": "m", "chatModelApiKey": "sk-0123456789abcdef"},
])
def test_what_makes_it_ready(peer, members):
    """Direct mode, a model that needs no key, or a key."""
    settings = put(peer, **members)
    assert settings["ready"] is True and settings["reason"] == "", settings


@pytest.mark.parametrize(("members", "word"), [
    ({"chatModelProvider": "anthropic", "chatModel": "m"}, "key"),
    ({"chatModelProvider": "anthropic", "chatModelApiKey": "sk-0123456789"}, "chosen"),
    ({"chatModelBaseUrl": "http://127.0.0.1:9/v1"}, "private"),
])
def test_what_does_not(peer, members, word):
    """No key, no model, or an address that a client may not name."""
    settings = put(peer, **members)
    assert settings["ready"] is False and word in settings["reason"], settings


def test_direct_mode_keeps_the_key_of_the_model_before(peer):
    """A visit to direct mode sends a key nowhere, so it stays with its host; one typed there is
    bound to none."""
    put(peer, chatModelApiKey="sk-0123456789abcdef")
    assert put(peer, chatModelProvider="direct")["chatModelApiKeyHint"].endswith("cdef")
    assert put(peer, chatModelProvider="openai")["ready"] is True
    put(peer, chatModelProvider="direct")
    assert put(peer, chatModelProvider="anthropic")["chatModelApiKeyHint"] == ""
    put(peer, chatModelProvider="direct", chatModelApiKey="sk-fedcba9876543210")
    assert put(peer, chatModelProvider="openai")["ready"] is False


def test_the_hint_is_of_the_key_that_would_be_sent(model, tmp_path):
    """The server's own key belongs to its own model, and to no other provider."""
    with ApiServer(tmp_path, model, CHAT_MODEL_API_KEY="sk-of-the-server-wxyz") as server:
        peer = Peer(server.url)
        assert peer.get("/settings").json["chatModelApiKeyHint"].endswith("wxyz")
        other = put(peer, chatModelProvider="anthropic", chatModel="m")
        assert other["chatModelApiKeyHint"] == "" and other["ready"] is False


def test_vision_is_a_word(peer):
    """Auto until something is set, and auto again; the boolean of older clients goes along."""
    assert peer.get("/settings").json["vision"] == "auto"
    assert put(peer, vision="no") | {"vision": "no", "supportsVision": False} == \
        peer.get("/settings").json
    assert put(peer, vision="yes")["supportsVision"] is True
    assert put(peer, supportsVision=False)["vision"] == "no"
    assert put(peer, supportsVision=None)["vision"] == "no", "null leaves it"
    assert put(peer, vision=None)["vision"] == "no"
    assert put(peer, vision="auto")["vision"] == "auto"
    for wrong in ("maybe", True, 1, ["yes"]):
        assert peer.call("PUT", "/settings", {"vision": wrong}, fails=True).status == 422


def test_a_network_that_is_turned_off(model, tmp_path):
    """New sandboxes of the owner's runs have none, whatever the model asks for."""
    with ApiServer(tmp_path, model, REQUESTS_PER_SECOND=0) as server:
        peer = Peer(server.url)

        def created(**arguments):
            thread = peer.thread()
            arguments |= {"language": "python"}
            peer.run(thread, f"call: create_session {json.dumps(arguments)}")
            result = json.loads(peer.messages(thread)[-2]["content"])
            peer.delete(f"/threads/{thread}")
            return result

        assert peer.get("/settings").json["networkAllowed"] is True
        assert created().get("network") == "public"
        assert put(peer, networkEnabled=False)["networkEnabled"] is False
        assert created().get("network") == "none"
        refused = created(network="public")
        assert refused["success"] is False and "networkEnabled" in json.dumps(refused)
        put(peer, networkEnabled=True)
        assert created(network="none").get("network") == "none"
        assert created().get("network") == "public"


def test_a_server_without_network_says_so(model, tmp_path):
    """What the operator turned off is shown as off, and as nothing to turn on."""
    with ApiServer(tmp_path, model, CONTAINER_NETWORK_ENABLED="false") as server:
        settings = put(Peer(server.url), networkEnabled=True)
        assert settings["networkAllowed"] is False and settings["networkEnabled"] is False
