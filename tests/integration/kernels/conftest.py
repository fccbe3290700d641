# SPDX-License-Identifier: MIT
"""Make tests/lib importable for the tests of the three kernels."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lib"))
