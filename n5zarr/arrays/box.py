"""Selections that are boxes: integers, slices without steps, and ellipses."""

from __future__ import annotations

from operator import index
from typing import NamedTuple, Self

import numpy as np

__all__ = ["Box"]


class Box(NamedTuple):
    """A selection that is a box: where it begins and ends, and which axes the result drops."""

    start: tuple[int, ...]
    stop: tuple[int, ...]
    dropped: tuple[int, ...]

    @classmethod
    def of(cls, selection: object, shape: tuple[int, ...]) -> Self | None:
        """Understand integers, slices without steps, and one ellipsis; None for anything else."""
        parts = selection if isinstance(selection, tuple) else (selection,)
        n_missing = len(shape) - len(parts)
        if any(part is Ellipsis for part in parts):
            at = next(i for i, part in enumerate(parts) if part is Ellipsis)
            parts = (*parts[:at], *(slice(None),) * (n_missing + 1), *parts[at + 1 :])
        else:
            parts = (*parts, *(slice(None),) * n_missing)
        if len(parts) != len(shape):
            return None
        found = list(map(_bounds, parts, shape))
        if None in found:
            return None
        bounds = [b for b in found if b is not None]
        dropped = tuple(i for i, part in enumerate(parts) if not isinstance(part, slice))
        return cls(tuple(b for b, _ in bounds), tuple(e for _, e in bounds), dropped)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent, with the axes that are dropped."""
        return tuple(end - begin for begin, end in zip(self.start, self.stop, strict=True))

    def within(self, position: tuple[int, ...], size: tuple[int, ...]) -> Box:
        """Return what of it lies in a chunk."""
        corners = [
            (max(begin, place * n), min(end, (place + 1) * n))
            for begin, end, place, n in zip(self.start, self.stop, position, size, strict=True)
        ]
        return Box(tuple(a for a, _ in corners), tuple(b for _, b in corners), ())

    @property
    def slices(self) -> tuple[slice, ...]:
        """The selection of it, without dropping axes."""
        return tuple(map(slice, self.start, self.stop))

    def relative_to(self, other: Box) -> tuple[slice, ...]:
        """Return the selection of it in an array that holds another box."""
        return tuple(
            slice(begin - origin, end - origin)
            for begin, end, origin in zip(self.start, self.stop, other.start, strict=True)
        )


def _bounds(part: object, n: int) -> tuple[int, int] | None:
    """Return begin and end of a selection along an axis; None if it is no run of elements."""
    if isinstance(part, slice):
        try:
            begin, end, step = part.indices(n)
        except TypeError:
            return None
        return (begin, end) if step == 1 and begin < end else None
    if not isinstance(part, int | np.integer) or isinstance(part, bool):
        return None
    begin = index(part) + (n if part < 0 else 0)
    return (begin, begin + 1) if 0 <= begin < n else None
