"""The names of `n5zarr._zarr_private`, made of public names of zarr alone: slower, and sure.

- ``sync`` learns zarr's event loop from a store that zarr calls.
- ``ChunkCodecs`` writes a chunk to an array in memory, and reads it back.
- Documents are parsed by making an array of them, in a store in memory.
- ``merge_and_encode_chunk`` and ``chunk_spec`` are written here.
- What zarr itself has to read and write goes through the pipeline that zarr chooses.
"""

from __future__ import annotations

import asyncio
import os
import re
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast, override

import numpy as np
import zarr
from zarr.abc.codec import GetResult
from zarr.buffer import cpu
from zarr.errors import UnstableSpecificationWarning
from zarr.registry import register_pipeline
from zarr.storage import LocalStore, MemoryStore, StorePath

from n5zarr._zarr_shared import (
    MISSING,
    PRESENT,
    REFUSALS,
    default_pipeline,
    default_pipeline_name,
    filtered_dtype,
    on_own_loop,
)
from n5zarr.errors import N5UnrepresentableError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence
    from concurrent.futures import Future

    from zarr.abc.buffer import Buffer, BufferPrototype, NDBuffer
    from zarr.abc.codec import CodecPipeline
    from zarr.abc.metadata import Metadata
    from zarr.abc.store import Store
    from zarr.types import AnyArray, AnyAsyncArray

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

# ------------------------------------------------------------------------------- the event loop


class _Probe(MemoryStore):
    """A store that notes the event loop on which zarr calls it."""

    loop: asyncio.AbstractEventLoop | None = None

    @override
    async def set(self, *args: Any, **options: Any) -> None:
        self.loop = asyncio.get_running_loop()
        await super().set(*args, **options)


class _ZarrLoop:
    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._loop.is_closed():
            probe = _Probe()
            zarr.create_group(probe)
            self._loop = probe.loop
        if self._loop is None:
            raise RuntimeError("expected zarr to call stores on an event loop, got none")
        return self._loop

    def forget(self) -> None:
        self._loop = None


_LOOP = _ZarrLoop()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LOOP.forget)


def sync[T](coroutine: Coroutine[object, object, T]) -> T:
    """Run a coroutine on zarr's event loop, and wait for the result."""
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is not None and running is _LOOP.get():
        coroutine.close()
        raise RuntimeError("expected another thread than that of zarr's event loop")
    future: Future[T] = asyncio.run_coroutine_threadsafe(coroutine, _LOOP.get())
    return future.result(zarr.config.get("async.timeout"))  # seconds, or None


async def from_other_loop[T](coroutine: Coroutine[object, object, T]) -> T:
    """Run a coroutine on zarr's event loop, and wait for it on another one."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, _LOOP.get()))


# ------------------------------------------------------------------------------------ documents


def _array(document: dict[str, Any] | Metadata, *, keep_empty: bool = False) -> AnyAsyncArray:
    """Make an array of a document or of metadata, in a store in memory."""
    metadata: Any = document
    where = StorePath(MemoryStore(), "")
    config: Any = {"write_empty_chunks": keep_empty}
    return zarr.AsyncArray(metadata=metadata, store_path=where, config=config)


_V3: dict[str, Any] = {
    "zarr_format": 3, "node_type": "array", "shape": [1], "data_type": "uint8",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0, "codecs": [{"name": "bytes"}], "attributes": {},
}  # fmt: skip
_V2: dict[str, Any] = {
    "zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "|u1", "order": "C",
    "fill_value": 0, "filters": None, "compressor": None, "dimension_separator": ".",
}  # fmt: skip

# zarr may be configured for a pipeline of ours, which is not there yet, or for one that nobody has
with zarr.config.set({"codec_pipeline.path": default_pipeline_name()}):
    ArrayV3Metadata: Any = type(_array(_V3).metadata)
    ArrayV2Metadata: Any = type(_array(_V2).metadata)


def spelled(document: dict[str, Any]) -> dict[str, Any]:
    """Rewrite a ``zarr.json`` or ``.zarray`` of an array in zarr's own spelling."""
    return dict(_array(document).metadata.to_dict())


