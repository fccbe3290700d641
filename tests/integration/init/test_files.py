# SPDX-License-Identifier: MIT
"""File operations, as the sandbox user and inside the sandbox's root."""

import hashlib
import os
import threading
import time

import pytest


@pytest.fixture
def outside(init):
    """A directory that the sandbox user may not change, with a secret in it."""
    path = init.dir / "outside"
    path.mkdir()
    (path / "secret").write_text("secret")
    (path / "secret").chmod(0o600)
    return path


def stages(init):
    return [name for name in os.listdir(init.workspace) if name.startswith(".stage")]


@pytest.mark.parametrize("size", [0, 1, 18_000, 18_500, 65_536, 5 << 20])
def test_case_34_write_and_read(client, init, size):
    data = os.urandom(size)
    assert client.write("f.bin", data, size=size) == {"status": "ok"}
    inside = client.spawn(["sha256sum", "f.bin"]).wait().stdout.split()[0].decode()
    assert inside == hashlib.sha256(data).hexdigest()
    back = client.read_file("f.bin")
    assert back.raw("DATA") == data and back.end == {"status": "ok"}
    assert back.of("REPORT")[0]["size"] == str(size)
    assert all(len(frame.payload) <= 64 << 10 for frame in back.frames)
    stat = (init.workspace / "f.bin").stat()
    assert stat.st_uid == 65532 and stat.st_mode & 0o7777 == 0o644 and not stages(init)


def test_large_file_needs_no_memory(client, init):
    block = os.urandom(1 << 20)
    stream = client.request("FILE_WRITE", [("path", "big"), ("size", 200 << 20)])
    for _ in range(200):
        stream.send("WRITE_DATA", block)
    assert stream.send("WRITE_DATA").wait().end["status"] == "ok"
    assert init.rss() < 20 << 20
    back = client.read_file("big")
    assert len(back.raw("DATA")) == 200 << 20 and back.raw("DATA")[-(1 << 20):] == block
    assert init.rss() < 20 << 20


def test_part_of_a_file(client):
    client.write("f", b"0123456789")
    assert client.read_file("f", offset=3, length=4).raw("DATA") == b"3456"
    assert client.read_file("f", offset=8).raw("DATA") == b"89"
    assert client.read_file("f", offset=99).raw("DATA") == b""
    assert client.read_file("f", offset=-1).end["errno"] == "22"


def test_case_27_sparse_file_is_told_by_its_size(client):
    client.spawn(["truncate", "-s", "2G", "z.bin"]).wait()
    begin = time.monotonic()
    stream = client.request("FILE_READ", [("path", "z.bin")])
    stream.until(lambda: stream.of("REPORT"))
    assert stream.of("REPORT")[0]["size"] == str(2 << 30) and time.monotonic() - begin < 1
    end = stream.interrupt().wait().end
    assert end["status"] == "interrupted" and end["cause"] == "user"


def test_reading_is_flow_controlled(start):
    init = start()
    with init.connect(credit=False) as client:
        client.spawn(["truncate", "-s", "1G", "z.bin"]).wait()
        stream = client.request("FILE_READ", [("path", "z.bin")])
        while client.read(0.3):
            pass
        size = sum(len(frame.payload) for frame in stream.frames)
        assert 4 << 20 <= size <= (4 << 20) + (64 << 10)


def test_mode(client, init):
    client.write("s.sh", b"#!/bin/sh\necho ran\n", mode="755")
    assert client.spawn(["./s.sh"]).wait().stdout == b"ran\n"
    client.write("s.sh", b"#!/bin/sh\necho again\n")  # keeps the mode of what it replaces
    assert client.spawn(["./s.sh"]).wait().stdout == b"again\n"
    assert client.write("t", b"", mode="8x")["status"] == "error"
    assert client.write("t", b"", mode="77777")["status"] == "error"


def test_directories_are_made_on_demand(client, init):
    assert client.write("a/b/c.txt", b"x")["errno"] == "2"
    assert client.write("a/b/c.txt", b"x", mkdirs=1)["status"] == "ok"
    assert client.file("MKDIR", "d/e/f").end["status"] == "ok"
    assert client.file("MKDIR", "d/e/f").end["status"] == "ok"
    assert (init.workspace / "d/e/f").stat().st_uid == 65532
    assert client.file("MKDIR", "a/b/c.txt/d").end["errno"] == "20"


