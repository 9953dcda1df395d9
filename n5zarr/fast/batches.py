"""Read and write the blocks of a dataset, many at a time, for zarr's pipelines.

The blocks of a batch of chunks go to the compiled kernel, or are read from a server concurrently,
without making chunks for zarr's codecs. The logger of this module logs at DEBUG which blocks go to
zarr's codecs, and why.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
from zarr.abc.buffer import NDBuffer
from zarr.abc.codec import CodecPipeline, GetResult

from n5zarr._zarr import PRESENT, max_workers, without_awaiting
from n5zarr.arrays.box import BatchBox
from n5zarr.arrays.open_dataset import OpenDataset, dataset_at, fill_value_of, is_local
from n5zarr.arrays.placing import fill, host_batch, host_buffer
from n5zarr.errors import N5Error
from n5zarr.fast import kernel
from n5zarr.fast.chunk_updates import update_chunks
from n5zarr.fast.python_blocks import BlockReader, read_blocks
from n5zarr.fast.python_writing import BlockWriter, write_blocks
from n5zarr.fast.remote_blocks import read_remote, write_remote
from n5zarr.fast.whole_blocks import can_read_whole, read_whole
from n5zarr.fast.workers import share_out
from n5zarr.format.compression import Bzip2, Jpeg, Lzma, Raw, Xz
from n5zarr.format.order import N5Tuple
from n5zarr.storage.ending import entering, on_thread
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.element import Content

if TYPE_CHECKING:
    from n5zarr._zarr import ArrayMetadata, BatchItem

_log = logging.getLogger(__name__)

_FEW_BYTES = 2**18  # largest number to decode on zarr's event loop, without a thread
_FEW_RAW_BYTES = 2**20  # the same, for bytes that are only copied
_FEW_SLOW_BYTES = 2**14  # the same, for compressions of 30 MB/s
_LARGE = 2**17  # bytes of a block that takes far longer to decode than Python takes for it


class Pipeline(Protocol):
    """The pipeline of an array; see :class:`~n5zarr.fast.pipeline.N5CodecPipeline`."""

    @property
    def metadata(self) -> ArrayMetadata:
        """The metadata of the array."""

    @property
    def zarr_pipeline(self) -> CodecPipeline:
        """A pipeline of zarr's own for the array."""

    @property
    def n_names(self) -> int:
        """Number of names in the key of a chunk after the path of the array."""


