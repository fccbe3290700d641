# SPDX-License-Identifier: MIT
"""Files into sessions, from one to another and out: cases 17, 27, 34, 48 to 50 and the rows FIL-…

The library's own calls may read the whole host; what a model may read is tested with its tools.
"""

import hashlib
import io
import os
import secrets
import stat
import tarfile
import threading
import time
import zipfile

import pytest
import sa as sa_module

MIB = 1 << 20


def refused(name, call, *arguments, **options):
    """The text of the error that a call must give, in time and by this name."""
    begin = time.monotonic()
    with pytest.raises(sa_module.Error) as error:
        call(*arguments, **options)
    assert time.monotonic() - begin < 20
    assert error.value.name == name, error.value
    return str(error.value)


def tree(session, path):
    """Everything below a folder of the session: {path: what it is}."""
    script = (
        "import os, sys, hashlib\n"
        "for base, dirs, files in os.walk(os.fsencode(sys.argv[1])):\n"
        "    for name in dirs + files:\n"
        "        p = os.path.join(base, name); s = os.lstat(p)\n"
        "        print([os.path.relpath(p, os.fsencode(sys.argv[1])), oct(s.st_mode), s.st_uid,"
        " os.readlink(p) if os.path.islink(p) else hashlib.sha256(open(p, 'rb').read()).digest()"
        " if os.path.isfile(p) else None, os.listxattr(p, follow_symlinks=False)])\n"
    )
    session.write("/tmp/tree.py", script)
    result = session.terminal(f"python3 /tmp/tree.py {path}")
    assert result["success"], result["stderr"]
    rows = [eval(line) for line in result["stdout"].splitlines()]  # our own script's output
    return {name: tuple(rest) for name, *rest in rows}


def unpacked(data):
    """An archive of a folder, open."""
    return tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape")


def left_over(session):
    """Names of stages anywhere a transfer may have put one."""
    found = session.terminal("find /workspace /tmp /home/sandbox -name '.stage*' 2>/dev/null")
    return found["stdout"].split()


# ---- in ----


@pytest.mark.parametrize("size", [0, 1, 18_000, 18_500, 5 * MIB])
def test_case_34_what_was_imported_is_there(make, tmp_path, size):
    data = secrets.token_bytes(size)
    (tmp_path / "f.bin").write_bytes(data)
    session = make(network="none")
    result = session.load(str(tmp_path / "f.bin"))
    assert result == {"destination": "/workspace/f.bin", "size": size, "files": 1}
    assert session.load(content=data, destination="sub/g.bin")["size"] == size
    sums = session.terminal("sha256sum < f.bin; sha256sum < sub/g.bin")["stdout"].split()
    assert sums[0] == sums[2] == hashlib.sha256(data).hexdigest()
    assert not left_over(session)


def test_case_34_300_mib_and_a_full_disk(make, tmp_path):
    path = tmp_path / "big.bin"
    with open(path, "wb") as big:
        big.writelines(secrets.token_bytes(MIB) for _ in range(300))
    want = hashlib.sha256(path.read_bytes()).hexdigest()
    large = make(network="none", tmpfs_bytes=400 * MIB, memory_bytes=1024 * MIB)
    assert large.load(str(path))["size"] == 300 * MIB
    assert large.terminal("sha256sum < big.bin")["stdout"].split()[0] == want
    # What is read back is the same, and needs no memory for the whole.
    digest = hashlib.sha256()
    large.export("big.bin")
    large.download("big.bin", into=digest.update)
    assert digest.hexdigest() == want
    small = make(network="none")
    small.write("big.bin", b"old")
    for options in ({"source": str(path)}, {"content": path.read_bytes(), "destination": "big.bin"},
                    {"source": "big.bin", "session": large}):
        text = refused("DISK", small.load, **options)
        assert "CONTAINER_TMPFS_SIZE" in text and "200 MiB" in text
        assert small.read("big.bin") == b"old" and not left_over(small)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_text("a")
    os.link(path, folder / "z.bin")
    assert "CONTAINER_TMPFS_SIZE" in refused("DISK", small.load, str(folder))
    assert [entry["name"] for entry in small.files()] == ["big.bin"]
    assert small.execute("1 + 1")["result"] == {"text/plain": "2"}


