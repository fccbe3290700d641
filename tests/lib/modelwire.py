# SPDX-License-Identifier: MIT
"""The wire formats of model providers, as the provider sees them: for fakemodel.py.

Request reads what a client has sent, Writer and its kinds make the bytes of an answer.
"""

import itertools
import json
import re
import threading
from urllib.parse import parse_qs, unquote, urlsplit

FINISH = {
    "openai": {},
    "anthropic": {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "content_filter": "refusal",
    },
    "google_genai": {
        "stop": "STOP",
        "tool_calls": "STOP",
        "length": "MAX_TOKENS",
        "content_filter": "SAFETY",
    },
    "ollama": {"tool_calls": "stop"},
}


def dump(value):
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def sse(value, event=None):
    """One event as bytes."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {value if isinstance(value, str) else dump(value)}\n\n".encode()


# ---- what was asked: the four formats seen as one ----


def _text_of(content):
    """The text of a content that is a string or a list of parts."""
    if not isinstance(content, list):
        return content or ""
    return "".join(
        part if isinstance(part, str) else _text_of(part.get("text") or part.get("content") or "")
        for part in content
    )


def _images_in(value):
    """How many images are anywhere in a message."""
    if isinstance(value, list):
        return sum(map(_images_in, value))
    if not isinstance(value, dict):
        return 0
    mime = value.get("mimeType") or value.get("mime_type") or ""
    own = value.get("type") in ("image", "image_url", "input_image") or mime.startswith("image/")
    return int(own) + sum(
        len(v) if k == "images" else _images_in(v)
        for k, v in value.items()
        if isinstance(v, (list, dict))
    )


def _message(role, text="", calls=(), call_id=None, name=None, images=0):
    return {
        "role": role,
        "text": text,
        "calls": list(calls),
        "tool_call_id": call_id,
        "name": name,
        "images": images,
    }


def decoded(arguments):
    """The arguments of a call that came back, as a value where they are JSON."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _openai_messages(body):
    for m in body.get("messages", []):
        calls = [
            {
                "id": c.get("id"),
                "name": c["function"]["name"],
                "arguments": decoded(c["function"].get("arguments")),
            }
            for c in m.get("tool_calls") or []
        ]
        call_id, name = m.get("tool_call_id"), m.get("name") or m.get("tool_name")
        yield _message(m["role"], _text_of(m.get("content")), calls, call_id, name, _images_in(m))


