"""Read ``downsamplingFactors`` without a resolution, and place levels by them; N5 order.

n5-universe ``N5GenericSingleScaleMetadataParser``: an element is the average of as many of the
finest level, so the first one is shifted by (factor - 1) / 2 of these; an ``offset`` replaces the
shift. n5-spark and BigStitcher-Spark write such levels. Where the finest level has a resolution,
the factors multiply its scale; else positions count elements of full resolution, also those of a
finest level that has factors, too, and have no unit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from n5zarr.conventions.levels import counted_axes, renamed_axes, scaled_axes
from n5zarr.conventions.model import (
    Geometry,
    Node,
    axes_of,
    brief,
    centre_shifts,
    listed_factors,
    numbers,
)
from n5zarr.conventions.units import offset_at, unit_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from n5zarr.format.lenient_json import JSON

__all__ = ["KEYS", "factors_in_json", "problems_of_list", "read", "unlisted_level"]

KEYS = ("downsamplingFactors", "offset")


def factors_in_json(factors: Sequence[float]) -> list[JSON]:
    """Return factors as BigDataViewer and n5-spark write them: without decimal point if whole.

    Examples
    --------
    >>> factors_in_json([2.0, 1.0, 0.5])
    [2, 1, 0.5]
    """
    return [int(by) if by == int(by) else by for by in factors]


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
    axes = axes_of(node.ndim, names=node.names)
    if first is not None:
        base = counted_axes(first) if first.convention == "factors" else first
        axes = renamed_axes((base or first).axes, node.names)
    scale = [axis.scale for axis in axes]
    placed = scaled_axes(axes, by, centre_shifts(scale, by))
    unit = next((axis.unit for axis in axes if axis.unit), None)
    own = {"offset_unit": unit_in(node.attributes), **node.attributes}
    offset = offset_at(own, node.ndim, unit)
    if offset is not None:
        placed = tuple(replace(a, translation=o) for a, o in zip(placed, offset, strict=True))
    return Geometry(convention="factors", axes=placed)


def unlisted_level(above: Sequence[Mapping[str, JSON]]) -> str | None:
    """Return the name of the level that a list of factors lacks if it begins with ``s1``.

    None if it begins with that of ``s0``, a factor of 1 along each axis. Else it may list factors
    of a level that is finer than ``s0``, or lack ``s0``: then there is a level more than factors.

    Examples
    --------
    >>> unlisted_level([{"scales": [[2, 2], [4, 4]]}]), unlisted_level([{"scales": [[1, 1]]}])
    ('s2', None)
    """
    for _, levels in listed_factors(above):
        if set(numbers(levels[0]) or (1,) if levels else (1,)) != {1}:
            return f"s{len(levels)}"
    return None


def problems_of_list(node: Node) -> Iterator[str]:
    """Say that a list of factors of the group begins with ``s1``, if the shapes show it."""
    first = node.first_level
    for key, levels in listed_factors(node.ancestors):
        by = [each for each in (numbers(level, node.ndim) for level in levels) if each]
        if not by or len(by) < len(levels) or set(by[0]) == {1.0} or first is None:
            continue
        is_short = node.unlisted is not None and _fits(first, node.unlisted, by[-1])
        k = node.level or 0
        is_shifted = 0 < k < len(by) and _fits(first, node.dimensions, by[k - 1])
        if is_shifted:  # and neither those of `s0` nor of a finer level fit
            relative = [b / f if f else 0.0 for b, f in zip(by[k], by[0], strict=True)]
            is_shifted = not any(_fits(first, node.dimensions, each) for each in (by[k], relative))
        if is_short or is_shifted:
            yield (
                f"{key} of the group: expected the factors of s0 first, got {brief(levels[0])}, "
                "which the shapes of the levels show to be those of s1: levels have the voxel "
                f"size of the next one; put {[1] * node.ndim} first"
            )


def _fits(first: Sequence[int], dimensions: Sequence[int], by: Sequence[float]) -> bool:
    """Whether a level has the shape of another one divided by factors, however it is rounded."""
    if len(first) != len(dimensions):
        return False
    each = zip(first, dimensions, by, strict=True)
    return all(f > 0 and abs(n / f - m) < 1 for n, m, f in each)
