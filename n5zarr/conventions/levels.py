"""Make the axes of a level from those of the finest level."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from n5zarr.conventions.model import (
    Axis,
    Geometry,
    axes_of,
    centre_shifts,
    downsampling_factors,
    numbers,
    resolution_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from n5zarr.conventions.model import Node

__all__ = ["counted_axes", "level_from", "renamed_axes", "scaled_axes"]


def scaled_axes(
    axes: Sequence[Axis], by: Sequence[float], shifts: Sequence[float] | None = None
) -> tuple[Axis, ...]:
    """Return the axes of a level from those of ``s0``, factors, and shifts of the first element."""
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


def renamed_axes(axes: Sequence[Axis], names: Sequence[str] | None) -> tuple[Axis, ...]:
    """Return axes with other names, if these are given, and the types of these."""
    if names is None or [axis.name for axis in axes] == [*names]:
        return tuple(axes)
    known = axes_of(len(names), names=names)
    return tuple(replace(a, name=k.name, type=k.type) for a, k in zip(axes, known, strict=True))


def counted_axes(level: Geometry) -> Geometry | None:
    """Return the axes of ``s0`` without a position, of which a level counts elements."""
    if level.convention not in ("factors", "shapes"):
        return None
    return replace(level, axes=tuple(replace(a, scale=1.0, translation=0.0) for a in level.axes))


def level_from(
    node: Node, resolution: Sequence[float], by: Sequence[float]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Compute scale and translation of a level from the resolution on its dataset.

    Most programs write the resolution of ``s0`` on every level, which the factors multiply. But
    fibsem-tools and cellmap-schemas write each level's own: if the resolution on the dataset
    already equals the factors times that of the group or ``s0``, it is not multiplied again.
    """
    for base in _full_resolutions(node):
        pairs = list(zip(resolution, base, by, strict=False))
        if len(base) >= len(resolution) and all(
            math.isclose(r, b * f, rel_tol=1e-6) for r, b, f in pairs
        ):
            return tuple(resolution), tuple((r - b) / 2 for r, b, _ in pairs)
    first = (resolution_in(node.first_attributes) or ())[: len(resolution)]
    if (
        downsampling_factors(node) is None
        and len(first) == len(resolution)
        and first != tuple(resolution)
    ):
        # n5-viewer's is the same on all levels; this one differs, so each level has its own
        return tuple(resolution), tuple((r - b) / 2 for r, b in zip(resolution, first, strict=True))
    return tuple(r * f for r, f in zip(resolution, by, strict=True)), centre_shifts(resolution, by)


def _full_resolutions(node: Node) -> Iterator[tuple[float, ...]]:
    """Yield full resolution according to the groups above a level and to ``s0`` beside it."""
    # a level with its own factors may follow n5-viewer, regardless of `s0`
    is_complete = node.attributes.get("downsamplingFactors") is not None
    for attributes in (*node.ancestors[:2], *(() if is_complete else (node.first_attributes,))):
        for resolution in (resolution_in(attributes), numbers(attributes.get("resolution"))):
            if resolution:
                yield resolution
