"""Count the stored blocks of datasets, and find gaps that look like lost files.

A missing block is legal, and reads as the fill value: programs need not write blocks that hold
nothing else. So nothing proves that a block was lost. Suspicious is

- a block that is missing in the box around the stored ones, if few are: up to 5 %, or one. Masks
  and segmentations of which only the foreground is stored have more gaps, and no note;
- a block that is missing where another level of the same pyramid has some. This says nothing if the
  other level has all blocks, so that its writer stored the fill value, too, and this one has many
  gaps, so that its writer did not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.metadata.levels import names_of_levels
from n5zarr.tools.validate.findings import BlockCount, Finding, finding

_EXAMPLES = 3
_FEW = 0.05  # of the blocks in the box around the stored ones
_EXCUSE = "legal if they hold only the fill value, else files were lost"


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
        numbers = _numbers_of(self.rows, [part.start for part in box], sizes)
        first, last = np.array([[-1], [math.prod(sizes)]], numbers.dtype)
        ends = np.concatenate([first, numbers, last])
        before = np.flatnonzero(np.diff(ends) > 1)[:_EXAMPLES]
        return [_position_of(int(n) + 1, box) for n in ends[before]]


def _numbers_of(rows: np.ndarray, starts: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
    """Return the numbers of positions in a box, the last axis fastest; sorted, each once."""
    # numpy has no integers for larger grids
    dtype = np.dtype(np.int64 if math.prod(sizes) < 2**62 else object)
    numbers = np.zeros(len(rows), dtype)
    for column, start, size in zip(rows.T, starts, sizes, strict=True):
        numbers = numbers * size + (column.astype(dtype) - start)
    return np.unique(numbers)


def _position_of(number: int, box: Sequence[range]) -> tuple[int, ...]:
    """Return the position of a number of :func:`_numbers_of`."""
    position: list[int] = []
    for part in reversed(box):
        number, index = divmod(number, len(part))
        position.append(part[index])
    return tuple(reversed(position))


# ---------------------------------------------------------------------- levels


def _blocks_below(fine: StoredGrid, coarse: StoredGrid) -> tuple[int, ...] | None:
    """Count the blocks of a level along each axis of a block of the next one.

    None if the blocks do not lie in each other, or the levels are not of one image.
    """
    if len(fine.grid) != len(coarse.grid) or not (fine.n_blocks and coarse.n_blocks):
        return None
    counts = []
    for axis in range(len(fine.grid)):
        n_fine, n_coarse = fine.dimensions[axis], coarse.dimensions[axis]
        factor = max(1, round(n_fine / n_coarse))
        size = factor * coarse.block_size[axis]
        if coarse.grid[axis] == 1:
            counts.append(fine.grid[axis])
        elif size % fine.block_size[axis]:
            return None
        else:
            counts.append(size // fine.block_size[axis])
        if abs(n_fine - factor * n_coarse) >= factor:
            return None
    return tuple(counts)


class _Lack(NamedTuple):
    """What a dataset lacks: a number of blocks, and the sentence that says so."""

    n: int
    text: str


def _between(
    names: tuple[str, str], fine: StoredGrid, coarse: StoredGrid
) -> tuple[_Lack | None, _Lack | None]:
    """Say what a level lacks where the next one has blocks, and the other way round."""
    counts = _blocks_below(fine, coarse)
    if counts is None:
        return None, None
    starts, sizes = [0] * len(coarse.grid), coarse.grid
    above = fine.rows // np.array(counts, np.int64)
    # levels may be rounded down, so that the last blocks have none above
    above = above[(above < np.array(sizes)).all(1)]
    wanted, stored = (_numbers_of(rows, starts, sizes) for rows in (above, coarse.rows))

    def lack(target: StoredGrid, other: StoredGrid, some: np.ndarray, text: str) -> _Lack | None:
        if not len(some) or (target.has_many_gaps and not other.has_many_gaps):
            return None
        first = [_position_of(int(n), [range(size) for size in sizes]) for n in some[:_EXAMPLES]]
        return _Lack(len(some), text.replace("{}", _text(first, len(some))))

    not_below = _without(stored, wanted)
    not_above = _without(wanted, stored)
    return (
        lack(fine, coarse, not_below, f"nothing is stored in place of {{}} of {names[1]}"),
        lack(coarse, fine, not_above, f"missing where {names[0]} has blocks: {{}}"),
    )


def _without(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the numbers that are not among others; both are sorted."""
    if not len(others):
        return some
    # numpy.setdiff1d takes time squared for objects
    at = np.searchsorted(others, some)
    is_new: np.ndarray = others[np.minimum(at, len(others) - 1)] != some
    return np.asarray(some[is_new])


