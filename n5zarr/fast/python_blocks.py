"""Read blocks in Python, one by one: the reference for the compiled kernel, and for what it leaves.

The work in Python per block dominates the time. So each file is read once, by its exact size; its
header is compared instead of parsed; and its bytes are swapped while they are copied into the
output. Each thread takes several blocks at once. Small uncompressed blocks get no threads, since
threads would only wait for each other on the interpreter's lock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from zarr.abc.codec import GetResult

from n5zarr._zarr import MISSING, PRESENT
from n5zarr.arrays.open_dataset import OpenDataset, fill_value_of
from n5zarr.codecs.block import decode_numeric, pad_or_truncate
from n5zarr.codecs.buffers import BufferLike, Scratch, scratch
from n5zarr.codecs.compress import decompress_reused
from n5zarr.codecs.shard import check_no_shard
from n5zarr.errors import N5BlockError, N5Error
from n5zarr.fast.workers import share_out
from n5zarr.format.compression import Raw
from n5zarr.format.order import N5Tuple, to_c
from n5zarr.storage import files

if TYPE_CHECKING:
    from n5zarr._zarr import BatchItem

type PutByKernel = Callable[[N5Tuple, memoryview | None, Scratch], bool]
"""Decodes a block of a box, which is missing if it is None; returns False if it is odd."""

_SLAB_BLOCK = 2**18  # bytes: from larger uncompressed blocks, a part is read alone


def read_blocks(
    reader: BlockReader, items: Sequence[BatchItem], n_workers: int
) -> list[GetResult | None]:
    """Read blocks of local files into the output, on several threads if that is faster.

    Returns
    -------
    list
        For each item, whether its block is present; None for one that zarr has to read.
    """
    n_workers = n_workers if reader.dataset.is_worth_threads else 1
    results = share_out(reader.read, items, n_workers)
    if MISSING in results and PRESENT not in results:
        reader.dataset.check_missing()
    return results


class BlockReader:
    """Decodes blocks of one dataset, and copies the selected elements into an output.

    Parameters
    ----------
    dataset : OpenDataset
        The dataset.
    out : numpy.ndarray
        The output for the elements.
    drop_axes : tuple of int
        Axes of the selections that the output does not have.
    put_by_kernel : callable, optional
        Decodes a block of a box that is not odd; see :func:`n5zarr.fast.kernel.putting`.
    """

    def __init__(
        self,
        dataset: OpenDataset,
        out: np.ndarray,
        drop_axes: tuple[int, ...],
        put_by_kernel: PutByKernel | None = None,
    ) -> None:
        view = dataset.view
        self.dataset = dataset
        self.out = out
        self.drop_axes = drop_axes
        self._put_by_kernel = put_by_kernel
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

    def read(self, items: Iterable[BatchItem]) -> list[GetResult | None]:
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
            # the file may be half written, unnoticed because its time is too coarse
            stored = files.read_reused(path, memory, settled=True)
            return self.put_block(item, position, stored, memory)

    def put_block(
        self, item: BatchItem, position: N5Tuple, stored: memoryview | None, memory: Scratch
    ) -> GetResult | None:
        """Decode a block, and copy its selected elements into the output.

        Parameters
        ----------
        item : tuple
            The chunk of the block.
        position : tuple of int
            Grid position of the block.
        stored : memoryview or None
            The block, header first, or None if it is missing: N5 spec, "File-system
            specification", item 6.
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
        if self._put_by_kernel is not None and self._put_by_kernel(position, stored, memory):
            return MISSING if stored is None else PRESENT
        if stored is None:
            self.out[item[3]] = fill_value_of(item[1])
            return MISSING
        try:
            part = self._select(stored, item, position, memory)
        except N5Error as err:
            raise err.located(self.dataset.where(position)) from err.__cause__
        return None if part is None else self.put(item, part)

    def put(self, item: BatchItem, part: np.ndarray) -> GetResult:
        """Copy selected elements of a block into the output."""
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
            if not self.is_raw or len(payload) != self._n_bytes:
                check_no_shard(stored, self._data_type, self._compression)
            elements = decompress_reused(payload, self._n_bytes, self._compression, memory)
            flat = np.frombuffer(elements, self._data_type.dtype, self._n_elements)
            return np.asarray(self._presented(flat.reshape(self._shape_c))[selection])
        block = decode_numeric(stored, len(self._shape_c), self._data_type, self._compression)
        if block.shape != to_c(self.dataset.extent(position)):  # dataset replaced, perhaps
            return None
        if not all(map(_selects_the_same, selection, self._presented(block).shape, self._shape)):
            block = pad_or_truncate(block, self._shape_c, fill_value_of(item[1]))
        return np.asarray(self._presented(block)[selection])

    def _presented(self, block: np.ndarray) -> np.ndarray:
        """Return a block in C order with the axes of the array."""
        return block.T if self._transposed else block

    def slab(self, item: BatchItem) -> Slab | None:
        """Return the slab of a full-size uncompressed block that contains the selection.

        None if the slab is more than half of the block.
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
        """Copy the selected elements of a slab into the output."""
        block = np.frombuffer(rows, self._data_type.dtype).reshape(-1, *self._shape_c[1:])
        return self.put(item, np.asarray(self._presented(block)[slab.selection]))


class Slab(NamedTuple):
    """Some rows of a full-size uncompressed block, along its slowest axis.

    Parameters
    ----------
    offset, n_bytes : int
        Place of the rows in the payload, in bytes.
    selection : tuple
        The selection in the rows.
    """

    offset: int
    n_bytes: int
    selection: Any


def _selects_the_same(selection: object, n: int, n_full: int) -> bool:
    """Whether a selection from ``n_full`` elements selects only from the first ``n``."""
    if n == n_full:
        return True
    if isinstance(selection, slice):
        return selection.indices(n) == selection.indices(n_full)
    indices = np.asarray(selection)  # not a mask, which is as long as a full block
    return indices.dtype != bool and bool(((indices >= 0) & (indices < n)).all())
