"""Make the line of ``n5zarr --version``, also where the extra of the command line is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import n5zarr
from n5zarr.rooms import Door

if TYPE_CHECKING:
    from collections.abc import Callable


_IS_COMPILED: Door[Callable[[], bool]] = Door("speed", "is compiled")


def version_line() -> str:
    """Name the version, and say whether the kernel is compiled, on which the speed depends."""
    is_compiled = _IS_COMPILED.found()
    compiled = "with" if is_compiled is not None and is_compiled() else "without"
    return f"n5zarr {n5zarr.__version__} ({compiled} the compiled kernel)"
