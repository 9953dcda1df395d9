"""Find the images in N5, of any convention but BigDataViewer's, and their paths in OME-Zarr.

Paths of arrays and groups stay, except that

- a dataset that is no level of a pyramid becomes a group of its name with the one level ``s0``;
- an image with the name ``labels``, below another image, goes one group deeper, since OME-Zarr has
  the list of label images there.

The root of several images, or of one further down, says that it is a collection
(``bioformats2raw.layout``), and the group ``OME`` lists them. Label images are listed by the group
``labels`` that holds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from n5zarr.container.axes import GroupLayout, Placed, read_layout, read_placed
from n5zarr.conventions.find import problems_of_level
from n5zarr.conventions.levels import listed_levels
from n5zarr.conventions.model import LEVELS_KEYS, Axis, axes_of, mapping
from n5zarr.errors import N5UnrepresentableError, option_error
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import from_presented, present
from n5zarr.format.path import join
from n5zarr.images.display import find_shown, is_label, with_display
from n5zarr.images.image import Image, Images
from n5zarr.images.ome import Aligned, align_axes, series_metadata
from n5zarr.images.ome_documents import ome_part, plate_or_well
from n5zarr.images.source import SourceTree
from n5zarr.metadata.levels import as_image, names_of_levels
from n5zarr.store.missing_nodes import not_found
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView

# of groups: what describes the axes of the levels, in the order of N5
_OF_AXES = LEVELS_KEYS | {
    "affineTransform", "scales", "pixelResolution", "offset", "multiScale", "n5",
}  # fmt: skip
_COLUMNS, _ROWS = 3, 16  # a table has few columns, and so many rows for each of them, or more


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """An image of the source: its levels, the finest first, and the attributes above them."""

    path: str
    name: str
    levels: Mapping[str, Placed]
    group: Mapping[str, JSON]
    above: Sequence[Mapping[str, JSON]]
    aligned: Aligned

    @property
    def first(self) -> Placed:
        return next(iter(self.levels.values()))

    @property
    def attributes(self) -> list[Mapping[str, JSON]]:
        """Attributes of the finest level, then those of the groups above it, the nearest first."""
        return [self.first.view.dataset.attributes, *self.above]


@dataclass(slots=True)
class _Found:
    """The images, arrays and groups that are found; paths are relative to the start of the walk."""

    candidates: list[_Candidate] = field(default_factory=list)
    others: dict[str, Placed] = field(default_factory=dict)
    groups: dict[str, Mapping[str, JSON]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def find_in_n5(tree: SourceTree, store: N5Store, labels: Sequence[str] = ()) -> Images:
    """Find the images in a dataset, a group or a whole container.

    Parameters
    ----------
    tree : SourceTree
        The arrays and groups; nodes that it omits are omitted.
    store : N5Store
        Their container, with axes in C order.
    labels : sequence of str, optional
        Patterns of paths, relative to that of the source, of images whose elements are labels.

    Raises
    ------
    FileNotFoundError
        No node exists at the path of the source.
    N5UnrepresentableError
        There is no image that OME-Zarr can express (``kind="option"``).
    """
    found, path = _Found(), tree.path
    node = store.node(path)
    if isinstance(node, DatasetView):
        placed = store.run(read_placed(store.container.nodes, path, node))
        above = list(store.run(store.container.nodes.above(path)))
        _add_image(found, path, "", {"s0": placed}, {}, above)
    elif isinstance(node, GroupAttributes):
        _walk(tree, store, found)
    else:
        raise not_found(store, path, "a dataset or a group")
    if not found.candidates:
        why = f": {found.notes[0]}" if found.notes else ""
        raise option_error(
            f"{store}: /{path}: expected an image (numbers with two or three axes of space), got "
            f"none{why}; n5zarr convert without --ome (to='zarr', --to zarr) copies other arrays"
        )
    return _Describer(tree, found, labels).images()


def _walk(tree: SourceTree, store: N5Store, found: _Found) -> None:
    """Collect the images, datasets and attributes of all groups of a source in ``found``."""
    names: dict[str, set[str]] = {}  # of the children of each group that are taken
    for taken in (*tree.arrays, *tree.groups):
        group_of_it, _, name = taken.rpartition("/")
        names.setdefault(group_of_it, set()).add(name)
    pending = [tree.path]
    while pending:
        path = pending.pop()
        group, below = store.node(path), path.removeprefix(tree.path).strip("/")
        if not isinstance(group, GroupAttributes) or below not in tree.groups:
            continue
        only = names.get(below, ())
        layout = store.run(read_layout(store.container.nodes, path, group, only=only))
        above = [group.attributes, *store.run(store.container.nodes.above(path))]
        wanted = {n: d for n, d in layout.datasets.items() if join(below, n) in tree.arrays}
        layout = replace(layout, datasets=wanted)
        found.groups[below] = _own(layout)
        levels = _levels_of(layout, group.attributes, found)
        if levels:
            _add_image(found, path, below, levels, found.groups[below], above)
        for name, placed in layout.datasets.items():
            if name not in levels:
                _add_dataset(found, join(below, name), placed, layout, above)
        pending += [join(path, name) for name in layout.groups]


def _own(layout: GroupLayout) -> dict[str, JSON]:
    """Return the attributes of a group without those that describe the axes of its datasets."""
    is_described = any(d.geometry is not None for d in layout.datasets.values())
    left_out = _OF_AXES if is_described else {"n5"}
    return {key: value for key, value in layout.attributes.items() if key not in left_out}


def _levels_of(layout: GroupLayout, group: Mapping[str, JSON], found: _Found) -> dict[str, Placed]:
    """Return the datasets of a group that are levels of one image, the finest first."""
    listed = [name for name in listed_levels(group) if name in layout.datasets]
    named = names_of_levels(layout.datasets, group)
    for names in (named, listed):
        try:
            return as_image({name: layout.datasets[name] for name in names})
        except N5UnrepresentableError as err:
            if names != listed:  # else a note says that `multiscales` is omitted
                which = "each that multiscales does not list" if listed else "each"
                found.notes.append(f"{err}; {which} becomes an image")
    return {}


def _add_dataset(
    found: _Found,
    path: str,
    placed: Placed,
    layout: GroupLayout,
    above: Sequence[Mapping[str, JSON]],
) -> None:
    """Add a dataset that is not a level, as an image if it can be one, else as an array."""
    is_coordinate = any(placed.path == c.path for d in layout.datasets.values()
                        for c in d.coordinates.values())  # fmt: skip
    is_numeric = placed.view.ndim >= 2 and placed.view.kind.dtype.kind in "buif"
    if is_coordinate or not is_numeric or _is_table(placed):
        found.others[path] = placed
    else:
        _add_image(found, placed.path, path, {"s0": placed}, {}, above)


def _is_table(placed: Placed) -> bool:
    """Whether a dataset without a place has the shape of a table, as Paintera's segments have."""
    is_placed = placed.geometry is not None and placed.geometry.is_stated
    short, long = min(placed.view.shape), max(placed.view.shape)
    has_columns = placed.view.ndim == 2 and 0 < short <= _COLUMNS
    return has_columns and not is_placed and long >= _ROWS * short


