"""Groups whose arrays have the fast path; nodes become zarr's objects without its event loop.

The contents of an array or a group equal those that zarr creates from the store's document. The
logger of this module logs at DEBUG which arrays have another codec, which zarr handles.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any, Self, TypeGuard, cast, override

import numpy as np
import numpy.typing as npt
import zarr
from zarr.abc.codec import Codec
from zarr.abc.store import Store
from zarr.storage import StorePath
from zarr.types import AnyArray

from n5zarr._zarr import ArrayV3Metadata, Attributes, async_group, sync, with_attributes
from n5zarr.arrays.described import (
    FAST_ARRAY,
    DescribedArray,
    N5Attributes,
    html_of,
    own_info,
    take_over,
)
from n5zarr.container import codec_chain
from n5zarr.container.memory import Node
from n5zarr.container.node_names import Broken
from n5zarr.container.walk import Selection, Unreadable, Walk
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.path import join, normalize_path
from n5zarr.format.raw_json import from_numpy
from n5zarr.storage.interface import Storage
from n5zarr.store.block_codec import N5BlockCodec
from n5zarr.store.info import Info
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import MetadataKey

_log = logging.getLogger(__name__)


class N5Group(zarr.Group):
    """A :class:`zarr.Group` whose arrays are those of :func:`with_fast_path`."""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, zarr.Group):
            return bool(async_group(self) == async_group(other))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment] # as zarr.Group

    def __repr__(self) -> str:
        return f"<N5Group {self.store_path}>"

    def _repr_html_(self) -> str:
        return html_of(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: all is written when it is assigned."""

    def shown[Node: AnyArray | zarr.Group](self, node: Node) -> Node:
        """Return a node below as this group shows it."""
        return with_fast_path(node)

    def create_dataset(
        self,
        name: str,
        shape: Sequence[int] | None = None,
        dtype: npt.DTypeLike | None = None,
        data: npt.ArrayLike | None = None,
        **options: Any,  # noqa: ANN401 - those of create_array
    ) -> AnyArray:
        """Create a dataset below the group: :func:`n5zarr.create_array`, as h5py calls it.

        Parameters
        ----------
        name : str
            Path of the dataset below the group.
        shape, dtype, data, **options : optional
            As for :func:`n5zarr.create_array`.
        """
        from n5zarr.arrays.creating import create_array  # noqa: PLC0415 - knows conventions

        options["path"] = join(self.path, normalize_path(name))
        return create_array(self.store, shape=shape, dtype=dtype, data=data, **options)

    def require_dataset(
        self,
        name: str,
        shape: int | Sequence[int],
        dtype: npt.DTypeLike | None = None,
        *,
        exact: bool = False,
        **options: Any,  # noqa: ANN401 - those of create_array
    ) -> AnyArray:
        """Return a dataset of this shape and type; create it, with options, if nothing is there.

        Parameters
        ----------
        name, shape, dtype, **options : optional
            As for :meth:`create_dataset`.
        exact : bool, optional
            Whether ``dtype`` must be that of the dataset; otherwise elements of it must fit in.

        Raises
        ------
        TypeError
            What is there is a group, or of another shape or type.
        """
        extent, found = (shape,) if isinstance(shape, int) else tuple(shape), self.get(name)
        if found is None:
            return self.create_dataset(name, shape=extent, dtype=dtype, **options)
        if isinstance(found, zarr.Group) or found.shape != extent:
            raise TypeError(f"{name}: expected a dataset of the shape {extent}, got {found!r}")
        if dtype is not None and not np.can_cast(dtype, found.dtype, "no" if exact else "safe"):
            raise TypeError(f"{name}: expected elements for {np.dtype(dtype)}, got {found.dtype}")
        return found

    def visititems[T](self, visit: Callable[[str, AnyArray | zarr.Group], T | None]) -> T | None:
        """Call a function with path and node of all below, until one call returns a value."""
        values = (visit(name, node) for name, node in self.members(max_depth=None))
        return next((value for value in values if value is not None), None)

    @property
    @override
    def info(self) -> Info | Any:
        """The description of the group; lists the children to count them by kind."""
        return own_info(self.store, self.path) or super().info

    @override
    def __getitem__(self, path: str) -> AnyArray | zarr.Group:
        if self.metadata.consolidated_metadata is None:
            node = node_at(self.store, (self.store_path / path).path)
            if node is not None:
                return self.shown(node)
        return self.shown(super().__getitem__(path))

    @override
    def get_array(self, path: str) -> AnyArray:
        return self.shown(super().get_array(path))

    @override
    def get_group(self, path: str) -> zarr.Group:
        return self.shown(super().get_group(path))

    @override
    def members(
        self, max_depth: int | None = 0, *, use_consolidated_for_children: bool = True
    ) -> tuple[tuple[str, AnyArray | zarr.Group], ...]:
        members = _nodes_below(self, max_depth) or super().members(
            max_depth, use_consolidated_for_children=use_consolidated_for_children
        )
        return tuple((name, self.shown(member)) for name, member in members)

    @override
    def nmembers(self, max_depth: int | None = 0) -> int:
        found = _kinds_below(self, max_depth)
        return super().nmembers(max_depth) if found is None else sum(1 for _ in found)

    @override
    def keys(self) -> Generator[str]:
        yield from _names_in(self, object) or super().keys()

    @override
    def group_keys(self) -> Generator[str, None]:
        yield from _names_in(self, GroupAttributes) or super().group_keys()

    @override
    def array_keys(self) -> Generator[str, None]:
        yield from _names_in(self, DatasetView) or super().array_keys()

    @override
    def group_values(self) -> Generator[zarr.Group, None]:
        yield from (node for _, node in self.groups())

    @override
    def array_values(self) -> Generator[AnyArray, None]:
        yield from (node for _, node in self.arrays())

    @override
    def tree(
        self,
        expand: bool | None = None,
        level: int | None = None,
        *,
        max_nodes: int = 500,
        plain: bool = False,
    ) -> Any:
        own = None if expand is not None else _nodes_below(self, level)
        if own is None:
            return super().tree(expand, level, max_nodes=max_nodes, plain=plain)
        return _tree_of(self, own, max_nodes=max_nodes, plain=plain)

    @override
    def groups(self) -> Generator[tuple[str, zarr.Group], None]:
        yield from ((name, node) for name, node in self.members() if isinstance(node, zarr.Group))

    @override
    def arrays(self) -> Generator[tuple[str, AnyArray], None]:
        yield from ((name, node) for name, node in self.members() if isinstance(node, zarr.Array))

    @property
    @override
    def attrs(self) -> Attributes:
        """The attributes, which take numbers of numpy, too."""
        return N5Attributes(self)

    write_attributes = zarr.Group.update_attributes

    @override
    def update_attributes(self, new_attributes: dict[str, Any]) -> zarr.Group:
        take_over(self)
        return super().update_attributes(from_numpy(new_attributes))

    @override
    def create_group(self, name: str, **kwargs: Any) -> zarr.Group:
        return self.shown(super().create_group(name, **_plain(kwargs)))

    @override
    def create_array(self, name: str, **kwargs: Any) -> AnyArray:
        return self.shown(super().create_array(name, **_plain(kwargs)))

    @override
    def require_group(self, name: str, **kwargs: Any) -> zarr.Group:
        return self.shown(super().require_group(name, **kwargs))

    @override
    def require_groups(self, *names: str) -> tuple[zarr.Group, ...]:
        return tuple(map(self.shown, super().require_groups(*names)))

    @override
    def require_array(self, name: str, **kwargs: Any) -> AnyArray:
        return self.shown(super().require_array(name, **_plain(kwargs)))


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a new node with attributes that JSON holds."""
    return {key: from_numpy(v or {}) if key == "attributes" else v for key, v in options.items()}


def with_fast_path[Node: AnyArray | zarr.Group](node: Node) -> Node:
    """Return an array or a group with the fast path, if it has n5zarr's own codec.

    Parameters
    ----------
    node : zarr.Array or zarr.Group
        The array or group.

    Returns
    -------
    zarr.Array or zarr.Group
        For an array with n5zarr's own codec, one of the room ``fast``; an :class:`N5Group` for a
        group, which does the same for its members; for others a :class:`DescribedArray`.
    """
    if isinstance(node, zarr.Group):
        return cast("Node", N5Group(async_group(node)))
    metadata = node.async_array.metadata
    codecs = metadata.codecs if isinstance(metadata, ArrayV3Metadata) else ()
    is_fast = len(codecs) == 1 and isinstance(codecs[0], N5BlockCodec)
    if not is_fast:
        _log.debug("%s: left to zarr: its codec is not n5zarr's own", node.store_path)
    kind = (FAST_ARRAY.found() if is_fast else None) or DescribedArray
    return cast("Node", kind(node.async_array))


def values_of(storage: Storage, path: str, view: DatasetView) -> AnyArray:
    """Return a dataset as an array with the fast path, read-only, in a store of its own.

    Parameters
    ----------
    storage : Storage
        The keys of the container.
    path : str
        Path of the dataset, normalised.
    view : DatasetView
        The dataset, as it was just read through any store.
    """
    own = N5Store(storage, codecs="n5", zarr_format=3, read_only=True)
    array: Any = with_fast_path(as_zarr(own, path, replace(view, codecs="n5")))
    return cast("AnyArray", array)


def _shows_nodes(store: Store) -> TypeGuard[N5Store]:
    """Whether a store presents each node of its container as one node of Zarr v3."""
    return isinstance(store, N5Store) and store.zarr_format == 3 and not store.coords


def node_at(store: Store, path: str) -> AnyArray | zarr.Group | None:
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


def as_zarr(store: N5Store, path: str, node: Node) -> AnyArray | zarr.Group:
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
    value = b"{}"
    if not isinstance(node, DatasetView) or not store.read_only:  # else Zarr cannot change it
        value = store.run(store.container.document(MetadataKey(path, "zarr.json"), node)) or value
    if not isinstance(node, DatasetView):
        return zarr.Group(zarr.AsyncGroup.from_dict(where, json.loads(value)))
    # N5's keys alone give the document, apart from attributes and the fill value
    is_derived = node.given is None and node.transcoded is None and not node.record.extra
    metadata: Any = (
        with_attributes(_parse_metadata(node.v3_text), node.attributes)
        if is_derived and node.kind.is_native
        else node.document() | {"attributes": node.attributes}
    )
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
    return _parse_metadata(plain.v3_text).inner_codecs


def _nodes_below(
    group: zarr.Group, max_depth: int | None
) -> Iterator[tuple[str, AnyArray | zarr.Group]] | None:
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
    found, store = _kinds_below(group, max_depth), group.store
    if found is None or not isinstance(store, N5Store):
        return None
    return ((name, as_zarr(store, normalize_path(f"{group.path}/{name}"), n)) for name, n in found)


def _kinds_below(group: zarr.Group, max_depth: int | None) -> Iterator[tuple[str, Node]] | None:
    """Read all nodes below a group, as :func:`_nodes_below` does, and open none."""
    store, path = group.store, group.path
    if not _shows_nodes(store) or group.metadata.consolidated_metadata is not None:
        return None
    if max_depth is not None and max_depth < 0:  # zarr raises the error
        return None
    node = None if store.storage.has_stamps else store.container.memory.node(path)
    node = node or store.node(path)  # another program may have turned it into a dataset
    return _walk_below(store, path, node, max_depth) if isinstance(node, GroupAttributes) else None


def _names_in(group: zarr.Group, kind: type) -> Iterator[str] | None:
    """Yield the names of the children of a kind; None if zarr has to list them."""
    found = _kinds_below(group, 0)
    return None if found is None else (name for name, node in found if isinstance(node, kind))


def _tree_of(
    group: zarr.Group,
    found: Iterator[tuple[str, AnyArray | zarr.Group]],
    *,
    max_nodes: int,
    plain: bool,
) -> object:
    """Return zarr's tree of a group, from nodes already read; open only the first ones."""
    first = list(islice(found, max_nodes + 1))

    class KnownGroup(zarr.AsyncGroup):
        async def members(self, *_: object, **__: object) -> AsyncGenerator[tuple[str, Any], None]:
            for name, node in first:
                yield name, async_group(node) if isinstance(node, zarr.Group) else node.async_array

    own = async_group(group)
    return sync(KnownGroup(own.metadata, own.store_path).tree(max_nodes=max_nodes, plain=plain))


def _walk_below(
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


@lru_cache(maxsize=256)
def _parse_metadata(document: str) -> ArrayV3Metadata:
    """Parse a document; zarr takes longer for this than for the rest of an opening."""
    return ArrayV3Metadata.from_dict(json.loads(document))
