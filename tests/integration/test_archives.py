# SPDX-License-Identifier: MIT
"""Archives: what is refused and why, what comes out of good ones, and what the reader may do.

Everything here runs archive_extract() and the packer by the program archive-probe, without a
session, or sandbox-archive itself.
"""

import gzip
import hashlib
import io
import os
import re
import struct
import subprocess
import sys
import tarfile
import time
import zipfile
import zlib
from pathlib import Path

import badarchives
import pytest
import sa as sa_module
from badarchives import (
    gnu_long,
    octal,
    pax,
    tar,
    tar_entry,
    zip64_end,
    zip_entry,
    zip_extra,
    zip_file,
)

BUILD = sa_module.BUILD
PROBE = BUILD / "tests/lib/archive-probe"
READER = BUILD / "archive/sandbox-archive"
ENVIRONMENT = {**os.environ, "SANDBOX_AGENT_LIBEXEC": str(BUILD / "libexec")}
RECORD = struct.Struct("<BBHIQq")


@pytest.fixture(name="file")
def fixture_file(tmp_path):
    """Write the bytes of an archive and return the path."""
    def write(data):
        path = tmp_path / "archive"
        path.write_bytes(data)
        return path

    return write


def probe(*words):
    """Run archive-probe."""
    return subprocess.run([PROBE, *words], capture_output=True, env=ENVIRONMENT, check=False)


def extract(path):
    """Return what comes out of an archive: {path: (type, executable, mtime_ms, rest)}, or fail."""
    done = probe("extract", path)
    assert done.returncode == 0, done.stderr
    entries = {}
    for line in done.stdout.decode().splitlines():
        kind, mode, _size, mtime, name, *rest = line.split()
        assert bytes.fromhex(name) not in entries
        entries[bytes.fromhex(name)] = (kind, mode == "x", int(mtime), rest[0] if rest else "")
    return entries


def refusal(path):
    """Return the reason why an archive is refused."""
    done = probe("extract", path)
    assert done.returncode == 1, (done.returncode, done.stdout)
    return done.stderr.decode().strip()


def records(path):
    """Run the reader alone: its records as (kind, path, body), and the exit status."""
    with open(path, "rb") as archive:
        done = subprocess.run([READER, "unpack"], stdin=archive, capture_output=True, check=False)
    out, position = [], 0
    while position < len(done.stdout):
        kind, _, path_len, body_len, _, _ = RECORD.unpack_from(done.stdout, position)
        position += RECORD.size
        out.append((chr(kind), done.stdout[position:position + path_len],
                    done.stdout[position + path_len:position + path_len + body_len]))
        position += path_len + body_len
    assert position == len(done.stdout) and not done.stderr
    return out, done.returncode


def sha256(data):
    """The hash that archive-probe prints."""
    return hashlib.sha256(data).hexdigest()


def is_sanitized():
    """Tell whether the reader is a sanitizer's build, which is not confined."""
    return b"__asan_init" in READER.read_bytes() or b"__tsan_init" in READER.read_bytes()


# ---- what is refused ----

@pytest.mark.parametrize("row", badarchives.ROWS)
def test_hostile_archives_are_refused_with_their_reason(file, row):
    wrong = []
    for name, data, pattern in badarchives.hostile(row):
        done = probe("extract", file(data))
        reason = done.stderr.decode().strip()
        if done.returncode != 1 or not re.search(pattern, reason) or reason.count("\n"):
            wrong.append((name, done.returncode, reason, pattern))
    assert not wrong


def test_the_reader_alone_tells_the_reason_in_a_record(file):
    out, status = records(file(tar(tar_entry(b"good", b"x"), tar_entry(b"h", kind=b"1"))))
    assert [kind for kind, _, _ in out] == ["f", "=", "!"] and status == 1
    assert out[-1][2] == b"entry 'h' is a hard link\0"


def test_names_are_harmless_where_they_are_shown(file):
    reason = refusal(file(tar(tar_entry(b"/\x1b[2J\r\n\xff\xe2\x80\xae", b"x"))))
    assert reason == "INVALID_INPUT: entry '/?[2J??\ufffd?' has an absolute name"


