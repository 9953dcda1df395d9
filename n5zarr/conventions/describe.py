"""Describe axes in attributes of datasets and of the groups of levels, also for other readers.

n5-universe (Fiji, n5-viewer, Paintera) reads attributes of each level; Neuroglancer opens a pyramid
by attributes of its group; BigDataViewer by those of the setup. Each convention is written so that
all of them find the same scale, translation and unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from n5zarr.conventions import bdv, neuroglancer
from n5zarr.conventions.find import BY_NAME
from n5zarr.conventions.levels import entries_in, factors_in_json, path_of
from n5zarr.conventions.model import LEVELS_KEYS, Axis, Written, items_of, level_of, mapping
from n5zarr.errors import option_error
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import to_c

type ConventionName = Literal["auto", "cosem", "n5viewer", "neuroglancer", "ngff"]  # of WRITTEN
WRITTEN = {each.name: each.write for _, each in sorted(BY_NAME.items()) if each.write is not None}


def choose_convention(given: str, beside: Iterable[str | None]) -> str:
    """Choose the convention of a dataset: the given one; for ``"auto"`` that of the other levels.

    All levels of a pyramid need one convention, as n5-universe groups levels of the same class.

    Examples
    --------
    >>> choose_convention("auto", []), choose_convention("auto", ["names", "n5viewer"])
    ('cosem', 'n5viewer')
    """
    if given != "auto":
        return given
    return next((name for name in beside if name in WRITTEN), None) or "cosem"


def describe_axes(
    convention: str, axes: Sequence[Axis], path: str, first: Sequence[Axis] | None = None
) -> Written:
    """Make the attributes that describe axes in one convention.

    Parameters
    ----------
    convention : str
        One of :data:`WRITTEN`.
    axes : sequence of Axis
        The axes, in N5 order.
    path : str
        Path of the dataset, relative to its group.
    first : sequence of Axis, optional
        The axes of level ``s0`` beside the dataset, in N5 order.

    Raises
    ------
    N5UnrepresentableError
        The convention is unknown or read-only (``kind="option"``).
    """
    if convention not in WRITTEN:
        raise option_error(f"convention: expected one of {', '.join(WRITTEN)}, got {convention!r}")
    return WRITTEN[convention](axes, path, first)


def describe_levels(
    group: Mapping[str, JSON], levels: Mapping[int, Sequence[Axis]]
) -> dict[str, JSON]:
    """Add the attributes with which Neuroglancer opens the levels of a group as a pyramid.

    Removes earlier ones if the levels are not multiples of ``s0``. If the group describes its
    levels with other attributes, only extends its list of factors.

    Parameters
    ----------
    group : mapping
        Attributes of the group.
    levels : mapping of int to sequence of Axis
        The axes of each level, N5 order; empty for levels without a valid description.
    """
    factors = _factors(levels)
    others = without_levels(group)
    if neuroglancer.KEYS & others.keys():
        return {**group, **_continued(group, factors or [])}
    written = neuroglancer.write_group(levels[0], factors) if factors else {}
    return {**group, **written} if written else others


def _continued(group: Mapping[str, JSON], factors: Sequence[Sequence[float]]) -> dict[str, JSON]:
    """Add the factors of new levels to the lists of a group that begin with those of the others."""
    wanted: list[JSON] = [factors_in_json(by) for by in factors]
    lists = {key: group.get(key) for key in ("downsamplingFactors", "scales")}
    return {
        key: wanted
        for key, value in lists.items()
        if isinstance(value, list) and value and value == wanted[: len(value)] != wanted
    }


def without_levels(group: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the attributes of a group without those that :func:`describe_levels` adds."""
    is_described = neuroglancer.KEYS & group.keys() == LEVELS_KEYS
    left_out = LEVELS_KEYS if is_described else ()
    return {key: value for key, value in group.items() if key not in left_out}


