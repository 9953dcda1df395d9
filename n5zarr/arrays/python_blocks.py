"""Read and write blocks in Python, one by one: the reference for the compiled kernel.

What costs is the work in Python per block. So each file is read once, by its exact size; its header
is compared instead of parsed; and its bytes are swapped while they are copied into the output. Each
thread takes several blocks at once. Small uncompressed blocks get no threads, because those would
only wait for each other on the interpreter's lock.
"""

from __future__ import annotations

import math
from collections import deque
from functools import partial
from itertools import chain
from operator import gt
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
from zarr.buffer import cpu

from n5zarr._zarr_private import MISSING, PRESENT, merge_and_encode_chunk
from n5zarr.arrays.batch import fill_value_of
from n5zarr.arrays.open_dataset import dataset_at, is_local
from n5zarr.arrays.workers import work_together
from n5zarr.codecs.block import decode_full, decode_numeric, encode_parts, pad_or_truncate
from n5zarr.codecs.buffers import scratch
from n5zarr.codecs.compress import decompress_reused
from n5zarr.errors import N5BlockError, N5Error
from n5zarr.format.block import BlockHeader
from n5zarr.format.compression import Raw
from n5zarr.format.order import to_c
from n5zarr.storage import files
from n5zarr.storage.requests import Put, Remove, Update, Work
from n5zarr.storage.writing import FileWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from zarr.abc.buffer import Buffer, NDBuffer

    from n5zarr._zarr_private import ArraySpec, BatchItem, GetResult
    from n5zarr.arrays.open_dataset import OpenDataset
    from n5zarr.codecs.buffers import BufferLike, Scratch
    from n5zarr.format.order import N5Tuple
    from n5zarr.storage.requests import Steps

__all__ = ["BlockReader", "BlockWriter", "read_blocks", "write_blocks"]

_LOTS_PER_WORKER = 4  # few enough to cost nothing, enough to share the work evenly
_SMALL_BLOCK = 2**17  # bytes: one thread copies smaller uncompressed blocks faster than two
_SLAB_BLOCK = 2**18  # bytes: from larger uncompressed blocks, a part is read alone


def read_blocks(
    reader: BlockReader, items: Sequence[BatchItem], n_workers: int
) -> list[GetResult | None]:
    """Read blocks of local files into the output, on several threads where that is faster.

    Returns
    -------
    list
        For each item, whether its block is present; None for one that is left to zarr's own way.
    """
    return _share_out(reader.read, items, n_workers if reader.is_worth_threads else 1)


def write_blocks(
    writer: BlockWriter,
    items: Sequence[BatchItem],
    drop_axes: tuple[int, ...],
    n_workers: int,
) -> list[BatchItem]:
    """Write blocks of local files, on several threads where that is faster.

    Returns
    -------
    list
        The items that are left to zarr's own way.
    """
    dataset = writer.dataset
    directory = dataset.directory

    def write(lot: Sequence[BatchItem]) -> list[BatchItem]:
        left = []
        for item in lot:
            position = dataset.position(item[0].path)
            path = directory + "/".join(map(str, position))
            if not dataset.in_grid(position):
                left.append(item)
            elif not (
                writer.writes_whole(item, drop_axes)
                and _replace_block(file_writer, path, writer.encode(item), writer.check(position))
            ):
                file_writer.update(path, writer.change(item, drop_axes))
        return left

    # one for all blocks: it syncs each directory once
    with FileWriter(dataset.durability, dataset.store.container.warn) as file_writer:
        return _share_out(write, items, n_workers if writer.is_worth_threads else 1)


class _OutgrownError(Exception):
    """A block is larger than the array was when writing began."""


def _replace_block(
    file_writer: FileWriter,
    path: str,
    parts: tuple[bytes, BufferLike] | None,
    check: Callable[[bytes], None],
) -> bool:
    """Replace or remove a whole block; False if it has outgrown what is known of the array."""
    try:
        if parts is None:
            file_writer.remove(path, check=check)
        else:
            file_writer.write(path, *parts, check=check)
    except _OutgrownError:
        return False
    return True


