"""Parse selections of many positions into boxes of one shape: points, lists along an axis, chunks.

A selection that is out of bounds, or of another kind, is None: zarr then handles it, or says what
is wrong.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from n5zarr.arrays.box import Box
from n5zarr.arrays.groups import bounds_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.arrays.open_dataset import OpenDataset

__all__ = ["Points", "Rows", "box_of_chunks", "points_of", "points_of_mask", "rows_of"]


_PER_BLOCK = 300  # boxes in a block, on average, that take as long to group as zarr's selection
_MAX_NDIM = 31  # numpy's arrays have at most 64 axes; here, one more for each list


class Points(NamedTuple):
    """Single elements.

    Parameters
    ----------
    coords : numpy.ndarray
        Their positions, shape (points, axes), int64.
    shape : tuple of int
        Shape of the result.
    """

    coords: np.ndarray
    shape: tuple[int, ...]

    def is_worth_grouping(self, dataset: OpenDataset) -> bool:
        """Whether grouping the points by block takes less time than zarr's own selection."""
        (low, high), chunk_shape = bounds_of(self.coords), dataset.view.chunk_shape
        n_blocks: int = math.prod((high // chunk_shape - low // chunk_shape + 1).tolist())
        return len(self.coords) <= _PER_BLOCK * n_blocks


class Rows(NamedTuple):
    """The parts of a box at some positions along some of its axes.

    Parameters
    ----------
    positions : dict
        For each of these axes, the positions, int64.
    box : Box
        The box, of one element along these axes.
    """

    positions: dict[int, np.ndarray]
    box: Box

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of positions along each of these axes."""
        return tuple(map(len, self.positions.values()))

    def is_worth_grouping(self, dataset: OpenDataset) -> bool:
        """Whether grouping these parts by block takes less time than zarr's own selection."""
        n_parts = n_blocks = 1
        for axis, size in enumerate(dataset.view.chunk_shape):
            if axis in self.positions:
                n_parts *= len(self.positions[axis])
                n_blocks *= len(np.unique(self.positions[axis] // size))
            else:
                n_places = (self.box.stop[axis] - 1) // size - self.box.start[axis] // size + 1
                n_parts *= n_places
                n_blocks *= n_places
        return n_parts <= _PER_BLOCK * n_blocks

    @property
    def starts(self) -> np.ndarray:
        """First element of each part, the last of these axes fastest; shape (parts, axes)."""
        starts = np.tile(np.array(self.box.start, "i8"), (math.prod(self.shape), 1))
        for axis, each in zip(
            self.positions, np.meshgrid(*self.positions.values(), indexing="ij"), strict=True
        ):
            starts[:, axis] = each.ravel()
        return starts


def points_of(selection: object, shape: tuple[int, ...]) -> Points | None:
    """Parse one list of integers for each axis; they are broadcast.

    Examples
    --------
    >>> points_of(([0, 2], [[1], [-1]]), (3, 5)).coords.tolist()
    [[0, 1], [2, 1], [0, 4], [2, 4]]
    """
    parts = selection if isinstance(selection, tuple) else (selection,)
    if len(parts) != len(shape) or len(shape) > _MAX_NDIM:
        return None
    axes = [_positions(part, n) for part, n in zip(parts, shape, strict=True)]
    known = [axis for axis in axes if axis is not None]
    try:
        each = np.broadcast_arrays(*known)
    except ValueError:
        return None
    if len(known) < len(axes) or not each or each[0].size == 0:
        return None
    return Points(np.stack([axis.ravel() for axis in each], axis=1), each[0].shape)


def points_of_mask(selection: object, shape: tuple[int, ...]) -> Points | None:
    """Parse a boolean array of the shape of the array; None also if it has no element."""
    mask = selection[0] if isinstance(selection, tuple) and len(selection) == 1 else selection
    if type(mask) is not np.ndarray or mask.dtype != bool or mask.shape != shape:
        return None
    places = np.flatnonzero(mask)  # several times as fast as with all axes
    if places.size == 0 or not 0 < len(shape) <= _MAX_NDIM:
        return None
    return Points(np.stack(np.unravel_index(places, shape), axis=1), places.shape)


def rows_of(selection: object, shape: tuple[int, ...]) -> Rows | None:
    """Parse lists of integers or booleans along some axes, and a box along the others."""
    parts = list(selection) if isinstance(selection, tuple) else [selection]
    is_short = len(parts) <= len(shape) <= _MAX_NDIM
    if not is_short or any(part is Ellipsis for part in parts):
        return None
    positions = {}
    for axis, part in enumerate(parts):
        if type(part) in (list, np.ndarray):
            found = np.asarray(part)
            is_mask = found.dtype == bool and found.shape == (shape[axis],)
            known = _positions(np.flatnonzero(found) if is_mask else found, shape[axis])
            if known is None or found.ndim != 1 or known.size == 0:
                return None
            positions[axis], parts[axis] = known, slice(0, 1)
    box = Box.of(tuple(parts), shape)
    return Rows(positions, box) if positions and box is not None and box.step is None else None


def box_of_chunks(
    selection: object, shape: tuple[int, ...], chunk_shape: Sequence[int]
) -> Box | None:
    """Parse chunks of a regular grid: integers and slices without steps.

    Examples
    --------
    >>> box_of_chunks((-1, slice(1, None)), (5, 7), (2, 3))
    Box(start=(4, 3), stop=(5, 7), dropped=(), step=None)
    """
    grid = tuple(-(-n // size) for n, size in zip(shape, chunk_shape, strict=True))
    chunks = Box.of(selection, grid)
    parts = selection if isinstance(selection, tuple) else (selection,)
    ends = [end for part in parts if isinstance(part, slice) for end in (part.start, part.stop)]
    is_negative = any(end is not None and end < 0 for end in ends)  # zarr refuses some of these
    if chunks is None or chunks.step is not None or is_negative:
        return None
    start = tuple(place * size for place, size in zip(chunks.start, chunk_shape, strict=True))
    stops = zip(chunks.stop, chunk_shape, shape, strict=True)
    return Box(start, tuple(min(place * size, n) for place, size, n in stops))


def _positions(part: object, n: int) -> np.ndarray | None:
    """Return positions along an axis, counted from its begin; None if one is out of bounds."""
    if type(part) not in (list, int, np.ndarray) and not isinstance(part, np.integer):
        return None
    found = np.asarray(part)
    if found.dtype.kind not in "iu":
        return None
    found = np.atleast_1d(found)
    if found.size and (found.max() >= n or found.min() < -n):
        return None
    found = found.astype("i8")
    return np.where(found < 0, found + n, found)
