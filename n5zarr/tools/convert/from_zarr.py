"""Find the arrays and groups of a Zarr hierarchy, to copy them; also of N5 with coordinates."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any

import zarr
from zarr.storage import StorePath
from zarr.types import AnyArray

from n5zarr.container.walk import PathPatterns
from n5zarr.conventions.axis_names import AXES_KEY, XARRAY_KEY
from n5zarr.conventions.zarr_order import in_order_of_n5, in_order_of_zarr
from n5zarr.errors import N5Warning, option_error
from n5zarr.format.path import groups_above, join
from n5zarr.images.ome_documents import arrays_of_images, named_nodes
from n5zarr.images.source import ArraySource, N5Blocks, SourceTree
from n5zarr.rooms import Door
from n5zarr.shown.java_zarr import JavaZarrStore, in_own_store
from n5zarr.storage.interface import Storage
from n5zarr.storage.place import Place
from n5zarr.storage.requests import list_each
from n5zarr.store.locating import open_container
from n5zarr.store.missing_nodes import existing_node, selected_nodes
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.jobs.nodes import for_reading
from n5zarr.zarr_view.element import Content

_FROM_OME: Door[Callable[[SourceTree], SourceTree]] = Door("images", "OME-Zarr as N5")


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
        storage.run(list_each([node.path]))  # raises if the server does not list
    return SourceTree(name, arrays, groups, storage=storage)


def _members(group: zarr.Group, paths: PathPatterns) -> Iterable[tuple[str, AnyArray | zarr.Group]]:
    """Return the nodes below a group; ignore other files, which OME-Zarr collections have."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Object at .* is not recognized", UserWarning)
        if paths.select or paths.exclude:
            return list(_selected(group, "", paths))
        found = dict(group.members(max_depth=None))
        pending = ["", *(path for path, node in found.items() if isinstance(node, zarr.Group))]
        for above in pending:
            more = _behind_directories(group, above, found)
            found |= more
            pending += [path for path, node in more.items() if isinstance(node, zarr.Group)]
    for above in pending:
        _check_complete(group, above, found)
    return found.items()


def _behind_directories(
    group: zarr.Group, path: str, found: Mapping[str, AnyArray | zarr.Group]
) -> dict[str, AnyArray | zarr.Group]:
    """Return nodes below those that a group names, such as wells of rows without a document."""
    node = found[path] if path else group
    more: dict[str, AnyArray | zarr.Group] = {}
    for name in named_nodes(node.attrs.asdict()):
        full = join(path, name)
        below = group.get(full) if "/" in name and full not in found else None
        if below is not None:
            more[full] = below
        if isinstance(below, zarr.Group):
            more |= {join(full, each): inner for each, inner in below.members(max_depth=None)}
    return more


def _check_complete(
    group: zarr.Group, path: str, found: Mapping[str, AnyArray | zarr.Group]
) -> None:
    """Check that the levels of an image are there: zarr leaves out arrays that lack a member.

    Raises
    ------
    N5UnrepresentableError
        The document of a node is wrong (``kind="option"``).
    """
    node = found[path] if path else group
    for full in (join(path, name) for name in arrays_of_images(node.attrs.asdict())):
        if full in found:
            continue
        try:
            zarr.open_array(group.store_path / full, mode="r")
        except FileNotFoundError:
            message = f"{full}: omitted, as multiscales lists it, but there is no array"
            warnings.warn(message, N5Warning, stacklevel=5)
        except KeyError as err:
            message = f"{join(str(group.store_path), full)}: expected the document of an array"
            raise option_error(f"{message} with {err}, got one without it") from err


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


def reordered(tree: SourceTree, *, to_n5: bool) -> SourceTree:
    """Convert the positions in attributes from N5 to Zarr, or from Zarr to N5."""
    convert = in_order_of_n5 if to_n5 else in_order_of_zarr
    largest: dict[str, ArraySource] = {}  # the array of most dimensions in each group
    arrays = {}
    for path, array in tree.arrays.items():
        own = convert(array.attributes, len(array.shape), array.dimension_names)
        arrays[path] = replace(array, attributes=own)
        for group in groups_above(path):
            largest[group] = max(largest.get(group, array), array, key=lambda a: len(a.shape))
    groups = {}
    for path, attributes in tree.groups.items():
        below = largest.get(path)
        # as many as its longest list has: the arrays that it describes may not be selected
        lists = (attributes.get(key) for key in ("resolution", "offset", AXES_KEY))
        n_listed = max((len(each) for each in lists if isinstance(each, list)), default=0)
        if below is None or len(below.shape) < n_listed:
            groups[path] = convert(attributes, n_listed)
        else:
            groups[path] = convert(attributes, len(below.shape), below.dimension_names)
    return replace(tree, arrays=arrays, groups=groups)


def as_n5(tree: SourceTree) -> SourceTree:
    """Return a source that is no container with the names and attributes of N5."""
    found = tree if tree.storage is None else reordered(tree, to_n5=True)
    return from_ome(found) if (from_ome := _FROM_OME.found()) else found


def coords_tree(place: Place, paths: PathPatterns) -> SourceTree:
    """Find the selected arrays and groups, with coordinates as arrays beside them, for xarray.

    Raises
    ------
    FileNotFoundError
        The container or node does not exist.
    """
    store, path = open_container(place, writes=False)
    existing_node(store, path)
    if store.storage.root is not None:  # zarr says nothing of links
        deque(selected_nodes(store, path, paths), maxlen=0)
    shown = N5Store(store.storage, codecs="portable", coords=True)
    tree = zarr_tree(zarr.open(StorePath(shown, path), mode="r"), shown.storage, paths)
    return replace(tree, arrays={p: _with_blocks(shown, a) for p, a in tree.arrays.items()})


def _with_blocks(store: N5Store, source: ArraySource) -> ArraySource:
    """Add the stored blocks to an array that is a dataset of its elements or of label multisets."""
    assert source.encoded is not None  # noqa: S101 - it is presented without shards
    found = store.run(store.dataset_of(source.encoded.path, 3, as_blocks=True))
    if found is None or not (found[1].holds_elements or found[1].content is Content.LABELS):
        return source
    plain = N5Store(store.storage, codecs="portable", zarr_format=3, read_only=True)
    blocks = N5Blocks(plain, *found)
    return replace(source, blocks=blocks, compression=blocks.compression)


def zarr_array(array: AnyArray) -> ArraySource:
    """Make the source of an array of Zarr."""
    if isinstance(array.store, JavaZarrStore):
        array = zarr.Array(in_own_store(array.async_array))
    metadata = array.metadata
    attributes = array.attrs.asdict()
    if metadata.zarr_format == 3:
        dtype: object = metadata.data_type
        names = metadata.dimension_names
    else:
        dtype = metadata.dtype
        named: Any = attributes.pop(XARRAY_KEY, None)
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
