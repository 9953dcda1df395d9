"""Find the size of shards of Java N5 4 from their files: the document does not tell it.

Java, n5 commit 7ba6b144, ``shard/Nesting.java``: a file lies at its position in the grid of shards,
and its index has one entry for each block, x fastest, also for those outside of the dataset.
"""

from __future__ import annotations

from operator import mul
from typing import TYPE_CHECKING

import numpy as np

from n5zarr.format.attributes import READ_SHARDS
from n5zarr.format.order import N5Tuple, to_c, to_n5
from n5zarr.tools.validate.findings import finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from n5zarr.codecs.shard import Shard
    from n5zarr.format.attributes import DatasetAttributes
    from n5zarr.tools.validate.findings import Finding

__all__ = ["possible_grids", "size_finding"]


def possible_grids(
    shard: Shard,
    position: N5Tuple,
    dataset: DatasetAttributes,
    among: Iterable[N5Tuple] | None = None,
) -> list[N5Tuple]:
    """List the numbers of blocks along each axis that a shard may have.

    Parameters
    ----------
    shard : Shard
        Its index.
    position : tuple of int
        Position of the file, N5 order.
    dataset : DatasetAttributes
        Its dataset.
    among : iterable of tuple of int, optional
        Those that fit other files of the dataset; all products by default.

    Returns
    -------
    list of tuple of int
        In N5 order: with these, no block of the shard is outside of the dataset.
    """
    there = np.flatnonzero([place is not None for place in shard.ranges])
    return [
        grid
        for grid in (_products(shard.n, dataset.ndim) if among is None else among)
        if np.prod(grid) == shard.n and _is_inside(there, grid, position, dataset.grid)
    ]


def _products(n: int, ndim: int) -> Iterator[N5Tuple]:
    """Yield the tuples of ``ndim`` numbers with the product ``n``."""
    if ndim <= 1:
        if ndim == 1 or n == 1:
            yield N5Tuple((n,) * ndim)
        return
    for first in (k for k in range(1, n + 1) if n % k == 0):
        yield from (N5Tuple((first, *rest)) for rest in _products(n // first, ndim - 1))


def _is_inside(there: np.ndarray, grid: N5Tuple, position: N5Tuple, blocks: N5Tuple) -> bool:
    """Whether the position of a shard and all its blocks are inside of the dataset."""
    first = tuple(map(mul, position, grid))
    last = [axis.max(initial=0) for axis in to_n5(np.unravel_index(there, to_c(grid)))]
    return all(f + k < n for f, k, n in zip(first, last, blocks, strict=True))


def size_finding(path: str, dataset: DatasetAttributes, grids: Iterable[N5Tuple]) -> Finding:
    """Make the finding that names the size of the shards of a dataset.

    Parameters
    ----------
    path : str
        Of the dataset.
    dataset : DatasetAttributes
        Its document.
    grids : iterable of tuple of int
        The grids of :func:`possible_grids` that fit all files.
    """
    grids = list(grids)
    sizes = [_text(map(mul, grid, dataset.block_size)) for grid in grids]
    if len(sizes) == 1:
        chunks = f"{_text(grids[0])} chunks of {_text(dataset.block_size)} elements"
        message = f"shards of {sizes[0]} elements (z, y, x), {chunks}; {READ_SHARDS}"
    elif sizes:
        message = (
            f"these sizes of shards (z, y, x) fit the files: {' or '.join(sizes)}; ask who wrote "
            f"them; {READ_SHARDS}"
        )
    else:
        message = "no size of shards fits all files: blocks may have been written among them"
    return finding("shard-size", path, message)


def _text(sizes_n5: Iterable[int]) -> str:
    return ",".join(map(str, to_c(sizes_n5)))
