# SPDX-License-Identifier: MIT
"""Archives that have to be refused, written byte by byte, because no library would write them.

hostile() is the list for every door that takes archives: (name, bytes, pattern), where the pattern
is what the reason has to match. tar_entry(), pax() and zip_file() are the writers behind it.
"""

import functools
import gzip
import struct
import zlib

BLOCK = 512
GIB = 1 << 30


# ---- tar ----

def octal(value, width):
    """Format a number as tar does: octal digits and a NUL."""
    return b"%0*o\0" % (width - 1, value)


def base256(value, width):
    """Format a number as GNU does when it is too large for octal digits, or negative."""
    raw = bytearray(value.to_bytes(width, "big", signed=True))
    raw[0] |= 0x80
    return bytes(raw)


def tar_header(name=b"file", kind=b"0", size=0, **fields):
    """One header block. `fields` replaces raw fields; `checksum` too, else it is right."""
    mode = fields.get("mode", octal(0o644, 8))
    number = size if isinstance(size, bytes) else octal(size, 12)
    parts = [
        name[:100].ljust(100, b"\0"), mode, octal(0, 8), octal(0, 8), number,
        fields.get("mtime", octal(1700000000, 12)), b" " * 8, kind,
        fields.get("target", b"").ljust(100, b"\0"), fields.get("magic", b"ustar\00000"),
        fields.get("uname", b"").ljust(32, b"\0"), b"\0" * 32, octal(0, 8), octal(0, 8),
        fields.get("prefix", b"").ljust(155, b"\0"), b"\0" * 12]
    block = bytearray(b"".join(parts))
    assert len(block) == BLOCK
    block[148:156] = fields.get("checksum", b"%06o\0 " % sum(block))
    return bytes(block)


def tar_entry(name=b"file", data=b"", kind=b"0", **fields):
    """A header, its data and the padding."""
    fields.setdefault("size", len(data))
    return tar_header(name, kind, **fields) + data + b"\0" * (-len(data) % BLOCK)


def tar(*parts):
    """A whole tar file of such parts."""
    return b"".join(parts) + b"\0" * (2 * BLOCK)


def pax_record(key, value):
    """One record, with the length that counts itself."""
    rest = b" " + key + b"=" + value + b"\n"
    length = len(rest) + 1
    while len(b"%d" % length) + len(rest) != length:
        length += 1
    return b"%d" % length + rest


def pax(kind=b"x", raw=None, **records):
    """An extended header; underscores of a keyword's name stand for dots."""
    body = raw if raw is not None else b"".join(
        pax_record(key.replace("_", ".").encode(), value) for key, value in records.items())
    return tar_entry(b"PaxHeaders/file", body, kind)


def gnu_long(name, kind=b"L"):
    """The GNU header for a name (L) or a target (K) of more than 100 bytes."""
    return tar_entry(b"././@LongLink", name + b"\0", kind, magic=b"ustar  \0")


# ---- zip ----

def zip_entry(name=b"file", data=b"x", **fields):
    """An entry for zip_file(). `local_...` and `central_...` lie in one of the two headers."""
    deflated = zlib.compressobj(9, zlib.DEFLATED, -15)
    method = fields.get("method", 0)
    packed = deflated.compress(data) + deflated.flush() if method == 8 else data
    return {"name": name, "flags": 0, "method": method, "crc": zlib.crc32(data),
            "packed": len(packed), "size": len(data), "extra": b"", "host": 3,
            "mode": 0o40755 if name.endswith(b"/") else 0o100644, "body": packed,
            "signature": None, "offset": None, "attributes": 0, **fields}


