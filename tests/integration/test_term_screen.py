# SPDX-License-Identifier: MIT
"""The parts of the terminal client on a pseudo-terminal: what is on the screen, and what is typed.

Every byte goes through an emulator that knows only what may be sent (ttyscreen), so each test also
shows that nothing else was.
"""

import os
import re
import struct
import subprocess
import time
import zlib
from pathlib import Path

import pytest
import sa
from apipeer import wait_for
from ttyscreen import DA1, Program

PROBE = str(sa.BUILD / "tests/lib/term-probe")
LIBEXEC = str(sa.BUILD / "libexec")

TEXT = """# Title

Some **bold** text, `code` and a [link](https://example.com/a) that is long enough to be broken.

- one
- two
  - three

```python
def f(x):
    return "text"
```

| Name | Value |
|------|------:|
| a    | 1     |

\x1b[2J\x1b]0;evil\x07 Last &#27;[2J line 日本語
"""


def chunk(kind, data):
    """Return a chunk of a PNG."""
    return (struct.pack(">I", len(data)) + kind + data
            + struct.pack(">I", zlib.crc32(kind + data)))


def png(width, height, color):
    """Return a PNG of one colour, its first pixel black."""
    rows = b"".join(b"\0" + bytes(color) * width for _ in range(height))
    rows = b"\0\0\0\0" + rows[4:]
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def piped(*argv, **environment):
    """Run the probe without a terminal; return its output."""
    return subprocess.run([PROBE, *argv], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=os.environ | {"SANDBOX_AGENT_LIBEXEC": LIBEXEC} | environment,
                          check=True).stdout


def caps(answer=DA1, **environment):
    """Return what the probe believes of its terminal, and how long it took to find out."""
    with Program([PROBE, "caps"], answer=answer, **environment) as p:
        start = time.monotonic()
        assert p.finish() == 0
        took = time.monotonic() - start
        return dict(re.findall(r"(\w+)=(\S+)", p.screen.text())), took


# ---- what a terminal can do ----


@pytest.mark.parametrize(("answer", "environment", "color", "picture"), [
    (DA1, {}, "1", "0"),
    (b"\x1b[?62;4c", {}, "1", "3"),
    (b"\x1b_Gi=31;OK\x1b\\" + DA1, {"TERM": "xterm-256color"}, "2", "1"),
    (b"\x1bP1+r524742=38\x1b\\" + DA1, {}, "3", "0"),
    (DA1, {"TERM": "xterm-kitty"}, "3", "1"),
    (DA1, {"NO_COLOR": "1", "COLORTERM": "truecolor"}, "0", "0"),
])
def test_a_terminal_says_what_it_can(answer, environment, color, picture):
    """Environment and answers together."""
    found, _ = caps(answer, **environment)
    assert (found["tty"], found["color"], found["picture"]) == ("1", color, picture)


def test_the_size_of_a_cell_is_asked_for():
    """Pictures need it."""
    assert caps(b"\x1b[6;18;9t" + DA1)[0]["cell"] == "9x18"


def test_a_silent_terminal_costs_little():
    """A tenth of a second is waited for answers, not more."""
    found, took = caps(answer=None)
    assert found["tty"] == "1"
    assert took < 2  # of which starting the program is the most


def test_a_dumb_terminal_is_none():
    """No cursor that moves: plain text."""
    assert caps(answer=None, TERM="dumb")[0]["tty"] == "0"


# ---- Markdown ----


@pytest.fixture(name="text_file")
def text_file_fixture(tmp_path):
    """A file with the text."""
    path = tmp_path / "text.md"
    path.write_text(TEXT)
    return str(path)


def test_a_growing_text_is_on_the_screen_once(text_file):
    """However small the pieces are, what stays is what the whole text gives."""
    screens = []
    for step in ("1", "7", "100000"):
        with Program([PROBE, "markdown", text_file, step], columns=40) as p:
            assert p.finish() == 0
            assert p.screen.cursor
            screens.append(p.screen.text())
    assert screens[0] == screens[1] == screens[2]
    assert screens[0].count("Title") == screens[0].count("def f(x):") == 1
    assert "a    │     1" in screens[0]
    assert max(map(len, screens[0].split("\n"))) <= 40


def test_a_block_higher_than_the_screen_is_there_once(tmp_path):
    """Its first rows scroll away only when it is finished."""
    path = tmp_path / "long.md"
    path.write_text("".join(f"- item {i}\n" for i in range(60)) + "\nend\n")
    with Program([PROBE, "markdown", str(path), "5"], rows=10) as p:
        assert p.finish() == 0
        lines = p.screen.text().split("\n")
    assert lines == [f"• item {i}" for i in range(60)] + ["", "end"]


