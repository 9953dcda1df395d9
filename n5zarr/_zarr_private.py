"""Private names of zarr: no other module imports them.

:mod:`n5zarr._zarr` chooses this module, or :mod:`n5zarr._zarr_public`.

Each entry says why zarr 3.4's public names do not suffice, and when it can be removed.

- ``sync``: runs a coroutine on zarr's event loop, to which the clients of remote stores are bound.
  Drop it when zarr has a public function for this.
- ``from_other_loop``: the same for a coroutine that another event loop waits for.
- ``ChunkCodecs``: runs the codecs of an array on one chunk. Drop it when zarr has a public way.
- ``check_codecs``: zarr's checks when it opens an array, without a store. Drop it likewise.
- ``spelled``: zarr may write a document with other spellings than it read; only zarr's own class of
  array metadata knows which. Drop it when that class is public.
- ``FusedCodecPipeline``, ``fused_pipeline``, ``default_pipeline``, ``register_pipeline``,
  ``max_workers``, ``GetResult``: zarr loads a codec pipeline by its name, but has no public way to
  get the pipeline that another class replaces. Drop them when it has.
- ``with_fused_pipeline``: an array reads through another pipeline than the configured one. Drop it
  when arrays can be opened with a pipeline.
- ``merge_and_encode_chunk``: zarr's rule for writing a part of a chunk. Drop it when it is public.
- ``chunk_transform``: the codecs of a pipeline for one chunk. Drop it like ``ChunkCodecs``.
- ``chunk_spec``: zarr's description of a chunk for pipelines, here for code without a pipeline.
  Drop it when ``ArraySpec`` is public.
- ``with_attributes``: a copy of an array's metadata. ``dataclasses.replace`` parses the metadata
  again, which takes as long as the rest of an opening. Drop it when zarr parses documents in less
  than 10 us.
- ``async_group``: the asynchronous group inside a group; for arrays, zarr has a public name.
- ``wrapped``: the store to which one of zarr's wrappers passes its calls.
- ``same_data``: zarr's rule for whether two stores hold the same data. Drop it when it is public.
- ``LocalStore``: the class itself. A program may replace ``zarr.storage.LocalStore`` by a class
  that opens this package's stores; using that name here would then recurse without end.
- Types of zarr's signatures, which zarr exports nowhere.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast, override

import numpy as np
import zarr
from zarr.abc.codec import GetResult
from zarr.buffer import cpu, default_buffer_prototype
from zarr.codecs._v2 import V2Codec
from zarr.core.array import _stores_share_data as same_data
from zarr.core.array import parse_array_metadata
from zarr.core.array_spec import ArrayConfig
from zarr.core.array_spec import ArraySpec as _ArraySpec
from zarr.core.chunk_utils import merge_and_encode_chunk
from zarr.core.codec_pipeline import AsyncChunkTransform, FusedCodecPipeline
from zarr.core.codec_pipeline import _resolve_max_workers as max_workers
from zarr.core.metadata.v2 import ArrayV2Metadata
from zarr.core.metadata.v3 import ArrayV3Metadata
from zarr.core.sync import _get_loop, sync
from zarr.registry import register_pipeline
from zarr.storage import MemoryStore, WrapperStore
from zarr.storage._local import LocalStore

from n5zarr._zarr_shared import (
    MISSING,
    PRESENT,
    REFUSALS,
    default_pipeline,
    default_pipeline_name,
    filtered_dtype,
    on_own_loop,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from zarr.abc.buffer import Buffer, NDBuffer
    from zarr.abc.codec import Codec
    from zarr.abc.store import Store
    from zarr.core import array_spec, attributes, chunk_utils, common, indexing
    from zarr.core.array_spec import ArrayConfigLike as ConfigLike
    from zarr.core.buffer import NDArrayLikeOrScalar as ArrayOrScalar
    from zarr.core.dtype import wrapper
    from zarr.core.metadata import v3
    from zarr.types import AnyArray

    type ArrayMetadata = ArrayV3Metadata | ArrayV2Metadata
    type ArraySpec = array_spec.ArraySpec
    type ArrayConfigLike = ConfigLike
    type Attributes = attributes.Attributes
    type BasicSelection = indexing.BasicSelection
    type ChunkTransform = chunk_utils.ChunkTransform
    type Fields = indexing.Fields
    type NDArrayLikeOrScalar = ArrayOrScalar
    type CoordinateSelection = indexing.CoordinateSelection
    type MaskSelection = indexing.MaskSelection
    type OrthogonalSelection = indexing.OrthogonalSelection
    type Selection = indexing.Selection
    type ChunkGridMetadata = v3.ChunkGridMetadata
    type SelectorTuple = indexing.SelectorTuple
    type ShapeLike = common.ShapeLike
    type BatchItem = tuple[Any, ArraySpec, Any, Any, bool]
    type ZDType = wrapper.ZDType[wrapper.TBaseDType, wrapper.TBaseScalar]

__all__ = [
    "MISSING",
    "PRESENT",
    "REFUSALS",
    "ArrayV2Metadata",
    "ArrayV3Metadata",
    "ChunkCodecs",
    "FusedCodecPipeline",
    "GetResult",
    "LocalStore",
    "async_group",
    "check_codecs",
    "chunk_spec",
    "chunk_transform",
    "default_pipeline",
    "default_pipeline_name",
    "from_other_loop",
    "fused_pipeline",
    "max_workers",
    "merge_and_encode_chunk",
    "on_own_loop",
    "register_pipeline",
    "same_data",
    "spelled",
    "sync",
    "with_attributes",
    "with_fused_pipeline",
    "wrapped",
]


async def from_other_loop[T](coroutine: Coroutine[object, object, T]) -> T:
    """Run a coroutine on zarr's event loop, and wait for it on another one."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, _get_loop()))


