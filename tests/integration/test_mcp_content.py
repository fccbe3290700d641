# SPDX-License-Identifier: MIT
"""What a model gets of a cell's displays: pictures and sounds in a budget, links to the whole."""

import base64
import json
import os
import re

import mcpstdio
import pytest

MESSAGE_MAX = 1_048_576
PICTURES = """
import base64, os, struct, zlib
from IPython.display import Audio, HTML, Image, SVG, display

def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

def png(width, height, packed):
    return (b"\\x89PNG\\r\\n\\x1a\\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", packed) + chunk(b"IEND", b""))

def noise(side):
    return png(side, side, zlib.compress(
        b"".join(b"\\0" + os.urandom(3 * side) for _ in range(side)), 1))
"""


class Client:
    """One server with one Python session."""

    def __init__(self, server):
        self.server = server
        self.session = server.create("python")
        self.run(PICTURES)

    def run(self, code):
        """Run a cell; return the result of tools/call and check what holds for every one."""
        result = self.server.call("execute_code", {"session_id": self.session, "code": code})
        line = self.server.lines[-1]
        assert len(line.decode()) < MESSAGE_MAX
        structured = json.dumps(result["structuredContent"])
        texts = structured + mcpstdio.text_of(result)
        assert not re.search(r"[A-Za-z0-9+/=]{5000}", texts), "base64 in text"
        for block in result["content"]:
            assert block["type"] not in ("image", "audio") or block["data"], "an empty block"
        return result

    def rss(self):
        """Resident KiB of the server."""
        with open(f"/proc/{self.server.process.pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

    def read(self, uri):
        """Return the bytes of a resource."""
        content, = self.server.request("resources/read", {"uri": uri})["contents"]
        return base64.b64decode(content["blob"]) if "blob" in content else content["text"].encode()


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client that all tests here share."""
    with mcpstdio.Server(tmp_path_factory.mktemp("mcp")) as server:
        server.initialize()
        yield Client(server)


def blocks(result, kind):
    """The content blocks of a type."""
    return [block for block in result["content"] if block["type"] == kind]


def header(data):
    """(width, height) of a PNG or of a baseline JPEG."""
    if data[:4] == b"\x89PNG":
        return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    at = data.index(b"\xff\xc0")
    return int.from_bytes(data[at + 7:at + 9], "big"), int.from_bytes(data[at + 5:at + 7], "big")


def test_case_22_a_picture_fits_the_budget_of_a_model(client):
    result = client.run("data = noise(3000); display(Image(data=data))")
    image, = blocks(result, "image")
    small = base64.b64decode(image["data"])
    assert image["mimeType"] == "image/jpeg" and len(image["data"]) <= 700_000
    assert 1000 < max(header(small)) <= 1568
    link, = blocks(result, "resource_link")
    assert link["mimeType"] == "image/png" and "3000 x 3000" in link["description"]
    item, = result["structuredContent"]["display_outputs"]
    assert item["uri"] == link["uri"] and (item["width"], item["height"]) == (3000, 3000)
    whole = client.run("import hashlib; hashlib.sha256(data).hexdigest(), len(data)")
    assert str(link["size"]) in whole["structuredContent"]["result"]["text/plain"]


def test_case_22_data_uris_in_output_are_left_out(client):
    result = client.run("print('data:image/png;base64,' + 'A' * 40000)")
    assert "base64,[40000 characters of base64 left out]" in mcpstdio.text_of(result)


def test_small_pictures_are_whole_and_need_no_link(client):
    result = client.run("small = noise(50); display(Image(data=small)); Image(data=small)")
    assert len(blocks(result, "image")) == 2 and not blocks(result, "resource_link")
    item, = result["structuredContent"]["display_outputs"]
    again = client.run("base64.b64encode(small).decode()[-300:]")
    shown = blocks(result, "image")[0]["data"]
    assert shown[-300:] in again["structuredContent"]["result"]["text/plain"]
    assert client.read(item["uri"]) == base64.b64decode(shown)


def test_twelve_plots_of_one_cell_share_the_budget(client):
    result = client.run("for i in range(12): display(Image(data=noise(400)))")
    images = blocks(result, "image")
    assert len(images) == 12 and sum(len(image["data"]) for image in images) <= 700_000


GIF = r"b'GIF89a\1\0\1\0\0\0\0' + b',\0\0\0\0\1\0\1\0\0\2\1x\0' * 100_000 + b';'"
EXIF = r"b'\xff\xd8' + (b'\xff\xe1\xff\xff' + bytes(65533)) * 30 + b'\xff\xd9'"
DRAWING = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
HOSTILE = {
    "png": ("Image(data=png(100000, 100000, zlib.compress(bytes(9_000_000), 9)))",
            "100000 x 100000 pixels, too many"),
    "gif": (f"Image(data={GIF}, format='gif')", "100000 frames, too many"),
    "svg": (f"SVG(data='{DRAWING}')", "image/svg+xml, 71 bytes"),
    "exif": (f"Image(data={EXIF}, format='jpeg')", "cannot be read"),
    "truncated": ("Image(data=noise(300)[:-100])", "cut off"),
    "garbage": ("Image(data=os.urandom(5000), format='png')", "cannot be read"),
    "lying": ("Image(data=png(2000, 2000, b'no zlib'), format='png')", "could not be reduced"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_fil_24_hostile_pictures_are_links(client, name):
    code, note = HOSTILE[name]
    client.run(f"hostile = {code}")
    # The first time, the heap grows to what is held for a moment.
    client.run("display(hostile)")
    before = client.rss()
    for _ in range(5):
        result = client.run("display(hostile)")
        link, = blocks(result, "resource_link")
        assert note in link["description"] and not blocks(result, "image")
        assert len(client.server.lines[-1]) < 3000
    grown = client.rss() - before
    print(f"{name}: {link['size']} bytes, RSS +{grown} KiB after five more")
    # Five more are kept, and the heap has its holes; decoded it would be gigabytes.
    assert grown < 5 * link["size"] // 1024 + 16 * 1024


def test_fil_24_many_bombs_leave_the_server_as_it_was(client):
    client.run("bomb = Image(data=png(60000, 60000, zlib.compress(bytes(9_000_000), 9)))")
    client.run("display(bomb)")
    before = client.rss()
    for _ in range(20):
        client.run("for i in range(20): display(bomb)")
    grown = client.rss() - before
    print(f"400 bombs: RSS +{grown} KiB")
    assert grown < 16 * 1024


def test_sound_is_an_audio_block(client):
    result = client.run("display(Audio(data=b'RIFF' + bytes(8000)))")
    sound, = blocks(result, "audio")
    assert sound["mimeType"] == "audio/wav"
    assert base64.b64decode(sound["data"])[:4] == b"RIFF"


def test_pages_are_links_with_their_title(client):
    result = client.run("display(HTML('<title>Sales</title>' + '<td>x' * 5000))")
    link, = blocks(result, "resource_link")
    assert link["mimeType"] == "text/html" and "'Sales'" in link["description"]
    assert client.read(link["uri"]).startswith(b"<title>Sales</title>")


def test_a_data_frame_is_readable_as_text(client):
    result = client.run("import pandas; frame = pandas.DataFrame({'a': [4711, 815]}); "
                        "display(frame)")
    item, = result["structuredContent"]["display_outputs"]
    assert item["type"] == "text/html" and "4711" in item["text"] and "<" not in item["text"]
    large = client.run("display(pandas.DataFrame({'b': range(2000), 'c': ['x' * 500] * 2000}))")
    assert "1999" in mcpstdio.text_of(large)


def test_case_23_a_figure_is_described_in_a_line(client):
    result = client.run(
        "display({'application/vnd.plotly.v1+json': {'data': [{'type': 'bar', 'x': ['a']}],"
        " 'layout': {}}, 'text/plain': 'figure'}, raw=True)")
    link, = blocks(result, "resource_link")
    assert "a Plotly figure of 1 trace (bar)" in link["description"]
    assert len(client.server.lines[-1]) < 3000
