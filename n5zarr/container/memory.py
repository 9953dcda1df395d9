"""Hold everything that a store object remembers about its container.

Documents are made again for every request, since other programs may change ``attributes.json`` at
any time. The memory holds the datasets that chunks need, the documents from which Zarr's next
change starts, and the documents on which the user of an open array relies.

The dataset of an open array must still be the one that was opened.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from n5zarr.errors import N5Error
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import (
    DEFAULT_NAMES,
    METADATA_NAMES,
    ChunkKey,
    ChunkNames,
    MetadataKey,
    ZarrFormat,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, MutableMapping

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.format.attributes import DatasetAttributes, GroupAttributes
    from n5zarr.format.data_type import DataType
    from n5zarr.format.lenient_json import JSON
    from n5zarr.format.order import N5Tuple

__all__ = [
    "Creation",
    "KnownNode",
    "Memory",
    "Node",
    "check_still_there",
    "gone",
]

type Node = DatasetView | GroupAttributes

_JUST_LISTED = 2  # seconds during which a node from a listing is not read again
_NAMED = 100_000  # paths of nodes that listings have named, at most


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
    version_checked : bool
        Whether the version of the container has been checked.
    has_root : bool
        Whether the root of the container is known to exist.
    """

    def __init__(self, assumed: Mapping[str, bytes] | None = None) -> None:
        self._assumed = assumed or {}
        self._nodes: dict[str, KnownNode] = {}
        self._served: dict[MetadataKey, bytes] = {}
        self._listed: dict[str, _Listed] = {}
        self._named: set[str] = set()
        self._created: dict[str, Creation] = {}
        self._chunk_names: dict[str, ChunkNames] = {}  # of these arrays, if not the default ones
        self._formats: dict[str, tuple[object, ZarrFormat | None]] = {}
        self._warned: set[str] = set()
        self._without_trailer: set[str] = set()
        self._last_shard: tuple[str, bytes, BufferLike] | None = None
        self.version_checked = False
        self.has_root = False

    def for_copy(self) -> Memory:
        """Make the memory of another store object that serves the same open arrays."""
        memory = Memory(self._assumed)
        memory._created, memory._chunk_names = self._created, self._chunk_names
        return memory

    def __getstate__(self) -> dict[str, Any]:
        # `_listed` has times of this process; a shard can be computed again
        return self.__dict__ | {"_listed": {}, "_named": set(), "_last_shard": None}

    # ------------------------------------------------------------------ nodes

    def known(self, path: str) -> KnownNode | None:
        """Return the last node read at a path, with the stamp of its document."""
        return self._nodes.get(path)

    def node(self, path: str) -> Node | None:
        """Return the last node read at a path."""
        known = self._nodes.get(path)
        return None if known is None else known.node

    def dataset(self, path: str) -> DatasetView | None:
        """Return the last node read at a path if it is a dataset."""
        node = self.node(path)
        return node if isinstance(node, DatasetView) else None

    def keep(self, path: str, node: Node | None, stamp: object = None) -> None:
        """Remember a node; forget it and its documents if it is None."""
        if node is None:
            self._nodes.pop(path, None)
            # another program removed it: Zarr's next document describes a new node, not a change
            for name in (name for names in METADATA_NAMES.values() for name in names):
                self._served.pop(MetadataKey(path, name), None)
        else:
            self._nodes[path] = KnownNode(node, stamp)

    def assumed(self, path: str) -> bytes | None:
        """Return the document that the user gave to replace that of a node."""
        return self._assumed.get(path)

    # ------------------------------------------------------------------ listings

    def keep_listed(self, nodes: Mapping[str, Node], stamps: Mapping[str, object]) -> None:
        """Remember nodes that a listing has read, in case they are opened right afterwards.

        With ``stamps``, those of the documents before reading, they stay until they are opened.
        """
        now = time.monotonic()
        for path, node in nodes.items():
            self._listed[path] = _Listed(node, stamps.get(path), now)

    def take_listed(self, path: str, stamp: object) -> Node | None:
        """Return, once, a node that a listing has read, if its document has the same stamp.

        If documents have no stamps, return a node that a listing has just read.
        """
        listed = self._listed.pop(path, None)
        if listed is None or listed.stamp != stamp:
            return None
        is_fresh = stamp is not None or time.monotonic() - listed.at <= _JUST_LISTED
        return listed.node if is_fresh else None

    def forget_listed(self) -> None:
        """Forget the nodes that listings have read: documents are about to change."""
        self._listed.clear()

    def keep_named(self, paths: Iterable[str]) -> None:
        """Remember that a listing has named some nodes."""
        if len(self._named) > _NAMED:
            self._named.clear()
        self._named.update(paths)

    def was_named(self, path: str) -> bool:
        """Whether a listing has named a node."""
        return path in self._named

    # ------------------------------------------------------------------ documents

    def served(self, key: MetadataKey) -> bytes | None:
        """Return the document that Zarr last read or wrote, from which its next change starts."""
        return self._served.get(key)

    def keep_served(self, key: MetadataKey, document: bytes) -> None:
        """Remember a document that Zarr reads or writes."""
        self._served[key] = document

    def keep_missing(self, key: MetadataKey) -> None:
        """Remember that a document does not exist for Zarr, unless Zarr knows it."""
        self._served.setdefault(key, b"{}")

    def format_at(self, path: str) -> tuple[object, ZarrFormat | None]:
        """Return the stamp of a document, and the Zarr format that it names."""
        return self._formats.get(path, (None, None))

    def keep_format(self, path: str, stamp: object, zarr_format: ZarrFormat | None) -> None:
        """Remember the Zarr format that a document names, and the stamp of the document."""
        self._formats[path] = stamp, zarr_format

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
        self._created[path] = Creation(kept, *creation)
        names = ChunkNames.of(document)
        if names == DEFAULT_NAMES[self._created[path].zarr_format]:
            self._chunk_names.pop(path, None)
        else:
            self._chunk_names[path] = names

    def creation(self, path: str) -> Creation | None:
        """Return how an array was created through this store object."""
        return self._created.get(path)

    def chunk_names(self, path: str) -> ChunkNames | None:
        """Return the names of the chunks of an array; None for the default ones."""
        return self._chunk_names.get(path)

    def chunk_of(self, key: str) -> ChunkKey | None:
        """Parse the key of a chunk of an array whose chunks do not have the default names."""
        for path, names in list(self._chunk_names.items()):
            prefix = f"{path}/" if path else ""
            coords = names.coords(key[len(prefix) :]) if key.startswith(prefix) else None
            if coords is not None:
                return ChunkKey(path, coords, self._created[path].zarr_format)
        return None

    # ------------------------------------------------------------------ blocks and warnings

    def ends_with_elements(self, path: str) -> bool:
        """Whether an uncompressed block of a dataset was seen to end with its elements."""
        return path in self._without_trailer

    def keep_that_ends_with_elements(self, path: str) -> None:
        """Remember that an uncompressed block of a dataset ends with its elements."""
        self._without_trailer.add(path)

    def shard_of(self, key: str, block: bytes) -> BufferLike | None:
        """Return the shard of Zarr made of a block, if it is the last one that was made."""
        last = self._last_shard
        return last[2] if last is not None and last[:2] == (key, block) else None

    def keep_shard(self, key: str, block: bytes, shard: BufferLike) -> None:
        """Remember the shard made of a block: zarr reads a shard in many small ranges."""
        self._last_shard = key, block, shard

    def is_new_warning(self, message: str) -> bool:
        """Whether the user has not seen a warning, which is then remembered."""
        is_new = message not in self._warned
        self._warned.add(message)
        return is_new

    # ------------------------------------------------------------------ forgetting

    def forget(self, path: str) -> None:
        """Forget a node and all nodes below it; documents that a user gave stay."""
        by_path: tuple[MutableMapping[str, Any], ...] = (
            self._nodes, self._listed, self._created, self._chunk_names, self._formats,
        )  # fmt: skip
        for kept in by_path:
            for known in [key for key in list(kept) if _is_below(key, path)]:
                kept.pop(known, None)
        for key in [key for key in list(self._served) if _is_below(key.path, path)]:
            self._served.pop(key, None)
        self._without_trailer -= {p for p in self._without_trailer if _is_below(p, path)}
        self.has_root = self.has_root and path != ""

    def forget_attributes(self, path: str) -> None:
        """Forget a node whose attributes have changed, and all nodes that listings have read."""
        self._listed.clear()
        self._nodes.pop(path, None)

    def forget_document(self, key: MetadataKey) -> None:
        """Forget one document of a node; with the document of an array, also its creation."""
        self._served.pop(key, None)
        self._nodes.pop(key.path, None)
        self.has_root = self.has_root and key.path != ""
        if key.name in ("zarr.json", ".zarray"):
            self._created.pop(key.path, None)
            self._chunk_names.pop(key.path, None)


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


def gone(found: str) -> N5Error:
    """Make the error of an open array whose dataset is no longer there."""
    message = (
        f"expected the dataset of an open array, got {found}: it has been removed or renamed "
        "since the array was opened; open it again where it is now"
    )
    return N5Error(message, kind="changed")