def check_codecs(document: dict[str, Any]) -> None:
    """Raise one of ``REFUSALS`` if zarr cannot open an array with this document."""
    _array(document)


def with_attributes[T: Metadata](metadata: T, attributes: dict[str, Any]) -> T:
    """Return the metadata of an array with other attributes."""
    changed: Any = replace(metadata, attributes=attributes)  # type: ignore[call-arg]
    return cast("T", changed)


# ----------------------------------------------------------------------------------- one chunk


class ChunkCodecs:
    """The codecs of one array, to decode and encode chunks without a store.

    Parameters
    ----------
    document : dict
        A ``zarr.json`` or ``.zarray``.
    """

    _dtype: np.dtype | None = None

    def __init__(self, document: dict[str, Any]) -> None:
        shape = [*(document.get("chunks") or document["shape"])]
        self._document = document | {"shape": shape}
        array = _array(self._document)
        self._key = array.metadata.encode_chunk_key((0,) * len(shape))
        if any(map(_filters_big_endian, _chains(document.get("codecs", ())))):
            raise N5UnrepresentableError(
                "filters: expected little-endian elements with N5ZARR_PUBLIC_ONLY=1, got "
                "big-endian ones, which zarr may misread; create the array with '<' in its type",
                kind="compression",
            )
        self._dtype = filtered_dtype(self, document, np.zeros(shape, array.dtype))

    def decode(self, chunk: memoryview | bytes) -> np.ndarray:
        """Decode the bytes of a full-size chunk."""
        array = _array(self._document)

        async def read() -> object:
            await array.store_path.store.set(self._key, cpu.Buffer.from_bytes(bytes(chunk)))
            return await array.getitem(..., prototype=cpu.buffer_prototype)

        return np.asarray(on_own_loop(read()))

    def encode(self, array: np.ndarray) -> bytes:
        """Encode a full-size chunk."""
        if self._dtype is not None:
            array = array.astype(self._dtype, copy=False)
        # a shard omits its empty parts; a whole chunk of fill values was written on purpose
        encoded = self._encode(array, keep_empty=False)
        return encoded or self._encode(array, keep_empty=True) or b""

    def _encode(self, values: np.ndarray, *, keep_empty: bool) -> bytes | None:
        array = _array(self._document, keep_empty=keep_empty)

        async def write() -> bytes | None:
            await array.setitem(..., values, prototype=cpu.buffer_prototype)
            stored = await array.store_path.store.get(self._key, cpu.buffer_prototype)
            return None if stored is None else stored.to_bytes()

        return on_own_loop(write())