@dataclass(frozen=True)
class Batches:
    """Reads and writes batches of chunks of one array.

    Parameters
    ----------
    pipeline : Pipeline
        The pipeline of the array.
    """

    pipeline: Pipeline

    # ------------------------------------------------------------------ reading

    async def read(
        self,
        batch_info: Iterable[BatchItem],
        out: NDBuffer,
        drop_axes: tuple[int, ...] = (),
    ) -> tuple[GetResult, ...]:
        """Read chunks into a buffer, as ``CodecPipeline.read``."""
        batch = host_batch(batch_info)
        on_host = host_buffer(out, copy=False)
        results = await self._read(batch, on_host, drop_axes)
        if on_host is not out:
            fill(out, on_host)
        if batch and not any(result["status"] == PRESENT["status"] for result in results):
            await self._check_there(batch)
        return results

    async def _check_there(self, batch: Sequence[BatchItem]) -> None:
        """Raise if a dataset is gone of which no block was found.

        Storage with stamps has told so before; elsewhere only a request for the document does, so
        it is not made if there are blocks.
        """
        store: N5Store = batch[0][0].store
        if not is_local(store):
            find = dataset_at(
                store, self._path_of(batch[0]), self.pipeline.metadata.zarr_format, anew=True
            )
            await store.run_async(find)

    async def _read(
        self, batch: Sequence[BatchItem], out: NDBuffer, drop_axes: tuple[int, ...]
    ) -> tuple[GetResult, ...]:
        dataset = await self._dataset(batch)
        if dataset is None:
            return await self._read_carefully(batch, out, drop_axes)
        array = out.as_numpy_array()
        reader = BlockReader(dataset, array, drop_axes)
        if not is_local(dataset.store):
            place = _place(dataset, batch, array, drop_axes)
            if place is not None:
                put = kernel.putting(dataset, *place, fill_value_of(batch[0][1]))
                reader = BlockReader(dataset, array, drop_axes, put)
            is_little = _is_little(dataset, batch, out)
            results = await read_remote(reader, batch, is_little=is_little)
            await dataset.store.run_async(dataset.checking(results))
        elif _is_little(dataset, batch, out):
            # cheaper than passing the work to a thread; the loop must not wait for threads, since a
            # finalizer in a thread may wait for the loop
            results = _read_local(reader, batch, 1)
        else:
            results = await on_thread(_read_local, reader, batch, max_workers())
        return await self._read_left(batch, results, out, drop_axes)

    async def _read_left(
        self,
        batch: Sequence[BatchItem],
        results: Sequence[GetResult | None],
        out: NDBuffer,
        drop_axes: tuple[int, ...],
    ) -> tuple[GetResult, ...]:
        """Read the chunks without a result in zarr's own way, and return all results."""
        if None not in results:
            return cast("tuple[GetResult, ...]", tuple(results))
        left = [item for item, result in zip(batch, results, strict=True) if result is None]
        _log.debug("%s: %d blocks left to zarr's codecs", left[0][0], len(left))
        others = iter(await self._read_carefully(left, out, drop_axes))
        return tuple(next(others) if result is None else result for result in results)

    async def _read_carefully(
        self, batch: Sequence[BatchItem], out: NDBuffer, drop_axes: tuple[int, ...]
    ) -> tuple[GetResult, ...]:
        """Read chunks in zarr's own way; if a codec refuses one, name its block."""
        try:
            return await self._by_zarr("read", batch, out, drop_axes)
        except N5Error:
            raise
        except Exception:
            for store_path, *_ in batch:
                store: N5Store = store_path.store
                await store.run_async(store.container.check_chunk(store_path.path))
            raise

    # ------------------------------------------------------------------ writing

    async def write(
        self,
        batch_info: Iterable[BatchItem],
        value: NDBuffer,
        drop_axes: tuple[int, ...] = (),
    ) -> None:
        """Write chunks from a buffer, as ``CodecPipeline.write``."""
        batch = host_batch(batch_info)
        value = host_buffer(value, copy=True)
        with entering(batch[0][0].store.container.memory.call if batch else None):
            dataset = await self._dataset(batch, to_write=True)
            if dataset is None:
                await self._write_coded(batch, value, drop_axes)
                return
            writer = BlockWriter(dataset, value)
            if is_local(dataset.store):
                left = await on_thread(_write_local, writer, batch, drop_axes)
            else:
                left = await write_remote(writer, batch, drop_axes)
            if left:
                _log.debug("%s: %d blocks left to zarr's codecs", left[0][0], len(left))
                await self._by_zarr("write", left, value, drop_axes)

    async def _write_coded(
        self, batch: Sequence[BatchItem], value: NDBuffer, drop_axes: tuple[int, ...]
    ) -> None:
        """Write chunks through zarr's codecs; parts of chunks under the lock of their block."""
        is_able = not any(item[0].read_only for item in batch[:1])
        # zarr may regard a chunk at the end as complete after another program has enlarged it; it
        # would remove a whole chunk of background, with the other labels of multisets
        is_part = [is_able and (not _covers_chunk(i) or self._has_labels(i)) for i in batch]
        parts = [item for item, is_one in zip(batch, is_part, strict=True) if is_one]
        if parts:
            await update_chunks(self.pipeline.zarr_pipeline, parts, value, drop_axes)
        whole = [item for item, is_one in zip(batch, is_part, strict=True) if not is_one]
        if whole:
            await self._by_zarr("write", whole, value, drop_axes)

    async def _by_zarr(
        self, name: str, items: Sequence[BatchItem], array: NDBuffer, drop_axes: tuple[int, ...]
    ) -> tuple[GetResult, ...]:
        """Read or write chunks through zarr's codecs; return the results of reading.

        Without awaiting, zarr goes on to the end of a batch that is cancelled.
        """
        pipeline = self.pipeline.zarr_pipeline
        do = without_awaiting(pipeline, f"{name}_sync")
        if do is None or not items or not items[0][0].store.storage.supports_sync:
            return await getattr(pipeline, name)(items, array, drop_axes)  # type: ignore[no-any-return]

        def work(lot: Iterable[BatchItem]) -> list[GetResult]:
            return [result for item in lot for result in do([item], array, drop_axes) or ()]

        return tuple(await on_thread(share_out, work, items, max_workers()))

    # ------------------------------------------------------------------ the dataset

    async def _dataset(
        self, batch: Sequence[BatchItem], *, to_write: bool = False
    ) -> OpenDataset | None:
        """Return the dataset of a batch; None if zarr's own pipeline has to handle it."""
        if not batch:
            return None
        store_path, spec = batch[0][:2]
        store: N5Store = store_path.store
        path = self._path_of(batch[0])
        if to_write and store.read_only:
            return None
        find = partial(dataset_at, store, path, self.pipeline.metadata.zarr_format)
        if is_local(store):
            dataset = store.run(find(anew=to_write))
        else:
            dataset = await store.run_async(find())
            if to_write and dataset is not None and not _has_only_full_blocks(dataset, batch):
                dataset = await store.run_async(find(anew=True))
        dtype = spec.dtype.to_native_dtype()
        if dataset is not None and dataset.holds(spec.shape, dtype):
            return dataset
        _log.debug("%s: left to zarr's codecs: blocks hold other elements", store_path)
        return None

    def _has_labels(self, item: BatchItem) -> bool:
        """Whether the chunks of an array are the labels of multisets."""
        view = item[0].store.container.memory.dataset(self._path_of(item))
        return view is not None and view.content is Content.LABELS

    def _path_of(self, item: BatchItem) -> str:
        """Return the path of the array of a chunk."""
        return "/".join(item[0].path.split("/")[: -self.pipeline.n_names])


