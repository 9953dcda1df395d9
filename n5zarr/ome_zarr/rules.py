"""Rules for the metadata of OME-Zarr 0.4 to 0.6, on documents alone.

Sources: https://ngff.openmicroscopy.org/0.4/ and /0.5/, "axes", "multiscales", "omero", "labels",
"plate" and "well", as far as wrong metadata make a reader fail or show something else.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from n5zarr.conventions.levels import entries_in, path_of
from n5zarr.conventions.model import MisfitError, brief, mapping, numbers
from n5zarr.images.ome_documents import is_inside, level_paths, ome_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np

    from n5zarr.format.lenient_json import JSON

__all__ = [
    "ArrayFacts",
    "check_image",
    "check_lists",
    "check_version",
    "paths_out",
]

_ORDER = {"time": 0, "channel": 1, "space": 2}
_CLOSE = 1.0 + 1e-6  # elements by which a level may be larger or smaller than its scale says


class ArrayFacts(NamedTuple):
    """What the rules need to know of an array of a level.

    Parameters
    ----------
    shape : tuple of int
        Its extent in elements.
    dtype : numpy.dtype
        Of its elements.
    names : sequence of str or None, optional
        Its ``dimension_names``; None in Zarr v2.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    names: Sequence[str | None] | None = None


def check_version(attributes: Mapping[str, JSON], zarr_format: int) -> Iterator[str]:
    """Yield what is wrong with the versions that a group states."""
    if zarr_format == 3:
        version = mapping(attributes.get("ome")).get("version")
        if version not in ("0.5", "0.6", "0.6rc0"):
            yield f"ome: version: expected '0.5' or '0.6' in Zarr v3, got {brief(version)}"
        return
    images = attributes.get("multiscales")
    for image in images if isinstance(images, list) else ():
        version = mapping(image).get("version", "0.4")
        if version not in ("0.1", "0.2", "0.3", "0.4"):
            yield f"multiscales: version: expected one up to '0.4' in Zarr v2, got {brief(version)}"


def check_image(
    image: JSON, arrays: Mapping[str, ArrayFacts | None], *, is_old: bool = False
) -> Iterator[str]:
    """Yield what is wrong with an image of ``multiscales``.

    Parameters
    ----------
    image : JSON
        The image.
    arrays : mapping of str to ArrayFacts or None
        The arrays by path below the group; None for a missing one.
    is_old : bool, optional
        Whether it is of 0.1 to 0.3, which have no types of axes and no transforms.
    """
    members = mapping(image)
    paths: list[str] = []
    try:
        paths = level_paths(members)
        if not paths:
            yield f"multiscales: datasets: expected levels, got {brief(members.get('datasets'))}"
    except MisfitError as err:
        yield str(err)
    axes = members.get("axes")
    listed, n_axes = axes if isinstance(axes, list) else [], None
    names = [axis if isinstance(axis, str) else mapping(axis).get("name") for axis in listed]
    if not is_old:
        yield from _check_axes(axes)
        n_axes = len(axes) if isinstance(axes, list) else None
        yield from _check_transforms(members, n_axes)
    for path in paths:
        facts = arrays.get(path)
        if facts is None:
            yield f"multiscales: path: expected an array at {path!r}, got none"
        elif n_axes is not None and len(facts.shape) != n_axes:
            yield f"{path}: expected {n_axes} axes, as multiscales has, got {len(facts.shape)}"
        elif facts.names is not None and [*facts.names] != names:
            yield f"{path}: dimension_names: expected {names}, as axes has, got {[*facts.names]}"
    known = [(path, facts) for path in paths if (facts := arrays.get(path)) is not None]
    yield from _check_levels(members, known)


def _check_axes(axes: JSON) -> Iterator[str]:
    """Check names, types and order of the axes of 0.4 and 0.5."""
    if not isinstance(axes, list) or not 2 <= len(axes) <= 5:
        yield f"multiscales: axes: expected a list of 2 to 5 axes, got {brief(axes)}"
        return
    names = [mapping(axis).get("name") for axis in axes]
    if not all(isinstance(n, str) for n in names) or len({*map(str, names)}) < len(names):
        yield f"multiscales: axes: expected axes with distinct names, got {brief(names)}"
    kinds = [mapping(axis).get("type") for axis in axes]
    order = [_ORDER.get(str(kind), 1) for kind in kinds]
    if order.count(2) not in (2, 3) or order.count(0) > 1 or order.count(1) > 1:
        yield (
            "multiscales: axes: expected two or three of the type space, at most one of time and "
            f"one other, got {brief(kinds)}"
        )
    if order != sorted(order):
        yield f"multiscales: axes: expected the order time, channel, space, got {brief(kinds)}"


def _check_transforms(image: Mapping[str, JSON], n_axes: int | None) -> Iterator[str]:
    """Check the transforms of each level, and those of the whole image."""
    for entry in entries_in(image):
        path, steps = path_of(entry), mapping(entry).get("coordinateTransformations")
        yield from (f"{path}: {problem}" for problem in _check_steps(steps, n_axes))
    if "coordinateTransformations" in image:
        yield from _check_steps(image["coordinateTransformations"], n_axes)


