"""Change the blocks of a dataset that is resized: pad those at its old end, remove those outside.

N5 spec, "File-system specification", item 8: a block at the end of an axis may be smaller or
full-size. After a resize, a block truncated at the old end no longer fits: Java and tensorstore
read the rest of it as 0, z5py reads wrong numbers. All programs read a full-size block correctly
for every extent of the dataset.

Each function is a generator of requests, see :mod:`n5zarr.storage.requests`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import batched, product
from operator import le

import numpy as np

from n5zarr.codecs.block import decode_numeric, encode_payload, pad_or_truncate
from n5zarr.codecs.compress import codec_of
from n5zarr.codecs.shard import check_not_sharded, in_memory
from n5zarr.container.block_listing import grid_position_rows
from n5zarr.errors import N5BlockError, N5UnsupportedError
from n5zarr.format.attributes import DatasetAttributes
from n5zarr.format.block import BlockHeader
from n5zarr.format.grid import block_extent, block_path, blocks_cut_anew, blocks_outside
from n5zarr.format.order import N5Tuple, to_c
from n5zarr.format.path import join
from n5zarr.storage.requests import MANY_BYTES, Ends, Remove, Steps, Update, Warn
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Content

MOST_BLOCKS = 1000
"""Most truncated blocks that a resize stores again; with more, it stores none."""

MOST_BYTES = 2**28
"""Most bytes of these blocks together, full-size and decoded."""

_LISTED = 10_000  # positions; for more, list their directories
_AT_ONCE = 64  # blocks in one batch of requests


def pad_blocks(path: str, view: DatasetView, resized: N5Tuple) -> Steps[None]:
    """Store truncated blocks full-size if their extent changes when the dataset is resized.

    Added elements have the fill value. Damaged blocks are not changed. If there are too many
    blocks, warn and store none: see :data:`MOST_BLOCKS` and :data:`MOST_BYTES`.

    Parameters
    ----------
    path : str
        Of the dataset.
    view : DatasetView
        The dataset before the resize.
    resized : tuple of int
        Its ``dimensions`` after the resize, N5 order.
    """
    dataset = view.dataset
    if view.content is not Content.NUMBERS or len(resized) != dataset.ndim:
        return
    try:
        codec_of(dataset.compression).check_writable(dataset.compression)
    except N5UnsupportedError:  # jpeg, which no program writes: no other program resizes it either
        return
    most = min(MOST_BLOCKS, MOST_BYTES // view.full_n_bytes)
    n_header = 8 + 4 * dataset.ndim  # with the number of elements, which some modes have
    keys = []
    boxes = blocks_cut_anew(dataset.dimensions, resized, dataset.block_size)
    for positions in batched((yield from _positions(path, dataset.grid, boxes)), _AT_ONCE):
        pads = [(join(path, block_path(p)), _Pad(view, resized, p)) for p in positions]
        answers = yield [Ends(key, n_header, 0) for key, _ in pads]
        for (key, pad), ends in zip(pads, answers, strict=True):
            if ends is not None and pad.is_needed(ends[1]):
                keys.append((key, pad))
        if len(keys) > most:
            message = (
                f"{path or '/'}: more than {most} blocks at the old end of the dataset stay "
                "truncated; unless they are written again, z5py reads wrong numbers beside their "
                "elements. To avoid this, call n5zarr.repair_edges(..., to='pad') before resizing "
                "the dataset"
            )
            yield [Warn(message)]
            return
    for some in batched(keys, _AT_ONCE):
        yield [Update(key, pad, MANY_BYTES) for key, pad in some]


def remove_outside(path: str, dataset: DatasetAttributes, resized: N5Tuple) -> Steps[None]:
    """Remove the blocks that are outside of the grid after the dataset was resized.

    Parameters
    ----------
    path : str
        Of the dataset.
    dataset : DatasetAttributes
        The dataset before the resize.
    resized : tuple of int
        Its ``dimensions`` after the resize, N5 order.
    """
    boxes = blocks_outside(dataset.dimensions, resized, dataset.block_size)
    for some in batched((yield from _positions(path, dataset.grid, boxes)), _AT_ONCE):
        yield [Remove(join(path, block_path(position))) for position in some]


def _positions(
    path: str, grid: N5Tuple, boxes: Sequence[Sequence[range]]
) -> Steps[Iterable[N5Tuple]]:
    """Return the positions of the blocks in boxes; of large boxes, only those that exist."""
    if sum(math.prod(map(len, box)) for box in boxes) <= _LISTED:
        return [N5Tuple(p) for p in dict.fromkeys(p for box in boxes for p in product(*box))]
    rows = np.empty((0, len(grid)), np.int64)
    for box in boxes:
        rows = np.concatenate([rows, (yield from grid_position_rows(path, grid, box))])
    return (N5Tuple(tuple(row.tolist())) for row in np.unique(rows, axis=0))


class _Pad:
    """Makes a full-size block from a truncated one, while storage holds its lock."""

    def __init__(self, view: DatasetView, resized: N5Tuple, position: N5Tuple) -> None:
        self._view = view
        self._extent = block_extent(resized, view.dataset.block_size, position)

    def is_needed(self, block: bytes) -> bool:
        """Whether a block is smaller than it should be; its header suffices."""
        try:
            shape = BlockHeader.from_bytes(memoryview(block)).block_shape
        except N5BlockError:
            return False
        full = self._view.dataset.block_size
        is_smaller = len(shape) == len(full) and all(map(le, shape, full))
        return is_smaller and shape not in (full, self._extent)

    def __call__(self, old: bytes | None) -> bytes | None:
        if old is None or not self.is_needed(old):
            return old
        dataset, element = self._view.dataset, self._view.element
        fill_value = 0 if element is None else element.stored_fill
        try:
            check_not_sharded(*in_memory(old), dataset.data_type, dataset.compression)
            block = decode_numeric(
                memoryview(old), dataset.ndim, dataset.data_type, dataset.compression
            )
        except N5BlockError:  # reading the block reports the error
            return old
        full = pad_or_truncate(block, to_c(dataset.block_size), fill_value)
        return encode_payload(full, dataset.data_type, dataset.compression)
