# SPDX-License-Identifier: MIT
"""Exit 0 if every NAME or NAME==VERSION of the arguments is an installed distribution."""

import sys
from importlib import metadata


def missing(requirement: str) -> str | None:
    """Return why a requirement does not hold, or None."""
    name, _, version = requirement.partition("==")
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"{name} is not installed"
    # pip has compared ranges such as 1.* and normalised spellings; only a plain other version is
    # wrong.
    if version.replace(".", "").isdigit() and found.replace(".", "").isdigit():
        wanted = [int(part) for part in version.split(".")]
        have = [int(part) for part in found.split(".")]
        length = max(len(wanted), len(have))
        if wanted + [0] * (length - len(wanted)) != have + [0] * (length - len(have)):
            return f"{name} is {found}, not {version}"
    return None


problems = [text for text in map(missing, sys.argv[1:]) if text]
print("\n".join(problems), file=sys.stderr)
sys.exit(1 if problems else 0)
