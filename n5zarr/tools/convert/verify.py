"""Compare what was written with its source, value by value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import merge
from itertools import batched, chain, groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from n5zarr.codecs.block import parse_block
from n5zarr.errors import N5Error
from n5zarr.format.grid import block_path
from n5zarr.format.path import join
from n5zarr.storage.requests import get_each
from n5zarr.store.running import ask_storage
from n5zarr.tools.convert.target_n5 import N5Target
from n5zarr.tools.jobs.boxes import box_shape, boxes
from n5zarr.tools.jobs.reading import for_reading
from n5zarr.tools.jobs.run import run_tasks
from n5zarr.tools.jobs.stored import stored_boxes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.format.order import N5Tuple
    from n5zarr.tools.convert.copying import ArrayCopy
    from n5zarr.tools.jobs.boxes import Box
    from n5zarr.tools.jobs.run import Progress, Scheduler

__all__ = ["verify_copies"]

_BATCH = 64  # blocks that are compared at once


class _Compared(NamedTuple):
    """The result of a comparison: the number of compared bytes, and the differences."""

    n_bytes: int
    differing: N5Error | None


@dataclass(frozen=True, eq=False)
class _Values:
    """The values of a box."""

    copy: ArrayCopy
    written: Any
    box: Box

    def compare(self) -> _Compared:
        one = np.asarray(self.copy.source.values[self.box])
        other = np.asarray(self.written[self.box])
        if _is_same(one, other):
            return _Compared(one.nbytes, None)
        where = ", ".join(f"{s.start}:{s.stop}" for s in self.box)
        return _Compared(one.nbytes, _differing(self.copy, f"[{where}]"))


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Headers and elements of blocks, which need not be those of an array."""

    copy: ArrayCopy
    positions: Sequence[N5Tuple]

    def compare(self) -> _Compared:
        blocks, target = self.copy.source.blocks, self.copy.target
        assert blocks is not None  # noqa: S101 - of this way
        assert isinstance(target, N5Target)  # noqa: S101 - of this way
        names = list(map(block_path, self.positions))
        old = ask_storage(blocks.store.storage, get_each([join(blocks.path, n) for n in names]))
        new = ask_storage(target.shown.storage, get_each([join(target.path, n) for n in names]))
        n_bytes = len(names) * math.prod(target.unit) * self.copy.source.item_size
        for name, one, other in zip(names, old, new, strict=True):
            if one != other and (one is None or other is None or self._differ(one, other)):
                return _Compared(n_bytes, _differing(self.copy, f"block {name}"))
        return _Compared(n_bytes, None)

    def _differ(self, one: BufferLike, other: BufferLike) -> bool:
        blocks, target = self.copy.source.blocks, self.copy.target
        assert blocks is not None  # noqa: S101 - of this way
        assert isinstance(target, N5Target)  # noqa: S101 - of this way
        dataset = blocks.view.dataset
        first = parse_block(one, dataset.ndim, dataset.data_type, blocks.compression)
        second = parse_block(other, dataset.ndim, dataset.data_type, target.compression)
        same_data = _is_same(np.asarray(first.data), np.asarray(second.data))
        return first.header != second.header or not same_data


def _differing(copy: ArrayCopy, where: str) -> N5Error:
    message = f"expected the values of {copy.source.name}, got others in {where}"
    return N5Error(message, kind="differs", where=f"{copy.target.array.store_path}")


def _is_same(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether all elements are equal, bit for bit where they are numbers."""
    if one.dtype.kind in "OTUSVmM" or other.dtype.kind in "OTUSVmM":
        return bool(one.shape == other.shape and one.tolist() == other.tolist())
    dtype = one.dtype.newbyteorder("=")
    one, other = np.ascontiguousarray(one, dtype), np.ascontiguousarray(other, dtype)
    same: bool = one.shape == other.shape and one.tobytes() == other.tobytes()
    return same


def verify_copies(
    copies: Sequence[ArrayCopy],
    scheduler: Scheduler,
    n_workers: int | None,
    progress: Progress | None,
) -> None:
    """Read sources and destinations, and compare them.

    Raises
    ------
    N5Error
        A value differs (``kind="differs"``).
    """
    total, n_done = sum(copy.n_bytes for copy in copies), 0
    parts = chain.from_iterable(map(_parts, copies))
    for n_bytes, differing in run_tasks(_compare, parts, scheduler=scheduler, n_workers=n_workers):
        if differing is not None:
            raise differing
        n_done = min(total, n_done + n_bytes)
        if progress is not None:
            progress("verify", n_done, total)
    if progress is not None:
        progress("verify", total, total)


def _parts(copy: ArrayCopy) -> Iterator[_Values | _Blocks]:
    """Yield the parts of an array that are compared at once."""
    source, target = copy.source, copy.target
    if copy.way == "blocks":
        assert source.blocks is not None  # noqa: S101 - of this way
        assert isinstance(target, N5Target)  # noqa: S101 - of this way
        both = merge(source.blocks.positions(), target.positions())
        for positions in batched((position for position, _ in groupby(both)), _BATCH):
            yield _Blocks(copy, positions)
        return
    max_elements = max(1, copy.max_bytes // (2 * source.item_size))
    step = box_shape(source.shape, target.unit, source.chunks, max_elements)
    written = for_reading(target.array)
    touched = stored_boxes(source.shape, [step, copy.least_step], [source.values, target])
    for box in boxes(source.shape, step) if touched is None else touched:
        yield _Values(copy, written, box)
    if touched is not None:  # one element stands for all that neither side stores
        for box in islice(touched.others(), 1):
            yield _Values(copy, written, tuple(slice(part.start, part.start + 1) for part in box))


def _compare(part: _Values | _Blocks) -> _Compared:
    return part.compare()
