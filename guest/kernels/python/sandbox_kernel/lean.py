# SPDX-License-Identifier: MIT
"""Import IPython without its terminal and its completer.

Those two bring in prompt_toolkit and jedi, more than half of the time that importing IPython
takes, and a kernel uses neither. Both stay importable for the user's code afterwards.
"""

import importlib
import sys
import types

_TERMINAL = "IPython.terminal"
_EMBED = "IPython.terminal.embed"


def import_ipython() -> types.ModuleType:
    """The package IPython, with its core loaded."""
    standins = {_TERMINAL: types.ModuleType(_TERMINAL), _EMBED: types.ModuleType(_EMBED)}
    standins[_TERMINAL].__path__ = []
    standins[_EMBED].embed = _embed
    sys.modules.update(standins, jedi=None)
    try:
        import IPython
        import IPython.core.interactiveshell
    finally:
        for name in ("jedi", *standins):
            sys.modules.pop(name, None)
    vars(IPython).pop("terminal", None)
    return IPython


def _embed(*args, **kwargs):
    """IPython.embed, loaded when it is called."""
    return importlib.import_module(_EMBED).embed(*args, **kwargs)
