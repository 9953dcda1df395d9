"""A codec pipeline that reads and writes many blocks of a local dataset at a time.

It serves arrays with n5zarr's own codec on a local file system; all others take zarr's own fused
pipeline. The arrays of :func:`n5zarr.open`, :func:`n5zarr.create_array` and xarray's engine have
it. ``zarr.config.set({"codec_pipeline.path": "n5zarr.arrays.pipeline.N5CodecPipeline"})`` gives it
to all other arrays, too.

In Python, the work per block is what costs. So each file is read once, by its exact size; its
header is compared instead of parsed; and its bytes are swapped while they are copied into the
output. Each thread takes several blocks at once. Small uncompressed blocks get no threads, because
those would only wait for each other on the interpreter's lock.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, TypeGuard, override

import numpy as np

from n5zarr._zarr_private import (
    MISSING,
    PRESENT,
    FusedCodecPipeline,
    register_pipeline,
)
from n5zarr.arrays.local_dataset import local_dataset
from n5zarr.arrays.workers import work_together
from n5zarr.codecs.block import decode_full, decode_numeric, encode_parts, pad_or_truncate
from n5zarr.codecs.buffers import scratch
from n5zarr.codecs.compress import decompress_reused
from n5zarr.errors import N5BlockError, N5Error
from n5zarr.format.compression import Raw
from n5zarr.format.order import to_c
from n5zarr.storage import files
from n5zarr.storage.writing import FileWriter
from n5zarr.store.block_codec import N5BlockCodec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from zarr.abc.buffer import NDBuffer

    from n5zarr._zarr_private import ArraySpec, BatchItem, GetResult
    from n5zarr.arrays.local_dataset import LocalDataset
    from n5zarr.codecs.buffers import BufferLike, Scratch

__all__ = ["N5CodecPipeline"]

_LOTS_PER_WORKER = 4  # few enough to cost nothing, enough to share the work evenly
_FEW_ELEMENTS = 2**16  # up to this many are read on zarr's event loop, without a thread
_SMALL_BLOCK = 2**17  # bytes: one thread copies smaller uncompressed blocks faster than two
_SLAB_BLOCK = 2**18  # bytes: from larger uncompressed blocks, a part is read alone


class N5CodecPipeline(FusedCodecPipeline):
    """zarr's fused pipeline, with a faster way for blocks in local files."""

    @override
    def read_sync(
        self,
        batch_info: Iterable[BatchItem],
        out: NDBuffer,
        drop_axes: tuple[int, ...] = (),
        max_workers: int = 1,
    ) -> tuple[GetResult, ...]:
        batch = list(batch_info)
        dataset = self._dataset(batch)
        codec = self.array_bytes_codec
        target = out.as_numpy_array() if dataset is not None else None
        if (
            dataset is None
            or not isinstance(codec, N5BlockCodec)
            or not isinstance(target, np.ndarray)
        ):
            return super().read_sync(batch, out, drop_axes, max_workers)
        reader = _Reader(dataset, codec, target, drop_axes)
        return _share_out(reader.read, batch, max_workers if reader.is_worth_threads else 1)

    @override
    async def read(
        self,
        batch_info: Iterable[BatchItem],
        out: NDBuffer,
        drop_axes: tuple[int, ...] = (),
    ) -> tuple[GetResult, ...]:
        batch = list(batch_info)
        if batch and len(batch) * math.prod(batch[0][1].shape) <= _FEW_ELEMENTS:
            dataset = self._dataset(batch)
            if dataset is not None and isinstance(out.as_numpy_array(), np.ndarray):
                # costs less than handing the work to a thread, as zarr would
                return self.read_sync(batch, out, drop_axes)
        return await super().read(batch, out, drop_axes)

    @override
    def write_sync(
        self,
        batch_info: Iterable[BatchItem],
        value: NDBuffer,
        drop_axes: tuple[int, ...] = (),
        max_workers: int = 1,
    ) -> None:
        batch = list(batch_info)
        dataset = self._dataset(batch, to_write=True)
        if dataset is None or not isinstance(value.as_numpy_array(), np.ndarray):
            super().write_sync(batch, value, drop_axes, max_workers)
            return
        with FileWriter(dataset.durability, dataset.warn) as file_writer:
            writer = _Writer(dataset, value, drop_axes, file_writer)
            _share_out(writer.write, batch, max_workers if writer.is_worth_threads else 1)

    def _dataset(
        self, batch: Sequence[BatchItem], *, to_write: bool = False
    ) -> LocalDataset | None:
        """Return the local dataset of a batch of chunks; None where zarr's pipeline has to work."""
        if not batch or len(self.codecs) != 1 or not isinstance(self.codecs[0], N5BlockCodec):
            return None
        store_path = batch[0][0]
        store = getattr(store_path, "store", None)
        return local_dataset(store, store_path.path, to_write=to_write)


