# SPDX-License-Identifier: MIT
"""What the check-* scripts share: which files there are, C text without comments, the verdict."""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

C_ROOMS = ("src", "include", "launcher", "egress", "archive", "picture", "guest")

_C_TOKEN = re.compile(
    r"""(?P<block>/\*.*?\*/) | (?P<line>//[^\n]*) |
        (?P<string>"(?:\\.|[^"\\\n])*") | (?P<char>'(?:\\.|[^'\\\n])*')""",
    re.DOTALL | re.VERBOSE,
)


def arguments(doc):
    """Parse the one option all checks have: another root than the checkout, for their own tests."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    return parser.parse_args()


def files(root):
    """Return all files of the checkout as sorted relative paths: git's, or all outside of git."""
    if (root / ".git").exists():
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-coz", "--exclude-standard"],
            check=True, capture_output=True, text=True).stdout.split("\0")
        names = [name for name in listed if name and (root / name).is_file()]
    else:
        names = [os.path.relpath(os.path.join(directory, name), root)
                 for directory, _, entries in os.walk(root) for name in entries]
    return sorted(Path(name) for name in names)


def c_files(root, rooms=C_ROOMS):
    """Return the C files of the product's own rooms."""
    return [path for path in files(root) if path.suffix in (".c", ".h") and path.parts[0] in rooms]


def c_blank(text, strings=True):
    """Blank out comments (and the inside of strings) of C text; every line keeps its number."""

    def blank(match):
        token = match.group(0)
        if match.lastgroup in ("string", "char"):
            return token[0] + " " * (len(token) - 2) + token[-1] if strings else token
        return re.sub(r"[^\n]", " ", token)

    return _C_TOKEN.sub(blank, text)


def line_of(text, position):
    """Return the line number of a position."""
    return text.count("\n", 0, position) + 1


def verdict(name, problems, checked):
    """Print the problems and end the program; checking nothing at all is a failure too."""
    if not checked:
        problems = ["nothing to check"]
    for problem in problems:
        print(problem)
    state = f"{len(problems)} problems" if problems else "ok"
    print(f"{name}: {state} ({checked} files)")
    sys.exit(1 if problems else 0)
