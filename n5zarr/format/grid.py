"""The block grid of a dataset.

N5 4.0.0, "File-system specification", items 6 and 8: a dataset is cut into blocks of ``blockSize``,
each at a grid position, each in the file ``<x>/<y>/<z>`` below the dataset.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.format.order import N5Tuple

__all__ = [
    "automatic_block_size",
    "block_extent",
    "block_path",
    "grid_shape",
    "is_block_name",
    "parse_block_path",
]

# Java: "00" is another file than "0" and is never read.
_INDEX = re.compile(r"0|[1-9][0-9]*", re.ASCII)


def grid_shape(dimensions: N5Tuple, block_size: N5Tuple) -> N5Tuple:
    """Count the blocks along each axis.

    Parameters
    ----------
    dimensions, block_size : tuple of int
        Extent of the dataset and of a full block, in elements, N5 order.

    Returns
    -------
    tuple of int
        Number of blocks, N5 order; 0 where the dataset has no extent.

    Examples
    --------
    >>> grid_shape((7, 5, 0), (3, 5, 4))
    (3, 1, 0)
    """
    return tuple(-(-d // b) for d, b in zip(dimensions, block_size, strict=True))


def block_extent(dimensions: N5Tuple, block_size: N5Tuple, grid_position: N5Tuple) -> N5Tuple:
    """Give the part of the grid cell that lies inside the dataset.

    Parameters
    ----------
    dimensions, block_size : tuple of int
        Extent of the dataset and of a full block, in elements, N5 order.
    grid_position : tuple of int
        Position of the block in the grid, N5 order.

    Returns
    -------
    tuple of int
        Extent in elements, N5 order; smaller than ``block_size`` at the end of an axis.

    Examples
    --------
    >>> block_extent((7, 5), (3, 2), (2, 0))
    (1, 2)
    """
    return tuple(
        max(0, min(b, d - g * b))
        for d, b, g in zip(dimensions, block_size, grid_position, strict=True)
    )


def automatic_block_size(
    dimensions: tuple[int, ...],
    aspect_ratio: Sequence[float] | None = None,
    n_elements: int = 2**20,
) -> tuple[int, ...]:
    """Choose a block size: about a million elements, no longer along an axis than the array.

    The rule is tensorstore's: the largest blocks of the wanted proportions, where an axis that is
    shorter leaves room for the others.

    Parameters
    ----------
    dimensions : tuple of int
        Extent of the array, in elements, any order.
    aspect_ratio : sequence of float, optional
        Proportions of a block, in the same order; a cube by default.
    n_elements : int, optional
        How many elements a block has at most.

    Returns
    -------
    tuple of int
        In the same order.

    Examples
    --------
    >>> automatic_block_size((1000, 2000, 3000))
    (101, 101, 101)
    >>> automatic_block_size((1000, 2000, 3000), [1, 2, 2])
    (64, 128, 128)
    >>> automatic_block_size((3, 2000, 3000))
    (3, 591, 591)
    """
    if not dimensions:
        return ()
    ratio = tuple(aspect_ratio or [1] * len(dimensions))
    limits = [max(1, d) for d in dimensions]

    def size(factor: float) -> tuple[int, ...]:
        return tuple(
            max(1, min(limit, int(factor * r))) for limit, r in zip(limits, ratio, strict=True)
        )

    low, high = 0.0, max((limit + 1) / r for limit, r in zip(limits, ratio, strict=True))
    for _ in range(128):
        middle = (low + high) / 2
        low, high = (middle, high) if math.prod(size(middle)) <= n_elements else (low, middle)
    # `low` may be a rounding error short of an integer
    exact = [round(low * r) / r for r in ratio]
    best = max((f for f in (low, *exact) if math.prod(size(f)) <= n_elements), default=low)
    return size(best)


def block_path(grid_position: N5Tuple) -> str:
    """Give the path of a block below its dataset.

    Examples
    --------
    >>> block_path((2, 0, 11))
    '2/0/11'

    Where there are no dimensions, tensorstore and zarr-python 2 call the one block

    >>> block_path(())
    '0'
    """
    return "/".join(map(str, grid_position)) or "0"


def is_block_name(name: str) -> bool:
    """Whether a directory entry of a dataset can be a part of a block path.

    Examples
    --------
    >>> is_block_name("10"), is_block_name("010"), is_block_name("s0")
    (True, False, False)
    """
    return _INDEX.fullmatch(name) is not None


def parse_block_path(path: str, grid: N5Tuple) -> N5Tuple | None:
    """Read a grid position from the path of a block.

    Parameters
    ----------
    path : str
        Path below the dataset, such as ``"2/0/11"``.
    grid : tuple of int
        Number of blocks along each axis, N5 order.

    Returns
    -------
    tuple of int or None
        Position in N5 order, or None when the path names no block of this grid.

    Examples
    --------
    >>> parse_block_path("2/0", (3, 1)), parse_block_path("3/0", (3, 1))
    ((2, 0), None)
    """
    if not grid:
        return () if path == block_path(()) else None
    names = path.split("/")
    # no grid index has more than 19 digits, and int() of thousands of digits is an attack
    if len(names) != len(grid) or not all(is_block_name(n) and len(n) < 20 for n in names):
        return None
    position = tuple(map(int, names))
    return position if all(p < g for p, g in zip(position, grid, strict=True)) else None