NAMES = ["販売データ_今週.csv", "販売データ_先週.csv", "Générer – suite.js", "a b'c\"d$e.txt", "-rf",
         "ｅ.txt", "e.txt", "\u00e9.txt", "e\u0301.txt", "new\nline", "x" * 255]


@pytest.mark.parametrize("language", ["python", "node", "r"])
def test_case_17_names_stay_different_and_whole(make, tmp_path, language):
    names = [name.encode() for name in NAMES] + [b"bytes\xff\xfe", b"\xed\xa0\x80"]
    folder = os.fsencode(tmp_path / "names")
    os.mkdir(folder)
    for i, name in enumerate(names):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"%d\n" % i)
    one, other = make(language, network="none"), make("python", network="none")
    one.load(folder)
    for i, name in enumerate(names):
        assert one.load(os.path.join(folder, name))["size"] == len(b"%d\n" % i)
        assert one.read(name) == one.read(b"names/" + name) == b"%d\n" % i
    read = {
        "python": "open('販売データ_今週.csv').read()",
        "node": "require('fs').readFileSync('販売データ_今週.csv', 'utf8')",
        "r": "readLines('販売データ_今週.csv')",
    }[language]
    assert "0" in one.execute(read)["result"]["text/plain"]
    # To another runtime and out again: the same bytes of the same names.
    one.export("names")
    other.load("names", session=one)
    packed = unpacked(one.download("names"))
    assert {os.fsencode(m.name) for m in packed.getmembers()} == set(names)
    for i, name in enumerate(names):
        assert other.read(b"names/" + name) == b"%d\n" % i
        one.export(name)
        assert one.download(name) == b"%d\n" % i


def test_fil_09_modes_owners_and_attributes_are_plain(make, tmp_path):
    folder = tmp_path / "t"
    (folder / "sticky").mkdir(parents=True)
    for name, mode in (("suid", 0o4755), ("sgid", 0o2750), ("none", 0o600), ("all", 0o666)):
        (folder / name).write_text(name)
        (folder / name).chmod(mode)
    (folder / "sticky").chmod(0o1777)
    for name in ("user.overlay.opaque", "user.note"):
        try:
            os.setxattr(folder / "none", name, b"y")
        except OSError:
            pass  # this file system has none, so there is none to come along
    if os.geteuid() == 0:
        os.chown(folder / "all", 12345, 54321)
    session = make(network="none")
    session.load(str(folder))
    found = tree(session, "t")
    assert {name: mode for name, (mode, *_rest) in found.items()} == {
        b"suid": "0o100755", b"sgid": "0o100755", b"none": "0o100644", b"all": "0o100644",
        b"sticky": "0o40755"}
    assert {uid for _mode, uid, *_rest in found.values()} == {65532}
    assert not any(xattrs for *_rest, xattrs in found.values())
    # A file that was there with more gives it up.
    session.terminal("chmod 6777 t/none")
    session.load(str(folder / "none"), "t/none")
    assert tree(session, "t")[b"none"][0] == "0o100644"


def test_destinations(make, tmp_path):
    (tmp_path / "d" / "sub").mkdir(parents=True)
    (tmp_path / "d" / "f.txt").write_text("f")
    (tmp_path / "d" / "sub" / "g.txt").write_text("g")
    file, folder = str(tmp_path / "d" / "f.txt"), str(tmp_path / "d")
    session = make(network="none")

    def goes(source, destination, want):
        assert session.load(source, destination)["destination"] == want

    goes(file, None, "/workspace/f.txt")
    goes(file, "new.txt", "/workspace/new.txt")
    goes(file, "a/b/", "/workspace/a/b/f.txt")
    goes(file, ".", "/workspace/f.txt")
    goes(file, "/workspace", "/workspace/f.txt")
    goes(file, "/tmp/x.txt", "/tmp/x.txt")
    goes(file, "/home/sandbox/", "/home/sandbox/f.txt")
    goes(file, "a/../b.txt", "/workspace/b.txt")
    goes(folder, None, "/workspace/d")
    goes(folder, "e", "/workspace/e")
    goes(folder, "into/", "/workspace/into/d")
    goes(folder + "/", "content/", "/workspace/content")
    goes(folder, "/workspace/", "/workspace/d")
    assert session.read("content/sub/g.txt") == session.read("e/sub/g.txt") == b"g"
    assert session.read("into/d/sub/g.txt") == b"g" and not left_over(session)
    for destination, name in (("../../x", "INVALID"), ("/../x", "INVALID"), ("/etc/x", "SYSTEM"),
                              ("/proc/self/x", "NOT_FOUND"), ("/x", "SYSTEM"), ("e", "SYSTEM")):
        refused(name, session.load, file, destination)
    refused("EXISTS", session.load, folder, "f.txt")
    refused("INVALID", session.load, content=b"x")
    refused("INVALID", session.load, "relative")
    refused("SYSTEM", session.load, file + "/")
    refused("SYSTEM", session.load, str(tmp_path / "none"))
    refused("NOT_FOUND", session.library.session("0" * 32).load, file)


