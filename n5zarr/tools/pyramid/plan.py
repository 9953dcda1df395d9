"""Write the levels of a pyramid, whatever its format.

Blocks first, then the documents of all levels, then the group that lists them. Until then a mark in
each level says that it is incomplete, see :mod:`n5zarr.tools.jobs.incomplete`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from time import monotonic
from typing import Protocol

import numpy as np

from n5zarr.container.options import require
from n5zarr.format.grid import is_block_name
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.format.raw_json import RawObject
from n5zarr.rooms import Door
from n5zarr.storage.requests import Remove, read_each, request_each
from n5zarr.tools.jobs.incomplete import (
    MAX_MEMORY,
    SOURCE,
    Ledger,
    confirm,
    left_beside,
    read_incomplete,
    remove_left,
)
from n5zarr.tools.jobs.parts import WORKERS, Division, Owned
from n5zarr.tools.jobs.run import RunOptions
from n5zarr.tools.pyramid.image import Level, PyramidImage, Wanted
from n5zarr.tools.pyramid.methods import Method
from n5zarr.tools.pyramid.schedule import Limits, next_pass, tasks
from n5zarr.tools.pyramid.work import Pass

_WORKING = 16  # bytes that methods need for each element of a cell, beside the element
_PART_WORKERS = 256  # for which parts divide their pass, whatever their number
_AGAIN = 1.0  # seconds between checks whether another run has begun


class MakeMultisetPass(Protocol):
    """Makes the pass that computes one level of label multisets."""

    def __call__(  # noqa: PLR0913 - the fields of a pass
        self,
        *,
        image: PyramidImage,
        source: Level,
        levels: tuple[Level, ...],
        region: tuple[int, ...],
        method: Method,
        max_entries: int,
        memory: int,
    ) -> Pass:
        """Make it."""


_MULTISET_PASS: Door[MakeMultisetPass] = Door("step", "levels of label multisets")


@dataclass(frozen=True)
class LevelPlan:
    """The levels of an image that are to be written.

    Parameters
    ----------
    image : PyramidImage
        The image.
    levels : sequence of Level
        The levels after the first one, the finest first.
    wanted : Wanted
        What they are made of.
    options : RunOptions
        Where the work is done.
    memory : int
        Bytes that a worker may use.
    """

    image: PyramidImage
    levels: Sequence[Level]
    wanted: Wanted
    options: RunOptions
    memory: int

    def check_cells(self) -> None:
        """Check that the elements that become one fit in the memory of a worker.

        Raises
        ------
        N5UnrepresentableError
            They do not (``kind="option"``).
        """
        for before, level in pairwise([self.image.source, *self.levels]):
            n_elements = math.prod(map(min, level.factors, before.shape))
            n_bytes = n_elements * (self.image.dtype.itemsize + _WORKING)
            require(
                n_bytes <= self.memory,
                f"factors: expected elements that fit in the memory of a worker, {self.memory} "
                f"bytes, got {[*level.factors]}, which need {n_bytes}; give smaller ones, and "
                "more levels",
            )

    def is_interrupted(self) -> bool:
        """Whether an interrupted run has left a mark in the first level that it writes."""
        first = self.levels[:1]
        return any(read_incomplete(self.image.store, level.path) is not None for level in first)

    def is_finished(self) -> bool:
        """Whether the documents of the levels are those that this run would write."""
        made = {k: data for level in self.levels for k, data in level.own_documents.items()}
        stored = self.image.storage.run(read_each(list(made)))
        return [RawObject.parse(data).values for data in stored] == [
            RawObject.parse(data).values for data in made.values()
        ]

    def run(self, *, resume: bool) -> None:
        """Write all levels; with ``resume`` only the missing blocks of an interrupted run.

        Parts share the first pass, which reads the first level; the run that ends them does the
        others.
        """
        image, division, storage = self.image, self.options.division, self.image.storage
        documents = [[*level.own_documents.values()] for level in self.levels]
        job: dict[str, JSON] = {  # another run can continue this one only with an equal job
            "task": "pyramid",
            SOURCE: {f"/{image.source.path}": image.described},
            "method": self.wanted.method,
            "levels": [[RawObject.parse(data).values for data in each] for each in documents],
        }
        if not division.is_whole:  # the regions depend on it
            job[MAX_MEMORY] = self.memory * WORKERS
        paths = [level.path for level in self.levels]
        is_resumed = resume and division.part is None
        left = left_beside(storage, image.documents) if is_resumed else {}

        def commit() -> None:
            image.finish(self.levels, self.wanted)
            remove_left(storage, left)

        with division.running(storage, paths, job, resume=resume, commit=commit) as running:
            run, there, ledger = running
            done = [
                {join(path, name) for name in names} if resume else set[str]()
                for path, names in zip(paths, there, strict=True)
            ]
            self._run_passes(done, run, ledger)

    def compare(self) -> None:
        """Compute all levels again, and compare them with those that are stored.

        Raises
        ------
        N5Error
            An element differs (``kind="differs"``).
        """
        self._run_passes([set()] * len(self.levels), "", None)

    def _run_passes(self, done: list[set[str]], run: str, ledger: Ledger | None) -> None:
        """Compute all levels; compare them if there is no ledger."""
        limits = Limits(
            method=self.wanted.method,
            item_size=self.image.dtype.itemsize,
            memory=self.memory,
            n_workers=self.options.n_at_once,
        )
        division = self.options.division
        source, n_made = self.image.source, 0
        while n_made < len(self.levels):
            is_shared = not (n_made or division.is_whole)
            bounds = replace(limits, n_workers=_PART_WORKERS) if is_shared else limits
            job = replace(self._next_pass(source, n_made, bounds), compares=ledger is None)
            stored = self.stored(source)
            if not n_made and ledger is not None and self.image.storage.root is not None:
                done = self._unchanged(job, stored, done, ledger, division)
            if not (is_shared and division.ends):
                self._run_pass(job, stored, done[n_made:], run, ledger)
            if division.part is not None:
                return
            n_made += len(job.levels)
            source = self.levels[n_made - 1]

    def _next_pass(self, source: Level, n_made: int, limits: Limits) -> Pass:
        if self.wanted.method != "multiset":
            return next_pass(self.image, source, self.levels[n_made:], limits)
        level = self.levels[n_made]  # block by block
        return _MULTISET_PASS.needed()(
            image=self.image,
            source=source,
            levels=(level,),
            region=tuple(map(min, level.block, level.shape)),
            method=self.wanted.method,
            max_entries=self.wanted.max_entries,
            memory=limits.memory,
        )

    def _unchanged(
        self,
        job: Pass,
        stored: np.ndarray,
        done: list[set[str]],
        ledger: Ledger,
        division: Division,
    ) -> list[set[str]]:
        """Return the blocks that stay as the first level is unchanged; remove others.

        Raises
        ------
        N5Error
            The first level has changed since parts have read it (``kind="changed"``).
        """
        if not (any(done) or division.ends):
            return done
        n_first = len(job.levels)
        every = tasks(job, stored, [set()] * n_first, division.part)
        pieces = filter(None, map(job.piece, every))
        blocks = [{key for key in keys if is_block_name(key.rpartition("/")[2])} for keys in done]
        if division.ends:
            owned = Owned(set().union(*blocks), None, ledger)
            owned.check_made(pieces, self.image.store, self.levels[0].path, lambda _: True)
            # later levels are made anew: they may be of an earlier first level
            return done if ledger.is_checked else [*done[:n_first], *[set()] * len(done[n_first:])]
        kept, lost = set[str](), set[str]()
        for piece in pieces:
            (kept if ledger.knows(piece) else lost).update(piece.made)
        first, later = set().union(*blocks[:n_first]), set().union(*blocks[n_first:])
        # a part knows its own blocks only; the run that ends all parts removes others
        gone = (
            first & lost
            if division.part is not None
            else (first - kept) | (later if lost else set())
        )
        self.image.storage.run(request_each(map(Remove, sorted(gone))))
        return [keys - gone for keys in done]

    def _run_pass(
        self,
        job: Pass,
        stored: np.ndarray,
        done: Sequence[set[str]],
        run: str,
        ledger: Ledger | None,
    ) -> None:
        options, storage = self.options, self.image.storage
        wanted = partial(tasks, job, stored, done[: len(job.levels)], options.division.part)
        names = list(map(self.image.name, job.levels))
        stage = "-".join(dict.fromkeys([names[0], names[-1]]))
        # planned twice, as a list of the tasks takes memory
        total = sum(task.n_bytes for task in wanted()) if options.progress is not None else 0
        confirmed = monotonic()
        for _, seals in options.each(job, wanted(), stage, total):
            if ledger is not None:
                ledger.note(seals)
            if monotonic() - confirmed > _AGAIN and not job.compares:
                for level in self.levels:  # raises if another run has begun to write them
                    storage.run(confirm(str(storage), level.path, run))
                confirmed = monotonic()

    def stored(self, level: Level) -> np.ndarray:
        """List the grid positions of the stored blocks of a level, one row for each.

        All positions, if the storage does not list them.
        """
        listed = self.image.target(level, "r").stored_chunks()
        if listed is None:
            grid = [-(-n // size) for n, size in zip(level.shape, level.block, strict=True)]
            return np.indices(grid).reshape(len(grid), -1).T
        rows = list(listed.rows)
        return np.concatenate(rows) if rows else np.empty((0, len(level.shape)), np.int8)
