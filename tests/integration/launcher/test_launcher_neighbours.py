# SPDX-License-Identifier: MIT
"""What a sandbox can take from, or see of, the others on its host."""

TERMINALS = """
import errno, os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
held = []
try:
    while len(held) < 400:
        held.append(os.posix_openpt(os.O_RDWR | os.O_NOCTTY))
except OSError as error:
    print(len(held), errno.errorcode[error.errno])
"""


def test_terminals_of_the_host_are_shared_out(start, image):
    sandbox = start().open(image)
    assert sandbox.python(TERMINALS) == "64 ENOSPC\n"
