"""Find the levels that ``multiscales`` list, and place levels by those of the finest; N5 order.

``downsamplingFactors`` without a resolution are read as by n5-universe's
``N5GenericSingleScaleMetadataParser``: an element is the average of as many of the finest level, so
the first one is shifted by (factor - 1) / 2 of these; an ``offset`` replaces the shift. n5-spark
and BigStitcher-Spark write such levels. Where the finest level has a resolution, the factors
multiply its scale; else positions count elements of full resolution, also those of a finest level
that has factors, too, and have no unit.

A level without any description is placed by the ratio of the shapes, as n5-universe does for
OME-NGFF 0.3 (``OmeNgffV03MetadataProcessor``): it is not rounded, and levels have no shift.

Levels without factors and without ``s0``, to which a group gives a resolution, are placed by their
names, ``s<k>`` by 2^k, as n5-universe does where a dataset has ``pixelResolution``; with a warning,
and only if the shapes of the levels do not contradict.
"""

from __future__ import annotations

import math
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from n5zarr.conventions.model import (
    Axis,
    Geometry,
    MisfitError,
    Node,
    axes_of,
    brief,
    centre_shifts,
    items_of,
    mapping,
    numbers,
    numbers_at,
    resolution_in,
)
from n5zarr.conventions.units import offset_at, unit_in
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import is_name

type Steps = tuple[tuple[float, ...], tuple[float, ...]]
"""Scale and translation along each axis."""


