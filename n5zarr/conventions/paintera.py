"""Read Paintera's ``resolution`` and ``offset`` of the group above, or of the dataset; N5 order.

By Paintera's ``PainteraDataMultiScaleParser``, all levels of a group begin at its offset, without a
shift. By n5-universe's ``N5GenericSingleScaleMetadataParser``, an offset of the dataset itself
replaces the shift. No unit is written.
"""

from __future__ import annotations

from n5zarr.conventions.model import (
    Geometry,
    Node,
    axes_of,
    factors,
    is_of_levels,
    level_from,
    numbers,
    numbers_at,
)

__all__ = ["KEYS", "read", "read_group"]

KEYS = ("resolution", "offset", "downsamplingFactors")


def read(node: Node) -> Geometry | None:
    """Read ``resolution`` of the dataset; None if it is missing."""
    if not isinstance(node.attributes.get("resolution"), list):
        return None  # such as a text about the resolution
    resolution = numbers_at(node.attributes, "resolution", node.ndim)
    if resolution is None:
        return None
    by = factors(node) or (1.0,) * node.ndim
    scale, translation = level_from(node, resolution, by)
    unit = node.attributes.get("unit")
    axes = axes_of(
        node.ndim,
        names=node.names,
        scale=scale,
        translation=numbers_at(node.attributes, "offset", node.ndim) or translation,
        units=unit if isinstance(unit, str) else None,
    )
    return Geometry(convention="paintera", axes=axes)


def read_group(node: Node) -> Geometry | None:
    """Read ``resolution`` of the group of levels; None if it is missing."""
    group = node.ancestors[0] if node.ancestors and not is_of_levels(node.ancestors[0]) else {}
    resolution = numbers(group.get("resolution"), node.ndim)
    if resolution is None or node.level is None:
        return None
    by = factors(node) or (1.0,) * node.ndim
    axes = axes_of(
        node.ndim,
        names=node.names,
        scale=[r * f for r, f in zip(resolution, by, strict=True)],
        translation=numbers_at(group, "offset", node.ndim, "group of the levels: ") or (),
    )
    return Geometry(convention="paintera", axes=axes)