def test_a_pipe_gets_no_escapes(text_file):
    """Also where colours are asked for."""
    output = piped("markdown", text_file, "3", TERM="xterm-kitty", COLORTERM="truecolor")
    assert "\x1b" not in output
    assert "\x07" not in output
    assert "  def f(x):" in output
    assert "link (https://example.com/a)" in output


# ---- panels ----


def test_panels_grow_and_wait_for_each_other():
    """Lines are there once and in order; the second panel is below the first."""
    with Program([PROBE, "panels"], columns=40, rows=12) as p:
        assert p.finish() == 0
        lines = p.screen.text().split("\n")
    first = lines[:lines.index("╰─ ok ─────────────────────────────────╯") + 1]
    assert first[0] == "╭─ first ──────────────────────────────╮"
    assert first[1] == "│ print('x')                           │"
    assert first[2] == "├─ output ─────────────────────────────┤"
    assert first[3:-2] == [f"│ line {i:<31} │" for i in range(40)]
    assert first[-2] == "│ 30%                                  │"
    second = lines[len(first):]
    assert second[0].startswith("╭─ second ─")
    assert [line[2:-2].strip() for line in second[1:-1]] == (
        ["line 0", "line 1", "line 2", "… 33 more lines"] + [f"line {i}" for i in range(36, 40)])
    assert second[-1].startswith("╰─ timeout ─")


def test_the_spinner_shares_the_screen():
    """It turns below what is printed, and leaves nothing behind; keys are not shown."""
    with Program([PROBE, "spinner"]) as p:
        p.wait_for(lambda s: re.search(r"^. thinking \d+\.\d s$", s.text()))
        before = p.screen.text()
        p.wait_for(lambda s: s.text() not in (before, ""))
        assert not p.screen.cursor
        p.send("a")
        p.wait_for("typed a")
        p.send("\n")
        assert p.finish() == 0
        assert p.screen.text() == "typed a"
        assert p.screen.cursor


# ---- pictures ----


@pytest.fixture(name="picture_file")
def picture_file_fixture(tmp_path):
    """A picture that is wider than the terminal."""
    path = tmp_path / "picture.png"
    path.write_bytes(png(2000, 100, (200, 30, 40)))
    return str(path)


@pytest.mark.parametrize(("environment", "start"), [
    ({"TERM": "xterm-kitty"}, "\x1b_Ga=T,f=100,q=2,c=78,m=0;iVBOR"),
    ({"TERM_PROGRAM": "iTerm.app"}, "\x1b]1337;File=inline=1;size="),
    ({"TERM": "foot"}, '\x1bP0;1;0q"1;1;780;39#0;2;'),
])
def test_a_picture_is_drawn_as_the_terminal_can(picture_file, environment, start):
    """One sequence, and the text goes on below it."""
    with Program([PROBE, "image", picture_file], SANDBOX_AGENT_LIBEXEC=LIBEXEC,
                 **environment) as p:
        assert p.finish() == 0
        pictures = [s for s in p.screen.pictures if "AAAA\x1b" not in s and "524742" not in s]
        assert [s[:len(start)] for s in pictures] == [start]
        assert p.screen.text().strip() == "drawn=1"


def test_no_picture_where_there_is_no_way(picture_file):
    """The caller names a file instead."""
    with Program([PROBE, "image", picture_file]) as p:
        assert p.finish() == 0
        assert p.screen.text() == "drawn=0"
    assert piped("image", picture_file, TERM="xterm-kitty") == "drawn=0\n"


@pytest.mark.parametrize("damage", ["bomb", "cut", "garbage"])
def test_a_hostile_picture_ends_only_its_decoder(tmp_path, damage):
    """It is refused, by a reason."""
    data = png(100, 100, (1, 2, 3))
    if damage == "bomb":
        data = data.replace(struct.pack(">II", 100, 100), struct.pack(">II", 60000, 60000))
    elif damage == "cut":
        data = data[:-12]
    else:
        data = data.replace(data[41:60], b"\xff" * 19)
    path = tmp_path / "bad.png"
    path.write_bytes(data)
    with Program([PROBE, "image", str(path)], SANDBOX_AGENT_LIBEXEC=LIBEXEC, TERM="foot") as p:
        assert p.finish() == 1
        assert "term-probe: the picture" in p.screen.text()
        assert not any(s.startswith("\x1bP0") for s in p.screen.pictures)


