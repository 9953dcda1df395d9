"""Read and write COSEM's and CellMap's ``transform``; **C order** unless ``ordering`` is ``F``.

janelia-cosem/schemas ``multiscale.md``; n5-universe ``N5CosemMetadataParser``. The key of the order
is ``ordering`` there, and ``order`` in cellmap-schemas ``STTransform``. Each level has its own
scale and translation. ``pixelResolution`` beside ``transform`` repeats the scale for Neuroglancer.
If a dataset has no ``transform``, ``multiscales`` of the group may have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.conventions.levels import entries_of
from n5zarr.conventions.model import (
    Axis,
    Geometry,
    MisfitError,
    Node,
    axes_of,
    mapping,
    numbers_at,
    texts_at,
)
from n5zarr.format.order import to_c, to_n5

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from n5zarr.format.lenient_json import JSON

KEYS = ("transform",)

_MEMBERS = {"axes", "order", "ordering", "scale", "translate", "units"}


def read(node: Node) -> Geometry | None:
    """Read ``transform`` of the dataset; None if it is missing."""
    return _read(node, mapping(node.attributes.get("transform")))


def read_group(node: Node) -> Geometry | None:
    """Read the dataset's entry in ``multiscales`` of a group above; None if it is missing."""
    for _, entry in entries_of(node.path, node.ancestors):
        if "transform" in entry:
            return _read(node, mapping(entry["transform"]))
    return None


def _read(node: Node, transform: Mapping[str, JSON]) -> Geometry | None:
    names = texts_at(transform, "axes", node.ndim, "transform.")
    scale = numbers_at(transform, "scale", node.ndim, "transform.")
    if names is None or scale is None:
        if {"scale", "translate"} & transform.keys():
            missing = "axes" if names is None else "scale"
            raise MisfitError(f"transform: expected axes and scale, got no {missing}")
        return None
    translation = numbers_at(transform, "translate", node.ndim, "transform.") or (0.0,) * node.ndim
    units = texts_at(transform, "units", node.ndim, "transform.") or ("",) * node.ndim
    if "F" not in (transform.get("ordering"), transform.get("order")):
        names, scale = to_n5(names), to_n5(scale)
        translation, units = to_n5(translation), to_n5(units)
    return Geometry(
        convention="cosem",
        axes=axes_of(node.ndim, names=names, scale=scale, translation=translation, units=units),
    )


def problems_of(node: Node) -> Iterator[str]:
    """Name the members of ``transform`` that nobody reads, such as ``translation``."""
    others = sorted(mapping(node.attributes.get("transform")).keys() - _MEMBERS)
    if others:
        yield f"transform: expected {', '.join(sorted(_MEMBERS))}, got also {', '.join(others)}"


def write(axes: Sequence[Axis]) -> dict[str, JSON]:
    """Make the attributes of a dataset from its axes in N5 order."""
    in_c = to_c(tuple(axes))
    return {
        "transform": {
            "axes": [axis.name for axis in in_c],
            "scale": [axis.scale for axis in in_c],
            "translate": [axis.translation for axis in in_c],
            "units": [axis.unit or "" for axis in in_c],
        }
    }
