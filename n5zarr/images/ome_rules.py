"""Rules for the metadata of OME-Zarr 0.4 to 0.6, on documents alone.

Sources: https://ngff.openmicroscopy.org/0.4/ and /0.5/, "axes", "multiscales", "omero", "labels",
"plate" and "well", as far as wrong metadata make a reader fail or show something else. What writes
OME-Zarr asks them before it writes anything, ``validate`` of what is there.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
from zarr.types import AnyArray

from n5zarr.container.options import require
from n5zarr.conventions.find import misspelt_units, problems_of_scale
from n5zarr.conventions.levels import entries_in, path_of
from n5zarr.conventions.model import Axis, MisfitError, axes_of, brief, items_of, mapping, numbers
from n5zarr.errors import N5Warning
from n5zarr.format.lenient_json import JSON
from n5zarr.images.ome_documents import is_inside, level_paths, ome_part
from n5zarr.images.source import ArraySource

_ORDER = {"time": 0, "channel": 1, "space": 2}


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


def check_image(image: Mapping[str, JSON], arrays: Mapping[str, AnyArray | None]) -> Iterator[str]:
    """Yield what is wrong with an image of ``multiscales``.

    Parameters
    ----------
    image : mapping
        The image.
    arrays : mapping of str to zarr.Array or None
        The arrays by path below the group; None for a missing one.
    """
    paths: list[str] = []
    try:
        paths = level_paths(image)
        if not paths:
            yield f"multiscales: datasets: expected levels, got {brief(image.get('datasets'))}"
    except MisfitError as err:
        yield str(err)
    yield from _check_document(image)
    axes = image.get("axes")
    names = [a if isinstance(a, str) else mapping(a).get("name") for a in items_of(axes)]
    for path in paths:
        array = arrays.get(path)
        own = getattr(getattr(array, "metadata", None), "dimension_names", None)  # of Zarr v3
        if array is None:
            yield f"multiscales: path: expected an array at {path!r}, got none"
        elif isinstance(axes, list) and array.ndim != len(axes):
            yield f"{path}: expected {len(axes)} axes, as multiscales has, got {array.ndim}"
        elif own is not None and [*own] != names:
            yield f"{path}: dimension_names: expected {names}, as axes has, got {[*own]}"
    there = ((path, array) for path in paths if (array := arrays.get(path)) is not None)
    yield from _check_levels(image, [(path, array.shape, array.dtype) for path, array in there])


def check_written(where: str, image: Mapping[str, JSON], arrays: Mapping[str, ArraySource]) -> None:
    """Check an image before it is written, and warn as :func:`warn_of_levels`.

    Parameters
    ----------
    where : str
        Path of its group, for messages.
    image : mapping
        As in 0.5.
    arrays : mapping of str to ArraySource
        Its arrays by path.

    Raises
    ------
    N5UnrepresentableError
        No program would open it, or show it where it is (``kind="option"``).
    """
    problem, n_axes = next(_check_document(image), None), len(items_of(image.get("axes")))
    way_out = (
        "convert it to N5, mend there what is wrong (n5zarr.set_geometry), and convert that with "
        "ome=True (--ome), which orders the axes, and reverses mirrored ones"
        if 2 <= n_axes <= 5
        else "convert it without ome=True (--ome)"
    )
    require(problem is None, f"{where}: {problem}; {way_out}")
    warn_of_levels(where, image, arrays)


def warn_of_levels(
    where: str, image: Mapping[str, JSON], arrays: Mapping[str, ArraySource]
) -> None:
    """Warn of what programs open, but show in part, or elsewhere; see :func:`check_written`."""
    levels = [(path, array.shape, array.native_dtype) for path, array in arrays.items()]
    for problem in chain(_check_scales(image), _check_levels(image, levels)):
        warnings.warn(f"{where}: {problem}", N5Warning, stacklevel=6)


def _check_scales(image: Mapping[str, JSON]) -> Iterator[str]:
    """Check that each level has a size of its elements; mirrored ones have negative scales."""
    for entry in entries_in(image):
        for step in map(mapping, items_of(mapping(entry).get("coordinateTransformations"))):
            found = numbers(scale := step.get("scale", [1]))
            if found is None or not all(n and math.isfinite(n) for n in found):
                got = f"got {brief(scale)}, of which N5 has 1.0"
                yield f"{path_of(entry)}: scale: expected numbers other than 0, {got}"


def _check_document(image: Mapping[str, JSON]) -> Iterator[str]:
    """Check axes and transforms, which images have since 0.4."""
    if image.get("version") not in ("0.1", "0.2", "0.3"):
        axes = image.get("axes")
        yield from (f"multiscales: {problem}" for problem in check_axes(axes))
        yield from _check_transforms(image, len(axes) if isinstance(axes, list) else None)


def check_axes(axes: JSON) -> Iterator[str]:
    """Check names, types and order of the axes of 0.4 and 0.5."""
    if not isinstance(axes, list) or not 2 <= len(axes) <= 5:
        yield f"axes: expected a list of 2 to 5 axes, got {brief(axes)}"
        return
    names = [mapping(axis).get("name") for axis in axes]
    if not all(isinstance(n, str) for n in names) or len({*map(str, names)}) < len(names):
        yield f"axes: expected axes with distinct names, got {brief(names)}"
    kinds = [mapping(axis).get("type") for axis in axes]
    order = [_ORDER.get(str(kind), 1) for kind in kinds]
    if order.count(2) not in (2, 3) or order.count(0) > 1 or order.count(1) > 1:
        yield (
            "axes: expected two or three of the type space, at most one of time and "
            f"one other, got {brief(kinds)}"
        )
    if order != sorted(order):
        yield f"axes: expected the order time, channel, space, got {brief(kinds)}"


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
        elif kind == "scale" and not all(0 < n < math.inf for n in found):
            yield f"{what} scales above 0, got {brief([*found])}"


def _check_levels(
    image: Mapping[str, JSON], levels: Sequence[tuple[str, tuple[int, ...], np.dtype]]
) -> Iterator[str]:
    """Check units, and that levels have one type and get smaller, as their scales say."""
    yield from misspelt_units(image)
    places = {path_of(entry): _place(entry) for entry in entries_in(image)}
    for (path, shape, dtype), (_, before, _) in zip(levels[1:], levels, strict=False):
        first_path, first, kind = levels[0]
        expected = f"{path}: expected"
        if dtype.newbyteorder("=") != kind.newbyteorder("="):
            yield f"{expected} the data type of {first_path}, {kind}, got {dtype}"
        if len(shape) != len(first):
            yield f"{expected} the axes of {first_path}, {first}, got {shape}"
            continue
        if any(n > m for n, m in zip(shape, before, strict=False)):
            yield f"{expected} no larger shape than {before} before it, got {shape}"
        own, whole = places.get(path, ()), places.get(first_path, ())
        if len(own) == len(whole) == len(shape):
            problems = problems_of_scale(shape, own, first, whole, first_path)
            yield from (f"{path}: {problem}" for problem in problems)


def _place(entry: JSON) -> tuple[Axis, ...]:
    """Return the axes of a level with scale and translation; none without a scale."""
    steps = map(mapping, items_of(mapping(entry).get("coordinateTransformations")))
    found = {key: numbers(step.get(key)) or () for step in steps for key in step}
    scale = found.get("scale", ())
    return axes_of(len(scale), scale=scale, translation=found.get("translation", ()))


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
