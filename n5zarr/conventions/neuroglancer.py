"""Read and write TensorStore's and Neuroglancer's ``axes``, ``units`` and ``resolution``.

tensorstore ``driver/n5/schema.yml``, Neuroglancer ``datasource/n5``; N5 order; on the array or any
ancestor. The factors of levels are on each level, or a list of lists on the group. Neuroglancer's
coordinates are those of the corners of voxels, so centres lie half a voxel further. An ``offset``
replaces that shift, as in n5-universe's ``N5GenericSingleScaleMetadataParser``; that of a group
belongs to its ``resolution``, as in Paintera. A level without factors has the ratio of the shapes.
A group that has ``multiscales``, too, describes its levels with that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import mul

from n5zarr.conventions.levels import (
    downsampling_factors,
    factors_to_first,
    level_from,
    problems_of_factors,
)
from n5zarr.conventions.model import (
    Axis,
    Convention,
    Geometry,
    Node,
    Written,
    axes_of,
    centre_shifts,
    is_of_levels,
    mapping,
    n_listed,
    numbers_at,
    resolution_in,
    texts_at,
)
from n5zarr.conventions.units import spelled, symbol
from n5zarr.format.lenient_json import JSON

_PER_AXIS = ("axes", "units", "resolution", "offset")
_LISTS = ("pixelResolution", "downsamplingFactors", "scales")
KEYS = frozenset({*_PER_AXIS, *_LISTS, "coordinateArrays"})


def read(node: Node) -> Geometry | None:
    """Read the array's keys, and missing ones from its ancestors; None if there are only names."""
    names = _inherited(node, "axes", texts_at)
    if not isinstance(node.attributes.get("axes"), list) and node.names is not None:
        names = node.names
    resolution, units, is_own = _resolution(node)
    objects = [mapping(a.get("coordinateArrays")) for a in (node.attributes, *_groups_above(node))]
    labels = next(filter(None, objects), {})
    are_names = units is None and resolution is None and not labels
    if are_names or (names is None and (units is None or resolution is None)):
        return None
    base = resolution or (1.0,) * node.ndim
    factors = downsampling_factors(node) if is_own else factors_to_first(node, names)
    by = (factors or (1.0,) * node.ndim)[: len(base)]
    scale, translation = tuple(map(mul, base, by)), centre_shifts(base, by)
    if is_own:
        scale, translation = level_from(node, base, by)
    axes = axes_of(
        node.ndim,
        names=names,
        scale=(*scale, *(1.0,) * (node.ndim - len(scale))),
        translation=_offset(node, is_own=is_own) or translation,
        units=units,
    )
    own = node.attributes.get("unit") if is_own else None
    axes = tuple(
        replace(
            axis,
            unit=_own_unit(axis, own),
            labels=texts_at(labels, axis.name, n, "coordinateArrays: "),
        )
        for axis, n in zip(axes, node.dimensions, strict=True)
    )
    return Geometry(axes=axes)


def _offset(node: Node, *, is_own: bool) -> tuple[float, ...] | None:
    """Read ``offset`` of the dataset, else of the group whose resolution it has."""
    own = numbers_at(node.attributes, "offset", n_listed(node.attributes, "offset", node.ndim))
    if own is not None or is_own or node.level is None:
        return own
    group = next((a for a in _groups_above(node) if isinstance(a.get("resolution"), list)), {})
    is_same = len(group.get("resolution") or ()) == node.ndim  # type: ignore[arg-type] # a list
    return numbers_at(group, "offset", node.ndim, "group of the levels: ") if is_same else None


def _own_unit(axis: Axis, unit: JSON) -> str | None:
    """Return an axis's unit in the spelling of ``unit``; Neuroglancer has no unit of counts."""
    if axis.unit or axis.type != "space" or not isinstance(unit, str):
        return spelled(axis.unit, unit)
    return unit if symbol(unit) == ("", 1.0) else None


def write(axes: Sequence[Axis], _path: str, first: Sequence[Axis] | None = None) -> Written:
    """Describe a dataset.

    ``axes`` is left out: the store writes it from the dimension names of the Zarr document. The
    resolution of ``first`` is written, with factors, if the product is exact.
    """
    unit = one_unit(axes)
    if any(symbol(axis.unit)[1] != 1 for axis in axes):
        unit = {}  # Neuroglancer refuses this unit, and a conversion would change the value
    else:
        axes, first = _in_known_units(axes), None if first is None else _in_known_units(first)
    base, by = exact_factors(axes, first) or base_and_factors(axes)
    attributes: dict[str, JSON] = {
        "units": [axis.unit or "" for axis in axes],
        "resolution": list(base),
    }
    if set(by) != {1.0}:
        attributes["downsamplingFactors"] = list(by)
    # a resolution that differs from that of `s0`, without factors, means a shift
    is_other = first is not None and base != tuple(axis.scale for axis in first)
    if is_other or tuple(axis.translation for axis in axes) != centre_shifts(base, by):
        attributes["offset"] = [axis.translation for axis in axes]
    return Written(attributes | unit)


def write_absolute(axes: Sequence[Axis]) -> dict[str, JSON]:
    """Make attributes for Neuroglancer and TensorStore beside those of another convention.

    The resolution is that of the dataset itself, without factors, so that Neuroglancer and
    n5-universe read it with or without the group. Empty if Neuroglancer would refuse it.
    """
    if not all(axis.scale > 0 for axis in axes):
        return {}
    axes = _in_known_units(axes)
    attributes = _units_and_resolution(axes)
    if any(axis.translation for axis in axes):
        attributes["offset"] = [axis.translation for axis in axes]
    return attributes