# From a small process, as a child is counted with the memory of the one that it was forked from.
MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(done.returncode, peak, done.stderr)
"""


def test_case_50_a_million_entries_are_refused_early(file):
    folders = tar_entry(b"d/", kind=b"5") * 1000
    stream = zlib.compressobj(1, zlib.DEFLATED, 31)
    packed = b"".join(stream.compress(folders) for _ in range(1000)) + stream.flush()
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c", MEASURE, PROBE, "extract", file(packed)],
                          capture_output=True, env=ENVIRONMENT, check=True, text=True)
    status, peak_kib, reason = done.stdout.split(maxsplit=2)
    assert status == "1" and "more than 100000 entries" in reason
    assert time.monotonic() - begin < 10
    assert int(peak_kib) < 256 * 1024


def test_case_50_ten_gigabytes_of_zeros_are_refused_before_they_come(file):
    name, data, pattern = next(case for case in badarchives.hostile() if case[0] == "gz-bomb")
    assert len(data) < 10 * 1024, name
    begin = time.monotonic()
    assert pattern in refusal(file(data))
    assert time.monotonic() - begin < 5


def sample(size):
    """Bytes that compress to about half."""
    return b"".join(hashlib.sha256(b"%d" % i).hexdigest().encode() for i in range(size // 64))


def zstd_raw(data):
    """A zstd frame of raw blocks, without a checksum."""
    out = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data))
    for at in range(0, len(data), 65536):
        piece = data[at:at + 65536]
        last = at + 65536 >= len(data)
        out += (last | len(piece) << 3).to_bytes(3, "little") + piece
    return out


CUT = {
    "tar": lambda: tar(tar_entry(b"a", sample(40000)), tar_entry(b"b", sample(20000))),
    "gz": lambda: gzip.compress(tar(tar_entry(b"a", sample(120000)), tar_entry(b"b"))),
    "zst": lambda: zstd_raw(tar(tar_entry(b"a", sample(60000)), tar_entry(b"b"))),
    "zip": lambda: zip_file(zip_entry(b"a", sample(90000), method=8), zip_entry(b"b"),
                            zip_entry(b"c", sample(15000))),
}


@pytest.mark.parametrize("kind", CUT)
def test_fil_14_an_archive_that_is_cut_never_ends_well(file, kind):
    whole = CUT[kind]()
    assert 60_000 <= len(whole) < 80_000
    assert records(file(whole))[0][-1][0] == "."
    places = {*range(0, len(whole), 509), *range(64), *range(len(whole) - 64, len(whole))}
    for place in sorted(places):
        out, status = records(file(whole[:place]))
        assert out[-1][0] == "!" and status == 1, place


# ---- what comes out ----

NAMES = {
    b"plain.txt": b"hello\n",
    b"empty": b"",
    b"with space/and 'quotes'": b"q",
    "unicode/\u00e9-composed".encode(): b"nfc",
    "unicode/e\u0301-decomposed".encode(): b"nfd",
    "unicode/\u65e5\u672c\u8a9e/\u0440\u0443\u0441.txt".encode(): b"scripts",
    b"bytes/\xff\xfe": b"no utf-8",
    b"Case": b"upper",
    b"case": b"lower",
    b"long/" + b"n" * 250: b"long name",
    b"deep/" * 40 + b"f": b"deep",
    b"big": sample(300_000),
    b"...": b"dots",
    b"-rf": b"dash",
}


def tar_of(form, mode="w"):
    """Make a tar file of NAMES, a link, an empty folder and a program with Python's tarfile."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=form, errors="surrogateescape") as archive:
        def add(name, kind, data=b"", **fields):
            info = tarfile.TarInfo(os.fsdecode(name))
            info.type, info.size, info.mtime = kind, len(data), 1_600_000_000
            for key, value in fields.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(data))

        add(b".", tarfile.DIRTYPE)
        add(b"./empty folder", tarfile.DIRTYPE, mode=0o1777)
        for name, data in NAMES.items():
            add(b"./" + name, tarfile.REGTYPE, data, uid=2**21, gid=0, uname="root")
        add(b"./link", tarfile.SYMTYPE, linkname="unicode")
        add(b"./unicode/up", tarfile.SYMTYPE, linkname="../plain.txt")
        add(b"./program", tarfile.REGTYPE, b"#!", mode=0o4755)
    return out.getvalue()


def zip_of(method):
    """The same with hand-made headers, because Python's zipfile knows no bytes as names."""
    entries = [zip_entry(b"empty folder/", b"")]
    entries += [zip_entry(name, data, method=method) for name, data in NAMES.items()]
    entries += [zip_entry(b"link", b"unicode", mode=0o120777),
                zip_entry(b"unicode/up", b"../plain.txt", mode=0o120777),
                zip_entry(b"program", b"#!", mode=0o104755)]
    return zip_file(*entries)