def zip_file(*entries, before=b"", between=b"", after=b"", comment=b"", **end):
    """A whole zip file; `end` replaces fields of the end record."""
    out, directory = bytearray(before), bytearray()
    for entry in entries:
        def field(where, name, entry=entry):
            return entry.get(f"{where}_{name}", entry[name])

        offset = entry["offset"] if entry["offset"] is not None else len(out)
        name, extra = field("local", "name"), field("local", "extra")
        out += struct.pack(
            "<IHHHIIIIHH", entry["signature"] or 0x04034B50, 20, field("local", "flags"),
            field("local", "method"), 0x21, field("local", "crc"), field("local", "packed"),
            field("local", "size"), len(name), len(extra)) + name + extra + entry["body"]
        name, extra = entry["name"], field("central", "extra")
        attributes = entry["mode"] << 16 | entry["attributes"]
        directory += struct.pack(
            "<IBBHHHIIIIHHHHHII", 0x02014B50, 20, entry["host"], 20, entry["flags"],
            entry["method"], 0x210000, entry["crc"], field("central", "packed"),
            field("central", "size"), len(name), len(extra), 0, 0, 0, attributes,
            field("central", "offset", {**entry, "offset": offset})) + name + extra
    start = len(out)
    out += directory + between
    count = end.get("count", min(len(entries), 0xFFFF))
    out += struct.pack(
        "<IHHHHIIH", 0x06054B50, end.get("disk", 0), 0, end.get("here", count), count,
        end.get("size", len(directory)), end.get("offset", start),
        end.get("comment_length", len(comment))) + comment + after
    return bytes(out)


def zip64_end(count, size, offset, **fields):
    """A zip64 end record with its locator, to go between the directory and the end record."""
    record = struct.pack("<IQHHIIQQQQ", 0x06064B50, fields.get("length", 44), 45, 45, 0, 0,
                         fields.get("here", count), count, size, offset)
    at = fields.get("at", offset + size)
    return record + struct.pack("<IIQI", 0x07064B50, 0, at, 1)


def zip_extra(number, data):
    """One part of an extra field."""
    return struct.pack("<HH", number, len(data)) + data


# ---- what has to be refused ----

SEGMENT = b"n" * 200 + b"/"
NAMES = [
    ("parent", b"../x", "'../x' leaves"),
    ("parents", b"../../x", "'../../x' leaves"),
    ("absolute", b"/abs", "'/abs' has an absolute"),
    ("absolute-passwd", b"/etc/passwd", "absolute"),
    ("double-slash", b"//abs", "absolute"),
    ("root", b"/", "'/'"),
    ("through-parent", b"a/../../x", "leaves"),
    ("dot-parent", b"./../x", "leaves"),
    ("parent-inside", b"a/../x", "leaves"),
    ("parent-last", b"a/..", "leaves"),
    ("parent-only", b"..", "leaves"),
    ("dots-and-slashes", b".//..//x", "leaves"),
    ("component-too-long", b"c" * 256, "more than 255 bytes"),
    ("too-deep", b"d/" * 64 + b"x", "more than 64 components of path"),
    ("path-too-long", SEGMENT * 21 + b"x", "more than 4095 bytes"),
]
BACKSLASHES = [
    ("backslash-parent", b"..\\x"),
    ("backslash-parents", b"..\\..\\x"),
    ("backslash-inside", b"a\\..\\x"),
    ("backslash-mixed", b"a/..\\x"),
    ("backslash-absolute", b"\\x"),
    ("backslash-share", b"\\\\host\\share\\x"),
    ("drive", b"C:\\x"),
]
LINKS = [
    ("absolute", b"/"), ("absolute-file", b"/etc/passwd"), ("parent", b".."),
    ("parents", b"../../x"), ("through-name", b"a/../../x"), ("behind-name", b"a/.."),
]


def tar_names():
    """Names that leave the tree, in each of the three ways that tar says a name."""
    cases = [(*case, name) for *case, name in
             ((label, pattern, name) for label, name, pattern in NAMES)]
    cases += [(label, "on another system", name) for label, name in BACKSLASHES]
    cases += [("drive-slash", "on another system", b"C:/x"),
              ("drive-root", "on another system", b"c:\\")]
    for label, pattern, name in cases:
        if len(name) <= 100:
            yield f"tar-{label}", tar(tar_entry(name, b"x")), pattern
        yield f"gnu-{label}", tar(gnu_long(name), tar_entry(name, b"x")), pattern
        yield f"pax-{label}", tar(pax(path=name), tar_entry(b"harmless", b"x")), pattern
    yield "tar-prefix-parent", tar(tar_entry(b"x", b"x", prefix=b"../up")), "leaves"
    yield "tar-prefix-absolute", tar(tar_entry(b"x", b"x", prefix=b"/up")), "absolute"
    yield "tar-no-name", tar(tar_entry(b"", b"x")), "no name"
    yield "tar-dot-file", tar(tar_entry(b".", b"x")), "no name"
    yield "tar-folder-parent", tar(tar_entry(b"../d/", kind=b"5")), "leaves"
    yield "tar-second-is-bad", tar(tar_entry(b"good", b"x"), tar_entry(b"../x", b"x")), "leaves"


