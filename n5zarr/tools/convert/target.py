"""Write copies of arrays: first all their chunks, then their documents.

The documents are made in memory, by the same code that creates arrays elsewhere. An array is
written with its metadata alone, so that no reader can open it before :meth:`Destination.commit`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self, override

import numpy as np
import zarr
from zarr.abc.store import Store
from zarr.buffer import cpu
from zarr.storage import MemoryStore, StorePath
from zarr.types import AnyArray

from n5zarr._zarr import sync
from n5zarr.arrays.boxes import BoxSlices, StoredChunks
from n5zarr.arrays.encoder import Encoder
from n5zarr.arrays.stored_chunks import stored_chunks
from n5zarr.codecs.buffers import BufferLike
from n5zarr.container.options import check_compression, check_sizes, require
from n5zarr.errors import option_error
from n5zarr.format.compression import Compression
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.images.source import ArraySource
from n5zarr.images.zarr_documents import create_group, create_like
from n5zarr.storage.interface import Storage
from n5zarr.storage.requests import (
    List,
    RemoveTree,
    Update,
    get_each,
    put_each,
    read_each,
    request_each,
)
from n5zarr.tools.jobs.incomplete import read_incomplete
from n5zarr.tools.jobs.nodes import for_reading
from n5zarr.tools.jobs.parts import WHOLE, Division, Owned
from n5zarr.zarr_view.keys import ChunkNames, ZarrFormat


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
        """Extent in elements of the unit of writing: a chunk or shard."""
        return tuple(self.array.shards or self.array.chunks)

    @cached_property
    def readable(self) -> AnyArray:
        """The array, prepared to read many boxes."""
        return for_reading(self.array)

    @property
    def encoded(self) -> AnyArray:
        """The array with the codecs that :meth:`put` takes."""
        return self.array

    @property
    def compression(self) -> Compression | None:
        """The compression of N5 blocks; None for another format."""
        return None

    @abstractmethod
    def key(self, position: tuple[int, ...]) -> str:
        """Return the stored key of a unit from its position in the grid, C order."""

    @abstractmethod
    def put(self, units: Sequence[tuple[tuple[int, ...], BufferLike]]) -> int:
        """Write encoded units by position; return the number of bytes."""

    def stored_chunks(self, within: Sequence[slice] | None = None) -> StoredChunks | None:
        """List the chunks that are written; see :mod:`n5zarr.arrays.stored_chunks`."""
        return stored_chunks(self.array, within)

    def write(self, box: BoxSlices, values: np.ndarray) -> int:
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

    @override
    def key(self, position: tuple[int, ...]) -> str:
        return self._names.key(self.path, position)

    @override
    def put(self, units: Sequence[tuple[tuple[int, ...], BufferLike]]) -> int:
        self.storage.run(put_each([(self.key(position), value) for position, value in units]))
        return sum(memoryview(value).nbytes for _, value in units)

    def read(self, positions: Sequence[tuple[int, ...]]) -> Sequence[BufferLike | None]:
        """Read encoded units by position; None for each missing one."""
        return self.storage.run(get_each(list(map(self.key, positions))))

    @override
    def write(self, box: BoxSlices, values: np.ndarray) -> int:
        if self._encoder is None:
            return super().write(box, values)
        return self.put(list(self._encoder.units(box, values)))


@dataclass(eq=False)
class Output(ABC):
    """A path in a storage that is marked as incomplete until all is written.

    Parameters
    ----------
    storage : Storage
        The keys of the destination.
    path : str
        What is written, in it; ``""`` for all of it.
    """

    storage: Storage
    path: str

    resuming: ClassVar[str] = "resume=True (--resume) continues the run"

    def __str__(self) -> str:
        return join(str(self.storage), self.path)

    @property
    def store(self) -> Store:
        """The store with N5's or Zarr's stored keys, for writing."""
        return self.storage.store.with_read_only(read_only=False)

    @contextmanager
    def writing(
        self, job: Mapping[str, JSON], *, resume: bool, division: Division = WHOLE
    ) -> Iterator[Owned]:
        """Mark the destination as incomplete while its chunks are written; then write documents.

        Parameters
        ----------
        job : mapping
            What is done, and how, for a run that continues this one.
        resume : bool
            Whether to continue an interrupted run.
        division : Division, optional
            Which part of the job this run does; documents are written when all have ended.

        Yields
        ------
        Owned
            Keys that an interrupted run has written, and those of other parts.
        """
        is_begun = False
        try:
            with division.running(
                self.storage, [self.path], job, resume=resume, commit=self.commit
            ) as (_, (done,), ledger):
                is_begun = True
                written = {join(self.path, key) for key in done} if self.path else done
                yield Owned(written, division.part, ledger)
        except Exception as err:
            if is_begun:
                err.add_note(f"{self} stays incomplete; {division.resuming or self.resuming}")
            raise

    @abstractmethod
    def commit(self) -> None:
        """Write the documents."""


@dataclass(eq=False)
class Destination(Output):
    """The place to which arrays and groups are written.

    Parameters
    ----------
    storage : Storage
        The keys of the destination.
    path : str
        What is written, in it; ``""`` for all of it.
    zarr_format : {3, 2}, optional
        The format of documents.
    """

    zarr_format: ZarrFormat = 3
    _memory: MemoryStore = field(default_factory=MemoryStore, init=False)

    @property
    def documents_store(self) -> Store:
        """The store in memory that presents the documents as Zarr."""
        return self._memory

    def create_group(self, path: str, attributes: Mapping[str, JSON]) -> None:
        """Make the document of a group, and of the groups above it."""
        create_group(self.documents_store, join(self.path, path), attributes, self.zarr_format)

    @abstractmethod
    def create_array(self, path: str, source: ArraySource, layout: Layout) -> ArrayTarget:
        """Make the document of an array like another one, and open it for writing."""

    def check_free(self, *, overwrite: bool, resume: bool) -> bool:
        """Raise if the destination exists, unless it is an interrupted run or may be removed.

        Returns
        -------
        bool
            Whether the run that is resumed has finished already, as far as documents tell it.

        Raises
        ------
        N5UnrepresentableError
            The destination exists (``kind="option"``).
        """
        if (
            overwrite
            or sync(self.store.is_empty(self.path))
            # a run was killed while it wrote its first file, which listings omit
            or self.storage.run(request_each([List(self.path)])) == [[]]
            or read_incomplete(self.store, self.path) is not None
        ):
            return False
        expected = "a destination that does not exist, got one"
        if resume:
            documents = {k: v for k, v in self.documents().items() if self._is_own(k)}
            if self.storage.run(read_each(list(documents))) == list(documents.values()):
                return True
            expected = "the finished copy that this call would write, got other documents"
        raise option_error(
            f"{self}: expected {expected}; overwrite=True (--overwrite) removes it first"
        )

    def remove(self) -> None:
        """Remove the destination."""
        self.storage.run(request_each([RemoveTree(self.path)]))

    def add_file(self, path: str, data: bytes) -> None:
        """Add a file that is written with the documents."""
        sync(self._memory.set(join(self.path, path), cpu.Buffer.from_bytes(data)))

    def documents(self) -> dict[str, bytes]:
        """Return the documents by key, those of arrays first and the topmost last."""

        async def all_of() -> dict[str, bytes]:
            keys = [key async for key in self._memory.list()]
            values = [await self._memory.get(key, cpu.buffer_prototype) for key in keys]
            return {k: v.to_bytes() for k, v in zip(keys, values, strict=True) if v is not None}

        return dict(sorted(sync(all_of()).items(), key=lambda item: -item[0].count("/")))

    @override
    def commit(self) -> None:
        """Write the documents; above the destination only missing ones."""
        for key, value in self.documents().items():
            if self._is_own(key):
                self.storage.run(put_each([(key, value)]))
            else:
                put_missing(self.storage, {key: value})

    def _is_own(self, key: str) -> bool:
        """Whether a document is of the destination, and not of a group above it."""
        return not self.path or key.startswith(f"{self.path}/")


def put_missing(storage: Storage, documents: Mapping[str, bytes]) -> None:
    """Write the documents that do not exist, one after the other."""
    for key, value in documents.items():
        # it is answered at once
        update = Update(key, lambda old: value if old is None else old)  # noqa: B023
        storage.run(request_each([update]))


@dataclass(eq=False)
class ZarrDestination(Destination):
    """A Zarr hierarchy; see :class:`Destination`."""

    @override
    def create_array(self, path: str, source: ArraySource, layout: Layout) -> ZarrTarget:
        full, chunks = join(self.path, path), layout.chunks_of(source)
        array = create_like(
            self._memory,
            full,
            source,
            chunks=chunks,
            shards=layout.shards_of(source, chunks) if self.zarr_format == 3 else None,
            compression=layout.compression,
            zarr_format=self.zarr_format,
        )
        where = StorePath(self.store, full)
        written: Any = zarr.AsyncArray(metadata=array.metadata, store_path=where)
        return ZarrTarget(full, zarr.Array(written), self.storage)


@dataclass(frozen=True)
class Layout:
    """Chunks, shards and compression of the arrays to write; None keeps those of the source.

    Parameters
    ----------
    chunks, shards : tuple of int, optional
        Extents in elements, C order. One number applies to all axes; shards have at least this
        size. Several numbers apply to arrays with as many axes; others keep their chunks.
    compression : Compression, optional
        The compression.
    """

    chunks: tuple[int, ...] | None = None
    shards: tuple[int, ...] | None = None
    compression: Compression | None = None

    @classmethod
    def of(
        cls,
        chunks: int | Sequence[int] | None,
        shards: int | Sequence[int] | None,
        compression: Mapping[str, JSON] | str | None,
    ) -> Self:
        """Check the options of a user.

        Raises
        ------
        N5UnrepresentableError
            A size is no positive number (``kind="option"``).
        N5Error
            The compression is unknown, or cannot be written.
        """
        parsed = None if compression is None else check_compression(compression)
        return cls(check_sizes("chunks", chunks), check_sizes("shards", shards), parsed)

    def chunks_of(self, source: ArraySource) -> tuple[int, ...]:
        """Return the extent of a chunk of an array, in elements."""
        wanted = None if self.chunks is None else _for_axes(self.chunks, source.shape)
        if self.chunks is None or wanted is None:
            return source.chunks
        if len(self.chunks) == 1:  # no axis is that long
            return tuple(max(1, min(w, n)) for w, n in zip(wanted, source.shape, strict=True))
        return wanted

    def shards_of(self, source: ArraySource, chunks: Sequence[int]) -> tuple[int, ...] | None:
        """Return the extent of a shard, of whole chunks and no larger than the array needs.

        Raises
        ------
        N5UnrepresentableError
            The shards do not consist of whole chunks (``kind="option"``).
        """
        wanted = None if self.shards is None else _for_axes(self.shards, source.shape)
        if self.shards is None or wanted is None:
            return None
        if len(self.shards) == 1:  # about so many elements along each axis
            wanted = tuple(-(-w // c) * c for w, c in zip(wanted, chunks, strict=True))
        whole = tuple(-(-n // c) * c for n, c in zip(source.shape, chunks, strict=True))
        shards = tuple(max(c, min(*s)) for c, *s in zip(chunks, wanted, whole, strict=True))
        require(
            not any(s % c for s, c in zip(shards, chunks, strict=True)),
            f"shards: expected multiples of the chunks {tuple(chunks)}, got {wanted}; "
            "chunks=... (--chunks) chooses others",
            source.name,
        )
        return shards


def _for_axes(sizes: tuple[int, ...], shape: Sequence[int]) -> tuple[int, ...] | None:
    if not shape:
        return None
    if len(sizes) == 1:
        return sizes * len(shape)
    return sizes if len(sizes) == len(shape) else None