def _anthropic_messages(body):
    if body.get("system"):
        yield _message("system", _text_of(body["system"]))
    for m in body.get("messages", []):
        content = m["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        calls = []
        for part in parts:
            if part["type"] == "tool_use":
                call = {"id": part["id"], "name": part["name"], "arguments": part["input"]}
                calls.append(call)
            elif part["type"] == "tool_result":
                text = _text_of(part.get("content"))
                images = _images_in(part)
                yield _message("tool", text, [], part["tool_use_id"], None, images)
        rest = [p for p in parts if p["type"] not in ("tool_use", "tool_result", "thinking")]
        if rest or calls:
            yield _message(m["role"], _text_of(rest), calls, images=_images_in(rest))


def _google_messages(body):
    system = body.get("systemInstruction") or body.get("system_instruction")
    if system:
        yield _message("system", _text_of(system.get("parts")))
    for m in body.get("contents", []):
        calls, rest = [], []
        for part in m.get("parts", []):
            if "functionCall" in part:
                call = part["functionCall"]
                made = {"id": call.get("id"), "name": call["name"], "arguments": call.get("args")}
                calls.append(made)
            elif "functionResponse" in part:
                r = part["functionResponse"]
                text = dump(r.get("response"))
                yield _message("tool", text, [], r.get("id"), r["name"], _images_in(r))
            elif not part.get("thought"):
                rest.append(part)
        role = "assistant" if m.get("role") == "model" else "user"
        if rest or calls:
            yield _message(role, _text_of(rest), calls, images=_images_in(rest))


MESSAGES = {
    "openai": _openai_messages,
    "anthropic": _anthropic_messages,
    "google_genai": _google_messages,
    "ollama": _openai_messages,
}


class Request:
    """One request: as it came, and its conversation in one form for all formats.

    provider, method, path, query (dict), headers (dict, names in lower case), body (parsed JSON),
    raw (bytes), number (from 0), messages ({"role": system, user, assistant or tool, "text",
    "calls", "tool_call_id", "name", "images"}), closed (an Event: the client has left early).
    """

    def __init__(self, number, method, target, headers, raw):
        url = urlsplit(target)
        self.number, self.method, self.headers, self.raw = number, method, headers, raw
        self.path, self.query = unquote(url.path), parse_qs(url.query)
        self.closed = threading.Event()
        self.provider = self._provider()
        self.body = json.loads(raw) if raw else {}

    def _provider(self):
        for end, name in (
            ("/chat/completions", "openai"),
            ("/messages", "anthropic"),
            (":streamGenerateContent", "google_genai"),
            ("/api/chat", "ollama"),
        ):
            if self.path.endswith(end):
                return name
        return None

    @property
    def model(self):
        """The name of the model that is asked for."""
        if self.provider == "google_genai":
            return self.path.rpartition("/")[2].partition(":")[0]
        return self.body.get("model", "")

    @property
    def key(self):
        """The key that came with it, without "Bearer"; "" for none."""
        for name in ("x-api-key", "x-goog-api-key", "authorization"):
            if name in self.headers:
                return self.headers[name].removeprefix("Bearer ")
        return ""

    @property
    def messages(self):
        """The conversation."""
        return list(MESSAGES[self.provider](self.body))

    @property
    def last(self):
        """The last message."""
        return self.messages[-1]

    @property
    def last_user_text(self):
        """What the user has said last."""
        texts = [m["text"] for m in self.messages if m["role"] == "user"]
        return texts[-1] if texts else ""

    @property
    def results(self):
        """The results of tools since the last answer of the model."""
        tail = list(itertools.takewhile(lambda m: m["role"] != "assistant", self.messages[::-1]))
        return [m for m in tail[::-1] if m["role"] == "tool"]

    @property
    def last_calls(self):
        """The calls of the last answer of the model."""
        answers = [m for m in self.messages if m["role"] == "assistant"]
        return answers[-1]["calls"] if answers else []

    @property
    def session(self):
        """The session_id that a tool has given last; "" for none."""
        texts = [m["text"] for m in self.messages if m["role"] == "tool"]
        found = [m for text in texts for m in re.findall(r"session_id\W+([\w.-]+)", text)]
        return found[-1] if found else ""

    @property
    def answers(self):
        """How many answers of the model are in the conversation."""
        return sum(m["role"] == "assistant" for m in self.messages)

    @property
    def images(self):
        """How many images are in the conversation."""
        return sum(m["images"] for m in self.messages)

    @property
    def tools(self):
        """The names of the tools that are offered."""
        body = self.body
        if self.provider == "google_genai":
            lists = [t.get("functionDeclarations", []) for t in body.get("tools", [])]
            return [f["name"] for f in itertools.chain(*lists)]
        return [t.get("function", t)["name"] for t in body.get("tools") or []]


# ---- what is answered: a writer for each format ----


class Writer:
    """Makes the bytes of one answer. Each method gives the bytes of one event or several."""

    content_type = "text/event-stream"

    def __init__(self, request, turn):
        self.request, self.turn = request, turn
        self.model = turn.get("model", request.model)
        usage = turn.get("usage", {})
        default = {"input": 11, "output": 7, "cache_read": 0, "reasoning": 0}
        self.usage = None if usage is None else {**default, **usage}
        self.id = f"{request.number:06d}"

    def finish_reason(self):
        """In the words of the format."""
        reason = self.turn.get("finish") or ("tool_calls" if self.turn.get("calls") else "stop")
        return FINISH[self.request.provider].get(reason, reason)

    def call_id(self, index, call):
        """What was said, or a new one; None for none."""
        return call.get("id", f"call_{self.id}_{index}")

    def begin(self):
        """Before everything."""
        return b""

    def switch(self, kind):
        """Text, reasoning or a call ends or begins; kind None: the last one ends."""
        return b""

    def filled(self, call):
        """The arguments with the session in its place."""
        value = call.get("arguments", {})
        if "$SESSION" not in dump(value):
            return value
        return json.loads(dump(value).replace("$SESSION", self.request.session))

    def arguments(self, call):
        """The arguments' text, in pieces."""
        value = self.filled(call)
        text = value if isinstance(value, str) else dump(value)
        size = -(-len(text) // call.get("pieces", 2)) or 1
        return [text[i : i + size] for i in range(0, len(text), size)]


class OpenaiWriter(Writer):
    """Chat completions."""

    def chunk(self, delta, finish=None):
        """One chunk of the one choice."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse({**self.base(), "choices": [choice]})

    def base(self):
        """What every chunk has."""
        return {
            "id": f"chatcmpl-{self.id}",
            "object": "chat.completion.chunk",
            "created": 1700000000,
            "model": self.model,
        }

    def begin(self):
        return self.chunk({"role": "assistant", "content": ""})

    def text(self, piece):
        return self.chunk({"content": piece})

    def reasoning(self, piece):
        return self.chunk({"reasoning_content": piece})

    def call(self, index, call):
        head = {"index": index, "type": "function"}
        if self.call_id(index, call) is not None:
            head["id"] = self.call_id(index, call)
        head["function"] = {"name": call["name"], "arguments": ""}
        yield self.chunk({"tool_calls": [head]})
        for piece in self.arguments(call):
            yield self.more(index, piece)

    def more(self, index, piece):
        """More of a call's arguments."""
        return self.chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})

    def end(self):
        out = self.chunk({}, self.finish_reason())
        wanted = (self.request.body.get("stream_options") or {}).get("include_usage")
        if self.usage and wanted:
            u = self.usage
            usage = {
                "prompt_tokens": u["input"],
                "completion_tokens": u["output"],
                "total_tokens": u["input"] + u["output"],
                "prompt_tokens_details": {"cached_tokens": u["cache_read"]},
                "completion_tokens_details": {"reasoning_tokens": u["reasoning"]},
            }
            out += sse({**self.base(), "choices": [], "usage": usage})
        return out + sse("[DONE]")

    def failure(self, message):
        return sse(self.error(500, message))

    @staticmethod
    def error(status, message):
        """The body of a failure."""
        kind = {401: "invalid_request_error", 429: "rate_limit_error"}.get(status, "server_error")
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}