def tar_links():
    """Links out of the tree and names that go through links."""
    for label, target in LINKS:
        yield (f"tar-link-{label}", tar(tar_entry(b"l", kind=b"2", target=target)),
               "'l' is a link")
        yield (f"pax-link-{label}",
               tar(pax(linkpath=target), tar_entry(b"l", kind=b"2", target=b"good")),
               "'l' is a link")
    link = tar_entry(b"l", kind=b"2", target=b"d")
    yield "tar-below-link", tar(link, tar_entry(b"l/x", b"x")), "'l/x' is below a link"
    yield ("tar-below-root-link",
           tar(tar_entry(b"l", kind=b"2", target=b"/"), tar_entry(b"l/x", b"x")), "'l' is a link")
    yield ("tar-link-chain",
           tar(tar_entry(b"a", kind=b"2", target=b"b"),
               tar_entry(b"b", kind=b"2", target=b"../..")), "'b' is a link that leaves")
    yield ("tar-link-chain-inside",
           tar(tar_entry(b"d/", kind=b"5"), tar_entry(b"d/up", kind=b"2", target=b".."),
               tar_entry(b"d/out", kind=b"2", target=b"up/../x")), "behind a name")
    yield ("tar-link-then-folder", tar(link, tar_entry(b"l/", kind=b"5")), "as two kinds")
    yield "tar-folder-then-link", tar(tar_entry(b"l/", kind=b"5"), link), "as two kinds"
    yield "tar-link-then-file", tar(link, tar_entry(b"l", b"x")), "as two kinds"
    yield "tar-link-twice", tar(link, link), "twice"
    yield "tar-link-empty", tar(tar_entry(b"l", kind=b"2")), "without a target"
    yield "tar-link-with-size", tar(tar_entry(b"l", b"x", b"2", target=b"d")), "has a size"
    yield ("tar-hard-link-outside", tar(tar_entry(b"h", kind=b"1", target=b"/etc/passwd")),
           "'h' is a hard link")
    yield ("tar-hard-link-inside",
           tar(tar_entry(b"f", b"x"), tar_entry(b"h", kind=b"1", target=b"f")), "hard link")


def tar_kinds():
    """Entries that are neither file nor folder nor link, and names that collide."""
    kinds = [(b"3", "character device"), (b"4", "block device"), (b"6", "FIFO"),
             (b"7", "contiguous"), (b"D", "incremental"), (b"M", "another volume"),
             (b"N", "long name"), (b"S", "sparse"), (b"V", "volume label"), (b"W", "whiteout"),
             (b"s", "unknown type 's'"), (b"X", "unknown type 'X'"), (b"A", "unknown type"),
             (b"\xff", "unknown type"), (b"8", "unknown type '8'")]
    for kind, pattern in kinds:
        yield (f"tar-kind-{kind.hex()}", tar(tar_entry(b"dev", kind=kind)),
               f"'dev' is .*{pattern}")
    # An overlay's whiteout is a character device with numbers 0, 0.
    yield "tar-overlay-whiteout", tar(tar_entry(b"gone", kind=b"3")), "character device"
    yield ("pax-sparse-1.0",
           tar(pax(GNU_sparse_major=b"1", GNU_sparse_minor=b"0", GNU_sparse_name=b"hole",
                   GNU_sparse_realsize=b"1125899906842624"), tar_entry(b"hole", b"0\n")),
           "'hole' is a sparse")
    yield "pax-sparse-0.1", tar(pax(GNU_sparse_map=b"0,1"), tar_entry(b"hole", b"x")), "sparse"
    yield "pax-sparse-star", tar(pax(SCHILY_realsize=b"99"), tar_entry(b"hole", b"x")), "sparse"
    yield "gnu-sparse-1-pib", tar(tar_entry(b"hole", kind=b"S", magic=b"ustar  \0")), "sparse"
    file, folder = tar_entry(b"a", b"x"), tar_entry(b"a/", kind=b"5")
    yield "tar-twice", tar(file, file), "'a' is there twice"
    yield "tar-twice-dotted", tar(file, tar_entry(b"./a", b"y")), "'a' is there twice"
    yield "tar-file-and-folder", tar(file, folder), "as two kinds"
    yield "tar-folder-and-file", tar(folder, file), "as two kinds"
    yield "tar-below-file", tar(file, tar_entry(b"a/b", b"x")), "'a/b' is below a file"
    yield "tar-folder-with-size", tar(tar_entry(b"a/", b"x", b"5")), "has a size"
    yield "tar-file-with-slash", tar(tar_entry(b"a/", b"x", b"0")), "ends with '/'"


