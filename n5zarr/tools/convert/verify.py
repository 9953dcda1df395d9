"""Compare what was written with its source, value by value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import batched
from typing import TYPE_CHECKING, Any

import numpy as np

from n5zarr.codecs.block import parse_block
from n5zarr.errors import N5Error
from n5zarr.format.grid import block_path
from n5zarr.format.path import join
from n5zarr.storage.requests import read_each
from n5zarr.tools.convert.target import ask
from n5zarr.tools.convert.target_n5 import N5Target
from n5zarr.tools.jobs.boxes import box_shape, boxes
from n5zarr.tools.jobs.run import run_tasks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.format.order import N5Tuple
    from n5zarr.tools.convert.copying import ArrayCopy
    from n5zarr.tools.jobs.boxes import Box
    from n5zarr.tools.jobs.run import Progress, Scheduler

__all__ = ["verify_copy"]


@dataclass(frozen=True, eq=False)
class _Compare:
    copy: ArrayCopy

    def __call__(self, box: Box) -> tuple[Box, int, bool]:
        one = np.asarray(self.copy.source.values[box])
        other = np.asarray(self.copy.target.array[box])
        return box, one.nbytes, _is_same(one, other)


def _is_same(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether all elements are equal, bit for bit where they are numbers."""
    if one.dtype.kind in "OTUSVmM" or other.dtype.kind in "OTUSVmM":
        return bool(one.shape == other.shape and one.tolist() == other.tolist())
    dtype = one.dtype.newbyteorder("=")
    one, other = np.ascontiguousarray(one, dtype), np.ascontiguousarray(other, dtype)
    same: bool = one.shape == other.shape and one.tobytes() == other.tobytes()
    return same


def verify_copy(
    copy: ArrayCopy,
    scheduler: Scheduler,
    n_workers: int | None,
    progress: Progress | None,
) -> None:
    """Read source and destination, and compare them.

    Raises
    ------
    N5Error
        A value differs (``kind="differs"``).
    """
    source, target = copy.source, copy.target
    if copy.way == "blocks":
        _verify_blocks(copy, scheduler, n_workers)
        return
    max_elements = max(1, copy.max_bytes // (2 * source.item_size))
    step = box_shape(source.shape, target.unit, source.chunks, max_elements)
    n_done = 0
    for box, n_bytes, is_same in run_tasks(
        _Compare(copy), boxes(source.shape, step), scheduler=scheduler, n_workers=n_workers
    ):
        n_done += n_bytes
        if not is_same:
            where = ", ".join(f"{s.start}:{s.stop}" for s in box)
            message = f"expected the values of {source.name}, got others in [{where}]"
            raise N5Error(message, kind="differs", where=f"{target.array.store_path}")
        if progress is not None:
            progress("verify", n_done, math.prod(source.shape) * source.item_size)


def _verify_blocks(copy: ArrayCopy, scheduler: Scheduler, n_workers: int | None) -> None:
    """Compare headers and elements of all blocks, which need not be those of an array."""
    blocks = copy.source.blocks
    assert blocks is not None  # noqa: S101 - of this way
    batches = batched(blocks.positions(), 64)
    compare = _CompareBlocks(copy)
    for differing in run_tasks(compare, batches, scheduler=scheduler, n_workers=n_workers):
        if differing is not None:
            message = f"block {differing}: expected that of {copy.source.name}, got another"
            raise N5Error(message, kind="differs", where=f"{copy.target.array.store_path}")


@dataclass(frozen=True, eq=False)
class _CompareBlocks:
    copy: ArrayCopy

    def __call__(self, positions: Sequence[N5Tuple]) -> str | None:
        """Return the path of the first block that differs."""
        blocks, target = self.copy.source.blocks, self.copy.target
        assert blocks is not None  # noqa: S101 - of this way
        assert isinstance(target, N5Target)  # noqa: S101 - of this way
        names = list(map(block_path, positions))
        old = ask(blocks.store.storage, read_each([join(blocks.path, n) for n in names]))
        new = ask(target.shown.storage, read_each([join(target.path, n) for n in names]))
        dataset = blocks.view.dataset
        for name, one, other in zip(names, old, new, strict=True):
            if one == other:
                continue
            if one is None or other is None:
                return name
            first = parse_block(one, dataset.ndim, dataset.data_type, blocks.compression)
            second = parse_block(other, dataset.ndim, dataset.data_type, target.compression)
            if first.header != second.header or not _is_same_data(first.data, second.data):
                return name
        return None


def _is_same_data(one: object, other: object) -> bool:
    return _is_same(np.asarray(one), np.asarray(other))