def _covers_chunk(item: BatchItem) -> bool:
    """Whether an item writes a whole full-size chunk."""
    _, spec, selection, _, is_complete = item
    sizes = [part.stop - part.start for part in selection if isinstance(part, slice)]
    return is_complete and sizes == list(spec.shape)


def _has_only_full_blocks(dataset: OpenDataset, batch: Sequence[BatchItem]) -> bool:
    """Whether all blocks are written whole, even if another program has enlarged the dataset."""
    block_size = dataset.view.dataset.block_size
    return all(
        item[4] and dataset.extent(dataset.position(item[0].path)) == block_size for item in batch
    )


def _is_little(dataset: OpenDataset, batch: Sequence[BatchItem], out: NDBuffer) -> bool:
    """Whether reading takes less time than passing it to a thread."""
    compression = dataset.view.dataset.compression
    if isinstance(compression, Raw):
        return bool(math.prod(out.shape) * out.dtype.itemsize <= _FEW_RAW_BYTES)
    is_slow = isinstance(compression, Bzip2 | Jpeg | Lzma | Xz)
    n_bytes = len(batch) * dataset.view.full_n_bytes
    return n_bytes <= (_FEW_SLOW_BYTES if is_slow else _FEW_BYTES)


def _read_local(
    reader: BlockReader, batch: Sequence[BatchItem], n_workers: int
) -> list[GetResult | None]:
    """Read blocks of local files with the kernel, and those that it leaves in Python.

    Returns
    -------
    list
        For each item, whether its block is present; None for one that zarr has to read.
    """
    dataset = reader.dataset
    reports_missing = not batch[0][1].config.read_missing_chunks  # which the kernel does not
    is_able = not reports_missing and _can_do(dataset, reader.out)
    place = _place(dataset, batch, reader.out, reader.drop_axes) if is_able else None
    if place is not None:
        odd = kernel.read_box(dataset, *place, fill_value_of(batch[0][1]), n_workers)
        left = _numbers(dataset, batch, set(odd))
    elif is_able and _has_small_blocks(reader):
        left = _read_whole(reader, batch, n_workers)
    else:
        _log.debug("%s: %d blocks left to Python: no box, nor small blocks", dataset, len(batch))
        return read_blocks(reader, batch, n_workers)
    results: list[GetResult | None] = [PRESENT] * len(batch)
    again = read_blocks(reader, [batch[k] for k in left], n_workers) if left else ()
    for k, result in zip(left, again, strict=True):
        results[k] = result
    return results


