"""Write blocks in Python, one by one: the reference for the compiled kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from zarr.abc.buffer import NDBuffer
from zarr.buffer import cpu

from n5zarr.arrays.open_dataset import OpenDataset, dataset_at, fill_value_of, is_local
from n5zarr.codecs.block import decode_full, encode_parts, pad_or_truncate
from n5zarr.codecs.buffers import BufferLike
from n5zarr.codecs.shard import check_not_sharded, in_memory
from n5zarr.errors import ErrorsAt, N5BlockError
from n5zarr.fast.chunk_updates import merged
from n5zarr.fast.workers import share_out
from n5zarr.format.block import BlockHeader
from n5zarr.format.order import N5Tuple, to_c
from n5zarr.storage.requests import Check, Put, Remove, Steps, Update, Work, request_each
from n5zarr.storage.writing import FileWriter

if TYPE_CHECKING:
    from n5zarr._zarr import BatchItem


def write_blocks(
    writer: BlockWriter,
    items: Sequence[BatchItem],
    drop_axes: tuple[int, ...],
    n_workers: int,
) -> list[BatchItem]:
    """Write blocks of local files, on several threads if that is faster.

    Returns
    -------
    list
        The items that zarr has to write.
    """
    dataset = writer.dataset
    directory = dataset.directory

    def write(lot: Iterable[BatchItem]) -> list[BatchItem]:
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
        return share_out(write, items, n_workers if dataset.is_worth_threads else 1)


class _OutgrownError(Exception):
    """A block is larger than the array was when writing began."""


def _replace_block(
    file_writer: FileWriter,
    path: str,
    parts: tuple[bytes, BufferLike] | None,
    check: Check,
) -> bool:
    """Replace or remove a whole block; False if it has outgrown the known array."""
    try:
        if parts is None:
            file_writer.remove(path, check=check)
        else:
            file_writer.write(path, *parts, check=check)
    except _OutgrownError:
        return False
    return True


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

    def writes_whole(self, item: BatchItem, drop_axes: tuple[int, ...]) -> bool:
        """Whether the value has all elements of a block, so that no old ones need to be read.

        zarr may wrongly regard a block as complete after another program has enlarged it.
        """
        *_, value_selection, is_complete = item
        if drop_axes or not is_complete or not isinstance(value_selection, tuple):
            return False
        runs = [p for p in value_selection if isinstance(p, slice) and p.step in (1, None)]
        shape = self.value.shape
        is_within = all(part.stop <= n for part, n in zip(runs, shape, strict=False))
        if shape and not (len(runs) == len(shape) and is_within):
            return False  # needs broadcasting, or is an error
        extent = tuple(part.stop - part.start for part in runs)
        return extent == self._view.presented(
            self.dataset.extent(self.dataset.position(item[0].path))
        )

    def steps(self, item: BatchItem, drop_axes: tuple[int, ...]) -> Steps[object] | None:
        """Return the flow that writes the block of an item; None if it is not in the grid."""
        position = self.dataset.position(item[0].path)
        if not self.dataset.in_grid(position):
            return None
        key = self.dataset.key(position)
        if self.writes_whole(item, drop_axes):
            return _write_whole(key, partial(self.encode, item))
        # under a lock, so that writers of other parts lose nothing
        return request_each([Update(key, self.change(item, drop_axes), self._view.full_n_bytes)])

    def encode(self, item: BatchItem) -> tuple[bytes, BufferLike] | None:
        """Encode a whole block into its header and payload.

        None if it holds only the fill value, and zarr omits such chunks.
        """
        is_scalar = self.value.shape == ()
        part = self.value if is_scalar else self.value[item[3]]
        if not item[1].config.write_empty_chunks and part.all_equal(fill_value_of(item[1])):
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
        """Return a function that replaces a part of a block.

        Returns
        -------
        callable
            Takes and returns a block, header first, or None for a missing block.
        """
        *others, is_complete = item
        position = self.dataset.position(item[0].path)
        known = self.dataset.extent(position)
        attributes = self._attributes

        def decoded(old: bytes) -> NDBuffer:
            block = decode_full(
                memoryview(old), attributes.block_size, self._view.data_type,
                attributes.compression, fill_value_of(item[1]),
            )  # fmt: skip
            return cpu.NDBuffer(self._presented(block))

        def change(old: bytes | None) -> bytes | None:
            if old is not None:
                self._check_not_sharded(position, *in_memory(old))
            with ErrorsAt(partial(self.dataset.where, position)):
                extent = self._extent_now(position, old)
                now = (*others, is_complete and extent == known)
                chunk = merged(now, self.value, drop_axes, None if old is None else decoded(old))
                if chunk is None:
                    return None
                # what a full-size block has behind the end of the array stays
                is_full = old is not None and old.startswith(self._view.full_header)
                size = attributes.block_size if is_full and not now[-1] else extent
                block = pad_or_truncate(self._presented(chunk.as_numpy_array()), to_c(size))
                return b"".join(encode_parts(block, attributes.data_type, attributes.compression))

        return change

    def check(self, position: N5Tuple) -> Check:
        """Return a function that raises unless a stored block may be replaced or removed.

        It raises for a shard of Java N5 4, which holds other blocks too, and for a block that has
        outgrown the array; a full-size block cannot grow.
        """

        def check(size: int, read: Callable[[int, int], bytes]) -> None:
            self._check_not_sharded(position, size, read)
            extent = self.dataset.extent(position)
            if extent != self._attributes.block_size:
                start = read(0, len(self._view.full_header))
                if self._extent_now(position, start) != extent:
                    raise _OutgrownError

        return check

    def _check_not_sharded(
        self, position: N5Tuple, size: int, read: Callable[[int, int], BufferLike]
    ) -> None:
        attributes, where = self._attributes, partial(self.dataset.where, position)
        check_not_sharded(size, read, attributes.data_type, attributes.compression, where)

    def _is_outgrown(self, position: N5Tuple, start: bytes) -> bool:
        try:
            shape = BlockHeader.from_bytes(start).block_shape
        except N5BlockError:
            return False
        extent, block_size = self.dataset.extent(position), self._attributes.block_size
        return len(shape) == len(extent) and any(
            size > part < full for size, part, full in zip(shape, extent, block_size, strict=True)
        )

    def _extent_now(self, position: N5Tuple, old: bytes | None) -> N5Tuple:
        """Return the extent of the part of a block that is inside the dataset, under its lock.

        If the block is larger, another program may have resized the array since writing began, and
        written more of the block: then the document is read again.
        """
        dataset = self.dataset
        if old is not None and is_local(dataset.store) and self._is_outgrown(position, old):
            steps = dataset_at(dataset.store, dataset.path, self._view.zarr_format, anew=True)
            dataset = dataset.store.run(steps) or dataset
        return dataset.extent(position)

    def _presented(self, block: np.ndarray) -> np.ndarray:
        """Convert a block between C order and the axes of the array, in either direction."""
        return block if self._view.axis_order == "C" else block.T


def _write_whole(key: str, encode: Callable[[], tuple[bytes, BufferLike] | None]) -> Steps[None]:
    (parts,) = yield [Work(encode)]
    yield [Remove(key) if parts is None else Put(key, b"".join(parts))]
