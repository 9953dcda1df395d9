"""Place levels without a position of their own relative to the finest level, ``s0``.

By ``downsamplingFactors``, as n5-universe's ``N5GenericSingleScaleMetadataParser``: an element is
the average of as many of ``s0``, so the first one is shifted by (factor - 1) / 2 of these; an
``offset`` replaces the shift. n5-spark and BigStitcher-Spark write such levels. Without factors, by
the ratio of the shapes and without a shift, as n5-universe does for OME-NGFF 0.3
(``OmeNgffV03MetadataProcessor``). Where ``s0`` has no position, either, positions count its
elements.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from n5zarr.conventions.model import Geometry, Node, axes_of, factors, offset_at, shifted, unit_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.conventions.model import Axis

__all__ = [
    "KEYS",
    "by_shapes",
    "factors_to_first",
    "ratios",
    "read",
    "read_first",
    "read_shapes",
    "scaled",
]

KEYS = ("downsamplingFactors", "offset")


def read(node: Node, by: Sequence[float], first: Geometry | None) -> Geometry:
    """Place a dataset by its factors.

    Parameters
    ----------
    node : Node
        The dataset.
    by : sequence of float
        Its factors, N5 order: its own, or those in the list of its group.
    first : Geometry or None
        The axes of ``s0``, if the dataset is another level.
    """
    unit = unit_in(node.attributes)
    axes = axes_of(node.ndim, names=node.names)
    axes = tuple(replace(axis, unit=unit if axis.type == "space" else None) for axis in axes)
    if first is not None:
        axes = _named(first.axes, node.names)
    scale = [axis.scale for axis in axes]
    placed = scaled(axes, by, shifted(scale, by))
    offset = offset_at(node.attributes, node.ndim, unit)
    if offset is not None:
        placed = tuple(replace(a, translation=o) for a, o in zip(placed, offset, strict=True))
    return Geometry(convention="factors", axes=placed)


def read_shapes(node: Node, first: Geometry | None) -> Geometry | None:
    """Scale a level without any description by the ratio of the shapes; None for other datasets."""
    level = node.first
    if level is None or level.dimensions == node.dimensions or not node.is_like_first:
        return None
    axes = None if first is None else first.axes
    return by_shapes(node.dimensions, level.dimensions, axes, node.names)


def by_shapes(
    dimensions: Sequence[int],
    first: Sequence[int],
    axes: Sequence[Axis] | None,
    names: Sequence[str] | None,
) -> Geometry | None:
    """Scale a level by the ratio of the shapes; None if it is no plausible level.

    Parameters
    ----------
    dimensions, first : sequence of int
        Extent of the level, and of the finest one, in elements.
    axes : sequence of Axis or None
        Those of the finest level, N5 order.
    names : sequence of str or None
        Names of the axes of the level; by default those of the finest one, or none.
    """
    by = ratios(first, dimensions) if tuple(first) != tuple(dimensions) else (1.0,) * len(first)
    if by is None:
        return None
    known = axes_of(len(by), names=("",) * len(by)) if axes is None else axes
    return Geometry(convention="shapes", axes=scaled(_named(known, names), by))


def read_first(level: Geometry) -> Geometry | None:
    """Return the axes of ``s0`` without a position, of which a level counts elements."""
    if level.convention not in ("factors", "shapes"):
        return None
    return replace(level, axes=tuple(replace(a, scale=1.0, translation=0.0) for a in level.axes))


def scaled(
    axes: Sequence[Axis], by: Sequence[float], shifts: Sequence[float] | None = None
) -> tuple[Axis, ...]:
    """Return the axes of a level from those of ``s0``, by factors and shifts of the first element."""
    each = zip(axes, by, shifts or (0.0,) * len(axes), strict=True)
    return tuple(
        replace(
            axis,
            scale=axis.scale * f,
            translation=axis.translation + shift,
            labels=axis.labels if f == 1 else None,
        )
        for axis, f, shift in each
    )


def factors_to_first(node: Node) -> tuple[float, ...] | None:
    """Return how many elements of ``s0`` one of a level is; None if nothing gives it."""
    by = factors(node)
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


def _named(axes: Sequence[Axis], names: Sequence[str] | None) -> tuple[Axis, ...]:
    """Return axes with other names, if these are given, and the types of these."""
    if names is None or [axis.name for axis in axes] == [*names]:
        return tuple(axes)
    known = axes_of(len(names), names=names)
    return tuple(replace(a, name=k.name, type=k.type) for a, k in zip(axes, known, strict=True))
