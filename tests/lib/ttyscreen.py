# SPDX-License-Identifier: MIT
"""A program on a pseudo-terminal, and the screen that it draws.

The emulator knows what our programs may send, and nothing else: any other sequence is an error of
the test, because a terminal would obey it.
"""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
import unicodedata

SEQUENCE = re.compile(r"\x1b(?:\[([?>]?)([0-9;]*)([A-Za-z])|\]1337;File=[^\x07\x1b]*\x07"
                      r"|_G[^\x1b]*\x1b\\|P0;1;0q[^\x1b]*\x1b\\|P\+q524742\x1b\\)")
DA1 = b"\x1b[?62;22c"


class UnknownSequence(AssertionError):
    """The program sent something that it may not send."""


class Screen:
    """Lines of a terminal, with all that has scrolled away."""

    def __init__(self, columns=80, rows=24):
        self.columns, self.rows = columns, rows
        self.lines = [[]]
        self.row = self.column = 0
        self.cursor = True
        self.paste = False
        self.pictures = []
        self.pending = ""

    def text(self):
        """Return all lines, without spaces at their ends."""
        return "\n".join("".join(line).rstrip() for line in self.lines).rstrip("\n")

    def feed(self, data):
        """Take output of the program; a sequence may be cut off at its end."""
        data, self.pending = self.pending + data, ""
        at = 0
        while at < len(data):
            if data[at] != "\x1b":
                self.character(data[at])
                at += 1
                continue
            match = SEQUENCE.match(data, at)
            if not match:
                if len(data) - at < 64 or data[at + 1] in "]P_":
                    self.pending = data[at:]
                    return
                raise UnknownSequence(repr(data[at:at + 40]))
            self.sequence(match)
            at = match.end()

    def sequence(self, match):
        """Obey one sequence."""
        private, numbers, final = match.groups()
        if final is None:
            self.pictures.append(match.group(0))
            return
        count = int(numbers or 1) if numbers.isdigit() or not numbers else 0
        if private:
            self.mode(numbers, final, match)
        elif final == "A":
            self.row = max(self.row - count, self.top())
        elif final == "B":
            self.row = min(self.row + count, len(self.lines) - 1)
        elif final == "C":
            self.column += count
        elif final == "D":
            self.column = max(self.column - count, 0)
        elif final == "G":
            self.column = count - 1
        elif final == "J":
            del self.lines[self.row + 1:]
            del self.lines[self.row][self.column:]
        elif final == "K":
            del self.lines[self.row][self.column:]
        elif final == "P":
            del self.lines[self.row][self.column:self.column + count]
        elif final == "@":
            self.lines[self.row][self.column:self.column] = [" "] * count
        elif final not in "mct":
            raise UnknownSequence(repr(match.group(0)))

    def mode(self, numbers, final, match):
        """Switch one of the two modes that there are."""
        if (numbers, final) in (("25", "h"), ("25", "l")):
            self.cursor = final == "h"
        elif (numbers, final) in (("2004", "h"), ("2004", "l")):
            self.paste = final == "h"
        else:
            raise UnknownSequence(repr(match.group(0)))

    def top(self):
        """Return the first line that is still on the screen."""
        return max(len(self.lines) - self.rows, 0)

    def character(self, c):
        """Draw one character, or obey a control."""
        if c == "\r":
            self.column = 0
        elif c == "\n":
            self.down()
        elif c == "\b":
            self.column = max(self.column - 1, 0)
        elif c == "\t":
            self.column = min(self.column - self.column % 8 + 8, self.columns - 1)
        elif c == "\x07":
            pass
        elif ord(c) < 32 or 0x7f <= ord(c) < 0xa0:
            raise UnknownSequence(repr(c))
        else:
            self.draw(c)

    def down(self):
        """Go to the next line, a new one at the end."""
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append([])

    def draw(self, c):
        """Put a character at the cursor; a wide one has an empty cell behind it."""
        width = 2 if unicodedata.east_asian_width(c) in "WF" else 1
        if self.column + width > self.columns:
            self.column = 0
            self.down()
        line = self.lines[self.row]
        line.extend(" " * (self.column + width - len(line)))
        line[self.column:self.column + width] = [c] + [""] * (width - 1)
        self.column += width


class Program:
    """A program with a terminal of its own, which answers like one."""

    def __init__(self, argv, columns=80, rows=24, answer=DA1, **environment):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        env = {k: v for k, v in os.environ.items()
               if k not in ("TMUX", "STY", "COLORTERM", "NO_COLOR", "TERM_PROGRAM",
                            "KITTY_WINDOW_ID", "LC_ALL", "LANG", "LC_TERMINAL")}
        env |= {"TERM": "xterm"} | environment
        self.answer, self.raw = answer, b""
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.screen = Screen(columns, rows)
        # setsid makes it the controlling terminal, so that Ctrl-C is a signal.
        self.process = subprocess.Popen(["setsid", "--ctty", *argv], stdin=slave, stdout=slave,
                                        stderr=slave, env=env)
        os.close(slave)

    def resize(self, columns, rows):
        """Change the size, as a window manager would."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.columns, self.screen.rows = columns, rows

    def send(self, text):
        """Type."""
        os.write(self.master, text.encode() if isinstance(text, str) else text)

    def pump(self, seconds):
        """Take what is written within a time. False at the end of the program."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        if not data:
            return False
        self.raw += data
        if self.answer and b"\x1b[c" in data:
            self.send(self.answer)
        self.screen.feed(self.decoder.decode(data))
        return True

    def wait_for(self, condition, seconds=20):
        """Pump until a text is on the screen, or a function of the screen is true."""
        check = condition if callable(condition) else lambda s: condition in s.text()
        end = time.monotonic() + seconds
        while not check(self.screen):
            if time.monotonic() > end:
                raise AssertionError(f"{condition!r} did not come:\n{self.screen.text()}")
            if not self.pump(0.2):
                assert check(self.screen), f"ended without {condition!r}:\n{self.screen.text()}"
                return

    def finish(self, seconds=20):
        """Pump to the end; return the exit status."""
        end = time.monotonic() + seconds
        while self.pump(0.2):
            assert time.monotonic() < end, f"does not end:\n{self.screen.text()}"
        if self.screen.pending:
            raise UnknownSequence(repr(self.screen.pending))
        return self.process.wait(5)

    def close(self):
        """End the program, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
