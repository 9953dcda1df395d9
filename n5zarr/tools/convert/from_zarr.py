"""Arrays and groups of a Zarr hierarchy, as sources."""

from __future__ import annotations

import warnings
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import zarr

from n5zarr.format.path import join
from n5zarr.storage.requests import list_each
from n5zarr.store.flows import ask_storage
from n5zarr.tools.convert.source import ArraySource, SourceTree
from n5zarr.tools.jobs.reading import for_reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zarr.types import AnyArray

    from n5zarr.container.path_patterns import PathPatterns
    from n5zarr.storage.interface import Storage

__all__ = ["zarr_array", "zarr_tree"]

_NAMES_V2 = "_ARRAY_DIMENSIONS"  # xarray's, where Zarr v2 has none


def zarr_tree(node: AnyArray | zarr.Group, storage: Storage, paths: PathPatterns) -> SourceTree:
    """Find the selected arrays and groups at and below a node of a Zarr hierarchy.

    Parameters
    ----------
    node : Array or Group
        The node.
    storage : Storage
        The keys behind it.
    paths : PathPatterns
        Nodes to read, with the groups that hold them, and with their neighbours if a pattern has
        wildcards.

    Raises
    ------
    N5UnsupportedError
        The group has no consolidated metadata, and the server does not list.
    """
    name = join(str(storage), node.path)
    if isinstance(node, zarr.Array):
        return SourceTree(name, {"": zarr_array(node)}, {}, storage=storage)
    arrays, groups = {}, {"": node.attrs.asdict()}
    for below, member in sorted(_members(node, paths), key=itemgetter(0)):
        if isinstance(member, zarr.Array):
            arrays[below] = zarr_array(member)
        else:
            groups[below] = member.attrs.asdict()
    if not arrays:
        ask_storage(storage, list_each([node.path]))  # raises if the server does not list
    return SourceTree(name, arrays, groups, storage=storage)


def _members(group: zarr.Group, paths: PathPatterns) -> Iterable[tuple[str, AnyArray | zarr.Group]]:
    """Return the nodes below a group; ignore other files, which OME-Zarr collections have."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Object at .* is not recognized", UserWarning)
        if not paths.select and not paths.exclude:
            return group.members(max_depth=None)
        return list(_selected(group, "", paths))


def _selected(
    group: zarr.Group, path: str, paths: PathPatterns
) -> Iterator[tuple[str, AnyArray | zarr.Group]]:
    """Yield the selected nodes below a group, and the groups that may hold some."""
    named = paths.named_in(path)
    if named is None:
        members: Iterable[tuple[str, Any]] = group.members()
    else:
        members = [(name, node) for name in named if (node := group.get(name)) is not None]
    for name, node in members:
        below = join(path, name)
        if paths.may_hold(below):
            yield below, node
            if isinstance(node, zarr.Group):
                yield from _selected(node, below, paths)


def zarr_array(array: AnyArray) -> ArraySource:
    """Make the source of an array of Zarr."""
    metadata = array.metadata
    attributes = array.attrs.asdict()
    if metadata.zarr_format == 3:
        dtype: object = metadata.data_type
        names = metadata.dimension_names
    else:
        dtype = metadata.dtype
        named: Any = attributes.pop(_NAMES_V2, None)
        names = tuple(named) if isinstance(named, list) else None
    return ArraySource(
        name=str(array.store_path),
        values=for_reading(array),
        dtype=dtype,
        chunks=array.chunks,
        encoded=array if array.shards is None else None,
        fill_value=array.fill_value,
        attributes=attributes,
        dimension_names=names,
    )