def tar_numbers():
    """Numbers that two readers read differently."""
    cut = "cut off"
    good = tar_entry(b"a", b"x" * 700)
    yield "tar-checksum-wrong", tar(good, tar_header(b"b", checksum=b"0000001\0")), "checksum"
    yield "tar-checksum-empty", tar(good, tar_header(b"b", checksum=b"\0" * 8)), "checksum"
    yield "tar-size-negative", tar(tar_entry(b"a", size=b"-0000000001\0")), "malformed size"
    yield "tar-size-letters", tar(tar_entry(b"a", size=b"0000000zzz1\0")), "malformed size"
    yield "tar-size-decimal", tar(tar_entry(b"a", size=b"00000000009\0")), "malformed size"
    yield "tar-size-spaces", tar(tar_entry(b"a", size=b" " * 12)), "malformed size"
    yield "tar-size-base256-negative", tar(tar_entry(b"a", size=base256(-1, 12))), "malformed size"
    yield ("tar-size-base256-overflow", tar(tar_entry(b"a", size=base256(1 << 64, 12))),
           "malformed size")
    yield ("tar-size-base256-sign", tar(tar_entry(b"a", size=base256(1 << 63, 12))),
           "malformed size")
    yield ("tar-size-10-gib", tar_entry(b"bomb", size=base256(10 * GIB, 12)),
           "'bomb': more than 4294967296 bytes")
    yield ("tar-sizes-add-up", tar_entry(b"a", b"x") + tar_entry(b"b", size=octal(4 * GIB, 12)),
           "'b': more than 4294967296 bytes")
    yield "tar-mode-negative", tar(tar_entry(b"a", mode=b"-000644\0")), "malformed mode"
    yield "tar-mtime-letters", tar(tar_entry(b"a", mtime=b"yesterday  \0")), "malformed time"
    yield "tar-magic-unknown", tar(good, tar_entry(b"b", magic=b"ustarFAN")), "unknown kind"
    yield "pax-size-differs", tar(pax(size=b"512"), tar_entry(b"a", b"x")), "one size"
    yield "pax-size-hides", tar(pax(size=b"0"), tar_entry(b"a", tar_entry(b"b", b"x"))), "one size"
    yield "pax-size-negative", tar(pax(size=b"-1"), tar_entry(b"a", b"x")), "'size'"
    yield "pax-size-huge", tar(pax(size=b"9" * 30), tar_entry(b"a", b"x")), "'size'"
    yield "pax-size-spaces", tar(pax(size=b" 1"), tar_entry(b"a", b"x")), "'size'"
    yield ("pax-path-twice", tar(pax(raw=pax_record(b"path", b"a") + pax_record(b"path", b"b")),
                                 tar_entry(b"c", b"x")), "'path' twice")
    yield "pax-path-nul", tar(pax(path=b"a\0b"), tar_entry(b"c", b"x")), "NUL"
    yield "pax-path-empty", tar(pax(path=b""), tar_entry(b"c", b"x")), "empty 'path'"
    yield "pax-mtime-letters", tar(pax(mtime=b"now"), tar_entry(b"c", b"x")), "'mtime'"
    yield "pax-global-path", tar(pax(b"g", path=b"../x"), tar_entry(b"c", b"x")), "global PAX"
    yield "pax-global-size", tar(pax(b"g", size=b"0"), tar_entry(b"c", b"x")), "global PAX"
    yield "pax-global-link", tar(pax(b"g", linkpath=b"x"), tar_entry(b"c", b"x")), "global PAX"
    for label, raw in (("length-0", b"0 a=b\n"), ("length-short", b"5 path=x\n"),
                       ("length-long", b"99 path=x\n"), ("no-length", b"path=x\n"),
                       ("no-newline", b"9 path=xy"), ("no-equal", b"8 pathx\n"),
                       ("no-key", b"5 =x\n"), ("signed", b"+9 path=x\n"), ("zeros", b"\0" * 40)):
        yield f"pax-{label}", tar(pax(raw=raw), tar_entry(b"c", b"x")), "PAX header is malformed"
    yield "pax-empty", tar(pax(raw=b""), tar_entry(b"c", b"x")), "malformed size"
    yield ("pax-huge", tar(tar_header(b"x", b"x", size=GIB)), "more than 1048576 bytes")
    yield "pax-twice", tar(pax(path=b"a"), pax(path=b"b"), tar_entry(b"c")), "two extended"
    yield "pax-and-gnu", tar(pax(path=b"a"), gnu_long(b"b"), tar_entry(b"c")), "two extended"
    yield "gnu-and-pax", tar(gnu_long(b"b"), pax(path=b"a"), tar_entry(b"c")), "two extended"
    yield "gnu-twice", tar(gnu_long(b"a"), gnu_long(b"b"), tar_entry(b"c")), "two extended"
    yield "gnu-nul", tar(gnu_long(b"a\0../x"), tar_entry(b"c")), "NUL"
    yield ("gnu-link-of-a-file", tar(gnu_long(b"../x", b"K"), tar_entry(b"c", b"x")),
           "has a target")
    yield "pax-without-entry", tar(tar_entry(b"a"), pax(path=b"a")), "without an entry"
    yield "tar-end-missing", good, cut
    yield "tar-end-half", good + b"\0" * BLOCK, cut
    yield "tar-data-missing", tar_header(b"a", size=5000) + b"x" * BLOCK, cut
    yield "tar-header-half", good + tar_header(b"b")[:300], cut
    yield "tar-end-odd", tar(good) + b"\0" * 100, cut
    yield "tar-behind-end", tar(good) + tar_entry(b"hidden", b"x"), "behind the end"
    yield ("tar-between-zeros", good + b"\0" * BLOCK + tar(tar_entry(b"hidden", b"x")),
           "behind the end")
    yield "tar-garbage-behind", tar(good) + b"garbage!" * 64, "behind the end"


