"""List the blocks of a dataset."""

from __future__ import annotations

from itertools import batched
from typing import TYPE_CHECKING

import numpy as np

from n5zarr.container.prefix_listing import blocks_by_prefix
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.grid import is_block_name, parse_block_path
from n5zarr.format.path import join
from n5zarr.storage.requests import list_each

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from n5zarr.format.order import N5Tuple
    from n5zarr.storage.requests import Entry, Steps

__all__ = ["grid_position_rows", "holds_blocks"]

_DIRECTORIES = 1024  # directories whose block names are in memory at once


def grid_position_rows(path: str, grid: N5Tuple) -> Steps[np.ndarray]:
    """List the grid positions of the blocks that exist, by their prefix or by directories.

    N5 spec, "File-system specification", items 5 and 6: paths of blocks, which may be missing.

    Parameters
    ----------
    path : str
        Of the dataset.
    grid : tuple of int
        Number of blocks along each axis, N5 order.

    Returns
    -------
    numpy.ndarray
        A row for each block, N5 order, sorted; of the smallest type of integers with a sign that
        holds them, so that ten million blocks take 60 MB.
    """
    listed = yield from blocks_by_prefix(path, grid)
    if listed is not None:
        return listed.rows
    names = [""]
    for _ in grid[1:]:
        listings = yield from list_each([join(path, name) for name in names])
        names = [*_names_of_blocks(names, listings, is_dir=True)]
        if not names:
            return np.empty((0, len(grid)), "i1")
    dtype = np.min_scalar_type(-max(grid, default=1))
    rows = [np.empty((0, len(grid)), dtype)]
    for batch in batched(names, _DIRECTORIES):
        listings = yield from list_each([join(path, name) for name in batch])
        parsed = (parse_block_path(name, grid) for name in _names_of_blocks(batch, listings))
        positions = [position for position in parsed if position is not None]
        rows.append(np.array(positions, dtype).reshape(len(positions), len(grid)))
    found = np.concatenate(rows)
    return found[np.lexsort(found.T[::-1])] if grid else found


def _names_of_blocks(
    prefixes: Sequence[str], listings: Sequence[Sequence[Entry]], *, is_dir: bool = False
) -> Iterator[str]:
    """Yield the paths of entries that may be blocks or directories of blocks."""
    for prefix, entries in zip(prefixes, listings, strict=True):
        for entry in entries:
            if is_block_name(entry.name) and entry.is_dir in (None, is_dir):
                yield join(prefix, entry.name)


def holds_blocks(path: str) -> Steps[bool]:
    """Whether files with the names of blocks exist below a node."""
    folders = [path]
    while folders:
        listings = yield from list_each(folders)
        below: list[str] = []
        for folder, entries in zip(folders, listings, strict=True):
            if folder != path and any(entry.name == ATTRIBUTES_JSON for entry in entries):
                continue  # a node with the name of a block directory
            blocks = [entry for entry in entries if is_block_name(entry.name)]
            if any(not entry.is_dir for entry in blocks):
                return True
            below += [join(folder, entry.name) for entry in blocks]
        folders = below
    return False
