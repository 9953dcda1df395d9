"""Place levels without any description by the ratio of the shapes.

As n5-universe does for OME-NGFF 0.3 (``OmeNgffV03MetadataProcessor``): the ratio is not rounded,
and levels have no shift.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.conventions.levels import renamed_axes, scaled_axes
from n5zarr.conventions.model import Axis, Geometry, Node, axes_of, downsampling_factors

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["by_shapes", "factors_to_first", "ratios", "read"]


def read(node: Node, first: Geometry | None) -> Geometry | None:
    """Scale a level without any description by the ratio of the shapes; None for other datasets."""
    level = node.first
    if level is None or not node.is_like_first or ratios(level.dimensions, node.dimensions) is None:
        return None
    axes = None if first is None else first.axes
    return by_shapes(node.dimensions, level.dimensions, axes, node.names)


def by_shapes(
    dimensions: Sequence[int],
    other: Sequence[int],
    axes: Sequence[Axis] | None,
    names: Sequence[str] | None,
) -> Geometry | None:
    """Scale a level by the ratio of its shape to that of another one; None if there is none.

    Parameters
    ----------
    dimensions, other : sequence of int
        Extent of the level, and of the other one, finer or coarser, in elements.
    axes : sequence of Axis or None
        Those of the other one, N5 order.
    names : sequence of str or None
        Names of the axes of the level; by default those of the other one, or none.
    """
    by: Sequence[float] | None = (1.0,) * len(other)
    if tuple(other) != tuple(dimensions):
        by, finer = ratios(other, dimensions), ratios(dimensions, other)
        by = by or (finer and [1 / f for f in finer])
    if by is None:
        return None
    known = axes_of(len(by), names=("",) * len(by)) if axes is None else axes
    return Geometry(convention="shapes", axes=scaled_axes(renamed_axes(known, names), by))


def factors_to_first(node: Node) -> tuple[float, ...] | None:
    """Return how many elements of ``s0`` one of a level is; None if nothing gives it."""
    by = downsampling_factors(node)
    if by is not None:
        return by
    if node.first is None:
        return None if node.level else (1.0,) * node.ndim
    return ratios(node.first.dimensions, node.dimensions)


def ratios(first: Sequence[int], dimensions: Sequence[int]) -> tuple[float, ...] | None:
    """Return the ratios of two shapes; None unless the second is a plausible level of the first.

    Some axis is shorter, none is longer, and each is shorter by a whole factor, rounded up or down.

    Examples
    --------
    >>> ratios((12, 7, 5), (6, 4, 5)), ratios((12, 7, 5), (12, 7, 5)), ratios((100,), (37,))
    ((2.0, 1.75, 1.0), None, None)
    """
    if len(first) != len(dimensions) or not all((*first, *dimensions)):
        return None
    pairs = [*zip(first, dimensions, strict=True)]
    if all(n == m for n, m in pairs) or not all(_is_level(n, m) for n, m in pairs):
        return None
    return tuple(n / m for n, m in pairs)


def _is_level(n: int, m: int) -> bool:
    return any(n // f <= m <= -(-n // f) for f in (n // m, n // m + 1) if f)
