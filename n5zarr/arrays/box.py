"""Boxes: parse selections into them, and group boxes of one shape by the blocks that hold them.

zarr passes chunks to a codec pipeline in batches, which may form a box, too. An item of a batch is
the chunk's store path, its specification, the selection in the chunk, the selection in the output,
and whether the chunk is complete.

A selection of many positions (points, lists along an axis, chunks) that is out of bounds, or of
another kind, is None: zarr then handles it, or says what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index, sub
from typing import TYPE_CHECKING, NamedTuple, Self, TypeGuard

import numpy as np
from zarr.errors import BoundsCheckError

from n5zarr.arrays.open_dataset import OpenDataset
from n5zarr.arrays.placing import warn

if TYPE_CHECKING:
    from n5zarr._zarr import OrthogonalSelection


class Box(NamedTuple):
    """A box of elements, perhaps with steps.

    Parameters
    ----------
    start, stop : tuple of int
        First element, and the one after the last.
    dropped : tuple of int
        The axes that the result drops.
    step : tuple of int, optional
        Distance of the elements along each axis, above 0; None if all are 1. The methods are for
        boxes without steps.
    """

    start: tuple[int, ...]
    stop: tuple[int, ...]
    dropped: tuple[int, ...] = ()
    step: tuple[int, ...] | None = None

    @classmethod
    def of(
        cls, selection: object, shape: tuple[int, ...], *, may_be_empty: bool = False
    ) -> Self | None:
        """Parse a selection; None if it is not a box, or is empty, unless it may be.

        Integers, slices with steps above 0, and at most one ellipsis select a box.
        """
        parts = selection if isinstance(selection, tuple) else (selection,)
        if len(parts) != len(shape) or any(part is Ellipsis for part in parts):
            parts = _with_all_axes(parts, len(shape))
        if len(parts) != len(shape):
            return None
        start, stop, step, dropped = [], [], [], []
        for axis, (part, n) in enumerate(zip(parts, shape, strict=True)):
            bounds = _bounds(part, n)
            if bounds is None or (bounds[0] == bounds[1] and not may_be_empty):
                return None
            start.append(bounds[0])
            stop.append(bounds[1])
            step.append(bounds[2])
            if not isinstance(part, slice):
                dropped.append(axis)
        has_steps = step.count(1) < len(step)
        return cls(tuple(start), tuple(stop), tuple(dropped), tuple(step) if has_steps else None)

    @classmethod
    def from_shape(
        cls, start: tuple[int, ...], shape: tuple[int, ...], step: tuple[int, ...] | None = None
    ) -> Self:
        """Make the box that has a number of elements along each axis."""
        each = zip(start, shape, step or (1,) * len(start), strict=True)
        return cls(start, tuple(first + (n - 1) * by + 1 for first, n, by in each), (), step)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent in elements, with the axes that the result drops."""
        if self.step is None:
            return tuple(map(sub, self.stop, self.start))
        return tuple(
            len(range(*each)) for each in zip(self.start, self.stop, self.step, strict=True)
        )

    def within(self, position: tuple[int, ...], size: tuple[int, ...]) -> Box:
        """Return the part of the box that lies in a chunk.

        Parameters
        ----------
        position : tuple of int
            Position of the chunk in the grid.
        size : tuple of int
            Shape of a full chunk, in elements.
        """
        corners = [
            (max(begin, place * n), min(end, (place + 1) * n))
            for begin, end, place, n in zip(self.start, self.stop, position, size, strict=True)
        ]
        return Box(tuple(a for a, _ in corners), tuple(b for _, b in corners))

    def places(self, size: tuple[int, ...]) -> list[Sequence[int]]:
        """Return the coordinates of the chunks of the box, also with steps, along each axis."""

        def of_axis(each: range, n: int) -> Sequence[int]:
            if not each or each.step > max(1, n - 1):  # chunks between these have no element
                return [k // n for k in each]
            return range(each[0] // n, each[-1] // n + 1)

        steps = self.step or (1,) * len(size)
        return list(map(of_axis, map(range, self.start, self.stop, steps), size))

    def inner(self, part: tuple[slice, ...]) -> tuple[slice, ...]:
        """Return the selection in the array of a part of the box; see :meth:`relative_to`."""
        return tuple(
            slice(origin + p.start, origin + p.stop)
            for origin, p in zip(self.start, part, strict=True)
        )

    def relative_to(self, other: Box) -> tuple[slice, ...]:
        """Return the selection of this box in an array that holds another box."""
        return tuple(
            slice(begin - origin, end - origin)
            for begin, end, origin in zip(self.start, self.stop, other.start, strict=True)
        )


def _with_all_axes(parts: tuple[object, ...], ndim: int) -> tuple[object, ...]:
    """Replace the first ellipsis, or the missing end, by whole axes."""
    at = next((k for k, part in enumerate(parts) if part is Ellipsis), len(parts))
    rest = parts[at + 1 :]
    return (*parts[:at], *(slice(None),) * (ndim - at - len(rest)), *rest)


def _bounds(part: object, n: int) -> tuple[int, int, int] | None:
    """Return begin, end and step of a selection along one axis; None if it is neither."""
    if isinstance(part, slice):
        try:
            begin, end, step = part.indices(n)
        except (TypeError, ValueError):  # bounds that are no integers; a step of 0
            return None
        if step > 0 and begin >= end:
            return begin, begin, 1
        # a step over the whole axis selects one element, and may be any number
        return (begin, end, min(step, n)) if step > 0 else None
    if not isinstance(part, int | np.integer) or isinstance(part, bool):
        return None
    begin = index(part) + (n if part < 0 else 0)
    return (begin, begin + 1, 1) if 0 <= begin < n else None


class BatchBox(NamedTuple):
    """A batch that is one box of elements.

    Parameters
    ----------
    start, shape : tuple of int
        First element and extent of the box in the array.
    selection : tuple of slice or None
        Place of the box in the output; None for an axis that the output does not have.
    """

    start: tuple[int, ...]
    shape: tuple[int, ...]
    selection: tuple[slice | None, ...]

    def within(self, output: np.ndarray) -> np.ndarray | None:
        """Return a view of the part of the output, with all axes of the array.

        None if the output does not have the size of the box.
        """
        kept = [part for part in self.selection if part is not None]
        if output.ndim != len(kept):
            return None
        part: np.ndarray = output[self.selection]
        return part if part.shape == self.shape else None


class Groups(NamedTuple):
    """Boxes of one shape, grouped by the blocks that hold their elements; all axes in one order.

    Parameters
    ----------
    starts : numpy.ndarray
        First element of each box, shape (boxes, axes), int64.
    places : numpy.ndarray
        Grid position of each block, shape (blocks, axes), int64.
    members : numpy.ndarray
        Numbers of the boxes that want elements of the first block, of the second and so on, int64.
    ends : numpy.ndarray
        For each block, the number of members of the blocks up to it, int64.
    """

    starts: np.ndarray
    places: np.ndarray
    members: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, starts: np.ndarray, shape: Sequence[int], block_size: Sequence[int]) -> Self:
        """Group boxes that have at least one element.

        Examples
        --------
        >>> groups = Groups.of(np.array([[0, 3], [1, 0]]), (2, 2), (2, 4))
        >>> groups.places.tolist(), groups.members.tolist(), groups.ends.tolist()
        ([[0, 0], [0, 1], [1, 0]], [0, 1, 0, 1], [2, 3, 4])
        """
        size = np.array(block_size, "i8")
        first = starts // size
        last = first if max(shape, default=1) == 1 else (starts + np.subtract(shape, 1)) // size
        members, places = np.arange(len(starts)), first
        for axis in range(len(block_size)):  # a box in several blocks becomes several members
            n = last[members, axis] - places[:, axis] + 1
            if n.max() > 1:
                within = np.arange(n.sum()) - np.repeat(n.cumsum() - n, n)
                members, places = np.repeat(members, n), np.repeat(places, n, axis=0)
                places[:, axis] += within
        order, is_last = _sorted(places)
        return cls(starts, places[order[is_last]], members[order], np.flatnonzero(is_last) + 1)

    def of_block(self, k: int) -> np.ndarray:
        """Return the numbers of the boxes that want elements of a block."""
        return self.members[self.ends[k - 1] if k else 0 : self.ends[k]]

    def only(self, blocks: Sequence[int]) -> Self:
        """Return the groups of some blocks."""
        members = [self.of_block(k) for k in blocks]
        return self._replace(
            places=self.places[list(blocks)],
            members=np.concatenate(members),
            ends=np.cumsum(list(map(len, members))),
        )


def bounds_of(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest position along each axis; numpy is slow for short rows."""
    axes = positions.T
    return np.array([axis.min() for axis in axes]), np.array([axis.max() for axis in axes])


def _sorted(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort grid positions; return the order, and which are the last of their kind in it."""
    low, high = bounds_of(places)
    extent = (high - low + 1).tolist()
    is_last = np.ones(len(places), bool)
    try:
        numbers = np.ravel_multi_index((places - low).T, extent)
    except ValueError:  # more positions than integers
        order = np.lexsort(places.T[::-1])
        is_last[:-1] = (np.diff(places[order], axis=0) != 0).any(axis=1)
    else:
        # small integers are sorted much faster
        numbers = numbers.astype(np.min_scalar_type(numbers.max()))
        order = np.argsort(numbers, kind="stable")
        is_last[:-1] = np.diff(numbers[order]) != 0
    return order, is_last


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


def is_plain(selection: object, ndim: int) -> TypeGuard[OrthogonalSelection]:
    """Whether a selection has only integers and slices, at least one and not too many."""
    parts = selection if type(selection) is tuple else (selection,)
    if not 0 < len(parts) <= ndim:
        return False
    return all(type(part) is slice or type(part) is int for part in parts)


def check_inside(selection: object, shape: tuple[int, ...]) -> None:
    """Refuse an index outside, and warn of a slice behind the end, which selects nothing.

    Raises
    ------
    zarr.errors.BoundsCheckError
        An index is outside.
    """
    parts = selection if isinstance(selection, tuple) else (selection,)
    for axis, (part, n) in enumerate(zip(parts, shape, strict=False)):
        expected = f"axis {axis}: expected elements of 0:{n}, got "
        if isinstance(part, slice):
            if (part.stop or 0) > (part.start or 0) >= n > 0:
                warn(f"{expected}{part.start}:{part.stop}, which is empty")
        elif not isinstance(part, int):  # an ellipsis
            return
        elif not -n <= part < n:
            order = "C order is z, y, x, the reverse of N5's dimensions"
            raise BoundsCheckError(f"{expected}{part}; {order}")
