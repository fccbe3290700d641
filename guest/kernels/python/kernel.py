# SPDX-License-Identifier: MIT
"""Start the Python kernel (docs/PROTOCOL.md, section 2).

The modules live in the package beside this file, because Python caches the compiled form of a
module but never that of a script. Until the kernel is up, sys.path holds only what belongs to the
interpreter, so that nothing in the work directory or installed by the user can take the place of a
module the kernel needs. `python3 -s` keeps the user's start-up files (.pth, usercustomize) away as
well.
"""

import gc
import sys


def main() -> None:
    """Import, start and serve; never returns."""
    gc.disable()  # nothing that start-up makes is garbage
    own, *paths = sys.path
    interpreter = tuple(f"{prefix}/" for prefix in (sys.prefix, sys.base_prefix))
    trusted = [path for path in paths if path.startswith(interpreter)]
    sys.path[:] = [own, *trusted]
    from sandbox_kernel.kernel import Kernel

    kernel = Kernel()
    sys.path[:] = paths
    kernel.serve()


if __name__ == "__main__":
    main()
