"""COSEM, CellMap: ``transform`` on each dataset, lists in **C order** unless ``ordering`` says F.

janelia-cosem/schemas ``multiscale.md``; n5-universe ``N5CosemMetadataParser``. Scale and
translation are absolute for each level. A redundant ``pixelResolution`` beside it is for
Neuroglancer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.conventions.model import Geometry, Node, axes_of, mapping, numbers_at, texts_at
from n5zarr.format.order import to_c, to_n5

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.conventions.model import Axis
    from n5zarr.format.lenient_json import JSON

__all__ = ["KEYS", "read", "write"]

KEYS = ("transform",)


def read(node: Node) -> Geometry | None:
    """Read ``transform``; None where there is none."""
    transform = mapping(node.attributes.get("transform"))
    names = texts_at(transform, "axes", node.ndim, "transform.")
    scale = numbers_at(transform, "scale", node.ndim, "transform.")
    if names is None or scale is None:
        return None
    translation = numbers_at(transform, "translate", node.ndim, "transform.") or (0.0,) * node.ndim
    units = texts_at(transform, "units", node.ndim, "transform.") or ("",) * node.ndim
    if transform.get("ordering") != "F":
        names, scale = to_n5(names), to_n5(scale)
        translation, units = to_n5(translation), to_n5(units)
    axes = axes_of(node.ndim, names=names, scale=scale, translation=translation, units=units)
    return Geometry(convention="cosem", axes=axes)


def write(axes: Sequence[Axis]) -> dict[str, JSON]:
    """Make the attributes of a dataset from its axes in N5 order."""
    in_c = to_c(tuple(axes))
    transform: dict[str, JSON] = {
        "axes": [axis.name for axis in in_c],
        "scale": [axis.scale for axis in in_c],
        "translate": [axis.translation for axis in in_c],
        "units": [axis.unit or "" for axis in in_c],
    }
    return {"transform": transform}