class AnthropicWriter(Writer):
    """Messages."""

    def __init__(self, request, turn):
        super().__init__(request, turn)
        self.block, self.kind = -1, None

    @staticmethod
    def event(kind, **members):
        """One event, named as its type."""
        return sse({"type": kind, **members}, kind)

    def begin(self):
        u = self.usage or {"input": 0, "cache_read": 0}
        usage = {
            "input_tokens": u["input"],
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": u["cache_read"],
            "output_tokens": 1,
        }
        message = {
            "id": f"msg_{self.id}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        return self.event("message_start", message=message) + self.event("ping")

    def switch(self, kind):
        out = b""
        if self.kind == "reasoning":
            out += self.delta(type="signature_delta", signature=f"sig{self.block}")
        if self.kind:
            out += self.event("content_block_stop", index=self.block)
        self.kind = kind
        if not kind:
            return out
        self.block += 1
        if kind == "text":
            return out + self.start(type="text", text="")
        if kind == "reasoning":
            return out + self.start(type="thinking", thinking="", signature="")
        return out

    def start(self, **block):
        """A block begins."""
        return self.event("content_block_start", index=self.block, content_block=block)

    def delta(self, **delta):
        """A piece of the open block."""
        return self.event("content_block_delta", index=self.block, delta=delta)

    def text(self, piece):
        return self.delta(type="text_delta", text=piece)

    def reasoning(self, piece):
        return self.delta(type="thinking_delta", thinking=piece)

    def call(self, index, call):
        block = {"type": "tool_use", "name": call["name"], "input": {}}
        if self.call_id(index, call) is not None:
            block["id"] = self.call_id(index, call)
        yield self.start(**block)
        for piece in self.arguments(call):
            yield self.more(index, piece)

    def more(self, index, piece):
        """More of a call's arguments."""
        return self.delta(type="input_json_delta", partial_json=piece)

    def end(self):
        delta = {"stop_reason": self.finish_reason(), "stop_sequence": None}
        usage = {"output_tokens": self.usage["output"]} if self.usage else {}
        out = self.event("message_delta", delta=delta, usage=usage)
        return out + self.event("message_stop")

    def failure(self, message):
        error = {"type": "overloaded_error", "message": message}
        return self.event("error", error=error)

    @staticmethod
    def error(status, message):
        """The body of a failure."""
        kinds = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
        kind = kinds.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}


