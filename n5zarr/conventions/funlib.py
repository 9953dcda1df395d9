"""Read Funlib's ``voxel_size``, ``offset``, ``axis_names``, ``units`` and ``types``; **C order**.

funlib.persistence ``MetaDataFormat``, ``prepare_ds``. ``axis_names`` and ``types`` have all axes,
the other lists only those of the types ``space`` and ``time``, called axes of space here. Without
``types``, these are all but those whose names end in ``^``. ``resolution`` beside ``types`` is a
``voxel_size`` that a ``MetaDataFormat`` has renamed. The offset is that of the corner
of the first voxel, the same for all levels of a pyramid. So the centre of the first voxel of a
level is half a voxel further, less half a voxel of full resolution. A level without ``voxel_size``
has that of ``s0``, or of the group above, times its factors or the ratio of the shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import compress

from n5zarr.conventions.levels import factors_to_first, problems_of_factors
from n5zarr.conventions.model import (
    Convention,
    Geometry,
    MisfitError,
    Node,
    axes_of,
    brief,
    items_of,
    numbers,
    texts,
)
from n5zarr.conventions.units import unit_in
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import to_c, to_n5

_KEYS = ("voxel_size", "offset", "axis_names", "units")
TYPES_KEY = "types"
_OF_SPACE = ("space", "time")


def is_of_funlib(attributes: Mapping[str, JSON], ndim: int) -> bool:
    """Whether all lists of a dataset are Funlib's, which are in C order in N5, too."""
    return _with_voxel_size(attributes, ndim) is not None


def _with_voxel_size(attributes: Mapping[str, JSON], ndim: int) -> dict[str, JSON] | None:
    """Return the attributes with ``voxel_size``, whatever its name; None if it is missing."""
    is_renamed = texts(attributes.get(TYPES_KEY), ndim) is not None
    size = attributes.get("voxel_size", attributes.get("resolution") if is_renamed else None)
    return {**attributes, "voxel_size": size} if isinstance(size, list) else None


def read(node: Node) -> Geometry | None:
    """Read ``voxel_size``, ``offset``, ``units`` and names; None without ``voxel_size``."""
    attributes = _with_voxel_size(node.attributes, node.ndim)
    if attributes is None:
        return None
    is_space = _is_space(node, attributes)
    scale, offset = _voxel_size_and_offset(attributes, is_space)
    translation = _translation(node, scale, offset, is_space)
    return _geometry(node, attributes, is_space, scale, translation)


def read_group(node: Node) -> Geometry | None:
    """Read ``voxel_size`` of ``s0`` or the group above, of full resolution; None if missing."""
    beside = [] if node.first is None else [node.first.attributes]
    given = [a for a in (*beside, *node.ancestors[:1]) if isinstance(a.get("voxel_size"), list)]
    if not given or len(node.dimensions) < len(given[0]["voxel_size"]):  # type: ignore[arg-type]
        return None
    attributes = {
        **given[0],
        **{k: v for k, v in node.attributes.items() if k in (*_KEYS, TYPES_KEY)},
    }
    by = factors_to_first(node)
    if by is None:
        raise MisfitError(
            f"voxel_size of full resolution: expected factors of {node.path[-1]}, got none"
        )
    is_space = _is_space(node, attributes)
    base, offset = _voxel_size_and_offset(attributes, is_space)
    scale = [b * f for b, f in zip(base, to_c(by), strict=True)]
    translation = [o + (s - b) / 2 for o, s, b in zip(offset, scale, base, strict=True)]
    return _geometry(node, attributes, is_space, scale, translation)


def _is_space(node: Node, attributes: Mapping[str, JSON]) -> list[bool]:
    """Whether each axis is one of space, C order."""
    types = texts(attributes.get(TYPES_KEY), node.ndim)
    if types is not None:
        return [kind in _OF_SPACE for kind in types]
    names = texts(attributes.get("axis_names"), node.ndim)
    if names is not None:
        return [not name.endswith("^") for name in names]
    n = min(len(items_of(attributes["voxel_size"])), node.ndim)
    return [False] * (node.ndim - n) + [True] * n


def _geometry(
    node: Node,
    attributes: Mapping[str, JSON],
    is_space: Sequence[bool],
    scale: Sequence[float],
    translation: Sequence[float],
) -> Geometry:
    names = texts(attributes.get("axis_names"), node.ndim)
    units = attributes.get("units")
    if isinstance(units, list):
        listed = _spread("units", units, texts, is_space, "")
    else:
        listed = [unit_in(attributes) or "" if space else "" for space in is_space]
    axes = axes_of(
        node.ndim,
        names=node.names if names is None else to_n5([name.rstrip("^") for name in names]),
        scale=to_n5(scale),
        translation=to_n5(translation),
        units=to_n5(listed),
    )
    types = texts(attributes.get(TYPES_KEY), node.ndim)
    if types is not None:
        known = [kind if kind in (*_OF_SPACE, "channel") else "" for kind in to_n5(types)]
        axes = tuple(replace(axis, type=kind) for axis, kind in zip(axes, known, strict=True))
    return Geometry(axes=axes)


def _translation(
    node: Node, scale: Sequence[float], offset: Sequence[float], is_space: Sequence[bool]
) -> Sequence[float]:
    """Return the position of the first voxel; shift it for a level with the corner of ``s0``."""
    first = _with_voxel_size(node.first_attributes, node.ndim)
    if node.level is None or first is None:
        return offset
    base, begin = _voxel_size_and_offset(first, is_space)
    if begin != offset:
        return offset
    return [o + (s - b) / 2 for o, s, b in zip(offset, scale, base, strict=True)]


def _voxel_size_and_offset(
    attributes: Mapping[str, JSON], is_space: Sequence[bool]
) -> tuple[Sequence[float], Sequence[float]]:
    """Read the size of a voxel and the corner of the first one, along each axis."""
    n = sum(is_space)
    offset = attributes.get("offset", [0] * n)
    return (
        _spread("voxel_size", attributes.get("voxel_size"), numbers, is_space, 1.0),
        _spread("offset", offset, numbers, is_space, 0.0),
    )


def _spread[T](
    key: str,
    value: JSON,
    read_list: Callable[[JSON, int], tuple[T, ...] | None],
    is_space: Sequence[bool],
    other: T,
) -> Sequence[T]:
    """Assign values to the axes of space, and a default to all other axes."""
    n = sum(is_space)
    values = read_list(value, n)
    if values is None:
        values = tuple(compress(read_list(value, len(is_space)) or (), is_space))
    if len(values) != n:
        raise MisfitError(f"{key}: expected {n} values, one per axis of space, got {brief(value)}")
    given = iter(values)
    return [next(given) if space else other for space in is_space]


FUNLIB = Convention(
    name="funlib",
    read=read,
    per_axis=_KEYS,
    own_keys=(*_KEYS, TYPES_KEY),
    group_keys=_KEYS,
    problems=problems_of_factors,
)
