# SPDX-License-Identifier: MIT
"""Hostile images (ISO-14): refused, or built inside; nothing outside is touched."""

import ctypes
import hashlib
import os
import shutil
import socket
import threading

import pytest

import keeper as lib

AT_FDCWD, RENAME_EXCHANGE = -100, 2


def renameat2(one, other, flags):
    """Swap two names at once."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), flags)


@pytest.fixture
def outside(scratch):
    """A directory with a marker file; its digest must not change."""
    path = scratch / "outside"
    shutil.rmtree(path, ignore_errors=True)
    (path / "dev").mkdir(parents=True)
    (path / "null").write_text("marker")
    (path / "hosts").write_text("marker")
    before = tree_digest(path)
    yield path
    assert tree_digest(path) == before
    shutil.rmtree(path)


def tree_digest(path):
    """Names, kinds and contents of a tree."""
    digest = hashlib.sha256()
    for directory, names, files in sorted(os.walk(path)):
        for name in sorted(names + files):
            full = os.path.join(directory, name)
            info = os.lstat(full)
            digest.update(f"{full} {info.st_mode} {info.st_rdev}".encode())
            if os.path.isfile(full):
                digest.update(open(full, "rb").read())
    return digest.hexdigest()


def replace_by_link(image, name, target):
    """Put a symbolic link where the image has a directory."""
    path = image / name
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize("flags", (0, lib.OVERLAY_ROOT))
@pytest.mark.parametrize("name", ("dev", "proc", "tmp", "workspace", "home", "home/sandbox"))
@pytest.mark.parametrize("target", ("OUTSIDE", "/", "x", "/proc/self/root"))
def test_iso_14_a_link_in_place_of_a_directory_is_refused(start, bare, outside, name, target, flags):
    replace_by_link(bare, name, str(outside) if target == "OUTSIDE" else target)
    keeper = start()
    with pytest.raises(lib.KeeperError, match=f"image is refused: '/{name}"):
        keeper.open(bare, flags=flags)
    assert keeper.request(lib.INFO).running == 0


def test_iso_14_a_file_in_place_of_a_directory_is_refused(start, bare):
    (bare / "workspace").rmdir()
    os.mkfifo(bare / "workspace")
    with pytest.raises(lib.KeeperError, match="'/workspace' is not a plain directory"):
        start().open(bare)


def test_iso_14_the_root_itself_is_a_link(start, bare, scratch):
    link = scratch / "link"
    link.symlink_to(bare)
    with pytest.raises(lib.KeeperError, match="cannot mount the image"):
        start().open(link)
    link.unlink()


def test_iso_14_what_lies_in_dev_of_the_image_is_covered(start, bare, image, introspect):
    (bare / "dev/null").symlink_to("/proc/sysrq-trigger")
    os.mknod(bare / "dev/mem", 0o600 | 0o020000, os.makedev(1, 1))
    (bare / "sys").symlink_to("/")
    sandbox = start().open(bare, mounts=[introspect, (str(image / "usr"), "/usr", 0)])
    for name in ("lib", "lib64", "bin"):
        assert not (bare / name).exists()
    run = sandbox.run("/tmp/sbx-introspect", "sleep", "0")
    assert run.end["exit_code"] == "0"
    with sandbox.connect() as client:
        names = [report["name"] for report in client.file("LIST", "/dev").of("REPORT")]
        assert "mem" not in names and "null" in names
        assert client.file("STAT", "/dev/null").of("REPORT")[0]["type"] == "other"
    sandbox.close()
    assert not (bare / "usr").exists()


@pytest.mark.parametrize("name", ("hosts", "resolv.conf", "hostname"))
def test_iso_14_files_of_etc_that_lead_out(start, bare, outside, name):
    link = bare / "etc" / name
    for target in (outside / "hosts", "../../../../../../../" + str(outside / "hosts"),
                   "/proc/self/fd/3", "/proc/1/root/etc/passwd"):
        link.symlink_to(target)
        start().open(bare).close()
        link.unlink()


def test_iso_14_etc_is_a_link(start, bare, outside):
    replace_by_link(bare, "etc", outside)
    sandbox = start().open(bare)
    with sandbox.connect() as client:
        assert client.file("STAT", "/etc/hosts").end["status"] == "error"
    sandbox.close()


def test_iso_14_a_mount_whose_target_is_a_link(start, bare, outside, introspect):
    (bare / "opt").symlink_to(outside)
    with pytest.raises(lib.KeeperError, match="'/opt/tool' is not a plain directory"):
        start().open(bare, mounts=[(introspect[0], "/opt/tool", 0)])


def test_a_target_that_the_image_lacks_is_made_inside_only(start, bare, introspect):
    before = tree_digest(bare)
    sandbox = start().open(bare, mounts=[(introspect[0], "/opt/tools/introspect", 0)])
    assert sandbox.run("/opt/tools/introspect", "sleep", "0").end["exit_code"] == "0"
    with sandbox.connect() as client:
        assert client.file("MKDIR", "/opt/more").end["status"] == "error"
    sandbox.close()
    assert tree_digest(bare) == before


def test_directories_that_the_image_lacks(start, bare):
    for name in ("dev", "proc", "tmp", "workspace", "home/sandbox", "home"):
        (bare / name).rmdir()
    sandbox = start().open(bare)
    with sandbox.connect() as client:
        assert client.write("/workspace/file", b"x")["status"] == "ok"
        assert client.write("/elsewhere", b"x")["status"] == "error"
    sandbox.close()
    assert sorted(os.listdir(bare)) == ["etc"]


@pytest.mark.parametrize("mode", ("root", "user"))
def test_a_writable_root_is_an_overlay(start, image, mode):
    keeper = start(mode)
    sandbox = keeper.open(image, flags=lib.OVERLAY_ROOT | lib.AS_ROOT)
    run = sandbox.run("sh", "-c", "echo new > /etc/new && rm /etc/passwd && cat /etc/new; "
                      "ls /etc/passwd", user="root")
    if mode == "root":
        assert run.stdout == b"new\n", run.stderr
    assert not (image / "etc/new").exists() and (image / "etc/passwd").exists()
    # What the overlay says of itself names no path of the host.
    mounts = sandbox.run("cat", "/proc/self/mountinfo").stdout.decode().splitlines()
    options = [line for line in mounts if " - overlay " in line]
    assert len(options) == 1 and "lowerdir=lower" in options[0]
    sandbox.close()


def test_as_root_is_not_init_and_has_no_power(start, image, introspect):
    sandbox = start().open(image, flags=lib.AS_ROOT, mounts=[introspect])
    run = sandbox.run("sh", "-c", "id -u; grep -E 'Cap' /proc/self/status | cut -f2 | sort -u; "
                      "kill -9 1; chown 5 /workspace; mount -t tmpfs x /tmp; cat /proc/1/environ",
                      user="root")
    assert run.stdout.decode().split() == ["0", "0000000000000000"]
    found = sandbox.run("/tmp/sbx-introspect", "named", user="root").stdout.decode().splitlines()
    works = {line.split()[0] for line in found if line.endswith(" ok")}
    assert works <= {"personality-get", "tcgets", "kill-init"}
    assert sandbox.run("id", "-u", user="sandbox").stdout == b"65532\n"
    sandbox.close()


def test_a_socket_is_no_source_of_a_mount(start, bare, scratch):
    path = scratch / "socket"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))
        with pytest.raises(lib.KeeperError, match="neither a file nor a directory"):
            start().open(bare, mounts=[(str(path), "/tmp/socket", 0)])
    path.unlink()


@pytest.mark.parametrize("place", ("shared", "shared/deep"))
def test_fil_21_a_link_in_the_way_of_a_mount_leads_nowhere(start, image, scratch, place):
    """Two sandboxes share a folder, and one swaps a part of its path for a link while the other is
    being made: it gets the folder, or is refused."""
    volume, secret = scratch / "volume", scratch / "secret"
    shutil.rmtree(volume, ignore_errors=True)
    shutil.rmtree(secret, ignore_errors=True)
    for folder, word in ((volume / place, "mine"), (secret, "canary"), (secret / "deep", "canary")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "word").write_text(word)
    link = volume / "link"
    link.symlink_to(secret)
    stopped = threading.Event()

    def swap():
        while not stopped.is_set():
            renameat2(link, volume / "shared", RENAME_EXCHANGE)

    thread = threading.Thread(target=swap)
    thread.start()
    got = {"mine": 0, "refused": 0}
    try:
        keeper = start()
        for _ in range(60):
            try:
                sandbox = keeper.open(image, mounts=[(str(volume / place), "/tmp/shared", 0)])
            except lib.KeeperError as error:
                assert "cannot mount" in str(error), error
                got["refused"] += 1
                continue
            got[sandbox.run("cat", "/tmp/shared/word").stdout.decode()] += 1
            sandbox.close()
    finally:
        stopped.set()
        thread.join()
        shutil.rmtree(volume)
        shutil.rmtree(secret)
    assert got["mine"] and got["refused"], got


def test_fil_21_a_mount_never_starts_at_a_link(start, bare, scratch):
    link = scratch / "to-etc"
    link.unlink(missing_ok=True)
    link.symlink_to("/etc")
    for source in (link, link / "ssl"):
        with pytest.raises(lib.KeeperError, match="cannot mount .*symbolic links"):
            start().open(bare, mounts=[(str(source), "/tmp/shared", 0)])
    link.unlink()
