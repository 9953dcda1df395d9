"""What n5zarr relies on beyond public names of zarr, xarray and hdmf-zarr.

No other module has private names of zarr and xarray, but for those whose entry names it. Each entry
says what it gives, and which test fails when it changes. ``tests/test_relied_on.py`` compares the
names with the code.

Private names:

- ``zarr.core.sync.sync``: runs a coroutine on zarr's event loop, to which remote stores are bound;
  no public name does. ``test_coroutines_run_on_the_loop_of_zarr``
- ``zarr.core.codec_pipeline.FusedCodecPipeline``: makes arrays of small chunks with filters 2.2 to
  3.3 times as fast, text 1.4 to 1.8, shards 2.8 to 4.6. Without it, zarr's default pipeline does
  the same. ``test_boxes_of_plain_zarr``
- ``sync_transform``, ``read_sync``: what that pipeline does without an event loop, and so does
  ``write_sync``. ``test_the_faster_pipeline_of_zarr_needs_no_event_loop``
- ``WrapperStore._store``: the store inside a wrapper, for which there is no other way. Without it,
  a copy does not see that a wrapped store is its own source, and removes it.
  ``test_the_store_in_a_wrapper``
- ``Store._supports_sync_io``, in ``storage/zarr_store.py``: whether the synchronous methods of a
  wrapper work. ``test_a_wrapper_tells_whether_its_synchronous_methods_work``
- ``zarr.storage._local.LocalStore``: the class itself. A program may replace
  ``zarr.storage.LocalStore`` by a class that opens N5, as tests of hdmf-zarr do.
  ``test_the_class_of_local_files_is_that_of_zarr``
- ``xarray.core.indexing``: selections that read only what they need. xarray's guide for backends
  names it, and no public module has its classes. If it is moved, xarray's engine for Zarr knows
  where. ``test_the_engine_finds_the_classes_that_xarray_has_moved``
- ``Variable._data``, in ``xarray/lazy_arrays.py``, which says what it reads of lazy data.
  ``test_data_are_not_removed_before_they_are_read``
- ``ZarrArrayWrapper._array``, there: what xarray reads; set without a search for its codecs.
  ``test_a_lazy_array_is_read_as_that_of_xarray``
- ``ZarrIO.__dci_queue`` and ``ZarrIODataChunkIteratorQueue._write_buffer_zarr``, in
  ``hdmf/backend.py``: hdmf-zarr's processes open a path. ``test_several_processes_write``
- ``HDMFIO._file``, in ``hdmf/file_contents.py``: the open file or group.
  ``test_by_way_of_hdf5_every_document_is_the_same``

Behaviours of public names:

- ``AsyncArray`` takes a document as metadata, and a mapping as configuration.
  ``test_documents_have_the_spelling_of_zarr``
- ``metadata.attributes``, ``AsyncArray.codec_pipeline`` and ``read_sync`` of a pipeline are members
  of frozen dataclasses, and set in copies. ``test_other_attributes_leave_the_metadata_alone``,
  ``test_an_array_reads_through_the_pipeline_that_is_set``
- ``AsyncArray.metadata`` is one, too, and set in place, as zarr does when it resizes an array.
  ``test_an_older_array_keeps_attributes_and_shape_of_a_newer_one``
- ``ArraySpec``: codecs and pipelines take another class with these members.
  ``test_chunks_are_those_of_an_array_of_zarr``
- ``chunk_grid.chunk_shape``: is missing where the grid is not regular.
  ``test_chunks_of_a_grid_that_is_not_regular``
- ``config.defaults``: zarr's own configuration, in a list. ``test_any_configuration_of_zarr``
- ``ArrayV2`` and the annotation of ``Group.attrs`` give the classes of metadata and attributes,
  which have no public names. ``test_classes_of_metadata``
- ``str(MemoryStore)`` names the dict, whose values equality compares.
  ``test_stores_of_the_same_data_are_those_of_zarr``

Types of signatures, for the type checker alone, are not imported when a program runs.
"""

from __future__ import annotations

import asyncio
import copy
import os
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from importlib import import_module
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, cast, get_args, get_type_hints

import numpy as np
import zarr
from zarr.buffer import cpu, default_buffer_prototype
from zarr.core.sync import sync as on_zarrs_loop
from zarr.storage import MemoryStore, StorePath, WrapperStore
from zarr.types import AnyArray, AnyAsyncArray, ArrayV2, ArrayV3

from n5zarr.cores import max_workers
from n5zarr.errors import N5UnrepresentableError

try:
    from zarr.storage._local import LocalStore
