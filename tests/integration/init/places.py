# SPDX-License-Identifier: MIT
"""Where the program under test and its fake kernel are.

A module of its own, because several directories have a conftest and none can be imported by that
name.
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BINARY = Path(os.environ.get("SANDBOX_INIT", ROOT / "build/guest/init/sandbox-init"))
FAKE = Path(__file__).resolve().parent / "fakekernel.py"
