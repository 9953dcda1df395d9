"""Write what viewers need to open a group as one image: factors of its levels."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import zarr

from n5zarr.container.axes import read_layout
from n5zarr.conventions.bdv import view_of
from n5zarr.conventions.describe import (
    choose_convention,
    describe_axes,
    describe_levels,
    describe_setup,
)
from n5zarr.conventions.multiscales import set_level
from n5zarr.format.attributes import GroupAttributes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.container.axes import Placed
    from n5zarr.conventions.describe import Written
    from n5zarr.conventions.model import Axis
    from n5zarr.format.lenient_json import JSON
    from n5zarr.store.n5_store import N5Store

__all__ = [
    "add_to_group",
    "axes_of_levels",
    "describe_group",
    "describe_new",
    "is_level",
    "levels_in",
]

_LEVEL = re.compile(r"s[0-9]+")


def is_level(name: str) -> bool:
    """Whether a dataset of this name is a level of the group that holds it.

    Examples
    --------
    >>> is_level("s0"), is_level("raw")
    (True, False)
    """
    return _LEVEL.fullmatch(name) is not None


def levels_in(opened: N5Store, path: str) -> dict[str, Placed]:
    """Find the datasets of a group that are levels, by name; none if there is no such group."""
    return {name: placed for name, placed in _datasets(opened, path).items() if is_level(name)}


def _datasets(opened: N5Store, path: str) -> Mapping[str, Placed]:
    group = opened.node(path)
    if not isinstance(group, GroupAttributes):
        return {}
    return opened.ask(read_layout(opened.container.nodes, path, group)).datasets


def axes_of_levels(placed: Mapping[str, Placed]) -> dict[int, Sequence[Axis]]:
    """Return the axes of those levels that have positions, N5 order, by number."""
    return {
        int(name[1:]): level.geometry.axes
        for name, level in placed.items()
        if level.geometry is not None and _is_placed(level)
    }


def _is_placed(dataset: Placed) -> bool:
    """Whether attributes say where the elements of a dataset are, and not only names of axes."""
    return dataset.geometry is not None and dataset.geometry.convention != "names"


def describe_group(opened: N5Store, path: str) -> None:
    """Write into a group what its levels are, for Neuroglancer and BigDataViewer.

    Nothing is written if the levels are not multiples of ``s0``, if the group has other attributes
    that say where they are, or if a dataset beside them would get positions from it.

    Parameters
    ----------
    opened : N5Store
        The container.
    path : str
        Of the group.
    """
    datasets = _datasets(opened, path)
    placed = {name: dataset for name, dataset in datasets.items() if is_level(name)}
    levels = axes_of_levels(placed)
    if len(levels) != len(placed) or 0 not in levels:
        return
    others = [dataset for name, dataset in datasets.items() if name not in placed]
    if any(not _is_placed(o) and len(o.dims) == len(levels[0]) for o in others):
        return
    described = describe_levels(_attributes(opened, path), levels)
    if described is not None:
        _set_attributes(opened, path, described)
    if view_of((*path.split("/"), "s0")) is None or path.count("/") != 1:
        return  # not BigDataViewer's: setups lie at the root
    setup = path.partition("/")[0]
    data_type = placed["s0"].view.dataset.data_type.value
    described = describe_setup(_attributes(opened, setup), levels, data_type)
    if described is not None:
        _set_attributes(opened, setup, described)


def describe_new(opened: N5Store, path: str, axes: Sequence[Axis]) -> Written:
    """Describe the axes of a dataset about to be created, as those of the levels beside it are.

    Parameters
    ----------
    opened : N5Store
        The container.
    path : str
        Of the dataset.
    axes : sequence of Axis
        Its axes, N5 order.
    """
    group, _, name = path.rpartition("/")
    beside = levels_in(opened, group) if is_level(name) else {}
    beside.pop(name, None)
    known = [level.geometry for level in beside.values() if level.geometry is not None]
    convention = choose_convention("auto", [geometry.convention for geometry in known])
    return describe_axes(convention, axes, name, axes_of_levels(beside).get(0))


def add_to_group(opened: N5Store, path: str, written: Written) -> None:
    """Write into the group of a dataset that has been created what says that it is a level."""
    group, _, name = path.rpartition("/")
    if not is_level(name):
        return
    attributes = _attributes(opened, group)
    changed = set_level(attributes, group, name, written)
    if changed != attributes:
        _set_attributes(opened, group, changed)
    describe_group(opened, group)


def _attributes(opened: N5Store, path: str) -> Mapping[str, JSON]:
    node = opened.node(path)
    return node.attributes if isinstance(node, GroupAttributes) else {}


def _set_attributes(opened: N5Store, path: str, attributes: Mapping[str, JSON]) -> None:
    """Replace the attributes of a group, in the Zarr format in which it was written."""
    group = zarr.open_group(opened.showing(None), path=path, mode="r+", use_consolidated=False)
    group.attrs.put(dict(attributes))