def _text(positions: Sequence[tuple[int, ...]], n: int) -> str:
    """Count blocks, and name some.

    Examples
    --------
    >>> _text([(1, 2)], 1), _text([(0, 1), (2, 0)], 7)
    ('block 1/2', '7 blocks (0/1, 2/0, ...)')
    """
    names = ["/".join(map(str, position)) or "0" for position in positions]
    if n == 1:
        return f"block {names[0]}"
    return f"{n} blocks ({', '.join(names)}{', ...' if n > len(names) else ''})"


# ---------------------------------------------------------------------- datasets


@dataclass
class Gaps:
    """The stored blocks of all datasets of a check.

    Parameters
    ----------
    grids : dict
        The blocks of each dataset, by path.
    groups : dict
        The attributes of groups that list levels, by path.
    """

    grids: dict[str, StoredGrid] = field(default_factory=dict)
    groups: dict[str, Mapping[str, JSON]] = field(default_factory=dict)

    def counts(self) -> tuple[BlockCount, ...]:
        """Return the numbers of stored and of all blocks of each dataset."""
        return tuple(
            BlockCount(path=path, n_stored=each.n_stored, n_blocks=each.n_blocks)
            for path, each in self.grids.items()
        )

    def errors(self) -> Iterator[Finding]:
        """Yield one finding for each dataset that lacks blocks."""
        for path, each in self.grids.items():
            n = each.n_blocks - each.n_stored
            if n > 0:
                missing = _text(each.missing_in([range(size) for size in each.grid]), n)
                blocks = f"{each.n_blocks} block{'s' * (each.n_blocks > 1)}"
                message = f"expected {blocks}, got {each.n_stored}, without {missing}"
                yield finding("missing-blocks", path, message, severity="error")

    def notes(self) -> Iterator[Finding]:
        """Yield one finding for each dataset with suspicious gaps."""
        lacking = self._of_levels()
        for path, each in self.grids.items():
            said = lacking.get(path, [])
            is_told = any(lack.n >= each.n_gaps for lack in said)
            if each.n_gaps and not each.has_many_gaps and not is_told:
                missing = _text(each.missing_in(each.box), each.n_gaps)
                text = f"missing among {each.n_stored} that are stored: {missing}"
                said = [_Lack(each.n_gaps, text), *said]
            if said:
                message = "; ".join(lack.text for lack in said)
                yield finding("missing-blocks", path, f"{message}; {_EXCUSE}")

    def _of_levels(self) -> dict[str, list[_Lack]]:
        """Return what each level lacks of which the next finer or coarser one has some."""
        lacking: dict[str, list[_Lack]] = {}
        for two in (two for levels in self._pyramids() for two in pairwise(levels)):
            fine, coarse = (path.rpartition("/")[2] for path in two)
            grids = (self.grids[path] for path in two)
            for path, lack in zip(two, _between((fine, coarse), *grids), strict=True):
                if lack is not None:
                    lacking.setdefault(path, []).append(lack)
        return lacking

    def _pyramids(self) -> Iterator[list[str]]:
        """Yield the paths of the levels of each image, the finest first."""
        names: dict[str, list[str]] = {}
        for path in self.grids:
            group, _, name = path.rpartition("/")
            names.setdefault(group, []).append(name)
        for group, each in names.items():
            levels = names_of_levels(each, self.groups.get(group, {})) if len(each) > 1 else []
            paths = [join(group, name) for name in levels]
            yield sorted(paths, key=lambda path: -math.prod(self.grids[path].dimensions))
