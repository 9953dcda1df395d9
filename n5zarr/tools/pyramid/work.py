"""Compute levels of a pyramid region by region: read, compute and write a task.

A pass computes one or more levels from a stored one. Each of its tasks computes a region of whole
blocks of the coarsest level, and all parts of the finer levels on which it depends: the region is
split until a part of the stored level fits into memory, which is then read once. So no two tasks
write the same block, and memory does not grow with the number of levels.

A task writes the blocks of finer levels before those of coarser ones: if all blocks of its region
are there, the whole task is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from n5zarr.arrays.boxes import box_at, boxes
from n5zarr.arrays.cells import read_cells
from n5zarr.arrays.kernel import Cells
from n5zarr.arrays.opening import open_array
from n5zarr.arrays.placing import read_on_host
from n5zarr.errors import N5Error
from n5zarr.format.grid import block_path
from n5zarr.format.order import from_presented
from n5zarr.format.path import join
from n5zarr.tools.jobs.ledger import Piece, seal
from n5zarr.tools.pyramid.methods import downsample, halo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from zarr.types import AnyArray

    from n5zarr.arrays.boxes import Box
    from n5zarr.format.lenient_json import JSON
    from n5zarr.format.order import AxisOrder
    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.pyramid.methods import Method

__all__ = ["Level", "Pass", "PassTask", "blocks_of", "differing"]


@dataclass(frozen=True)
class Level:
    """A level of a pyramid; tuples in the order of the array.

    Parameters
    ----------
    path : str
        Path of the dataset.
    document : mapping
        Its ``attributes.json``; empty if it is written already.
    shape, block : tuple of int
        Extent of the level and of a block, in elements.
    factors, total : tuple of int, optional
        Number of elements of the previous level, and of ``s0``, that become one.
    part : tuple of int, optional
        Extent of the part that is computed at once, in elements of this level.
    """

    path: str
    document: Mapping[str, JSON]
    shape: tuple[int, ...]
    block: tuple[int, ...]
    factors: tuple[int, ...] = ()
    total: tuple[int, ...] = ()
    part: tuple[int, ...] = ()

    def source(self, region: Box, shape: Sequence[int]) -> Box:
        """Return the region of the previous level on which a region depends.

        Parameters
        ----------
        region : tuple of slice
            Region of this level.
        shape : tuple of int
            Extent of the previous level, in elements.
        """
        each = zip(region, self.factors, shape, strict=True)
        return tuple(slice(s.start * f, min(s.stop * f, n)) for s, f, n in each)


class PassTask(NamedTuple):
    """A region of the coarsest level, to be computed.

    Parameters
    ----------
    region : tuple of slice
        The region of the coarsest level, in elements.
    stored : numpy.ndarray
        Positions of the stored blocks of the source that the region depends on; int64, one row for
        each, in the order of the array.
    done : tuple of frozenset of str
        For each level the paths of the blocks in the region that exist already.
    n_bytes : int
        Size of the region of the source.
    """

    region: Box
    stored: np.ndarray
    done: tuple[frozenset[str], ...]
    n_bytes: int


@dataclass(frozen=True, kw_only=True)
class Pass:
    """A function of a :class:`PassTask`, which may be pickled.

    Parameters
    ----------
    store : N5Store
        The container, to be written.
    source : Level
        The level that is read.
    levels : tuple of Level
        The levels that are computed, the finest one first.
    region : tuple of int
        Extent of a region, in elements of the coarsest level.
    method : str
        How to combine elements.
    item_size : int
        Bytes of an element.
    compares : bool, optional
        Whether to compare what is stored with the result, and write nothing.
    """

    store: N5Store
    source: Level
    levels: tuple[Level, ...]
    region: tuple[int, ...]
    method: Method
    item_size: int
    compares: bool = False

    @property
    def reach(self) -> tuple[int, ...]:
        """Number of elements around a region of the source on which it depends, along each axis."""
        return halo(self.method, self.levels[0].factors)

    @cached_property
    def arrays(self) -> list[AnyArray]:
        """The arrays of the source and of the levels; opened once for all tasks of a process."""
        written = [_open(self.store, level, "r+") for level in self.levels]
        read = _open(self.store, self.source, "r")
        return [read, *(array.with_config({"write_empty_chunks": False}) for array in written)]

    def regions(self, region: Box, number: int) -> list[Box]:
        """Return the regions of all levels up to one, the source first, on which a region depends.

        Parameters
        ----------
        region : tuple of slice
            Region of the level.
        number : int
            Number of the level; 0 is the source.
        """
        found = [region]
        befores = [self.source, *self.levels][:number]
        for level, before in zip(self.levels[:number][::-1], befores[::-1], strict=True):
            found.append(level.source(found[-1], before.shape))
        return found[::-1]

    def __call__(self, task: PassTask) -> bytes:
        """Compute a region, and write it; return what notices later changes of `s0`."""
        found = b"".join(map(seal, self.pieces(task)))
        self.work(task)
        return found

    def work(self, task: PassTask) -> None:
        """Compute a region, and write it."""
        _Work(self, task).compute(len(self.levels), task.region)

    def pieces(self, task: PassTask) -> Iterator[Piece]:
        """Yield what a task makes, if it is made from local files that the job only reads."""
        root, order = self.store.storage.root, self.store.axis_order
        if root is None or self.source.document or self.compares:
            return
        place = tuple(s.start // n for s, n in zip(task.region, self.region, strict=True))
        regions = self.regions(task.region, len(self.levels))[1:]
        yield Piece(
            f"{[level.path for level in self.levels]} {task.region}",
            [
                join(level.path, name)
                for level, region in zip(self.levels, regions, strict=True)
                for name, _ in blocks_of(region, level, order)
            ],
            [
                f"{root}/{join(self.source.path, block_path(from_presented(row, order)))}"
                for row in map(tuple, task.stored.tolist())
            ],
            owner=str(place),
        )


class _Work:
    """One task, with the arrays that it reads and writes."""

    def __init__(self, job: Pass, task: PassTask) -> None:
        self.job, self.task = job, task
        self.source, *self.arrays = job.arrays

    def compute(self, number: int, region: Box) -> np.ndarray:
        """Compute a region of a level, and all finer ones, and write it; level 0 is the source."""
        if number == 0:
            return read_on_host(self.source, region)
        job, level = self.job, self.job.levels[number - 1]
        before = [job.source, *job.levels][number - 1]
        fill = 0 if self.source.fill_value is None else self.source.fill_value
        made = np.full([part.stop - part.start for part in region], fill, self.source.dtype)
        if not self._stored_for(number, region).any():
            return made
        for box in boxes(made.shape, level.part):
            inner = _moved(box, [part.start for part in region])
            if not self._stored_for(number, inner).any():
                continue
            if number == 1:  # others are written, which takes whole blocks
                inner = self._stored_part(inner)
            wanted = level.source(inner, before.shape)
            part = _moved(inner, [-part.start for part in region])
            if number == 1 and self._is_read(wanted, level.factors, made[part]):
                continue
            each = list(zip(wanted, job.reach, before.shape, strict=True))  # no reach beyond 1
            wider = tuple(slice(max(0, s.start - r), min(n, s.stop + r)) for s, r, n in each)
            around = [
                (s.start - w.start, w.stop - s.stop) for s, w in zip(wanted, wider, strict=True)
            ]
            elements = self.compute(number - 1, wider)
            made[part] = downsample(elements, level.factors, job.method, around)
        self._write(number, region, made)
        return made

    def _is_read(self, wanted: Box, factors: Sequence[int], out: np.ndarray) -> bool:
        """Compute a part of the first level from blocks, without an array of their elements."""
        cells = Cells(tuple(factors), self.job.method)
        combine = partial(downsample, factors=factors, method=self.job.method)
        return read_cells(self.source, wanted, cells, out, combine)

    def _stored_for(self, number: int, region: Box) -> np.ndarray:
        """Tell on which of the stored blocks of the source a region of a level depends."""
        job, stored = self.job, self.task.stored
        begin, end = np.transpose([(s.start, s.stop) for s in job.regions(region, number)[0]])
        first = (begin - job.reach) // job.source.block
        last = (end + job.reach - 1) // job.source.block
        return np.asarray(((stored >= first) & (stored <= last)).all(axis=1))

    def _stored_part(self, region: Box) -> Box:
        """Return the part of a region of the first level that depends on stored blocks."""
        job = self.job
        blocks = self.task.stored[self._stored_for(1, region)].astype(np.int64)
        low = blocks.min(axis=0) * job.source.block - job.reach
        high = (blocks.max(axis=0) + 1) * job.source.block + job.reach
        factors = np.array(job.levels[0].factors)
        each = zip(region, (low // factors).tolist(), (-(-high // factors)).tolist(), strict=True)
        return tuple(slice(max(s.start, first), min(s.stop, last)) for s, first, last in each)

    def _write(self, number: int, region: Box, made: np.ndarray) -> None:
        """Write a region of whole blocks, except existing blocks; or compare it."""
        job, level, array = self.job, self.job.levels[number - 1], self.arrays[number - 1]
        done = self.task.done[number - 1]
        if not done and not job.compares:
            array[region] = made
            return
        for name, box in blocks_of(region, level, job.store.axis_order):
            values = made[_moved(box, [-part.start for part in region])]
            if job.compares:
                if read_on_host(array, box).tobytes() != values.tobytes():  # NaN, too
                    raise differing(job.store, level, name)
            elif name not in done:
                array[box] = values


def differing(store: N5Store, level: Level, block: str) -> N5Error:
    """Make the error of a block with other elements than those of this run."""
    message = f"expected the elements that this run computes, got others in {block}"
    way = "overwrite=True (--overwrite) removes the levels first"
    return N5Error(f"{message}; {way}", kind="differs", where=f"{store}: {level.path}")


def blocks_of(region: Box, level: Level, axis_order: AxisOrder) -> Iterator[tuple[str, Box]]:
    """Yield the path below the dataset and the box of each block of a region."""
    pairs = zip(region, level.block, strict=True)
    for position in product(*(range(s.start // b, -(-s.stop // b)) for s, b in pairs)):
        box = box_at(position, level.block, level.shape)
        yield block_path(from_presented(position, axis_order)), box


def _moved(box: Box, by: Sequence[int]) -> Box:
    return tuple(slice(s.start + n, s.stop + n) for s, n in zip(box, by, strict=True))


def _open(store: N5Store, level: Level, mode: Literal["r", "r+"]) -> AnyArray:
    """Open a level, also one whose document is not written yet."""
    if level.document:
        store = store.assuming(level.path, level.document)
    return open_array(store, mode, path=level.path)
