"""What is written: arrays of Zarr or N5 whose documents are written when all their chunks are.

The documents are made in memory, by the same code that creates arrays elsewhere. An array is
written by its metadata alone, so that until :meth:`Destination.commit` nobody can open it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import zarr
from zarr.buffer import cpu
from zarr.codecs import BytesCodec
from zarr.storage import MemoryStore, StorePath

from n5zarr._zarr_private import sync
from n5zarr.arrays.creating import create_array
from n5zarr.arrays.nodes import as_zarr
from n5zarr.arrays.opening import open_array
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.compression import Compression, Gzip, Jpeg, Raw, Zstd, compression_to_json
from n5zarr.format.grid import block_path
from n5zarr.format.order import from_presented
from n5zarr.format.path import join
from n5zarr.format.raw_json import RawObject
from n5zarr.format.version import SUPPORTED_VERSION, VERSION_KEY
from n5zarr.storage.requests import Put, RemoveTree, Steps, Update, read_each
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.convert.encoder import Encoder, nearest_compression
from n5zarr.tools.jobs.incomplete import read_incomplete
from n5zarr.zarr_view.compressors import is_portable, numcodecs_compressor, zarr_compressors
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Content
from n5zarr.zarr_view.keys import DEFAULT_NAMES, ChunkNames, ZarrFormat

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    from zarr.abc.store import Store
    from zarr.types import AnyArray

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.format.lenient_json import JSON
    from n5zarr.storage.interface import Storage
    from n5zarr.tools.convert.layout import Layout
    from n5zarr.tools.convert.source import ArraySource, N5Blocks
    from n5zarr.tools.jobs.boxes import Box

__all__ = ["ArrayTarget", "Destination", "N5Destination", "ZarrDestination", "ask"]


def ask[T](storage: Storage, steps: Steps[T]) -> T:
    """Run a flow on storage, from code outside of an event loop."""
    if storage.supports_sync:
        return storage.run(steps, _ignore)
    return sync(storage.run_async(steps, _ignore))


def _ignore(_message: str) -> None:
    """Drop a warning: requests for keys make none."""


def _puts(values: Iterable[tuple[str, BufferLike]]) -> Steps[None]:
    yield [Put(key, value) for key, value in values]


@dataclass(frozen=True, eq=False)
class ArrayTarget(ABC):
    """An array to write, without its document; it can be pickled for other processes.

    Parameters
    ----------
    path : str
        Path of the array in the store.
    array : zarr.Array
        The array: takes values, and gives those that are written.
    """

    path: str
    array: AnyArray

    @property
    def unit(self) -> tuple[int, ...]:
        """Extent in elements of what is written at once: chunks, or shards."""
        return tuple(self.array.shards or self.array.chunks)

    @property
    def encoded(self) -> AnyArray:
        """The array with the codecs that :meth:`put` takes."""
        return self.array

    @abstractmethod
    def key(self, position: tuple[int, ...]) -> str:
        """Return the stored key of a unit from its position in the grid, C order."""

    @abstractmethod
    def put(self, units: Sequence[tuple[tuple[int, ...], BufferLike]]) -> int:
        """Write encoded units by position; return the number of bytes."""

    def write(self, box: Box, values: np.ndarray) -> int:
        """Write the values of a box of whole units; return the number of bytes, if it is known."""
        self.array[box] = values
        return 0


@dataclass(frozen=True, eq=False)
class ZarrTarget(ArrayTarget):
    """An array of Zarr; see :class:`ArrayTarget`."""

    storage: Storage

    @cached_property
    def _names(self) -> ChunkNames:
        return ChunkNames.of(self.array.metadata.to_dict())

    @cached_property
    def _encoder(self) -> Encoder | None:
        return Encoder.of(self.array)

    def key(self, position: tuple[int, ...]) -> str:
        return self._names.key(self.path, position)

    def put(self, units: Sequence[tuple[tuple[int, ...], BufferLike]]) -> int:
        ask(self.storage, _puts((self.key(position), value) for position, value in units))
        return sum(memoryview(value).nbytes for _, value in units)

    def write(self, box: Box, values: np.ndarray) -> int:
        if self._encoder is None:
            return super().write(box, values)
        return self.put(list(self._encoder.units(box, values)))


@dataclass(frozen=True, eq=False)
class N5Target(ArrayTarget):
    """A dataset of N5; see :class:`ArrayTarget`.

    Parameters
    ----------
    shown : N5Store
        The container as Zarr, which takes encoded chunks.
    """

    shown: N5Store

    @cached_property
    def _view(self) -> DatasetView:
        node = self.shown.node(self.path)
        assert isinstance(node, DatasetView)  # noqa: S101 - its document is given
        return node

    @property
    def compression(self) -> Compression:
        """The compression of the blocks."""
        return self._view.dataset.compression

    def key(self, position: tuple[int, ...]) -> str:
        return join(self.path, block_path(self._view.grid_position(position)))

    @property
    def encoded(self) -> AnyArray:
        found = as_zarr(self.shown, self.path, self._view)
        assert isinstance(found, zarr.Array)  # noqa: S101 - a dataset
        return found

    def put(self, units: Sequence[tuple[tuple[int, ...], BufferLike]]) -> int:
        for position, value in units:
            steps = self.shown.container.write(
                DEFAULT_NAMES[3].key(self.path, position), memoryview(value)
            )
            self.shown.ask(steps)
        return sum(memoryview(value).nbytes for _, value in units)


@dataclass(eq=False)
class Destination(ABC):
    """Where arrays and groups are written.

    Parameters
    ----------
    storage : Storage
        The keys of the destination.
    path : str
        What is written, in it; ``""`` for all of it.
    """

    storage: Storage
    path: str
    _memory: MemoryStore = field(default_factory=MemoryStore)

    @property
    @abstractmethod
    def documents_store(self) -> Store:
        """The store in memory that shows the documents as Zarr."""

    @property
    @abstractmethod
    def zarr_format(self) -> ZarrFormat:
        """The format of documents."""

    def create_group(self, path: str, attributes: Mapping[str, JSON]) -> None:
        """Make the document of a group, and of those above it."""
        zarr.create_group(
            self.documents_store,
            path=join(self.path, path),
            attributes=json.loads(json.dumps(dict(attributes))),
            zarr_format=self.zarr_format,
        )

    @abstractmethod
    def create_array(self, path: str, source: ArraySource, layout: Layout) -> ArrayTarget:
        """Make the document of an array like another one, and open it for writing."""

    def __str__(self) -> str:
        return join(str(self.storage), self.path)

    @property
    def store(self) -> Store:
        """The keys as they are stored, for writing."""
        return self.storage.store.with_read_only(read_only=False)

    def check_free(self) -> None:
        """Check that nothing is there but the result of an interrupted run.

        Raises
        ------
        N5UnrepresentableError
            Something is there (``kind="option"``).
        """
        is_free = sync(self.store.is_empty(self.path))
        if not is_free and read_incomplete(self.store, self.path) is None:
            message = (
                f"{self}: expected a destination that does not exist, got one; overwrite=True "
                "(--overwrite) removes it first"
            )
            raise N5UnrepresentableError(message, kind="option")

    def remove(self) -> None:
        """Remove what is there."""
        ask(self.storage, _remove(self.path))

    def add_file(self, path: str, data: bytes) -> None:
        """Add a file that is written with the documents."""
        sync(self._memory.set(join(self.path, path), cpu.Buffer.from_bytes(data)))

    def documents(self) -> dict[str, bytes]:
        """Return the documents by key, those of arrays first and the topmost last."""

        async def all_of() -> dict[str, bytes]:
            keys = [key async for key in self._memory.list()]
            values = [await self._memory.get(key, cpu.buffer_prototype) for key in keys]
            return {k: v.to_bytes() for k, v in zip(keys, values, strict=True) if v is not None}

        found = sync(all_of())
        return dict(sorted(found.items(), key=lambda item: -item[0].count("/")))

    def commit(self) -> None:
        """Write the documents; those above the destination only where there are none."""
        for key, value in self.documents().items():
            node = key.rpartition("/")[0]
            is_own = node == self.path or not self.path or node.startswith(f"{self.path}/")
            ask(self.storage, _puts([(key, value)]) if is_own else _put_if_missing(key, value))


def _remove(path: str) -> Steps[None]:
    yield [RemoveTree(path)]


def _put_if_missing(key: str, value: bytes) -> Steps[None]:
    yield [Update(key, lambda old: value if old is None else old)]


@dataclass(eq=False)
class ZarrDestination(Destination):
    """A Zarr hierarchy; see :class:`Destination`."""

    format: ZarrFormat = 3

    @property
    def documents_store(self) -> MemoryStore:
        """As of :class:`Destination`."""
        return self._memory

    @property
    def zarr_format(self) -> ZarrFormat:
        """As of :class:`Destination`."""
        return self.format

    def create_array(self, path: str, source: ArraySource, layout: Layout) -> ZarrTarget:
        """As of :class:`Destination`."""
        full = join(self.path, path)
        like = source.encoded if _has_format(source.encoded, self.format) else None
        chunks = layout.chunks_of(source)
        options: dict[str, Any] = {}
        if like is not None:
            options = {"filters": like.filters, "compressors": like.compressors}
            if self.format == 3:
                options["serializer"] = like.serializer
                if chunks != source.chunks and isinstance(like.serializer, BytesCodec):
                    options["serializer"] = BytesCodec()  # as this machine: nothing passes through
        compression = layout.compression
        if compression is None and source.blocks and not is_portable(source.blocks.compression):
            compression = Zstd()
        if compression is not None and self.format == 3:
            options["compressors"] = zarr_compressors(compression)
        elif compression is not None:
            options["compressors"] = numcodecs_compressor(compression)
        if self.format == 2:
            options["chunk_key_encoding"] = {"name": "v2", "separator": "/"}
        names = source.dimension_names if self.format == 3 else None
        array = zarr.create_array(
            self._memory,
            name=full or None,
            shape=source.shape,
            dtype=source.dtype,
            chunks=chunks,
            shards=layout.shards_of(source, chunks) if self.format == 3 else None,
            fill_value=source.fill_value,
            attributes=json.loads(json.dumps(dict(source.attributes))),
            dimension_names=names,
            zarr_format=self.format,
            **options,
        )
        where = StorePath(self.store, full)
        written: Any = zarr.AsyncArray(metadata=array.metadata, store_path=where)
        return ZarrTarget(full, zarr.Array(written), self.storage)


def _has_format(array: AnyArray | None, zarr_format: ZarrFormat) -> bool:
    return array is not None and array.metadata.zarr_format == zarr_format


@dataclass(eq=False)
class N5Destination(Destination):
    """A container; see :class:`Destination`.

    Parameters
    ----------
    container : N5Store
        The container, with n5zarr's own codec.
    """

    container: N5Store | None = None

    @property
    def _container(self) -> N5Store:
        assert self.container is not None  # noqa: S101 - always given
        return self.container

    @cached_property
    def documents_store(self) -> N5Store:
        """As of :class:`Destination`."""
        return N5Store(self._memory, zarr_format=3)

    @property
    def zarr_format(self) -> ZarrFormat:
        """As of :class:`Destination`."""
        return 3

    def keep_groups(self, container: N5Store, path: str, below: Sequence[str]) -> None:
        """Take the documents of groups as another container has them."""
        keys = [join(path, group, ATTRIBUTES_JSON) for group in below]
        for group, document in zip(below, container.ask(read_each(keys)), strict=True):
            if document is not None:
                kept = RawObject.parse(bytes(document))
                if not join(path, group) and self.path:  # it is no root any more
                    kept.remove(VERSION_KEY)
                self.keep_document(group, kept.to_bytes())

    def documents(self) -> dict[str, bytes]:
        """Return the documents; that of the root names the version."""
        found = super().documents()
        root = RawObject.parse(found.pop(ATTRIBUTES_JSON, None))
        if VERSION_KEY not in root.values:
            root.set(VERSION_KEY, ".".join(map(str, SUPPORTED_VERSION)))
        return {**found, ATTRIBUTES_JSON: root.to_bytes()}

    def keep_document(self, path: str, document: bytes) -> None:
        """Take the document of a group as it is stored elsewhere."""
        key = join(self.path, path, ATTRIBUTES_JSON)
        sync(self._memory.set(key, cpu.Buffer.from_bytes(document)))

    def create_array(self, path: str, source: ArraySource, layout: Layout) -> N5Target:
        """As of :class:`Destination`."""
        full = join(self.path, path)
        chunks = layout.chunks_of(source)
        blocks = source.blocks
        if blocks is not None and (chunks == source.chunks or not _is_read_only(blocks)):
            self.keep_document(path, _changed(blocks, chunks, layout))
        else:
            self._create(full, source, chunks, layout)
        container = self._container
        data: Any = sync(self._memory.get(join(full, ATTRIBUTES_JSON), cpu.buffer_prototype))
        document = json.loads(data.to_bytes())
        array = open_array(container, "r+", path=full, assume_metadata=document)
        shown = N5Store(container.storage.store, zarr_format=3).assuming(full, document)
        return N5Target(full, array, shown)

    def _create(
        self, path: str, source: ArraySource, chunks: tuple[int, ...], layout: Layout
    ) -> None:
        """Make the document of a dataset like an array that is none of N5."""
        names = source.dimension_names or ()
        is_named = all(names) and len(set(names)) == len(names) > 0
        compression = layout.compression or _nearest(source)
        attributes = dict(source.attributes)
        attributes.pop("isLabelMultiset", None)  # Paintera's, of elements that are labels now
        create_array(
            self.documents_store,
            path=path,
            shape=source.shape,
            dtype=source.dtype,
            chunks=chunks,
            compression=compression_to_json(compression),
            fill_value=source.fill_value,
            axes=list(filter(None, names)) if is_named else None,
            units=source.units,
            resolution=source.resolution,
            offset=source.offset,
            attributes=json.loads(json.dumps(attributes)),
        )


def _is_read_only(blocks: N5Blocks) -> bool:
    """Whether the values of a dataset cannot be written as they are stored."""
    return blocks.view.content is Content.LABELS or isinstance(blocks.compression, Jpeg)


def _changed(blocks: N5Blocks, chunks: tuple[int, ...], layout: Layout) -> bytes:
    """Return the document of a dataset, with another block size and compression where asked for."""
    document = RawObject.parse(blocks.document)
    if chunks != blocks.view.chunk_shape:
        document.set("blockSize", list(from_presented(chunks, blocks.view.axis_order)))
    if layout.compression not in (None, blocks.compression):
        assert layout.compression is not None  # noqa: S101 - for the type checker
        document.set("compression", compression_to_json(layout.compression))
        document.remove("compressionType")
    return document.to_bytes()


def _nearest(source: ArraySource) -> Compression:
    """Return the compression of N5 that is nearest to that of an array, or gzip."""
    if source.blocks is not None:
        return Gzip() if isinstance(source.blocks.compression, Jpeg) else source.blocks.compression
    codecs = source.encoded.compressors if source.encoded is not None else ()
    if source.encoded is not None and not codecs:
        return Raw()
    return (nearest_compression(codecs[0]) if codecs else None) or Gzip()
