"""Describe the content of a container as plain data, for ``n5zarr tree`` and ``n5zarr info``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import batched, islice
from typing import Any, NamedTuple, cast

from n5zarr._zarr import sync
from n5zarr.container.axes import read_placed_by_each
from n5zarr.container.block_listing import blocks_by_prefix, n_bytes_of, stored_positions
from n5zarr.container.memory import Node
from n5zarr.container.node_names import Broken, names_of_nodes
from n5zarr.container.walk import Selection, Unreadable, Walk, WalkNode
from n5zarr.errors import N5Error, N5UnsupportedError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.compression import compression_to_json
from n5zarr.format.grid import block_path
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import to_c
from n5zarr.format.path import join
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.place import Backend, Location, Place, place_of
from n5zarr.storage.requests import list_each
from n5zarr.storage.url import is_of_one_key
from n5zarr.store.info import Info, read_version
from n5zarr.store.locating import Document, locate
from n5zarr.store.missing_nodes import existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Content

_UNKNOWN = -1  # nodes are left out
_STAMPS = 2**12  # blocks whose sizes are requested at a time


def describe(
    location: Location,
    path: str = "",
    *,
    size: bool = True,
    limit: int | None = None,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> dict[str, JSON]:
    """Describe one node.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, a location in one, or BigDataViewer's XML.
    path : str, optional
        Node below ``location``.
    size : bool, optional
        Whether to count the stored blocks and their bytes, which lists every block.
    limit : int, optional
        How many children of a group to read and name at most; of a larger group, only the number of
        all is known (``n_children``), and the first names. All are read by default.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Returns
    -------
    dict
        Plain JSON. Tuples named ``..._n5`` are in N5 order, those named ``..._c`` in C order. With
        BigDataViewer's XML, ``project`` holds its setups, time points and missing views. Where a
        server does not list, ``children`` of a group are None.

    Raises
    ------
    FileNotFoundError
        The container or node does not exist.
    N5Error
        The node is broken or not supported.
    """
    place = place_of(location, storage_options, backend)
    with asking_once():
        document, store, node_path, node = _open(place, path)
        description: dict[str, JSON] = {
            "container": str(store),
            "path": f"/{node_path}",
            "n5": store.run(read_version()),
            "kind": _kind(node),
        }
        if isinstance(node, DatasetView):
            description |= _describe_array(node) | _describe_geometry(store, node_path, node)
            if size:
                description |= _describe_size(store, node_path, node)
            return {**description, "attributes": deepcopy(node.dataset.attributes)}
        return {
            **description,
            **_describe_children(store, node_path, limit),
            "attributes": dict(node.attributes),
            **({} if document is None else document.describe()),
        }


def _describe_children(store: N5Store, path: str, limit: int | None) -> dict[str, JSON]:
    """Describe the children of a group, if the server lists them; over the limit, read none."""
    try:
        if limit is not None:
            names, refused = names_of_nodes(path, store.run(list_each([path]))[0])
            listed = sorted([*names, *(name for name, _ in refused)])
            if len(listed) > limit:
                return {"n_children": len(listed), "children": listed[:limit]}
        children = store.run(store.container.nodes.children(path))
    except N5UnsupportedError as err:
        if err.kind != "listing":
            raise
        return {"n_children": None, "children": None}
    by_kind = Counter(_kind(child) for _, child in children)
    return {
        "n_children": len(children),
        "children": [name for name, _ in children],
        "children_by_kind": dict(sorted(by_kind.items())),
    }


def info_of(store: N5Store, path: str, *, size: bool = False) -> Info:
    """Describe one node of an open container, and its presentation; see :func:`describe`."""
    shown: dict[str, JSON] = {"axis_order": store.axis_order, "read_only": store.read_only}
    return Info({**describe(store, path, size=size), **shown})


def _open(place: Place, path: str) -> tuple[Document | None, N5Store, str, Node]:
    """Open the node at a location, and the document that names its container."""
    located = locate(place, path)
    with located.named():
        store, node_path = located.open()
        return located.document, store, node_path, existing_node(store, node_path)


def _describe_array(view: DatasetView) -> dict[str, JSON]:
    """Describe a dataset by its document alone."""
    dataset = view.dataset
    names = view.dimension_names
    description: dict[str, JSON] = {
        "dimensions_n5": dataset.dimensions,
        "shape_c": _in_c(view.shape, view),
        "axes_c": names if names is None or view.axis_order == "C" else to_c(names),
        "data_type": dataset.type_name,
        "shown_as": _presented_type(view),
        "compression": compression_to_json(dataset.compression),
        "block_size_n5": dataset.block_size,
        "chunk_shape_c": _in_c(view.chunk_shape, view),
        "grid_n5": dataset.grid,
        "n_blocks": math.prod(dataset.grid),
    }
    if view.content not in (Content.STRINGS, Content.OBJECTS):
        description["n_bytes"] = math.prod(dataset.dimensions) * view.data_type.item_size
    return description


def _describe_geometry(store: N5Store, path: str, view: DatasetView) -> dict[str, JSON]:
    """Describe the axes of a dataset and the problems in reading them."""
    # without coordinates, for which it would read datasets named like the axes
    placed = store.run(read_placed_by_each(store.container.nodes, path, view, [None]))[None]
    geometry = placed.geometry
    problems: dict[str, JSON] = {"axes_problems": placed.problems} if placed.problems else {}
    if geometry is None:
        return {"geometry": None, **problems}
    described: dict[str, JSON] = {
        "convention": geometry.convention,
        "axes_n5": [
            {
                "name": axis.name,
                "type": axis.type,
                "unit": axis.unit,
                "scale": axis.scale,
                "translation": axis.translation,
                "labels": axis.labels,
            }
            for axis in geometry.axes
        ],
    }
    names = [axis.name or None for axis in geometry.axes]
    axes: dict[str, JSON] = {"axes_c": to_c(tuple(names))} if any(names) else {}
    return {"geometry": described, **axes, **problems}


def _in_c(values: tuple[int, ...], view: DatasetView) -> tuple[int, ...]:
    """Return values for each axis, given in the order of a view, in C order."""
    return values if view.axis_order == "C" else to_c(values)


def _presented_type(view: DatasetView) -> str:
    """Return the name of the Zarr data type of the array."""
    recorded = view.record.data_type
    if isinstance(recorded, Mapping):
        return str(recorded.get("name"))
    return str(recorded or view.data_type.value)


def _describe_size(store: N5Store, path: str, view: DatasetView) -> dict[str, JSON]:
    """Count the stored blocks of a dataset and their bytes."""
    listed = store.run(blocks_by_prefix(path, view.dataset.grid))
    if listed is not None and listed.n_bytes is not None:
        return {"n_blocks_stored": len(listed.rows), "n_bytes_stored": listed.n_bytes}
    n_blocks = n_bytes = 0
    for positions in batched(stored_positions(store.run, path, view.dataset.grid), _STAMPS):
        n_blocks += len(positions)
        if store.storage.has_stamps:
            n_bytes += store.run(n_bytes_of([join(path, block_path(p)) for p in positions]))
    if not store.storage.has_stamps:  # a web server, or a store that lists no sizes
        n_document = sync(store.store.getsize(join(path, ATTRIBUTES_JSON)))
        n_bytes = sync(store.getsize_prefix(path)) - n_document
    return {"n_blocks_stored": n_blocks, "n_bytes_stored": n_bytes}


def describe_tree(  # noqa: PLR0913 - as describe_each
    location: Location,
    path: str = "",
    *,
    size: bool = False,
    depth: int | None = None,
    limit: int | None = None,
    match: str = "",
    geometry: bool = False,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> dict[str, JSON]:
    """Describe a node and everything below it.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, a location in one, or BigDataViewer's XML.
    path : str, optional
        Node below ``location``.
    size : bool, optional
        Whether to count the stored blocks and their bytes, which lists every block.
    depth : int, optional
        How many levels below the node to describe; all by default.
    limit : int, optional
        How many nodes of each group to describe; all by default. The others are not read.
    match : str, optional
        Pattern of the paths below the node, see :class:`~n5zarr.container.walk.Selection`.
    geometry : bool, optional
        Whether to describe the axes of datasets, as :func:`describe` does.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Returns
    -------
    dict
        ``name``, ``kind`` (``"group"``, ``"array"``, ``"object"``, ``"broken"``, ``"foreign"`` for
        Zarr in the container, or ``"unreadable"`` where storage refuses) and, depending on the
        kind, ``children``, the members of an array that :func:`describe` returns, or ``error``. A
        group of which ``limit`` leaves some out has their number as ``n_more``.

    Raises
    ------
    FileNotFoundError
        The container or node does not exist.
    N5Error
        The node itself is broken or not supported.
    """
    place = place_of(location, storage_options, backend)
    options: Any = {"size": size, "depth": depth, "limit": limit, "match": match}
    with asking_once():
        return _nested(describe_each(place, path, geometry=geometry, **options), depth)


def _nested(nodes: Iterable[Described], depth: int | None) -> dict[str, JSON]:
    """Put descriptions into those of their groups; return the first."""
    above: list[dict[str, JSON]] = []
    for level, _, description in nodes:
        if description["kind"] == "more":
            above[level - 1]["n_more"] = description["n_more"]
            continue
        if level:
            children = above[level - 1].setdefault("children", [])
            cast("list[JSON]", children).append(description)
        if description["kind"] == "group" and level != depth:
            description.setdefault("children", [])
        above[level:] = [description]
    return above[0]


class Described(NamedTuple):
    """A node on a walk through a container, see :func:`describe_each`."""

    level: int
    is_last: bool
    description: dict[str, JSON]


def describe_each(  # noqa: PLR0913 - one for each way of selecting
    location: Location,
    path: str = "",
    *,
    size: bool = False,
    depth: int | None = None,
    limit: int | None = None,
    match: str = "",
    total: int | None = None,
    skip: int = 0,
    geometry: bool = False,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> Iterator[Described]:
    """Describe a node and everything below it, one by one, while the container is being read.

    Parameters and errors are those of :func:`describe_tree`, and beside them:

    Parameters
    ----------
    total : int, optional
        How many descriptions to yield in total, about, instead of ``limit``: so many nodes of each
        group as fit, but all those directly below the first node, if these fit.
    skip : int, optional
        How many of the nodes directly below the first one to leave out, with all below them.

    Yields
    ------
    level : int
        How many levels below the first node.
    is_last : bool
        Whether no other node of the same group follows.
    description : dict
        As of :func:`describe_tree`, without ``children``; of the kind ``"more"``, with ``n_more``,
        in place of nodes that are left out; ``n_more`` is None at the end if ``total`` leaves out
        all nodes below groups. With BigDataViewer's XML, groups of
        setups have ``setup``, with the names of channel, tile and so on.
    """
    place = place_of(location, storage_options, backend)
    document, store, node_path, node = _open(place, path)
    selection = Selection(depth, limit, match, skip)

    def walk(selected: Selection) -> Iterator[tuple[WalkNode, bool]]:
        return Walk(store.container.nodes, store.run, selected).run(node_path, node)

    walked = walk(selection) if total is None else iter(_fitted(walk, selection, total))
    for found, is_last in walked:
        if found.n_more:
            n_more = None if found.n_more == _UNKNOWN else found.n_more
            more: dict[str, JSON] = {"kind": "more", "n_more": n_more}
            yield Described(found.level, is_last, more)
            continue
        name = found.name if found.level else join(str(store), node_path)
        description = {"name": name, **_describe_node(store, found, size=size)}
        if geometry and isinstance(found.node, DatasetView):
            description |= _describe_geometry_if_readable(store, found.path, found.node)
        if document is not None:
            description |= document.describe_group(found.name)
        yield Described(found.level, is_last, description)


def _fitted(
    walk: Callable[[Selection], Iterator[tuple[WalkNode, bool]]], selection: Selection, total: int
) -> list[tuple[WalkNode, bool]]:
    """Walk with a limit for which the number of nodes is below a total; see `describe_each`."""
    selection = replace(selection, limit=total - 2)

    def walked(limit: int | None = None) -> list[tuple[WalkNode, bool]]:
        return list(islice(walk(replace(selection, limit_below=limit)), total + 1))

    if len(found := walked()) <= total:
        return found
    if len(found := walked(0)) > total:
        rest = WalkNode("", 0, None, is_read=True, n_more=_UNKNOWN)
        return [*walk(replace(selection, depth=1)), (rest, True)]
    n_below = [each.n_more for each, _ in found if each.level > 1 and each.n_more]
    room = total - len(found) + len(n_below)
    limit = max(m for m in range(total) if sum(n if n <= m else m + 1 for n in n_below) <= room)
    while len(found := walked(limit)) > total:
        limit //= 2  # there are groups further down
    return found


def _describe_geometry_if_readable(store: N5Store, path: str, view: DatasetView) -> dict[str, JSON]:
    """Describe the axes of a dataset, unless a document around it cannot be read."""
    try:
        return _describe_geometry(store, path, view)
    except Exception as err:
        if not (isinstance(err, N5Error) or is_of_one_key(err)):
            raise
        return {"geometry": None, "axes_problems": [str(err)]}


def _describe_node(store: N5Store, found: WalkNode, *, size: bool) -> dict[str, JSON]:
    node = found.node
    sizes: dict[str, JSON] = {}
    if isinstance(node, DatasetView) and size:
        try:
            sizes = _describe_size(store, found.path, node)
        except Exception as err:
            if not is_of_one_key(err):
                raise
            node = Unreadable(err)
    if isinstance(node, Broken | Unreadable):
        return {"kind": _kind(node), "error": _said_of(node)}
    described = _describe_array(node) if isinstance(node, DatasetView) else {}
    return {"kind": _kind(node), **described, **sizes}


def _said_of(node: Broken | Unreadable) -> str:
    """Return the message of an error, without the name of the node if that is its place."""
    error = node.error
    return error.message if isinstance(error, N5Error) and error.kind == "foreign" else str(error)


def _kind(node: Node | Broken | Unreadable | None) -> str:
    """Classify a node: damaged, refused by storage, not N5, or a dataset that is no array."""
    if isinstance(node, Unreadable):
        return "unreadable"
    if not isinstance(node, Broken):
        return "array" if isinstance(node, DatasetView) else "group"
    if node.error.kind == "foreign":
        return "foreign"
    is_object = isinstance(node.error, N5UnsupportedError) and node.error.kind == "data-type"
    return "object" if is_object else "broken"