class GoogleWriter(Writer):
    """streamGenerateContent?alt=sse."""

    def chunk(self, parts, **more):
        """One piece of the one candidate."""
        candidate = {"content": {"parts": parts, "role": "model"}, "index": 0, **more}
        out = {"candidates": [candidate], "modelVersion": self.model, "responseId": self.id}
        if self.usage:
            u = self.usage
            out["usageMetadata"] = {
                "promptTokenCount": u["input"],
                "candidatesTokenCount": u["output"],
                "cachedContentTokenCount": u["cache_read"],
                "thoughtsTokenCount": u["reasoning"],
                "totalTokenCount": u["input"] + u["output"] + u["reasoning"],
            }
        return sse(out)

    def text(self, piece):
        return self.chunk([{"text": piece}])

    def reasoning(self, piece):
        return self.chunk([{"text": piece, "thought": True}])

    def call(self, index, call):
        made = {"name": call["name"], "args": self.filled(call)}
        if call.get("id") is not None:
            made["id"] = call["id"]
        part = {"functionCall": made}
        if index == 0:
            part["thoughtSignature"] = f"c2ln{self.id}"
        yield self.chunk([part])

    def more(self, index, piece):
        """Calls come whole here: another one, as large as the piece."""
        return self.chunk([{"functionCall": {"name": "more", "args": {"more": piece}}}])

    def end(self):
        return self.chunk([{"text": ""}], finishReason=self.finish_reason())

    def failure(self, message):
        return sse(self.error(503, message))

    @staticmethod
    def error(status, message):
        """The body of a failure."""
        names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED"}
        name = names.get(status, "UNAVAILABLE")
        return {"error": {"code": status, "message": message, "status": name}}


class OllamaWriter(Writer):
    """/api/chat: a line of JSON for each piece."""

    content_type = "application/x-ndjson"

    def line(self, message, **more):
        """One line."""
        value = {
            "model": self.model,
            "created_at": "2026-01-01T00:00:00Z",
            "message": {"role": "assistant", "content": "", **message},
            "done": False,
            **more,
        }
        return f"{dump(value)}\n".encode()

    def text(self, piece):
        return self.line({"content": piece})

    def reasoning(self, piece):
        return self.line({"thinking": piece})

    def call(self, index, call):
        function = {"index": index, "name": call["name"], "arguments": self.filled(call)}
        made = {"function": function}
        if call.get("id") is not None:
            made["id"] = call["id"]
        yield self.line({"tool_calls": [made]})

    def more(self, index, piece):
        """Calls come whole here: another one, as large as the piece."""
        function = {"name": "more", "arguments": {"more": piece}}
        return self.line({"tool_calls": [{"function": function}]})

    def end(self):
        usage = {}
        if self.usage:
            usage = {
                "prompt_eval_count": self.usage["input"],
                "eval_count": self.usage["output"],
            }
        return self.line({}, done=True, done_reason=self.finish_reason(), **usage)

    def failure(self, message):
        return f"{dump(self.error(500, message))}\n".encode()

    @staticmethod
    def error(status, message):
        """The body of a failure."""
        return {"error": message}


WRITERS = {
    "openai": OpenaiWriter,
    "anthropic": AnthropicWriter,
    "google_genai": GoogleWriter,
    "ollama": OllamaWriter,
}
