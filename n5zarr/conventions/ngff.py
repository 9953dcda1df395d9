"""Read and write OME-NGFF 0.3, 0.4 and 0.5 inside N5: ``multiscales`` of the group above.

n5-universe up to 2 wrote the lists in C order, like the specification of NGFF; since 3 they are in
N5 order. So the names decide: with ``x`` first they are in N5 order, with ``x`` last in C order.
0.3 has no transforms: levels are scaled by the ratio of their dimensions, and the unit is
micrometres, as in n5-universe.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from n5zarr.conventions.model import (
    Geometry,
    MisfitError,
    Node,
    axes_of,
    brief,
    mapping,
    numbers_at,
    texts,
)
from n5zarr.conventions.units import in_full, spelled
from n5zarr.format.order import to_n5

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.conventions.model import Axis
    from n5zarr.format.lenient_json import JSON

__all__ = ["KEYS", "read", "write"]

KEYS = ()  # all keys are on the group


def read(node: Node, *, is_c_order: bool | None = None) -> Geometry | None:
    """Read the dataset's entry in ``multiscales`` of a group above; None if it is missing.

    Parameters
    ----------
    node : Node
        The dataset.
    is_c_order : bool, optional
        Whether the lists are in C order, as in Zarr; by default the names of the axes decide.
    """
    for depth, group in enumerate(node.ancestors, 1):
        path = "/".join(node.path[-depth:])
        images = mapping(group.get("ome")).get("multiscales", group.get("multiscales"))
        for image in images if isinstance(images, list) else ():
            geometry = _read(node, mapping(image), path, is_c_order=is_c_order)
            if geometry is not None:
                return geometry
    return None


def _read(
    node: Node, image: Mapping[str, JSON], path: str, *, is_c_order: bool | None
) -> Geometry | None:
    listed = image.get("axes")
    datasets = image.get("datasets")
    if not isinstance(listed, list) or not isinstance(datasets, list):
        return None
    entry = next((mapping(d) for d in datasets if mapping(d).get("path") == path), None)
    if entry is None:
        return None
    if len(listed) != node.ndim:
        message = f"multiscales: axes: expected a list of {node.ndim} axes, got {brief(listed)}"
        raise MisfitError(message)
    old = all(isinstance(axis, str) for axis in listed)
    entries = [{"name": axis} if isinstance(axis, str) else mapping(axis) for axis in listed]
    names = [str(axis.get("name", "")) for axis in entries]
    units = [
        ("um" if name.lower() in ("x", "y", "z") else None) if old else axis.get("unit")
        for name, axis in zip(names, entries, strict=True)
    ]
    types = [axis.get("type", "") for axis in entries]
    in_c = _is_c_order(names) if is_c_order is None else is_c_order
    scale, translation = _transform(entry, image, node, in_c=in_c)
    axes = axes_of(
        node.ndim,
        names=_ordered(names, in_c=in_c),
        scale=_ordered(scale, in_c=in_c),
        translation=_ordered(translation, in_c=in_c),
        units=_ordered([u if isinstance(u, str) else None for u in units], in_c=in_c),
    )
    given = _ordered([str(t) for t in types], in_c=in_c)
    listed_units = texts(node.attributes.get("units"), node.ndim) or ("",) * node.ndim
    axes = tuple(
        replace(a, type=t or a.type, unit=spelled(a.unit, node.attributes.get("unit"), text))
        for a, t, text in zip(axes, given, listed_units, strict=True)
    )
    return Geometry(convention="ngff", axes=axes)


def _is_c_order(names: Sequence[str]) -> bool:
    return bool(names) and names[-1].lower() == "x" and names[0].lower() != "x"


def _ordered[T](values: Sequence[T], *, in_c: bool) -> tuple[T, ...]:
    return to_n5(values) if in_c else tuple(values)


def _transform(
    entry: Mapping[str, JSON], image: Mapping[str, JSON], node: Node, *, in_c: bool
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Apply the transforms of the dataset, then those of the image, in the order of the lists."""
    scale, translation = (1.0,) * node.ndim, (0.0,) * node.ndim
    if "coordinateTransformations" not in entry and node.first_level is not None:
        if len(node.first_level) != node.ndim:
            message = f"expected {node.ndim} axes, as this level has, got {len(node.first_level)}"
            raise MisfitError(f"multiscales: the first level: {message}")
        ratios = zip(node.first_level, node.dimensions, strict=True)
        scale = _ordered([round(a / b) if b else 1.0 for a, b in ratios], in_c=in_c)
    for transforms in (
        entry.get("coordinateTransformations"),
        image.get("coordinateTransformations"),
    ):
        for transform in transforms if isinstance(transforms, list) else ():
            by = numbers_at(mapping(transform), "scale", node.ndim, "multiscales: ")
            to = numbers_at(mapping(transform), "translation", node.ndim, "multiscales: ")
            if by is not None:
                scale = tuple(a * b for a, b in zip(scale, by, strict=True))
                translation = tuple(a * b for a, b in zip(translation, by, strict=True))
            if to is not None:
                translation = tuple(a + b for a, b in zip(translation, to, strict=True))
    return scale, translation


def write(axes: Sequence[Axis], path: str) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """Make an image of ``multiscales`` and the entry of one of its levels, in N5 order.

    Like n5-universe 3, with full names of units, like the specification of NGFF.

    Parameters
    ----------
    axes : sequence of Axis
        Axes of the level, N5 order.
    path : str
        Path of the level, relative to the group.
    """
    entries: list[JSON] = []
    for axis in axes:
        entry: dict[str, JSON] = {"name": axis.name}
        entry |= {"type": axis.type} if axis.type else {}
        entries.append(entry | ({"unit": in_full(axis.unit)} if axis.unit else {}))
    steps: list[JSON] = [{"type": "scale", "scale": [axis.scale for axis in axes]}]
    if any(axis.translation for axis in axes):
        to: JSON = [axis.translation for axis in axes]
        steps.append({"type": "translation", "translation": to})
    image: dict[str, JSON] = {"version": "0.4", "axes": entries}
    return image, {"path": path, "coordinateTransformations": steps}