@pytest.mark.parametrize("data, size", [(b"abc", 4), (b"abc", 2)])
def test_wrong_size_leaves_nothing(client, init, data, size):
    assert client.write("f", data, size=size)["status"] == "error"
    assert os.listdir(init.workspace) == []


def test_interrupted_write_leaves_nothing(client, init):
    client.write("f", b"old")
    stream = client.request("FILE_WRITE", [("path", "f")]).send("WRITE_DATA", b"new")
    client.status()
    assert len(stages(init)) == 1
    assert stream.interrupt().wait().end["status"] == "interrupted"
    assert (init.workspace / "f").read_bytes() == b"old" and not stages(init)


def test_lost_client_leaves_nothing(client, init):
    with init.connect() as other:
        other.request("FILE_WRITE", [("path", "f")]).send("WRITE_DATA", b"half")
        other.status()
    client.status()
    assert os.listdir(init.workspace) == []


def test_disk_full(start):
    """A mount of 1 MiB: a clear end, no part of the file, and room afterwards."""
    with start(tmpfs="size=1m").connect() as client:
        for fields in ({}, {"size": 3 << 20}):
            end = client.write("big", b"x" * (3 << 20), **fields)
            assert end["status"] == "error" and end["cause"] == "disk" and end["errno"] == "28"
        assert client.file("LIST", ".").of("REPORT") == []
        fill = client.spawn(["sh", "-c", "head -c 5M /dev/zero > fill"]).wait()
        assert fill.end["full"] == "1" and client.status()["tmpfs_full"] == "1"
        assert client.file("REMOVE", "fill").end["status"] == "ok"
        assert "full" not in client.spawn(["true"]).wait().end


def test_inodes_used_up(start):
    with start(tmpfs="size=4m,nr_inodes=50").connect() as client:
        run = client.spawn(["sh", "-c", "for i in $(seq 60); do : > $i || exit 1; done"]).wait()
        assert run.end["full"] == "1" and run.end["exit_code"] != "0"
        assert client.write("one", b"x")["cause"] == "disk"


NAMES = ["販売データ_今週.csv", "販売データ_先週.csv", "Générer – suite.js", "a b'c\"d$e.txt", "-rf",
         "ｅ.txt", "e.txt", "\u00e9.txt", "e\u0301.txt", "new\nline", "x" * 255]


def test_case_17_names_stay_different_and_whole(client, init):
    names = [name.encode() for name in NAMES] + [b"bytes\xff\xfe"]
    for i, name in enumerate(names):
        assert client.write(name, str(i).encode())["status"] == "ok", name
    listed = client.file("LIST", ".")
    assert sorted(os.fsencode(entry["name"]) for entry in listed.of("REPORT")) == sorted(names)
    for i, name in enumerate(names):
        assert client.read_file(name).raw("DATA") == str(i).encode()


def test_list(client, init):
    client.write("file", b"abc")
    client.file("MKDIR", "dir")
    client.spawn(["sh", "-c", "ln -s file link; mkfifo fifo"]).wait()
    entries = {entry["name"]: entry for entry in client.file("LIST", "").of("REPORT")}
    assert entries == {}  # an empty path is no path
    entries = {entry["name"]: entry for entry in client.file("LIST", ".").of("REPORT")}
    assert {name: entry["type"] for name, entry in entries.items()} == {
        "file": "file", "dir": "dir", "link": "link", "fifo": "other"}
    assert entries["file"]["size"] == "3" and entries["file"]["mode"] == "644"
    assert abs(int(entries["file"]["mtime_ms"]) / 1000 - time.time()) < 60
    assert client.file("LIST", "file").end["errno"] == "20"
    assert client.file("LIST", "nowhere").end["errno"] == "2"


def test_list_of_many(client):
    client.spawn(["sh", "-c", "mkdir many; cd many; seq -f %06g 20000 | xargs touch"]).wait()
    listed = client.file("LIST", "many")
    assert len({entry["name"] for entry in listed.of("REPORT")}) == 20000


