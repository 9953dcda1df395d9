"""Group boxes of one shape by the blocks that hold their elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Groups", "bounds_of"]


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
