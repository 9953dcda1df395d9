"""List the blocks of a dataset by the prefix of their keys, where storage can do so.

An object store lists all keys below a prefix, a thousand with each request. With directories, every
directory of blocks would cost a request.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from n5zarr.format.grid import is_block_name, parse_block_path
from n5zarr.storage.requests import KeysBelow, Steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.format.order import N5Tuple

__all__ = ["StoredBlocks", "blocks_by_prefix"]


class StoredBlocks(NamedTuple):
    """The blocks of a dataset that exist.

    Parameters
    ----------
    rows : numpy.ndarray
        A row for each block with its grid position, N5 order, sorted.
    n_bytes : int or None
        Size of all blocks; None if the listing does not have it.
    others : tuple of str
        All other keys below the dataset, except those that stand for directories.
    """

    rows: np.ndarray
    n_bytes: int | None
    others: tuple[str, ...]


def blocks_by_prefix(path: str, grid: N5Tuple) -> Steps[StoredBlocks | None]:
    """List the blocks that exist; None if storage lists one directory at a time.

    N5 spec, "File-system specification", items 5 and 6: paths of blocks, which may be missing.

    Parameters
    ----------
    path : str
        Of the dataset.
    grid : tuple of int
        Number of blocks along each axis, N5 order.
    """
    pages: Sequence[StoredBlocks] | None
    (pages,) = yield [KeysBelow(path, partial(_blocks_among, grid=grid))]
    if pages is None:
        return None
    rows = np.concatenate([_rows([], grid), *(page.rows for page in pages)])
    sizes = [page.n_bytes for page in pages if page.n_bytes is not None]
    return StoredBlocks(
        rows[np.lexsort(rows.T[::-1])] if grid else rows,
        sum(sizes) if len(sizes) == len(pages) else None,
        tuple(key for page in pages for key in page.others),
    )


def _blocks_among(
    keys: Sequence[str], sizes: Sequence[int] | None, *, grid: N5Tuple
) -> StoredBlocks:
    """Return the blocks among some keys below a dataset."""
    parsed = [parse_block_path(key, grid) for key in keys]
    rows = _rows([position for position in parsed if position is not None], grid)
    known: Sequence[int | None] = sizes or [None] * len(keys)
    each = zip(keys, known, parsed, strict=True)
    others = tuple(k for k, size, p in each if p is None and not _is_marker(k, size, grid))
    if sizes is None:
        return StoredBlocks(rows, None, others)
    found = zip(parsed, sizes, strict=True)
    n_bytes = sum(size for position, size in found if position is not None)
    return StoredBlocks(rows, n_bytes, others)


def _is_marker(key: str, size: int | None, grid: N5Tuple) -> bool:
    """Whether a key stands for a directory, as Java and consoles of services create them.

    obstore omits the slash at the end.
    """
    if not key or key.endswith("/"):
        return True
    names = key.split("/")
    return size == 0 and len(names) < len(grid) and all(map(is_block_name, names))


def _rows(positions: Sequence[N5Tuple], grid: N5Tuple) -> np.ndarray:
    """Return rows of the smallest type of integers with a sign that holds them."""
    dtype = np.min_scalar_type(-max(grid, default=1))
    return np.array(positions, dtype).reshape(len(positions), len(grid))
