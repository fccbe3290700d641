# SPDX-License-Identifier: MIT
"""The terminal chat with a terminal around it: keys in, a screen out.

    with Chat(server.url, state_dir) as chat:
        chat.prompt()                    # wait until it takes a message
        chat.say("run: print(1)")        # type it, and Enter
        chat.expect("ok ·")              # wait until the screen's text has it
        chat.screen()                    # the visible lines; chat.text: all that was ever drawn

What arrives goes through a terminal emulator (pyte), so lines that are drawn anew count once:
`text` is the scrollback and the screen. `raw` are the bytes, for what must never be among them.
`piped` runs the program without a terminal.
"""

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import threading
import time
from pathlib import Path

import mcpstdio
import pyte

PROMPT = "❯"


def environment(url, state_dir, **settings):
    """Return the environment of a chat that talks to `url` and keeps its state in `state_dir`."""
    kept = {name: value for name, value in mcpstdio.environment(state_dir).items()
            if not name.startswith(("CHAT_MODEL", "API_", "POSTGRES_", "COLORTERM", "NO_COLOR",
                                    "TERM", "EDITOR", "VISUAL", "TMUX", "KITTY", "LC_"))}
    return kept | {"API_BASE_URL": url, "TERM": "xterm-256color", "LANG": "C.UTF-8"} | {
        name: str(value) for name, value in settings.items()}


class Chat:
    """A running chat in a pseudo-terminal; a context manager that ends it."""

    def __init__(self, url, state_dir, *words, columns=80, rows=24, cwd=None, **settings):
        self.state_dir, self.raw = Path(state_dir), b""
        self._screen = pyte.HistoryScreen(columns, rows, history=20000, ratio=0.5)
        self._stream = pyte.ByteStream(self._screen)
        self._changed = threading.Condition()
        self._ended = False
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            ["setsid", "--ctty", mcpstdio.AGENT, *words], stdin=slave, stdout=slave, stderr=slave,
            cwd=cwd or state_dir, env=environment(url, state_dir, **settings))
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(40)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._reader.join(5)
        os.close(self.master)

    def _read(self):
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                data = b""
            with self._changed:
                self.raw += data
                self._stream.feed(data)
                self._ended = not data
                self._changed.notify_all()
            if not data:
                return

    # ---- what is seen

    def screen(self):
        """Return the visible lines."""
        with self._changed:
            return [line.rstrip() for line in self._screen.display]

    @property
    def text(self):
        """What was scrolled away, and the screen, as one text."""
        with self._changed:
            return self._text()

    def _text(self):
        columns = self._screen.columns
        old = ["".join(line[x].data for x in range(columns)).rstrip()
               for line in self._screen.history.top]
        return "\n".join(old + [line.rstrip() for line in self._screen.display])

    def _wait(self, condition, what, timeout):
        deadline = time.monotonic() + timeout
        with self._changed:
            while not condition():
                left = deadline - time.monotonic()
                if left <= 0 or self._ended:
                    raise AssertionError(f"no {what}; the screen:\n{self._text()}")
                self._changed.wait(left)

    def expect(self, text, count=1, timeout=60):
        """Wait until the text is there, so many times."""
        self._wait(lambda: self._text().count(text) >= count, repr(text), timeout)

    def prompt(self, timeout=60):
        """Wait until it takes a message: the cursor stands behind the prompt, in an empty line."""
        self._wait(self._at_prompt, "prompt", timeout)

    def _at_prompt(self):
        cursor = self._screen.cursor
        line = self._screen.display[cursor.y].rstrip()
        return line == PROMPT and cursor.x == 2 and not cursor.hidden

    def _prompts(self):
        return sum(line.startswith(PROMPT) for line in self._text().splitlines())

    def end(self, timeout=60):
        """Wait for the end of the program; return its exit status."""
        status = self.process.wait(timeout)
        self._reader.join(5)
        return status

    # ---- what is typed

    def type(self, text):
        """Send keys as they are."""
        data = text.encode()
        while data:
            select.select([], [self.master], [], 10)
            data = data[os.write(self.master, data[:512]):]

    def say(self, text, wait=True):
        """Type a message and Enter; with `wait` until the next prompt."""
        self.type(f"\x1b[200~{text}\x1b[201~" if "\n" in text else text)
        end = "".join(text.splitlines()[-1][-20:].split())
        self._wait(lambda: end in "".join(self._text().split()), repr(end), 30)
        before = self._prompts()
        self.type("\r")
        if wait:
            self._wait(lambda: self._prompts() > before and self._at_prompt(), "next prompt", 60)


def piped(url, state_dir, *words, input="", timeout=120, cwd=None, **settings):
    """Run it without a terminal; the CompletedProcess."""
    return subprocess.run([mcpstdio.AGENT, *words], input=input, capture_output=True, text=True,
                          timeout=timeout, cwd=cwd or state_dir, check=False,
                          env=environment(url, state_dir, **settings))
