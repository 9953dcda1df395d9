"""Write the attributes that let viewers open a group as one image: factors of its levels."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence

from n5zarr.container.axes import Placed, placed_by_shape, read_layout
from n5zarr.conventions.bdv import view_of
from n5zarr.conventions.describe import (
    choose_convention,
    describe_axes,
    describe_levels,
    describe_setup,
    set_level,
)
from n5zarr.conventions.find import BY_NAME, PLACING_KEYS
from n5zarr.conventions.levels import entries_in, images_in, listed_levels, path_of
from n5zarr.conventions.model import LEVELS_KEYS, Axis, Written, level_of, numbers
from n5zarr.conventions.ngff import misread_images
from n5zarr.errors import N5UnrepresentableError, N5Warning, option_error
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.lenient_json import JSON
from n5zarr.store.n5_store import N5Store

_ATTEMPTS = 3  # to describe a group to which other programs add levels, too


def is_level(name: str) -> bool:
    """Whether a dataset of this name is a level of the group that holds it.

    Examples
    --------
    >>> is_level("s0"), is_level("raw")
    (True, False)
    """
    return level_of(name) is not None


def names_of_levels(names: Collection[str], group: Mapping[str, JSON]) -> list[str]:
    """Return the datasets of a group that are levels of its image; empty if nothing says so.

    Those of the first image in ``multiscales``, and, unless these have other names than ``s0``,
    ``s1``, ..., also all others with such names which no other image lists.

    Parameters
    ----------
    names : collection of str
        Of the datasets.
    group : mapping
        Attributes of the group.

    Examples
    --------
    >>> image = {"datasets": [{"path": "s0"}, {"path": "s1"}]}
    >>> names_of_levels(["mask", "s0", "s1", "s2"], {"multiscales": [image]})
    ['s0', 's1', 's2']
    """
    listed = [name for name in listed_levels(group) if name in names]
    if listed and not any(map(is_level, listed)):
        return listed
    of_any = {path_of(entry) for image in images_in(group) for entry in entries_in(image)}
    added = (name for name in names if is_level(name) and not (listed and name in of_any))
    return [*listed, *added]


def as_image(levels: Mapping[str, Placed], *, by_shape: bool = True) -> dict[str, Placed]:
    """Return datasets as levels of one image, the finest first.

    Levels without a position get one from the ratio of the shapes.

    Parameters
    ----------
    levels : mapping of str to Placed
        The datasets, by name.
    by_shape : bool, optional
        Whether their names say that they are levels; else they keep the positions that they state.

    Raises
    ------
    N5UnrepresentableError
        They cannot be levels of one image: their ranks or data types differ, or the shape of one
        without a position is that of no level (``kind="option"``).
    """
    # the finest level has the most elements; the voxel sizes in attributes may be wrong
    by_size = sorted(levels.items(), key=lambda entry: -math.prod(entry[1].view.shape))
    known = next((placed for _, placed in by_size if placed.is_stated), None)
    found: dict[str, Placed] = {}
    for name, placed in by_size:
        finest, first = by_size[0]
        for what, own, other in (
            ("axes", placed.view.ndim, first.view.ndim),
            ("data type", placed.view.kind.dtype, first.view.kind.dtype),
        ):
            if own != other:
                raise _no_level(placed, f"the {what} of {finest}, {other}", own)
        is_placed = placed.is_stated or len(levels) == 1
        level = placed if is_placed else placed_by_shape(placed, known or first)
        is_equal = name != finest and placed.view.shape == first.view.shape
        if level is None or (not is_placed and is_equal):
            expected = f"a shape that downsampling {finest}, {first.view.shape}, gives"
            raise _no_level(placed, expected, f"{placed.view.shape}, and no scale")
        found[name] = level if by_shape else placed
    return found


def _no_level(placed: Placed, expected: str, got: object) -> N5UnrepresentableError:
    return option_error(f"/{placed.path}: expected {expected}, got {got}: no levels of one image")


def levels_in(store: N5Store, path: str) -> dict[str, Placed]:
    """Return the datasets of a group that are levels, by name; empty if the group is missing."""
    group = store.node(path)
    if not isinstance(group, GroupAttributes):
        return {}
    layout = store.run(read_layout(store.container.nodes, path, group))
    return {name: placed for name, placed in layout.datasets.items() if is_level(name)}


def axes_of_levels(
    placed: Mapping[str, Placed], group: Mapping[str, JSON]
) -> dict[int, Sequence[Axis]]:
    """Return the axes of those levels that have positions, N5 order, by number.

    Parameters
    ----------
    placed : mapping of str to Placed
        The levels of a group, by name.
    group : mapping
        Its attributes: a level without its own positions has some only if they list it.
    """
    listed = [group.get(key) for key in ("downsamplingFactors", "scales")]
    n = max((len(value) for value in listed if isinstance(value, list)), default=0)
    return {
        int(name[1:]): level.geometry.axes
        for name, level in placed.items()
        if level.geometry is not None and level.is_stated and (has_own(level) or int(name[1:]) < n)
    }


def has_own(dataset: Placed) -> bool:
    """Whether a dataset has positions without Neuroglancer's attributes of the group."""
    found = dataset.geometry
    is_inherited = found is not None and "resolution" in BY_NAME[found.convention].group_keys
    return not is_inherited or bool({"resolution", "units"} & dataset.view.attributes.keys())


