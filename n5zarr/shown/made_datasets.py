"""Present data of other formats as datasets of N5, made when they are read.

Everything that reads N5 then reads these data, with the same result. Documents are made of those of
the data; a chunk becomes a raw block when it is read.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, override

import numpy as np
from zarr.abc.buffer import Buffer, BufferPrototype
from zarr.abc.store import ByteRequest
from zarr.buffer import cpu

from n5zarr.codecs.block import encode_payload
from n5zarr.errors import N5UnsupportedError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.compression import Raw
from n5zarr.format.data_type import DataType
from n5zarr.format.grid import block_extent, block_path, grid_shape, parse_block_path
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import N5Tuple, to_c
from n5zarr.format.path import join
from n5zarr.storage.ending import on_thread
from n5zarr.store.buffers import as_buffer
from n5zarr.store.shown_store import ShownStore

_HEADER = 4, 4  # bytes before the elements of a block, and more for each axis


@dataclass(frozen=True, kw_only=True)
class MadeDataset(ABC):
    """An array of another format as a dataset.

    Parameters
    ----------
    dimensions, block_size : tuple of int
        Extent of the array and of its chunks, N5 order.
    data_type : DataType
        Of the elements.
    attributes : mapping, optional
        Attributes beside the keys of a dataset.
    """

    dimensions: N5Tuple
    block_size: N5Tuple
    data_type: DataType
    attributes: Mapping[str, JSON] = field(default_factory=dict)

    @abstractmethod
    async def values(self, box: tuple[slice, ...]) -> np.ndarray:
        """Read a box, C order."""

    @abstractmethod
    async def positions(self) -> list[N5Tuple]:
        """List the blocks that are stored, sorted."""

    @abstractmethod
    async def n_bytes_stored(self) -> int:
        """Return the size of all stored chunks."""

    @property
    def grid(self) -> N5Tuple:
        """Number of blocks along each axis."""
        return grid_shape(self.dimensions, self.block_size)

    @property
    def document(self) -> bytes:
        """The ``attributes.json``."""
        keys = {
            "dimensions": self.dimensions,
            "blockSize": self.block_size,
            "dataType": self.data_type.value,
            "compression": {"type": "raw"},
        }
        return json.dumps({**self.attributes, **keys}).encode()

    def n_bytes(self, position: N5Tuple) -> int:
        """Return the size of a block as :meth:`block` makes it."""
        extent = block_extent(self.dimensions, self.block_size, position)
        fixed, of_axis = _HEADER
        return fixed + of_axis * len(extent) + math.prod(extent) * self.data_type.item_size

    async def block(self, position: N5Tuple) -> bytes:
        """Read a chunk, and encode it as a block, truncated at the end of an axis."""
        extent = to_c(block_extent(self.dimensions, self.block_size, position))
        starts = [p * n for p, n in zip(to_c(position), to_c(self.block_size), strict=True)]
        box = tuple(slice(a, a + n) for a, n in zip(starts, extent, strict=True))
        return await on_thread(encode_payload, await self.values(box), self.data_type, Raw())


class MadeDatasets(ShownStore):
    """A container of datasets that are made when they are read; read only.

    Documents are read once: no program may write the data meanwhile.
    """

    supports_listing = True
    supports_writes = False
    supports_deletes = False

    def __init__(self) -> None:
        super().__init__(read_only=True)
        self._positions: dict[str, list[N5Tuple]] = {}

    __hash__ = None  # type: ignore[assignment] # as zarr's own stores

    @abstractmethod
    def confined(self) -> Self:
        """Return the same data, without local files that links take out of the container."""

    @abstractmethod
    async def _dataset(self, path: str) -> tuple[str, MadeDataset] | None:
        """Return the dataset at a path or above it, and where it is."""

    @abstractmethod
    async def _group(self, path: str) -> bytes | None:
        """Return the document of a group; None if it has none."""

    @abstractmethod
    async def _children(self, path: str) -> Sequence[str]:
        """List the names of the nodes in a group."""

    # ------------------------------------------------------------------ nodes and blocks

    async def _find(self, key: str) -> tuple[MadeDataset, N5Tuple] | None:
        """Return the dataset and the grid position of the key of a block."""
        found = await self._dataset(key)
        if found is None:
            return None
        path, dataset = found
        position = parse_block_path(key.removeprefix(f"{path}/" if path else ""), dataset.grid)
        return None if position is None else (dataset, position)

    async def _document(self, path: str) -> bytes | None:
        found = await self._dataset(path)
        if found is None:
            return await self._group(path)
        return found[1].document if found[0] == path else None

    async def _stored(self, path: str, dataset: MadeDataset) -> list[N5Tuple]:
        if path not in self._positions:
            self._positions[path] = await dataset.positions()
        return self._positions[path]

    async def _nodes(self, path: str, prefix: str) -> AsyncIterator[tuple[str, MadeDataset | None]]:
        """Yield the nodes at and below a path that have keys with a prefix; None for a group."""
        found = await self._dataset(path)
        if found is not None:
            if found[0] == path:
                yield path, found[1]
            return
        yield path, None
        for name in await self._children(path):
            below = join(path, name)
            if f"{below}/".startswith(prefix) or prefix.startswith(f"{below}/"):
                async for node in self._nodes(below, prefix):
                    yield node

    # ------------------------------------------------------------------ reading

    @override
    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        directory, _, name = key.rpartition("/")
        if name == ATTRIBUTES_JSON:
            data = await self._document(directory)
        else:
            found = await self._find(key)
            data = None if found is None else await found[0].block(found[1])
        return as_buffer(data, prototype or cpu.buffer_prototype, byte_range)

    @override
    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    @override
    async def exists(self, key: str) -> bool:
        directory, _, name = key.rpartition("/")
        if name == ATTRIBUTES_JSON:
            return await self._document(directory) is not None
        return await self._find(key) is not None

    @override
    async def getsize(self, key: str) -> int:
        directory, _, name = key.rpartition("/")
        document = await self._document(directory) if name == ATTRIBUTES_JSON else None
        if document is not None:
            return len(document)
        found = await self._find(key)
        if found is None:
            raise FileNotFoundError(key)
        return found[0].n_bytes(found[1])

    @override
    async def getsize_prefix(self, prefix: str) -> int:
        """Return the bytes of the documents of datasets, and of the stored chunks and shards."""
        total = 0
        async for _, dataset in self._nodes("", f"{prefix.strip('/')}/".lstrip("/")):
            if dataset is not None:
                total += len(dataset.document) + await dataset.n_bytes_stored()
        return total

    # ------------------------------------------------------------------ listing

    @override
    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        path = prefix.strip("/")
        for name in await self._names_in(path):
            yield name

    async def _names_in(self, path: str) -> Sequence[str]:
        """List a directory."""
        found = await self._dataset(path)
        if found is None:
            document = [] if await self._group(path) is None else [ATTRIBUTES_JSON]
            return [*document, *await self._children(path)]
        at, dataset = found
        names = dict.fromkeys([ATTRIBUTES_JSON] if at == path else [])
        for position in await self._stored(at, dataset):
            key = join(at, block_path(position))
            if not path or key.startswith(f"{path}/"):
                names[key.removeprefix(f"{path}/" if path else "").partition("/")[0]] = None
        return list(names)

    @override
    async def list(self) -> AsyncIterator[str]:
        async for key in self.list_prefix(""):
            yield key

    @override
    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        async for path, dataset in self._nodes("", prefix):
            document = join(path, ATTRIBUTES_JSON)
            if document.startswith(prefix) and await self._document(path) is not None:
                yield document
            for position in () if dataset is None else await self._stored(path, dataset):
                key = join(path, block_path(position))
                if key.startswith(prefix):
                    yield key

    # ------------------------------------------------------------------ writing is refused

    @override
    def with_read_only(self, read_only: bool = False) -> Self:
        if not read_only:
            raise self._refused()
        return self

    @override
    async def set(self, key: str, value: Buffer) -> None:
        raise self._refused()

    @override
    async def delete(self, key: str) -> None:
        raise self._refused()

    @override
    async def delete_dir(self, prefix: str) -> None:
        raise self._refused()

    def _refused(self) -> N5UnsupportedError:
        return N5UnsupportedError(self.refusal, kind="read-only")