GOOD = {
    "gnu": lambda: tar_of(tarfile.GNU_FORMAT),
    "pax": lambda: tar_of(tarfile.PAX_FORMAT),
    "tar.gz": lambda: tar_of(tarfile.PAX_FORMAT, "w:gz"),
    "tar.gz in two members": lambda: b"".join(
        gzip.compress(part) for part in (tar_of(tarfile.GNU_FORMAT)[:7777],
                                         tar_of(tarfile.GNU_FORMAT)[7777:])),
    "tar.zst": lambda: zstd_raw(tar_of(tarfile.GNU_FORMAT)),
    "zip stored": lambda: zip_of(0),
    "zip deflated": lambda: zip_of(8),
}


def check_good(entries):
    """Compare what came out with what tar_of() and zip_of() put in."""
    files = {name: rest for name, (kind, _, _, rest) in entries.items() if kind == "f"}
    assert files.pop(b"program") == sha256(b"#!")
    assert files == {name: sha256(data) for name, data in NAMES.items()}
    assert [name for name, entry in entries.items() if entry[1]] == [b"program"]
    assert entries[b"empty folder"][0] == "d"
    assert entries[b"link"][3] == b"unicode".hex()
    assert entries[b"unicode/up"][3] == b"../plain.txt".hex()
    order = list(entries)
    for name in order:
        folder = name.rpartition(b"/")[0]
        assert not folder or order.index(folder) < order.index(name), "folders come first"


@pytest.mark.parametrize("kind", GOOD)
def test_good_archives_come_out_whole(file, kind):
    check_good(extract(file(GOOD[kind]())))


@pytest.mark.parametrize("form", ["tar.gz", "zip"])
def test_what_is_packed_comes_out_again(file, form):
    source = file(GOOD["gnu"]())
    before = extract(source)
    done = probe("convert", form, source)
    assert done.returncode == 0, done.stderr
    again = probe("convert", form, source)
    assert again.stdout == done.stdout, "the same tree gives the same bytes"
    entries = extract(file(done.stdout))
    check_good(entries)
    assert entries == before


def test_others_read_what_is_packed(file, tmp_path):
    source = file(GOOD["gnu"]())
    packed = tmp_path / "packed"
    packed.write_bytes(probe("convert", "tar.gz", source).stdout)
    with tarfile.open(packed) as archive:
        assert os.fsdecode(b"bytes/\xff\xfe") in archive.getnames()
        assert archive.extractfile("unicode/\u00e9-composed").read() == b"nfc"
    packed.write_bytes(probe("convert", "zip", source).stdout)
    with zipfile.ZipFile(packed) as archive:
        assert archive.testzip() is None
        assert archive.read("unicode/\u00e9-composed") == b"nfc"
        assert archive.getinfo("plain.txt").date_time == (2020, 9, 13, 12, 26, 40)


def test_zip_files_of_python_come_out(file):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("d") if hasattr(archive, "mkdir") else archive.writestr("d/", "")
        for i in range(300):
            archive.writestr(f"d/{i}.txt", f"{i}" * i)
        with archive.open("streamed", "w", force_zip64=True) as stream:
            stream.write(b"x" * 5000)
        archive.comment = b"a comment with PK inside"
    entries = extract(file(out.getvalue()))
    assert len(entries) == 302
    assert entries[b"d/299.txt"][3] == sha256(b"299" * 299)
    assert entries[b"streamed"][3] == sha256(b"x" * 5000)


def test_fil_09_attributes_are_stripped(file):
    attributes = pax(raw=b"".join(badarchives.pax_record(key, value) for key, value in (
        (b"SCHILY.xattr.security.capability", b"\1\0\0\2"), (b"uid", b"0"), (b"uname", b"root"),
        (b"SCHILY.xattr.user.overlay.opaque", b"y"), (b"SCHILY.acl.access", b"user::rwx"),
        (b"SCHILY.fflags", b"immutable"), (b"mtime", b"1600000000.123456789"))))
    entries = extract(file(tar(
        pax(b"g", comment=b"0123456789abcdef"), attributes,
        tar_entry(b"suid", b"x", mode=octal(0o6755, 8), uname=b"root"),
        tar_entry(b"plain", b"x", mode=octal(0o1666, 8)))))
    assert entries[b"suid"][:3] == ("f", True, 1_600_000_000_123)
    assert entries[b"plain"][:3] == ("f", False, 1_700_000_000_000)


def test_a_folder_may_be_named_again(file):
    folder = tar_entry(b"d/", kind=b"5")
    assert list(extract(file(tar(tar_entry(b"d/e/f"), folder, folder)))) == [
        b"d", b"d/e", b"d/e/f"]