def test_the_decoder_can_only_compute(picture_file):
    """No call but those that its table names; reading, writing and memory are enough."""
    with open(picture_file, "rb") as picture:
        traced = subprocess.run(["strace", "-f", "-o", "/dev/stdout", "-e", "trace=all",
                                 str(sa.BUILD / "picture/sandbox-picture"), "png", "100"],
                                stdin=picture, capture_output=True, check=False)
    if b"ptrace" in traced.stderr:
        pytest.skip("strace is not allowed here")
    assert traced.returncode == 0, traced.stderr
    calls = set(re.findall(rb"^\d+ +(\w+)\(", traced.stdout.split(b"seccomp(")[-1], re.MULTILINE))
    assert calls <= {b"read", b"write", b"brk", b"mmap", b"munmap", b"mremap", b"mprotect",
                     b"madvise", b"exit_group", b"futex", b"getrandom"}


def test_the_decoder_has_seconds_of_the_processor():
    """It is killed when it computes for longer than anybody waits for it."""
    with subprocess.Popen([str(sa.BUILD / "picture/sandbox-picture"), "png", "100"],
                          stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as decoder:
        limits = Path(f"/proc/{decoder.pid}/limits")
        wait_for(lambda: re.search(r"^Max cpu time +10 +10 ", limits.read_text(), re.MULTILINE))
        decoder.stdin.close()
        assert decoder.wait() == 1


# ---- the line editor ----


def at_prompt(screen):
    """Whether the editor reads keys: what is typed before is shown by the kernel."""
    return screen.paste and screen.text().split("\n")[-1] == ">"


@pytest.fixture(name="editor")
def editor_fixture(tmp_path):
    """The editor at its first prompt."""
    with Program([PROBE, "line", str(tmp_path / "state/history")]) as p:
        p.wait_for(at_prompt)
        yield p


def typed(p, keys, expected):
    """Type at the prompt, and wait for what the editor made of it."""
    p.wait_for(at_prompt)
    p.send(keys)
    p.wait_for(expected)


def test_a_line_is_a_message(editor):
    """Letters of all kinds, and keys that move."""
    typed(editor, "hello\r", "event=0 <hello>")
    typed(editor, "日本語é\x7f\x7fx\r", "event=0 <日本x>")
    typed(editor, "bc\x01a\x05d\r", "event=0 <abcd>")
    typed(editor, "\x04", "event=2 <>")
    assert editor.finish() == 0


def test_a_paste_of_many_lines_is_one_message(editor):
    """And no key in it is one."""
    typed(editor, "\x1b[200~one\r\ntwo\x03\x04\tthree\x1b[2J\x1b[201~!\r",
          "event=0 <one|two^C^D    three!>")


def test_a_message_of_many_lines_is_typed(editor):
    """By Alt-Enter, or Enter behind a backslash."""
    typed(editor, "one\\\rtwo\x1b\rthree\r", "event=0 <one|two|three>")


def test_control_c_drops_the_line(editor):
    """The program goes on."""
    typed(editor, "rubbish\x03", "event=1 <rubbish>")
    typed(editor, "good\r", "event=0 <good>")


def test_history_outlives_the_program(tmp_path):
    """In a file of the owner's; arrows bring it back, many lines as they were."""
    path = tmp_path / "state/history"
    with Program([PROBE, "line", str(path)]) as p:
        p.wait_for(at_prompt)
        typed(p, "one\\\rtwo\r", "event=0 <one|two>")
        typed(p, " secret\r", "event=0 < secret>")
        typed(p, "\x04", "event=2")
    assert path.stat().st_mode & 0o777 == 0o600
    assert "secret" not in path.read_text()
    with Program([PROBE, "line", str(path)]) as p:
        p.wait_for(at_prompt)
        typed(p, "\x1b[A!\r", "event=0 <one|two!>")


def test_completion_shows_what_there_is(editor):
    """One choice is taken; of several what they share, then their list."""
    typed(editor, "/f\t\r", "event=0 </files >")
    typed(editor, "/t\t\t", "/threads  /threads-all")
    editor.send("-\t\r")
    editor.wait_for("event=0 </threads-all >")


def test_a_late_answer_is_not_typed(editor):
    """A slow terminal says what it is when the prompt is there already."""
    typed(editor, b"ab\x1b[?62;4cc\x1b_Gi=31;OK\x1b\\d\r", "event=0 <abcd>")


def test_what_was_typed_too_early_is_not_lost(tmp_path):
    """While the terminal is asked."""
    with Program([PROBE, "line", str(tmp_path / "history")], answer=b"early\r" + DA1) as p:
        p.wait_for("event=0 <early>")


def test_the_editor_follows_the_size(editor):
    """Long lines are drawn at the new width."""
    editor.resize(30, 20)
    typed(editor, "x" * 100 + "\r", "event=0")


def test_plain_lines_without_a_terminal(tmp_path):
    """No prompt, no editing."""
    done = subprocess.run([PROBE, "line", str(tmp_path / "h")], input="a\nb\x1b[A", text=True,
                          capture_output=True, check=True)
    assert done.stdout == "event=0 <a>\nevent=0 <b>\nevent=2 <>\n"
