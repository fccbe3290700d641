#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Opens and ends sessions for a while, with cells that misbehave, and checks that nothing is left.

The process's memory and descriptors, and what the host holds, must be the same at the end as
after the first rounds.
"""

import argparse
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

import leaks  # noqa: E402 (the path above comes first)
import sa  # noqa: E402

# (code, the statuses that are right, time-out in seconds)
CELLS = [
    ("1 + 1", {"ok"}, 30),
    ("print('x' * 100000)", {"ok"}, 30),
    ("raise ValueError('no')", {"error"}, 30),
    ("import os; os.kill(os.getpid(), 9)", {"died"}, 30),
    ("import time; time.sleep(60)", {"timeout"}, 0.5),
    ("import os; os._exit(3)", {"died"}, 30),
    ("import subprocess; subprocess.Popen(['sleep', '1000']); 1", {"ok"}, 30),
    ("b = bytearray(1 << 33)", {"died", "error"}, 30),
]
INSTANCE = "soak"
WARM_ROUNDS = 5
GROWTH = 1.05


def memory_kib():
    """Return the resident memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def one_round(library, seen):
    """One session and a few cells, some of which break it."""
    session = library.create("python")
    for code, wanted, timeout in random.sample(CELLS, 3):
        result = session.execute(code, timeout=timeout)
        assert result["status"] in wanted, (code, result)
        seen[result["status"]] += 1
        if result["cause"] == "oom":  # the end of the whole session
            break
    session.stop()


def main():
    """Run rounds until the time is over, then compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("SECONDS", 600)))
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    random.seed(arguments.seed)

    before, seen, rounds = leaks.snapshot(instance=INSTANCE), Counter(), 0
    with sa.Library(instance=INSTANCE, no_build=1) as library:
        for _ in range(WARM_ROUNDS):
            one_round(library, seen)
        memory, descriptors = memory_kib(), len(os.listdir("/proc/self/fd"))
        end = time.monotonic() + arguments.seconds
        while time.monotonic() < end:
            one_round(library, seen)
            rounds += 1
        grown = memory_kib() / memory
        left = len(os.listdir("/proc/self/fd")) - descriptors
    leaks.assert_none(before)
    print(f"{rounds} rounds, {dict(seen)}; memory x{grown:.3f}, {left} more descriptors")
    sys.exit(1 if grown > GROWTH or left > 0 else 0)


main()