except ImportError:
    from zarr.storage import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from xarray.core.indexing import ExplicitIndexer
    from zarr.abc.buffer import Buffer, BufferPrototype, NDBuffer
    from zarr.abc.codec import CodecPipeline, GetResult
    from zarr.abc.store import Store
    from zarr.core.array_spec import ArrayConfig, ArrayConfigLike, ArraySpec
    from zarr.core.attributes import Attributes
    from zarr.core.buffer import NDArrayLikeOrScalar
    from zarr.core.common import ShapeLike
    from zarr.core.dtype import wrapper
    from zarr.core.indexing import (
        BasicSelection,
        CoordinateSelection,
        Fields,
        MaskSelection,
        OrthogonalSelection,
        Selection,
        SelectorTuple,
    )
    from zarr.core.metadata.v2 import ArrayV2Metadata
    from zarr.core.metadata.v3 import ArrayV3Metadata, ChunkGridMetadata

    type ArrayMetadata = ArrayV3Metadata | ArrayV2Metadata
    type BatchItem = tuple[Any, ArraySpec, Any, Any, bool]
    type ZDType = wrapper.ZDType[wrapper.TBaseDType, wrapper.TBaseScalar]
else:
    (ArrayV2Metadata,), (ArrayV3Metadata,) = (get_args(a.__value__) for a in (ArrayV2, ArrayV3))
    Attributes = get_type_hints(zarr.Group.attrs.fget)["return"]

__all__ = [  # of others, for all modules to import from here
    "ArrayConfigLike",
    "ArraySpec",
    "ArrayV2Metadata",
    "ArrayV3Metadata",
    "Attributes",
    "BasicSelection",
    "ChunkGridMetadata",
    "CoordinateSelection",
    "ExplicitIndexer",
    "Fields",
    "LocalStore",
    "MaskSelection",
    "NDArrayLikeOrScalar",
    "OrthogonalSelection",
    "Selection",
    "SelectorTuple",
    "ShapeLike",
    "max_workers",
]

REFUSALS = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, SyntaxError, TypeError,
    ValueError,
)  # fmt: skip
"""The errors of zarr, numcodecs and numpy for invalid documents."""

# ------------------------------------------------------------------------------- event loops


def sync[T](coroutine: Coroutine[object, object, T]) -> T:
    """Run a coroutine on zarr's event loop, to which remote stores are bound, and wait for it."""
    return on_zarrs_loop(coroutine, timeout=zarr.config.get("async.timeout"))


def wait_for_loop() -> None:
    """Wait until zarr's event loop has nothing to do: it goes on after a ``KeyboardInterrupt``."""

    async def others() -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*tasks, return_exceptions=True)

    sync(others())


async def from_other_loop[T](coroutine: Coroutine[object, object, T]) -> T:
    """Run a coroutine on zarr's event loop, and wait for it on another one."""
    loop = _zarrs_loop(os.getpid())
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, loop))


@lru_cache(maxsize=1)
def _zarrs_loop(_: int) -> asyncio.AbstractEventLoop:
    """Return zarr's event loop in this process; a forked one has another."""

    async def running() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    return sync(running())


@cache
def _own_loop() -> asyncio.AbstractEventLoop:
    """Start an event loop of n5zarr's own, for codecs that only exist as coroutines.

    Zarr's loop would deadlock: it may be waiting for the store that decodes here.
    """
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


if hasattr(os, "register_at_fork"):  # a forked process does not have the loop's thread
    os.register_at_fork(after_in_child=_own_loop.cache_clear)


def on_own_loop[T](coroutine: Coroutine[object, object, T]) -> T:
    """Run a coroutine on n5zarr's own event loop, and wait for the result."""
    return asyncio.run_coroutine_threadsafe(coroutine, _own_loop()).result()


# ------------------------------------------------------------------------------ documents


def _array(document: dict[str, Any] | ArrayMetadata, **config: object) -> AnyAsyncArray:
    """Make an array of a document or of metadata, in a store in memory."""
    where, metadata, options = StorePath(MemoryStore()), cast("Any", document), cast("Any", config)
    return zarr.AsyncArray(metadata=metadata, store_path=where, config=options)


def check_codecs(document: dict[str, Any]) -> None:
    """Raise one of ``REFUSALS`` if zarr cannot open an array with this document."""
    _array(document)


def spelled(document: dict[str, Any]) -> dict[str, Any]:
    """Rewrite a ``zarr.json`` or ``.zarray`` of an array in zarr's own spelling."""
    return dict(_array(document).metadata.to_dict())


