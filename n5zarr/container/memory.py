"""Hold everything that a store object remembers about its container.

Documents are made again for every request, since other programs may change ``attributes.json`` at
any time. The memory holds the datasets that chunks need, the documents from which Zarr's next
change starts, and the documents on which the user of an open array relies.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import DEFAULT_NAMES, METADATA_NAMES, ChunkNames, MetadataKey

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.format.attributes import DatasetAttributes, GroupAttributes
    from n5zarr.format.data_type import DataType
    from n5zarr.format.lenient_json import JSON
    from n5zarr.format.order import N5Tuple
    from n5zarr.zarr_view.keys import ZarrFormat

__all__ = ["Creation", "KnownNode", "Memory", "Node"]

type Node = DatasetView | GroupAttributes

_JUST_LISTED = 2  # seconds during which a node from a listing is not read again


class Creation(NamedTuple):
    """The document with which an array was created, and elements and block size of its dataset.

    A user of the open array continues to write chunks with the codecs of this document.
    """

    document: Mapping[str, JSON]
    data_type: DataType
    block_size: N5Tuple
    recorded: JSON = None  # the Zarr data type, if it is not N5's

    @property
    def zarr_format(self) -> ZarrFormat:
        """The format of the document."""
        return 2 if self.document["zarr_format"] == 2 else 3

    def fits(self, dataset: DatasetAttributes, recorded: JSON) -> bool:
        """Whether the dataset still has these elements and blocks."""
        now = (dataset.type_name, dataset.block_size, recorded)
        return (self.data_type, self.block_size, self.recorded) == now


class KnownNode(NamedTuple):
    """The last node read at a path, and the stamp of its document."""

    node: Node
    stamp: object


class _Listed(NamedTuple):
    node: Node
    stamp: object
    at: float  # seconds


@dataclass(kw_only=True)
class Memory:
    """The memory of a store object about its container, by path or key.

    Parameters
    ----------
    nodes : dict, optional
        The last node read at each path, with the stamp of its document.
    served : dict, optional
        The documents that Zarr last read or wrote, from which its next change starts.
    listed : dict, optional
        Nodes that a listing has read, in case they are opened right afterwards.
    named : set of str, optional
        Paths of nodes that listings have named.
    created : dict, optional
        The documents with which arrays were created through this store object.
    chunk_names : dict, optional
        The names of the chunks of these arrays, if not the default ones.
    formats : dict, optional
        The Zarr formats that documents name, with their stamps.
    assumed : dict, optional
        Documents that a user passes to replace those in the container.
    coords_groups : dict, optional
        The groups of a view with coordinates, see :mod:`n5zarr.container.coords_view`.
    warned : set of str, optional
        Messages of warnings that the user has seen.
    version_checked, has_root : bool, optional
        Whether the version of the container has been checked; whether its root is known to exist.
    measured : set of str, optional
        Paths of datasets of which an uncompressed block was seen to end with its elements.
    last_shard : tuple, optional
        Key, block and chunk of the last shard: zarr reads a shard in many small ranges.
    """

    nodes: dict[str, KnownNode] = field(default_factory=dict)
    served: dict[MetadataKey, bytes] = field(default_factory=dict)
    listed: dict[str, _Listed] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    created: dict[str, Creation] = field(default_factory=dict)
    chunk_names: dict[str, ChunkNames] = field(default_factory=dict)
    formats: dict[str, tuple[object, ZarrFormat | None]] = field(default_factory=dict)
    assumed: dict[str, bytes] = field(default_factory=dict)
    coords_groups: dict[str, object] = field(default_factory=dict)
    warned: set[str] = field(default_factory=set)
    version_checked: bool = False
    has_root: bool = False
    measured: set[str] = field(default_factory=set)
    last_shard: tuple[str, bytes, BufferLike] | None = None

    def for_copy(self) -> Memory:
        """Make the memory of another store object that serves the same open arrays."""
        return Memory(created=self.created, chunk_names=self.chunk_names, assumed=self.assumed)

    def __getstate__(self) -> dict[str, Any]:
        # `listed` has times of this process; a shard can be computed again
        return self.__dict__ | {"listed": {}, "named": set(), "last_shard": None}

    # ------------------------------------------------------------------ nodes

    def node(self, path: str) -> Node | None:
        """Return the last node read at a path."""
        known = self.nodes.get(path)
        return None if known is None else known.node

    def dataset(self, path: str) -> DatasetView | None:
        """Return the last node read at a path if it is a dataset."""
        node = self.node(path)
        return node if isinstance(node, DatasetView) else None

    def keep(self, path: str, node: Node | None, stamp: object) -> None:
        """Remember a node; forget it and its documents if it is None."""
        if node is None:
            self.nodes.pop(path, None)
            # another program removed it: Zarr's next document describes a new node, not a change
            for name in (name for names in METADATA_NAMES.values() for name in names):
                self.served.pop(MetadataKey(path, name), None)
        else:
            self.nodes[path] = KnownNode(node, stamp)

    def keep_listed(self, nodes: Mapping[str, Node], stamps: Mapping[str, object]) -> None:
        """Remember nodes that a listing has read, in case they are opened right afterwards.

        With ``stamps``, those of the documents before reading, they stay until they are opened.
        """
        now = time.monotonic()
        for path, node in nodes.items():
            self.listed[path] = _Listed(node, stamps.get(path), now)

    def take_listed(self, path: str, stamp: object) -> Node | None:
        """Return, once, a node that a listing has read, if its document has the same stamp.

        If documents have no stamps, return a node that a listing has just read.
        """
        listed = self.listed.pop(path, None)
        if listed is None or listed.stamp != stamp:
            return None
        is_fresh = stamp is not None or time.monotonic() - listed.at <= _JUST_LISTED
        return listed.node if is_fresh else None

    # ------------------------------------------------------------------ creations

    def create(
        self,
        path: str,
        document: Mapping[str, Any],
        creation: tuple[DataType, N5Tuple, JSON],
    ) -> None:
        """Remember the document with which an array is created, without members that may change.

        Parameters
        ----------
        path : str
            Path of the dataset.
        document : mapping
            The ``zarr.json`` or ``.zarray``.
        creation : DataType, tuple of int, JSON
            Data type and block size of the dataset, and the recorded data type.
        """
        drop = ("shape", "attributes", "dimension_names", "fill_value")
        kept = {key: value for key, value in document.items() if key not in drop}
        self.created[path] = Creation(kept, *creation)
        names = ChunkNames.of(document)
        if names == DEFAULT_NAMES[self.created[path].zarr_format]:
            self.chunk_names.pop(path, None)
        else:
            self.chunk_names[path] = names

    # ------------------------------------------------------------------ forgetting

    def forget(self, path: str) -> None:
        """Forget a node and all nodes below it.

        Documents that a user gave (``assumed``) stay.
        """
        by_path: tuple[MutableMapping[str, Any], ...] = (
            self.nodes, self.listed, self.created, self.chunk_names, self.coords_groups,
            self.formats,
        )  # fmt: skip
        for kept in by_path:
            for known in [key for key in list(kept) if _is_below(key, path)]:
                kept.pop(known, None)
        for key in [key for key in list(self.served) if _is_below(key.path, path)]:
            self.served.pop(key, None)
        self.measured -= {known for known in self.measured if _is_below(known, path)}
        self.has_root = self.has_root and path != ""

    def forget_document(self, key: MetadataKey) -> None:
        """Forget one document of a node; with the document of an array, also its creation."""
        self.served.pop(key, None)
        self.nodes.pop(key.path, None)
        self.has_root = self.has_root and key.path != ""
        if key.name in ("zarr.json", ".zarray"):
            self.created.pop(key.path, None)
            self.chunk_names.pop(key.path, None)


def _is_below(known: str, path: str) -> bool:
    return not path or known == path or known.startswith(f"{path}/")
