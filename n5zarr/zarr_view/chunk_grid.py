"""Make the chunk grid of a ``zarr.json``: regular, or with truncated chunks at the end of axes.

Zarr v3's core has the grid ``regular``, whose chunks all have one size. The extension
``rectilinear`` (https://github.com/zarr-developers/zarr-extensions/tree/main/chunk-grids) lists the
sizes along each axis, so that truncated blocks of N5 fit.
"""

from __future__ import annotations

from typing import Literal

from n5zarr.format.lenient_json import JSON

type ChunkGrid = Literal["regular", "rectilinear"]

LONGEST_AXIS = 2**20
"""Most chunks along an axis of a rectilinear grid: zarr keeps the size of each in memory."""


def grid_document(
    shape: tuple[int, ...], chunk_shape: tuple[int, ...], *, truncated: bool
) -> dict[str, JSON]:
    """Make the ``chunk_grid`` of a ``zarr.json``.

    Parameters
    ----------
    shape, chunk_shape : tuple of int
        Extent of the array and of a full chunk, in elements, in the order of the array. An array
        without elements has a regular grid.
    truncated : bool
        Whether the chunks at the end of an axis are truncated.

    Examples
    --------
    >>> grid_document((7, 6), (3, 2), truncated=True)["configuration"]
    {'kind': 'inline', 'chunk_shapes': [[[3, 2], 1], [[2, 3]]]}
    """
    if not truncated:
        return {"name": "regular", "configuration": {"chunk_shape": chunk_shape}}
    # no bare numbers for axes without a smaller chunk: Icechunk 2.3 refuses them
    shapes: list[JSON] = [
        [*([[size, n // size]] if n >= size else []), *([n % size] if n % size else [])]
        for n, size in zip(shape, chunk_shape, strict=True)
    ]
    return {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": shapes}}
