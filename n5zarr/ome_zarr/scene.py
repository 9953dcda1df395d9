"""Place the images of OME-Zarr 0.6 where the scene above them says.

Source: https://ngff.openmicroscopy.org/0.6/, "scene" and "coordinateTransformations". A scene joins
coordinate systems, its own and those of the images in it, by transforms, each in either direction.
Images get their places in one system: the first of the scene, which the specification recommends to
show, or without any the output of the first transform. Labels lie where their image does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain

from n5zarr.conventions.canonical import steps_of
from n5zarr.conventions.levels import Steps, applied_after, path_of
from n5zarr.conventions.model import MisfitError, items_of, mapping
from n5zarr.conventions.ngff import transforms_of
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import groups_above, join
from n5zarr.images.find import warn_once
from n5zarr.images.ome_06 import REGISTRATION, intrinsic_of, is_06, other_systems
from n5zarr.images.ome_documents import as_05, image_in, images_of, is_inside, scene_in
from n5zarr.images.source import SourceTree

_TRANSFORMS = "coordinateTransformations"
_WHY = "as n5zarr places images by scales and translations along axes of the same names"

type System = tuple[str, str]
"""A coordinate system: the path of its image below the scene, ``""`` for the scene; its name."""
type Place = dict[str, tuple[Mapping[str, JSON], float, float]]
"""By name of the axis of an image: the axis along which it is placed, scale and translation."""


@dataclass
class Scene:
    """A scene, and what is known of its images.

    Parameters
    ----------
    path : str
        The path of its group.
    systems : dict
        The axes of each system.
    joined : dict
        The transforms at each system: the one at the other end, the transform, and whether it
        leads there.
    axes : list of mapping
        The axes of the system in which images are placed.
    steps : dict
        Scale and translation that lead to this system from others.
    places : dict
        The places of the images that it names, by path below its group; empty if not known.
    """

    path: str
    systems: dict[System, list[Mapping[str, JSON]]] = field(default_factory=dict)
    joined: dict[System, list[tuple[System, Mapping[str, JSON], bool]]] = field(
        default_factory=dict
    )
    axes: list[Mapping[str, JSON]] = field(default_factory=list)
    steps: dict[System, Steps] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)

    def join(self, inner: str, holder: Mapping[str, JSON]) -> list[System]:
        """Add what the scene, or an image in it, says; return the systems that it joins."""
        for system in map(mapping, items_of(holder.get("coordinateSystems"))):
            axes = [*map(mapping, items_of(system.get("axes")))]
            self.systems[inner, str(system.get("name"))] = axes
        found = []
        for step in map(mapping, items_of(holder.get(_TRANSFORMS))):
            ends = [mapping(step.get(end)) for end in ("output", "input")]
            end, start = ((join(inner, path_of(e) or ""), str(e.get("name"))) for e in ends)
            self.joined.setdefault(end, []).append((start, step, False))
            self.joined.setdefault(start, []).append((end, step, True))
            found += [end, start]
        return found

    def spread(self, systems: Iterable[System]) -> None:
        """Find the steps from all that transforms join to known ones among these systems."""
        for system in (pending := [each for each in systems if each in self.steps]):
            for other, step, leads_there in self.joined.get(system, []):
                by, to = steps_of(step, len(self.axes)) or ((), ())
                is_known = by and min(by) > 0 and all(map(math.isfinite, (*by, *to)))
                if other in self.steps or not is_known:
                    continue
                if leads_there:  # and is reversed
                    back = zip(by, to, strict=True)
                    by, to = zip(*((1 / n, -t / n) for n, t in back), strict=True)
                self.steps[other] = applied_after((by, to), self.steps[system])
                pending.append(other)

    def place(self, inner: str, image: Mapping[str, JSON]) -> Place:
        """Find the place of an image; empty if it has none.

        Raises
        ------
        MisfitError
            The levels lead to no coordinate system, or to several.
        """
        own = inner, str(intrinsic_of(image).get("name") if is_06(image) else None)
        self.spread(self.join(inner, image))
        names = [str(axis.get("name")) for axis in self.systems.get(own, [])]
        if own in self.steps and names == [str(axis.get("name")) for axis in self.axes]:
            along = zip(self.axes, *self.steps[own], strict=True)
            self.places[inner] = dict(zip(names, along, strict=True))
        return self.places[inner]


def read_scene(
    path: str, attributes: Mapping[str, JSON], groups: Mapping[str, Mapping[str, JSON]]
) -> Scene | None:
    """Read the scene of a group; None if it has none.

    Parameters
    ----------
    path : str
        The path of the group.
    attributes : mapping
        Its attributes.
    groups : mapping
        Attributes of other groups by path: all, or those of :func:`images_needed`.
    """
    scene = Scene(path)
    joined = scene.join("", scene_in(attributes))
    if not joined:
        return None
    first = next(iter(scene.systems), joined[0])
    for inner in {inner for inner, _ in joined if inner}:
        scene.places[inner] = {}
        scene.join(inner, image_in(groups.get(join(path, inner), {})) or {})
    # a system that is not declared has the axes of what leads there
    near = (first, *(other for other, *_ in scene.joined.get(first, ())))
    scene.axes = next(filter(None, map(scene.systems.get, near)), [])
    scene.steps[first] = (1.0,) * len(scene.axes), (0.0,) * len(scene.axes)
    scene.spread([first])
    return scene


def images_needed(attributes: Mapping[str, JSON]) -> list[str]:
    """Return the paths of the images without whose systems a scene cannot be read.

    Chains lead through those that it names by several systems; without systems of its own, images
    are placed in the system of one.
    """
    scene = scene_in(attributes)
    counts = Counter(path for path, _ in {*Scene("").join("", scene)} if is_inside(path))
    return [path for path, n in counts.items() if n > 1 or not scene.get("coordinateSystems")]


def in_scenes(tree: SourceTree) -> SourceTree:
    """Return OME-Zarr with its images in their places; warn of what is omitted."""
    scenes = {path: read_scene(path, own, tree.groups) for path, own in tree.groups.items()}
    found, notes = dict(tree.groups), []
    for path in sorted(found):  # images before their labels
        near = [scene for each in (*groups_above(path), path) if (scene := scenes.get(each))]
        with suppress(MisfitError):  # which who reads the image gets
            found[path], more = placed(path, tree.groups[path], *near[-1:])
            others = chain.from_iterable(map(other_systems, images_of(found[path]).values()))
            omitted = [f"{path or '/'}: the transform to {name!r} is omitted" for name in others]
            notes += [*more, *omitted]
    warn_once(tree.name, notes)
    return replace(tree, groups=found)


def placed(
    path: str, attributes: Mapping[str, JSON], scene: Scene | None = None
) -> tuple[dict[str, JSON], list[str]]:
    """Return the attributes of a group with images in their places, and what is omitted.

    Images that a scene places are as in 0.5. A scene becomes a collection.

    Parameters
    ----------
    path : str
        The path of the group.
    attributes : mapping
        Its attributes.
    scene : Scene, optional
        Its scene, or the nearest one above it, with the places of images whose labels this is.

    Raises
    ------
    MisfitError
        The levels of an image lead to no coordinate system, or to several.
    """
    ome, image = dict(mapping(attributes.get("ome"))), image_in(attributes)
    place: Place = {}
    notes = []
    if scene and image is not None:
        inner = path.removeprefix(scene.path).strip("/")
        place = scene.places.get(inner.partition("/labels/")[0], {})
        if inner in scene.places:
            place = scene.place(inner, image)
        if inner in scene.places and not place:
            steps = (s for system, ends in scene.joined.items() if system[0] == inner for s in ends)
            kinds = ", ".join(sorted({str(step.get("type")) for _, step, _ in steps}))
            notes.append(f"{path}: its place in the scene ({kinds}) is omitted, {_WHY}")
    if place:
        ome["multiscales"] = [_moved(mapping(m), place) for m in items_of(ome["multiscales"])]
    if ome.pop("scene", None) is not None:
        ome["bioformats2raw.layout"] = 3
    return {**attributes, **({"ome": ome} if ome else {})}, notes


def _moved(image: Mapping[str, JSON], place: Place) -> dict[str, JSON]:
    """Return an image as in 0.5, all levels of which are moved to a place."""
    found, axes, along = as_05(image, 0), [], []
    found.pop(REGISTRATION, None)  # which leads from another system
    for axis in map(mapping, items_of(found["axes"])):
        there, by, to = place.get(str(axis.get("name")), (axis, 1.0, 0.0))
        unit = there.get("unit") or (axis.get("unit") if by == 1 else None)
        given = {**axis, "unit": unit}.items()
        axes.append({key: value for key, value in given if value is not None})
        along.append((by, to))
    return {**found, "axes": axes, _TRANSFORMS: transforms_of(along)}
