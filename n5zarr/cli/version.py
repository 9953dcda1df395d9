"""Make the line of ``n5zarr --version``, without what is slow to import or may be missing."""

from __future__ import annotations

from importlib import import_module

import n5zarr


def version_line() -> str:
    """Name the version, and say whether the kernel is compiled, on which the speed depends."""
    try:
        import_module("n5zarr.fast._kernel")
    except ImportError:  # it was not built, or the room is not there
        compiled = "without"
    else:
        compiled = "with"
    return f"n5zarr {n5zarr.__version__} ({compiled} the compiled kernel)"