def _chains(codecs: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    """Yield the codecs of Zarr v3, then those inside of shards."""
    yield codecs
    for codec in codecs:
        yield from _chains(codec.get("configuration", {}).get("codecs", ()))


def _filters_big_endian(codecs: Sequence[dict[str, Any]]) -> bool:
    """Whether filters take numbers with the highest byte first, or make such.

    Behind ``bytes`` there are no filters, but compressors, which have no byte order.
    """
    names = [codec["name"] for codec in codecs]
    before = names[: names.index("bytes")] if "bytes" in names else names
    found = [codec.get("configuration", {}) for codec in codecs]
    return any(name.startswith("numcodecs.") for name in before) and any(
        value == "big" or str(value).startswith(">") for each in found for value in each.values()
    )


# ----------------------------------------------------------------------------------- pipelines


FusedCodecPipeline = default_pipeline()


def fused_pipeline(metadata: Metadata) -> CodecPipeline:
    """Return the pipeline that zarr makes for an array."""
    return _array(metadata).codec_pipeline


def with_fused_pipeline[T: zarr.Array[Any]](array: T) -> T:
    """Return an array as it is: the pipeline is zarr's choice."""
    return array


def max_workers() -> int:
    """Return how many chunks the compiled kernel takes at once."""
    given = zarr.config.get("codec_pipeline.max_workers", None)
    return int(given) if given else os.cpu_count() or 1


@dataclass(frozen=True)
class _Spec:
    """What zarr tells a pipeline about a chunk."""

    shape: tuple[int, ...]
    dtype: Any
    fill_value: Any
    config: Any
    prototype: BufferPrototype


def chunk_spec(array: AnyArray) -> _Spec:
    """Return the description of an array's chunks for a pipeline; the grid must be regular."""
    metadata: Any = array.metadata
    return _Spec(
        array.chunks, metadata.dtype, metadata.fill_value, array.config, cpu.buffer_prototype
    )


class _Transform:
    """The codecs of an array in the form in which zarr's pipelines have them."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._codecs = ChunkCodecs(document)

    def decode_chunk(self, stored: Buffer, spec: _Spec) -> NDBuffer:
        values = self._codecs.decode(stored.to_bytes())
        return spec.prototype.nd_buffer.from_numpy_array(values)

    def encode_chunk(self, chunk: NDBuffer, spec: _Spec) -> Buffer:
        return spec.prototype.buffer.from_bytes(self._codecs.encode(chunk.as_numpy_array()))


def chunk_transform(_: CodecPipeline, metadata: Metadata) -> _Transform:
    """Return what decodes and encodes chunks of an array; its grid must be regular."""
    with warnings.catch_warnings():  # zarr has warned of types without a specification before
        warnings.simplefilter("ignore", UnstableSpecificationWarning)
        document: Any = metadata.to_dict()
    if "chunk_grid" in document:
        document = document | {"shape": document["chunk_grid"]["configuration"]["chunk_shape"]}
    return _Transform(document)


def merge_and_encode_chunk(  # noqa: PLR0913 - as zarr's
    stored: Buffer | None,
    value: NDBuffer,
    *,
    chunk_spec: _Spec,
    chunk_selection: tuple[Any, ...],
    out_selection: tuple[Any, ...],
    is_complete: bool,
    drop_axes: tuple[int, ...],
    decode: Callable[[Buffer, _Spec], NDBuffer],
    encode: Callable[[NDBuffer, _Spec], Buffer | None],
) -> Buffer | None:
    """Return a chunk with a part of it replaced, as zarr does; None if it is to be removed."""
    is_scalar = value.shape == ()
    given = value if is_scalar else value[out_selection]
    fill_value = chunk_spec.fill_value
    if fill_value is None:
        fill_value = chunk_spec.dtype.default_scalar()
    if is_complete and not is_scalar and given.shape == tuple(chunk_spec.shape):
        chunk = given
    else:
        if stored is None:
            chunk = chunk_spec.prototype.nd_buffer.create(
                shape=chunk_spec.shape,
                dtype=chunk_spec.dtype.to_native_dtype(),
                order=chunk_spec.config.order,
                fill_value=fill_value,
            )
        else:
            chunk = decode(stored, chunk_spec).copy()
        if drop_axes and not is_scalar:
            axes = range(len(chunk_spec.shape))
            given = given[tuple(None if axis in drop_axes else slice(None) for axis in axes)]
        chunk[chunk_selection] = given
    if not chunk_spec.config.write_empty_chunks and chunk.all_equal(fill_value):
        return None
    return encode(chunk, chunk_spec)


# -------------------------------------------------------------------------------------- stores


def async_group(group: zarr.Group) -> zarr.AsyncGroup:
    """Return an asynchronous group for a group."""
    return zarr.AsyncGroup(metadata=group.metadata, store_path=group.store_path)


class _Unknown(MemoryStore):
    """Stands for a store that cannot be known."""


_LOCAL = re.compile(r"(?:\w+-)+file://(.*)", re.DOTALL)  # as zarr's wrappers write themselves


def wrapped(store: object) -> Store:
    """Return a local store like the one inside a wrapper, or one that stands for any other."""
    found = _LOCAL.fullmatch(str(store))
    return LocalStore(found[1]) if found else _Unknown()


def same_data(one: Store, other: Store) -> bool:
    """Whether two stores hold the same data."""
    if isinstance(one, MemoryStore) and isinstance(other, MemoryStore):
        return str(one) == str(other)  # the identity of the data, which equality does not ask for
    with suppress(NotImplementedError):
        one = one.with_read_only(other.read_only)
    return one == other
