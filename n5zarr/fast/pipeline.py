"""The codec pipeline that zarr uses for the arrays of an ``N5Store``.

zarr asks its configured pipeline class, which :mod:`n5zarr.fast.default` sets, for a pipeline for
each array that it opens. For arrays of an ``N5Store``, with any options, :class:`N5CodecPipeline`
has :mod:`n5zarr.fast.batches` read and write, which is imported with the first such array. For all
other arrays it returns zarr's default pipeline.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast, override

from zarr.abc.buffer import Buffer, NDBuffer
from zarr.abc.codec import Codec, CodecPipeline, GetResult
from zarr.abc.store import Store
from zarr.registry import register_pipeline

from n5zarr._zarr import zarrs_pipeline
from n5zarr.fast.chunk_updates import update_chunks
from n5zarr.fast.default import default_pipeline

if TYPE_CHECKING:
    from n5zarr._zarr import ArrayMetadata, ArraySpec, BatchItem, ChunkGridMetadata, ZDType
    from n5zarr.fast.batches import Batches

_ZARRS = default_pipeline()


@dataclass(frozen=True)
class N5CodecPipeline(CodecPipeline):
    """The codec pipeline of one array of an ``N5Store``.

    Parameters
    ----------
    metadata : ArrayV2Metadata or ArrayV3Metadata
        The metadata of the array.
    """

    metadata: ArrayMetadata

    @cached_property
    def zarr_pipeline(self) -> CodecPipeline:
        """A pipeline of zarr's own for the array.

        For blocks that are not ordinary, and for arrays whose chunks are not the elements of
        blocks. Created on first use: this takes longer than opening the array.
        """
        return zarrs_pipeline(self.metadata)

    @cached_property
    def n_names(self) -> int:
        """Number of names in the key of a chunk after the path of the array."""
        return self.metadata.encode_chunk_key((0,) * len(self.metadata.shape)).count("/") + 1

    @classmethod
    @override
    def from_array_metadata_and_store(cls, array_metadata: ArrayMetadata, store: Store) -> Self:
        # where nothing has imported the module, no store is one of its class
        ours = getattr(sys.modules.get("n5zarr.store.n5_store"), "N5Store", None)
        # a subclass with its own methods for chunks must get a call for each chunk
        if ours is None or not isinstance(store, ours) or _differ(type(store), ours):
            raise NotImplementedError  # in zarr, this means: call `from_codecs`
        if not _loaded and not _is_importing():
            _batches()  # so that reading imports nothing, wherever it happens
        return cls(array_metadata)

    @classmethod
    @override
    def from_codecs(cls, codecs: Iterable[Codec]) -> Self:
        return cast("Self", _ZARRS.from_codecs(codecs))

    @override
    async def read(
        self, batch_info: Iterable[BatchItem], out: NDBuffer, drop_axes: tuple[int, ...] = ()
    ) -> tuple[GetResult, ...]:
        if not _loaded and _is_importing():
            return await self.zarr_pipeline.read(batch_info, out, drop_axes)
        return await _batches()(self).read(batch_info, out, drop_axes)

    @override
    async def write(
        self, batch_info: Iterable[BatchItem], value: NDBuffer, drop_axes: tuple[int, ...] = ()
    ) -> None:
        items = tuple(batch_info)
        if _loaded or not _is_importing():
            await _batches()(self).write(items, value, drop_axes)
        elif items and not items[0][0].read_only:
            await update_chunks(self.zarr_pipeline, items, value, drop_axes)
        else:
            await self.zarr_pipeline.write(items, value, drop_axes)  # which refuses

    # ------------------------------------------------------------------ zarr's own pipeline

    @override
    def evolve_from_array_spec(self, array_spec: ArraySpec) -> Self:
        return self  # made for one array

    @property
    @override
    def supports_partial_decode(self) -> bool:
        return self.zarr_pipeline.supports_partial_decode

    @property
    @override
    def supports_partial_encode(self) -> bool:
        return self.zarr_pipeline.supports_partial_encode

    @override
    def validate(
        self, *, shape: tuple[int, ...], dtype: ZDType, chunk_grid: ChunkGridMetadata
    ) -> None:
        self.zarr_pipeline.validate(shape=shape, dtype=dtype, chunk_grid=chunk_grid)

    @override
    def compute_encoded_size(self, byte_length: int, array_spec: ArraySpec) -> int:
        return self.zarr_pipeline.compute_encoded_size(byte_length, array_spec)

    @override
    async def decode(
        self, chunk_bytes_and_specs: Iterable[tuple[Buffer | None, ArraySpec]]
    ) -> Iterable[NDBuffer | None]:
        return await self.zarr_pipeline.decode(chunk_bytes_and_specs)

    @override
    async def encode(
        self, chunk_arrays_and_specs: Iterable[tuple[NDBuffer | None, ArraySpec]]
    ) -> Iterable[Buffer | None]:
        return await self.zarr_pipeline.encode(chunk_arrays_and_specs)

    def __iter__(self) -> Iterator[Codec]:
        codecs: Any = self.zarr_pipeline
        return iter(codecs)


N5CodecPipeline.__module__ = "n5zarr.arrays.pipeline"  # the name by which programs configure it


def _differ(kind: type, ours: type) -> bool:
    """Whether a class of stores has its own methods for chunks."""
    names = ("get", "get_sync", "set", "set_sync", "delete", "delete_sync")
    return any(getattr(kind, name, None) is not getattr(ours, name) for name in names)


_loaded: list[type[Batches]] = []


def _batches() -> type[Batches]:
    """Return the class that reads and writes batches, which is loaded when it is first used."""
    if not _loaded:
        from n5zarr.fast.batches import Batches  # noqa: PLC0415 - only for arrays of an N5Store

        _loaded.append(Batches)
    return _loaded[0]


def _is_importing() -> bool:
    """Whether a thread is importing modules of n5zarr.

    This one, zarr's event loop, then must not wait for them: a signal handler or a finalizer that
    has interrupted the import may be waiting for an array.
    """
    own = (module for name, module in [*sys.modules.items()] if name.startswith("n5zarr"))
    return any(getattr(getattr(m, "__spec__", None), "_initializing", False) for m in own)


register_pipeline(N5CodecPipeline)