def _add_image(
    found: _Found,
    full: str,
    path: str,
    levels: Mapping[str, Placed],
    group: Mapping[str, JSON],
    above: Sequence[Mapping[str, JSON]],
) -> None:
    """Add an image, or its arrays unchanged if OME-Zarr cannot express it.

    Its path is relative to the start of the walk.
    """
    first = next(iter(levels.values()))
    try:
        described = {name: _axes(placed) for name, placed in levels.items()}
        aligned = align_axes(described)
    except N5UnrepresentableError as err:
        found.notes.append(f"/{first.path}: kept as an array, not an image: {err}")
        is_alone = len(levels) == 1 and first.path.endswith(path)
        found.others |= {path if is_alone else join(path, n): p for n, p in levels.items()}
        return
    for placed in levels.values():
        found.notes += [
            f"/{placed.path}: {problem}"
            for problem in (*placed.problems, *problems_of_level(placed.geometry))
        ]
    if any(placed.coordinates for placed in levels.values()):
        found.notes.append(f"/{first.path}: OME-Zarr cannot express its coordinates")
    name = full.rpartition("/")[2] or "image"
    found.candidates.append(
        _Candidate(path=path, name=name, levels=levels, group=group, above=above, aligned=aligned)
    )


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


class _Describer:
    """Choose the path of each image, and describe it.

    Parameters
    ----------
    tree : SourceTree
        The arrays of the source.
    found : _Found
        What the source has.
    patterns : sequence of str
        Patterns of paths of labels.
    """

    def __init__(self, tree: SourceTree, found: _Found, patterns: Sequence[str]) -> None:
        self._tree = tree
        self._found = found
        self._labels = {
            each.path
            for each in found.candidates
            if is_label(
                each.path or tree.path, each.first.view.kind.dtype, each.attributes, patterns
            )
        }
        self._images = {each.path for each in found.candidates}

    def images(self) -> Images:
        groups: dict[str, Mapping[str, JSON]] = {
            path: own if path in self._images else self._of_no_image(path, own)
            for path, own in self._found.groups.items()
        }
        arrays = {
            path: replace(
                self._tree.arrays[path],
                dimension_names=placed.view.dimension_names,
                attributes=placed.view.attributes,
            )
            for path, placed in self._found.others.items()
        }
        images = []
        for candidate in self._found.candidates:
            image = self._describe(candidate)
            images.append(image)
            groups.pop(candidate.path, None)
            if image.path != candidate.path:
                groups[candidate.path] = {}
        lists = self._lists_of_labels() | self._plates()
        self._note_few_levels()
        if "" not in self._images and self._is_collection(lists.get("", {})):
            series = sorted(map(self._place, self._images - self._labels or self._labels))
            for path, listed in series_metadata(series).items():
                lists[path] = {**lists.get(path, {}), **listed}
            groups.pop("OME", None)  # which holds only the list of them
        return Images(
            source=self._tree,
            images=tuple(sorted(images, key=lambda image: image.path)),
            arrays=arrays,
            groups=groups,
            lists=lists,
            notes=tuple(dict.fromkeys(self._found.notes)),
        )

    def _plates(self) -> dict[str, Mapping[str, JSON]]:
        """Return the metadata of plates and wells, as the source has them."""
        parts = {path: plate_or_well(own) for path, own in self._found.groups.items()}
        return {path: part for path, part in parts.items() if part and path not in self._images}

    def _is_collection(self, root: Mapping[str, JSON]) -> bool:
        """Whether the root lists its images: that of a plate does so only if it did before."""
        own = self._found.groups.get("", {})
        is_listed = ome_part(own, "bioformats2raw.layout") is not None
        return is_listed or not plate_or_well(root)

    def _of_no_image(self, path: str, own: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Remove the attributes that call a group without levels an image."""
        is_image = "multiscales" in mapping(own.get("ome"))
        left_out = {"multiscales", "ome"} if is_image else {"multiscales"}
        if left_out.isdisjoint(own):
            return own
        where = join(self._tree.path, path)
        self._found.notes.append(
            f"/{where}: multiscales omitted, as the datasets are not levels of one image"
        )
        return {key: value for key, value in own.items() if key not in left_out}

    def _place(self, path: str) -> str:
        """Return the path of an image; `labels` below an image is reserved for label images."""
        group, _, name = path.rpartition("/")
        is_taken = name == "labels" and path and group in self._images
        return join(path, "labels") if is_taken else path

    def _describe(self, candidate: _Candidate) -> Image:
        path, first, others = self._place(candidate.path), candidate.first, dict(candidate.group)
        if "registration" in first.attributes:
            others["registration"] = first.attributes["registration"]
        arrays = {}
        for name, placed in candidate.levels.items():
            source = placed.path.removeprefix(self._tree.path).strip("/")
            arrays[name] = replace(self._tree.arrays[source], attributes=placed.attributes)
        image = candidate.aligned.image(path, candidate.name, arrays, others)
        if candidate.path in self._labels:
            return replace(image, is_labels=True, image_of=self._image_of(candidate.path))
        labels = next((axis.labels for axis in _axes(first) if axis.labels is not None), None)
        nearest = candidate.above[0] if candidate.above else {}
        own = ome_part(nearest, "omero")
        return with_display(image, find_shown(candidate.attributes), labels, own)

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

    def _note_few_levels(self) -> None:
        """Note label images without all levels of their image, which OME-Zarr requires."""
        n_levels = {each.path: len(each.levels) for each in self._found.candidates}
        for path in sorted(self._labels):
            names = path.split("/")
            image = "/".join(names[: names.index("labels")]) if "labels" in names[:-1] else None
            wanted = 0 if image is None else n_levels.get(image, 0)
            if n_levels[path] < wanted:
                self._found.notes.append(
                    f"/{path}: OME-Zarr expects labels to have the {wanted} levels of their image, "
                    f"got {n_levels[path]}; n5zarr pyramid creates them"
                )

    def _lists_of_labels(self) -> dict[str, Mapping[str, JSON]]:
        """Return the metadata of the groups `labels`, which list the label images in them."""
        listed: dict[str, list[str]] = {}
        for path in map(self._place, self._labels):
            names = path.split("/")
            ends = [i for i, name in enumerate(names[:-1], 1) if name == "labels"]
            if ends:
                listed.setdefault("/".join(names[: ends[-1]]), []).append(
                    "/".join(names[ends[-1] :])
                )
        return {
            group: {"labels": sorted(paths)}
            for group, paths in listed.items()
            if group not in map(self._place, self._images)
        }