def _share_out[Item, Result](
    work: Callable[[Sequence[Item]], list[Result]], items: Sequence[Item], n_workers: int
) -> tuple[Result, ...]:
    """Call a function with batches of items, on threads if there are several workers.

    Parameters
    ----------
    work : callable
        Takes a batch of items and returns their results.
    items : sequence
        All items.
    n_workers : int
        Number of threads, this one included.

    Returns
    -------
    tuple
        The results, in the order of the items.
    """
    if n_workers < 2 or len(items) < 2:
        return tuple(work(items))
    size = max(1, -(-len(items) // (_LOTS_PER_WORKER * n_workers)))
    lots = deque(range(0, len(items), size))
    done: dict[int, list[Result]] = {}

    def take() -> None:
        while True:
            try:
                first = lots.popleft()
            except IndexError:
                return
            done[first] = work(items[first : first + size])

    work_together(take, n_workers, lots.clear)
    return tuple(chain.from_iterable(done[first] for first in sorted(done)))


class _Reader:
    """Reads blocks of one dataset into an output.

    Parameters
    ----------
    dataset : LocalDataset
        The files of the blocks, and how the dataset is presented.
    codec : N5BlockCodec
        Codec for blocks that are not ordinary; it reads them, or raises with the reason.
    out : numpy.ndarray
        The output for the elements.
    drop_axes : tuple of int
        Axes of the selections that the output does not have.
    """

    def __init__(
        self,
        dataset: LocalDataset,
        codec: N5BlockCodec,
        out: np.ndarray,
        drop_axes: tuple[int, ...],
    ) -> None:
        view = dataset.view
        self._dataset = dataset
        self._codec = codec
        self._out = out
        self._drop_axes = drop_axes
        self._header = view.full_header
        self._n_bytes = view.full_n_bytes
        self._compression = view.dataset.compression
        self._data_type = view.dataset.data_type
        self._dtype = self._data_type.dtype
        self._shape_c = to_c(view.dataset.block_size)
        self._shape = view.chunk_shape
        self._n_elements = math.prod(self._shape_c)
        self._transposed = view.axis_order == "F"
        self._is_raw = isinstance(self._compression, Raw)
        self._has_slabs = self._is_raw and self._n_bytes >= _SLAB_BLOCK

    @property
    def is_worth_threads(self) -> bool:
        """Whether a block takes more work outside of the interpreter than a thread costs."""
        return not self._is_raw or self._n_bytes >= _SMALL_BLOCK

    def read(self, items: Sequence[BatchItem]) -> list[GetResult]:
        """Read some blocks into the output.

        An item of zarr's is the chunk's store path, its specification, the selection in the chunk,
        the selection in the output, and whether the chunk is complete.
        """
        with scratch() as memory:
            return [self._read_one(item, memory) for item in items]

    def _read_one(self, item: BatchItem, memory: Scratch) -> GetResult:
        """Read one block, the fastest way that suits it, into the output."""
        store_path, _, chunk_selection, out_selection, _ = item
        path = self._dataset.block_path(store_path.path)
        part = self._read_slab(path, chunk_selection) if self._has_slabs else None
        if part is None:
            stored = files.read_reused(path, memory)
            if stored is None:
                return self._fill_missing(item)
            try:
                part = self._select_part(stored, item, memory)
            except N5BlockError:
                # perhaps half written, unnoticed: the time of the file is too coarse
                stored = files.read_reused(path, memory, settled=True)
                if stored is None:
                    return self._fill_missing(item)
                part = self._select_part(stored, item, memory)
        if part is None:  # the size of the block is not that of its grid position
            part = self._read_with_codec(item)
        if part is None:  # removed meanwhile
            return self._fill_missing(item)
        if self._drop_axes:
            part = part.squeeze(axis=self._drop_axes)
        self._out[out_selection] = part
        return PRESENT

    def _select_part(
        self, stored: memoryview, item: BatchItem, memory: Scratch
    ) -> np.ndarray | None:
        """Decode a block and select from it; None if its size is not that of its grid position."""
        store_path, spec, selection, _, _ = item
        n_header = len(self._header)
        try:
            if stored[:n_header].tobytes() == self._header:
                payload = stored[n_header:]
                elements = decompress_reused(payload, self._n_bytes, self._compression, memory)
                flat = np.frombuffer(elements, self._dtype, self._n_elements)
                block = flat.reshape(self._shape_c)
                return np.asarray(self._presented(block)[selection])
            block = decode_numeric(stored, len(self._shape_c), self._data_type, self._compression)
            shape = self._presented(block).shape
            if shape != self._dataset.extent(store_path.path):  # dataset replaced, perhaps
                return None
            if not all(map(_selects_the_same, selection, shape, self._shape)):
                block = pad_or_truncate(block, self._shape_c, _fill_value(spec))
        except N5Error as err:
            raise err.located(self._dataset.locate(store_path.path)) from err.__cause__
        return np.asarray(self._presented(block)[selection])

    def _presented(self, block: np.ndarray) -> np.ndarray:
        """Return a block in C order with the axes of the array."""
        return block.T if self._transposed else block

    def _read_slab(self, path: str, selection: object) -> np.ndarray | None:
        """Read only the needed part of a large uncompressed block, along its slowest axis.

        None if the selection is not such a part, or the file is not an ordinary block.
        """
        if not isinstance(selection, tuple):
            return None
        slowest = selection[-1 if self._transposed else 0]
        n = self._shape_c[0]
        if isinstance(slowest, slice) and slowest.step in (1, None):
            start, stop, _ = slowest.indices(n)
            moved: slice | int = slice(0, stop - start)
        elif isinstance(slowest, int | np.integer):
            start, stop, moved = int(slowest), int(slowest) + 1, 0
        else:
            return None
        if not 0 < stop - start <= n // 2:
            return None
        row = self._n_bytes // n
        rows = files.read_part(path, self._header, start * row, (stop - start) * row, self._n_bytes)
        if rows is None:
            return None
        block = np.frombuffer(rows, self._data_type.dtype).reshape(-1, *self._shape_c[1:])
        if self._transposed:
            return np.asarray(block.T[(*selection[:-1], moved)])
        return np.asarray(block[(moved, *selection[1:])])

    def _fill_missing(self, item: BatchItem) -> GetResult:
        """Put the fill value where a block is missing.

        N5 spec, "File-system specification", item 6: datasets are sparse.
        """
        _, spec, _, out_selection, _ = item
        self._out[out_selection] = _fill_value(spec)
        return MISSING

    def _read_with_codec(self, item: BatchItem) -> np.ndarray | None:
        """Read a block with the codec, which handles every case; None where it is missing."""
        store_path, spec, selection, _, _ = item
        decoded = self._codec._decode_partial_sync(  # noqa: SLF001 - as zarr's pipeline does
            store_path, selection, spec
        )
        return None if decoded is None else np.asarray(decoded.as_numpy_array())


class _Writer:
    """Writes blocks of one dataset, truncated at the end of an axis.

    N5 spec, "File-system specification", item 8: blocks at the end of an axis may be smaller.

    Parameters
    ----------
    dataset : LocalDataset
        The files of the blocks, and how the dataset is presented.
    value : zarr.abc.buffer.NDBuffer
        The elements to write.
    drop_axes : tuple of int
        Axes of the selections that the value does not have.
    writer : FileWriter
        Writes the files.
    """

    def __init__(
        self, dataset: LocalDataset, value: NDBuffer, drop_axes: tuple[int, ...], writer: FileWriter
    ) -> None:
        self._dataset = dataset
        self._value = value
        self._drop_axes = drop_axes
        self._writer = writer
        self._attributes = dataset.view.dataset
        self._is_raw = isinstance(self._attributes.compression, Raw)
        self._in_c = dataset.view.axis_order == "C"

    @property
    def is_worth_threads(self) -> bool:
        """Whether a block takes more work outside of the interpreter than a thread costs."""
        return not self._is_raw or self._dataset.view.full_n_bytes >= _SMALL_BLOCK

    def write(self, items: Sequence[BatchItem]) -> list[None]:
        """Write some blocks."""
        for item in items:
            if self._is_whole(item):
                self._write_whole(item)
            else:
                self._write_part(item)
        return []

    def _is_whole(self, item: BatchItem) -> bool:
        """Whether the value holds a whole block, so that nothing of it has to be read first.

        zarr may think so in vain: others may have made the array larger.
        """
        store_path, _, _, value_selection, is_complete = item
        if not is_complete or self._drop_axes or not isinstance(value_selection, tuple):
            return False
        runs = [part for part in value_selection if _is_run(part)]
        shape = self._value.shape
        if shape and not (len(runs) == len(shape) and all(map(_ends_within, runs, shape))):
            return False  # to be broadcast, or an error
        extent = tuple(part.stop - part.start for part in runs)
        return extent == self._dataset.extent(store_path.path)

    def _write_whole(self, item: BatchItem) -> None:
        """Write one block; remove it if it holds only the fill value and zarr omits such chunks."""
        store_path, spec, _, value_selection, _ = item
        is_scalar = self._value.shape == ()
        part = self._value if is_scalar else self._value[value_selection]
        path = self._dataset.block_path(store_path.path)
        if not spec.config.write_empty_chunks and part.all_equal(_fill_value(spec)):
            self._writer.remove(path)
            return
        array = part.as_numpy_array()
        if is_scalar:
            array = np.broadcast_to(array, self._dataset.extent(store_path.path))
        self._writer.write(path, *self._encode(array))

    def _encode(self, array: np.ndarray) -> tuple[bytes, BufferLike]:
        attributes = self._attributes
        in_c = array if self._in_c else array.T
        return encode_parts(in_c, attributes.data_type, attributes.compression)

    def _write_part(self, item: BatchItem) -> None:
        """Write a part of one block, under its lock."""
        store_path, spec, selection, value_selection, _ = item
        extent = tuple(map(slice, self._dataset.extent(store_path.path)))
        part = self._value
        if part.shape != ():
            part = part[value_selection]
            if self._drop_axes:
                dropped = self._drop_axes
                part = part[tuple(None if d in dropped else slice(None) for d in range(spec.ndim))]

        def change(old: bytes | None) -> bytes | None:
            block = np.array(self._decode(old, store_path.path, spec))
            block[selection] = part.as_numpy_array()
            inside = spec.prototype.nd_buffer.from_numpy_array(block[extent])
            if not spec.config.write_empty_chunks and inside.all_equal(_fill_value(spec)):
                return None
            return b"".join(self._encode(block[extent]))

        self._writer.update(self._dataset.block_path(store_path.path), change)

    def _decode(self, stored: bytes | None, key: str, spec: ArraySpec) -> np.ndarray:
        """Decode a block, padded to its full size; where it is missing, it is all fill value."""
        attributes, fill_value = self._attributes, _fill_value(spec)
        if stored is None:
            return np.full(spec.shape, fill_value, attributes.data_type.dtype)
        try:
            block = decode_full(
                memoryview(stored),
                attributes.block_size,
                attributes.data_type,
                attributes.compression,
                fill_value,
            )
        except N5Error as err:
            raise err.located(self._dataset.locate(key)) from err.__cause__
        return block if self._in_c else block.T


def _is_run(part: object) -> TypeGuard[slice]:
    return isinstance(part, slice) and part.step in (1, None)


def _ends_within(part: slice, n: int) -> bool:
    return bool(part.stop <= n)


def _selects_the_same(selection: object, n: int, n_full: int) -> bool:
    """Whether a selection from ``n_full`` elements only selects from the first ``n`` of them."""
    if n == n_full:
        return True
    if isinstance(selection, slice):
        return selection.indices(n) == selection.indices(n_full)
    indices = np.asarray(selection)  # not a mask, which is as long as a full block
    return indices.dtype != bool and bool(((indices >= 0) & (indices < n)).all())


def _fill_value(spec: ArraySpec) -> object:
    return 0 if spec.fill_value is None else spec.fill_value


register_pipeline(N5CodecPipeline)