def test_odd_but_good_archives(file):
    long_name = b"l" * 120 + b"/" + b"m" * 120
    assert list(extract(file(tar()))) == []
    assert list(extract(file(bytes(10240)))) == []
    assert list(extract(file(zip_file()))) == []
    assert list(extract(file(tar(gnu_long(long_name), tar_entry(b"x"))))) == [
        b"l" * 120, long_name]
    assert list(extract(file(tar(tar_entry(b"a//b/./c", b"x"))))) == [b"a", b"a/b", b"a/b/c"]
    assert list(extract(file(tar(tar_entry(b"a\\b", b"x"))))) == [b"a\\b"]
    assert list(extract(file(tar(tar_entry(b"old", b"x", b"\0", magic=bytes(8)))))) == [b"old"]
    # The end may be told twice, when it is told the same.
    assert list(extract(file(zip_file(zip_entry(b"a"), between=zip64_end(1, 47, 32))))) == [b"a"]
    wide = zip_extra(1, struct.pack("<QQ", 1, 1))
    marked = 0xFFFFFFFF
    assert list(extract(file(zip_file(zip_entry(
        b"a", extra=wide, local_size=marked, local_packed=marked, central_size=marked,
        central_packed=marked))))) == [b"a"]
    name = b"\x81"  # an u with dots in the code page of DOS
    second = zip_extra(0x7075, b"\1" + struct.pack("<I", zlib.crc32(name))
                       + "\u00fc".encode())
    assert list(extract(file(zip_file(zip_entry(name, extra=second))))) == ["\u00fc".encode()]
    # A hole between entries belongs to nobody; the directory does not know it.
    assert list(extract(file(zip_file(zip_entry(b"a", b"x" * 99, packed=50, size=50,
                                                crc=zlib.crc32(b"x" * 50)),
                                      zip_entry(b"b"))))) == [b"a", b"b"]


def test_an_archive_that_cannot_be_packed_is_no_archive(file):
    whole = tar(tar_entry(b"a", sample(300_000)), tar_entry(b"../x", b"x"))
    for form in ("tar.gz", "zip"):
        done = probe("convert", form, file(whole))
        assert done.returncode == 1 and b"'../x' leaves" in done.stderr
        assert records(file(done.stdout))[0][-1][0] == "!"


@pytest.mark.parametrize("form", ["tar.gz", "zip"])
def test_a_download_that_nobody_wants_any_more_stops_its_source(file, form):
    source = file(tar(tar_entry(b"noise", os.urandom(16 << 20))))
    begin = time.monotonic()
    done = probe("cancel", form, source)
    assert done.stderr == b"CANCELLED: nobody wants the archive any more\n"
    assert time.monotonic() - begin < 5


# ---- what the reader may do ----

def test_fil_16_only_these_formats_are_known():
    done = subprocess.run([READER, "formats"], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["zip", "zip (empty)", "tar.gz", "tar.zst", "tar", ""]
    symbols = subprocess.run(["nm", "-D", "--undefined-only", READER], capture_output=True,
                             text=True, check=True).stdout
    readers = set(re.findall(r"archive_read_(?:support|append|set)_\w+", symbols))
    assert readers == {"archive_read_append_filter", "archive_read_support_format_raw",
                       "archive_read_support_format_empty"}


@pytest.mark.parametrize("call, allowed", [("open", False), ("socket", False), ("exec", False),
                                           ("memory", True)])
def test_the_reader_dies_of_what_it_may_not(call, allowed):
    if is_sanitized():
        pytest.skip("seccomp: a sanitizer's build has no filter")
    done = subprocess.run([READER, "try", call], capture_output=True, check=False)
    assert done.returncode == (0 if allowed else -31), "SIGSYS"


def test_the_reader_has_nothing_but_its_input_and_output():
    with (open("/dev/null", "rb") as other,
          subprocess.Popen([READER, "pack", "zip"], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           pass_fds=[other.fileno()]) as process):
        home = Path(f"/proc/{process.pid}")
        deadline = time.monotonic() + 5
        while "Seccomp:\t2" not in (text := (home / "status").read_text()):
            if is_sanitized():
                break
            assert time.monotonic() < deadline, text
        if not is_sanitized():
            assert "NoNewPrivs:\t1" in text
            limits = (home / "limits").read_text()
            assert re.search(r"Max open files +0 +0", limits)
            assert re.search(r"Max address space +536870912 ", limits)
            assert sorted(os.listdir(home / "fd")) == ["0", "1", "2"]
        process.stdin.close()
        assert process.wait(5) == 1, "records that are cut off make no archive"


def test_a_reader_that_is_missing_is_named(file, tmp_path):
    done = subprocess.run([PROBE, "extract", file(tar())], capture_output=True, text=True,
                          env={**ENVIRONMENT, "SANDBOX_AGENT_LIBEXEC": str(tmp_path)}, check=False)
    assert done.returncode == 1 and "sandbox-archive' is missing" in done.stderr
