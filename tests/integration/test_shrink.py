# SPDX-License-Identifier: MIT
"""The program that reduces pictures, inside real sandboxes and over real and hostile files."""

import math
import os
import struct
import time
import zlib

import pytest

SHRINK = "/opt/sandbox-agent/kernel/shrink"
LANGUAGES = ("python", "node", "r")
SIDE, BYTES = 1568, 500_000


def chunk(name, data):
    """One chunk of a PNG."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(
        ">I", zlib.crc32(name + data))


def png(width, height, rows, color=2, level=1):
    """A PNG of 8 bits a sample; `rows` begin with their filter bytes."""
    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
            + chunk(b"IDAT", zlib.compress(rows, level)) + chunk(b"IEND", b""))


def noise(side):
    """A picture that no lossless format makes smaller."""
    return png(side, side, b"".join(b"\0" + os.urandom(3 * side) for _ in range(side)))


def lines(width, height):
    """A plot: lines of one pixel, black on white."""
    rows = [bytearray(b"\xff" * width) for _ in range(height)]
    for x in range(width):
        rows[int(height / 2 + height / 2.2 * math.sin(x / 40))][x] = 0
        if x % 97 == 50:
            for row in rows:
                row[x] = 0
    return png(width, height, b"".join(b"\0" + row for row in rows), color=0)


def unfiltered(data):
    """(width, height, rows) of a grey PNG as this program writes them."""
    width, height = struct.unpack(">II", data[16:24])
    assert data[24:26] == b"\x08\0"
    raw = zlib.decompress(b"".join(idat for name, idat in chunks(data) if name == b"IDAT"))
    rows, above = [], bytes(width)
    for y in range(height):
        kind, *row = raw[y * (width + 1):(y + 1) * (width + 1)]
        for x in range(width):
            left = row[x - 1] if x else 0
            corner = above[x - 1] if x else 0
            row[x] = row[x] + (0, left, above[x], (left + above[x]) // 2,
                               paeth(left, above[x], corner))[kind] & 255
        rows.append(row)
        above = row
    return width, height, rows


def paeth(left, above, corner):
    """The predictor of filter 4."""
    guess = left + above - corner
    return min((left, above, corner), key=lambda value: abs(guess - value))


def chunks(data):
    """Yield the chunks of a PNG."""
    at = 8
    while at < len(data):
        length, = struct.unpack(">I", data[at:at + 4])
        yield data[at + 4:at + 8], data[at + 8:at + 8 + length]
        at += length + 12


def size_of(data):
    """(kind, width, height) of a PNG or a baseline JPEG."""
    if data[:4] == b"\x89PNG":
        return "png", *struct.unpack(">II", data[16:24])
    assert data[:2] == b"\xff\xd8" and data[-2:] == b"\xff\xd9"
    at = data.index(b"\xff\xc0")
    height, width = struct.unpack(">HH", data[at + 5:at + 9])
    return "jpeg", width, height


MEASURE = """\
import os, resource, subprocess, sys, time
start = time.monotonic()
done = subprocess.run(sys.argv[1:], stdin=open("in"), stdout=open("out", "w"))
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(done.returncode, time.monotonic() - start, usage.ru_maxrss)
"""


@pytest.fixture
def shrink(make):
    """shrink(language, picture) -> (exit code, output, stderr, seconds, KiB of RSS).

    Only Python can tell the last one; it is 0 elsewhere.
    """
    sessions = {}

    def call(language, picture, side=SIDE, size=BYTES):
        if language not in sessions:
            sessions[language] = make(language)
            sessions[language].write("measure.py", MEASURE)
        session = sessions[language]
        session.write("in", picture)
        command = f"{SHRINK} {side} {size}"
        start = time.monotonic()
        if language == "python":
            done = session.terminal(f"python3 measure.py {command}")
        else:
            done = session.terminal(f"{command} < in > out; echo $? 0 0")
        code, seconds, peak = done["stdout"].split()
        seconds = float(seconds) or time.monotonic() - start
        return int(code), session.read("out"), done["stderr"], seconds, int(peak)

    return call


@pytest.mark.parametrize("language", LANGUAGES)
def test_noise_becomes_a_jpeg_within_the_limit(shrink, language):
    code, data, stderr, seconds, peak = shrink(language, noise(3000))
    print(f"{language}: {len(data)} bytes in {seconds:.2f} s, {peak} KiB")
    assert code == 0 and stderr == ""
    kind, width, height = size_of(data)
    assert kind == "jpeg" and len(data) <= BYTES
    assert max(width, height) <= SIDE and width > 1000
    assert seconds < 10 and peak < 150_000


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_plot_of_thin_lines_stays_readable(shrink, language):
    code, data, stderr, seconds, _ = shrink(language, lines(4000, 100))
    assert code == 0 and stderr == "" and seconds < 5
    width, height, rows = unfiltered(data)
    assert (width, height) == (1568, 39) and len(data) < 20_000
    # Each vertical line is still a dark column on white.
    columns = [sum(row[x] for row in rows) / height for x in range(width)]
    for x in range(50, 4000, 97):
        at = int(x * width / 4000)
        assert min(columns[max(0, at - 1):at + 2]) < 215, x
    assert sorted(columns)[width // 2] > 235


def test_fil_24_bombs_and_broken_pictures_have_a_reason(shrink):
    small = noise(200)
    header = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    bomb = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
            + chunk(b"IDAT", zlib.compress(bytes(9_000_000), 9)) + chunk(b"IEND", b""))
    assert len(bomb) < 10 * 1024
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    hostile = {
        "bomb": (bomb, "100000 x 100000 pixels are more than 40 million"),
        "truncated": (small[:len(small) // 2], "the data ends too early"),
        "bad sum": (small[:2000] + b"?" + small[2001:], "PNG: "),
        "garbage": (os.urandom(1000), "no image of a known kind"),
        "nothing": (b"", "no image of a known kind"),
        "svg": (svg, "no image of a known kind"),
        "gif": (b"GIF89a\1\0\1\0\0\0\0,\0\0\0\0\1\0\1\0\0\2\1x\0;", "image/gif cannot be reduced"),
        "too small a limit": (small, None),
    }
    for name, (picture, reason) in hostile.items():
        size = BYTES if reason else 20
        code, data, stderr, seconds, peak = shrink("python", picture, size=size)
        print(f"{name}: {stderr.strip()} ({seconds:.2f} s, {peak} KiB)")
        assert code == 1 and data == b"", name
        assert stderr.startswith("shrink: ") and stderr.count("\n") == 1, name
        assert (reason or "does not fit into 20 bytes") in stderr
        assert seconds < 5 and peak < 60_000, name


def test_forty_megapixels_are_reduced_in_little_memory(shrink):
    side = 6300
    code, data, _, seconds, peak = shrink("python", png(side, side, bytes((3 * side + 1) * side)))
    print(f"{seconds:.2f} s, {peak} KiB")
    assert code == 0 and size_of(data) == ("png", SIDE, SIDE)
    assert seconds < 15 and peak < 60_000


def test_a_jpeg_is_reduced_as_one(shrink):
    _, jpeg, _, _, _ = shrink("python", noise(1500))
    assert size_of(jpeg)[0] == "jpeg"
    code, data, _, seconds, _ = shrink("python", jpeg, side=400, size=60_000)
    kind, width, height = size_of(data)
    assert code == 0 and kind == "jpeg" and len(data) <= 60_000
    assert 100 < max(width, height) <= 400 and seconds < 5
    # Metadata of megabytes in front of it is stepped over.
    exif = (b"\xff\xe1\xff\xff" + bytes(65533)) * 100
    code, again, _, seconds, peak = shrink("python", jpeg[:2] + exif + jpeg[2:], 400, 60_000)
    assert code == 0 and again == data and seconds < 5 and peak < 60_000


def test_it_serves_while_a_cell_runs_and_harms_nothing(make):
    """It runs as the sandbox's user, beside the cell, and is the first to go without memory."""
    session = make("python")
    session.write("in", noise(300))
    with session.run("import time; x = 41; time.sleep(3)") as run:
        result = session.terminal(f"{SHRINK} 100 20000 < in | head -c 2 | od -An -tx1")
        assert result["stdout"].split() in (["ff", "d8"], ["89", "50"])
        assert run.result()["status"] == "ok"
    assert session.execute("x + 1")["result"]["text/plain"] == "42"
