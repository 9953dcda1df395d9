"""The fast path: many blocks of a local dataset at a time, each read once, into the output.

For arrays with n5zarr's own codec on a local file system; anything else goes the way of zarr's own
fused pipeline. Arrays that :func:`n5zarr.open` and :func:`n5zarr.create_array` return, and those of
xarray's engine, have it; ``zarr.config.set({"codec_pipeline.path":
"n5zarr.arrays.pipeline.N5CodecPipeline"})`` gives it to every other one, too.

What costs in Python is what happens per block: so a file is read by its exact size, its header is
compared and not parsed, and its elements are swapped while they are copied into the output. Threads
get many blocks at once, and none where blocks are small and uncompressed: there the interpreter's
lock is all that threads would share.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeGuard, override

import numpy as np

from n5zarr._zarr_private import (
    MISSING,
    PRESENT,
    FusedCodecPipeline,
    register_pipeline,
)
from n5zarr.arrays.local_dataset import local_dataset
from n5zarr.arrays.workers import work_together
from n5zarr.codecs.block import decode_numeric, encode_parts, pad_or_truncate
from n5zarr.codecs.buffers import scratch
from n5zarr.codecs.compress import decompress_reused
from n5zarr.errors import N5BlockError, N5Error
from n5zarr.format.compression import Raw
from n5zarr.format.order import to_c
from n5zarr.storage import files
from n5zarr.store.block_codec import N5BlockCodec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from zarr.abc.buffer import NDBuffer
    from zarr.abc.codec import ArrayBytesCodec

    from n5zarr._zarr_private import ArraySpec, BatchItem, GetResult
    from n5zarr.arrays.local_dataset import LocalDataset
    from n5zarr.codecs.buffers import Scratch

__all__ = ["N5CodecPipeline"]

_LOTS = 4  # for each worker: few enough to cost nothing, enough to share the work evenly
_LITTLE = 2**16  # elements that are read where zarr's loop runs
_SMALL = 2**17  # bytes of an uncompressed block that one thread copies faster than two
_SLAB = 2**18  # bytes of an uncompressed block of which a part is read alone


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
        target = out.as_numpy_array() if dataset is not None else None
        if dataset is None or not isinstance(target, np.ndarray):
            return super().read_sync(batch, out, drop_axes, max_workers)
        reader = _Reader(dataset, self.array_bytes_codec, target, drop_axes)
        return _dealt(reader.read, batch, max_workers if reader.is_worth_threads else 1)

    @override
    async def read(
        self,
        batch_info: Iterable[BatchItem],
        out: NDBuffer,
        drop_axes: tuple[int, ...] = (),
    ) -> tuple[GetResult, ...]:
        batch = list(batch_info)
        if batch and len(batch) * math.prod(batch[0][1].shape) <= _LITTLE:
            dataset = self._dataset(batch)
            if dataset is not None and isinstance(out.as_numpy_array(), np.ndarray):
                # less work than handing it to a thread, which zarr does for any other
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
        dataset = None if drop_axes else self._dataset(batch, to_write=True)
        if dataset is None or not isinstance(value.as_numpy_array(), np.ndarray):
            super().write_sync(batch, value, drop_axes, max_workers)
            return
        writer = _Writer(dataset, value)
        whole, rest = [], []
        for item in batch:
            if writer.can_write(item):
                whole.append(item)
            else:  # not complete, whatever zarr thinks: others may have made the array larger
                rest.append((*item[:4], False))
        _dealt(writer.write, whole, max_workers if writer.is_worth_threads else 1)
        if rest:
            super().write_sync(rest, value, drop_axes, max_workers)

    def _dataset(
        self, batch: Sequence[BatchItem], *, to_write: bool = False
    ) -> LocalDataset | None:
        """Find the local dataset that a batch of chunks belongs to."""
        if not batch or len(self.codecs) != 1 or not isinstance(self.codecs[0], N5BlockCodec):
            return None
        place = batch[0][0]
        return local_dataset(getattr(place, "store", None), place.path, to_write=to_write)


def _dealt[Item, Result](
    work: Callable[[Sequence[Item]], list[Result]], items: Sequence[Item], n_workers: int
) -> tuple[Result, ...]:
    """Do the same with all of many items, in lots on threads if there are several workers."""
    if n_workers < 2 or len(items) < 2:
        return tuple(work(items))
    size = max(1, -(-len(items) // (_LOTS * n_workers)))
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
        Where the blocks are, and how they are presented.
    codec : N5BlockCodec
        What reads a block that is not as it should be, or says why it cannot be read.
    out : numpy.ndarray
        Where the elements go.
    drop_axes : tuple of int
        Axes of a selection that the output does not have.
    """

    def __init__(
        self,
        dataset: LocalDataset,
        codec: ArrayBytesCodec,
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
        self._has_slabs = self._is_raw and self._n_bytes >= _SLAB

    @property
    def is_worth_threads(self) -> bool:
        """Whether the work outside of the interpreter is more than a thread costs."""
        return not self._is_raw or self._n_bytes >= _SMALL

    def read(self, items: Sequence[BatchItem]) -> list[GetResult]:
        """Read some blocks; zarr's items are place, specification, what of it, and where to."""
        with scratch() as memory:
            return [self._read_one(item, memory) for item in items]

    def _read_one(self, item: BatchItem, memory: Scratch) -> GetResult:
        place, _, wanted, where, _ = item
        path = self._dataset.block_path(place.path)
        part = self._slab(path, wanted) if self._has_slabs else None
        if part is None:
            stored = files.read_reused(path, memory)
            if stored is None:
                return self._missing(item)
            try:
                part = self._part(stored, item, memory)
            except N5BlockError:  # or is it being written, where no time says so?
                stored = files.read_reused(path, memory, settled=True)
                if stored is None:
                    return self._missing(item)
                part = self._part(stored, item, memory)
        if part is None:  # not of the size that its place has
            part = self._whole(item)
        if part is None:  # removed meanwhile
            return self._missing(item)
        if self._drop_axes:
            part = part.squeeze(axis=self._drop_axes)
        self._out[where] = part
        return PRESENT

    def _part(self, stored: memoryview, item: BatchItem, memory: Scratch) -> np.ndarray | None:
        """Decode a block and select from it; None if it does not have the size of its place."""
        place, spec, wanted, _, _ = item
        n_header = len(self._header)
        try:
            if stored[:n_header].tobytes() == self._header:
                payload = stored[n_header:]
                elements = decompress_reused(payload, self._n_bytes, self._compression, memory)
                flat = np.frombuffer(elements, self._dtype, self._n_elements)
                block = flat.reshape(self._shape_c)
                return np.asarray(self._presented(block)[wanted])
            block = decode_numeric(stored, len(self._shape_c), self._data_type, self._compression)
            shape = self._presented(block).shape
            if shape != self._dataset.extent(place.path):  # of another dataset, perhaps
                return None
            if not all(map(_selects_the_same, wanted, shape, self._shape)):
                block = pad_or_truncate(block, self._shape_c, _fill_value(spec))
        except N5Error as err:
            raise err.located(self._dataset.locate(place.path)) from err.__cause__
        return np.asarray(self._presented(block)[wanted])

    def _presented(self, block: np.ndarray) -> np.ndarray:
        """Return a block in C order with the axes of the array."""
        return block.T if self._transposed else block

    def _slab(self, path: str, wanted: object) -> np.ndarray | None:
        """Read only what is needed of a large uncompressed block, along its slowest axis."""
        if not isinstance(wanted, tuple):
            return None
        slowest = wanted[-1 if self._transposed else 0]
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
        found = files.read_part(
            path, self._header, start * row, (stop - start) * row, self._n_bytes
        )
        if found is None:
            return None
        block = np.frombuffer(found, self._data_type.dtype).reshape(-1, *self._shape_c[1:])
        if self._transposed:
            return np.asarray(block.T[(*wanted[:-1], moved)])
        return np.asarray(block[(moved, *wanted[1:])])

    def _missing(self, item: BatchItem) -> GetResult:
        _, spec, _, where, _ = item
        self._out[where] = _fill_value(spec)
        return MISSING

    def _whole(self, item: BatchItem) -> np.ndarray | None:
        """Read a block the careful way; None where there is none."""
        place, spec, wanted, _, _ = item
        codec: Any = self._codec
        decoded = codec._decode_partial_sync(place, wanted, spec)  # noqa: SLF001 - as zarr does
        return None if decoded is None else np.asarray(decoded.as_numpy_array())


class _Writer:
    """Writes whole blocks of one dataset, truncated at the end of an axis.

    Parameters
    ----------
    dataset : LocalDataset
        Where the blocks are, and how they are presented.
    value : zarr.abc.buffer.NDBuffer
        Where the elements come from.
    """

    def __init__(self, dataset: LocalDataset, value: NDBuffer) -> None:
        self._dataset = dataset
        self._value = value
        self._attributes = dataset.view.dataset
        self._is_raw = isinstance(self._attributes.compression, Raw)
        self._in_c = dataset.view.axis_order == "C"

    @property
    def is_worth_threads(self) -> bool:
        """Whether the work outside of the interpreter is more than a thread costs."""
        return not self._is_raw or self._dataset.view.full_n_bytes >= _SMALL

    def can_write(self, item: BatchItem) -> bool:
        """Whether all of a block is given, so that nothing of it has to be read."""
        place, _, _, where, is_complete = item
        if not is_complete or not isinstance(where, tuple):
            return False
        runs = [part for part in where if _is_run(part)]
        shape = self._value.shape
        if shape and not (len(runs) == len(shape) and all(map(_ends_within, runs, shape))):
            return False  # to be broadcast, or an error
        return tuple(part.stop - part.start for part in runs) == self._dataset.extent(place.path)

    def write(self, items: Sequence[BatchItem]) -> list[None]:
        """Write some blocks."""
        for item in items:
            self._write_one(item)
        return []

    def _write_one(self, item: BatchItem) -> None:
        """Write one block, or remove it where it is all fill value and zarr leaves such out."""
        place, spec, _, where, _ = item
        is_scalar = self._value.shape == ()
        part = self._value if is_scalar else self._value[where]
        path = self._dataset.block_path(place.path)
        if not spec.config.write_empty_chunks and part.all_equal(_fill_value(spec)):
            files.remove(path)
            return
        array = part.as_numpy_array()
        if is_scalar:
            array = np.broadcast_to(array, self._dataset.extent(place.path))
        parts = encode_parts(
            array if self._in_c else array.T,
            self._attributes.data_type,
            self._attributes.compression,
        )
        files.write(path, *parts)


def _is_run(part: object) -> TypeGuard[slice]:
    return isinstance(part, slice) and part.step in (1, None)


def _ends_within(part: slice, n: int) -> bool:
    return bool(part.stop <= n)


def _selects_the_same(wanted: object, n: int, n_full: int) -> bool:
    """Whether what is wanted of ``n_full`` elements is the same of the first ``n`` of them."""
    if n == n_full:
        return True
    if isinstance(wanted, slice):
        return wanted.indices(n) == wanted.indices(n_full)
    chosen = np.asarray(wanted)  # a mask is as long as a full block
    return chosen.dtype != bool and bool(((chosen >= 0) & (chosen < n)).all())


def _fill_value(spec: ArraySpec) -> object:
    return 0 if spec.fill_value is None else spec.fill_value


register_pipeline(N5CodecPipeline)
