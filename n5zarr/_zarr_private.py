"""The only place that names private parts of zarr.

- ``sync``: zarr 3.4 has no public way to run a coroutine on its event loop, to which the clients
  of remote stores are bound. Drop it when there is one.
- ``ChunkCodecs``: zarr 3.4 has no public way to run the codecs of an array on one chunk. Drop it
  when there is one.
- ``spelled``: zarr writes documents in another spelling than it read them; only its own class knows
  which. Drop it when that class is public.
- ``FusedCodecPipeline`` and what belongs to it: zarr 3.4 loads a pipeline by its name, but has no
  public base class for one. Drop them when there is one.
- ``async_group``: what a group is made of; arrays have a public name for it.
- ``same_data``: zarr's own rule for whether two stores are one place. Drop it when it is public.
- ``LocalStore``: the class itself. Programs that lead zarr from paths to this package's stores put
  theirs in its place in ``zarr.storage``, and what is made here would lead back here.
- The types stand in the signatures of codecs; zarr exports them nowhere.
"""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from zarr.abc.codec import GetResult
from zarr.codecs._v2 import V2Codec
from zarr.core.array import _stores_share_data as same_data
from zarr.core.array import parse_array_metadata
from zarr.core.array_spec import ArrayConfig
from zarr.core.array_spec import ArraySpec as _ArraySpec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.codec_pipeline import AsyncChunkTransform, FusedCodecPipeline
from zarr.core.codec_pipeline import _resolve_max_workers as max_workers
from zarr.core.metadata.v3 import ArrayV3Metadata
from zarr.core.sync import sync
from zarr.registry import register_pipeline
from zarr.storage._local import LocalStore

from n5zarr.errors import N5UnrepresentableError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    import zarr
    from zarr.abc.buffer import Buffer, NDBuffer
    from zarr.core import array_spec, attributes, indexing
    from zarr.core.array_spec import ArrayConfigLike as ConfigLike
    from zarr.core.buffer import NDArrayLikeOrScalar as ArrayOrScalar
    from zarr.core.dtype import wrapper
    from zarr.core.metadata import v3
    from zarr.types import AnyArray

    type ArraySpec = array_spec.ArraySpec
    type ArrayConfigLike = ConfigLike
    type Attributes = attributes.Attributes
    type BasicSelection = indexing.BasicSelection
    type Fields = indexing.Fields
    type NDArrayLikeOrScalar = ArrayOrScalar
    type OrthogonalSelection = indexing.OrthogonalSelection
    type ChunkGridMetadata = v3.ChunkGridMetadata
    type SelectorTuple = indexing.SelectorTuple
    type BatchItem = tuple[Any, ArraySpec, Any, Any, bool]
    type ZDType = wrapper.ZDType[wrapper.TBaseDType, wrapper.TBaseScalar]

__all__ = [
    "MISSING",
    "PRESENT",
    "ArrayV3Metadata",
    "ChunkCodecs",
    "FusedCodecPipeline",
    "GetResult",
    "LocalStore",
    "async_group",
    "max_workers",
    "on_own_loop",
    "register_pipeline",
    "same_data",
    "set_pipeline",
    "spelled",
    "sync",
]

PRESENT: GetResult = {"status": "present"}
MISSING: GetResult = {"status": "missing"}


def set_pipeline(array: AnyArray, pipeline: type[FusedCodecPipeline]) -> None:
    """Return an array another pipeline: zarr makes it from the global configuration only."""
    inner = array.async_array
    metadata = inner.metadata
    if not isinstance(metadata, ArrayV3Metadata):
        return
    spec = _ArraySpec(
        shape=tuple(array.chunks),
        dtype=metadata.data_type,
        fill_value=metadata.fill_value,
        config=ArrayConfig.from_dict({}),
        prototype=default_buffer_prototype(),
    )
    made = pipeline.from_codecs(metadata.codecs).evolve_from_array_spec(spec)
    object.__setattr__(inner, "codec_pipeline", made)


def async_group(group: zarr.Group) -> zarr.AsyncGroup:
    """Return the asynchronous group that a group is made of, as ``Array.async_array`` does."""
    return group._async_group  # noqa: SLF001


