"""Compare what was written with its source, value by value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from n5zarr.errors import N5Error
from n5zarr.tools.jobs.boxes import box_shape, boxes
from n5zarr.tools.jobs.run import run_tasks

if TYPE_CHECKING:
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
