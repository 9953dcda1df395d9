"""List the blocks of a dataset.

Blocks are listed some at a time, in order, depth first through their directories: memory holds the
names of one batch of directories at each level, however many blocks there are. An object store
lists all keys below a prefix instead, a thousand with each request: every directory would cost one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.grid import is_block_name, parse_block_path
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import join
from n5zarr.storage.requests import Entry, KeysBelow, Stamp, Steps, list_each


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
    n_bytes = None
    if sizes is not None:
        n_bytes = sum(n for n, p in zip(sizes, parsed, strict=True) if p is not None)
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


_DIRECTORIES = 64, 1024  # that are listed together: a server answers many requests at a time
_ENTRIES = 2**14  # of these directories, unless that means fewer
_DIGITS = 19  # of an index of a grid, at most; int() is slow for thousands of digits


class Ask(Protocol):
    """Runs a flow."""

    def __call__[T](self, steps: Steps[T], /) -> T:
        """Return the result of the flow."""


def stored_rows(
    ask: Ask, path: str, grid: N5Tuple, within: Sequence[range] | None = None
) -> Iterator[np.ndarray]:
    """List the grid positions of the blocks that exist, some at a time, in order.

    By the prefix of their keys, where storage can, or by directories.

    N5 spec, "File-system specification", items 5 and 6: paths of blocks, which may be missing.

    Parameters
    ----------
    ask : callable
        Runs a flow.
    path : str
        Of the dataset.
    grid : tuple of int
        Number of blocks along each axis, N5 order.
    within : sequence of range, optional
        The part of the grid to list, N5 order; all by default. Directories outside of it are not
        listed.

    Yields
    ------
    numpy.ndarray
        A row for each block, N5 order, at least one; all together are sorted. Of the smallest type
        of integers with a sign that holds them.
    """
    listed = ask(_by_prefix(path, grid, within))
    if listed is not None:
        yield from [listed] if len(listed) else []
        return
    walk = _Walk(path, grid, within)
    while walk.is_open:
        rows = ask(walk.next())
        if len(rows):
            yield rows


def stored_positions(ask: Ask, path: str, grid: N5Tuple) -> Iterator[N5Tuple]:
    """Yield the grid position of each block that exists; see :func:`stored_rows`."""
    for rows in stored_rows(ask, path, grid):
        yield from map(N5Tuple, map(tuple, rows.tolist()))


def grid_position_rows(
    path: str, grid: N5Tuple, within: Sequence[range] | None = None
) -> Steps[np.ndarray]:
    """List the grid positions of all blocks together, in a flow; see :func:`stored_rows`.

    Ten million blocks take 60 MB.
    """
    listed = yield from _by_prefix(path, grid, within)
    if listed is not None:
        return listed
    walk = _Walk(path, grid, within)
    rows = [walk.no_rows]
    while walk.is_open:
        rows.append((yield from walk.next()))
    return np.concatenate(rows)


def _by_prefix(
    path: str, grid: N5Tuple, within: Sequence[range] | None
) -> Steps[np.ndarray | None]:
    """List all blocks by the prefix of their keys; None for a part, and if storage cannot."""
    if within is not None and list(within) != [range(n) for n in grid]:
        return None
    listed = yield from blocks_by_prefix(path, grid)
    return None if listed is None else listed.rows


class _Walk:
    """A walk through the directories of the blocks of a dataset."""

    def __init__(self, path: str, grid: N5Tuple, within: Sequence[range] | None) -> None:
        self._path = path
        # a dataset without dimensions has one block, which is named "0"
        places = [range(n) for n in grid] if within is None else within
        self._places = list(places) or [range(1)]
        self._dtype = np.min_scalar_type(-max(grid, default=1))
        self.no_rows = np.empty((0, len(grid)), self._dtype)
        # for each level, the directories to list, as rows of numbers
        self._pending = [np.empty((0, n), self._dtype) for n in range(len(self._places))]
        self._pending[0] = np.empty((1, 0), self._dtype)
        self._n_entries = [max(1, len(part)) for part in self._places]  # of a directory, about

    @property
    def is_open(self) -> bool:
        """Whether there are directories to list."""
        return any(map(len, self._pending))

    def next(self) -> Steps[np.ndarray]:
        """List the next directories; return the positions of the blocks in them."""
        level = max(n for n, folders in enumerate(self._pending) if len(folders))
        least, most = _DIRECTORIES
        n = max(least, min(most, _ENTRIES // self._n_entries[level]))
        folders = self._pending[level][:n].tolist()
        self._pending[level] = self._pending[level][n:]
        listings = yield from list_each([join(self._path, *map(str, f)) for f in folders])
        numbers = [self._numbers(entries, level) for entries in listings]
        self._n_entries[level] = max(1, *map(len, numbers))
        each = zip(folders, numbers, strict=True)
        found = [(*folder, number) for folder, own in each for number in own]
        rows = np.array(found, self._dtype).reshape(len(found), level + 1)
        if level == len(self._places) - 1:
            return rows[:, : self.no_rows.shape[1]]
        self._pending[level + 1] = rows
        return self.no_rows

    def _numbers(self, entries: Sequence[Entry], level: int) -> list[int]:
        """Return the numbers that are names of blocks, or of directories of blocks, sorted."""
        is_dir = level < len(self._places) - 1
        part = self._places[level]
        numbers = [
            int(entry.name)
            for entry in entries
            if is_block_name(entry.name)
            and len(entry.name) <= _DIGITS
            and entry.is_dir in (None, is_dir)
        ]
        return sorted(number for number in numbers if number in part)


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


def n_bytes_below(path: str) -> Steps[int]:
    """Count the bytes of all files below a directory; storage must have stamps."""
    n_bytes, pending = 0, [path]
    while pending:
        folders, pending = pending[-_DIRECTORIES[0] :], pending[: -_DIRECTORIES[0]]
        keys = []
        for folder, entries in zip(folders, (yield from list_each(folders)), strict=True):
            below = [entry for entry in entries if entry.is_dir and not entry.is_nested_link]
            pending += [join(folder, entry.name) for entry in below]
            keys += [join(folder, entry.name) for entry in entries if not entry.is_dir]
        n_bytes += yield from n_bytes_of(keys)
    return n_bytes


def n_bytes_of(keys: Sequence[str]) -> Steps[int]:
    """Count the bytes of some files; a missing one has none. Storage must have stamps."""
    stamps: Sequence[tuple[int, ...] | None] = yield [Stamp(key) for key in keys]
    return sum(stamp[2] for stamp in stamps if stamp)  # it contains the size