def with_attributes(metadata: ArrayV3Metadata, attributes: dict[str, Any]) -> ArrayV3Metadata:
    """Return the metadata of an array with other attributes; all else is shared.

    ``dataclasses.replace`` parses the metadata again, which takes as long as opening an array.
    """
    copied = copy.copy(metadata)
    object.__setattr__(copied, "attributes", attributes)  # a frozen dataclass
    return copied


def give_metadata(array: AnyAsyncArray, metadata: ArrayMetadata) -> None:
    """Give an array other metadata in its place, as zarr does when it resizes one."""
    vars(array).update(vars(replace(array, metadata=metadata)))  # a frozen dataclass


def async_group(group: zarr.Group) -> zarr.AsyncGroup:
    """Return an asynchronous group for a group, as ``Array.async_array`` does for arrays."""
    return zarr.AsyncGroup(metadata=group.metadata, store_path=group.store_path)


# ------------------------------------------------------------------------------ pipelines

PRESENT: GetResult = {"status": "present"}
MISSING: GetResult = {"status": "missing"}


@dataclass(frozen=True, eq=False)  # zarr looks specifications up by identity
class _Spec:
    """The description of a chunk for zarr's codecs and pipelines, as zarr's ``ArraySpec``."""

    shape: tuple[int, ...]
    dtype: ZDType
    fill_value: Any
    config: ArrayConfig
    prototype: BufferPrototype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def order(self) -> str:
        return self.config.order


def chunk_spec(
    array: AnyArray | AnyAsyncArray,
    shape: tuple[int, ...],
    prototype: BufferPrototype | None = None,
) -> ArraySpec:
    """Return the description of the chunks of this shape of an array, for a pipeline."""
    metadata: Any = array.metadata
    made = prototype or default_buffer_prototype()
    spec = _Spec(shape, metadata.dtype, metadata.fill_value, array.config, made)
    return cast("ArraySpec", spec)


def zarrs_pipeline(metadata: ArrayMetadata) -> CodecPipeline:
    """Return the fastest pipeline of zarr for an array, whatever is configured."""
    array: Any = _array(metadata)
    # by its name in zarr's configuration; 2 to 4 times as fast for small chunks, see above
    fused: Any = None
    with suppress(ImportError, AttributeError):
        fused = resolve_name("zarr.core.codec_pipeline.FusedCodecPipeline")
    if fused is None:
        return cast("CodecPipeline", array.codec_pipeline)
    if isinstance(metadata, ArrayV2Metadata):
        shape = metadata.chunks
    else:  # as zarr for a grid that is not regular: codecs are told the shape of each chunk
        shape = getattr(metadata.chunk_grid, "chunk_shape", (1,) * len(metadata.shape))
    spec = chunk_spec(array, shape)
    return cast(
        "CodecPipeline", fused.from_codecs(array.codec_pipeline).evolve_from_array_spec(spec)
    )


def without_awaiting(pipeline: CodecPipeline, name: str) -> Any:  # noqa: ANN401 - not in its type
    """Return ``read_sync`` or ``write_sync`` of a pipeline of zarr; None if it has to await."""
    return getattr(pipeline, name) if getattr(pipeline, "sync_transform", None) else None


def with_zarrs_pipeline[T: zarr.Array[Any]](array: T) -> T:
    """Return an array that reads through :func:`zarrs_pipeline`, each box on one thread.

    So a job that reads boxes on many threads needs a fifth less time for 1000 small chunks.
    """
    own, pipeline = copy.copy(array.async_array), zarrs_pipeline(array.async_array.metadata)
    read = getattr(pipeline, "read_sync", None)  # 1.4 to 2.7 times as fast as the public `read`
    if read is not None:
        object.__setattr__(pipeline, "read_sync", partial(_on_one_thread, read))
    object.__setattr__(own, "codec_pipeline", pipeline)  # both are frozen dataclasses
    return type(array)(own)


def _on_one_thread(
    read: Callable[..., object], batch: object, out: object, drop_axes: object, **_: object
) -> object:
    return read(batch, out, drop_axes)


def decode_chunk(pipeline: CodecPipeline, stored: Buffer, spec: ArraySpec) -> NDBuffer:
    """Decode a chunk in this thread, whatever zarr's event loop does."""
    transform: Any = getattr(pipeline, "sync_transform", None)  # 33 us a chunk instead of 280
    if transform is not None:
        return cast("NDBuffer", transform.decode_chunk(stored, spec))
    (decoded,) = on_own_loop(pipeline.decode([(stored, spec)]))
    return cast("NDBuffer", decoded)