def describe_setup(
    group: Mapping[str, JSON], levels: Mapping[int, Sequence[Axis]], data_type: str
) -> dict[str, JSON]:
    """Add the factors and the type of the levels to the attributes of BigDataViewer's ``setupN``.

    Time points share the list of factors: an existing list is only extended.
    """
    factors = _factors(levels)
    if factors is None or len(factors[0]) != 3:
        return dict(group)
    described = {**bdv.write_setup(factors, data_type), **group}
    return {**described, **_continued(group, factors)}


def _factors(levels: Mapping[int, Sequence[Axis]]) -> list[tuple[float, ...]] | None:
    """Compute the factors of each level relative to ``s0``; None if they form no pyramid."""
    if not levels or [*sorted(levels)] != [*range(len(levels))]:
        return None
    first = levels[0]
    factors = []
    for _, axes in sorted(levels.items()):
        if [(a.name, a.unit) for a in axes] != [(a.name, a.unit) for a in first]:
            return None
        ratios = [a.scale / f.scale if f.scale else 0.0 for a, f in zip(axes, first, strict=True)]
        if not all(ratio > 0 and math.isfinite(ratio) for ratio in ratios):
            return None
        factors.append(tuple(float(f"{ratio:.12g}") for ratio in ratios))
    return factors


# ---------------------------------------------------------------------- multiscales of a group


def remove_levels(attributes: Mapping[str, JSON], names: Sequence[str]) -> dict[str, JSON]:
    """Remove the entries of ``multiscales`` that describe datasets about to be created.

    Parameters
    ----------
    attributes : mapping
        Of the group.
    names : sequence of str
        Of the datasets.
    """
    multiscales = attributes.get("multiscales")
    if not isinstance(multiscales, list):
        return dict(attributes)
    images: list[JSON] = []
    for image in multiscales:
        levels = entries_in(mapping(image))
        kept = [entry for entry in levels if path_of(entry) not in names]
        if kept or not levels:
            images.append(image if kept == levels else {**mapping(image), "datasets": kept})
    others = {key: value for key, value in attributes.items() if key != "multiscales"}
    return {**others, "multiscales": images} if images else others


def add_level(
    attributes: Mapping[str, JSON], group: str, name: str, written: Written
) -> dict[str, JSON]:
    """Add a dataset to ``multiscales``, beside the other levels of its image.

    Parameters
    ----------
    attributes : mapping
        Of the group.
    group : str
        Its path; the last name is that of the image.
    name : str
        Of the dataset; ``s0``, ``s1``, ... are levels of one image, others separate images.
    written : Written
        The image and the level as the convention writes them.

    Returns
    -------
    dict
        The new attributes of the group; unchanged if the convention has no ``multiscales``.
    """
    ome = _ome_object(attributes, written)
    if ome is not None:
        return {**attributes, "ome": add_level(ome, group, name, _without_version(written))}
    multiscales = attributes.get("multiscales")
    is_level = level_of(name) is not None
    image, level = written.image or {}, written.level
    # an object instead of the list belongs to the canonical convention
    if not level or not isinstance(multiscales, list | None) or not (is_level or image):
        return dict(attributes)
    image_name = group.rpartition("/")[2] if is_level else name
    images = list(multiscales or [])
    position = _find_image(images, image_name, level, is_level=is_level)
    if position == len(images):
        images.append({"name": image_name, **image, "datasets": []})
    existing = mapping(images[position])
    order, new_order = existing.get("axes"), image.get("axes")
    if isinstance(order, list) and isinstance(new_order, list) and order != new_order:
        if order == [*to_c(new_order)]:
            level = _in_c_order(level)
        else:  # other axes: another image in the same group
            existing = {"name": f"{image_name}/{name}", **image, "datasets": []}
            images.append(existing)
            position = len(images) - 1
    levels = sorted([*entries_in(existing), level], key=_level_number)
    images[position] = {**image, **existing, "datasets": levels}
    return {**attributes, "multiscales": images}


def set_level(
    attributes: Mapping[str, JSON], group: str, name: str, written: Written
) -> dict[str, JSON]:
    """Replace the entry of a dataset in ``multiscales``, and keep the rest of its image.

    If no image of this convention has the dataset, add it like :func:`add_level`, and remove it
    from images of other conventions.
    """
    ome = _ome_object(attributes, written)
    if ome is not None:
        return {**attributes, "ome": set_level(ome, group, name, _without_version(written))}
    images = items_of(attributes.get("multiscales"))
    level, axes = written.level or {}, (written.image or {}).get("axes")
    transform = next((key for key in level if key != "path"), "")
    for position, image in enumerate(images):
        old, levels = mapping(image), list(entries_in(mapping(image)))
        found = [i for i, e in enumerate(levels) if path_of(e) == name and transform in mapping(e)]
        if not found:
            continue
        new = dict(level)
        if isinstance(axes, list) and _names_of(old.get("axes")) == _names_of([*to_c(axes)]):
            new, axes = _in_c_order(new), [*to_c(axes)]
        levels[found[0]] = {**mapping(levels[found[0]]), **new}
        described: dict[str, JSON] = {} if axes is None else {"axes": axes}
        # transforms of the image would be applied to those of its levels
        kept = {k: v for k, v in old.items() if k != "coordinateTransformations"}
        changed = list(images)
        changed[position] = {**kept, **described, "datasets": levels}
        return {**attributes, "multiscales": changed}
    return add_level(remove_levels(attributes, [name]), group, name, written)


def shares_transforms(attributes: Mapping[str, JSON], name: str) -> bool:
    """Whether a dataset belongs to an image of several levels that has transforms for all."""
    for image in map(mapping, items_of(attributes.get("multiscales"))):
        paths = [*map(path_of, entries_in(image))]
        if name in paths and len(paths) > 1 and image.get("coordinateTransformations"):
            return True
    return False


def _ome_object(attributes: Mapping[str, JSON], written: Written) -> Mapping[str, JSON] | None:
    """Return the object that holds ``multiscales`` in OME-NGFF 0.5, if the group has it."""
    ome = mapping(attributes.get("ome"))
    is_ngff = "coordinateTransformations" in (written.level or {})
    return ome if is_ngff and isinstance(ome.get("multiscales"), list) else None


def _without_version(written: Written) -> Written:
    """Remove the version of the image, which 0.5 stores once, above."""
    image = {key: value for key, value in (written.image or {}).items() if key != "version"}
    return written._replace(image=image)


def _names_of(axes: JSON) -> list[JSON]:
    return [mapping(axis).get("name") for axis in items_of(axes)]


def _find_image(
    images: Sequence[JSON], name: str, level: Mapping[str, JSON], *, is_level: bool
) -> int:
    """Return the position of the image of the same convention with this name, or with other levels.

    Return the number of images if there is no such image.
    """
    for position, image in enumerate(images):
        levels = mapping(image).get("datasets")
        if not isinstance(levels, list):
            continue
        has_levels = is_level and any(level_of(str(path_of(entry))) is not None for entry in levels)
        if not has_levels and mapping(image).get("name") != name:
            continue
        if all(isinstance(entry, Mapping) and entry.keys() == level.keys() for entry in levels):
            return position
    return len(images)


def _in_c_order(level: Mapping[str, JSON]) -> dict[str, JSON]:
    """Reverse the lists of a level's transforms, for an image whose axes are in C order."""
    steps: list[JSON] = [
        {key: [*to_c(v)] if isinstance(v, list) else v for key, v in mapping(step).items()}
        for step in items_of(level["coordinateTransformations"])
    ]
    return {**level, "coordinateTransformations": steps}


def _level_number(entry: JSON) -> tuple[int, str]:
    path = path_of(entry) or ""
    return (int(path[1:]), "") if path[1:].isdigit() else (-1, path)
