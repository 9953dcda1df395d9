"""Present the images of a container as OME-Zarr 0.5, created on request."""

from __future__ import annotations

import asyncio
from itertools import batched
from typing import TYPE_CHECKING

from zarr.storage import MemoryStore

from n5zarr.format.path import join
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import Place
from n5zarr.store.buffers import as_buffer
from n5zarr.tools.convert.convert import plan_copies
from n5zarr.tools.convert.copying import encode_unit, is_encodable
from n5zarr.tools.convert.derived_store import DerivedStore
from n5zarr.tools.convert.layout import Layout
from n5zarr.tools.convert.target import ZarrDestination
from n5zarr.zarr_view.keys import DEFAULT_NAMES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from zarr.abc.buffer import Buffer, BufferPrototype
    from zarr.abc.store import ByteRequest

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.tools.convert.copying import ArrayCopy
    from n5zarr.tools.convert.source import SourceTree

__all__ = ["OmeStore"]

_NAMES = DEFAULT_NAMES[3]
_KEYS = 2**10  # that are listed at a time


class OmeStore(DerivedStore):
    """The images of a container as a Zarr hierarchy in the form of OME-Zarr 0.5; for reading.

    Each key has the bytes that a conversion to OME-Zarr would write: blocks are passed through
    where they are chunks of OME-Zarr, all others are encoded when they are asked for.

    Parameters
    ----------
    tree : SourceTree
        The arrays and groups, as :func:`n5zarr.viewing.images.open_tree` gives them.
    """

    def __init__(self, tree: SourceTree) -> None:
        super().__init__()
        self._tree = tree
        target = ZarrDestination(open_storage(Place(MemoryStore())), "")
        copies = plan_copies(tree, target, Layout(), 0)
        each = zip(tree.arrays, copies, strict=True)
        self._copies = {path: copy for path, copy in each if is_encodable(copy)}
        left_out = {join(path, "zarr.json") for path in tree.arrays.keys() - self._copies.keys()}
        documents = target.documents()
        self._documents = {key: documents[key] for key in documents.keys() - left_out}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OmeStore) and self._tree is other._tree

    __hash__ = None  # type: ignore[assignment] # as those of zarr

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Read a document or a chunk."""
        value: BufferLike | None = self._documents.get(key)
        if value is None:
            found = self._find(key)
            value = None if found is None else await asyncio.to_thread(encode_unit, *found)
        return as_buffer(value, prototype, byte_range)

    def _find(self, key: str) -> tuple[ArrayCopy, tuple[int, ...]] | None:
        """Return the array of a chunk, and its position in the grid."""
        path, _, name = f"/{key}".rpartition("/c/")
        copy = self._copies.get(path.lstrip("/"))
        position = _NAMES.coords(f"c/{name}")
        if copy is None or position is None or len(position) != len(copy.grid):
            return None
        is_inside = all(p < n for p, n in zip(position, copy.grid, strict=True))
        return (copy, position) if is_inside else None

    async def exists(self, key: str) -> bool:
        """Whether a document exists, or a chunk may exist."""
        return key in self._documents or self._find(key) is not None

    async def list(self) -> AsyncIterator[str]:
        """Yield the keys of all documents and chunks; chunks that may be missing, too."""
        for key in self._documents:
            yield key
        for path, copy in self._copies.items():
            units = batched(copy.units(), _KEYS)
            # not on the event loop, which storage may need
            while positions := await asyncio.to_thread(next, units, ()):
                for position in positions:
                    yield _NAMES.key(path, position)

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names of documents and nodes below a prefix."""
        inner = f"{prefix.rstrip('/')}/" if prefix else ""
        below = (key.removeprefix(inner) for key in self._documents if key.startswith(inner))
        for name in dict.fromkeys(key.partition("/")[0] for key in below):
            yield name