def write_group(first: Sequence[Axis], factors: Sequence[Sequence[float]]) -> dict[str, JSON]:
    """Make the attributes of a group with which Neuroglancer opens its levels as a pyramid.

    Empty if Neuroglancer would refuse them.

    Parameters
    ----------
    first : sequence of Axis
        Axes of ``s0``, N5 order.
    factors : sequence of sequence of float
        Of each level, ``s0`` first.
    """
    if not all(axis.scale > 0 for axis in first):
        return {}
    names: JSON = [axis.name for axis in first]
    scaled = _units_and_resolution(_in_known_units(first))
    return {"axes": names, **scaled, "downsamplingFactors": [[*by] for by in factors]}


def base_and_factors(axes: Sequence[Axis]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Compute the resolution of ``s0`` and the factors that give axes their scale and translation.

    The inverse of :func:`centre_shifts`. Not exact for all axes: read the result again, and
    compare.

    Examples
    --------
    >>> base_and_factors([Axis(name="x", scale=0.5, translation=0.125)])
    ((0.25,), (2.0,))
    """
    base = tuple(axis.scale - 2 * axis.translation for axis in axes)
    if any(not b or axis.scale / b < 1 for b, axis in zip(base, axes, strict=True)):
        return tuple(axis.scale for axis in axes), (1.0,) * len(axes)
    return base, tuple(axis.scale / b for b, axis in zip(base, axes, strict=True))


def exact_factors(
    axes: Sequence[Axis], first: Sequence[Axis] | None
) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Compute factors that give the scale of a level from that of ``s0``, to the last bit.

    None if there are none, or ``first`` is None.

    Examples
    --------
    >>> exact_factors([Axis(name="x", scale=0.5)], [Axis(name="x", scale=0.25)])
    ((0.25,), (2.0,))
    """
    if first is None or len(first) != len(axes) or not all(axis.scale for axis in first):
        return None
    base = tuple(axis.scale for axis in first)
    by = tuple(float(f"{a.scale / b:.12g}") for a, b in zip(axes, base, strict=True))
    is_exact = all(b * f == a.scale for a, b, f in zip(axes, base, by, strict=True))
    return (base, by) if is_exact and min(by) > 0 else None


def one_unit(axes: Sequence[Axis]) -> dict[str, JSON]:
    """Make ``unit`` for n5-universe's generic parser, which has one for all axes of space.

    Keep the given spelling if Neuroglancer's symbol has the same size; else use the symbol.
    """
    units = {axis.unit for axis in axes if axis.type == "space"}
    if len(units) != 1 or not all(units):
        return {}
    (unit,) = units
    name, size = symbol(unit)
    return {"unit": unit if size == 1 else name}


def _units_and_resolution(axes: Sequence[Axis]) -> dict[str, JSON]:
    return {
        "units": [axis.unit or "" for axis in axes],
        "resolution": [axis.scale for axis in axes],
    }


def _in_known_units(axes: Sequence[Axis]) -> list[Axis]:
    """Convert axes to units that Neuroglancer knows; it refuses datasets with other units."""
    return [
        replace(axis, unit=unit, scale=axis.scale * size, translation=axis.translation * size)
        for axis in axes
        for unit, size in [symbol(axis.unit)]
    ]


def _groups_above(node: Node) -> list[Mapping[str, JSON]]:
    """Return the attributes of the groups above that may be those of the dataset."""
    return [attributes for attributes in node.ancestors if not is_of_levels(attributes)]


def _inherited[T](
    node: Node, key: str, read_at: Callable[[Mapping[str, JSON], str, int], T | None]
) -> T | None:
    """Read a list of the dataset, or of the nearest ancestor that has one of the same rank."""
    # a text belongs to CF (units), or is a remark on the resolution
    if isinstance(node.attributes.get(key), list):
        return read_at(node.attributes, key, n_listed(node.attributes, key, node.ndim))
    for attributes in _groups_above(node):
        listed = attributes.get(key)
        if isinstance(listed, list) and len(listed) == node.ndim:
            return read_at(attributes, key, node.ndim)
    return None


def _resolution(
    node: Node,
) -> tuple[tuple[float, ...] | None, tuple[str, ...] | None, bool]:
    """Return the nearest resolution, the units, and whether the resolution is the dataset's own."""
    units = _inherited(node, "units", texts_at)
    resolution = _inherited(node, "resolution", numbers_at)
    is_own = isinstance(node.attributes.get("resolution"), list)
    nearest = _pixel_resolution(node)
    if nearest is None or is_own or (resolution is not None and not nearest[2]):
        return resolution, units, is_own
    resolution, value, is_own = nearest
    unit = mapping(value).get("unit")
    if isinstance(unit, str):
        return resolution, (unit,) * node.ndim, is_own
    default = "um" if isinstance(value, list) else "nm"  # n5-viewer writes bare lists
    return resolution, units or (default,) * node.ndim, is_own


def _pixel_resolution(node: Node) -> tuple[tuple[float, ...], JSON, bool] | None:
    """Return the nearest ``pixelResolution``: numbers, value, and whether the dataset has it."""
    for depth, attributes in enumerate((node.attributes, *_groups_above(node))):
        resolution = resolution_in(attributes)
        if resolution is not None and len(resolution) <= node.ndim:
            return resolution, attributes["pixelResolution"], not depth
    return None


NEUROGLANCER = Convention(
    name="neuroglancer",
    read=read,
    write=write,
    per_axis=_PER_AXIS,
    lists=_LISTS,
    objects=("pixelResolution", "coordinateArrays"),
    placing_keys=("resolution",),
    group_keys=KEYS,
    has_unit=True,
    problems=problems_of_factors,
)
