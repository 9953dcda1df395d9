"""Compute levels of a pyramid region by region: the reading, computing and writing of a task.

A pass makes one or more levels from the elements of one that is stored. Each of its tasks makes a
region of the coarsest of them, of whole blocks, and with it all that is needed of the finer ones:
it is split again and again until a part of the stored level fits into memory, which is then read,
once. So no two tasks write the same block, and memory does not grow with the number of levels.

A task writes the blocks of finer levels before those of coarser ones: if all blocks of its region
are there, the whole task is done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from n5zarr.arrays.boxes import boxes
from n5zarr.arrays.opening import open_array
from n5zarr.errors import N5Error
from n5zarr.format.grid import block_path
from n5zarr.format.order import from_presented
from n5zarr.tools.pyramid.methods import downsample, halo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from zarr.types import AnyArray

    from n5zarr.arrays.boxes import Box
    from n5zarr.format.lenient_json import JSON
    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.pyramid.methods import Method

__all__ = ["Pass", "PassLevel", "Task"]

type Region = tuple[tuple[int, int], ...]
"""First element, and the one after the last, along each axis."""


@dataclass(frozen=True)
class PassLevel:
    """A level that a pass makes, or reads; tuples in the order of the array.

    Parameters
    ----------
    path : str
        Of the dataset.
    document : mapping
        Its ``attributes.json``, which is not written yet.
    shape, block : tuple of int
        Extent of the level and of a block, in elements.
    factors : tuple of int, optional
        How many elements of the level before become one.
    part : tuple of int, optional
        Extent of the part of the previous level made at once, in elements of this level.
    """

    path: str
    document: Mapping[str, JSON]
    shape: tuple[int, ...]
    block: tuple[int, ...]
    factors: tuple[int, ...] = ()
    part: tuple[int, ...] = ()

    def source(self, region: Region, extent: tuple[int, ...]) -> Region:
        """Return the region of the level before, which has this extent."""
        pairs = zip(region, self.factors, extent, strict=True)
        return tuple((begin * f, min(end * f, n)) for (begin, end), f, n in pairs)


class Task(NamedTuple):
    """A region to make.

    Parameters
    ----------
    place : tuple of int
        Position of the region in the grid of regions of the coarsest level.
    stored : numpy.ndarray
        Positions of the stored blocks of the source that the region depends on; int64, one row for
        each, in the order of the array.
    done : tuple of frozenset of str
        For each level the paths of the blocks in the region that are there already.
    """

    place: tuple[int, ...]
    stored: np.ndarray
    done: tuple[frozenset[str], ...]


@dataclass(frozen=True, kw_only=True)
class Pass:
    """A function of a :class:`Task`, which may be pickled.

    Parameters
    ----------
    store : N5Store
        The container, to be written.
    source : str
        Path of the dataset that is read.
    document : mapping or None
        Its ``attributes.json``, if it is not written yet.
    extent, chunk : tuple of int
        Extent of the source and of its blocks, in elements.
    levels : tuple of PassLevel
        What is made, the finest level first.
    region : tuple of int
        Extent of a region, in elements of the coarsest level.
    method : str
        How elements become one.
    compares : bool, optional
        Compare what is stored with what would be written, and write nothing.
    """

    store: N5Store
    source: str
    document: Mapping[str, JSON] | None
    extent: tuple[int, ...]
    chunk: tuple[int, ...]
    levels: tuple[PassLevel, ...]
    region: tuple[int, ...]
    method: Method
    compares: bool = False

    @property
    def reach(self) -> tuple[int, ...]:
        """Number of elements around a region of the source on which it depends, along each axis."""
        return halo(self.method, self.levels[0].factors)

    def region_at(self, place: tuple[int, ...]) -> Region:
        """Return the region of the coarsest level at a position."""
        triples = zip(place, self.region, self.levels[-1].shape, strict=True)
        return tuple((p * n, min((p + 1) * n, end)) for p, n, end in triples)

    def regions(self, place: tuple[int, ...]) -> list[Region]:
        """Return the regions of all levels, and of the source first, at a position."""
        found = [self.region_at(place)]
        shapes = [self.extent, *(level.shape for level in self.levels)]
        for level, shape in zip(reversed(self.levels), reversed(shapes[:-1]), strict=True):
            found.append(level.source(found[-1], shape))
        return found[::-1]

    def n_bytes(self, place: tuple[int, ...], item_size: int) -> int:
        """Count the bytes of the region of the source."""
        return math.prod(end - begin for begin, end in self.regions(place)[0]) * item_size

    def __call__(self, task: Task) -> tuple[int, ...]:
        """Make a region; return the place of the task."""
        _Work(self, task).make(len(self.levels), self.region_at(task.place))
        return task.place


class _Work:
    """The state of one task: its open arrays and its results."""

    def __init__(self, job: Pass, task: Task) -> None:
        self.job, self.task = job, task
        store = job.store
        source = store if job.document is None else store.assuming(job.source, job.document)
        self.source = open_array(source, path=job.source)
        self.arrays = [_to_write(store, level) for level in job.levels]

    def make(self, number: int, region: Region) -> np.ndarray:
        """Make a region of a level and of all levels below, and write it; level 0 is the source."""
        if number == 0:
            return np.asarray(self.source[_box(region)])
        job, level, array = self.job, self.job.levels[number - 1], self.arrays[number - 1]
        extent = job.levels[number - 2].shape if number > 1 else job.extent
        whole = tuple(end - begin for begin, end in region)
        if not self._has_stored(number, region):
            return np.full(whole, _fill_value(self.source), array.dtype)
        made = np.full(whole, _fill_value(self.source), array.dtype)
        for box in boxes(whole, level.part):
            places = zip(box, region, strict=True)
            inner = tuple((s.start + begin, s.stop + begin) for s, (begin, _) in places)
            if not self._has_stored(number, inner):
                continue
            if number == 1:  # others are written, which takes whole blocks
                inner = self._stored_part(inner)
            part = _box(
                tuple(
                    (b - begin, e - begin) for (b, e), (begin, _) in zip(inner, region, strict=True)
                )
            )
            wanted = level.source(inner, extent)
            wider, around = wanted, None
            if number == 1 and any(job.reach):
                wider = tuple(
                    (max(0, begin - h), min(n, end + h))
                    for (begin, end), h, n in zip(wanted, job.reach, extent, strict=True)
                )
                around = [(b - a, d - c) for (a, d), (b, c) in zip(wider, wanted, strict=True)]
            elements = self.make(number - 1, wider)
            made[part] = downsample(elements, level.factors, job.method, around)
        self._write(array, level, region, made)
        return made

    def _has_stored(self, number: int, region: Region) -> bool:
        """Whether a region of a level depends on any stored block of the source."""
        return bool(self._depends_on(number, region).any())

    def _depends_on(self, number: int, region: Region) -> np.ndarray:
        """Tell on which of the stored blocks of the source a region of a level depends."""
        job = self.job
        shapes = [job.extent, *(level.shape for level in job.levels)]
        for k in range(number, 0, -1):
            region = job.levels[k - 1].source(region, shapes[k - 1])
        begin, end = np.transpose(region)
        first = (begin - job.reach) // job.chunk
        last = (end + job.reach - 1) // job.chunk
        stored = self.task.stored
        found: np.ndarray = ((stored >= first) & (stored <= last)).all(axis=1)
        return found

    def _stored_part(self, region: Region) -> Region:
        """Return the part of a region of the first level outside which all has the fill value."""
        job = self.job
        blocks = self.task.stored[self._depends_on(1, region)].astype(np.int64)
        low = blocks.min(axis=0) * job.chunk - job.reach
        high = (blocks.max(axis=0) + 1) * job.chunk + job.reach
        factors = np.array(job.levels[0].factors)
        ends = zip(region, (low // factors).tolist(), (-(-high // factors)).tolist(), strict=True)
        return tuple((max(begin, first), min(end, last)) for (begin, end), first, last in ends)

    def _write(self, array: AnyArray, level: PassLevel, region: Region, made: np.ndarray) -> None:
        """Write a region of whole blocks, except existing blocks; or compare it."""
        done = self.task.done[self.job.levels.index(level)]
        if not done and not self.job.compares:
            array[_box(region)] = made
            return
        order = self.job.store.axis_order
        for position, box in blocks_of(region, level):
            name = block_path(from_presented(position, order))
            starts = (begin for begin, _ in region)
            inner = tuple(slice(s.start - n, s.stop - n) for s, n in zip(box, starts, strict=True))
            if self.job.compares:
                if np.asarray(array[box]).tobytes() != made[inner].tobytes():  # NaN, too
                    message = f"expected the elements that this run computes, got others in {name}"
                    raise N5Error(message, kind="differs", where=f"{self.job.store}: {level.path}")
            elif name not in done:
                array[box] = made[inner]


def blocks_of(region: Region, level: PassLevel) -> Iterator[tuple[tuple[int, ...], Box]]:
    """Yield position and box of each block of a region, in the order of the array."""
    ranges = [
        range(begin // b, -(-end // b)) for (begin, end), b in zip(region, level.block, strict=True)
    ]
    for position in product(*ranges):
        triples = zip(position, level.block, level.shape, strict=True)
        yield position, tuple(slice(p * b, min((p + 1) * b, n)) for p, b, n in triples)


def _to_write(store: N5Store, level: PassLevel) -> AnyArray:
    array = open_array(store.assuming(level.path, level.document), "r+", path=level.path)
    return array.with_config({"write_empty_chunks": False})


def _fill_value(array: AnyArray) -> Any:  # noqa: ANN401 - a number of the array's dtype
    return 0 if array.fill_value is None else array.fill_value


def _box(region: Region) -> Box:
    return tuple(slice(begin, end) for begin, end in region)
