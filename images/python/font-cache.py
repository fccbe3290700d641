# SPDX-License-Identifier: MIT
"""Make matplotlib's font list at image build.

matplotlib keeps the list in the user's cache directory, which is empty in a new sandbox, and
takes seconds to make it. The list goes beside matplotlib's own data instead, and matplotlib is
told to read it there when the user has none. MPLCONFIGDIR is an empty directory.
"""

import pathlib
import py_compile

import matplotlib
from matplotlib import font_manager

BEFORE = "    if try_read_cache:\n        try:\n            fm = json_load(fm_path)\n"
AFTER = """\
    if try_read_cache:
        if not fm_path.exists():
            fm_path = cbook._get_data_path(fm_path.name)
        try:
            fm = json_load(fm_path)
"""


def store_list():
    """Copy the list that importing the font manager has made."""
    made = next(pathlib.Path(matplotlib.get_cachedir()).glob("fontlist-*.json"))
    stored = pathlib.Path(matplotlib.get_data_path()) / made.name
    stored.write_bytes(made.read_bytes())


def patch_lookup():
    """Make the one function that looks for the list look there too."""
    path = pathlib.Path(font_manager.__file__)
    source = path.read_text()
    if source.count(BEFORE) != 1:
        raise SystemExit("error: matplotlib looks for its font list in a new way: font-cache.py")
    path.write_text(source.replace(BEFORE, AFTER))
    py_compile.compile(str(path), doraise=True)


if __name__ == "__main__":
    store_list()
    patch_lookup()
