"""Compute levels of a pyramid region by region: read, compute and write a task.

A pass computes one or more levels from a stored one. Each of its tasks computes a region of whole
blocks of the coarsest level, and all parts of the finer levels on which it depends: the region is
split until a part of the stored level fits into memory, which is then read once. So no two tasks
write the same block, and memory does not grow with the number of levels.

A task writes the blocks of finer levels before those of coarser ones: if all blocks of its region
are there, the whole task is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import NamedTuple

import numpy as np
from zarr.types import AnyArray

from n5zarr.arrays.boxes import BoxSlices, box_at, boxes, places_in
from n5zarr.arrays.placing import read_on_host
from n5zarr.errors import N5Error, N5UnrepresentableError
from n5zarr.rooms import Door
from n5zarr.tools.convert.target import ArrayTarget
from n5zarr.tools.jobs.incomplete import Piece, seal
from n5zarr.tools.pyramid.image import Level, PyramidImage
from n5zarr.tools.pyramid.methods import Method, downsample, halo


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
        For each level the keys of the blocks in the region that exist already.
    n_bytes : int
        Size of the region of the source.
    """

    region: BoxSlices
    stored: np.ndarray
    done: tuple[frozenset[str], ...]
    n_bytes: int


_READ_CELLS: Door[
    Callable[
        [
            AnyArray, BoxSlices, tuple[int, ...], str, np.ndarray,
            Callable[[np.ndarray], np.ndarray],
        ],
        bool,
    ]
] = Door("speed", "cells of blocks")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Pass:
    """A function of a :class:`PassTask`, which may be pickled.

    Parameters
    ----------
    image : PyramidImage
        The image, to be written.
    source : Level
        The level that is read.
    levels : tuple of Level
        The levels that are computed, the finest one first.
    region : tuple of int
        Extent of a region, in elements of the coarsest level.
    method : str
        How to combine elements.
    compares : bool, optional
        Whether to compare what is stored with the result, and write nothing.
    """

    image: PyramidImage
    source: Level
    levels: tuple[Level, ...]
    region: tuple[int, ...]
    method: Method
    compares: bool = False

    @property
    def reach(self) -> tuple[int, ...]:
        """Number of elements around a region of the source on which it depends, along each axis."""
        return halo(self.method, self.levels[0].factors)

    @cached_property
    def targets(self) -> list[ArrayTarget]:
        """The source and the levels; opened once for all tasks of a process."""
        written = [self.image.target(level, "r+") for level in self.levels]
        return [self.image.target(self.source, "r"), *written]

    def regions(self, region: BoxSlices, number: int) -> list[BoxSlices]:
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
        piece = self.piece(task, names_made=False)
        found = b"" if piece is None else seal(piece)  # before it is read
        self.work(task)
        return found

    def work(self, task: PassTask) -> None:
        """Compute a region, and write it."""
        _Work(self, task).compute(len(self.levels), task.region)

    def blocks_of(
        self, number: int, region: BoxSlices
    ) -> Iterator[tuple[tuple[int, ...], str, BoxSlices]]:
        """Yield position, key and box of each block of a region of a level; see :meth:`regions`."""
        level, target = [self.source, *self.levels][number], self.targets[number]
        for position in product(*places_in(region, level.block)):
            yield position, target.key(position), box_at(position, level.block, level.shape)

    def piece(self, task: PassTask, *, names_made: bool = True) -> Piece | None:
        """Return what a task makes, if it is made from local files that the job only reads.

        A :func:`seal` does not depend on the names of what is made.
        """
        root = self.image.storage.root
        if root is None or self.source.documents or self.compares:
            return None
        source = self.targets[0]
        place = tuple(s.start // n for s, n in zip(task.region, self.region, strict=True))
        n_named = len(self.levels) if names_made else 0
        regions = enumerate(self.regions(task.region, n_named)[1:], 1)
        read = list[str]()
        with suppress(NotImplementedError, N5UnrepresentableError):  # keys that only zarr knows
            read = [f"{root}/{source.key(row)}" for row in map(tuple, task.stored.tolist())]
        return Piece(
            f"{[level.path for level in self.levels]} {task.region}",
            [key for number, part in regions for _, key, _ in self.blocks_of(number, part)],
            read,
            owner=str(place),
        )

    def differing(self, level: Level, key: str) -> N5Error:
        """Make the error of a block with other elements than those of this run."""
        block = key.removeprefix(f"{level.path}/")
        message = f"expected the elements that this run computes, got others in {block}"
        return N5Error(
            f"{message}; overwrite=True (--overwrite) removes the levels first",
            kind="differs",
            where=f"{self.image.storage}: {level.path}",
        )


class _Work:
    """One task, with the arrays that it reads and writes."""

    def __init__(self, job: Pass, task: PassTask) -> None:
        self.job, self.task = job, task
        source, *self.targets = job.targets
        self.source = source.readable

    def compute(self, number: int, region: BoxSlices) -> np.ndarray:
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

    def _is_read(self, wanted: BoxSlices, factors: Sequence[int], out: np.ndarray) -> bool:
        """Compute a part of the first level from blocks, without an array of their elements."""
        method = self.job.method
        combine = partial(downsample, factors=factors, method=method)
        read = _READ_CELLS.found()
        return read is not None and read(self.source, wanted, tuple(factors), method, out, combine)

    def _stored_for(self, number: int, region: BoxSlices) -> np.ndarray:
        """Tell on which of the stored blocks of the source a region of a level depends."""
        job, stored = self.job, self.task.stored
        begin, end = np.transpose([(s.start, s.stop) for s in job.regions(region, number)[0]])
        first = (begin - job.reach) // job.source.block
        last = (end + job.reach - 1) // job.source.block
        return np.asarray(((stored >= first) & (stored <= last)).all(axis=1))

    def _stored_part(self, region: BoxSlices) -> BoxSlices:
        """Return the part of a region of the first level that depends on stored blocks."""
        job = self.job
        blocks = self.task.stored[self._stored_for(1, region)].astype(np.int64)
        low = blocks.min(axis=0) * job.source.block - job.reach
        high = (blocks.max(axis=0) + 1) * job.source.block + job.reach
        factors = np.array(job.levels[0].factors)
        each = zip(region, (low // factors).tolist(), (-(-high // factors)).tolist(), strict=True)
        return tuple(slice(max(s.start, first), min(s.stop, last)) for s, first, last in each)

    def _write(self, number: int, region: BoxSlices, made: np.ndarray) -> None:
        """Write a region of whole blocks, except existing blocks; or compare it."""
        job, level, target = self.job, self.job.levels[number - 1], self.targets[number - 1]
        done = self.task.done[number - 1]
        if not done and not job.compares:
            target.write(region, made)
            return
        for _, key, box in job.blocks_of(number, region):
            values = made[_moved(box, [-part.start for part in region])]
            if job.compares:
                found = read_on_host(target.readable, box)
                same = values.astype(found.dtype, copy=False)
                if found.tobytes() != same.tobytes():  # NaN, too
                    raise job.differing(level, key)
            elif key not in done:
                target.write(box, values)


def _moved(box: BoxSlices, by: Sequence[int]) -> BoxSlices:
    return tuple(slice(s.start + n, s.stop + n) for s, n in zip(box, by, strict=True))
