# SPDX-License-Identifier: MIT
"""The Python kernel: an IPython shell that speaks the kernel protocol of docs/PROTOCOL.md."""