def tar_packed():
    """Compressed tar files whose compression is the trouble."""
    whole = tar(tar_entry(b"a", bytes(range(256)) * 40))
    packed = gzip.compress(whole, mtime=0)
    yield "gz-cut", packed[:-20], "cut off"
    yield "gz-no-trailer", packed[:-8], "cut off"
    yield "gz-garbage-behind", packed + b"garbage", "behind the end"
    yield "gz-damaged", packed[:12] + b"\xff" * 30 + packed[42:], "damaged|checksum|cut off"
    stored = gzip.compress(whole, 0, mtime=0)
    yield "gz-crc", stored.replace(bytes(range(256)), bytes(range(1, 256)) + b"x", 1), "damaged"
    yield "gz-empty", gzip.compress(b"", mtime=0), "cut off"
    yield "gz-no-tar", gzip.compress(b"just text, " * 100, mtime=0), "not a tar"
    yield "gz-in-gz", gzip.compress(packed, mtime=0), "not a tar|cut off"
    yield ("gz-second-tar", packed + gzip.compress(whole, mtime=0), "behind the end")
    yield "gz-bad-name", gzip.compress(tar(tar_entry(b"../x", b"x"))), "leaves"
    yield ("gz-bomb",
           gzip.compress(tar_entry(b"bomb", size=base256(10 * GIB, 12)) + bytes(1 << 20)),
           "4294967296 bytes")
    yield ("gz-zeros-behind", gzip.compress(tar(tar_entry(b"a")) + bytes(4 << 20)),
           "zeros at the end")
    folder = tar_entry(b"d/", kind=b"5")
    yield ("gz-many-entries", gzip.compress(tar(folder * 100001), 1), "more than 100000 entries")
    chain = b"".join(tar_entry(b"%d/" % i + b"d/" * 45 + b"f") for i in range(2200))
    yield "gz-many-folders", gzip.compress(tar(chain), 1), "more than 100000 entries"
    yield "zst-damaged", b"\x28\xb5\x2f\xfd" + b"\xff" * 40, "damaged|cut off"
    yield "zst-cut", b"\x28\xb5\x2f\xfd\x04\x00", "damaged|cut off"