class _OnOneThread(FusedCodecPipeline):
    """Reads the chunks of a box one after the other, for jobs that read boxes on many threads."""

    @override
    def read_sync(
        self,
        batch_info: Any,
        out: NDBuffer,
        drop_axes: tuple[int, ...] = (),
        max_workers: int = 1,
    ) -> tuple[GetResult, ...]:
        return super().read_sync(batch_info, out, drop_axes)


def fused_pipeline(
    metadata: ArrayMetadata, kind: type[FusedCodecPipeline] = FusedCodecPipeline
) -> FusedCodecPipeline:
    """Make zarr's synchronous pipeline for an array, as zarr makes the one of its configuration."""
    if isinstance(metadata, ArrayV3Metadata):
        codecs: Sequence[Codec] = metadata.codecs
        grid = metadata.chunk_grid
        shape = getattr(grid, "chunk_shape", (1,) * len(metadata.shape))
        dtype, config = metadata.data_type, ArrayConfig.from_dict({})
    else:
        codecs = [V2Codec(filters=metadata.filters, compressor=metadata.compressor)]
        shape, dtype = metadata.chunks, metadata.dtype
        config = ArrayConfig.from_dict({"order": metadata.order})
    spec = _ArraySpec(
        shape=tuple(shape),
        dtype=dtype,
        fill_value=metadata.fill_value,
        config=config,
        prototype=default_buffer_prototype(),
    )
    return kind.from_codecs(codecs).evolve_from_array_spec(spec)


def with_fused_pipeline[T: zarr.Array[Any]](array: T) -> T:
    """Return an array that reads each box on one thread, whatever pipeline is configured."""
    own = copy.copy(array.async_array)
    pipeline = fused_pipeline(own.metadata, _OnOneThread)
    object.__setattr__(own, "codec_pipeline", pipeline)  # a frozen dataclass
    return type(array)(own)


def chunk_spec(array: AnyArray) -> ArraySpec:
    """Return the description of an array's chunks for a pipeline; the grid must be regular."""
    metadata = array.async_array.metadata
    return _ArraySpec(
        shape=array.chunks,
        dtype=metadata.dtype,
        fill_value=metadata.fill_value,
        config=array.config,
        prototype=default_buffer_prototype(),
    )


def chunk_transform(pipeline: FusedCodecPipeline, _: ArrayMetadata) -> ChunkTransform | None:
    """Return what decodes and encodes chunks of an array; None if its codecs are coroutines."""
    return pipeline.sync_transform


def with_attributes(metadata: ArrayV3Metadata, attributes: dict[str, Any]) -> ArrayV3Metadata:
    """Return the metadata of an array with other attributes; all else is shared."""
    copied = copy.copy(metadata)
    object.__setattr__(copied, "attributes", attributes)  # a frozen dataclass
    return copied


def async_group(group: zarr.Group) -> zarr.AsyncGroup:
    """Return the asynchronous group inside a group, as ``Array.async_array`` does for arrays."""
    return group._async_group  # noqa: SLF001


def wrapped(store: WrapperStore[Any]) -> Store:
    """Return the store inside a wrapper, such as one that logs or waits."""
    inner: Store = store._store  # noqa: SLF001
    return inner


def spelled(document: dict[str, Any]) -> dict[str, Any]:
    """Rewrite a ``zarr.json`` or ``.zarray`` of an array in zarr's own spelling."""
    return parse_array_metadata(document).to_dict()


