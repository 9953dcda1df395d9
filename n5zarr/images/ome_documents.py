"""Read the images of OME-Zarr, 0.1 to 0.6, and describe them as N5 does.

https://ngff.openmicroscopy.org, "multiscales", each version; all lists are in C order. Levels
become ``s0``, ``s1``, ..., with the attributes that :func:`n5zarr.to_n5` writes, so that programs
which read N5 find names, units, scale and translation. Images of a group after its first become
groups in it. ``omero``, ``image-label`` and ``labels``
stay as attributes of the group of the image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from n5zarr.conventions import ngff
from n5zarr.conventions.axis_names import XARRAY_KEY
from n5zarr.conventions.describe import choose_convention, describe_axes, describe_levels, set_level
from n5zarr.conventions.levels import entries_in, path_of
from n5zarr.conventions.model import (
    Axis,
    MisfitError,
    Node,
    Written,
    brief,
    first_of,
    items_of,
    mapping,
)
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import CTuple, to_n5
from n5zarr.format.path import groups_above, is_name
from n5zarr.images.ome_06 import REGISTRATION, from_06, is_06

UNNAMED_AXES = ("t", "c", "z", "y", "x")
"""The axes of images of 0.1 and 0.2."""

_PARTS = frozenset(
    {"ome", "multiscales", "omero", "image-label", "labels", "bioformats2raw.layout", XARRAY_KEY}
)
_KEPT = ("omero", "image-label", "labels")  # of the group of an image


class OmeLevel(NamedTuple):
    """A level of an image as N5 describes it.

    Parameters
    ----------
    path : str
        Path of its array below the group of the image.
    name : str
        Its name in N5: ``s0``, ``s1``, ...
    axes : sequence of Axis
        Its axes, N5 order.
    written : Written
        The attributes that place it.
    """

    path: str
    name: str
    axes: Sequence[Axis]
    written: Written


def ome_part(attributes: Mapping[str, JSON], key: str) -> JSON:
    """Return a part of the metadata of a group: in ``ome`` since 0.5; None if it is missing."""
    return mapping(attributes.get("ome")).get(key, attributes.get(key))


def scene_in(attributes: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return the scene of a group, as since 0.6; empty if it has none."""
    return mapping(mapping(attributes.get("ome")).get("scene"))


