"""Groups whose arrays have the fast path.

The logger of this module logs at DEBUG which arrays have another codec, which zarr handles.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast, override

import zarr

from n5zarr._zarr import ArrayV3Metadata, async_group
from n5zarr.arrays.array import N5Array
from n5zarr.arrays.described import DescribedArray, own_info
from n5zarr.arrays.html import html_of
from n5zarr.arrays.nodes import as_zarr, kinds_below, node_at, nodes_below, tree_of
from n5zarr.format.attributes import GroupAttributes
from n5zarr.store.block_codec import N5BlockCodec
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from collections.abc import Generator

    from zarr.types import AnyArray

    from n5zarr.storage.interface import Storage
    from n5zarr.store.info import Info

__all__ = ["N5Group", "values_of", "with_fast_path"]

_log = logging.getLogger(__name__)


class N5Group(zarr.Group):
    """A :class:`zarr.Group` whose arrays are :class:`N5Array` if their codec allows it."""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, zarr.Group):
            return bool(async_group(self) == async_group(other))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment] # as zarr.Group

    def __repr__(self) -> str:
        return f"<N5Group {self.store_path}>"

    def _repr_html_(self) -> str:
        return html_of(self)

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
                return with_fast_path(node)
        return with_fast_path(super().__getitem__(path))

    @override
    def get_array(self, path: str) -> AnyArray:
        return with_fast_path(super().get_array(path))

    @override
    def get_group(self, path: str) -> zarr.Group:
        return with_fast_path(super().get_group(path))

    @override
    def members(
        self, max_depth: int | None = 0, *, use_consolidated_for_children: bool = True
    ) -> tuple[tuple[str, AnyArray | zarr.Group], ...]:
        members = nodes_below(self, max_depth) or super().members(
            max_depth, use_consolidated_for_children=use_consolidated_for_children
        )
        return tuple((name, with_fast_path(member)) for name, member in members)

    @override
    def nmembers(self, max_depth: int | None = 0) -> int:
        found = kinds_below(self, max_depth)
        return super().nmembers(max_depth) if found is None else sum(1 for _ in found)

    @override
    def keys(self) -> Generator[str]:
        found = kinds_below(self, 0)
        yield from super().keys() if found is None else (name for name, _ in found)

    @override
    def group_keys(self) -> Generator[str, None]:
        found = kinds_below(self, 0)
        own = (name for name, node in found or () if isinstance(node, GroupAttributes))
        yield from super().group_keys() if found is None else own

    @override
    def array_keys(self) -> Generator[str, None]:
        found = kinds_below(self, 0)
        own = (name for name, node in found or () if isinstance(node, DatasetView))
        yield from super().array_keys() if found is None else own

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
        own = None if expand is not None else nodes_below(self, level)
        if own is None:
            return super().tree(expand, level, max_nodes=max_nodes, plain=plain)
        return tree_of(self, own, max_nodes=max_nodes, plain=plain)

    @override
    def groups(self) -> Generator[tuple[str, zarr.Group], None]:
        yield from ((name, node) for name, node in self.members() if isinstance(node, zarr.Group))

    @override
    def arrays(self) -> Generator[tuple[str, AnyArray], None]:
        yield from ((name, node) for name, node in self.members() if isinstance(node, zarr.Array))

    @override
    def create_group(self, name: str, **kwargs: Any) -> zarr.Group:
        return with_fast_path(super().create_group(name, **kwargs))

    @override
    def require_group(self, name: str, **kwargs: Any) -> zarr.Group:
        return with_fast_path(super().require_group(name, **kwargs))

    @override
    def require_groups(self, *names: str) -> tuple[zarr.Group, ...]:
        return tuple(map(with_fast_path, super().require_groups(*names)))

    @override
    def require_array(self, name: str, **kwargs: Any) -> AnyArray:
        return with_fast_path(super().require_array(name, **kwargs))


def with_fast_path[Node: AnyArray | zarr.Group](node: Node) -> Node:
    """Return an array or a group with the fast path, if it has n5zarr's own codec.

    Parameters
    ----------
    node : zarr.Array or zarr.Group
        The array or group.

    Returns
    -------
    zarr.Array or zarr.Group
        An :class:`N5Array` for an array with n5zarr's own codec; an :class:`N5Group` for a group,
        which does the same for its members; for other arrays a :class:`DescribedArray`.
    """
    if isinstance(node, zarr.Group):
        return cast("Node", N5Group(async_group(node)))
    metadata = node.async_array.metadata
    codecs = metadata.codecs if isinstance(metadata, ArrayV3Metadata) else ()
    is_fast = len(codecs) == 1 and isinstance(codecs[0], N5BlockCodec)
    if not is_fast:
        _log.debug("%s: left to zarr: its codec is not n5zarr's own", node.store_path)
    return cast("Node", (N5Array if is_fast else DescribedArray)(node.async_array))


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
