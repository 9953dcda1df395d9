"""Read n5-universe's canonical convention: ``spatialTransform`` of a dataset or its group.

``CanonicalMetadataAdapter``, ``SpatialTransformAdapter``; N5 order. An affine transform that mixes
axes is an error, since positions along one axis would depend on another.
"""

from __future__ import annotations

from collections.abc import Mapping

from n5zarr.conventions.levels import Steps, applied_after, diagonal_of, entries_of
from n5zarr.conventions.model import (
    Convention,
    Geometry,
    MisfitError,
    Node,
    axes_of,
    brief,
    items_of,
    mapping,
    numbers,
)
from n5zarr.format.lenient_json import JSON


def read(node: Node) -> Geometry | None:
    """Read ``spatialTransform`` of the dataset; None if it is missing."""
    return _read(node, mapping(node.attributes.get("spatialTransform")))


def read_group(node: Node) -> Geometry | None:
    """Read the dataset's entry in ``multiscales``, here an object, of the group above."""
    for _, entry in entries_of(node.path, node.ancestors[:1]):
        if "spatialTransform" in entry:
            return _read(node, mapping(entry["spatialTransform"]))
    return None


def _read(node: Node, spatial: Mapping[str, JSON]) -> Geometry | None:
    if not spatial:
        return None
    steps = steps_of(mapping(spatial.get("transform")), node.ndim)
    if steps is None:
        raise MisfitError(
            f"spatialTransform: expected a scale and translation along each of {node.ndim} axes, "
            f"got {brief(spatial.get('transform'))}"
        )
    unit = spatial.get("unit")
    entries = [mapping(axis) for axis in items_of(spatial.get("axes"))]
    names = [str(axis.get("name", axis.get("label", ""))) for axis in entries]
    units = [axis.get("unit", unit) for axis in entries]
    complete = len(names) == node.ndim
    return Geometry(
        axes=axes_of(
            node.ndim,
            names=names if complete else None,
            scale=steps[0],
            translation=steps[1],
            units=[
                u if isinstance(u, str) else None
                for u in (units if complete else [unit] * node.ndim)
            ],
        ),
    )


_MEMBERS = {
    "identity": (),
    "scale": ("scale",),
    "translation": ("translation",),
    "scale_offset": ("scale", "offset"),
}


def steps_of(transform: Mapping[str, JSON], ndim: int) -> Steps | None:
    """Reduce a transform to scale and translation along each axis; None if it mixes axes.

    Parameters
    ----------
    transform : mapping
        As here, or as in OME-Zarr 0.6, which has the rows of an affine as lists.
    ndim : int
        Number of axes.
    """
    match transform.get("type"):
        case str(kind) if kind in _MEMBERS:
            members = {name: numbers(transform.get(name), ndim) for name in _MEMBERS[kind]}
            if None in members.values():
                return None
            offset = members.get("offset") or members.get("translation")
            return members.get("scale") or (1.0,) * ndim, offset or (0.0,) * ndim
        case "affine":
            rows = items_of(transform.get("affine"))
            flat = [n for row in rows for n in (row if isinstance(row, list) else [row])]
            affine = numbers(flat, ndim * (ndim + 1))
            return None if affine is None else diagonal_of(affine, ndim)
        case "sequence":
            return _sequence(transform.get("transformations"), ndim)
        case _:
            return None


def _sequence(transforms: JSON, ndim: int) -> Steps | None:
    """Combine transforms, the first one applied first; None if one mixes axes."""
    found: Steps = (1.0,) * ndim, (0.0,) * ndim
    for transform in items_of(transforms):
        steps = steps_of(mapping(transform), ndim)
        if steps is None:
            return None
        found = applied_after(found, steps)
    return found


CANONICAL = Convention(
    name="canonical",
    read=read,
    objects=("spatialTransform",),
    group_keys=("multiscales",),
)