def _share_out[Item, Result](
    work: Callable[[Sequence[Item]], list[Result]], items: Sequence[Item], n_workers: int
) -> list[Result]:
    """Call a function with lots of items, on threads if there are several workers.

    Returns
    -------
    list
        The results, in the order of the items.
    """
    if n_workers < 2 or len(items) < 2:
        return work(items)
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
    return list(chain.from_iterable(done[first] for first in sorted(done)))


class BlockReader:
    """Decodes blocks of one dataset, and puts what is selected of them into an output.

    Parameters
    ----------
    dataset : OpenDataset
        The dataset.
    out : numpy.ndarray
        The output for the elements.
    drop_axes : tuple of int
        Axes of the selections that the output does not have.
    """

    def __init__(self, dataset: OpenDataset, out: np.ndarray, drop_axes: tuple[int, ...]) -> None:
        view = dataset.view
        self.dataset = dataset
        self.out = out
        self.drop_axes = drop_axes
        self._header = view.full_header
        self._n_bytes = view.full_n_bytes
        self._compression = view.dataset.compression
        self._data_type = view.data_type
        self._shape_c = to_c(view.dataset.block_size)
        self._shape = view.chunk_shape
        self._n_elements = math.prod(self._shape_c)
        self._transposed = view.axis_order == "F"
        self.is_raw = isinstance(self._compression, Raw)
        self.has_slabs = self.is_raw and self._n_bytes >= _SLAB_BLOCK

    @property
    def is_worth_threads(self) -> bool:
        """Whether a block takes more work outside of the interpreter than a thread costs."""
        return not self.is_raw or self._n_bytes >= _SMALL_BLOCK

    def read(self, items: Sequence[BatchItem]) -> list[GetResult | None]:
        """Read blocks of local files into the output; see :func:`read_blocks`."""
        directory = self.dataset.directory
        with scratch() as memory:
            return [self._read_one(item, directory, memory) for item in items]

    def _read_one(self, item: BatchItem, directory: str, memory: Scratch) -> GetResult | None:
        position = self.dataset.position(item[0].path)
        if not self.dataset.in_grid(position):
            return None
        path = directory + "/".join(map(str, position))
        slab = self.slab(item) if self.has_slabs else None
        if slab is not None:
            n = self._n_bytes
            rows = files.read_part(path, self._header, slab.offset, slab.n_bytes, n)
            if rows is not None:
                return self.put_slab(item, slab, rows)
        stored = files.read_reused(path, memory)
        try:
            return self.put_block(item, position, stored, memory)
        except N5BlockError:
            # perhaps half written, unnoticed: the time of the file is too coarse
            stored = files.read_reused(path, memory, settled=True)
            return self.put_block(item, position, stored, memory)

    def put_block(
        self, item: BatchItem, position: N5Tuple, stored: memoryview | None, memory: Scratch
    ) -> GetResult | None:
        """Decode a block, and put what is selected of it into the output.

        Parameters
        ----------
        item : tuple
            The chunk of the block.
        position : tuple of int
            Grid position of the block.
        stored : memoryview or None
            The block, header first; None where it is missing: N5 spec, "File-system specification",
            item 6.
        memory : Scratch
            Memory to decode in.

        Returns
        -------
        dict or None
            Whether the block is present; None if its size is not that of its grid position.

        Raises
        ------
        N5BlockError
            The block is damaged or does not fit the dataset.
        """
        if stored is None:
            self.out[item[3]] = fill_value_of(item)
            return MISSING
        try:
            part = self._select(stored, item, position, memory)
        except N5Error as err:
            raise err.located(self.dataset.where(position)) from err.__cause__
        return None if part is None else self.put(item, part)

    def put(self, item: BatchItem, part: np.ndarray) -> GetResult:
        """Put elements that are selected from a block into the output."""
        self.out[item[3]] = part.squeeze(axis=self.drop_axes) if self.drop_axes else part
        return PRESENT

    def _select(
        self, stored: memoryview, item: BatchItem, position: N5Tuple, memory: Scratch
    ) -> np.ndarray | None:
        """Decode a block and select from it; None if its size is not that of its grid position."""
        selection = item[2]
        n_header = len(self._header)
        if stored[:n_header].tobytes() == self._header:
            payload = stored[n_header:]
            elements = decompress_reused(payload, self._n_bytes, self._compression, memory)
            flat = np.frombuffer(elements, self._data_type.dtype, self._n_elements)
            return np.asarray(self._presented(flat.reshape(self._shape_c))[selection])
        block = decode_numeric(stored, len(self._shape_c), self._data_type, self._compression)
        if block.shape != to_c(self.dataset.extent(position)):  # dataset replaced, perhaps
            return None
        if not all(map(_selects_the_same, selection, self._presented(block).shape, self._shape)):
            block = pad_or_truncate(block, self._shape_c, fill_value_of(item))
        return np.asarray(self._presented(block)[selection])

    def _presented(self, block: np.ndarray) -> np.ndarray:
        """Return a block in C order with the axes of the array."""
        return block.T if self._transposed else block

    def slab(self, item: BatchItem) -> Slab | None:
        """Return the slab of a full-size uncompressed block that holds what is selected.

        None if that is more than half of the block.
        """
        selection = item[2]
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
        rest = (*selection[:-1], moved) if self._transposed else (moved, *selection[1:])
        return Slab(start * row, (stop - start) * row, rest)

    def put_slab(self, item: BatchItem, slab: Slab, rows: BufferLike) -> GetResult:
        """Put what is selected of a slab into the output."""
        block = np.frombuffer(rows, self._data_type.dtype).reshape(-1, *self._shape_c[1:])
        return self.put(item, np.asarray(self._presented(block)[slab.selection]))