def test_stat(client):
    client.write("file", b"abc")
    assert client.file("STAT", "file").of("REPORT")[0]["type"] == "file"
    client.spawn(["ln", "-s", "file", "link"]).wait()
    assert client.file("STAT", "link").of("REPORT")[0]["type"] == "link"
    assert client.read_file("link").raw("DATA") == b"abc"
    missing = client.file("STAT", "missing").end
    assert missing["errno"] == "2" and "cannot find 'missing'" in missing["message"]


@pytest.mark.parametrize("make", ["mkfifo x", "mkdir x", "ln -s x x", "ln -s /dev/null x",
                                  "ln -s /proc/1/environ x", "ln -s /proc/self/mem x",
                                  "ln -s /proc/self/fd/3 x", "ln -s /dev/tty x"])
def test_only_regular_files_are_read(client, make):
    client.spawn(["sh", "-c", make]).wait()
    end = client.read_file("x").end
    assert end["status"] == "error" and int(end["errno"]) in (2, 6, 13, 21, 22, 40), end


def test_case_49_planted_links(client, init, outside):
    client.spawn(["sh", "-c", f"ln -s {outside}/secret s; ln -s {outside} d; ln -s /nonexist new;"
                              "ln -s / root"]).wait()
    assert client.read_file("s").end["errno"] == "13"
    assert client.write("d/file", b"x")["errno"] == "13"
    assert client.write("root/etc/x", b"x")["errno"] == "13"
    assert client.file("REMOVE", "d/secret").end["errno"] == "13"
    assert client.file("RENAME", "s", to="d/s").end["errno"] == "13"
    # Writing where a link is replaces the link and follows nothing.
    assert client.write("new", b"mine")["status"] == "ok"
    assert client.write("s", b"mine")["status"] == "ok"
    assert (outside / "secret").read_text() == "secret" and os.listdir(outside) == ["secret"]
    assert not (init.workspace / "s").is_symlink()


def test_case_49_race(client, init, outside):
    """A directory and a link take turns while files are read through the name."""
    client.write("real/secret", b"harmless", mkdirs=1)
    swap = client.spawn(["sh", "-c", f"ln -s {outside} evil; mv real away; while :; do "
                                     "mv away x; mv x away; mv evil x; mv x away2; mv away2 evil;"
                                     "done"], timeout_ms=20000)
    for _ in range(300):
        for name in ("x/secret", "away/secret"):
            assert client.read_file(name).raw("DATA") in (b"", b"harmless")
    swap.kill().wait()


def test_paths_do_not_leave_the_root(client):
    for path in ("../../../../../../etc/hostname", "/../../etc/hostname"):
        assert client.read_file(path).raw("DATA") == open("/etc/hostname", "rb").read()


@pytest.mark.parametrize("path", ["", "a/..", ".", "x/.", "/", "y" * 300, "z/" * 3000])
def test_odd_targets_are_refused(client, path):
    assert client.write(path, b"x")["status"] == "error"
    assert client.file("REMOVE", path, recursive=1).end["status"] == "error"


def test_nul_in_a_path(client):
    assert client.write(b"a\0b", b"x")["status"] == "error"


def test_rename(client, init):
    client.write("a", b"1")
    client.write("b", b"2")
    assert client.file("RENAME", "a", to="b").end["status"] == "ok"
    assert (init.workspace / "b").read_bytes() == b"1" and not (init.workspace / "a").exists()
    assert client.file("RENAME", "a", to="c").end["errno"] == "2"


def test_link(client, init, outside):
    for i, target in enumerate(["f", "../up", "/etc/shadow", str(outside / "secret"), "x" * 4000]):
        assert client.file("LINK", f"l{i}", target=target).end["status"] == "ok"
        assert os.readlink(init.workspace / f"l{i}") == target
        assert client.file("STAT", f"l{i}").of("REPORT")[0]["target"] == target
    listed = {entry["name"]: entry.get("target") for entry in client.file("LIST", ".").of("REPORT")}
    assert listed["l2"] == "/etc/shadow" and len(listed) == 5
    client.write("f", b"abc")
    assert client.read_file("l0").raw("DATA") == b"abc"
    # What is there stays: a link replaces nothing and is made nowhere else.
    assert client.file("LINK", "f", target="x").end["errno"] == "17"
    assert client.file("LINK", "l0", target="x").end["errno"] == "17"
    assert client.file("LINK", "none/x", target="x").end["errno"] == "2"
    assert client.file("LINK", "e", target="").end["errno"] == "2"
    assert client.file("LINK", "long", target="x" * 5000).end["errno"] == "36"
    assert client.file("LINK", "no-target").end["status"] == "error"
    assert client.file("LINK", "/etc/x", target="x").end["errno"] in ("13", "30")
    assert not any("target" in entry for entry in client.file("LIST", "/proc/1/fd").of("REPORT"))