def zip_names():
    """Names and kinds in the central directory."""
    for label, name, pattern in NAMES:
        yield f"zip-{label}", zip_file(zip_entry(name, mode=0)), pattern
    for label, name in BACKSLASHES:
        yield f"zip-{label}", zip_file(zip_entry(name)), "has a backslash"
    yield "zip-backslash", zip_file(zip_entry(b"a\\b", host=0, mode=0)), "has a backslash"
    yield "zip-drive-slash", zip_file(zip_entry(b"C:/x")), "on another system"
    yield "zip-no-name", zip_file(zip_entry(b"")), "no name"
    yield "zip-nul", zip_file(zip_entry(b"a\0b")), "NUL"
    yield "zip-twice", zip_file(zip_entry(b"a"), zip_entry(b"a", b"y")), "'a' is there twice"
    yield ("zip-file-and-folder", zip_file(zip_entry(b"a"), zip_entry(b"a/", b"")),
           "as two kinds")
    yield "zip-below-file", zip_file(zip_entry(b"a"), zip_entry(b"a/b")), "below a file"
    for label, target in LINKS:
        yield (f"zip-link-{label}", zip_file(zip_entry(b"l", target, mode=0o120777)),
               "'l' is a link")
    link = zip_entry(b"l", b"d", mode=0o120777)
    yield "zip-below-link", zip_file(link, zip_entry(b"l/x")), "below a link"
    yield "zip-link-empty", zip_file(zip_entry(b"l", b"", mode=0o120777)), "without a target"
    yield "zip-link-nul", zip_file(zip_entry(b"l", b"a\0b", mode=0o120777)), "malformed"
    yield "zip-link-long", zip_file(zip_entry(b"l", b"a" * 5000, mode=0o120777)), "malformed"
    for label, mode in (("fifo", 0o010644), ("character", 0o020644), ("block", 0o060644),
                        ("socket", 0o140644), ("whiteout", 0o160000)):
        yield f"zip-{label}", zip_file(zip_entry(b"dev", mode=mode)), "device, FIFO or socket"
    yield ("zip-folder-by-mode", zip_file(zip_entry(b"a", b"", mode=0o40755)), "not by both")
    yield "zip-folder-by-name", zip_file(zip_entry(b"a/", b"", mode=0o100644)), "not by both"
    yield ("zip-folder-by-attribute",
           zip_file(zip_entry(b"a", b"", host=0, mode=0, attributes=0x10)), "not by both")
    yield "zip-folder-with-data", zip_file(zip_entry(b"a/", b"x")), "has a size"
    second = zip_extra(0x7075, b"\1" + struct.pack("<I", zlib.crc32(b"a")) + b"../x")
    yield "zip-unicode-name", zip_file(zip_entry(b"a", extra=second)), "'../x' leaves"
    yield ("zip-unicode-name-of-another", zip_file(zip_entry(b"b", extra=second)),
           "does not belong")
    yield "zip-unicode-name-twice", zip_file(zip_entry(b"a", extra=second * 2)), "does not belong"