def _check_steps(steps: JSON, n_axes: int | None) -> Iterator[str]:
    what = "coordinateTransformations: expected"
    listed = steps if isinstance(steps, list) else []
    kinds = [mapping(step).get("type") for step in listed]
    if kinds not in (["scale"], ["scale", "translation"]):
        yield f"{what} a scale, and perhaps a translation after it, got {brief(steps)}"
        return
    for kind, step in zip(kinds, listed, strict=True):
        found = numbers(mapping(step).get(str(kind)))
        if found is None or (n_axes is not None and len(found) != n_axes):
            got = brief(mapping(step).get(str(kind)))
            yield f"{what} {'numbers' if n_axes is None else f'{n_axes} numbers'}, got {got}"
        elif kind == "scale" and not all(n > 0 for n in found):
            yield f"{what} scales above 0, got {brief([*found])}"


def _check_levels(
    image: Mapping[str, JSON], levels: Sequence[tuple[str, ArrayFacts]]
) -> Iterator[str]:
    """Check that levels have one type and get smaller, as their scales say."""
    scales = {path_of(entry): _scale(entry) for entry in entries_in(image)}
    for (path, facts), (_, before) in zip(levels[1:], levels, strict=False):
        first_path, first = levels[0]
        expected = f"{path}: expected"
        if facts.dtype != first.dtype:
            yield f"{expected} the data type of {first_path}, {first.dtype}, got {facts.dtype}"
        if len(facts.shape) != len(first.shape):
            yield f"{expected} the axes of {first_path}, {first.shape}, got {facts.shape}"
            continue
        if any(n > m for n, m in zip(facts.shape, before.shape, strict=False)):
            yield f"{expected} no larger shape than {before.shape} before it, got {facts.shape}"
        own, whole = scales.get(path), scales.get(first_path)
        if own and whole and len(own) == len(whole) == len(facts.shape):
            each = zip(facts.shape, first.shape, own, whole, strict=True)
            if not all(_fits(n, m, a / b) for n, m, a, b in each if b > 0):
                yield (
                    f"{path}: scale: expected about that of {first_path} times the ratio of the "
                    f"shapes, {first.shape} and {facts.shape}, got {[*own]} and {[*whole]}"
                )


def _fits(n: int, finest: int, ratio: float) -> bool:
    """Whether a level has as many elements as its scale says, rounded up or down."""
    return not math.isfinite(ratio) or ratio <= 0 or abs(n - finest / ratio) <= _CLOSE


def _scale(entry: JSON) -> tuple[float, ...] | None:
    steps = mapping(entry).get("coordinateTransformations")
    for step in steps if isinstance(steps, list) else ():
        if "scale" in mapping(step):
            return numbers(mapping(step)["scale"])
    return None


def check_lists(attributes: Mapping[str, JSON]) -> Iterator[str]:
    """Yield what is wrong with ``omero``, ``plate`` and ``well`` of a group."""
    omero = mapping(ome_part(attributes, "omero"))
    channels = omero.get("channels", [])
    for i, channel in enumerate(channels if isinstance(channels, list) else ()):
        window, color = mapping(channel).get("window"), mapping(channel).get("color")
        if not re.fullmatch("[0-9A-Fa-f]{6}", str(color)):
            yield f"omero: channel {i}: color: expected six hexadecimal digits, got {brief(color)}"
        lacking = [k for k in ("min", "max", "start", "end") if k not in mapping(window)]
        if lacking:
            wanted = "window: expected min, max, start and end"
            yield f"omero: channel {i}: {wanted}, got {brief(window)}"
    plate = ome_part(attributes, "plate")
    if plate is not None:
        yield from _check_plate(mapping(plate))
    well = ome_part(attributes, "well")
    if well is not None and not isinstance(mapping(well).get("images"), list):
        yield f"well: images: expected a list, got {brief(mapping(well).get('images'))}"


def _check_plate(plate: Mapping[str, JSON]) -> Iterator[str]:
    names: dict[str, list[JSON]] = {}
    for key in ("rows", "columns", "wells"):
        listed = plate.get(key)
        if not isinstance(listed, list) or not listed:
            yield f"plate: {key}: expected a list, got {brief(listed)}"
        names[key] = listed if isinstance(listed, list) else []
    rows, columns = ([mapping(e).get("name") for e in names[key]] for key in ("rows", "columns"))
    for well in map(mapping, names["wells"]):
        row, column = well.get("rowIndex"), well.get("columnIndex")
        known = [
            all_of[i] if isinstance(i, int) and 0 <= i < len(all_of) else None
            for i, all_of in ((row, rows), (column, columns))
        ]
        path = str(well.get("path"))
        if path.split("/") != known:
            yield (
                f"plate: wells: expected the path ROW/COLUMN of rowIndex and columnIndex, got "
                f"{path!r} with {brief(row)} and {brief(column)}"
            )


def paths_out(attributes: Mapping[str, JSON]) -> Iterator[str]:
    """Yield what is wrong with paths of labels, wells and images: those that leave the group."""
    wells = mapping(ome_part(attributes, "plate")).get("wells")
    images = mapping(ome_part(attributes, "well")).get("images")
    lists = {"labels": ome_part(attributes, "labels"), "plate: wells": wells, "well": images}
    for name, listed in lists.items():
        for entry in listed if isinstance(listed, list) else ():
            path = path_of({"path": entry} if isinstance(entry, str) else entry)
            if not path or not is_inside(path):
                yield f"{name}: expected the path of a node below the group, got {brief(entry)}"
