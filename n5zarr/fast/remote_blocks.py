"""Read and write blocks that are not local files: on servers, in archives, in memory.

Requests as many blocks at a time as the store allows, and decodes or encodes each in a thread at
the same time, those of a box by the kernel. Memory holds only these blocks and the output.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, cast

import numpy as np
from zarr.abc.codec import GetResult

from n5zarr._zarr import MISSING, PRESENT, max_workers
from n5zarr.arrays.box import Box
from n5zarr.arrays.open_dataset import OpenDataset, dataset_at, fill_value_of
from n5zarr.codecs.buffers import BufferLike, Scratch
from n5zarr.fast import kernel
from n5zarr.fast.chunk_updates import run_flows
from n5zarr.fast.python_blocks import BlockReader
from n5zarr.fast.python_writing import BlockWriter
from n5zarr.fast.turns import Turns, turns_of
from n5zarr.fast.workers import waiting, work_together
from n5zarr.format.compression import Raw
from n5zarr.format.order import N5Tuple
from n5zarr.storage.ending import on_thread
from n5zarr.storage.requests import Ends, Get, Steps, get_each, request_each
from n5zarr.storage.threads import NoThreadError, run_each

if TYPE_CHECKING:
    from n5zarr._zarr import ArrayMetadata, BatchItem

_SLAB_BLOCK = 2**20  # bytes: from larger uncompressed blocks, a part is read alone

type Put = Callable[[int, memoryview | None, Scratch], GetResult | None]
"""Decodes the block of a number, which is missing if it is None; returns None if zarr has to."""


def _takes_parts(dataset: OpenDataset) -> bool:
    """Whether parts of blocks are read alone."""
    is_large = dataset.view.full_n_bytes >= _SLAB_BLOCK
    is_raw = isinstance(dataset.view.dataset.compression, Raw)
    return is_large and is_raw and not dataset.store.storage.has_cache


def _getting(dataset: OpenDataset) -> Callable[[str], BufferLike | None] | None:
    """Return the function that reads blocks without an event loop; None if one is needed."""
    return None if _takes_parts(dataset) else dataset.store.storage.get_waiting


def read_remote_box(
    dataset: OpenDataset,
    box: Box,
    out: np.ndarray,
    array: ArrayMetadata,
    items: Callable[[Sequence[N5Tuple]], Sequence[BatchItem]],
) -> list[N5Tuple] | None:
    """Read a box, many blocks at a time, without an event loop.

    Parameters
    ----------
    dataset : OpenDataset
        The blocks and their presentation.
    box : Box
        The box, not empty.
    out : numpy.ndarray
        Receives the elements; has the dataset's dtype in any byte order.
    array : ArrayMetadata
        The array.
    items : callable
        Makes the items of a batch for blocks of the box, if it has no steps.

    Returns
    -------
    list of tuple of int, or None
        Grid positions of the blocks that zarr has to read; None if it has to read all.
    """
    get, view = _getting(dataset), dataset.view
    if get is None or not kernel.can_do(dataset):
        return None
    positions = [view.grid_position(coords) for coords in product(*box.places(view.chunk_shape))]
    put_by_kernel = kernel.putting(dataset, box.start, out, fill_value_of(array), box.step)
    reader = BlockReader(dataset, out, ())

    def put(k: int, stored: memoryview | None, memory: Scratch) -> GetResult | None:
        if put_by_kernel(positions[k], stored, memory):
            return MISSING if stored is None else PRESENT
        if box.step is not None:
            return None
        (item,) = items([positions[k]])
        return reader.put_block(item, positions[k], stored, memory)

    results = _Reading(dataset, get, positions, put).wait()
    if results is None or (box.step is not None and None in results):
        return None
    dataset.store.run(dataset.checking(results))
    if PRESENT not in results:  # is the dataset still there?
        dataset.store.run(dataset_at(dataset.store, dataset.path, array.zarr_format, anew=True))
    return [place for place, result in zip(positions, results, strict=True) if result is None]


async def read_remote(
    reader: BlockReader, items: Sequence[BatchItem], *, is_little: bool
) -> list[GetResult | None]:
    """Read blocks into the output, many at a time.

    Parameters
    ----------
    reader : BlockReader
        Decodes the blocks.
    items : sequence
        Their chunks.
    is_little : bool
        Whether decoding all takes less time than passing them to a thread.

    Returns
    -------
    list
        For each item, whether its block is present; None for one that zarr has to read.
    """
    dataset = reader.dataset
    positions = [dataset.position(item[0].path) for item in items]

    def put(k: int, stored: memoryview | None, memory: Scratch) -> GetResult | None:
        return reader.put_block(items[k], positions[k], stored, memory)

    reading = _Reading(dataset, _getting(dataset), positions, put)

    async def read(k: int) -> None:
        position = positions[k]
        if dataset.in_grid(position):
            found = await _read_slab(reader, items[k], position)
            if found is None:
                (block,) = await dataset.store.run_async(get_each([dataset.key(position)]))
                await reading.add(k, block, is_little=is_little)
            else:
                reading.results[k] = found

    try:
        if not await reading.is_done(is_little=is_little):
            await run_each(
                read,
                len(items),
                dataset.store.concurrency,
                turns_of(dataset.store.storage, dataset.store.concurrency).on_loop(),
            )
    except BaseException:
        await on_thread(reading.end)
        raise
    return reading.results


class _Reading:
    """Blocks of a dataset that threads read and decode.

    Each thread waits for a block. Then it decodes it, and those that arrive meanwhile, or leaves it
    to threads that are decoding: more at a time would decode no faster, and wait for each other.
    """

    def __init__(
        self,
        dataset: OpenDataset,
        get: Callable[[str], BufferLike | None] | None,
        positions: Sequence[N5Tuple],
        put: Put,
    ) -> None:
        self.results: list[GetResult | None] = [None] * len(positions)
        self._get, self._put = cast("Callable[[str], BufferLike | None]", get), put
        self._needs_tasks = get is None
        self._is_in_memory = dataset.store.storage.supports_sync
        # with their keys, as a thread that has to work before it sends keeps the others waiting
        self._left = deque(
            (k, dataset.key(position))
            for k, position in enumerate(positions)
            if dataset.in_grid(position)
        )
        self._arrived: deque[tuple[int, BufferLike | None]] = deque()
        self._n_memories = max_workers() if dataset.is_worth_threads else 1
        self._memories: SimpleQueue[Scratch] = SimpleQueue()
        for _ in range(self._n_memories):
            self._memories.put(Scratch())
        self._decoders = asyncio.Semaphore(self._n_memories)
        self._has_ended = False
        self.turns = turns_of(dataset.store.storage, dataset.store.concurrency)
        self._n_threads = max(1, min(len(self._left), dataset.store.concurrency))

    @property
    def _work(self) -> tuple[Turns, Callable[[], bool], int, Callable[[], None]]:
        """The arguments of functions of `workers`; kept, they would keep the output."""
        return self.turns, self._take, self._n_threads, self._left.clear

    def _take(self) -> bool:
        """Read a block, and decode what has arrived; return whether blocks are left to read."""
        try:
            k, key = self._left.popleft()
        except IndexError:
            return False
        if self._get is not None:  # else tasks await blocks
            self._arrived.append((k, self._get(key)))
        self._decode()
        return bool(self._left)

    def _take_all(self) -> None:
        while self._take():
            pass

    def _decode(self) -> None:
        """Decode what has arrived, unless enough threads do; wait if too much has."""
        while self._arrived and not self._has_ended:
            try:
                memory = self._memories.get(block=len(self._arrived) > self._n_threads // 4)
            except Empty:  # those that have the memories look again after they give them back
                return
            try:
                while (block := self._next()) is not None:
                    k, value = block
                    stored = None if value is None else memoryview(value)
                    self.results[k] = self._put(k, stored, memory)
            finally:
                self._memories.put(memory)

    def _next(self) -> tuple[int, BufferLike | None] | None:
        """Take a block that has arrived; None if others have taken all, or nobody wants it."""
        with suppress(IndexError):
            return None if self._has_ended else self._arrived.popleft()
        return None

    def wait(self) -> list[GetResult | None] | None:
        """Wait for the results without an event loop; None if no thread can start."""
        try:
            if self._is_in_memory:
                work_together(self._take_all, self._n_memories, self._left.clear)
            else:
                told: SimpleQueue[None] = SimpleQueue()  # signal handlers run while this waits
                with waiting(*self._work, partial(told.put, None)):
                    told.get()
        except NoThreadError:
            return None
        except BaseException:
            self.end()
            raise
        return self.results

    async def is_done(self, *, is_little: bool) -> bool:
        """Read on threads, or a few blocks in memory at once; False if tasks have to read."""
        if self._needs_tasks:
            return False
        try:
            if not self._is_in_memory:
                loop = asyncio.get_running_loop()
                told: asyncio.Future[None] = loop.create_future()
                tell = partial(loop.call_soon_threadsafe, told.set_result, None)
                with waiting(*self._work, tell):
                    await asyncio.shield(told)  # which is told also after this is cancelled
            elif is_little:
                self.wait()
            else:
                await on_thread(self.wait)
        except NoThreadError:
            return False
        return True

    async def add(self, k: int, block: BufferLike | None, *, is_little: bool) -> None:
        """Decode a block that has arrived, and those that arrive while all decoders are busy."""
        self._arrived.append((k, block))
        if self._decoders.locked() and len(self._arrived) < self._n_threads:
            return
        async with self._decoders:
            while self._arrived:
                self._decode() if is_little else await on_thread(self._decode)

    def end(self) -> None:
        """Wait for blocks that are being decoded into the output, and let no others follow."""
        self._has_ended = True
        taken: list[Scratch] = []
        try:
            while len(taken) < self._n_memories:
                taken.append(self._memories.get())
        finally:  # for threads that wait for one, also if a signal handler raises
            for memory in taken:
                self._memories.put(memory)


async def _read_slab(reader: BlockReader, item: BatchItem, position: N5Tuple) -> GetResult | None:
    """Read only the needed rows of a large uncompressed block.

    None unless it has the header of a full-size block, and contains the rows.
    """
    dataset = reader.dataset
    slab = reader.slab(item) if _takes_parts(dataset) else None
    if slab is None or dataset.extent(position) != dataset.view.dataset.block_size:
        return None
    key, header = dataset.key(position), dataset.view.full_header
    rows = len(header) + slab.offset, slab.n_bytes
    # with a header of another size, the part may be outside the block, which is an error
    start, parts = await asyncio.gather(
        _read_start(dataset, key),
        dataset.store.run_async(request_each([Get(key, part=rows)])),
        return_exceptions=True,
    )
    if isinstance(start, BaseException) or isinstance(parts, BaseException):
        return None
    (part,) = parts
    if start is None or part is None or bytes(start) != header or len(part) != slab.n_bytes:
        return None
    return await on_thread(reader.put_slab, item, slab, part)


async def _read_start(dataset: OpenDataset, key: str) -> BufferLike | None:
    """Read the header of a large uncompressed block; None if the first one has another length.

    Then it may be a shard of Java N5 4. On some servers the length needs a request of its own.
    """
    header, n_bytes = dataset.view.full_header, dataset.view.full_n_bytes
    memory = dataset.store.container.memory
    if dataset.path in memory.without_trailer:
        (start,) = await dataset.store.run_async(request_each([Get(key, part=(0, len(header)))]))
        return cast("BufferLike | None", start)
    (ends,) = await dataset.store.run_async(request_each([Ends(key, len(header), 0)]))
    if ends is None or ends[0] != len(header) + n_bytes:
        return None
    memory.without_trailer.add(dataset.path)
    return cast("bytes", ends[1])[: len(header)]


async def write_remote(
    writer: BlockWriter, items: Sequence[BatchItem], drop_axes: tuple[int, ...]
) -> list[BatchItem]:
    """Write blocks, many at a time.

    Returns
    -------
    list
        The items that zarr has to write.
    """
    left: list[BatchItem] = []

    def flow(k: int) -> Steps[object]:
        steps = writer.steps(items[k], drop_axes)
        if steps is None:
            left.append(items[k])
        return steps or request_each(())

    await run_flows(writer.dataset.store, flow, len(items))
    return left