def spelled(document: dict[str, Any]) -> dict[str, Any]:
    """Spell a ``zarr.json`` or ``.zarray`` of an array as zarr does."""
    return parse_array_metadata(document).to_dict()


class ChunkCodecs:
    """The codecs of one array, to decode and encode chunks without a store.

    Parameters
    ----------
    document : dict
        A ``zarr.json`` or ``.zarray``.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        metadata = parse_array_metadata(document)
        if isinstance(metadata, ArrayV3Metadata):
            codecs: Any = metadata.codecs
            dtype, order = metadata.data_type, None
        else:
            codecs = [V2Codec(filters=metadata.filters, compressor=metadata.compressor)]
            dtype, order = metadata.dtype, metadata.order
        chunk_shape = document.get("chunks") or document["shape"]
        config = ArrayConfig.from_dict({"write_empty_chunks": False, "order": order or "C"})
        self._spec = _ArraySpec(
            shape=tuple(chunk_shape),
            dtype=dtype,
            fill_value=metadata.fill_value,
            config=config,
            prototype=default_buffer_prototype(),
        )
        self._keep_empty = replace(self._spec, config=replace(config, write_empty_chunks=True))
        pipeline = FusedCodecPipeline.from_codecs(codecs).evolve_from_array_spec(self._spec)
        self._sync, self._async = (
            pipeline.sync_transform,
            AsyncChunkTransform(codecs=pipeline.codecs),
        )
        # filters take bytes for numbers, in an order that only they know
        self._dtype: np.dtype | None = None
        native = dtype.to_native_dtype()
        if native.kind in "biufc" and ("numcodecs." in str(document) or document.get("filters")):
            self._dtype = self._try(np.zeros(chunk_shape, native)).dtype
            self._check_filters(np.resize(np.arange(251, dtype=np.uint8), chunk_shape))

    def _try(self, array: np.ndarray) -> np.ndarray:
        return self.decode(self.encode(array))

    def _check_filters(self, values: np.ndarray) -> None:
        """Check that what is read is what is read after it was written; not all filters keep all.

        Raises
        ------
        N5UnrepresentableError
            Filters that zarr does not decode as it encoded (``kind="compression"``).
        """
        once = self._try(values.astype(self._dtype))
        if not np.array_equal(self._try(once), once, equal_nan=once.dtype.kind in "fc"):
            message = (
                "filters: expected to decode to what was encoded, found other numbers, as zarr "
                "does where a filter of v3 is big-endian; create the array with '<' in its type"
            )
            raise N5UnrepresentableError(message, kind="compression")

    def decode(self, chunk: memoryview | bytes) -> np.ndarray:
        """Decode the bytes of a full-size chunk."""
        stored = self._spec.prototype.buffer.from_bytes(chunk)
        if self._sync is not None:
            decoded = self._sync.decode_chunk(stored, self._spec)
        else:
            decoded = on_own_loop(self._async.decode_chunk(stored, self._spec))
        return decoded.as_numpy_array()

    def encode(self, array: np.ndarray) -> bytes:
        """Encode a full-size chunk."""
        if self._dtype is not None:
            array = array.astype(self._dtype, copy=False)
        chunk = self._spec.prototype.nd_buffer.from_numpy_array(array)
        # a shard leaves out its empty parts; what is all fill value was written to be there
        encoded = self._encode(chunk, self._spec)
        if encoded is None:
            encoded = self._encode(chunk, self._keep_empty)
        return b"" if encoded is None else encoded.to_bytes()

    def _encode(self, chunk: NDBuffer, spec: ArraySpec) -> Buffer | None:
        if self._sync is not None:
            return self._sync.encode_chunk(chunk, spec)
        return on_own_loop(self._async.encode_chunk(chunk, spec))


class _Loop:
    """An event loop of our own for codecs that only exist as coroutines.

    Zarr's loop cannot serve: it may be waiting for the store that decodes here.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, daemon=True).start()
            return self._loop

    def forget(self) -> None:
        """Start anew in a forked process, which has the loop but not its thread."""
        self._lock, self._loop = threading.RLock(), None


_LOOP = _Loop()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LOOP.forget)


def on_own_loop[T](coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop of n5zarr's own, and wait for it."""
    return asyncio.run_coroutine_threadsafe(coroutine, _LOOP.get()).result()
