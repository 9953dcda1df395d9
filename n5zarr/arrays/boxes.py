"""Split an array into boxes of whole chunks that fit in memory, all or those with stored chunks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

_TOGETHER = 2**16  # places in memory at once, beside the result
_ROWS = 2**10  # of these, as numbers of Python
_ENOUGH = 2**18  # elements of a box, if this many fit
_WASTE = 4  # how many times the least work a preferred box may cost
_PARTS = 64  # boxes of a chunk: in more of them it would be decoded as often

type BoxSlices = tuple[slice, ...]
"""Start and stop along each axis, in elements."""


class StoredChunks(NamedTuple):
    """The chunks of an array that are stored.

    Parameters
    ----------
    unit : tuple of int
        Extent of a chunk, or shard, in elements, in the order of the array.
    rows : iterable of numpy.ndarray
        Their positions in the grid, some at a time: a row for each, in the order of the array.
    """

    unit: tuple[int, ...]
    rows: Iterable[np.ndarray]

    def parts_of(self, box: Sequence[slice]) -> Iterator[BoxSlices]:
        """Yield the parts of a box that lie in these chunks, in elements of the array."""
        for position in (position for rows in self.rows for position in rows.tolist()):
            part = tuple(
                slice(max(i * size, p.start), min((i + 1) * size, p.stop))
                for i, size, p in zip(position, self.unit, box, strict=True)
            )
            if all(p.start < p.stop for p in part):
                yield part


def boxes(shape: Sequence[int], step: Sequence[int]) -> Iterator[BoxSlices]:
    """Yield the boxes of a regular grid, the last axis fastest; those at the end are smaller.

    Parameters
    ----------
    shape, step : sequence of int
        Extent of the array and of a box, in elements, in one order.

    Examples
    --------
    >>> [[(s.start, s.stop) for s in box] for box in boxes((3, 5), (2, 5))]
    [[(0, 2), (0, 5)], [(2, 3), (0, 5)]]
    """
    for place in product(*map(range, _counts(shape, step))):
        yield box_at(place, step, shape)


def box_at(place: Sequence[int], step: Sequence[int], shape: Sequence[int]) -> BoxSlices:
    """Return the box at a position of a regular grid; one at the end is smaller.

    Examples
    --------
    >>> [(s.start, s.stop) for s in box_at((1, 0), (2, 5), (3, 5))]
    [(2, 3), (0, 5)]
    """
    each = zip(place, step, shape, strict=True)
    return tuple(slice(p * size, min((p + 1) * size, n)) for p, size, n in each)


def places_in(box: Sequence[slice | range], step: Sequence[int]) -> list[range]:
    """Return the positions of a regular grid whose boxes touch a box, along each axis.

    Examples
    --------
    >>> places_in((slice(3, 7), slice(4, 4)), (2, 5))
    [range(1, 4), range(0, 0)]
    """
    each = zip(box, step, strict=True)
    return [range(p.start // n, -(-p.stop // n)) if p.start < p.stop else range(0) for p, n in each]


def n_boxes(shape: Sequence[int], step: Sequence[int]) -> int:
    """Count the boxes of a regular grid."""
    return math.prod(_counts(shape, step))


@dataclass(frozen=True, eq=False)
class TouchedBoxes:
    """The boxes of a regular grid that touch a stored chunk; all others hold the fill value only.

    Parameters
    ----------
    shape, step : tuple of int
        Extent of the array and of a box, in elements.
    places : numpy.ndarray
        The positions of the boxes in their grid, a row for each, sorted, the last axis fastest; of
        the smallest type of integers that holds them.
    """

    shape: tuple[int, ...]
    step: tuple[int, ...]
    places: np.ndarray

    def __iter__(self) -> Iterator[BoxSlices]:
        """Yield the boxes, in order."""
        return map(self.box, self.positions())

    def positions(self) -> Iterator[tuple[int, ...]]:
        """Yield the positions of the boxes in their grid, in order."""
        for some in range(0, len(self.places), _ROWS):
            yield from map(tuple, self.places[some : some + _ROWS].tolist())

    def box(self, place: Sequence[int]) -> BoxSlices:
        """Return the box at a position of the grid."""
        return box_at(place, self.step, self.shape)

    @cached_property
    def n_elements(self) -> int:
        """Number of elements in the boxes."""
        ends, sizes = (np.array(each, np.int64) for each in (self.shape, self.step))
        own = np.minimum(sizes, ends - self.places.astype(np.int64) * sizes)
        return int(own.prod(axis=1).sum())

    def others(self) -> Iterator[BoxSlices]:
        """Yield the other boxes, in order."""
        counts = _counts(self.shape, self.step)
        number = 0
        for place in self.positions():
            own = 0
            for at, n in zip(place, counts, strict=True):
                own = own * n + at
            yield from (self.box(_place(other, counts)) for other in range(number, own))
            number = own + 1
        for other in range(number, math.prod(counts)):
            yield self.box(_place(other, counts))


def touched_boxes(
    shape: Sequence[int], steps: Sequence[Sequence[int]], sides: Iterable[StoredChunks]
) -> TouchedBoxes:
    """Find the boxes of a regular grid that touch a stored chunk of any of some arrays.

    Parameters
    ----------
    shape : sequence of int
        Extent of the arrays, in elements.
    steps : sequence of sequence of int
        Possible extents of a box, the preferred one first. Another one is chosen if it costs less
        than a quarter, as few chunks are stored: counts the elements in its boxes, and those of the
        chunks that they decode.
    sides : iterable of StoredChunks
        For each array its chunks, whose extents need not be those of others or of the boxes.

    Examples
    --------
    >>> one = StoredChunks((4,), [np.array([[5], [1]])])
    >>> other = StoredChunks((10,), [np.array([[4]])])
    >>> found = touched_boxes((50,), [(5,)], [one, other])
    >>> found.places.ravel().tolist(), [box[0].start for box in found.others()]
    ([0, 1, 4, 8, 9], [10, 15, 25, 30, 35])
    """
    each = [_Places(shape, step) for step in dict.fromkeys(map(tuple, steps))]
    for side in sides:
        each[1:] = [p for p in each[1:] if math.prod(_counts(side.unit, p.step)) <= _PARTS]
        for rows in side.rows:
            for places in each:
                places.add(rows, side.unit)
    found = [TouchedBoxes(tuple(shape), p.step, p.sorted()) for p in each]
    costs = [b.n_elements + p.n_decoded for b, p in zip(found, each, strict=True)]
    least = min(costs)
    return found[0 if costs[0] <= _WASTE * least else costs.index(least)]


class _Places:
    """Collects the positions of boxes that touch chunks, and counts the elements to decode."""

    def __init__(self, shape: Sequence[int], step: tuple[int, ...]) -> None:
        self.step = step
        self.n_decoded = 0  # a chunk in each box that touches it
        self._shape, self._step = np.array(shape, np.int64), np.array(step, np.int64)
        dtype = np.min_scalar_type(-max(_counts(shape, step), default=1))
        self._found = np.empty((0, len(shape)), dtype)
        self._new: list[np.ndarray] = []
        self._n_new = 0

    def add(self, rows: np.ndarray, unit: Sequence[int]) -> None:
        """Add the boxes that touch some chunks."""
        units = np.array(unit, np.int64)
        begin = rows.astype(np.int64) * units
        last = begin + np.minimum(units, self._shape - begin) - 1  # without overflow
        low, high = begin // self._step, last // self._step
        spans = [int(n) + 1 for n in (high - low).max(axis=0, initial=0)]
        # most often one: chunks lie in one box
        offsets = np.array(list(product(*map(range, spans))), np.int64)
        n = max(1, _TOGETHER // len(offsets))
        for i in range(0, len(rows), n):
            limits = np.repeat(high[i : i + n], len(offsets), axis=0)
            places = (low[i : i + n, None] + offsets).reshape(limits.shape)
            new = places[(places <= limits).all(axis=1)].astype(self._found.dtype)
            self.n_decoded += len(new) * math.prod(unit)
            self._new.append(_sorted(new))
            self._n_new += len(self._new[-1])
            if self._n_new > max(len(self._found), _TOGETHER):  # so that few are sorted again
                self._found, self._new, self._n_new = self.sorted(), [], 0

    def sorted(self) -> np.ndarray:
        """Return the positions, each once."""
        return _sorted(np.concatenate([self._found, *self._new]))


def _sorted(rows: np.ndarray) -> np.ndarray:
    """Sort rows, the last column fastest, and leave out those that are there twice."""
    if not rows.shape[1]:
        return rows[:1]
    rows = rows[np.lexsort(rows.T[::-1])]
    is_new = np.ones(len(rows), bool)
    is_new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return rows[is_new]


def _counts(shape: Sequence[int], step: Sequence[int]) -> list[int]:
    return [-(-n // size) for n, size in zip(shape, step, strict=True)]


def _place(number: int, counts: Sequence[int]) -> tuple[int, ...]:
    """Return the position of a box from its number; numpy's knows numbers below 2**63 only."""
    place = []
    for n in reversed(counts):
        number, own = divmod(number, n)
        place.append(own)
    return tuple(reversed(place))


