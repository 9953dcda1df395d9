"""Make the axes of a level from those of the finest level."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from n5zarr.conventions.model import Axis, Geometry, axes_of

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["counted_axes", "renamed_axes", "scaled_axes"]


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
