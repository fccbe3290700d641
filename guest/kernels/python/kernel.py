# SPDX-License-Identifier: MIT
"""Start the Python kernel (docs/PROTOCOL.md, section 2).

The modules live in the package beside this file, because Python caches the compiled form of a
module but never that of a script. Until the kernel is up, sys.path holds neither the current
directory nor what the user has installed, so that a file planted there cannot take the place of a
module the kernel needs.
"""

import gc
import sys


def main() -> None:
    """Import, start and serve; never returns."""
    gc.disable()  # nothing that start-up makes is garbage
    user_paths = [path for path in sys.path if path.startswith(user_prefix())]
    sys.path[:] = [path for path in sys.path if path not in user_paths]
    from sandbox_kernel.kernel import Kernel

    kernel = Kernel()
    del sys.path[0]
    kernel.serve(user_paths)


def user_prefix() -> str:
    """Where pip installs for the user, as the interpreter found it at start."""
    import site

    return site.getuserbase() + "/"


if __name__ == "__main__":
    main()