def zip_headers():
    """Local headers that say something else than the central directory."""
    local = "in its local header"
    for label, fields in (
            ("name", {"local_name": b"../x"}), ("name-case", {"local_name": b"FILE"}),
            ("name-shorter", {"local_name": b"fil"}), ("size", {"local_size": 2}),
            ("packed", {"local_packed": 0}), ("crc", {"local_crc": 1}),
            ("method", {"local_method": 8}), ("encrypted", {"local_flags": 1}),
            ("utf8", {"local_flags": 0x800}), ("behind", {"local_flags": 8}),
            ("behind-wrong", {"flags": 8, "local_size": 5}),
            ("zip64", {"local_size": 0xFFFFFFFF, "local_packed": 0xFFFFFFFF,
                       "local_extra": zip_extra(1, struct.pack("<QQ", 1, 9))})):
        yield f"zip-local-{label}", zip_file(zip_entry(**fields)), local
    yield "zip-local-missing", zip_file(zip_entry(b"a"), zip_entry(b"b", signature=7)), "no local"
    yield "zip-encrypted", zip_file(zip_entry(flags=1)), "is encrypted"
    yield "zip-strong-encryption", zip_file(zip_entry(flags=0x41)), "is encrypted"
    yield "zip-masked", zip_file(zip_entry(flags=0x2000)), "unknown flags 0x2000"
    yield "zip-patched", zip_file(zip_entry(flags=0x20)), "unknown flags"
    for method, label in ((1, "shrink"), (6, "implode"), (9, "deflate64"), (12, "bzip2"),
                          (14, "lzma"), (93, "zstd"), (95, "xz"), (99, "aes")):
        entry = {**zip_entry(), "method": method}
        yield f"zip-method-{label}", zip_file(entry), f"unknown method {method}"
    yield "zip-stored-size", zip_file(zip_entry(size=9)), "another size than its own"
    yield "zip-crc", zip_file(zip_entry(crc=5)), "wrong checksum"
    yield "zip-deflate-crc", zip_file(zip_entry(data=b"x" * 99, method=8, crc=5)), "wrong checksum"
    packed = zip_entry(data=b"x" * 999, method=8)
    yield "zip-longer", zip_file({**packed, "size": 99, "crc": zlib.crc32(b"x" * 99)}), "longer"
    yield "zip-shorter", zip_file({**packed, "size": 9999}), "'file': "
    yield ("zip-deflate-garbage", zip_file({**packed, "body": packed["body"] + b"garbage",
                                            "packed": packed["packed"] + 7}), "longer|damaged")
    damaged = {**packed, "body": b"\xff" * packed["packed"]}
    yield "zip-deflate-damaged", zip_file(damaged), "'file': "


