"""Read and write COSEM's and CellMap's ``transform``; **C order** unless ``ordering`` is ``F``.

janelia-cosem/schemas ``multiscale.md``; n5-universe ``N5CosemMetadataParser``. The key of the order
is ``ordering`` there, and ``order`` in cellmap-schemas ``STTransform``. Each level has its own
scale and translation. ``pixelResolution`` beside ``transform`` repeats the scale for Neuroglancer.
If a dataset has no ``transform``, ``multiscales`` of the group may have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from n5zarr.conventions.levels import entries_of
from n5zarr.conventions.model import (
    Axis,
    Convention,
    Geometry,
    MisfitError,
    Node,
    Written,
    axes_of,
    mapping,
    numbers_at,
    texts_at,
)
from n5zarr.conventions.neuroglancer import write_absolute
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import to_c, to_n5

_MEMBERS = {"axes", "order", "ordering", "scale", "translate", "units"}


def read(node: Node) -> Geometry | None:
    """Read ``transform`` of the dataset, or of its entry in ``multiscales`` of a group above."""
    listed = (entry for _, entry in entries_of(node.path, node.ancestors) if "transform" in entry)
    return _read(node, node.attributes) or _read(node, next(listed, {}))


def _read(node: Node, holder: Mapping[str, JSON]) -> Geometry | None:
    transform = mapping(holder.get("transform"))
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
        axes=axes_of(node.ndim, names=names, scale=scale, translation=translation, units=units)
    )


def problems_of(node: Node) -> Iterator[str]:
    """Name the members of ``transform`` that nobody reads, such as ``translation``."""
    others = sorted(mapping(node.attributes.get("transform")).keys() - _MEMBERS)
    if others:
        yield f"transform: expected {', '.join(sorted(_MEMBERS))}, got also {', '.join(others)}"


def write(axes: Sequence[Axis], path: str, _first: Sequence[Axis] | None = None) -> Written:
    """Describe a dataset and its entry in ``multiscales``."""
    in_c = to_c(tuple(axes))
    transform: JSON = {
        "axes": [axis.name for axis in in_c],
        "scale": [axis.scale for axis in in_c],
        "translate": [axis.translation for axis in in_c],
        "units": [axis.unit or "" for axis in in_c],
    }
    level: dict[str, JSON] = {"path": path, "transform": transform}
    return Written({"transform": transform}, {}, level, write_absolute(axes))


COSEM = Convention(
    name="cosem",
    read=read,
    write=write,
    objects=("transform",),
    placing_keys=("transform",),
    group_keys=("multiscales",),
    problems=problems_of,
)
