"""Hold everything that a store object remembers about its container.

Documents are made again for every request, since other programs may change ``attributes.json`` at
any time. The memory holds the datasets that chunks need, the documents from which Zarr's next
change starts, and the documents on which the user of an open array relies.

The dataset of an open array must still be the one that was opened.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from n5zarr.codecs.buffers import BufferLike
from n5zarr.errors import N5Error
from n5zarr.format.attributes import DatasetAttributes, GroupAttributes
from n5zarr.format.data_type import DataType
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import N5Tuple
from n5zarr.storage.ending import Call
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import (
    DEFAULT_NAMES,
    METADATA_NAMES,
    ChunkKey,
    ChunkNames,
    MetadataKey,
    ZarrFormat,
)

type Node = DatasetView | GroupAttributes

_JUST_LISTED = 2  # seconds during which a node from a listing is not read again
_NAMED = 100_000  # paths of nodes that listings have named, at most


@dataclass(frozen=True, eq=False)  # what is derived from one is remembered for it
class Creation:
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
    """The last node read or written at a path.

    Parameters
    ----------
    node : DatasetView or GroupAttributes
        The node.
    stamp : object
        The stamp of its document, taken before reading it; None if there was none. Then chunks do
        not rely on the node, where storage has stamps.
    """

    node: Node
    stamp: object


class _Listed(NamedTuple):
    node: Node
    stamp: object
    at: float  # seconds


class Memory:
    """The memory of a store object about its container, by path or key.

    Parameters
    ----------
    assumed : dict, optional
        Documents that a user passes to replace those in the container, by path. They stay whatever
        is forgotten.

    Attributes
    ----------
    assumed : dict
        These documents.
    known : dict
        The last node read at a path, with the stamp of its document.
    served : dict
        Documents that Zarr last read or wrote, from which its next change starts.
    listed : dict
        Nodes that a listing has read; forgotten when documents are about to change.
    named : set
        Paths of nodes that listings have named.
    created : dict
        How arrays were created through this store object.
    chunk_names : dict
        Names of the chunks of these arrays, if not the default ones.
    formats : dict
        The stamp of a document, and the Zarr format that it names.
    warned : set
        Warnings that the user has seen.
    without_trailer : set
        Paths of datasets of which an uncompressed block was seen to end with its elements.
    plain : set
        Paths of datasets of which a stored block was looked at, and is no shard.
    version_checked : bool
        Whether the version of the container has been checked.
    has_root : bool
        Whether the root of the container is known to exist.
    before : dict or None
        Documents before they were changed, by path, while an error would undo the changes.
    call : Call or None
        The call of which all writes of chunks are a part, on any thread.
    """

    def __init__(self, assumed: Mapping[str, bytes] | None = None) -> None:
        self.assumed = assumed or {}
        self.known: dict[str, KnownNode] = {}
        self.served: dict[MetadataKey, bytes] = {}
        self.listed: dict[str, _Listed] = {}
        self.named: set[str] = set()
        self.created: dict[str, Creation] = {}
        self.chunk_names: dict[str, ChunkNames] = {}
        self.formats: dict[str, tuple[object, ZarrFormat | None]] = {}
        self.warned: set[str] = set()
        self.without_trailer: set[str] = set()
        self.plain: set[str] = set()
        self._last_shard: tuple[str, bytes, BufferLike] | None = None
        self.version_checked = False
        self.has_root = False
        self.before: dict[str, bytes | None] | None = None
        self.call: Call | None = None

    def for_copy(self) -> Memory:
        """Make the memory of another store object that serves the same open arrays."""
        memory = Memory(self.assumed)
        memory.created, memory.chunk_names = self.created, self.chunk_names
        return memory

    def __getstate__(self) -> dict[str, Any]:
        # `listed` has times of this process; a shard can be computed again
        return self.__dict__ | {"listed": {}, "named": set(), "_last_shard": None, "call": None}

    # ------------------------------------------------------------------ nodes

    def node(self, path: str) -> Node | None:
        """Return the last node read at a path."""
        known = self.known.get(path)
        return None if known is None else known.node

    def dataset(self, path: str) -> DatasetView | None:
        """Return the last node read at a path if it is a dataset."""
        node = self.node(path)
        return node if isinstance(node, DatasetView) else None

    def keep(self, path: str, node: Node | None, stamp: object = None) -> None:
        """Remember a node; forget it and its documents if it is None."""
        if node is None:
            self.known.pop(path, None)
            # another program removed it: Zarr's next document describes a new node, not a change
            for name in (name for names in METADATA_NAMES.values() for name in names):
                self.served.pop(MetadataKey(path, name), None)
        else:
            self.known[path] = KnownNode(node, stamp)

    # ------------------------------------------------------------------ listings

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

    def keep_named(self, paths: Iterable[str]) -> None:
        """Remember that a listing has named some nodes."""
        if len(self.named) > _NAMED:
            self.named.clear()
        self.named.update(paths)

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

    def chunk_of(self, key: str) -> ChunkKey | None:
        """Parse the key of a chunk of an array whose chunks do not have the default names."""
        for path, names in list(self.chunk_names.items()):
            prefix = f"{path}/" if path else ""
            coords = names.coords(key[len(prefix) :]) if key.startswith(prefix) else None
            if coords is not None:
                return ChunkKey(path, coords, self.created[path].zarr_format)
        return None

    def keep_before(self, path: str, data: bytes | None) -> None:
        """Remember a document before its first change, None if there was none, if that is asked."""
        if self.before is not None:
            self.before.setdefault(path, data)

    # ------------------------------------------------------------------ blocks

    def shard_of(self, key: str, block: bytes) -> BufferLike | None:
        """Return the shard of Zarr made of a block, if it is the last one that was made."""
        last = self._last_shard
        return last[2] if last is not None and last[:2] == (key, block) else None

    def keep_shard(self, key: str, block: bytes, shard: BufferLike) -> None:
        """Remember the shard made of a block: zarr reads a shard in many small ranges."""
        self._last_shard = key, block, shard

    # ------------------------------------------------------------------ forgetting

    def forget(self, path: str) -> None:
        """Forget a node and all nodes below it; documents that a user gave stay."""
        by_path: tuple[MutableMapping[str, Any], ...] = (
            self.known, self.listed, self.created, self.chunk_names, self.formats,
        )  # fmt: skip
        for kept in by_path:
            for known in [key for key in list(kept) if _is_below(key, path)]:
                kept.pop(known, None)
        for key in [key for key in list(self.served) if _is_below(key.path, path)]:
            self.served.pop(key, None)
        for paths in (self.without_trailer, self.plain):
            paths -= {p for p in list(paths) if _is_below(p, path)}
        self.has_root = self.has_root and path != ""

    def forget_attributes(self, path: str) -> None:
        """Forget a node whose attributes have changed, and all nodes that listings have read."""
        self.listed.clear()
        self.known.pop(path, None)

    def forget_document(self, key: MetadataKey) -> None:
        """Forget one document of a node; with the document of an array, also its creation."""
        self.served.pop(key, None)
        self.known.pop(key.path, None)
        self.has_root = self.has_root and key.path != ""
        if key.name in ("zarr.json", ".zarray"):
            self.created.pop(key.path, None)
            self.chunk_names.pop(key.path, None)


def _is_below(known: str, path: str) -> bool:
    return not path or known == path or known.startswith(f"{path}/")


def check_still_there(opened: DatasetAttributes, now: DatasetAttributes) -> None:
    """Raise if a dataset has other elements or blocks than when it was opened.

    Raises
    ------
    N5Error
        It has (``kind="changed"``).
    """
    if (opened.type_name, opened.block_size) == (now.type_name, now.block_size):
        return
    message = (
        "another program has replaced the dataset since it was opened: expected "
        f"{opened.type_name} in blocks {opened.block_size}, got {now.type_name} in blocks "
        f"{now.block_size}; open it again"
    )
    raise N5Error(message, kind="changed")


def gone(now: object) -> N5Error:
    """Make the error of an open array whose dataset is no longer there: None, or another node."""
    found = "nothing" if now is None else "a group"
    message = (
        f"expected the dataset of an open array, got {found}: it has been removed or renamed "
        "since the array was opened; open it again where it is now"
    )
    return N5Error(message, kind="changed")
