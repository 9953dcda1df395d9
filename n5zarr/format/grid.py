"""Compute the block grid of a dataset: number of blocks, extent of each, paths of their files.

N5 spec, "File-system specification", items 5 and 8. All tuples are in N5 order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from n5zarr.format.order import N5Tuple

# Java: "00" is another file than "0" and is never read.
_INDEX = re.compile(r"0|[1-9][0-9]*", re.ASCII)


def grid_shape(dimensions: N5Tuple, block_size: N5Tuple) -> N5Tuple:
    """Count the blocks along each axis, truncated ones included.

    N5 spec, "File-system specification", item 8.

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
    return N5Tuple(tuple(-(-d // b) for d, b in zip(dimensions, block_size, strict=True)))


def block_extent(dimensions: N5Tuple, block_size: N5Tuple, grid_position: N5Tuple) -> N5Tuple:
    """Compute the extent of a block: ``block_size``, or less where the dataset ends inside it.

    N5 spec, "File-system specification", item 8.

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
    return N5Tuple(
        tuple(
            max(0, min(b, d - g * b))
            for d, b, g in zip(dimensions, block_size, grid_position, strict=True)
        )
    )


def blocks_cut_anew(
    dimensions: N5Tuple, resized: N5Tuple, block_size: N5Tuple
) -> list[tuple[range, ...]]:
    """Find the truncated blocks whose extent changes when the dataset is resized.

    Parameters
    ----------
    dimensions, resized, block_size : tuple of int
        Extent of the dataset before and after, and of a full block, in elements, N5 order.

    Returns
    -------
    list of tuple of range
        Boxes of grid positions, N5 order; they may overlap.

    Examples
    --------
    >>> blocks_cut_anew((7, 5), (8, 5), (3, 2))
    [(range(2, 3), range(0, 3))]

    Blocks that the dataset does not truncate have the same size before and after:

    >>> blocks_cut_anew((6, 5), (8, 5), (3, 2)), blocks_cut_anew((7, 4), (5, 4), (3, 2))
    ([], [])
    """
    old, new = grid_shape(dimensions, block_size), grid_shape(resized, block_size)
    common = [range(min(pair)) for pair in zip(old, new, strict=True)]
    if not all(common):
        return []
    ends = N5Tuple(tuple(len(places) - 1 for places in common))
    before = block_extent(dimensions, block_size, ends)
    after = block_extent(resized, block_size, ends)
    truncated = [axis for axis, end in enumerate(ends) if before[axis] < block_size[axis]]
    boxes = []
    for changed in range(len(ends)):
        if before[changed] == after[changed]:
            continue
        # truncated along this axis, or else along any other
        for other in [changed] if changed in truncated else truncated:
            box = list(common)
            for axis in (changed, other):
                box[axis] = common[axis][-1:]
            boxes.append(tuple(box))
    return boxes


def blocks_outside(
    dimensions: N5Tuple, resized: N5Tuple, block_size: N5Tuple
) -> list[tuple[range, ...]]:
    """Find the blocks that are outside of the grid after the dataset is resized.

    Parameters
    ----------
    dimensions, resized, block_size : tuple of int
        As of :func:`blocks_cut_anew`.

    Returns
    -------
    list of tuple of range
        Boxes of grid positions, N5 order; they do not overlap.

    Examples
    --------
    >>> blocks_outside((7, 5), (3, 4), (3, 2))
    [(range(1, 3), range(0, 3)), (range(0, 1), range(2, 3))]
    """
    old, new = grid_shape(dimensions, block_size), grid_shape(resized, block_size)
    boxes = []
    for axis, (before, after) in enumerate(zip(old, new, strict=True)):
        kept = map(range, map(min, old[:axis], new[:axis]))
        box = (*kept, range(after, before), *map(range, old[axis + 1 :]))
        if all(box):
            boxes.append(box)
    return boxes


def automatic_block_size(
    dimensions: tuple[int, ...],
    aspect_ratio: Sequence[float] | None = None,
    n_elements: int = 2**20,
) -> tuple[int, ...]:
    """Choose a block size: about a million elements, no longer along an axis than the array.

    The rule is tensorstore's: the largest block of the given proportions that has at most
    ``n_elements``. Where the array is shorter than that along one axis, the block becomes longer
    along the others.

    Parameters
    ----------
    dimensions : tuple of int
        Extent of the array, in elements, any order.
    aspect_ratio : sequence of float, optional
        Proportions of a block, in the same order; a cube by default.
    n_elements : int, optional
        Largest number of elements in a block.

    Returns
    -------
    tuple of int
        Block size in elements, in the order of ``dimensions``.

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
    return size(low)


def join_blocks(
    shape: Sequence[int], block: Sequence[int], *, n_elements: int = 0, most: int
) -> tuple[int, ...]:
    """Join neighbouring blocks to chunks, the shortest axis first.

    Axes along which a block has one element, such as time, come last.

    Parameters
    ----------
    shape, block : sequence of int
        Extent of the array and of a block, in elements, any order.
    n_elements : int, optional
        Blocks are joined while a chunk has no more elements than this.
    most : int
        Blocks are joined, to larger chunks too, while there are more chunks than this.

    Returns
    -------
    tuple of int
        Extent of a chunk in elements: multiples of the blocks, in the order of ``shape``.

    Examples
    --------
    >>> join_blocks((1000, 2000, 3000), (64, 128, 128), n_elements=2**23, most=1000)
    (256, 256, 128)
    >>> join_blocks((1000, 2000, 3000), (64, 128, 128), most=100)
    (512, 512, 256)
    """
    found = list(block)
    while True:
        split = [i for i, n in enumerate(shape) if found[i] < n]
        if not split:
            return tuple(found)
        shortest = min(split, key=lambda i: (found[i] == 1, found[i]))
        is_full = 2 * math.prod(map(min, found, shape)) > n_elements
        n_chunks = math.prod(-(-n // size) for n, size in zip(shape, found, strict=True))
        if is_full and n_chunks <= most:
            return tuple(found)
        found[shortest] *= 2


def block_path(grid_position: N5Tuple) -> str:
    """Return the path of a block's file, relative to the directory of its dataset.

    N5 spec, "File-system specification", item 5. The first axis is the outermost directory.

    Examples
    --------
    >>> block_path((2, 0, 11))
    '2/0/11'

    A dataset without dimensions has one block. N5 has no name for it; tensorstore and zarr-python 2
    use

    >>> block_path(())
    '0'
    """
    return "/".join(map(str, grid_position)) or "0"


def is_block_name(name: str) -> bool:
    """Whether a name in the directory of a dataset can be a part of the path of a block.

    Examples
    --------
    >>> is_block_name("10"), is_block_name("010"), is_block_name("s0")
    (True, False, False)
    """
    return _INDEX.fullmatch(name) is not None


def parse_block_path(path: str, grid: N5Tuple) -> N5Tuple | None:
    """Parse the path of a block's file into its grid position; the inverse of :func:`block_path`.

    N5 spec, "File-system specification", item 5.

    Parameters
    ----------
    path : str
        Path below the dataset, such as ``"2/0/11"``.
    grid : tuple of int
        Number of blocks along each axis, N5 order.

    Returns
    -------
    tuple of int or None
        Position in N5 order, or None when the path is not that of a block of this grid.

    Examples
    --------
    >>> parse_block_path("2/0", (3, 1)), parse_block_path("3/0", (3, 1))
    ((2, 0), None)
    """
    if not grid:
        return N5Tuple(()) if path == block_path(N5Tuple(())) else None
    names = path.split("/")
    # an index of a grid has at most 19 digits, and int() is slow for thousands of digits
    if len(names) != len(grid) or not all(is_block_name(n) and len(n) < 20 for n in names):
        return None
    position = N5Tuple(tuple(map(int, names)))
    return position if all(p < g for p, g in zip(position, grid, strict=True)) else None
