"""Read ilastik's ``axistags``, the JSON text of vigra's ``AxisTags``, and ``axis_units``; C order.

lazyflow ``OpStreamingH5N5Reader``. ``typeFlags`` is a sum: 1 channels, 2 space, 8 time. A
resolution of 0 means that there is none. ``axis_units``, a JSON text too, has the unit of an axis.
Names that the dataset has otherwise win, as they may be newer: tags are then found by their key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from n5zarr.conventions.model import (
    Axis,
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
from n5zarr.errors import N5AttributesError
from n5zarr.format.lenient_json import JSON, parse_json
from n5zarr.format.order import to_n5

_TYPES = ((1, "channel"), (8, "time"), (2, "space"))


def read(node: Node) -> Geometry | None:
    """Read ``axistags``; None if they are missing, or have other names than the dataset."""
    if "axistags" not in node.attributes:
        return None
    listed = _parse_axistags("axistags", node.attributes).get("axes")
    tags = [mapping(tag) for tag in items_of(listed)]
    keys = [str(tag.get("key", "")) for tag in tags]
    if len(tags) != node.ndim or not all(keys):
        raise MisfitError(f"axistags: expected {node.ndim} axes with keys, got {brief(listed)}")
    named = dict(zip(keys, tags, strict=True))
    names = to_n5(keys) if node.names is None else node.names
    if {*names} != {*keys}:
        return None
    units = _parse_axistags("axis_units", node.attributes)
    known = axes_of(node.ndim, names=names)
    axes = tuple(_axis(axis, named[axis.name], units.get(axis.name)) for axis in known)
    names_only = all(axis.scale == 1 and axis.unit is None for axis in axes)
    return Geometry(axes=axes, names_only=names_only)


def _axis(known: Axis, tag: Mapping[str, JSON], unit: JSON) -> Axis:
    flags, resolution = numbers([tag.get("typeFlags", 0)]), numbers([tag.get("resolution", 0)])
    if flags is None or resolution is None or not math.isfinite(flags[0]):
        raise MisfitError(
            f"axistags: expected numbers as typeFlags and resolution, got {brief(tag)}"
        )
    scale = resolution[0]
    return Axis(
        name=known.name,
        type=next((name for flag, name in _TYPES if int(flags[0]) & flag), known.type),
        scale=scale or 1.0,
        unit=unit if scale and isinstance(unit, str) and unit else None,
    )


def _parse_axistags(key: str, attributes: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Parse the JSON text of an attribute; some programs write the object itself."""
    value = attributes.get(key, {})
    try:
        found = parse_json(value.encode()) if isinstance(value, str) else value
    except (N5AttributesError, UnicodeEncodeError) as err:
        raise MisfitError(f"{key}: expected JSON, got {brief(value)}") from err
    if not isinstance(found, Mapping):
        raise MisfitError(f"{key}: expected a JSON object, got {brief(value)}")
    return found


ILASTIK = Convention(name="ilastik", read=read, own_keys=("axistags", "axis_units"))
