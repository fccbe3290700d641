# SPDX-License-Identifier: MIT
"""LiteLLM's provider "langgraph", which knows the stateless runs only."""

import foreign


def test_litellm(api):
    seen = foreign.python("litellm", "clients/litellm/complete.py",
                          {"url": api.url, "text": "say: hello from afar"},
                          LITELLM_LOCAL_MODEL_COST_MAP="True")
    assert seen["role"] == "assistant" and seen["content"] == "hello from afar"
    # Its reader of streams looks for an event's name within the data, where no Agent Server has
    # it, so it finds no text in anybody's stream; that it ends well is what can be seen.
    assert seen["finish"] == ["stop"]
    assert "401" in seen["failure"]