def images_in(group: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    """Return the images of a group: those of OME-NGFF 0.5's ``ome``, then of ``multiscales``.

    ``multiscales`` of the canonical convention is an object: a single image.
    """
    if not group:  # as most are, of which trees read very many
        return []
    found = (holder.get("multiscales") for holder in (mapping(group.get("ome")), group))
    return [mapping(m) for each in found for m in (each if isinstance(each, list) else [each])]


def entries_of(
    path: Sequence[str], ancestors: Sequence[Mapping[str, JSON]]
) -> Iterator[tuple[Mapping[str, JSON], Mapping[str, JSON]]]:
    """Find a dataset in ``multiscales`` of the groups above it, the nearest first.

    Yields
    ------
    image, entry : mapping
        An image, and the entry of the dataset in it.
    """
    for depth, group in enumerate(ancestors, 1):
        wanted = "/".join(path[-depth:])
        for image in images_in(group):
            for entry in entries_in(image):
                if path_of(entry) == wanted:
                    yield image, mapping(entry)
                    break


def first_listed(path: Sequence[str], ancestors: Sequence[Mapping[str, JSON]]) -> str | None:
    """Return the name of the finest level of the image that lists a dataset.

    None if no image lists it, or if the finest level is not in the same group or has a name that
    no node can have.
    """
    for image, entry in entries_of(path, ancestors):
        first, own = path_of(entries_in(image)[0]), path_of(entry)
        if first is not None and own is not None:
            group, name = posixpath.split(first)
            return name if group == posixpath.dirname(own) and is_name(name) else None
    return None


def listed_levels(group: Mapping[str, JSON]) -> list[str]:
    """Return the paths of the levels of the first image in ``multiscales`` of a group."""
    listed = next(filter(None, map(entries_in, images_in(group))), [])
    return [path for path in map(path_of, listed) if path is not None]


def path_of(entry: JSON) -> str | None:
    """Return the path in an entry of ``multiscales``, as n5-universe's ``canonicalPath``.

    Examples
    --------
    >>> [path_of({"path": path}) for path in ("s0", "./s0", "/s0", "s0/", "a//s0", 5)]
    ['s0', 's0', 's0', 's0', 'a/s0', None]
    """
    path = mapping(entry).get("path")
    found = posixpath.normpath(path.lstrip("/")) if isinstance(path, str) else None
    return "" if found == "." else found


def entries_in(image: Mapping[str, JSON]) -> list[JSON]:
    """Return the entries of an image; an empty list if it has none."""
    return items_of(image.get("datasets"))


def scaled_axes(
    axes: Sequence[Axis], by: Sequence[float], shifts: Sequence[float] | None = None
) -> tuple[Axis, ...]:
    """Return the axes of a level from those of ``s0``, factors, and shifts of the first element."""
    each = zip(axes, by, shifts or (0.0,) * len(axes), strict=True)
    return tuple(
        replace(
            axis,
            scale=axis.scale * f,
            translation=axis.translation + shift,
            labels=axis.labels if f == 1 else None,
        )
        for axis, f, shift in each
    )


def renamed_axes(axes: Sequence[Axis], names: Sequence[str] | None) -> tuple[Axis, ...]:
    """Return axes with other names, if these are given, and the types of these."""
    if names is None or [axis.name for axis in axes] == [*names]:
        return tuple(axes)
    known = axes_of(len(names), names=names)
    return tuple(replace(a, name=k.name, type=k.type) for a, k in zip(axes, known, strict=True))


def counted_axes(level: Geometry) -> Geometry | None:
    """Return the axes of ``s0`` without a position, of which a level counts elements."""
    if level.convention not in ("factors", "shapes"):
        return None
    return replace(
        level,
        axes=tuple(replace(a, scale=1.0, translation=0.0) for a in level.axes),
        node=None,
    )


def diagonal_of(affine: Sequence[float], n: int) -> Steps | None:
    """Read scale and translation in the rows of an affine matrix; None if it mixes axes.

    Examples
    --------
    >>> diagonal_of((2, 0, 5, 0, 3, 7), 2), diagonal_of((2, 1, 5, 0, 3, 7), 2)
    (((2, 3), (5, 7)), None)
    """
    if any(affine[i * (n + 1) + j] for i in range(n) for j in range(n) if i != j):
        return None
    return tuple(affine[:: n + 2]), tuple(affine[n :: n + 1])


def applied_after(first: Steps, then: Steps) -> Steps:
    """Combine two scales and translations, the first of which is applied first.

    Examples
    --------
    >>> applied_after(((2.0,), (1.0,)), ((10.0,), (5.0,)))
    ((20.0,), (15.0,))
    """
    by, to = then
    return (
        tuple(b * scale for b, scale in zip(by, first[0], strict=True)),
        tuple(b * offset + t for b, offset, t in zip(by, first[1], to, strict=True)),
    )


def level_from(node: Node, resolution: Sequence[float], by: Sequence[float]) -> Steps:
    """Compute scale and translation of a level from the resolution on its dataset.

    Most programs write the resolution of ``s0`` on every level, which the factors multiply. But
    fibsem-tools and cellmap-schemas write each level's own: if the resolution on the dataset
    already equals the factors times that of the group or ``s0``, it is not multiplied again.
    """
    for base in _full_resolutions(node):
        pairs = list(zip(resolution, base, by, strict=False))
        if len(base) >= len(resolution) and all(
            math.isclose(r, b * f, rel_tol=1e-6) for r, b, f in pairs
        ):
            return tuple(resolution), tuple((r - b) / 2 for r, b, _ in pairs)
    first = (resolution_in(node.first_attributes) or ())[: len(resolution)]
    if (
        downsampling_factors(node) is None
        and len(first) == len(resolution)
        and first != tuple(resolution)
    ):
        # n5-viewer's is the same on all levels; this one differs, so each level has its own
        return tuple(resolution), tuple((r - b) / 2 for r, b in zip(resolution, first, strict=True))
    return tuple(r * f for r, f in zip(resolution, by, strict=True)), centre_shifts(resolution, by)


def _full_resolutions(node: Node) -> Iterator[tuple[float, ...]]:
    """Yield full resolution according to the groups above a level and to ``s0`` beside it."""
    # a level with its own factors may follow n5-viewer, regardless of `s0`
    is_complete = node.attributes.get("downsamplingFactors") is not None
    for attributes in (*node.ancestors[:2], *(() if is_complete else (node.first_attributes,))):
        for resolution in (resolution_in(attributes), numbers(attributes.get("resolution"))):
            if resolution:
                yield resolution


def factors_in_json(factors: Sequence[float]) -> list[JSON]:
    """Return factors as BigDataViewer and n5-spark write them: without decimal point if whole.

    Examples
    --------
    >>> factors_in_json([2.0, 1.0, 0.5])
    [2, 1, 0.5]
    """
    return [int(by) if by == int(by) else by for by in factors]


def level_by_factors(node: Node, by: Sequence[float], first: Geometry | None) -> Geometry:
    """Place a dataset by its factors.

    Parameters
    ----------
    node : Node
        The dataset.
    by : sequence of float
        Its factors, N5 order: its own, or those in the list of its group.
    first : Geometry or None
        The axes of ``s0``, if the dataset is another level.
    """
    axes = axes_of(node.ndim, names=node.names)
    if first is not None:
        base = counted_axes(first) if first.convention == "factors" else first
        axes = renamed_axes((base or first).axes, node.names)
    scale = [axis.scale for axis in axes]
    placed = scaled_axes(axes, by, centre_shifts(scale, by))
    unit = next((axis.unit for axis in axes if axis.unit), None)
    own = {"offset_unit": unit_in(node.attributes), **node.attributes}
    offset = offset_at(own, node.ndim, unit)
    if offset is not None:
        placed = tuple(replace(a, translation=o) for a, o in zip(placed, offset, strict=True))
    return Geometry(convention="factors", axes=placed)


def downsampling_factors(node: Node) -> tuple[float, ...] | None:
    """Return the downsampling factors of a level: its own, or those in its parent's list."""
    own = node.attributes.get("downsamplingFactors")
    if own is not None:
        given = numbers(own)
        if not given or len(given) > node.ndim or min(given) <= 0:
            raise MisfitError(
                f"downsamplingFactors: expected {node.ndim} numbers above 0, got {brief(own)}"
            )
        return given + (1.0,) * (node.ndim - len(given))  # the axes of space come first
    for key, levels in listed_factors(node.ancestors):
        if node.level is not None and node.level < len(levels):
            listed: dict[str, JSON] = {f"[{node.level}]": levels[node.level]}
            return numbers_at(listed, f"[{node.level}]", node.ndim, f"{key} of the group")
    return None


def listed_factors(
    above: Sequence[Mapping[str, JSON]],
) -> Iterator[tuple[str, Sequence[JSON]]]:
    """Yield the lists of factors of all levels in groups above them, with their keys."""
    for group in above[:2]:
        for key in ("downsamplingFactors", "scales"):
            if isinstance(levels := group.get(key), list):
                yield key, levels


def unlisted_level(above: Sequence[Mapping[str, JSON]]) -> str | None:
    """Return the name of the level that a list of factors lacks if it begins with ``s1``.

    None if it begins with that of ``s0``, a factor of 1 along each axis. Else it may list factors
    of a level that is finer than ``s0``, or lack ``s0``: then there is a level more than factors.

    Examples
    --------
    >>> unlisted_level([{"scales": [[2, 2], [4, 4]]}]), unlisted_level([{"scales": [[1, 1]]}])
    ('s2', None)
    """
    for _, levels in listed_factors(above):
        if set(numbers(levels[0]) or (1,) if levels else (1,)) != {1}:
            return f"s{len(levels)}"
    return None


def problems_of_factors(node: Node) -> Iterator[str]:
    """Say that levels have no factors, or that the list of the group begins with ``s1``.

    The latter if the shapes show it.
    """
    has_own = {"resolution", "pixelResolution", "voxel_size"} & node.attributes.keys()
    if _is_by_name(node) and not has_own and downsampling_factors(node) is None:
        yield (
            "downsamplingFactors: expected them, or s0, got neither: the voxel size of s<k> is "
            "taken as 2^k times that of the group, as its name says"
        )
    first = node.first_level
    for key, levels in listed_factors(node.ancestors):
        by = [each for each in (numbers(level, node.ndim) for level in levels) if each]
        if not by or len(by) < len(levels) or set(by[0]) == {1.0} or first is None:
            continue
        is_short = _fits(first, node.levels.get(len(levels), ()), by[-1])
        k = node.level or 0
        is_shifted = 0 < k < len(by) and _fits(first, node.dimensions, by[k - 1])
        if is_shifted:  # and neither those of `s0` nor of a finer level fit
            relative = [b / f if f else 0.0 for b, f in zip(by[k], by[0], strict=True)]
            is_shifted = not any(_fits(first, node.dimensions, each) for each in (by[k], relative))
        if is_short or is_shifted:
            yield (
                f"{key} of the group: expected the factors of s0 first, got {brief(levels[0])}, "
                "which the shapes of the levels show to be those of s1: levels have the voxel "
                f"size of the next one; put {[1] * node.ndim} first"
            )


def _fits(first: Sequence[int], dimensions: Sequence[int], by: Sequence[float]) -> bool:
    """Whether a level has the shape of another one divided by factors, however it is rounded."""
    if len(first) != len(dimensions):
        return False
    each = zip(first, dimensions, by, strict=True)
    return all(f > 0 and abs(n / f - m) < 1 for n, m, f in each)


def by_shapes(
    dimensions: Sequence[int],
    other: Sequence[int],
    axes: Sequence[Axis] | None,
    names: Sequence[str] | None,
) -> Geometry | None:
    """Scale a level by the ratio of its shape to that of another one; None if there is none.

    Parameters
    ----------
    dimensions, other : sequence of int
        Extent of the level, and of the other one, finer or coarser, in elements.
    axes : sequence of Axis or None
        Those of the other one, N5 order.
    names : sequence of str or None
        Names of the axes of the level; by default those of the other one, or none.
    """
    by: Sequence[float] | None = (1.0,) * len(other)
    if tuple(other) != tuple(dimensions):
        by, finer = ratios(other, dimensions), ratios(dimensions, other)
        by = by or (finer and [1 / f for f in finer])
    if by is None:
        return None
    known = axes_of(len(by), names=("",) * len(by)) if axes is None else axes
    return Geometry(convention="shapes", axes=scaled_axes(renamed_axes(known, names), by))


def factors_to_first(node: Node, names: Sequence[str] | None = None) -> tuple[float, ...] | None:
    """Return how many elements of ``s0`` one of a level is; None if its shape is that of no level.

    Parameters
    ----------
    node : Node
        The level.
    names : sequence of str, optional
        Names of its axes, if its attributes do not have them; channels and time have no factor.

    Raises
    ------
    MisfitError
        There are neither factors nor ``s0``, and the shapes of levels contradict their names.
    """
    by = downsampling_factors(node)
    if by is None and _is_by_name(node):
        return _factors_by_name(node, names or node.names)
    if by is None and node.first is not None:
        return ratios(node.first.dimensions, node.dimensions)
    return by or (1.0,) * node.ndim


def _is_by_name(node: Node) -> bool:
    """Whether only its name says how many elements of ``s0`` one of a level is."""
    has_s0 = node.first is not None and not node.first.level
    are_equal = len(node.levels) > 1 and set(node.levels.values()) == {node.dimensions}
    return bool(node.level) and not has_s0 and not are_equal  # equal ones are not of one image


def _factors_by_name(node: Node, names: Sequence[str] | None) -> tuple[float, ...]:
    """Return 2^k for each axis of space of ``s<k>``, unless the shapes of levels contradict."""
    own, shape = node.level or 0, node.dimensions
    is_space = [a.type not in ("channel", "time") for a in axes_of(node.ndim, names=names)]

    def by(steps: int) -> tuple[float, ...]:
        return tuple(2.0**steps if space else 1.0 for space in is_space)

    if all(
        _fits(other, shape, by(own - k)) if k < own else _fits(shape, other, by(k - own))
        for k, other in node.levels.items()
    ):
        return by(own)
    raise MisfitError(
        "downsamplingFactors: expected them, or s0, or levels each half of the one before, got "
        f"{brief({f's{k}': other for k, other in node.levels.items()})}"
    )


def ratios(first: Sequence[int], dimensions: Sequence[int]) -> tuple[float, ...] | None:
    """Return the ratios of two shapes; None unless the second is a plausible level of the first.

    Some axis is shorter, none is longer, and each is shorter by a whole factor, rounded up or down.

    Examples
    --------
    >>> ratios((12, 7, 5), (6, 4, 5)), ratios((12, 7, 5), (12, 7, 5)), ratios((100,), (37,))
    ((2.0, 1.75, 1.0), None, None)
    """
    if len(first) != len(dimensions) or not all((*first, *dimensions)):
        return None
    pairs = [*zip(first, dimensions, strict=True)]
    if all(n == m for n, m in pairs) or not all(_is_level(n, m) for n, m in pairs):
        return None
    return tuple(n / m for n, m in pairs)


def _is_level(n: int, m: int) -> bool:
    return any(n // f <= m <= -(-n // f) for f in (n // m, n // m + 1) if f)