def _counts_its_own(first: Placed | None) -> bool:
    """Whether factors of ``s0`` would multiply a resolution of the group once more."""
    if first is None or PLACING_KEYS & first.view.attributes.keys():
        return False
    own = numbers(first.view.dataset.attributes.get("downsamplingFactors"))
    return own is not None and set(own) != {1.0}


def describe_group(store: N5Store, path: str, new: Mapping[str, Written] | None = None) -> None:
    """Describe the levels of a group in its attributes, for Neuroglancer and BigDataViewer.

    Writes nothing new if the levels are not multiples of ``s0``, if other attributes of the group
    describe them, or if the group has other nodes that would inherit these attributes.

    Parameters
    ----------
    store : N5Store
        The container.
    path : str
        Of the group.
    new : mapping of str to Written, optional
        Attributes of the levels that were just written, by name.
    """
    for _ in range(_ATTEMPTS):  # repeat if other programs may have added levels meanwhile
        if not _describe(store, path, new or {}):
            return


def _describe(store: N5Store, path: str, new: Mapping[str, Written]) -> bool:
    """Describe the present levels of a group; return whether anything was written."""
    group = store.node(path)
    if not isinstance(group, GroupAttributes):
        return False
    layout = store.run(read_layout(store.container.nodes, path, group))
    placed = {name: dataset for name, dataset in layout.datasets.items() if is_level(name)}
    levels = axes_of_levels(placed, group.attributes)
    types = {level.view.dataset.data_type for level in placed.values()}
    is_whole = levels.keys() == {int(name[1:]) for name in placed}
    if not is_whole or len(types) > 1 or _counts_its_own(placed.get("s0")):
        levels = {}
    is_described = group.attributes.keys() >= LEVELS_KEYS
    has_others = bool(layout.groups) or len(layout.datasets) > len(placed)
    may_describe = is_described or not has_others
    may_remove = all(map(has_own, placed.values()))

    def change(attributes: Mapping[str, JSON]) -> Mapping[str, JSON]:
        for name, written in new.items():
            attributes = set_level(attributes, path, name, written)
        if may_describe and (levels or may_remove):
            return describe_levels(attributes, levels)
        return attributes

    is_changed = _update(store, path, group.attributes, change)
    if 0 in levels and view_of((*path.split("/"), "s0")) is not None and path.count("/") == 1:
        setup = path.partition("/")[0]  # BigDataViewer has setups at the root
        (data_type,) = {data_type.value for data_type in types}
        node = store.node(setup)
        known = node.attributes if isinstance(node, GroupAttributes) else {}
        _update(store, setup, known, lambda old: describe_setup(old, levels, data_type))
    return is_changed


def _update(
    store: N5Store,
    path: str,
    known: Mapping[str, JSON],
    change: Callable[[Mapping[str, JSON]], Mapping[str, JSON]],
) -> bool:
    """Change the attributes of a group and keep other programs' changes; skip empty changes."""
    is_changed = change(known) != known
    if is_changed:
        store.run(store.container.update_attributes(path, change, is_group=True))
    return is_changed


def warn_of_misread(store: N5Store, path: str, group: Mapping[str, JSON]) -> None:
    """Warn of images in ``multiscales`` of a group that n5-universe cannot read together."""
    why = misread_images(group)
    if why is not None:
        message = (
            f"{store}: {path or '/'}: multiscales: {why}: n5-universe (Fiji) reads none of the "
            "images: put each into a group of its own, or choose another convention"
        )
        warnings.warn(message, N5Warning, stacklevel=4)


def describe_new(store: N5Store, path: str, axes: Sequence[Axis]) -> Written:
    """Describe the axes of a dataset about to be created, in the convention of its sibling levels.

    Parameters
    ----------
    store : N5Store
        The container.
    path : str
        Of the dataset.
    axes : sequence of Axis
        Its axes, N5 order.
    """
    group, _, name = path.rpartition("/")
    beside = levels_in(store, group) if is_level(name) else {}
    beside.pop(name, None)
    known = [level.geometry for level in beside.values() if level.geometry is not None]
    convention = choose_convention("auto", [geometry.convention for geometry in known])
    first = beside.get("s0")
    base = None if first is None or first.geometry is None else first.geometry.axes
    return describe_axes(convention, axes, name, base)


def add_to_group(store: N5Store, path: str, written: Written) -> None:
    """Add a new dataset to the attributes of its group as a level."""
    group, _, name = path.rpartition("/")
    if is_level(name) and (written.attributes or written.level):
        describe_group(store, group, {name: written})
