"""Plan passes and their tasks: levels that are computed together, and their regions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np

from n5zarr.arrays.boxes import box_at, box_shape, n_boxes
from n5zarr.tools.jobs.parts import Part
from n5zarr.tools.pyramid.image import Level, PyramidImage
from n5zarr.tools.pyramid.methods import Method
from n5zarr.tools.pyramid.work import Pass, PassTask

_TASK = 2**28  # bytes of the source: the loss if a task is interrupted
_SHORT = 2**24  # bytes that one worker takes as long for as others to begin
_FOR_EACH = 4  # tasks for each worker, so that all have work to the end
_PARTS = 8  # of the memory of a worker, one for elements that are read at once
_MOST = 2**23  # bytes of it: parts without blocks are left out, others stay near to the core
# bytes of gaussian's numbers for each element that is read: three arrays at a time
_GAUSSIAN = {1: 10, 2: 10, 4: 16, 8: 24}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of tasks, and what they depend on.

    Parameters
    ----------
    method : str
        How to combine elements.
    item_size : int
        Bytes of an element.
    memory : int
        Bytes that one worker may use.
    n_workers : int
        Number of workers.
    """

    method: Method
    item_size: int
    memory: int
    n_workers: int

    @property
    def per_element(self) -> int:
        """Bytes for each element that is read."""
        return self.item_size + (_GAUSSIAN[self.item_size] if self.method == "gaussian" else 0)

    @property
    def at_once(self) -> int:
        """Number of elements that are read at once."""
        share = self.memory // _PARTS
        n_bytes = share if self.method == "gaussian" else min(share, _MOST)
        return max(1, n_bytes // self.per_element)

    @property
    def n_tasks(self) -> int:
        """Sufficient number of tasks."""
        return _FOR_EACH * self.n_workers


def next_pass(image: PyramidImage, source: Level, levels: Sequence[Level], limits: Limits) -> Pass:
    """Plan the pass that computes the next levels.

    As many levels as fit: with tasks for all workers, which are not too long, in the memory that
    each worker may use. One level at least, and only one with ``gaussian``, whose regions depend on
    elements beside them.

    Parameters
    ----------
    image : PyramidImage
        The image.
    source : Level
        The level to be read.
    levels : sequence of Level
        The levels that remain to be computed; their parts are not used.
    limits : Limits
        The limits of tasks.
    """
    n_levels = 1
    while n_levels < len(levels) and _fits(source, levels[: n_levels + 1], limits):
        n_levels += 1
    region, n_source = _least(source, levels[:n_levels])
    if n_source < limits.at_once:
        region = _grown(region, levels[n_levels - 1].shape, limits.at_once // n_source, limits)
    made, _ = _with_parts(source, levels[:n_levels], region, limits)
    return Pass(
        image=image,
        source=source,
        levels=tuple(made),
        region=region,
        method=limits.method,
    )


def _fits(source: Level, levels: Sequence[Level], limits: Limits) -> bool:
    """Whether levels can be computed in one pass, region by region."""
    region, n_source = _least(source, levels)
    _, n_bytes = _with_parts(source, levels, region, limits)
    is_short = math.prod(source.shape) * limits.item_size <= _SHORT
    return (
        limits.method != "gaussian"
        and (is_short or n_boxes(levels[-1].shape, region) >= limits.n_tasks)
        and n_source * limits.item_size <= _TASK
        and n_bytes <= limits.memory
    )


def _least(source: Level, levels: Sequence[Level]) -> tuple[tuple[int, ...], int]:
    """Return the smallest region of the coarsest level, and its number of source elements."""
    region = tuple(map(min, levels[-1].block, levels[-1].shape))
    triples = zip(_factors(levels), region, source.shape, strict=True)
    return region, math.prod(min(by * r, n) for by, r, n in triples)


def _factors(levels: Sequence[Level]) -> list[int]:
    """Return how many elements of the source become one of the coarsest level, along each axis."""
    return [math.prod(by) for by in zip(*(level.factors for level in levels), strict=True)]


def _grown(
    region: tuple[int, ...], shape: tuple[int, ...], times: int, limits: Limits
) -> tuple[int, ...]:
    """Double a region, its shortest axis first, while it stays small and enough regions remain."""
    grown = list(region)
    while times >= 2:
        open_axes = [i for i, n in enumerate(shape) if grown[i] < n]
        if not open_axes or n_boxes(shape, grown) < 2 * limits.n_tasks:
            break
        axis = min(open_axes, key=lambda i: (grown[i], -i))
        grown[axis] *= 2
        times //= 2
    return tuple(grown)


def _with_parts(
    source: Level,
    levels: Sequence[Level],
    region: tuple[int, ...],
    limits: Limits,
) -> tuple[list[Level], int]:
    """Choose the parts in which a region is computed; also return the bytes that they need.

    Parts of a stored level are whole blocks where these fit; parts of computed levels always are.
    """
    befores = [source, *levels[:-1]]
    made: list[Level] = []
    total = math.prod(region) * limits.per_element
    for before, level in zip(reversed(befores), reversed(levels), strict=True):
        extent = tuple(
            min(r * f, n) for r, f, n in zip(region, level.factors, before.shape, strict=True)
        )
        cell = level.factors
        if before is not source:
            cell = tuple(map(math.lcm, level.factors, before.block))
        base = box_shape(extent, cell, before.block, limits.at_once)
        # units that are cut at the end of the array are the only ones along their axis
        box = box_shape(extent, base, extent, limits.at_once)
        part = tuple(-(-n // f) for n, f in zip(box, level.factors, strict=True))
        made.append(replace(level, part=part))
        region = box
        total += math.prod(box) * limits.per_element
    return made[::-1], total


def tasks(
    job: Pass, stored: np.ndarray, done: Sequence[set[str]], part: Part | None = None
) -> Iterator[PassTask]:
    """Yield the tasks of a pass: regions that depend on stored blocks and are not done yet.

    Parameters
    ----------
    job : Pass
        The pass.
    stored : numpy.ndarray
        Grid positions of the stored blocks of the source, one row for each.
    done : sequence of set of str
        For each level the keys of the blocks that an interrupted run has written.
    part : Part, optional
        The part of the regions that this run computes; by default all.
    """
    for place, own in _regions_of(job, stored):
        if part is not None and not part.owns(str(place)):
            continue
        region = box_at(place, job.region, job.levels[-1].shape)
        source, *regions = job.regions(region, len(job.levels))
        there = [frozenset[str]() for _ in job.levels]
        if any(done):
            names = [
                {key for _, key, _ in job.blocks_of(number, part)}
                for number, part in enumerate(regions, 1)
            ]
            there = [frozenset(n & known) for n, known in zip(names, done, strict=True)]
            if there[-1] == names[-1]:  # the blocks that are written last
                continue
        n_bytes = math.prod(part.stop - part.start for part in source) * job.image.dtype.itemsize
        yield PassTask(region, own, tuple(there), n_bytes)


def _regions_of(job: Pass, stored: np.ndarray) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Yield the places of regions, in order, with the stored blocks that each depends on."""
    every, own = _in_order(job, stored)
    starts = np.flatnonzero((every[1:] != every[:-1]).any(axis=1)) + 1
    ends = [*starts.tolist(), len(every)] if len(every) else []
    for one, other in pairwise([0, *ends]):
        yield tuple(every[one].tolist()), own[one:other]


def _in_order(job: Pass, stored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of a region for each stored block that it depends on, and that block."""
    total = _factors(job.levels)
    grid = [-(-n // r) for n, r in zip(job.levels[-1].shape, job.region, strict=True)]
    # small, as there may be millions, with room for the offsets below
    first = np.empty(stored.shape, np.min_scalar_type(-min(2 * max(grid), 2**63)))
    last = np.empty_like(first)
    limits = zip(job.source.shape, job.source.block, job.reach, strict=True)
    for axis, (n, chunk, reach) in enumerate(limits):
        size = min(total[axis] * job.region[axis], n)
        begin = stored[:, axis].astype(np.int64) * chunk
        end = begin + np.minimum(chunk, n - begin)  # at most n, which has up to 63 bits
        first[:, axis] = np.maximum(begin - reach, 0) // size
        last[:, axis] = (np.minimum(end, n - reach) + reach - 1) // size
    spans = (last - first).max(axis=0, initial=0).astype(int) + 1
    places, rows = [], []
    for offset in product(*map(range, spans)):  # most often one: blocks lie in one region
        place = first + np.array(offset, first.dtype)
        row = np.flatnonzero((place <= last).all(axis=1))
        places.append(place[row])
        rows.append(row)
    every, row = np.concatenate(places), np.concatenate(rows)
    order = np.lexsort(every.T[::-1])
    return every[order], stored[row[order]]
