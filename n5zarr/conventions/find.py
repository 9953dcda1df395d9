"""Find the convention that a dataset follows: try each, in n5-universe's order.

First COSEM, n5-viewer and canonical on the dataset itself; then the conventions that n5-universe
lacks or reads from groups; then ImageJ, which n5-universe does not try by default, ilastik, and
BigStitcher-Spark's bounding box; then factors alone, which n5-universe's generic parser reads
last; then names of axes alone, and last shapes, of levels without any description. COSEM on groups
and render come before n5-viewer, because their levels have n5-viewer's ``pixelResolution`` too.

If no convention places a dataset, attributes that would place it if they were complete are
reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from n5zarr.conventions import (
    bdv,
    canonical,
    cosem,
    funlib,
    fused,
    ilastik,
    imagej,
    n5viewer,
    neuroglancer,
    ngff,
    paintera,
    render,
)
from n5zarr.conventions.axis_names import AXES_KEY, letters_of
from n5zarr.conventions.levels import (
    by_shapes,
    downsampling_factors,
    entries_in,
    entries_of,
    images_in,
    level_by_factors,
    path_of,
    problems_of_factors,
    ratios,
)
from n5zarr.conventions.model import (
    Axis,
    Convention,
    Geometry,
    MisfitError,
    Node,
    axes_of,
    brief,
    items_of,
    level_of,
    mapping,
    numbers,
)
from n5zarr.conventions.units import is_unit, ratio, symbol
from n5zarr.format.lenient_json import JSON


def _names_only(node: Node) -> Geometry | None:
    if node.names is None:
        return None
    return Geometry(convention="names", axes=axes_of(node.ndim, names=node.names), names_only=True)


def _by_factors(node: Node) -> Geometry | None:
    by = downsampling_factors(node)
    return None if by is None else level_by_factors(node, by, _geometry_of_finest(node))


def _by_shapes(node: Node) -> Geometry | None:
    """Scale a level without any description by the ratio of the shapes; None for other datasets."""
    level = node.first
    if level is None or not node.is_like_first or ratios(level.dimensions, node.dimensions) is None:
        return None
    first = _geometry_of_finest(node)
    axes = None if first is None else first.axes
    return by_shapes(node.dimensions, level.dimensions, axes, node.names)


def _geometry_of_finest(node: Node) -> Geometry | None:
    """Find the axes of the finest level, of which the dataset is another one."""
    if node.first is None or node.first.ndim != node.ndim:
        return None
    return find_geometry(node.first).geometry


# in the order in which they are tried, three once more for attributes of groups
CONVENTIONS = (
    cosem.COSEM,
    render.RENDER,
    n5viewer.N5VIEWER,
    canonical.CANONICAL,
    bdv.BDV,
    ngff.NGFF,
    replace(canonical.CANONICAL, read=canonical.read_group),
    funlib.FUNLIB,
    replace(n5viewer.N5VIEWER, read=n5viewer.read_group),
    neuroglancer.NEUROGLANCER,
    paintera.PAINTERA,
    replace(funlib.FUNLIB, read=funlib.read_group),
    imagej.IMAGEJ,
    ilastik.ILASTIK,
    fused.FUSED,
    Convention(name="factors", read=_by_factors, is_by_factors=True, problems=problems_of_factors),
    Convention(name="names", read=_names_only),
    Convention(name="shapes", read=_by_shapes, problems=problems_of_factors),
)
BY_NAME = {each.name: each for each in reversed(CONVENTIONS)}  # the first of a name
PLACING_KEYS = frozenset(key for each in CONVENTIONS for key in each.placing_keys)
GROUP_KEYS = frozenset(key for each in CONVENTIONS for key in each.group_keys)
_PER_AXIS = {key for each in CONVENTIONS for key in each.per_axis}
_LISTS = {key for each in CONVENTIONS for key in each.lists}
_OBJECTS = {key for each in CONVENTIONS for key in each.objects}
_TURNED = (
    "the registration turns or shears: positions are along the axes of the view, and "
    "the attribute 'registration' has the matrix that maps them to the world"
)


class GeometryAndProblems(NamedTuple):
    """The axes of a dataset, and the problems of the attributes that describe them."""

    geometry: Geometry | None
    problems: tuple[str, ...]


def find_geometry(node: Node, convention: str | None = None) -> GeometryAndProblems:
    """Find the axes of a dataset in its attributes and those of the groups above it.

    Parameters
    ----------
    node : Node
        The dataset and the groups above it.
    convention : str, optional
        The only convention to try.

    Returns
    -------
    GeometryAndProblems
        The geometry is None if no convention that was tried describes the axes.
    """
    is_alone = node.first is None and node.view is None and node.given_names is None
    if is_alone and not node.attributes and not any(node.ancestors):
        return GeometryAndProblems(None, ())
    problems: list[str] = []
    geometry = None
    try:
        for each in CONVENTIONS:
            geometry = each.read(node) if convention in (None, each.name) else None
            if geometry is not None:
                geometry = replace(geometry, convention=each.name)
                break
    except MisfitError as err:  # a later convention would read only a part of the attributes
        problems.append(str(err))
        geometry = _names_only(node) or (_by_shapes(node) if convention is None else None)
    if not problems and convention is None and (geometry is None or not geometry.is_stated):
        problems += _ignored(node)
    if geometry is None or geometry.convention in ("n5viewer", "factors", "names", "shapes"):
        problems += n5viewer.problems_of(node)
    if geometry is not None:
        geometry = replace(geometry, axes=_sensible(geometry.axes, problems), node=node)
        problems += BY_NAME[geometry.convention].problems(node)
        problems += [_TURNED] if geometry.rest else []
    return GeometryAndProblems(geometry, tuple(dict.fromkeys(problems)))


def problems_of_level(geometry: Geometry | None) -> Iterator[str]:
    """Say which metadata place a dataset elsewhere than its elements are, as a level of an image.

    Reading needs none of this: checks and conversions ask it.
    """
    if geometry is None or geometry.node is None:
        return
    node = geometry.node
    for image, _ in entries_of(node.path, node.ancestors):
        yield from misspelt_units(image)
    first = node.first
    if first is None or first.ndim != node.ndim or not geometry.is_stated:
        return
    finest = find_geometry(first).geometry
    if finest is not None and finest.is_stated:
        axes = finest.axes
    elif geometry.convention == "factors":
        axes = axes_of(node.ndim)  # which factors count
    else:
        return
    is_level = node.first_name is not None or any(
        axis.scale != other.scale for axis, other in zip(axes, geometry.axes, strict=True)
    )
    if is_level and not node.is_like_first:
        yield f"dataType: expected that of {first.path[-1]}, as this is another level of it"
    # others of the same scale may be no levels, but sections of a series
    if is_level or (node.is_like_first and ratios(first.dimensions, node.dimensions)):
        yield from problems_of_scale(
            node.dimensions, geometry.axes, first.dimensions, axes, first.path[-1]
        )


# elements by which a level may be larger or smaller than its scale says
_ROUNDED = 1.0 + 1e-6
_OFTEN_ROUNDED = 2.0  # from level to level, by factors that are not whole
_PART = 0.01  # of its extent, the same: scales are rounded, too, as 4.0003 to 4


def problems_of_scale(
    shape: Sequence[int],
    axes: Sequence[Axis],
    first_shape: Sequence[int],
    first_axes: Sequence[Axis],
    name: str,
) -> Iterator[str]:
    """Say that the scale of a level contradicts its shape, if it does.

    Parameters
    ----------
    shape, axes : sequence
        The level: its extent in elements, and its axes in the same order.
    first_shape, first_axes : sequence
        The finest level.
    name : str
        Name of the finest level.
    """
    if not all(map(_agrees, shape, axes, first_shape, first_axes)):
        yield (
            f"scale: expected about that of {name} times the ratio of the shapes, "
            f"{(*first_shape,)} and {(*shape,)}, got {[axis.scale for axis in axes]} and "
            f"{[axis.scale for axis in first_axes]}"
        )


def _agrees(n: int, axis: Axis, n_first: int, first: Axis) -> bool:
    """Whether a level has about as many elements along an axis as its scale says.

    One that begins elsewhere shows a part of the image, and may have any number.
    """
    unit = ratio(axis.unit, first.unit)
    by = unit * axis.scale / first.scale if unit and first.scale else 0.0
    if not (0 < by < math.inf and n and n_first):
        return True
    start = abs(by * axis.translation / axis.scale - first.translation / first.scale)
    most = _ROUNDED if math.isclose(by, round(by), rel_tol=_PART) else _OFTEN_ROUNDED
    fits = abs(n - n_first / by) <= max(1.0, 1 / by) * most + _PART * n
    return fits or start > max(1.0, by, n_first / n)


def misspelt_units(image: Mapping[str, JSON]) -> list[str]:
    """Say that axes of OME-NGFF have ``units``, which no program reads, for ``unit``."""
    return [
        f"multiscales: axes: expected unit, got units: {brief(axis)}"
        for axis in map(mapping, items_of(image.get("axes")))
        if "units" in axis and "unit" not in axis
    ]


def _sensible(axes: tuple[Axis, ...], problems: list[str]) -> tuple[Axis, ...]:
    """Replace invalid values by defaults, and add each to the problems once."""
    kept: list[Axis] = []
    found: dict[str, list[str]] = {}
    for given in axes:
        axis, name = given, given.name
        if name and name in [other.name for other in kept]:
            problems.append(f"axes: expected distinct names, got {[a.name for a in axes]}")
            axis = replace(axis, name="")
        if not axis.scale or not math.isfinite(axis.scale) or not math.isfinite(axis.translation):
            message = (
                "expected a finite scale other than 0 and a finite translation, got "
                f"{axis.scale:g} and {axis.translation:g}"
            )
            found.setdefault(message, []).append(repr(name))
            axis = replace(axis, scale=1.0, translation=0.0, unit=None)
        if axis.unit and not is_unit(axis.unit):
            message = f"unit: expected one that n5zarr knows, got {axis.unit!r}"
            found.setdefault(message, []).append(repr(name))
        kept.append(axis)
    for message, names in found.items():
        problems.append(f"{'axis' if len(names) == 1 else 'axes'} {', '.join(names)}: {message}")
    return tuple(kept)


def other_attributes(attributes: Mapping[str, JSON], geometry: Geometry | None) -> dict[str, JSON]:
    """Return the attributes of a dataset without those that describe its axes.

    The attributes left out would be wrong as soon as the array is sliced.

    Parameters
    ----------
    attributes : mapping
        Of the dataset.
    geometry : Geometry or None
        The axes that these attributes describe, if any.
    """
    if geometry is None:
        return dict(attributes)
    convention, n = BY_NAME[geometry.convention], len(geometry.axes)
    own = {*convention.own_keys}
    if funlib.TYPES_KEY in own and "voxel_size" not in attributes:
        own.add("resolution")
    if letters_of(attributes.get(AXES_KEY), n):
        own.add(AXES_KEY)
    if geometry.is_stated:
        # a `resolution` may be that of the first axes, with all lists beside it
        lengths = range(1 if "resolution" in convention.per_axis else n, n + 1)
        own |= {key for key, value in attributes.items() if _describes_axes(key, value, lengths)}
        if convention.has_unit and _has_unit(attributes, geometry):
            own.add("unit")
    return {key: value for key, value in attributes.items() if key not in own}


def _has_unit(attributes: Mapping[str, JSON], geometry: Geometry) -> bool:
    """Whether ``unit`` repeats the unit of the axes, in the spelling that was given."""
    units = [unit for axis in geometry.axes for unit in (axis.unit, symbol(axis.unit)[0])]
    return isinstance(attributes.get("resolution"), list) and attributes.get("unit") in units


def _describes_axes(key: str, value: JSON, lengths: range) -> bool:
    """Whether a value under this key may belong to a convention; else it is a user's attribute."""
    if isinstance(value, list):
        return key in _LISTS or (key in _PER_AXIS and len(value) in lengths)
    return isinstance(value, Mapping) and key in _OBJECTS


