"""The positions of the stored blocks of a dataset: their number, and what is missing among them.

Memory and time follow the stored blocks, however large the grid is. Tuples are in the order of the
names of blocks: N5 order, and C order for Zarr.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BlockCount", "StoredGrid", "numbers_of", "position_of"]

_FEW = 0.05  # of the blocks in the box around the stored ones
_EXAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCount:
    """How many blocks of a dataset are stored.

    Parameters
    ----------
    path : str
        Path of the dataset, below the root of the container.
    n_stored, n_blocks : int
        Number of stored blocks, and of all blocks of the grid. Those that are missing read as the
        fill value. Of arrays of Zarr with shards, these are shards.
    """

    path: str
    n_stored: int
    n_blocks: int

    @property
    def is_complete(self) -> bool:
        """Whether all blocks are stored."""
        return self.n_stored >= self.n_blocks


class StoredGrid:
    """The positions of the stored blocks of a dataset.

    Parameters
    ----------
    dimensions, block_size : sequence of int
        Extent of the dataset and of a block, in elements.
    """

    def __init__(self, dimensions: Sequence[int], block_size: Sequence[int]) -> None:
        self.dimensions, self.block_size = tuple(dimensions), tuple(block_size)
        sizes = zip(self.dimensions, self.block_size, strict=True)
        self.grid = tuple(-(-n // max(1, b)) for n, b in sizes)
        self.n_blocks = math.prod(self.grid)
        self._dtype = np.min_scalar_type(-max(self.grid, default=1))
        self._pages: list[np.ndarray] = []

    def add(self, positions: Sequence[Sequence[int]] | np.ndarray) -> None:
        """Add the positions of some stored blocks; before anything else is asked."""
        self._pages.append(np.array(positions, self._dtype).reshape(len(positions), len(self.grid)))

    @property
    def n_stored(self) -> int:
        """Number of stored blocks."""
        return sum(map(len, self._pages))

    @cached_property
    def rows(self) -> np.ndarray:
        """A row for each stored block with its position."""
        self._pages = [np.concatenate([np.empty((0, len(self.grid)), self._dtype), *self._pages])]
        return self._pages[0]

    @cached_property
    def box(self) -> tuple[range, ...]:
        """The smallest part of the grid that holds all stored blocks, of which there are some."""
        ends = zip(self.rows.min(0).tolist(), self.rows.max(0).tolist(), strict=True)
        return tuple(range(first, last + 1) for first, last in ends)

    @cached_property
    def n_gaps(self) -> int:
        """Number of blocks that are missing in the box."""
        return math.prod(map(len, self.box)) - self.n_stored if self.n_stored else 0

    @property
    def has_many_gaps(self) -> bool:
        """Whether so many blocks are missing in the box that the writer must have omitted them."""
        return self.n_gaps > max(1, _FEW * (self.n_gaps + self.n_stored))

    def missing_in(self, box: Sequence[range]) -> list[tuple[int, ...]]:
        """Return the first missing positions in a box that holds all stored blocks."""
        sizes = [len(part) for part in box]
        numbers = numbers_of(self.rows, [part.start for part in box], sizes)
        first, last = np.array([[-1], [math.prod(sizes)]], numbers.dtype)
        ends = np.concatenate([first, numbers, last])
        before = np.flatnonzero(np.diff(ends) > 1)[:_EXAMPLES]
        return [position_of(int(n) + 1, box) for n in ends[before]]


def numbers_of(rows: np.ndarray, starts: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
    """Return the numbers of positions in a box, the last axis fastest; sorted, each once."""
    # numpy has no integers for larger grids
    dtype = np.dtype(np.int64 if math.prod(sizes) < 2**62 else object)
    numbers = np.zeros(len(rows), dtype)
    for column, start, size in zip(rows.T, starts, sizes, strict=True):
        numbers = numbers * size + (column.astype(dtype) - start)
    return np.unique(numbers)


def position_of(number: int, box: Sequence[range]) -> tuple[int, ...]:
    """Return the position of a number of :func:`numbers_of`."""
    position: list[int] = []
    for part in reversed(box):
        number, index = divmod(number, len(part))
        position.append(part[index])
    return tuple(reversed(position))
