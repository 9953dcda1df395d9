"""Create zarr arrays and groups for nodes that n5zarr has read, without zarr's event loop.

Their contents equal those that zarr creates from the store's document.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeGuard

import zarr
from zarr.storage import StorePath

from n5zarr._zarr import ArrayV3Metadata, async_group, sync, with_attributes
from n5zarr.container import codec_chain
from n5zarr.container.node_names import Broken
from n5zarr.container.walk import Selection, Unreadable, Walk
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.path import normalize_path
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import MetadataKey

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from zarr import Group
    from zarr.abc.codec import Codec
    from zarr.abc.store import Store
    from zarr.types import AnyArray

    from n5zarr.container.memory import Node

__all__ = ["as_zarr", "kinds_below", "node_at", "nodes_below", "standard_codecs", "tree_of"]


def _shows_nodes(store: Store) -> TypeGuard[N5Store]:
    """Whether a store presents each node of its container as one node of Zarr v3."""
    return isinstance(store, N5Store) and store.zarr_format == 3 and not store.coords


def node_at(store: Store, path: str) -> AnyArray | Group | None:
    """Open a node of a local container; None if it is missing, or if zarr has to open it.

    Parameters
    ----------
    store : zarr.abc.store.Store
        A store as zarr opens it for the mode.
    path : str
        Of the node.

    Raises
    ------
    N5Error
        The node exists, but is broken or not supported.
    """
    if not _shows_nodes(store) or store.storage.root is None:
        return None
    path = normalize_path(path)
    node = store.node(path)
    return None if node is None else as_zarr(store, path, node)


def as_zarr(store: N5Store, path: str, node: Node) -> AnyArray | Group:
    """Make the array or group of a node that was just read.

    Parameters
    ----------
    store : N5Store
        The store of the node, which presents each node as one node.
    path : str
        Of the node, normalised.
    node : DatasetView or GroupAttributes
        The node.
    """
    memory = store.container.memory
    if memory.node(path) is not node:
        memory.keep(path, node, None)  # without a stamp: read again before its chunks
    where = StorePath(store, path)
    if isinstance(node, DatasetView) and store.read_only:
        document = node.document()  # not remembered as served: Zarr cannot change it
        document["attributes"] = json.loads(json.dumps(document["attributes"]))
    else:
        value = store.run(store.container.document(MetadataKey(path, "zarr.json"), node))
        document = json.loads(value or b"{}")
    if not isinstance(node, DatasetView):
        return zarr.Group(zarr.AsyncGroup.from_dict(where, document))
    metadata: Any = _metadata(document) if _is_ordinary(node) else document
    return zarr.Array(zarr.AsyncArray(metadata=metadata, store_path=where))


def standard_codecs(view: DatasetView) -> tuple[Codec, ...]:
    """Return the codecs that a dataset has in plain Zarr, with its axes in C order.

    Raises
    ------
    N5AttributesError
        Zarr cannot open an array with the recorded codecs (``kind="compression"``).
    """
    plain = replace(view, codecs="zarr", axis_order="C", zarr_format=3)
    codec_chain.check(plain)
    document = plain.document() | {"attributes": {}}
    metadata = _metadata(document) if _is_ordinary(plain) else ArrayV3Metadata.from_dict(document)
    return metadata.inner_codecs


def nodes_below(
    group: Group, max_depth: int | None
) -> Iterator[tuple[str, AnyArray | Group]] | None:
    """Open all nodes below a group, reading each once; None if zarr has to open them.

    Parameters
    ----------
    group : zarr.Group
        The group.
    max_depth : int or None
        Number of levels below the children; None for all.

    Yields
    ------
    str, zarr.Array or zarr.Group
        Path below the group, and the node.
    """
    found, store = kinds_below(group, max_depth), group.store
    if found is None or not isinstance(store, N5Store):
        return None
    return ((name, as_zarr(store, normalize_path(f"{group.path}/{name}"), n)) for name, n in found)


def kinds_below(group: Group, max_depth: int | None) -> Iterator[tuple[str, Node]] | None:
    """Read all nodes below a group, as :func:`nodes_below` does, and open none."""
    store, path = group.store, group.path
    if not _shows_nodes(store) or group.metadata.consolidated_metadata is not None:
        return None
    if max_depth is not None and max_depth < 0:  # zarr raises the error
        return None
    node = None if store.storage.has_stamps else store.container.memory.node(path)
    node = node or store.node(path)  # another program may have turned it into a dataset
    return _nodes_below(store, path, node, max_depth) if isinstance(node, GroupAttributes) else None


def tree_of(
    group: Group, found: Iterator[tuple[str, AnyArray | Group]], *, max_nodes: int, plain: bool
) -> object:
    """Return zarr's tree of a group, from nodes already read; open only the first ones."""
    first = list(islice(found, max_nodes + 1))

    class KnownGroup(zarr.AsyncGroup):
        async def members(self, *_: object, **__: object) -> AsyncGenerator[tuple[str, Any], None]:
            for name, node in first:
                yield name, async_group(node) if isinstance(node, zarr.Group) else node.async_array

    own = async_group(group)
    return sync(KnownGroup(own.metadata, own.store_path).tree(max_nodes=max_nodes, plain=plain))


def _nodes_below(
    store: N5Store, path: str, group: GroupAttributes, max_depth: int | None
) -> Iterator[tuple[str, Node]]:
    depth = None if max_depth is None else max_depth + 1
    for found, _ in Walk(store.container.nodes, store.run, Selection(depth)).run(path, group):
        if isinstance(found.node, Unreadable):
            raise found.node.error
        if isinstance(found.node, Broken):
            store.container.warn(f"omitted from the listing: {found.node.error}")
        elif found.level and found.node is not None:
            yield found.path.removeprefix(path).lstrip("/"), found.node


def _is_ordinary(view: DatasetView) -> bool:
    """Whether N5's keys alone give the document, apart from attributes and the fill value."""
    is_derived = view.given is None and view.transcoded is None and not view.record.extra
    return is_derived and view.kind.is_native


def _metadata(document: dict[str, Any]) -> ArrayV3Metadata:
    """Parse the document of an ordinary array."""
    attributes = document.pop("attributes")
    return with_attributes(_parse_metadata(json.dumps(document)), attributes)


@lru_cache(maxsize=256)
def _parse_metadata(document: str) -> ArrayV3Metadata:
    """Parse a document; zarr takes longer for this than for the rest of an opening."""
    return ArrayV3Metadata.from_dict(json.loads(document))
