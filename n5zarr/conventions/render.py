"""Read ``translate`` of Janelia's render, beside ``pixelResolution`` and ``scales``; N5 order.

render-app ``NeuroglancerAttributes``: ``translate`` is where the dataset begins in the aligned
stack, in elements of full resolution, on the group of the levels or on a single dataset. Scale and
unit are n5-viewer's, or else Neuroglancer's. If a level has COSEM's ``transform``, that is used
instead, as in other tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from n5zarr.conventions import n5viewer, neuroglancer
from n5zarr.conventions.levels import problems_of_factors
from n5zarr.conventions.model import Convention, Geometry, Node, numbers, resolution_in
from n5zarr.format.lenient_json import JSON


def read(node: Node) -> Geometry | None:
    """Read ``translate`` of the dataset or the group above; None if it is missing."""
    for attributes in (node.attributes, *node.ancestors[:1]):
        offset = _offset(attributes, node.ndim)
        geometry = None if offset is None else n5viewer.read(node) or neuroglancer.read(node)
        if offset is not None and geometry is not None:
            axes = zip(geometry.axes, offset, strict=True)
            moved = (replace(axis, translation=axis.translation + o) for axis, o in axes)
            return Geometry(axes=tuple(moved))
    return None


def _offset(attributes: Mapping[str, JSON], ndim: int) -> tuple[float, ...] | None:
    """Return the physical offset; None unless all attributes that render writes are present."""
    n_elements = numbers(attributes.get("translate"), ndim)
    resolution = resolution_in(attributes)
    is_complete = resolution is not None and len(resolution) == ndim and "scales" in attributes
    if n_elements is None or resolution is None or not is_complete:
        return None
    return tuple(n * r for n, r in zip(n_elements, resolution, strict=True))


RENDER = Convention(
    name="render",
    read=read,
    per_axis=("translate",),
    group_keys=("translate",),
    problems=problems_of_factors,
)
