# SPDX-License-Identifier: MIT
"""Asks an Agent Server through LiteLLM's provider "langgraph"; prints what came as one object."""

import json
import sys

import litellm

options = json.loads(sys.argv[1])
common = {"model": "langgraph/agent", "api_base": options["url"], "api_key": "none"}


def ask(text, **more):
    """One completion."""
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
    return litellm.completion(messages=messages, **common, **more)


seen = {}
answer = ask(options["text"])
seen["content"] = answer.choices[0].message.content
seen["role"] = answer.choices[0].message.role
chunks = list(ask(options["text"], stream=True))
seen["pieces"] = [c.choices[0].delta.content for c in chunks if c.choices[0].delta.content]
seen["finish"] = [c.choices[0].finish_reason for c in chunks if c.choices[0].finish_reason]
try:
    failed = ask("status: 401")
    seen["failure"] = failed.choices[0].message.content
except litellm.exceptions.OpenAIError as error:
    seen["failure"] = str(error)
print(json.dumps(seen))