class Slab(NamedTuple):
    """Some rows of a full-size uncompressed block, along its slowest axis.

    Parameters
    ----------
    offset, n_bytes : int
        Where the rows are in the payload, in bytes.
    selection : tuple
        What is selected of the rows.
    """

    offset: int
    n_bytes: int
    selection: Any


class BlockWriter:
    """Writes blocks of one dataset, truncated at the end of an axis.

    N5 spec, "File-system specification", item 8: blocks at the end of an axis may be smaller.

    Parameters
    ----------
    dataset : OpenDataset
        The dataset.
    value : zarr.abc.buffer.NDBuffer
        The elements to write.
    """

    def __init__(self, dataset: OpenDataset, value: NDBuffer) -> None:
        self.dataset = dataset
        self.value = value
        self._view = dataset.view
        self._attributes = dataset.view.dataset
        self._is_raw = isinstance(self._attributes.compression, Raw)

    @property
    def is_worth_threads(self) -> bool:
        """Whether a block takes more work outside of the interpreter than a thread costs."""
        return not self._is_raw or self._view.full_n_bytes >= _SMALL_BLOCK

    def writes_whole(self, item: BatchItem, drop_axes: tuple[int, ...]) -> bool:
        """Whether the value holds a whole block, so that nothing of it has to be read first.

        zarr may think so of a block that others have made larger.
        """
        *_, value_selection, is_complete = item
        if drop_axes or not is_complete or not isinstance(value_selection, tuple):
            return False
        runs = [part for part in value_selection if _is_run(part)]
        shape = self.value.shape
        if shape and not (len(runs) == len(shape) and all(map(_ends_within, runs, shape))):
            return False  # to be broadcast, or an error
        extent = tuple(part.stop - part.start for part in runs)
        return extent == self._view.presented(
            self.dataset.extent(self.dataset.position(item[0].path))
        )

    def steps(self, item: BatchItem, drop_axes: tuple[int, ...]) -> Steps[None] | None:
        """Return the flow that writes the block of an item; None if it is not in the grid."""
        position = self.dataset.position(item[0].path)
        if not self.dataset.in_grid(position):
            return None
        key = self.dataset.key(position)
        if self.writes_whole(item, drop_axes):
            return _write_whole(key, partial(self.encode, item))
        return _write_part(key, self.change(item, drop_axes))

    def encode(self, item: BatchItem) -> tuple[bytes, BufferLike] | None:
        """Encode a whole block into its header and payload.

        None if it holds only the fill value, and zarr omits such chunks.
        """
        is_scalar = self.value.shape == ()
        part = self.value if is_scalar else self.value[item[3]]
        if not item[1].config.write_empty_chunks and part.all_equal(fill_value_of(item)):
            return None
        array = part.as_numpy_array()
        if is_scalar:
            extent = self.dataset.extent(self.dataset.position(item[0].path))
            array = np.broadcast_to(array, self._view.presented(extent))
        return encode_parts(
            self._presented(array), self._attributes.data_type, self._attributes.compression
        )

    def change(
        self, item: BatchItem, drop_axes: tuple[int, ...]
    ) -> Callable[[bytes | None], bytes | None]:
        """Return a function from a block to the same block with a part of it written.

        Returns
        -------
        callable
            Takes and returns a block, header first, or None for none.
        """
        _, spec, selection, value_selection, is_complete = item
        position = self.dataset.position(item[0].path)
        extent = known = self.dataset.extent(position)

        def decode(stored: Buffer, _: ArraySpec) -> NDBuffer:
            block = memoryview(stored.as_numpy_array())
            attributes = self._attributes
            chunk = decode_full(
                block, attributes.block_size, self._view.data_type, attributes.compression,
                fill_value_of(item),
            )  # fmt: skip
            return spec.prototype.nd_buffer.from_numpy_array(self._presented(chunk))

        def encode(chunk: NDBuffer, _: ArraySpec) -> Buffer:
            full = self._presented(chunk.as_numpy_array())
            block = pad_or_truncate(full, to_c(extent))
            parts = encode_parts(block, self._attributes.data_type, self._attributes.compression)
            return cpu.Buffer.from_bytes(b"".join(parts))

        def change(old: bytes | None) -> bytes | None:
            nonlocal extent
            try:
                extent = self._extent_now(position, old)
                new = merge_and_encode_chunk(
                    None if old is None else cpu.Buffer.from_bytes(old),
                    self.value,
                    chunk_spec=spec,
                    chunk_selection=selection,
                    out_selection=value_selection,
                    is_complete=is_complete and extent == known,
                    drop_axes=drop_axes,
                    decode=decode,
                    encode=encode,
                )
            except N5Error as err:
                raise err.located(self.dataset.where(position)) from err.__cause__
            return None if new is None else new.to_bytes()

        return change

    def check(self, position: N5Tuple) -> Callable[[bytes], None]:
        """Return a function that raises if the block that begins so has outgrown the array."""

        def check(start: bytes) -> None:
            if self._is_outgrown(position, start):
                raise _OutgrownError

        return check

    def _is_outgrown(self, position: N5Tuple, start: bytes) -> bool:
        extent = self.dataset.extent(position)
        if extent == self._attributes.block_size:
            return False
        try:
            shape = BlockHeader.from_bytes(start).block_shape
        except N5BlockError:
            return False
        return any(map(gt, shape, extent))

    def _extent_now(self, position: N5Tuple, old: bytes | None) -> N5Tuple:
        """Return the extent of the part of a block that is inside the dataset, under its lock.

        Where the block is larger than that, others may have resized the array since writing began,
        and written more of the block: the document is read again.
        """
        dataset = self.dataset
        if old is not None and is_local(dataset.store) and self._is_outgrown(position, old):
            steps = dataset_at(dataset.store, dataset.path, self._view.zarr_format, anew=True)
            dataset = dataset.store.run_sync(steps) or dataset
        return dataset.extent(position)

    def _presented(self, block: np.ndarray) -> np.ndarray:
        """Convert a block in C order into one with the axes of the array, or back."""
        return block if self._view.axis_order == "C" else block.T


def _write_whole(key: str, encode: Callable[[], tuple[bytes, BufferLike] | None]) -> Steps[None]:
    (parts,) = yield [Work(encode)]
    yield [Remove(key) if parts is None else Put(key, b"".join(parts))]


def _write_part(key: str, change: Callable[[bytes | None], bytes | None]) -> Steps[None]:
    """Replace a block under a lock, so that other writers of other parts lose nothing."""
    yield [Update(key, change)]


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