def check_codecs(document: dict[str, Any]) -> None:
    """Raise one of ``REFUSALS`` if zarr cannot open an array with this document."""
    fused_pipeline(parse_array_metadata(document))


class ChunkCodecs:
    """The codecs of one array, to decode and encode chunks without a store.

    Parameters
    ----------
    document : dict
        A ``zarr.json`` or ``.zarray``.
    """

    _dtype: np.dtype | None = None

    def __init__(self, document: dict[str, Any]) -> None:
        metadata = parse_array_metadata(document)
        if isinstance(metadata, ArrayV3Metadata):
            codecs: Sequence[Codec] = metadata.codecs
            dtype, order = metadata.data_type, None
        else:
            codecs = [V2Codec(filters=metadata.filters, compressor=metadata.compressor)]
            dtype, order = metadata.dtype, metadata.order
        chunk_shape = document.get("chunks") or document["shape"]
        config = ArrayConfig.from_dict({"write_empty_chunks": False, "order": order or "C"})
        self.spec = _ArraySpec(
            shape=tuple(chunk_shape),
            dtype=dtype,
            fill_value=metadata.fill_value,
            config=config,
            prototype=cpu.buffer_prototype,  # not a GPU's
        )
        self._keep_empty = replace(self.spec, config=replace(config, write_empty_chunks=True))
        pipeline = FusedCodecPipeline.from_codecs(codecs).evolve_from_array_spec(self.spec)
        self._sync, self._async = (
            pipeline.sync_transform,
            AsyncChunkTransform(codecs=pipeline.codecs),
        )
        self._dtype = filtered_dtype(self, document, np.zeros(chunk_shape, dtype.to_native_dtype()))

    def decode(self, chunk: memoryview | bytes) -> np.ndarray:
        """Decode the bytes of a full-size chunk."""
        stored = self.spec.prototype.buffer.from_bytes(chunk)
        if self._sync is not None:
            decoded = self._sync.decode_chunk(stored, self.spec)
        else:
            decoded = on_own_loop(self._async.decode_chunk(stored, self.spec))
        return decoded.as_numpy_array()

    def encode(self, array: np.ndarray) -> bytes:
        """Encode a full-size chunk."""
        if self._dtype is not None:
            array = array.astype(self._dtype, copy=False)
        chunk = self.spec.prototype.nd_buffer.from_numpy_array(array)
        # a shard omits its empty parts; a whole chunk of fill values was written on purpose
        encoded = self._encode(chunk, self.spec)
        if encoded is None:
            encoded = self._encode(chunk, self._keep_empty)
        return b"" if encoded is None else encoded.to_bytes()

    def _encode(self, chunk: NDBuffer, spec: ArraySpec) -> Buffer | None:
        if self._sync is not None:
            return self._sync.encode_chunk(chunk, spec)
        return on_own_loop(self._async.encode_chunk(chunk, spec))


def check() -> None:
    """Use the private names once, on an array of one element in memory.

    A version of zarr may keep a name and change its parameters or members: :mod:`n5zarr._zarr` then
    uses public names.
    """
    document: dict[str, Any] = {
        "zarr_format": 3, "node_type": "array", "shape": [1], "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "attributes": {},
        "codecs": [{"name": "bytes"}],
    }  # fmt: skip
    codecs, store = ChunkCodecs(document), MemoryStore()
    metadata: Any = with_attributes(parse_array_metadata(spelled(document)), {"a": 1})  # type: ignore[arg-type]
    fused_pipeline(metadata, _OnOneThread)
    buffers = codecs.spec.prototype
    merged = merge_and_encode_chunk(
        None,
        buffers.nd_buffer.from_numpy_array(codecs.decode(codecs.encode(np.ones(1, "u1")))),
        chunk_spec=codecs.spec,
        chunk_selection=(slice(0, 1),),
        out_selection=(slice(0, 1),),
        is_complete=False,
        drop_axes=(),
        decode=lambda _, __: buffers.nd_buffer.from_numpy_array(np.zeros(1, "u1")),
        encode=lambda data, _: buffers.buffer.from_bytes(data.as_numpy_array().tobytes()),
    )
    if merged is None or merged.to_bytes() != b"\x01":
        raise ValueError("a chunk holds other values than were encoded")
    inner = wrapped(WrapperStore(store))
    if inner is not store or not same_data(store, inner) or max_workers() < 1:
        raise ValueError("a store is not the one inside its wrapper")
    inspect.signature(sync).bind(None)
    # no array is made: zarr may be configured for a pipeline of ours, which is not there yet
    if "codec_pipeline" not in zarr.AsyncArray.__dataclass_fields__:
        raise AttributeError("an array has no codec_pipeline")
    async_group(zarr.Group(cast("Any", None)))