def test_a_folder_that_is_there_is_merged_into(make, tmp_path):
    (tmp_path / "d" / "both").mkdir(parents=True)
    (tmp_path / "d" / "new").mkdir()
    for name in ("both/mine", "both/shared", "new/x"):
        (tmp_path / "d" / name).write_text("new")
    (tmp_path / "d" / "link").symlink_to("both/shared")
    session = make(network="none")
    session.terminal("mkdir -p d/both; echo old > d/both/shared; echo old > d/both/theirs")
    session.load(str(tmp_path / "d"))
    assert session.read("d/both/theirs") == b"old\n"
    for name in ("both/mine", "both/shared", "new/x", "link"):
        assert session.read(f"d/{name}") == b"new"
    # A folder in the place of a file, and a link in the place of a folder: refused, not followed.
    session.terminal("rm -r d; mkdir d /tmp/elsewhere; ln -s /tmp/elsewhere d/both")
    assert "'/workspace/d/both'" in refused("EXISTS", session.load, str(tmp_path / "d"))
    assert session.terminal("ls /tmp/elsewhere")["stdout"] == "" and not left_over(session)
    # Into the folder that the whole workspace is.
    session.terminal("rm -r d")
    session.load(str(tmp_path / "d") + "/", "/workspace/")
    assert session.read("both/mine") == b"new" and not left_over(session)


def test_case_48_the_hosts_special_files(make, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "out").symlink_to("/etc/passwd")
    session = make(network="none")
    for source in ("/dev/zero", "/proc/self/environ", "/proc", "/sys", str(tmp_path / "fifo")):
        refused("DENIED", session.load, source, "x")
    assert "'out'" in refused("INVALID", session.load, str(tmp_path / "d"))
    assert session.files() == []


# ---- from one session to another ----


def test_between_sessions_of_every_runtime(make):
    python, node, r = make("python", network="none"), make("node", network="none"), make(
        "r", network="none")
    python.execute("import csv\nwith open('o.csv', 'w') as f: f.write('a,b\\n1,2\\n')")
    assert "is not exported" in refused("DENIED", r.load, "o.csv", session=python)
    exported = python.export("o.csv")
    assert exported == {"path": "/workspace/o.csv", "type": "file", "size": 8}
    assert r.load("o.csv", "in.csv", session=python)["destination"] == "/workspace/in.csv"
    assert "2" in r.execute("read.csv('in.csv')$b")["result"]["text/plain"]
    r.terminal("mkdir -p out/deep; echo 1 > out/deep/x; ln -s deep/x out/l; chmod 700 out/deep/x")
    assert r.export("out/")["type"] == "dir"
    node.load("/workspace/out", "got", session=r)
    found = node.terminal("cat got/l; readlink got/l; stat -c %a got/deep/x")["stdout"]
    assert found == "1\ndeep/x\n755\n"
    # Below what is exported, in the same session, and back.
    assert node.load("out/deep/x", "y", session=r)["size"] == 2
    assert r.load("out", "copy", session=r)["files"] == 1
    refused("INVALID", r.load, "out", "out/inside", session=r)
    r.terminal("head -c 50M /dev/urandom > big")
    r.export("big")
    r.load("big", "big2", session=r)
    assert r.terminal("cmp big big2")["success"]
    # The two ends are told apart.
    text = refused("NOT_FOUND", node.load, "o.csv", session="f" * 32)
    assert "source session" in text
    python.terminal("rm o.csv")
    text = refused("NOT_FOUND", node.load, "o.csv", session=python)
    assert text.startswith(f"source session {python.id}")
    assert "source" not in refused("SYSTEM", node.load, "out/deep/x", "/etc/x", session=r)


