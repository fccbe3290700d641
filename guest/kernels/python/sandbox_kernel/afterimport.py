# SPDX-License-Identifier: MIT
"""Adapt modules at the moment that user code imports them.

So the kernel starts without matplotlib or plotly, and they behave from their first use.
"""

import sys
from collections.abc import Callable
from types import ModuleType

Action = Callable[[ModuleType], None]


class AfterImport:
    """A finder in sys.meta_path that runs an action once a module has been executed."""

    def __init__(self):
        self._actions: dict[str, Action] = {}
        sys.meta_path.insert(0, self)

    def add(self, name: str, action: Action) -> None:
        """Run `action` after the import of `name`, now where it is loaded already."""
        if name in sys.modules:
            action(sys.modules[name])
        else:
            self._actions[name] = action

    def find_spec(self, name, path=None, target=None):
        """Find a module as the other finders do, and have its action run behind it."""
        action = self._actions.get(name)
        if action is None:
            return None
        spec = self._find_by_others(name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self._wrap(spec.loader, action)
        return spec

    def _find_by_others(self, name, path, target):
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None

    @staticmethod
    def _wrap(loader, action: Action) -> None:
        execute = loader.exec_module

        def exec_module(module):
            execute(module)
            try:
                action(module)
            except Exception:  # another version of the module: it stays as it is
                pass

        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass
