"""Describe images of OME-Zarr as N5 does: levels ``s0``, ``s1``, ..., with attributes of N5.

OME-Zarr 0.1 to 0.5, and 0.6 where its transforms are scales and translations, as Zarr v2 or v3.
Each image gets the attributes that :func:`n5zarr.to_n5` writes, so that programs which read N5 find
names, units, scale and translation of all levels. ``omero`` and ``image-label`` stay as attributes
of the group of the image. Groups, ``labels`` among them, and other arrays keep their paths.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from n5zarr.container.options import require
from n5zarr.conventions import ngff
from n5zarr.conventions.describe import choose_convention, describe_axes, describe_levels
from n5zarr.conventions.listed import entries_in, path_of
from n5zarr.conventions.model import MisfitError, Node, brief, first_of, mapping
from n5zarr.conventions.multiscales import set_level
from n5zarr.errors import ErrorsAt, option_error
from n5zarr.format.order import CTuple, to_c, to_n5
from n5zarr.format.path import join
from n5zarr.images.ome_version import without_ome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.conventions.model import Axis
    from n5zarr.format.lenient_json import JSON
    from n5zarr.images.source import ArraySource, SourceTree

__all__ = ["from_ome"]

_FIVE = ("t", "c", "z", "y", "x")  # the axes of 0.1 and 0.2, which do not name them


def from_ome(tree: SourceTree) -> SourceTree:
    """Return OME-Zarr with the names and attributes of N5; a source without images unchanged.

    Levels that are not among the arrays are omitted.

    Raises
    ------
    N5UnrepresentableError
        ``multiscales`` does not fit the arrays, or has other transforms than scales and
        translations, or the name of a level is taken (``kind="option"``).
    """
    with ErrorsAt(tree.name):
        return _described(tree)


def _described(tree: SourceTree) -> SourceTree:
    levels_of_all: dict[str, tuple[str, ArraySource]] = {}  # new path and array by old path
    groups = dict(tree.groups)
    for group, attributes in tree.groups.items():
        image = _image_in(attributes)
        levels = {} if image is None else _levels(group, image, tree.arrays)
        if levels:
            taken = {level.path for level in levels.values()}
            above = f"{group}/" if group else ""
            is_alone = all(path in taken for path in tree.arrays if path.startswith(above))
            arrays, groups[group] = _describe(
                group, attributes, levels, tree.arrays, is_alone=is_alone
            )
            levels_of_all |= arrays
    if not levels_of_all:
        return tree
    others = {p: (p, array) for p, array in tree.arrays.items() if p not in levels_of_all}
    found: dict[str, ArraySource] = {}
    origins: dict[str, str] = {}
    for old, (new, array) in (levels_of_all | others).items():
        require(
            origins.setdefault(new, old) == old,
            f"{old}: expected a name that no level needs, got {new}, the path of "
            f"{origins[new]} in N5; rename it first",
        )
        found[new] = array
    return replace(tree, arrays=found, groups=dict(sorted(groups.items())))


def _image_in(attributes: Mapping[str, JSON]) -> Mapping[str, JSON] | None:
    """Return the first image of a group, in the form of 0.5; None for levels of COSEM.

    Copies of N5 in Zarr have COSEM's ``multiscales``, whose levels have a ``transform``.
    """
    images = mapping(attributes.get("ome")).get("multiscales", attributes.get("multiscales"))
    image = first_of(images)
    is_cosem = any("transform" in mapping(entry) for entry in entries_in(image))
    return image if "datasets" in image and not is_cosem else None


class _Level(NamedTuple):
    """A level of an image: where it is, and its axes in N5 order."""

    path: str
    axes: Sequence[Axis]


def _levels(
    group: str, image: Mapping[str, JSON], arrays: Mapping[str, ArraySource]
) -> dict[int, _Level]:
    """Read the axes of the existing levels of an image, by number."""
    listed = map(path_of, entries_in(image))
    paths = {i: path for i, path in enumerate(listed) if path and join(group, path) in arrays}
    if not paths:
        return {}
    first = arrays[join(group, next(iter(paths.values())))]
    found: dict[int, _Level] = {}
    try:
        image = _as_05(image, len(first.shape))
        for number, inner in paths.items():
            path, names = join(group, inner), tuple(inner.split("/"))
            node = Node(
                path=names,
                dimensions=to_n5(CTuple(arrays[path].shape)),
                attributes={},
                ancestors=[*[{}] * (len(names) - 1), {"multiscales": [dict(image)]}],
                first_level=to_n5(CTuple(first.shape)),
            )
            geometry = ngff.read(node, is_c_order=True)
            if geometry is not None:
                found[number] = _Level(path, geometry.axes)
    except MisfitError as err:
        raise option_error(f"{group or '/'}: {err}") from err
    return found


def _as_05(image: Mapping[str, JSON], ndim: int) -> dict[str, JSON]:
    """Return an image with axes and transforms in the places of 0.5.

    0.1 and 0.2 have no axes; 0.6 has them in coordinate systems, and sequences of transforms.
    """
    found = dict(image)
    systems = found.get("coordinateSystems")
    if "axes" not in found and isinstance(systems, list) and systems:
        found["axes"] = first_of(systems).get("axes")
        # those of the image lead to other systems
        found.pop("coordinateTransformations", None)
    if "axes" not in found:
        found["axes"] = [*_FIVE[-ndim:]]
    if not isinstance(found["axes"], list):
        raise MisfitError(f"multiscales: axes: expected a list, got {brief(found['axes'])}")
    datasets = found.get("datasets")
    found["datasets"] = [
        {**mapping(entry), **_flat(mapping(entry))}
        for entry in (datasets if isinstance(datasets, list) else ())
    ]
    return found


def _flat(entry: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the transforms of a level with those in sequences in one list."""
    given = entry.get("coordinateTransformations")
    if not isinstance(given, list):
        return {}
    steps: list[JSON] = []
    for step in given:
        inner = mapping(step).get("transformations")
        steps += inner if isinstance(inner, list) else [step]
    kinds = {str(mapping(step).get("type")) for step in steps}
    others = kinds - {"scale", "translation", "identity"}
    if others:
        message = f"multiscales: expected scales and translations, got {', '.join(sorted(others))}"
        raise MisfitError(message)
    return {"coordinateTransformations": steps}


def _describe(
    group: str,
    attributes: Mapping[str, JSON],
    levels: Mapping[int, _Level],
    arrays: Mapping[str, ArraySource],
    *,
    is_alone: bool,
) -> tuple[dict[str, tuple[str, ArraySource]], dict[str, JSON]]:
    """Return new path and array of each level by its old path, and attributes of the group."""
    ome = mapping(attributes.get("ome"))
    described = without_ome(attributes)
    kept = {key: ome.get(key, attributes.get(key)) for key in ("omero", "image-label", "labels")}
    described |= {key: value for key, value in kept.items() if value is not None}
    convention = choose_convention("auto", [])
    first = next(iter(levels.values())).axes
    arrays_of_levels = {}
    for i, (path, axes) in levels.items():
        array = arrays[path]
        written = describe_axes(convention, axes, f"s{i}", first if i else None)
        described = set_level(described, group, f"s{i}", written)
        arrays_of_levels[path] = (
            join(group, f"s{i}"),
            replace(
                array,
                dimension_names=to_c([axis.name for axis in axes]),
                attributes={**array.attributes, **written.on_dataset(array.attributes)},
            ),
        )
    if is_alone:  # else other nodes of the group would inherit Neuroglancer's attributes
        described = describe_levels(described, {i: level.axes for i, level in levels.items()})
    return arrays_of_levels, described