def least_box(shape: Sequence[int], unit: Sequence[int], source: Sequence[int]) -> tuple[int, ...]:
    """Return the smallest box of whole units that a chunk fits into, so that it is read few times.

    Parameters are those of :func:`box_shape`.

    Examples
    --------
    >>> least_box((100, 100, 100), (10, 10, 64), (25, 5, 64))
    (30, 10, 64)
    """
    each = zip(shape, unit, source, strict=True)
    return tuple(max(1, min(n, -(-chunk // own) * own)) for n, own, chunk in each)


def box_shape(
    shape: Sequence[int], unit: Sequence[int], source: Sequence[int], max_elements: int
) -> tuple[int, ...]:
    """Choose boxes of whole units to read from an array in chunks, as few chunks twice as possible.

    Parameters
    ----------
    shape : sequence of int
        Extent of the array, in elements.
    unit : sequence of int
        Extent of the unit of writing; the box is a multiple of it.
    source : sequence of int
        Extent of the chunks that are read.
    max_elements : int
        How many elements a box may have, unless a unit has more.

    Returns
    -------
    tuple of int
        Extent of a box, in elements, in the order of ``shape``.

    Examples
    --------
    >>> box_shape((100, 100, 100), (10, 10, 10), (20, 10, 64), 100_000)
    (20, 50, 100)
    """
    box = list(unit)
    # the fastest axis first: its neighbours lie next to each other
    for axis in reversed(range(len(box))):
        whole = -(-shape[axis] // unit[axis]) * unit[axis]
        wanted = min(math.lcm(unit[axis], source[axis]), whole)
        room = max_elements * box[axis] // max(1, math.prod(box))
        if wanted <= room:
            box[axis] = wanted
        elif room > unit[axis]:
            box[axis] = min(whole, room // unit[axis] * unit[axis])
    # several small units, so that a box takes longer than what surrounds its reading
    for axis in reversed(range(len(box))):
        n_times = min(max_elements, _ENOUGH) // max(1, math.prod(box))
        box[axis] *= max(1, min(n_times, -(-shape[axis] // max(1, box[axis]))))
    return tuple(max(1, min(size, n)) for size, n in zip(box, shape, strict=True))
