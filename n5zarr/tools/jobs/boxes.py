"""Split an array into boxes of whole chunks that fit in memory."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Box", "box_shape", "boxes", "n_boxes"]

type Box = tuple[slice, ...]
"""Start and stop along each axis, in elements."""


def boxes(shape: Sequence[int], step: Sequence[int]) -> Iterator[Box]:
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
    starts = [range(0, n, size) for n, size in zip(shape, step, strict=True)]
    for corner in product(*starts):
        ends = (min(c + s, n) for c, s, n in zip(corner, step, shape, strict=True))
        yield tuple(slice(c, e) for c, e in zip(corner, ends, strict=True))


def n_boxes(shape: Sequence[int], step: Sequence[int]) -> int:
    """Count the boxes of a regular grid."""
    return math.prod(-(-n // size) for n, size in zip(shape, step, strict=True))


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
    (20, 10, 100)
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
    return tuple(max(1, min(size, n)) for size, n in zip(box, shape, strict=True))