def test_a_slow_reader_holds_nobody_up(make):
    """A download that nobody takes keeps 4 MiB here, and the session answers others at once."""
    session = make(network="none")
    session.terminal("truncate -s 100M big; echo small > small")
    session.export("/workspace")
    pieces, slowest = 0, 0.0

    def take(piece):
        nonlocal pieces, slowest
        pieces += 1
        if pieces < 20:
            begin = time.monotonic()
            assert session.read("small") == b"small\n"
            assert session.execute(str(pieces))["result"] == {"text/plain": str(pieces)}
            slowest = max(slowest, time.monotonic() - begin)
        return pieces >= 40

    refused("CANCELLED", session.download, "big", into=take)
    assert pieces == 40 and slowest < 2


def test_more_transfers_than_places_wait_for_each_other(make, tmp_path):
    """Init keeps a number of files open; what is above it waits, and nobody is refused for it."""
    session = make(network="none")
    session.terminal("truncate -s 6M big; mkdir tree; touch tree/a tree/b")
    session.export("/workspace")
    (tmp_path / "in").mkdir()
    for i in range(20):
        (tmp_path / "in" / str(i)).write_bytes(bytes(1000))
    go_on, sizes, failures = threading.Event(), [], []

    def work(call):
        try:
            call()
        except sa_module.Error as error:
            failures.append(str(error))

    def download():
        pieces = []
        session.download("big", into=lambda piece: (pieces.append(len(piece)), go_on.wait())[0])
        sizes.append(sum(pieces))

    def load(i):
        session.load(str(tmp_path / "in"), f"in{i % 2}")

    def begin(calls):
        threads = [threading.Thread(target=work, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        return threads

    slow = begin([download] * 40)
    time.sleep(0.5)  # those that have a place are in the middle now
    for thread in begin([lambda i=i: load(i) for i in range(40)]):
        thread.join(60)
    names, stages = session.files("in0"), left_over(session)
    go_on.set()
    for thread in slow:
        thread.join(60)
    assert len(names) == 20 and stages == []
    assert not failures and sizes == [6 * MIB] * 40, failures[:3]


# ---- out ----


def test_fil_17_only_what_is_exported(make):
    one, other = make(network="none"), make(network="none")
    one.terminal("mkdir a ab; echo a > a/f; echo ab > ab/f; echo n > '%2e%2e'; ln -s /etc/passwd p")
    one.export("a")
    assert one.download("a/f") == one.download("/workspace/a//./f") == b"a\n"
    for path in ("ab/f", "ab", "/workspace/ab", "/workspace", "%2e%2e", "a/../ab/f", "a;b", "a%00",
                 "../etc/passwd", "/etc/passwd", "%252e%252e/etc", "p"):
        assert "not exported" in refused("DENIED", one.download, path), path
    refused("INVALID", one.download, "../../../etc/passwd")
    refused("INVALID", one.download, "")
    refused("DENIED", other.download, "a/f")
    refused("NOT_FOUND", one.download, "a/none")
    refused("NOT_FOUND", one.download, b"a/\xc0\xae\xc0\xae/f")
    for path in ("/etc/passwd", "/tmp/x", "../tmp", "/workspaces/x", "/"):
        assert "outside /workspace" in refused("DENIED", one.export, path)
    refused("NOT_FOUND", one.export, "none")
    refused("INVALID", one.export, "a/f/")
    one.stop()
    refused("NOT_FOUND", one.download, "a/f")


def test_fil_18_what_is_no_file(make):
    session = make(network="none")
    session.terminal(
        "mkfifo fifo; ln -s /proc/1/environ env; ln -s /proc/self/maps maps; ln -s /dev/zero zero;"
        "echo x > closed; chmod 000 closed; mkdir shut; chmod 000 shut; mkdir with; mkfifo with/p;"
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\"; ln -s loop loop")
    for name in ("fifo", "env", "maps", "zero", "closed", "shut", "sock", "loop"):
        begin = time.monotonic()
        with pytest.raises(sa_module.Error):
            session.export(name)
        assert time.monotonic() - begin < 2, name
    session.export("with")
    refused("INVALID", session.download, "with")
    # A folder that is exported covers a FIFO in it, but that makes no file of it.
    refused("INVALID", session.download, "with/p")


def test_fil_18_bytes_that_are_not_there_count(make):
    session, other = make(network="none", tmpfs_bytes=64 * MIB), make(network="none")
    # The sandbox has a limit of its own: no file has a pebibyte, nor more than 4 GiB.
    assert "size limit" in session.terminal("truncate -s 1P sparse")["stderr"]
    session.terminal("rm -f sparse; mkdir d; cd d; for i in 1 2 3 4 5; do truncate -s 1G $i; done")
    begin = time.monotonic()
    assert session.export("d")["size"] == 5 << 30
    assert "4294967296" in refused("LIMIT", session.download, "d")
    assert "4294967296" in refused("LIMIT", other.load, "d", session=session)
    refused("DISK", other.load, "d/1", session=session)
    assert time.monotonic() - begin < 5
    assert session.execute("1")["success"] and other.files() == []


def test_fil_18_files_that_change_while_they_are_read(make):
    """A file that grows ends where it ended; one that is cut short has no false end."""
    session = make(network="none")
    session.write("grow.py", (
        "import os, time\nwith open('g', 'ab', buffering=0) as f:\n"
        "    while not os.path.exists('stop') and f.tell() < 100 << 20: f.write(b'x' * 4096)\n"))
    session.terminal("echo > g; head -c 30M /dev/zero > cut; head -c 30M /dev/zero > gone")
    session.export("/workspace")
    with session.run("exec python3 grow.py", kind="command", timeout=60) as run:
        data = session.download("g")
        assert 0 < len(data) < 100 << 20
        session.write("stop", b"")
        run.result(timeout=60)
    seen = []

    def cut(piece):
        if not seen:
            session.terminal("truncate -s 1000 cut; rm gone")
        seen.append(len(piece))

    assert "cut short" in refused("SYSTEM", session.download, "cut", into=cut)
    assert sum(seen) < 30 * MIB
    seen.clear()
    refused("NOT_FOUND", session.download, "gone")
    session.terminal("head -c 30M /dev/urandom > gone; sha256sum < gone > sum")

    def remove(piece):
        if not seen:
            session.terminal("rm gone")
        seen.append(piece)

    session.download("gone", into=remove)  # whoever has it open has it whole
    assert hashlib.sha256(b"".join(seen)).hexdigest() == session.read("sum").split()[0].decode()


def test_fil_18_a_session_that_ends_ends_its_downloads(make):
    session = make(network="none")
    session.terminal("truncate -s 100M f")
    session.export("f")
    pieces = []

    def take(_piece):
        if not pieces:
            session.stop()
        pieces.append(1)

    refused("DIED", session.download, "f", into=take)
    assert len(pieces) < 100


def test_case_27_a_large_sparse_file_is_told_by_its_size(make):
    session = make(network="none")
    session.terminal("truncate -s 2G z.bin")
    begin = time.monotonic()
    assert session.export("z.bin")["size"] == 2 << 30
    assert time.monotonic() - begin < 1
    refused("CANCELLED", session.download, "z.bin", into=lambda piece: True)
    assert time.monotonic() - begin < 2


def test_folders_as_archives(make):
    session = make(network="none")
    session.terminal("mkdir -p d/sub/empty; echo x > d/sub/f; ln -s sub/f d/l; chmod 700 d/sub/f")
    assert session.export("d")["size"] == 2
    packed = unpacked(session.download("d"))
    members = {m.name: m for m in packed.getmembers()}
    assert set(members) == {"sub", "sub/empty", "sub/f", "l"}
    assert members["l"].linkname == "sub/f" and members["sub/f"].mode & 0o777 == 0o755
    assert packed.extractfile("sub/f").read() == b"x\n"
    zipped = zipfile.ZipFile(io.BytesIO(session.download("d", archive="zip")))
    assert zipped.testzip() is None and zipped.read("sub/f") == b"x\n"
    single = zipfile.ZipFile(io.BytesIO(session.download("d/sub/f", archive="zip")))
    assert single.namelist() == ["f"]
    # A link out of the folder would be a link to something of the one who unpacks it.
    session.terminal("ln -s /etc/passwd d/out")
    assert "'out'" in refused("INVALID", session.download, "d")
    session.terminal("rm d/out; head -c 20M /dev/urandom > d/big")
    refused("CANCELLED", session.download, "d", into=lambda piece: True)
    assert session.execute("1")["success"]


def test_case_50_archives_are_unpacked_or_refused_whole(make, tmp_path):
    session = make(network="none")
    session.terminal("mkdir d")
    session.write("d/f.txt", b"content")
    session.terminal("ln -s f.txt d/l; mkdir d/empty")
    session.export("d")
    for archive, name in (("tar.gz", "r.tar.gz"), ("zip", "r.zip")):
        data = session.download("d", archive=archive)
        (tmp_path / name).write_bytes(data)
        assert session.load(str(tmp_path / name), extract=True)["destination"] == "/workspace/r"
        assert session.load(content=data, destination="c/", extract=True)["files"] == 1
        for path in ("r/f.txt", "c/f.txt", "c/l"):
            assert session.read(path) == b"content"
        session.write(name, data)
        session.export(name)
        other = make(network="none")
        assert other.load(name, "x", session=session, extract=True)["destination"] == "/workspace/x"
        assert other.read("x/l") == b"content"
        session.terminal("rm -r r c")
    before = tree(session, ".")
    hostile = io.BytesIO()
    with tarfile.open(fileobj=hostile, mode="w:gz") as out:
        for path in ("good", "../../x"):
            info = tarfile.TarInfo(path)
            info.size = 4
            out.addfile(info, io.BytesIO(b"evil"))
    for content in (hostile.getvalue(), b"no archive", b"", data[:len(data) // 2]):
        with pytest.raises(sa_module.Error) as error:
            session.load(content=content, destination="evil", extract=True)
        assert error.value.name in ("INVALID", "LIMIT", "DENIED"), error.value
    assert tree(session, ".") == before and not left_over(session)
    refused("INVALID", session.load, str(tmp_path), "x", extract=True)


def test_fil_14_an_archive_that_is_cut_anywhere_leaves_nothing(make):
    session = make(network="none")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as out:
        for i in range(8):
            info = tarfile.TarInfo(f"d/{i}")
            info.size = 8192
            out.addfile(info, io.BytesIO(secrets.token_bytes(8192)))
    data = buffer.getvalue()
    assert len(data) > 60_000
    for cut in sorted({1, 10, 512, 513, *range(777, len(data), len(data) // 40), len(data) - 1}):
        with pytest.raises(sa_module.Error):
            session.load(content=data[:cut], destination="t", extract=True)
    assert session.files() == [] and not left_over(session)
    session.load(content=data, destination="t", extract=True)
    assert len(session.files("t/d")) == 8


def test_fil_14_two_imports_to_one_place_are_each_whole(make, tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        for i in range(20):
            (tmp_path / name / str(i)).write_text(name * 100_000)
    session, errors = make(network="none"), []

    def work(name):
        try:
            for _ in range(5):
                session.load(str(tmp_path / name / "0"), "file")
                session.load(str(tmp_path / name), "folder")
        except sa_module.Error as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    for path in ["file", *(f"folder/{i}" for i in range(20))]:
        data = session.read(path)
        assert len(data) == 100_000 and len(set(data)) == 1, path
    assert not left_over(session)


def test_fil_22_overlay_tricks_are_data(make):
    session = make(network="none")
    session.terminal("mkdir d; echo x > d/.wh.passwd; echo y > d/.wh..wh..opq; mkdir d/.wh.dir")
    session.execute("import os\ntry: os.setxattr('d', 'user.overlay.opaque', b'y')\n"
                    "except OSError: pass")
    session.export("d")
    other = make(network="none")
    other.load("d", session=session)
    assert set(tree(other, "d")) == {b".wh.passwd", b".wh..wh..opq", b".wh.dir"}
    names = unpacked(session.download("d")).getnames()
    assert set(names) == {".wh.passwd", ".wh..wh..opq", ".wh.dir"}


@pytest.mark.parametrize("point", ["import-open", "import-half", "import-rename", "export-open"])
def test_named_points_leave_nothing_partial(state_dir, tmp_path, monkeypatch, point):
    """The third time that a session passes the point, it fails."""
    for i in range(4):
        (tmp_path / str(i)).write_text("x" * 1000)
    monkeypatch.setenv("SBX_FAIL", f"{point}:3:err=EIO")
    with sa_module.Library(instance=f"point{os.getpid()}") as library:
        one, other = library.create(network="none"), library.create(network="none")
        one.terminal("mkdir d; for i in 1 2 3 4; do echo $i > d/$i; done")
        one.export("d")  # passes export-open no more than once
        for _ in range(2):
            try:
                other.load("d", "copy", session=one)
                other.load(str(tmp_path), "t")
            except sa_module.Error as error:
                assert "Input/output error" in str(error)
                assert point != "export-open" or one.id in str(error)
                break
        else:
            pytest.skip("built without failpoints")
        names = {entry["name"] for entry in other.files()}
        assert names <= {"copy"} and (not names or len(other.files("copy")) == 4)
        assert not left_over(one) and not left_over(other)
        # Passed the fourth time, all is well.
        other.load("d", "copy", session=one)
        other.load(str(tmp_path), "t")
        assert len(other.files("copy")) == len(other.files("t")) == 4


# ---- planted links ----

SWAP = """
import ctypes, os
libc, here, exchange = ctypes.CDLL(None, use_errno=True), -100, 2
os.makedirs("real/in", exist_ok=True); open("real/in/f", "w").write("inside")
os.symlink({target!r}, "link")
open("go", "w").close()
while not os.path.exists("stop"):
    for i in range(100):
        assert libc.renameat2(here, b"real", here, b"link", exchange) == 0, ctypes.get_errno()
"""


def test_fil_04_case_49_planted_links_and_exports(make, tmp_path):
    secret = "canary" + secrets.token_hex(8)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "f").write_text(secret)
    session, other = make(network="none"), make(network="none")
    session.terminal(
        f"ln -s /etc/shadow s; ln -s / d; ln -s /nonexist new; ln -s {tmp_path}/in/f host;"
        f"ln -s /proc/self/root{tmp_path} p; mkdir t; ln -s {tmp_path}/in t/host")
    for name in ("s", "new", "host", "p", "t/host"):
        try:
            session.export(name)
            assert secret.encode() not in session.download(name)
        except sa_module.Error as error:
            assert secret not in str(error)
    session.export("t")
    refused("INVALID", session.download, "t")
    refused("INVALID", other.load, "t", session=session)
    # What a link leads to inside is the sandbox's own.
    session.load(content=b"mine", destination="d/tmp/x")
    assert session.terminal("cat /tmp/x")["stdout"] == "mine"
    session.load(content=b"mine", destination="new")
    assert session.terminal("stat -c %F new")["stdout"] == "regular file\n"
    assert (tmp_path / "in" / "f").read_text() == secret and not (tmp_path / "x").exists()


def test_fil_04_case_49_a_folder_and_a_link_swapped_in_a_loop(make, tmp_path):
    secret = "canary" + secrets.token_hex(8)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "f").write_text(secret)
    session, other = make(network="none"), make(network="none")
    session.write("swap.py", SWAP.format(target=str(tmp_path)))
    seen = {}
    with session.run("exec python3 swap.py", kind="command", timeout=100) as run:
        while not any(entry["name"] == "go" for entry in session.files()):
            time.sleep(0.02)
        while True:
            try:
                session.export("real")
                break
            except sa_module.Error:
                pass
        for i in range(1000):
            try:
                if i % 4 == 0:
                    other.load("real", f"got{i}", session=session)
                    data = other.read(f"got{i}/in/f")
                elif i % 4 == 1:
                    session.load(content=b"inside", destination="real/in/new")
                    data = b"inside"
                else:
                    data = session.download("real/in/f")
                assert data == b"inside", data
                seen["inside"] = seen.get("inside", 0) + 1
            except sa_module.Error as error:
                assert secret not in str(error)
                seen[error.name] = seen.get(error.name, 0) + 1
        session.write("stop", b"")
        run.result(timeout=60)
    assert seen["inside"] > 10 and seen["NOT_FOUND"] > 10, seen
    assert sorted(os.listdir(tmp_path / "in")) == ["f"]
    assert (tmp_path / "in" / "f").read_text() == secret
    assert stat.S_IMODE(os.stat(tmp_path / "in").st_mode) & 0o700 == 0o700
