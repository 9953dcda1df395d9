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
from n5zarr.conventions.model import Geometry, Node, axes_of, centre_shifts
from n5zarr.conventions.offset import offset_at, unit_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.format.lenient_json import JSON

__all__ = ["KEYS", "factors_in_json", "read"]

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
