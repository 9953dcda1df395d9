"""Present the images of a container as OME-Zarr 0.5, created on request."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import batched, product
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from zarr.storage import MemoryStore

from n5zarr.arrays.encoder import Encoder
from n5zarr.arrays.stored_chunks import FEW, stored_chunks
from n5zarr.format.path import join
from n5zarr.images.derived_store import DerivedStore
from n5zarr.images.encoded_chunks import read_chunks
from n5zarr.images.find import ome_tree
from n5zarr.images.zarr_documents import create_group, create_like
from n5zarr.store.buffers import as_buffer
from n5zarr.zarr_view.keys import DEFAULT_NAMES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from zarr.abc.buffer import Buffer, BufferPrototype
    from zarr.abc.store import ByteRequest
    from zarr.types import AnyArray

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.images.image import Images
    from n5zarr.images.source import ArraySource

__all__ = ["OmeStore"]

_NAMES = DEFAULT_NAMES[3]
_KEYS = 2**10  # that are listed at a time


class OmeStore(DerivedStore):
    """The images of a container as a Zarr hierarchy in the form of OME-Zarr 0.5; for reading.

    Each key has the bytes that a conversion to OME-Zarr would write: blocks are passed through
    where they are chunks of OME-Zarr, all others are encoded when they are asked for.

    Parameters
    ----------
    found : Images
        The images, as :func:`n5zarr.images.find.open_images` finds them.
    """

    def __init__(self, found: Images) -> None:
        super().__init__()
        self._found = found
        tree = ome_tree(found)
        documents: dict[str, Buffer] = {}
        memory = MemoryStore(documents)
        for path, attributes in tree.groups.items():
            create_group(memory, path, attributes)
        self._arrays: dict[str, _Array] = {}
        for path, source in tree.arrays.items():
            written = create_like(memory, path, source)
            stored = source.encoded
            is_passed = stored is not None and stored.compressors == written.compressors
            encoder = None if is_passed else Encoder.of(written)
            if is_passed or encoder is not None:
                self._arrays[path] = _Array(source, written, encoder)
            else:
                del documents[join(path, "zarr.json")]
        self._documents = {key: value.to_bytes() for key, value in documents.items()}
        self._documents |= tree.files

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OmeStore) and self._found is other._found

    __hash__ = None  # type: ignore[assignment] # as those of zarr

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Read a document or a chunk."""
        value: BufferLike | None = self._documents.get(key)
        if value is None:
            found = self._find(key)
            value = None if found is None else await asyncio.to_thread(_Array.chunk, *found)
        return as_buffer(value, prototype, byte_range)

    def _find(self, key: str) -> tuple[_Array, tuple[int, ...]] | None:
        """Return the array of a chunk, and its position in the grid."""
        path, _, name = f"/{key}".rpartition("/c/")
        array = self._arrays.get(path.lstrip("/"))
        position = _NAMES.coords(f"c/{name}")
        if array is None or position is None or len(position) != len(array.grid):
            return None
        is_inside = all(p < n for p, n in zip(position, array.grid, strict=True))
        return (array, position) if is_inside else None

    async def exists(self, key: str) -> bool:
        """Whether a document exists, or a chunk may exist."""
        return key in self._documents or self._find(key) is not None

    async def list(self) -> AsyncIterator[str]:
        """Yield the keys of all documents and chunks; chunks that may be missing, too."""
        for key in self._documents:
            yield key
        for path, array in self._arrays.items():
            chunks = batched(array.positions(), _KEYS)
            # not on the event loop, which storage may need
            while positions := await asyncio.to_thread(next, chunks, ()):
                for position in positions:
                    yield _NAMES.key(path, position)

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names of documents and nodes below a prefix."""
        inner = f"{prefix.rstrip('/')}/" if prefix else ""
        below = (key.removeprefix(inner) for key in self._documents if key.startswith(inner))
        for name in dict.fromkeys(key.partition("/")[0] for key in below):
            yield name


@dataclass(frozen=True, eq=False)
class _Array:
    """An array of a container, the same one in OME-Zarr, and its encoder unless chunks stay."""

    source: ArraySource
    written: AnyArray
    encoder: Encoder | None

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of chunks along each axis, C order."""
        each = zip(self.source.shape, self.written.chunks, strict=True)
        return tuple(-(-n // size) for n, size in each)

    def positions(self) -> Iterator[tuple[int, ...]]:
        """Yield the positions of all chunks that may exist."""
        listing = None if prod(self.grid) <= FEW else stored_chunks(self.source.values)
        if listing is None or listing.unit != self.written.chunks:
            yield from product(*map(range, self.grid))
        else:
            for rows in listing.rows:
                yield from map(tuple, rows.tolist())

    def chunk(self, position: tuple[int, ...]) -> BufferLike | None:
        """Read or encode a chunk; None if it is missing or has the fill value only."""
        if self.encoder is None:
            return read_chunks(self.source, [position])[0]
        each = zip(position, self.written.chunks, self.source.shape, strict=True)
        box = tuple(slice(p * size, min((p + 1) * size, n)) for p, size, n in each)
        # zarr's own encoder may wait for threads, all of which may be here
        return self.encoder.chunk(np.asarray(self.source.values[box]))