def zip_ends():
    """Directories and end records that lie about where and what they are."""
    good, wrong = zip_entry(b"a"), "not where it is said|zip64|directory"
    whole = zip_file(good)
    yield "zip-cut", whole[:-5], "end is cut off"
    yield "zip-cut-half", whole[:len(whole) // 2], "end is cut off"
    yield "zip-behind", zip_file(good, after=b"garbage"), "data is behind"
    yield "zip-zip-behind", whole + whole, "not where it is said"
    yield "zip-before", zip_file(good, before=b"#!/bin/sh\n"), "unsupported format"
    hidden = zip_file(zip_entry(b"hidden"))
    yield "zip-before-zip", zip_file(good, before=hidden[:39]), "data before"
    yield "zip-comment-short", zip_file(good, comment=b"abc", comment_length=1), "comment"
    yield "zip-comment-long", zip_file(good, comment=b"abc", comment_length=9), "comment"
    yield "zip-comment-is-end", zip_file(good, comment=whole[-22:]), "not where it is said"
    yield "zip-count-more", zip_file(good, count=2), "1 entries and says 2"
    yield "zip-count-less", zip_file(good, good | {"name": b"b"}, count=1), "2 entries and says 1"
    yield "zip-disks", zip_file(good, disk=1), "several disks"
    yield "zip-here", zip_file(good, here=0), "several disks"
    yield "zip-offset-more", zip_file(good, offset=len(whole)), wrong
    yield "zip-offset-less", zip_file(good, offset=3), wrong
    yield "zip-size-more", zip_file(good, size=999), wrong
    yield "zip-between", zip_file(good, between=b"\0" * 10), wrong
    yield ("zip-not-central", zip_file(good, offset=0, size=len(whole) - 22),
           "directory is malformed")
    size, offset = 47, 32
    for label, end in (
            ("count", zip64_end(2, size, offset)), ("size", zip64_end(1, 9, offset)),
            ("offset", zip64_end(1, size, 0)), ("here", zip64_end(1, size, offset, here=7)),
            ("length", zip64_end(1, size, offset, length=99)),
            ("elsewhere", zip64_end(1, size, offset, at=0)),
            ("far", zip64_end(1, size, offset, at=1 << 60))):
        yield f"zip64-{label}", zip_file(good, between=end), "zip64 end"
    yield ("zip64-marks", zip_file(good, between=zip64_end(1 << 40, size, offset), count=0xFFFF),
           "entries and says")
    huge = zip64_end(1, 1 << 60, offset, at=offset + size)
    yield ("zip64-size-huge", zip_file(good, between=huge, size=0xFFFFFFFF),
           "zip directory of more than")
    number = struct.pack("<Q", 1)
    for label, fields in (
            ("unasked", {"central_extra": zip_extra(1, number)}),
            ("short", {"central_extra": zip_extra(1, b"\1\0"), "central_size": 0xFFFFFFFF}),
            ("twice", {"central_extra": zip_extra(1, number) * 2, "central_size": 0xFFFFFFFF}),
            ("long", {"central_extra": zip_extra(1, number * 2), "central_size": 0xFFFFFFFF})):
        yield f"zip64-part-{label}", zip_file(zip_entry(**fields)), "zip64 part"
    bomb = {"central_extra": zip_extra(1, struct.pack("<Q", 10 * GIB)), "method": 8,
            "central_size": 0xFFFFFFFF, "flags": 8, "local_size": 0}
    yield "zip64-bomb", zip_file(zip_entry(b"bomb", bytes(10000), **bomb)), "4294967296 bytes"
    yield ("zip-sizes-add-up", zip_file(*(zip_entry(b"%d" % i, bytes(1000), method=8, flags=8,
                                                    local_size=0, central_size=0xF0000000)
                                          for i in range(2))), "'0': |4294967296 bytes")
    data = zip_entry(b"a", b"x" * 2000)
    yield "zip-same-bytes", zip_file(data, zip_entry(b"b", b"x" * 2000, offset=0)), "shares"
    inner = zip_file(zip_entry(b"b", b"y" * 9))[:40]
    yield ("zip-inside-another", zip_file(zip_entry(b"a", inner), {
        **zip_entry(b"b", b"y" * 9, offset=31), "body": b""}), "shares")
    yield "zip-offset-behind", zip_file(zip_entry(offset=1 << 30)), "behind the last"
    many = (zip_entry(b"%d" % i, b"") for i in range(100001))
    offset = 100001 * 30 + sum(len(b"%d" % i) for i in range(100001))
    size = offset + 100001 * 16
    yield ("zip-many-entries",
           zip_file(*many, between=zip64_end(100001, size, offset)), "more than 100000 entries")


def other_formats():
    """Formats that nobody reads here, by the bytes that they begin with."""
    magics = {
        "rar": b"Rar!\x1a\x07\x01\0", "7z": b"7z\xbc\xaf\x27\x1c", "cab": b"MSCF\0\0\0\0",
        "xar": b"xar!\0\x1c\0\1", "cpio": b"070701" + b"0" * 104,
        "cpio-old": b"\xc7\x71" + bytes(30),
        "ar": b"!<arch>\nfile/", "lha": b"\x16\0-lh5-", "mtree": b"#mtree\n./x type=file\n",
        "bzip2": b"BZh91AY&SY", "xz": b"\xfd7zXZ\0", "lzip": b"LZIP\1", "lz4": b"\x04\x22\x4d\x18",
        "compress": b"\x1f\x9d\x90", "warc": b"WARC/1.0\r\n", "iso": bytes(32768) + b"\1CD001\1\0",
        "text": b"hello", "empty": b"", "html": b"<!doctype html>",
    }
    for label, magic in magics.items():
        data = magic if label == "empty" else magic + b"\1" * (2048 - len(magic) % 512)
        yield (f"other-{label}", data,
               "behind the end|cut off" if label == "iso" else "unsupported format")


# The rows of the fault matrix; bombs are among what is packed.
ROWS = {
    "fil_05": (tar_names,), "fil_06": (tar_links,), "fil_08_12": (tar_kinds,),
    "fil_13": (tar_numbers, tar_packed), "fil_10": (zip_names, zip_headers, zip_ends),
    "fil_16": (other_formats,),
}


@functools.cache
def hostile(row=None):
    """Those of a row, or all of them: a list of (name, bytes, pattern of the reason)."""
    makers = [maker for key in ROWS if row in (None, key) for maker in ROWS[key]]
    cases = [case for maker in makers for case in maker()]
    names = [name for name, _, _ in cases]
    assert len(set(names)) == len(names), "each case has its own name"
    return cases
