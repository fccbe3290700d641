# SPDX-License-Identifier: MIT
"""Every way by which somebody else's code enters a sandbox, so that a row is tried through each.

An entry runs a line of shell (`shell`) and gives what it printed: a child of the kernel of each
language, the terminal, and the hook of a package under pip, npm and R. The last three run once,
while their session is made, so they can run only what is in SCRIPTS.
"""

import json
import subprocess
from pathlib import Path

LIB = Path(__file__).resolve().parent
INTROSPECT = "/tmp/sbx-introspect"
KERNELS = ("python", "node", "r")
INSTALLERS = ("pip", "npm", "install.packages")
ALL = (*KERNELS, "terminal", *INSTALLERS)

# What installers run; the others too, so that all are asked the same.
SCRIPTS = {
    "maps": "cat /proc/self/uid_map /proc/self/gid_map",
    "status": "cat /proc/self/status",
    "sweep": "$INTROSPECT sweep",
    "named": "$INTROSPECT named",
    "sockets": "$INTROSPECT sockets",
    "machine": "$INTROSPECT machine",
    "fds": "for f in /proc/self/fd/*; do readlink $f || true; done",
    "init": "for f in environ mem maps root cwd exe cmdline fd/; do "
    "cat /proc/1/$f; ls /proc/1/$f; done 2>/dev/null",
    "ps": "ps -e -o pid=,user=,args=",
}

RUN_SHELL = {
    "python": "import subprocess\n"
    "print(subprocess.run(['sh', '-c', {0}], stdout=-1, text=True).stdout, end='')",
    "node": "void process.stdout.write(require('child_process').spawnSync('sh', ['-c', {0}],"
    " {{encoding: 'utf8', maxBuffer: 1e8}}).stdout)",
    "r": "writeLines(as.character(suppressWarnings("
    "system2('sh', c('-c', shQuote({0})), stdout=TRUE))))",
}

READ_FILE = {
    "python": "print(open({0}).read(), end='')",
    "node": "void process.stdout.write(require('fs').readFileSync({0}, 'utf8'))",
    "r": "cat(readLines({0}), sep='\\n')",
}

LANGUAGE = {"pip": "python", "npm": "node", "install.packages": "r", "terminal": "python"}


# Where a word can show; the places are searched without following links or reading devices.
SEARCH = (
    "grep -raslI -e {needle} /etc /home /workspace /tmp /dev/shm /run /var /opt /srv /root "
    "2>/dev/null;"
    "for p in /proc/[0-9]*; do for f in environ cmdline maps mountinfo mounts status stat; do "
    "grep -asl {needle} $p/$f $p/task/*/$f; done; done 2>/dev/null;"
    "find / -xdev -name '*{needle}*' 2>/dev/null; env | grep {needle}; true"
)


def search(word):
    """A line of shell that prints where a word is found, and does not hold the word itself."""
    return SEARCH.format(needle=f"{word[:-1]}[{word[-1]}]")


def build(directory):
    """Build the static test program; its bytes."""
    path = Path(directory) / "sbx-introspect"
    subprocess.run(
        [
            "cc",
            "-std=gnu17",
            "-D_GNU_SOURCE",
            "-O1",
            "-static",
            "-o",
            path,
            LIB / "sbx-introspect.c",
        ],
        check=True,
    )
    return path.read_bytes()


class Kernel:
    """A cell that starts a child."""

    def __init__(self, session, language):
        self.session, self.language = session, language

    def _cell(self, table, text, timeout):
        result = self.session.execute(
            table[self.language].format(json.dumps(text)), timeout=timeout
        )
        assert result["status"] == "ok", result
        return result["stdout"]

    def shell(self, script, timeout=60):
        """What a line of shell prints."""
        return self._cell(RUN_SHELL, script, timeout)

    def read(self, path):
        """A file, read by the kernel's own process."""
        return self._cell(READ_FILE, path, 20)

    def output(self, name):
        """What a script of the table prints."""
        return self.shell(f"INTROSPECT={INTROSPECT}; {SCRIPTS[name]}")


class Terminal(Kernel):
    """A command."""

    def shell(self, script, timeout=60):
        """What a line of shell prints."""
        return self.session.terminal(script, timeout=timeout)["stdout"]

    def read(self, path):
        """A file, read by a command."""
        return self.shell(f"cat {path}")


class Installer:
    """A package's hook, which has run: its outputs are files."""

    def __init__(self, session):
        self.session = session

    def output(self, name):
        """What a script of the table printed."""
        return self.session.read(f"/workspace/probe/{name}").decode()


def make_kernel(library, language, program, **options):
    """A session for the kernel and terminal entries."""
    session = library.create(language, **options)
    session.write(INTROSPECT, program)
    session.terminal(f"chmod 755 {INTROSPECT}")
    return session


HOOK = "mkdir -p /workspace/probe; INTROSPECT=$PWD/sbx-introspect; " + "; ".join(
    f"({script}) >/workspace/probe/{name}" for name, script in SCRIPTS.items()
)


def make_installer(library, index, language, program, **options):
    """A session with a package whose hook ran all scripts."""
    files = {"sbx-introspect": program}
    add = {"python": index.pip, "node": index.npm, "r": index.r}[language]
    add("probe", hook=f"{HOOK}; true", files=files)
    return library.create(
        language,
        dependencies=["probe"],
        network="none",
        env={"NPM_CONFIG_DANGEROUSLY_ALLOW_ALL_SCRIPTS": "true"},
        **options,
    )
