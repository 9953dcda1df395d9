"""What n5zarr needs of zarr beyond its public names, in two forms with the same names.

`n5zarr._zarr_private` is fast, and says for each private name why there is no public one.
`n5zarr._zarr_public` does the same by public names alone, slower. It is used with
``N5ZARR_PUBLIC_ONLY=1``, and with a warning if a version of zarr has no such private names any
more, or others of the same name.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from typing import TYPE_CHECKING

from n5zarr._zarr_shared import REFUSALS
from n5zarr.errors import N5Warning

if TYPE_CHECKING:
    from types import ModuleType

    from n5zarr._zarr_private import *  # noqa: F403 - the types of both
    from n5zarr._zarr_private import (  # noqa: TC004 - listed for type checkers
        ArrayConfigLike,
        ArrayMetadata,
        ArraySpec,
        Attributes,
        BasicSelection,
        BatchItem,
        ChunkGridMetadata,
        ChunkTransform,
        CoordinateSelection,
        Fields,
        MaskSelection,
        NDArrayLikeOrScalar,
        OrthogonalSelection,
        Selection,
        SelectorTuple,
        ShapeLike,
        ZDType,
    )

__all__ = [
    "PUBLIC_ONLY",
    "REFUSALS",
    "ArrayConfigLike",
    "ArrayMetadata",
    "ArraySpec",
    "Attributes",
    "BasicSelection",
    "BatchItem",
    "ChunkGridMetadata",
    "ChunkTransform",
    "CoordinateSelection",
    "Fields",
    "MaskSelection",
    "NDArrayLikeOrScalar",
    "OrthogonalSelection",
    "Selection",
    "SelectorTuple",
    "ShapeLike",
    "ZDType",
    "chosen",
]


def chosen(environment: str | None) -> ModuleType:
    """Return the module whose names are used.

    Parameters
    ----------
    environment : str or None
        The value of ``N5ZARR_PUBLIC_ONLY``.
    """
    if environment in (None, "", "0"):
        try:
            private = import_module("n5zarr._zarr_private")
            private.check()
        except (ImportError, *REFUSALS) as err:
            warnings.warn(
                f"n5zarr works with public names of zarr only, more slowly: this version of zarr "
                f"has changed ({err}); a newer version of n5zarr may know it",
                N5Warning,
                stacklevel=2,
            )
        else:
            return private
    return import_module("n5zarr._zarr_public")


_MODULE = chosen(os.environ.get("N5ZARR_PUBLIC_ONLY"))

PUBLIC_ONLY = _MODULE.__name__.endswith("public")
"""Whether only public names of zarr are used."""

globals().update({name: getattr(_MODULE, name) for name in _MODULE.__all__})
