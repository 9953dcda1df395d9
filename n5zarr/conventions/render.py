"""Read ``translate`` of Janelia's render, beside ``pixelResolution`` and ``scales``; N5 order.

render-app ``NeuroglancerAttributes``: ``translate`` is where the dataset begins in the aligned
stack, in elements of full resolution, on the group of the levels or on a single dataset. All else
is as in Neuroglancer. COSEM's ``transform`` on a level takes precedence, as in other tools.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from n5zarr.conventions import n5viewer, neuroglancer
from n5zarr.conventions.model import Geometry, Node, numbers, resolution_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from n5zarr.format.lenient_json import JSON

__all__ = ["KEYS", "read"]

KEYS = ("translate",)


def read(node: Node) -> Geometry | None:
    """Read ``translate`` of the dataset or the group above; None where there is none."""
    for attributes in (node.attributes, *node.ancestors[:1]):
        to = _offset(attributes, node.ndim)
        geometry = None if to is None else n5viewer.read(node) or neuroglancer.read(node)
        if to is not None and geometry is not None:
            axes = zip(geometry.axes, to, strict=True)
            moved = (replace(axis, translation=axis.translation + t) for axis, t in axes)
            return Geometry(convention="render", axes=tuple(moved))
    return None


def _offset(attributes: Mapping[str, JSON], ndim: int) -> tuple[float, ...] | None:
    """Return the physical offset; None unless all attributes that render writes are present."""
    by = numbers(attributes.get("translate"), ndim)
    resolution = resolution_in(attributes)
    is_complete = resolution is not None and len(resolution) == ndim and "scales" in attributes
    if by is None or resolution is None or not is_complete:
        return None
    return tuple(b * r for b, r in zip(by, resolution, strict=True))