def test_remove(client, init):
    client.write("d/f", b"x", mkdirs=1)
    assert client.file("REMOVE", "d").end["errno"] == "39"
    assert client.file("REMOVE", "d/f").end["status"] == "ok"
    assert client.file("REMOVE", "d").end["status"] == "ok"
    assert client.file("REMOVE", "d").end["errno"] == "2"
    assert client.file("REMOVE", "d", recursive=1).end["errno"] == "2"


def test_remove_tree_with_links_and_closed_directories(client, init, outside):
    client.spawn(["sh", "-c", f"""
        mkdir -p t/a/b/c t/closed/inner t/ro/x/y; echo x > t/a/b/c/f; ln -s {outside} t/link
        ln -s / t/a/root; mkfifo t/a/fifo; echo y > t/ro/x/y/z
        chmod 555 t/ro/x/y t/ro/x t/ro; chmod 0 t/closed/inner t/closed"""]).wait()
    assert client.file("REMOVE", "t", recursive=1).end["status"] == "ok"
    assert not (init.workspace / "t").exists() and os.listdir(outside) == ["secret"]


def test_res_05_deep_tree(start):
    """3,000 levels: no recursion, no path as long as that, two descriptors."""
    init = start(tmpfs="size=64m")
    client = init.connect()
    deep = "import os\nos.mkdir('t'); os.chdir('t')\nfor i in range(3000):\n" \
           " os.mkdir('d'); open('f', 'w').close(); os.chdir('d')\n"
    assert client.spawn(["/usr/bin/python3", "-c", deep]).wait().end["status"] == "ok"
    assert client.file("REMOVE", "t", recursive=1).end["status"] == "ok"
    assert not (init.workspace / "t").exists()
    assert init.rss() < 10 << 20


def test_removing_many_does_not_hold_others_up(client, init):
    make = "import os\nfor i in range(100):\n os.makedirs(f't/{i}')\n" \
           " for j in range(100): open(f't/{i}/{j}', 'w').close()\n"
    client.spawn(["/usr/bin/python3", "-c", make]).wait()
    stream = client.request("FILE_REMOVE", [("path", "t"), ("recursive", 1)])
    slowest, ended = 0.0, False
    while not ended:
        begin = time.monotonic()
        client.status()
        ended = stream.ended
        slowest = max(slowest, time.monotonic() - begin)
    assert stream.end["status"] == "ok" and slowest < 0.3


def test_removing_what_somebody_fills(client, init):
    client.spawn(["sh", "-c", "mkdir -p t; while :; do mkdir -p t/a/b 2>/dev/null; done"],
                 timeout_ms=20000)
    time.sleep(0.1)
    end = client.request("FILE_REMOVE", [("path", "t"), ("recursive", 1)]).wait().end
    assert end["status"] in ("ok", "error")


def test_many_operations_at_once(client):
    streams = [client.request("FILE_WRITE", [("path", f"f{i}")]) for i in range(40)]
    for stream in streams:
        stream.send("WRITE_DATA", b"x").send("WRITE_DATA")
    ends = [stream.wait().end for stream in streams]
    assert {end["status"] for end in ends} == {"ok", "error"}
    assert sum(end["status"] == "ok" for end in ends) >= 32


def test_files_of_another_user_are_safe(client, init):
    (init.workspace / "roots").write_text("r")
    (init.workspace / "roots").chmod(0o600)
    assert client.read_file("roots").end["errno"] == "13"
    assert client.read_file("/etc/shadow").end["errno"] == "13"


def test_init_is_not_held_up_by_a_fifo_writer(client):
    """A FIFO in the way, opened by somebody at the other end, blocks nothing."""
    client.spawn(["sh", "-c", "mkfifo x; (sleep 5 > x) & sleep 0.1"]).wait()
    timer = threading.Timer(5, lambda: None)
    timer.start()
    assert client.read_file("x").end["errno"] == "22" and timer.is_alive()
    timer.cancel()
