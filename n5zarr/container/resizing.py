"""Store the blocks at the old end of a dataset full-size before the dataset is resized.

N5 spec, "File-system specification", item 8: a block at the end of an axis may be smaller, or be
full-size. One that was truncated where the dataset ended is neither once the dataset ends
elsewhere: Java and tensorstore take the rest of it for 0, z5py reads other numbers. A full-size one
is read right by all, whatever the extent of the dataset.

Each function is a generator of requests, see :mod:`n5zarr.storage.requests`.
"""

from __future__ import annotations

import math
from itertools import batched, product
from operator import le
from typing import TYPE_CHECKING

import numpy as np

from n5zarr.codecs.block import decode_numeric, encode_payload, pad_or_truncate
from n5zarr.codecs.compress import check_writable
from n5zarr.container.block_listing import grid_position_rows
from n5zarr.errors import N5BlockError, N5UnsupportedError
from n5zarr.format.block import BlockHeader
from n5zarr.format.grid import block_extent, block_path, blocks_cut_anew
from n5zarr.format.order import N5Tuple, to_c
from n5zarr.format.path import join
from n5zarr.storage.requests import Ends, Update, Warn
from n5zarr.zarr_view.element import Content

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.storage.requests import Steps
    from n5zarr.zarr_view.dataset_view import DatasetView

__all__ = ["MOST_BLOCKS", "MOST_BYTES", "pad_blocks"]

MOST_BLOCKS = 1000
"""How many truncated blocks are stored again when a dataset is resized; if there are more, none."""

MOST_BYTES = 2**28
"""How many bytes these blocks have at most, full-size and decoded."""

_LISTED = 10_000  # positions; for more, their directories are listed
_AT_ONCE = 64  # blocks that storage is asked for together


def pad_blocks(path: str, view: DatasetView, resized: N5Tuple) -> Steps[None]:
    """Store the truncated blocks full-size that a dataset of another extent would not have so.

    The elements that are added are the fill value. Damaged blocks stay as they are. Warn, and store
    none, if there are many: see :data:`MOST_BLOCKS` and :data:`MOST_BYTES`.

    Parameters
    ----------
    path : str
        Of the dataset.
    view : DatasetView
        The dataset as it is.
    resized : tuple of int
        Its ``dimensions`` to be, N5 order.
    """
    dataset = view.dataset
    if view.content is not Content.NUMBERS or len(resized) != dataset.ndim:
        return
    try:
        check_writable(dataset.compression)
    except N5UnsupportedError:  # jpeg, which nobody writes: no other program grows it either
        return
    most = min(MOST_BLOCKS, MOST_BYTES // view.full_n_bytes)
    keys = []
    for positions in batched((yield from _positions(path, view, resized)), _AT_ONCE):
        pads = [(join(path, block_path(p)), _Pad(view, resized, p)) for p in positions]
        answers = yield [Ends(key, _n_header(dataset.ndim), 0) for key, _ in pads]
        for (key, pad), ends in zip(pads, answers, strict=True):
            if ends is not None and pad.is_needed(ends[1]):
                keys.append((key, pad))
        if len(keys) > most:
            yield [Warn(_too_many(path, most))]
            return
    for some in batched(keys, _AT_ONCE):
        yield [Update(key, pad) for key, pad in some]


def _too_many(path: str, most: int) -> str:
    return (
        f"{path or '/'}: more than {most} blocks at the old end of the dataset stay truncated; "
        "where they are not written again, z5py reads other numbers beside what they hold. To "
        "avoid it, call n5zarr.repair_edges(..., to='pad') before the dataset is resized"
    )


def _positions(path: str, view: DatasetView, resized: N5Tuple) -> Steps[Sequence[N5Tuple]]:
    """Find the blocks that may be truncated; those that exist, if there is room for many."""
    dataset = view.dataset
    boxes = blocks_cut_anew(dataset.dimensions, resized, dataset.block_size)
    if sum(math.prod(map(len, box)) for box in boxes) <= _LISTED:
        return [N5Tuple(p) for p in dict.fromkeys(p for box in boxes for p in product(*box))]
    rows = yield from grid_position_rows(path, dataset.grid)
    is_inside = np.zeros(len(rows), bool)
    for box in boxes:
        begin, end = np.array([(r.start, r.stop) for r in box]).T
        is_inside |= ((rows >= begin) & (rows < end)).all(axis=1)
    return [N5Tuple(tuple(row)) for row in rows[is_inside].tolist()]


def _n_header(ndim: int) -> int:
    return 8 + 4 * ndim  # with the number of elements that follows in some modes


class _Pad:
    """Makes a full-size block of a truncated one, while storage holds its lock."""

    def __init__(self, view: DatasetView, resized: N5Tuple, position: N5Tuple) -> None:
        self._view = view
        self._extent = block_extent(resized, view.dataset.block_size, position)

    def is_needed(self, block: bytes) -> bool:
        """Whether a block, of which the header is enough, is smaller than it should be."""
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
            block = decode_numeric(
                memoryview(old), dataset.ndim, dataset.data_type, dataset.compression
            )
        except N5BlockError:  # reading it says what is wrong
            return old
        full = pad_or_truncate(block, to_c(dataset.block_size), fill_value)
        return encode_payload(full, dataset.data_type, dataset.compression)
