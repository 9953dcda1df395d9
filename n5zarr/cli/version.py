"""Make the line of ``n5zarr --version``, also where the extra of the command line is missing."""

from __future__ import annotations

import n5zarr
from n5zarr.arrays.kernel import is_compiled


def version_line() -> str:
    """Name the version, and say whether the kernel is compiled, on which the speed depends."""
    compiled = "with" if is_compiled() else "without"
    return f"n5zarr {n5zarr.__version__} ({compiled} the compiled kernel)"
