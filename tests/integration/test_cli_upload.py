# SPDX-License-Identifier: MIT
"""Large files that the chat uploads: whole, and never in its memory."""

import hashlib
import os
import re
from pathlib import Path

import apiserver
import pytest
from chatpty import Chat

SIZE = 64 << 20
ROOM = 8 << 20  # what an upload may cost the chat


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server without a model: none is asked."""
    with apiserver.ApiServer(tmp_path_factory.mktemp("server"),
                             CHAT_MODEL_PROVIDER="direct", UPLOAD_MAX_SIZE="100m") as server:
        yield server


@pytest.fixture
def chat(server, tmp_path):
    """A chat in a new conversation."""
    with Chat(server.url, tmp_path) as chat:
        chat.prompt()
        yield chat


def peak(chat):
    """Return the most memory that the chat ever had, in bytes."""
    status = Path(f"/proc/{chat.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) << 10


def kept(server, name):
    """Return what the server has of a file, by its only place."""
    found = [p for p in (server.state_dir / "storage").rglob(name) if p.is_file()]
    assert len(found) == 1, found
    return found[0]


def test_a_large_file_is_sent_in_pieces(chat, server, tmp_path):
    digest, block = hashlib.sha256(), os.urandom(1 << 20)
    with open(tmp_path / "large.bin", "wb") as f:
        for i in range(SIZE // len(block)):
            piece = i.to_bytes(8, "little") + block[8:]
            digest.update(piece)
            f.write(piece)
    (tmp_path / "small.bin").write_bytes(b"12")
    chat.say("/upload small.bin")
    before = peak(chat)
    chat.say("/upload large.bin")
    assert "uploaded large.bin (67 MB)" in chat.text, chat.text
    assert peak(chat) - before < ROOM
    with open(kept(server, "large.bin"), "rb") as f:
        assert hashlib.file_digest(f, "sha256").digest() == digest.digest()


@pytest.mark.parametrize("size, reason", [(0, None), (101 << 20, "UPLOAD_MAX_SIZE")])
def test_files_at_the_ends(chat, server, tmp_path, size, reason):
    name = f"of-{size}.bin"
    with open(tmp_path / name, "wb") as f:
        f.truncate(size)
    chat.say(f"/upload {name}")
    if reason:
        assert reason in chat.text
    else:
        assert f"uploaded {name} (0 bytes)" in chat.text
        assert kept(server, name).stat().st_size == 0


def test_what_is_no_file_is_refused(chat, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    chat.say("/upload pipe /dev/zero .")
    assert chat.text.count("is no file") == 3


def test_the_chats_own_limit_holds_before_anything_is_sent(server, tmp_path):
    (tmp_path / "of-1025.bin").write_bytes(bytes(1025))
    with Chat(server.url, tmp_path, UPLOAD_MAX_SIZE="1k") as chat:
        chat.prompt()
        chat.say("/upload of-1025.bin")
        assert "larger than UPLOAD_MAX_SIZE" in chat.text
    assert not list((server.state_dir / "storage").rglob("of-1025.bin"))
