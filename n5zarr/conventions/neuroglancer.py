"""TensorStore and Neuroglancer: ``axes``, ``units``, ``resolution``, of the array or any ancestor.

tensorstore ``driver/n5/schema.yml``, Neuroglancer ``datasource/n5``; N5 order. The factors of
levels stand on each, or as a list of lists on the group. Neuroglancer counts from the corner of a
voxel, so that its levels are scaled without a shift; from centre to centre that is the usual half.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from n5zarr.conventions.model import (
    Axis,
    Geometry,
    Node,
    axes_of,
    factors,
    mapping,
    numbers,
    shifted,
    texts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from n5zarr.format.lenient_json import JSON

__all__ = ["read"]


def read(node: Node) -> Geometry | None:
    """Read the array's own keys, and what it lacks from its ancestors; None without any unit."""
    named = _inherited(node, "axes")
    names = texts(named, node.ndim)
    units = texts(_inherited(node, "units"), node.ndim)
    resolution = numbers(_inherited(node, "resolution"), node.ndim)
    base = mapping(_inherited(node, "pixelResolution"))
    if resolution is None and numbers(base.get("dimensions"), node.ndim) is not None:
        resolution = numbers(base.get("dimensions"), node.ndim)
        unit = base.get("unit")
        units = (unit if isinstance(unit, str) else "nm",) * node.ndim
    if names is None and units is None:
        return None
    if resolution is None and names is None:
        return None
    scale = resolution or (1.0,) * node.ndim
    by = factors(node) or (1.0,) * node.ndim
    axes = axes_of(
        node.ndim,
        names=names,
        scale=[s * f for s, f in zip(scale, by, strict=True)],
        translation=shifted(scale, by),
        units=units,
    )
    labels = mapping(_inherited(node, "coordinateArrays"))
    axes = tuple(_labelled(a, labels, n) for a, n in zip(axes, node.dimensions, strict=True))
    return Geometry(convention="neuroglancer", axes=axes)


def _inherited(node: Node, key: str) -> JSON:
    for attributes in (node.attributes, *node.ancestors):
        if key in attributes:
            return attributes[key]
    return None


def _labelled(axis: Axis, labels: Mapping[str, JSON], length: int) -> Axis:
    return replace(axis, labels=texts(labels.get(axis.name), length)) if labels else axis