def encode_chunk(pipeline: CodecPipeline, chunk: NDBuffer, spec: ArraySpec) -> Buffer | None:
    """Encode a chunk in this thread; None for a shard of fill values."""
    transform: Any = getattr(pipeline, "sync_transform", None)  # 26 us a chunk instead of 280
    if transform is not None:
        return cast("Buffer | None", transform.encode_chunk(chunk, spec))
    (encoded,) = on_own_loop(pipeline.encode([(chunk, spec)]))
    return encoded


class ChunkCodecs:
    """The codecs of one array, to decode and encode chunks without a store.

    Parameters
    ----------
    document : dict
        A ``zarr.json`` or ``.zarray``.
    """

    _dtype: np.dtype | None = None

    def __init__(self, document: dict[str, Any]) -> None:
        order = document.get("order") or "C"
        array = _array(document, order=order, write_empty_chunks=False)
        shape = tuple(document.get("chunks") or document["shape"])
        self._pipeline = zarrs_pipeline(array.metadata)
        self._spec = chunk_spec(array, shape, cpu.buffer_prototype)  # not a GPU's
        config = replace(array.config, write_empty_chunks=True)
        self._keep_empty = replace(self._spec, config=config)
        self._dtype = self._filtered_dtype(document, np.zeros(shape, array.dtype))

    def decode(self, chunk: memoryview | bytes) -> np.ndarray:
        """Decode the bytes of a full-size chunk."""
        stored = cpu.Buffer.from_bytes(chunk)
        return decode_chunk(self._pipeline, stored, self._spec).as_numpy_array()

    def encode(self, array: np.ndarray) -> bytes:
        """Encode a full-size chunk."""
        if self._dtype is not None:
            array = array.astype(self._dtype, copy=False)
        chunk = cpu.NDBuffer.from_numpy_array(array)
        # a shard omits its empty parts; a whole chunk of fill values was written on purpose
        encoded = encode_chunk(self._pipeline, chunk, self._spec)
        if encoded is None:
            encoded = encode_chunk(self._pipeline, chunk, self._keep_empty)
        return b"" if encoded is None else encoded.to_bytes()

    def _filtered_dtype(self, document: dict[str, Any], zeros: np.ndarray) -> np.dtype | None:
        """Return the type, with its byte order, that the filters expect; None without any.

        A filter reads the bytes of a chunk as numbers, in a byte order that only zarr knows.

        Raises
        ------
        N5UnrepresentableError
            Zarr does not decode the filters as it encoded them (``kind="compression"``).
        """
        is_filtered = "numcodecs." in str(document) or bool(document.get("filters"))
        if not is_filtered or zeros.dtype.kind not in "biufc":
            return None
        dtype = self.decode(self.encode(zeros)).dtype
        small = np.arange(251, dtype=np.uint8)
        probes: list[np.ndarray] = [np.resize(small, zeros.shape).astype(dtype)]
        if dtype.kind in "iu":  # sums without a carry are right in either byte order
            numbers = np.resize(small * 89, zeros.nbytes)
            probes.append(numbers.view(dtype).reshape(zeros.shape))
        for values in probes:
            # values that were decoded once; the first need not survive, as some filters are lossy
            once = self.decode(self.encode(values))
            again = self.decode(self.encode(once.astype(dtype)))
            if not np.array_equal(again, once, equal_nan=once.dtype.kind in "fc"):
                message = (
                    "filters: expected to decode to the values that were encoded, got others (zarr "
                    "misreads big-endian filters of Zarr v3); create the array with '<' in its type"
                )
                raise N5UnrepresentableError(message, kind="compression")
        return dtype


# ------------------------------------------------------------------------------ stores


def wrapped(store: WrapperStore[Any]) -> Store:
    """Return the store inside a wrapper, such as one that logs or waits."""
    inner: Store = store._store  # noqa: SLF001 - else copies overwrite their own source
    return inner


def same_data(one: Store, other: Store) -> bool:
    """Whether two stores hold the same data, as zarr decides it."""
    if isinstance(one, MemoryStore) and isinstance(other, MemoryStore):
        return str(one) == str(other)  # zarr names the dict; equality compares the values in it
    with suppress(NotImplementedError):
        one = one.with_read_only(other.read_only)
    return one == other


# ------------------------------------------------------------------------------ xarray


@cache
def xarray_indexing() -> Any:  # noqa: ANN401 - a module without types
    """Return ``xarray.core.indexing``, whose arrays read what a selection leaves, no more.

    n5zarr imports xarray only when it is used.
    """
    try:
        return import_module("xarray.core.indexing")
    except ImportError:
        return import_module("xarray.backends.zarr").indexing
