# SPDX-License-Identifier: MIT
"""The JSON that goes to init: MIME maps, errors, and their limits.

The reader at the other end is strict, so nothing that Python's json would let pass may leave here:
no NaN, no lone surrogates, no line breaks in base64. What is too large is left out by name.
"""

import binascii
import json
import math
import traceback
from typing import Any

BODY_MAX = (48 << 20) - 4096
TEXT_MAX = 1 << 20
TYPE_MAX = 200


def bundle_encode(data: dict, metadata: dict | None) -> bytes:
    """A display or result as JSON; values that do not fit are replaced by a note."""
    parts: dict[str, bytes] = {}
    notes = []
    for mime, value in data.items():
        size = _least_size(value)  # not to encode what is too large anyway
        if size > BODY_MAX:
            notes.append(_note(mime, size))
        else:
            parts[str(mime)] = _value_encode(str(mime), value)
    meta = _dumps(_plain(metadata or {}))
    if len(meta) > BODY_MAX // 2:
        meta = b"{}"
    room = BODY_MAX - len(meta) - 4096
    for mime in sorted(parts, key=lambda mime: -len(parts[mime])):
        if sum(len(mime) + len(part) + 8 for mime, part in parts.items()) <= room:
            break
        notes.append(_note(mime, len(parts.pop(mime))))
    if notes:
        text = json.loads(parts["text/plain"]) + "\n" if "text/plain" in parts else ""
        parts["text/plain"] = _dumps(text + "\n".join(notes))
    fields = b",".join(_dumps(mime) + b":" + part for mime, part in parts.items())
    return b'{"data":{' + fields + b'},"metadata":' + meta + b"}"


def _note(mime: str, size: int) -> str:
    return f"[{mime} of {size} bytes left out: over the limit of {BODY_MAX} bytes]"


def _least_size(value: Any) -> int:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return len(value) * 4 // 3
    return len(value) if isinstance(value, str) else 0


def object_encode(value: dict) -> bytes:
    """A small object as JSON."""
    return _dumps(value)


def error_encode(error: BaseException, hidden: tuple[str, ...]) -> bytes:
    """An exception as JSON; frames of files below the `hidden` directories are left out."""
    body = {
        "type": _shorten(type(error).__name__, TYPE_MAX),
        "message": _shorten(_message(error), TEXT_MAX),
        "traceback": _shorten(traceback_text(error, hidden), TEXT_MAX),
    }
    if isinstance(error, OSError) and isinstance(error.errno, int):
        body["errno"] = error.errno
    return _dumps(body)


def traceback_text(error: BaseException, hidden: tuple[str, ...]) -> str:
    """The traceback as Python prints it, without the frames of the shell and the kernel."""
    if type(error).__name__ == "UsageError":  # of a magic: IPython shows the message only
        return f"UsageError: {_message(error)}\n"
    try:
        found = traceback.TracebackException(type(error), error, error.__traceback__)
        _hide(found, hidden, set())
        return "".join(found.format())
    except Exception as failure:  # the user's __str__, or no stack left to format with
        return f"{type(error).__name__}: <no traceback: {type(failure).__name__}>\n"


def _hide(found: traceback.TracebackException, hidden: tuple[str, ...], seen: set[int]) -> None:
    """Leave out frames of files below the hidden directories, and what led to the first cell."""
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        frames = list(found.stack)
        first = next((number for number, frame in enumerate(frames)
                      if frame.filename.startswith("<cell ")), 0)
        found.stack[:] = [frame for frame in frames[first:]
                          if not frame.filename.startswith(hidden)]
        for part in getattr(found, "exceptions", None) or ():
            _hide(part, hidden, seen)
        if found.__cause__ is not None:
            _hide(found.__cause__, hidden, seen)
        found = found.__context__


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:
        return f"<no message: {type(failure).__name__}>"


def _shorten(text: str, limit: int) -> str:
    """Cut text in its middle to `limit` bytes of UTF-8."""
    if len(text) * 4 <= limit:
        return _clean(text)
    head, tail = _clean(text[:limit]).encode(), _clean(text[-limit:]).encode()
    if len(text) <= limit and len(head) <= limit:
        return head.decode()
    keep = limit // 2 - 40
    first, last = head[:keep].decode("utf-8", "ignore"), tail[-keep:].decode("utf-8", "ignore")
    left_out = len(text) - len(first) - len(last)
    return f"{first}\n[... {left_out} characters left out ...]\n{last}"


def _clean(text: str) -> str:
    """Lone surrogates become U+FFFD."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _value_encode(mime: str, value: Any) -> bytes:
    if _is_json(mime):
        return _dumps(_plain(value)) if isinstance(value, (dict, list)) else _dumps(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        if _is_binary(mime):
            return b'"' + binascii.b2a_base64(value, newline=False) + b'"'
        return _dumps(bytes(value).decode("utf-8", "replace"))
    text = value if isinstance(value, str) else str(value)
    if _is_binary(mime):
        text = "".join(text.split())
    return _dumps(text)


def _is_binary(mime: str) -> bool:
    if mime.startswith("image/"):
        return not mime.startswith("image/svg")
    return mime.startswith(("audio/", "video/")) or mime == "application/pdf"


def _is_json(mime: str) -> bool:
    return mime == "application/json" or (mime.startswith("application/") and
                                          mime.endswith("+json"))


def _dumps(value: Any) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError):
        text = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))
    return _clean(text).encode()


def _plain(value: Any) -> Any:
    """A copy of which every part is JSON: no NaN, no numpy numbers, only text for keys."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(part) for part in value]
    if isinstance(value, (bytes, bytearray)):
        return binascii.b2a_base64(value, newline=False).decode()
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return str(value)