def _numbers(
    dataset: OpenDataset, batch: Sequence[BatchItem], positions: set[N5Tuple]
) -> list[int]:
    """Return the numbers of the items whose blocks have these grid positions."""
    if not positions:  # most often: no key is parsed
        return []
    return [k for k, item in enumerate(batch) if dataset.position(item[0].path) in positions]


def _has_small_blocks(reader: BlockReader) -> bool:
    """Whether the kernel decodes whole blocks faster than Python reads parts of them."""
    is_large = reader.dataset.view.full_n_bytes > _LARGE or reader.has_slabs
    return not is_large and can_read_whole(reader.dataset)


def _read_whole(reader: BlockReader, batch: Sequence[BatchItem], n_workers: int) -> list[int]:
    """Select anything from whole blocks, decoded by the kernel; return the items that it leaves."""
    dataset, fill_value = reader.dataset, fill_value_of(batch[0][1])
    positions = [dataset.position(item[0].path) for item in batch]
    left = set(range(len(batch)))
    for numbers, chunks in read_whole(dataset, positions, reader.out.dtype, fill_value, n_workers):
        for k, chunk in zip(numbers, chunks, strict=True):
            reader.put(batch[k], np.asarray(chunk[batch[k][2]]))
            left.discard(k)
    return sorted(left)


def _place(
    dataset: OpenDataset, batch: Sequence[BatchItem], out: np.ndarray, drop_axes: tuple[int, ...]
) -> tuple[tuple[int, ...], np.ndarray] | None:
    """Return the first element of the box of a batch, and its part of the output.

    None if the batch is no box, or the kernel cannot read it.
    """
    box = None if drop_axes else _box(dataset, batch, out)
    part = None if box is None else box.within(out)
    return None if box is None or part is None else (box.start, part)


def _write_local(
    writer: BlockWriter, batch: Sequence[BatchItem], drop_axes: tuple[int, ...]
) -> list[BatchItem]:
    """Write blocks of local files: those of a box with the kernel, all others in Python.

    Returns
    -------
    list
        The items that zarr has to write.
    """
    dataset, array = writer.dataset, writer.value.as_numpy_array()
    box = None if drop_axes else _box(dataset, batch, array)
    part = None
    if box is not None:
        part = np.broadcast_to(array, box.shape) if array.shape == () else box.within(array)
    if box is None or part is None:
        _log.debug("%s: %d blocks left to Python: no box", dataset, len(batch))
    else:
        fill_value, keep_empty = fill_value_of(batch[0][1]), batch[0][1].config.write_empty_chunks
        left = kernel.write_box(dataset, box.start, part, fill_value, keep_empty=keep_empty)
        batch = [batch[k] for k in _numbers(dataset, batch, set(left))]
    return write_blocks(writer, batch, drop_axes, max_workers())


def _box(dataset: OpenDataset, batch: Sequence[BatchItem], array: np.ndarray) -> BatchBox | None:
    """Return the box of a batch; None if the kernel cannot read into or write from an array."""
    return kernel.box_of_batch(batch, dataset.view.chunk_shape) if _can_do(dataset, array) else None


def _can_do(dataset: OpenDataset, array: np.ndarray) -> bool:
    """Whether the kernel can read into or write from an array."""
    native = dataset.view.data_type.dtype.newbyteorder("=")
    return kernel.can_do(dataset) and array.dtype.newbyteorder("=") == native
