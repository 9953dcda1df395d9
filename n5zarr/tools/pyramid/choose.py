"""Choose the levels of a pyramid: their number and factors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from n5zarr.errors import N5UnrepresentableError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ChosenLevel", "choose_levels"]

_ALIKE = math.sqrt(2)  # voxel sizes closer to each other than this are halved together
_SMALL = 64  # elements along an axis that need no coarser level, for any block size
_MOST = 2**53  # elements of s0: attributes are numbers of 64 bits


@dataclass(frozen=True)
class ChosenLevel:
    """A level of a pyramid; all tuples in the order of the array.

    Parameters
    ----------
    factors : tuple of int
        Number of elements of the previous level that become one, along each axis.
    total : tuple of int
        Number of elements of ``s0`` that become one.
    shape : tuple of int
        Extent in elements: that of the previous level, divided by the factors and rounded up.
    """

    factors: tuple[int, ...]
    total: tuple[int, ...]
    shape: tuple[int, ...]


def choose_levels(
    shape: Sequence[int],
    block: Sequence[int],
    voxel: Sequence[float | None],
    *,
    factors: Sequence[int] | None = None,
    n_levels: int | None = None,
) -> list[ChosenLevel]:
    """Choose the levels below ``s0``.

    Parameters
    ----------
    shape : sequence of int
        Extent of ``s0``, in elements. It and all that follows are in the order of the array.
    block : sequence of int
        Extent of a block, in elements.
    voxel : sequence of float or None
        Distance of elements along axes of space, in one unit; None for others, which stay.
    factors : sequence of int, optional
        The same for each level. By default 2 along the axes whose voxels are shorter than the
        square root of 2 times the shortest; so all voxels become as long as those of the coarsest
        axis, and then all axes are halved.
    n_levels : int, optional
        How many; by default until one is at most a block, or 64 elements, along each such axis.

    Returns
    -------
    list of ChosenLevel
        The finest first.

    Raises
    ------
    N5UnrepresentableError
        The factors do not fit the shape, or there are too many levels (``kind="option"``).

    Examples
    --------
    >>> for level in choose_levels((40, 960, 1280), (16, 64, 64), (20.0, 8.0, 8.0), n_levels=3):
    ...     print(level.factors, level.total, level.shape)
    (1, 2, 2) (1, 2, 2) (40, 480, 640)
    (2, 2, 2) (2, 4, 4) (20, 240, 320)
    (2, 2, 2) (4, 8, 8) (10, 120, 160)
    """
    _check(factors, n_levels, len(shape))
    levels: list[ChosenLevel] = []
    extent, total, sizes = tuple(shape), (1,) * len(shape), list(voxel)
    wanted = [f > 1 for f in factors] if factors else [v is not None for v in voxel]
    while len(levels) != n_levels:
        triples = zip(extent, block, wanted, strict=True)
        if n_levels is None and all(n <= max(b, _SMALL) for n, b, is_one in triples if is_one):
            break
        by = tuple(factors) if factors else _halved(extent, sizes)
        coarser = tuple(-(-n // f) for n, f in zip(extent, by, strict=True))
        total = tuple(t * f for t, f in zip(total, by, strict=True))
        sizes = [None if s is None else s * f for s, f in zip(sizes, by, strict=True)]
        if max(total) > _MOST:
            message = f"factors: expected at most 2**53 elements of s0 for one, got {total}"
            raise N5UnrepresentableError(message, kind="option")
        if coarser == extent:
            message = f"levels: expected at most {len(levels)}, got {n_levels}: "
            message += f"s{len(levels)} has the shape {extent}"
            raise N5UnrepresentableError(message, kind="option")
        extent = coarser
        levels.append(ChosenLevel(by, total, extent))
    return levels


def _halved(shape: Sequence[int], voxel: Sequence[float | None]) -> tuple[int, ...]:
    """Return factors that halve the spatial axes with the shortest voxels and several elements."""
    known = {i: abs(v) for i, v in enumerate(voxel) if v is not None and shape[i] > 1}
    shortest = min(known.values(), default=0.0)
    return tuple(
        2 if i in known and known[i] <= _ALIKE * shortest else 1 for i in range(len(shape))
    )


def _check(factors: Sequence[int] | None, n_levels: int | None, ndim: int) -> None:
    if factors is not None and (len(factors) != ndim or min(factors) < 1 or max(factors) < 2):
        message = (
            f"factors: expected {ndim}, one for each axis in the order of the array, of at least "
            f"1, and one above 1, got {list(factors)}"
        )
        raise N5UnrepresentableError(message, kind="option")
    if n_levels is not None and n_levels < 1:
        message = f"levels: expected 'auto', or a number above 0, got {n_levels}"
        raise N5UnrepresentableError(message, kind="option")