def plate_or_well(attributes: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the parts of the metadata of a group that make it a plate or a well, if it is one.

    Examples
    --------
    >>> plate_or_well({"ome": {"version": "0.5", "well": {"images": []}}, "plate": "P7"})
    {'well': {'images': []}}
    """
    members = {"plate": "wells", "well": "images"}
    parts = {key: mapping(ome_part(attributes, key)) for key in members}
    return {key: part for key, part in parts.items() if isinstance(part.get(members[key]), list)}


def without_ome(attributes: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the attributes of a group without those that a new description replaces."""
    return {key: value for key, value in attributes.items() if key not in _PARTS}


def image_in(attributes: Mapping[str, JSON]) -> Mapping[str, JSON] | None:
    """Return the first image of a group; None if it has none, or levels of COSEM."""
    return images_of(attributes).get("")


def images_of(attributes: Mapping[str, JSON]) -> dict[str, Mapping[str, JSON]]:
    """Return the images of a group by the names of the groups in it that they are in N5.

    The first is the group itself, ``""``; empty if it has no image, or levels of COSEM.

    Examples
    --------
    >>> em, seg = {"datasets": [{"path": "0"}]}, {"datasets": [{"path": "seg"}]}
    >>> images_of({"multiscales": [em, seg]})
    {'': {'datasets': [{'path': '0'}]}, 'image2': {'datasets': [{'path': 'seg'}]}}
    """
    listed = ome_part(attributes, "multiscales")
    is_image = "datasets" in first_of(listed) and not is_cosem(attributes)
    images = enumerate(map(mapping, items_of(listed) if is_image else []), 1)
    return {f"image{n}" if n > 1 else "": image for n, image in images}


def arrays_of_images(attributes: Mapping[str, JSON]) -> list[str]:
    """Return the paths of the arrays of all images of a group, each once; none that leads out."""
    images = images_of(attributes).values()
    return [*dict.fromkeys(path for each in images for path in paths_in(each.get("datasets")))]


def is_cosem(attributes: Mapping[str, JSON]) -> bool:
    """Whether ``multiscales`` are those of COSEM, whose levels have a ``transform``.

    Copies of N5 in Zarr have them.
    """
    image = first_of(ome_part(attributes, "multiscales"))
    return any("transform" in mapping(entry) for entry in entries_in(image))


def named_nodes(attributes: Mapping[str, JSON]) -> list[str]:
    """Return the paths of the nodes that the metadata of a group name, other than levels.

    Labels, wells of a plate, images of a well or a scene, and groups of the layout, whether they
    exist or not.

    Examples
    --------
    >>> named_nodes({"plate": {"wells": [{"path": "A/1"}, {"path": "../B/2"}]}})
    ['A/1']
    """
    wells = mapping(ome_part(attributes, "plate")).get("wells")
    images = mapping(ome_part(attributes, "well")).get("images")
    named = [*paths_in(ome_part(attributes, "labels")), *paths_in(wells), *paths_in(images)]
    steps = items_of(scene_in(attributes).get("coordinateTransformations"))
    named += paths_in([mapping(step).get(end) for step in steps for end in ("input", "output")])
    if ome_part(attributes, "bioformats2raw.layout") is not None:
        named.append("OME")
    return [*named, "labels"] if image_in(attributes) is not None else named


def is_inside(path: str) -> bool:
    """Whether a path below a group has the names of nodes alone, none of which leads out."""
    return all(map(is_name, path.split("/")))


def paths_in(listed: JSON) -> list[str]:
    """Return the paths in a list of paths, or of objects with a path; none that leads out."""
    found = []
    for entry in items_of(listed):
        path = path_of({"path": entry} if isinstance(entry, str) else entry)
        if path and is_inside(path):
            found.append(path)
    return found


def level_paths(image: Mapping[str, JSON]) -> list[str]:
    """Return the paths of the arrays of an image, relative to its group, the finest first.

    Raises
    ------
    MisfitError
        A path is missing, leads out of the group or to the group itself, is listed twice, or lies
        in another one.

    Examples
    --------
    >>> level_paths({"datasets": [{"path": "0"}, {"path": "./1/"}]})
    ['0', '1']
    >>> level_paths({"datasets": [{"path": "../0"}]})
    Traceback (most recent call last):
    n5zarr.conventions.model.MisfitError: multiscales: path: expected that of an array below ...
    """
    paths: dict[str, None] = {}  # in their order
    above: set[str] = set()  # the groups around them
    for entry in entries_in(image):
        path = path_of(entry)
        if not path or not is_inside(path):
            raise MisfitError(
                "multiscales: path: expected that of an array below the group, got "
                f"{brief(mapping(entry).get('path'))}"
            )
        if path in paths:
            raise MisfitError(f"multiscales: path: expected each one once, got {path!r} twice")
        around = {*groups_above(path)[1:]}
        if path in above or not around.isdisjoint(paths):
            raise MisfitError(
                "multiscales: path: expected arrays that are not in each other, got "
                f"{path!r} and another one"
            )
        paths[path] = None
        above |= around
    return list(paths)


def read_levels(
    image: Mapping[str, JSON], shapes: Mapping[str, tuple[int, ...]]
) -> dict[int, OmeLevel]:
    """Read the axes of the levels of an image, by number.

    Parameters
    ----------
    image : mapping
        An image in ``multiscales``.
    shapes : mapping of str to tuple of int
        The shapes of its arrays by path below the group, C order; levels without one are omitted.

    Raises
    ------
    MisfitError
        ``multiscales`` does not fit the arrays, or has other transforms than scales and
        translations.
    """
    paths = {i: path for i, path in enumerate(level_paths(image)) if path in shapes}
    if not paths:
        return {}
    first = shapes[next(iter(paths.values()))]
    image = as_05(image, len(first))
    levels: dict[int, OmeLevel] = {}
    for number, path in paths.items():
        names = tuple(path.split("/"))
        node = Node(
            path=names,
            dimensions=to_n5(CTuple(shapes[path])),
            attributes={},
            ancestors=[*[{}] * (len(names) - 1), {"multiscales": [dict(image)]}],
            first_level=to_n5(CTuple(first)),
        )
        geometry = ngff.read_listed(node, is_c_order=True)
        if geometry is not None:
            name = f"s{number}"
            written = describe_axes(choose_convention("auto", []), geometry.axes, name)
            levels[number] = OmeLevel(path, name, geometry.axes, written)
    return levels


def describe_image(
    attributes: Mapping[str, JSON],
    group: str,
    levels: Mapping[int, OmeLevel],
    *,
    is_alone: bool,
) -> dict[str, JSON]:
    """Describe an image in the attributes of its group, as N5 does.

    Parameters
    ----------
    attributes : mapping
        Attributes of the group in OME-Zarr.
    group : str
        Its path.
    levels : mapping of int to OmeLevel
        Its levels by number.
    is_alone : bool
        Whether the group holds no other datasets, which would inherit Neuroglancer's attributes.
    """
    described = without_ome(attributes)
    kept = {key: ome_part(attributes, key) for key in _KEPT}
    described |= {key: value for key, value in kept.items() if value is not None}
    image = image_in(attributes) or {}
    if is_06(image) and REGISTRATION in (found := from_06(image)):
        described[REGISTRATION] = found[REGISTRATION]
    for level in levels.values():
        described = set_level(described, group, level.name, level.written)
    if is_alone:
        described = describe_levels(described, {i: level.axes for i, level in levels.items()})
    return described


def as_05(image: Mapping[str, JSON], ndim: int) -> dict[str, JSON]:
    """Return an image with axes and transforms in the places of 0.5.

    0.1 and 0.2 have no axes; 0.6 has them in coordinate systems, and sequences of transforms.
    """
    found = from_06(image) if is_06(image) else dict(image)
    if "axes" not in found:
        found["axes"] = [*UNNAMED_AXES[-ndim:]]
    if not isinstance(found["axes"], list):
        raise MisfitError(f"multiscales: axes: expected a list, got {brief(found['axes'])}")
    n = len(found["axes"])
    found["datasets"] = [
        {**mapping(entry), **_flat(mapping(entry), n)} for entry in entries_in(image)
    ]
    return found


def image_as_05(attributes: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return the first image of a group, one of 0.6 as in 0.5; empty if there is none."""
    image = first_of(ome_part(attributes, "multiscales"))
    return as_05(image, 0) if is_06(image) else image


def _flat(entry: Mapping[str, JSON], n: int) -> dict[str, JSON]:
    """Return the transforms of a level with those in sequences in one list.

    An identity, as in 0.6, becomes a scale.
    """
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
        raise MisfitError(
            f"multiscales: expected scales and translations, got {', '.join(sorted(others))}"
        )
    same: list[JSON] = [{"type": "scale", "scale": [1.0] * n}]
    return {"coordinateTransformations": same if kinds == {"identity"} else steps}