_SCALES = "resolution, pixelResolution, voxel_size or downsamplingFactors"


def _ignored(node: Node) -> Iterator[str]:
    """Say which attributes would place a dataset if they were complete or valid."""
    own = node.attributes
    if numbers(own.get("offset"), node.ndim) is not None:
        yield f"offset: expected {_SCALES} beside it, got none"
    if own.get("voxel_size") is not None and not isinstance(own["voxel_size"], list):
        yield f"voxel_size: expected a list of numbers, got {brief(own['voxel_size'])}"
    transforms = own.get("coordinateTransformations")
    if transforms is not None and not isinstance(transforms, list):
        yield f"coordinateTransformations: expected a list, got {brief(transforms)}"
    group = node.ancestors[0] if node.ancestors else {}
    size = group.get("voxel_size")
    if node.level is not None and size is not None:  # others in the group may have other axes
        yield (
            f"voxel_size of the group: expected a list of at most {node.ndim} numbers, got "
            f"{brief(size)}"
        )
    found = [*entries_of(node.path, node.ancestors)]
    for image, _ in found:
        axes = image.get("axes")
        if axes is not None and not isinstance(axes, list):
            yield f"multiscales: axes: expected a list of {node.ndim} axes, got {brief(axes)}"
    listed = [str(path_of(entry)) for image in images_in(group) for entry in entries_in(image)]
    # a level beside listed ones has been added later
    are_others = all(level_of(path) is None for path in listed)
    if node.level is not None and not found and listed and are_others:
        got = ", ".join(listed[:8])
        yield f"multiscales of the group: expected an entry for {node.path[-1]}, got {got}"
