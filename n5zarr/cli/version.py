"""Make the line of ``n5zarr --version``, also where the extra of the command line is missing."""

from __future__ import annotations

import n5zarr
from n5zarr.rooms import asked


def version_line() -> str:
    """Name the version, and say whether the kernel is compiled, on which the speed depends."""
    compiled = "with" if asked("speed", "is compiled") else "without"
    return f"n5zarr {n5zarr.__version__} ({compiled} the compiled kernel)"
