"""Boxes: parse selections of integers, slices and an ellipsis."""

from __future__ import annotations

from operator import index, sub
from typing import NamedTuple, Self

import numpy as np

__all__ = ["Box"]


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

    def places(self, size: tuple[int, ...]) -> list[range]:
        """Return the coordinates of the chunks of the box along each axis of the grid."""
        return [
            range(begin // n, (end - 1) // n + 1) if begin < end else range(0)
            for begin, end, n in zip(self.start, self.stop, size, strict=True)
        ]

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
