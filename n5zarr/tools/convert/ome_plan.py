"""Plan a conversion to OME-Zarr: the image and level of each array.

Paths of arrays and groups stay, except that

- a dataset that is no level of a pyramid becomes a group of its name with the one level ``s0``;
- an image with the name ``labels``, below another image, goes one group deeper, since OME-Zarr has
  the list of label images there.

The root of several images, or of one further down, says that it is a collection
(``bioformats2raw.layout``), and the group ``OME`` lists them. Label images are listed by the group
``labels`` that holds them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from n5zarr.container.axes import read_layout, read_placed
from n5zarr.conventions.listed import listed_levels
from n5zarr.conventions.model import LEVELS_KEYS, Axis, axes_of, mapping
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.order import from_presented, present
from n5zarr.format.path import join
from n5zarr.store.levels import as_image, names_of_levels
from n5zarr.store.missing_nodes import not_found
from n5zarr.tools.convert.ome import (
    image_attributes,
    label_source,
    labels_attributes,
    make_multiscale,
    series_attributes,
)
from n5zarr.tools.convert.ome_display import find_shown, is_label, omero
from n5zarr.tools.convert.plans import ArrayPlan, Plan
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import numpy as np

    from n5zarr.container.axes import Layout, Placed
    from n5zarr.format.lenient_json import JSON
    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.convert.ome import Multiscale

__all__ = ["plan_ome"]

# of groups: what describes the axes of the levels, in the order of N5
_OF_AXES = LEVELS_KEYS | {"scales", "pixelResolution", "offset", "multiScale", "n5"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Image:
    """An image of the source: its levels, the finest first, and the attributes above them."""

    path: str
    levels: Sequence[Placed]
    names: Sequence[str]
    group: Mapping[str, JSON]
    above: Sequence[Mapping[str, JSON]]
    multiscale: Multiscale

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return self.levels[0].view.kind.dtype


@dataclass(slots=True)
class _Found:
    """The results of a walk through a source; paths are relative to its start."""

    images: list[_Image] = field(default_factory=list)
    others: dict[str, Placed] = field(default_factory=dict)
    groups: dict[str, Mapping[str, JSON]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def plan_ome(
    opened: N5Store,
    path: str = "",
    *,
    labels: Sequence[str] = (),
    arrays: Collection[str] | None = None,
    groups: Collection[str] | None = None,
) -> Plan:
    """Plan the conversion of a dataset, a group or a whole container to OME-Zarr 0.5.

    Parameters
    ----------
    opened : N5Store
        The container, with axes in C order.
    path : str, optional
        The dataset or group.
    labels : sequence of str, optional
        Patterns of paths, relative to ``path``, of images whose elements are labels.
    arrays, groups : collection of str, optional
        Paths of the datasets and of the groups to take, relative to ``path``; all by default.

    Raises
    ------
    FileNotFoundError
        No node exists at this path.
    N5UnrepresentableError
        There is no image that OME-Zarr can express (``kind="option"``).
    """
    found = _Found()
    node = opened.node(path)
    if isinstance(node, DatasetView):
        placed = opened.run(read_placed(opened.container.nodes, path, node))
        above = list(opened.run(opened.container.nodes.above(path)))
        _add_image(found, path, "", {"s0": placed}, {}, above)
    elif isinstance(node, GroupAttributes):
        _walk(opened, path, found, arrays, groups)
    else:
        raise not_found(opened, path, "a dataset or a group")
    if not found.images:
        why = f": {found.notes[0]}" if found.notes else ""
        message = (
            f"{opened}: /{path}: expected an image (numbers with two or three axes of space), got "
            f"none{why}"
        )
        raise N5UnrepresentableError(message, kind="option")
    return _Planner(found, path, labels).plan()


def _walk(
    opened: N5Store,
    top: str,
    found: _Found,
    arrays: Collection[str] | None,
    groups: Collection[str] | None,
) -> None:
    names: dict[str, set[str]] = {}  # of the children of each group that are taken
    for taken in (*(arrays or ()), *(groups or ())):
        group_of_it, _, name = taken.rpartition("/")
        names.setdefault(group_of_it, set()).add(name)
    pending = [top]
    while pending:
        path = pending.pop()
        group, below = opened.node(path), path.removeprefix(top).strip("/")
        if not isinstance(group, GroupAttributes) or (groups is not None and below not in groups):
            continue
        only = None if arrays is None or groups is None else names.get(below, ())
        layout = opened.run(read_layout(opened.container.nodes, path, group, only=only))
        above = [group.attributes, *opened.run(opened.container.nodes.above(path))]
        wanted = layout.datasets.items()
        if arrays is not None:
            wanted = {n: d for n, d in wanted if join(below, n) in arrays}.items()
            layout = replace(layout, datasets=dict(wanted))
        found.groups[below] = _own(layout)
        levels = _levels_of(layout, group.attributes, found)
        if levels:
            _add_image(found, path, below, levels, found.groups[below], above)
        for name, placed in layout.datasets.items():
            if name not in levels:
                _add_dataset(found, join(below, name), placed, layout, above)
        pending += [join(path, name) for name in layout.groups]


def _own(layout: Layout) -> dict[str, JSON]:
    """Return the attributes of a group without those that describe the axes of its datasets."""
    is_described = any(d.geometry is not None for d in layout.datasets.values())
    left_out = _OF_AXES if is_described else {"n5"}
    return {key: value for key, value in layout.attributes.items() if key not in left_out}


def _levels_of(layout: Layout, group: Mapping[str, JSON], found: _Found) -> dict[str, Placed]:
    """Return the datasets of a group that are levels of one image, the finest first."""
    listed = [name for name in listed_levels(group) if name in layout.datasets]
    named = names_of_levels(layout.datasets, group)
    for names in (named, listed):
        try:
            return as_image({name: layout.datasets[name] for name in names})
        except N5UnrepresentableError as err:
            if names != listed:  # else the planner says that `multiscales` is omitted
                which = "each that multiscales does not list" if listed else "each"
                found.notes.append(f"{err}; {which} becomes an image")
    return {}


def _add_dataset(
    found: _Found, path: str, placed: Placed, layout: Layout, above: Sequence[Mapping[str, JSON]]
) -> None:
    """Add a dataset that is no level: as an image if it can be one, else as an array."""
    is_coordinate = any(placed.path == c.path for d in layout.datasets.values()
                        for c in d.coordinates.values())  # fmt: skip
    if is_coordinate or placed.view.ndim < 2 or placed.view.kind.dtype.kind not in "buif":
        found.others[path] = placed
    else:
        _add_image(found, placed.path, path, {"s0": placed}, {}, above)


def _add_image(
    found: _Found,
    full: str,
    path: str,
    levels: Mapping[str, Placed],
    group: Mapping[str, JSON],
    above: Sequence[Mapping[str, JSON]],
) -> None:
    """Add an image, or its arrays unchanged if OME-Zarr has no such images.

    Its path is relative to the start of the walk.
    """
    first = next(iter(levels.values()))
    try:
        described = {name: _axes(placed) for name, placed in levels.items()}
        multiscale = make_multiscale(full.rpartition("/")[2] or "image", described)
    except N5UnrepresentableError as err:
        found.notes.append(f"/{first.path}: kept as an array, not an image: {err}")
        is_alone = len(levels) == 1 and first.path.endswith(path)
        found.others |= {path if is_alone else join(path, n): p for n, p in levels.items()}
        return
    for placed in levels.values():
        found.notes += [f"/{placed.path}: {problem}" for problem in placed.problems]
    if any(placed.coordinates for placed in levels.values()):
        found.notes.append(f"/{first.path}: OME-Zarr cannot express its coordinates")
    found.images.append(
        _Image(path=path, levels=[*levels.values()], names=[*levels], group=group, above=above,
               multiscale=multiscale)
    )  # fmt: skip


def _axes(placed: Placed) -> tuple[Axis, ...]:
    """Return the axes of a dataset in the order of the array, all with names."""
    view, order = placed.view, placed.view.axis_order
    found = () if placed.geometry is None else placed.geometry.axes
    is_named = any(view.dimension_names or ()) or any(axis.name for axis in found)
    # types from the names
    known = axes_of(view.ndim, names=from_presented(placed.dims, order) if is_named else None)
    given = known if placed.geometry is None else placed.geometry.axes
    axes = zip(present(given, order), present(known, order), strict=True)
    return tuple(replace(a, name=k.name, type=a.type or k.type) for a, k in axes)


class _Planner:
    """Chooses the path of each image, and the attributes of its group.

    Parameters
    ----------
    found : _Found
        What the source has.
    top : str
        Path of the node to convert.
    patterns : sequence of str
        Patterns of paths of labels.
    """

    def __init__(self, found: _Found, top: str, patterns: Sequence[str]) -> None:
        self._found = found
        self._top = top
        self._labels = {
            image.path
            for image in found.images
            if is_label(image.path or top, image.dtype, self._attributes(image), patterns)
        }
        self._images = {image.path for image in found.images}

    def plan(self) -> Plan:
        groups: dict[str, Mapping[str, JSON]] = {
            path: own if path in self._images else self._of_no_image(path, own)
            for path, own in self._found.groups.items()
        }
        arrays = [
            ArrayPlan(
                destination=path,
                sources=(path,),
                dimension_names=placed.view.dimension_names,
                attributes=placed.view.attributes,
            )
            for path, placed in self._found.others.items()
        ]
        for image in self._found.images:
            path = self._place(image.path)
            if path != image.path:
                groups[image.path] = {}
            groups[path] = self._describe(image, path)
            arrays += self._levels(image, path)
        groups |= self._lists_of_labels(groups)
        self._note_few_levels()
        if "" not in self._images:
            series = sorted(self._images - self._labels) or sorted(self._labels)
            groups |= series_attributes(groups.get("", {}), series)
        return Plan(
            arrays=tuple(sorted(arrays, key=lambda array: array.destination)),
            groups=dict(sorted(groups.items())),
            notes=tuple(dict.fromkeys(self._found.notes)),
        )

    def _of_no_image(self, path: str, own: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Remove the attributes that declare a group without levels to be an image."""
        is_image = "multiscales" in mapping(own.get("ome"))
        left_out = {"multiscales", "ome"} if is_image else {"multiscales"}
        if left_out.isdisjoint(own):
            return own
        where = join(self._top, path)
        self._found.notes.append(
            f"/{where}: multiscales omitted, as the datasets are not levels of one image"
        )
        return {key: value for key, value in own.items() if key not in left_out}

    def _place(self, path: str) -> str:
        """Return the path of an image; `labels` below an image is reserved for label images."""
        group, _, name = path.rpartition("/")
        is_taken = name == "labels" and path and group in self._images
        return join(path, "labels") if is_taken else path

    def _attributes(self, image: _Image) -> list[Mapping[str, JSON]]:
        return [image.levels[0].view.dataset.attributes, *image.above]

    def _describe(self, image: _Image, path: str) -> dict[str, JSON]:
        label = None
        shown = None
        if image.path in self._labels:
            label = label_source(path, self._image_of(image.path))
        else:
            first = image.levels[0]
            attributes = self._attributes(image)
            axes = _axes(first)
            labels = next((axis.labels for axis in axes if axis.labels is not None), None)
            nearest = image.above[0] if image.above else {}
            shown = omero(
                find_shown(attributes),
                image.dtype,
                image.multiscale.channel_of(first.view.shape),
                labels,
                mapping(nearest.get("ome")).get("omero", nearest.get("omero")),
            )
        others = dict(image.group)
        rest = image.levels[0].attributes.get("registration")
        if rest is not None:
            others["registration"] = rest
        return image_attributes(others, image.multiscale, omero=shown, label=label)

    def _image_of(self, path: str) -> str | None:
        """Find the image of labels: the only one in the nearest group that has any."""
        while path:
            path = path.rpartition("/")[0]
            below = self._images_below.get(path, [])
            if below:
                return path if path in below else below[0] if len(below) == 1 else None
        return None

    @cached_property
    def _images_below(self) -> dict[str, list[str]]:
        """The images in each group, and the group itself if it is one; none among labels."""
        found: dict[str, list[str]] = {}
        for path in sorted(self._images - self._labels):
            names = path.split("/") if path else []
            if "labels" not in names:
                for n in range(len(names) + 1):
                    found.setdefault("/".join(names[:n]), []).append(path)
        return found

    def _levels(self, image: _Image, path: str) -> Iterator[ArrayPlan]:
        multiscale = image.multiscale
        for name, placed in zip(image.names, image.levels, strict=True):
            source = placed.path.removeprefix(self._top).strip("/")
            yield ArrayPlan(
                destination=join(path, name),
                sources=(source,),
                order=multiscale.order if multiscale.is_reordered else None,
                dimension_names=multiscale.names,
                attributes=placed.attributes,
            )

    def _note_few_levels(self) -> None:
        """Note label images without all levels of their image, which OME-Zarr requires."""
        n_levels = {image.path: len(image.levels) for image in self._found.images}
        for path in sorted(self._labels):
            names = path.split("/")
            image = "/".join(names[: names.index("labels")]) if "labels" in names[:-1] else None
            wanted = 0 if image is None else n_levels.get(image, 0)
            if n_levels[path] < wanted:
                self._found.notes.append(
                    f"/{path}: OME-Zarr expects labels to have the {wanted} levels of their image, "
                    f"got {n_levels[path]}; n5zarr pyramid creates them"
                )

    def _lists_of_labels(
        self, groups: Mapping[str, Mapping[str, JSON]]
    ) -> dict[str, Mapping[str, JSON]]:
        """Return the attributes of the groups `labels`, which list the label images in them."""
        listed: dict[str, list[str]] = {}
        for path in map(self._place, self._labels):
            names = path.split("/")
            ends = [i for i, name in enumerate(names[:-1], 1) if name == "labels"]
            if ends:
                listed.setdefault("/".join(names[: ends[-1]]), []).append(
                    "/".join(names[ends[-1] :])
                )
        return {
            group: labels_attributes(groups.get(group, {}), paths)
            for group, paths in listed.items()
            if group not in map(self._place, self._images)
        }
