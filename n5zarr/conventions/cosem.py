"""COSEM, CellMap: ``transform`` on each dataset, lists in **C order** unless ``ordering`` says F.

janelia-cosem/schemas ``multiscale.md``; n5-universe ``N5CosemMetadataParser``. Scale and
translation are absolute for each level. A redundant ``pixelResolution`` beside it is for
Neuroglancer.
"""

from __future__ import annotations

from n5zarr.conventions.model import Geometry, Node, axes_of, mapping, numbers, texts
from n5zarr.format.order import to_n5

__all__ = ["read"]


def read(node: Node) -> Geometry | None:
    """Read ``transform``; None where there is none."""
    transform = mapping(node.attributes.get("transform"))
    names = texts(transform.get("axes"), node.ndim)
    scale = numbers(transform.get("scale"), node.ndim)
    if names is None or scale is None:
        return None
    translation = numbers(transform.get("translate"), node.ndim) or (0.0,) * node.ndim
    units = texts(transform.get("units"), node.ndim) or ("",) * node.ndim
    if transform.get("ordering") != "F":
        names, scale = to_n5(names), to_n5(scale)
        translation, units = to_n5(translation), to_n5(units)
    axes = axes_of(node.ndim, names=names, scale=scale, translation=translation, units=units)
    return Geometry(convention="cosem", axes=axes)
