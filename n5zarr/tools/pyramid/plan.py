"""Plan a pyramid: its levels with their documents, and how to write them.

Blocks first, then the documents of all levels, then the group that lists them. Until then a mark in
each level says that it is incomplete, see :mod:`n5zarr.tools.jobs.incomplete`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np

from n5zarr._zarr_private import sync
from n5zarr.container.block_listing import grid_position_rows
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.lenient_json import DocumentText
from n5zarr.format.order import from_presented
from n5zarr.format.path import join
from n5zarr.format.raw_json import RawObject
from n5zarr.storage.requests import Put, read_each
from n5zarr.tools.jobs.incomplete import (
    begin,
    confirm,
    finish,
    read_incomplete,
    remove_unfinished,
)
from n5zarr.tools.jobs.run import run_tasks
from n5zarr.tools.pyramid.describe import document_of
from n5zarr.tools.pyramid.schedule import Limits, next_pass, tasks
from n5zarr.tools.pyramid.work import PassLevel
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.conventions.describe import Written
    from n5zarr.format.compression import Compression
    from n5zarr.format.lenient_json import JSON
    from n5zarr.storage.requests import Request, Steps
    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.jobs.run import Progress, Scheduler
    from n5zarr.tools.pyramid.choose import ChosenLevel
    from n5zarr.tools.pyramid.describe import Finest
    from n5zarr.tools.pyramid.methods import Method
    from n5zarr.tools.pyramid.work import Pass

__all__ = ["Plan", "Workers"]

_WORKING = 16  # bytes that methods need for each element of a cell, beside the element
_AGAIN = 1.0  # seconds between checks whether another run has begun


@dataclass(frozen=True)
class Workers:
    """The workers: see :func:`n5zarr.tools.jobs.run.run_tasks`; ``memory`` is bytes per worker."""

    scheduler: Scheduler
    n: int
    memory: int


class Plan:
    """The levels of a pyramid.

    Parameters
    ----------
    opened : N5Store
        The container.
    finest : Finest
        ``s0``.
    levels : sequence of ChosenLevel
        The levels below it.
    method : str
        How elements become one.
    chunks : sequence of int
        Extent of their blocks, in the order of the array.
    compression : Compression
        Of their blocks.

    Raises
    ------
    N5UnrepresentableError
        The convention cannot be written (``kind="option"``).
    """

    def __init__(
        self,
        opened: N5Store,
        finest: Finest,
        levels: Sequence[ChosenLevel],
        *,
        method: Method,
        chunks: tuple[int, ...],
        compression: Compression,
    ) -> None:
        self.opened, self.finest, self.method = opened, finest, method
        self._run = uuid4().hex
        self.levels = {f"s{k}": level for k, level in enumerate(levels, 1)}
        self.written: dict[str, Written] = {
            name: finest.written(name, level.total, method) for name, level in self.levels.items()
        }
        store = opened.store  # with the keys as they are stored: of local files it is read only
        self._keys = store.with_read_only(read_only=False) if store.read_only else store
        view = finest.placed.view
        self.item_size = view.kind.dtype.itemsize
        self.source = PassLevel(finest.path, {}, view.shape, view.chunk_shape)
        names = finest.names_of_levels
        self.made = [
            PassLevel(
                join(finest.group, name),
                document_of(
                    view.dataset,
                    from_presented(level.shape, view.axis_order),
                    from_presented(chunks, view.axis_order),
                    compression,
                    self.written[name],
                    names,
                ),
                level.shape,
                chunks,
                level.factors,
            )
            for name, level in self.levels.items()
        ]

    @property
    def totals(self) -> dict[str, tuple[int, ...]]:
        """Number of elements of ``s0`` per element of each level, by path."""
        return {
            made.path: level.total
            for made, level in zip(self.made, self.levels.values(), strict=True)
        }

    def check_cells(self, memory: int) -> None:
        """Check that the elements that become one fit in memory, in bytes.

        Raises
        ------
        N5UnrepresentableError
            They do not (``kind="option"``).
        """
        shape = self.source.shape
        for level in self.made:
            pairs = zip(level.factors, shape, strict=True)
            n_bytes = math.prod(min(f, n) for f, n in pairs) * (self.item_size + _WORKING)
            if n_bytes > memory:
                message = (
                    f"factors: expected elements that fit in memory, {memory} bytes, got "
                    f"{[*level.factors]}, which need {n_bytes}; give smaller ones, and more levels"
                )
                raise N5UnrepresentableError(message, kind="option")
            shape = level.shape

    def is_interrupted(self) -> bool:
        """Whether an interrupted run has left a mark in the first level."""
        return bool(self.made) and self._mark(self.made[0]) is not None

    def is_finished(self, there: Sequence[str]) -> bool:
        """Whether the levels that exist, and their documents, are those this run would write."""
        keys = [join(level.path, ATTRIBUTES_JSON) for level in self.made]
        stored = [RawObject.parse(data).values for data in self.opened.run(read_each(keys))]
        return there == [*self.levels] and stored == [level.document for level in self.made]

    def _mark(self, level: PassLevel) -> dict[str, JSON] | None:
        return read_incomplete(self._keys, level.path)

    def _job(self) -> dict[str, JSON]:
        """Describe the job: another run can continue this one only with an equal description."""
        dataset = self.finest.placed.view.dataset
        levels: list[JSON] = [dict(level.document) for level in self.made]
        return {
            "task": "pyramid",
            "dimensions": [*dataset.dimensions],
            "method": self.method,
            "levels": levels,
        }

    def run(self, workers: Workers, progress: Progress | None, *, resume: bool) -> None:
        """Write all levels; with ``resume`` only the missing blocks of an interrupted run."""
        done = [self._begin(level, resume=resume) for level in self.made]
        self._run_passes(done, workers, progress)
        self._confirm()
        for level, keys in zip(self.made, done, strict=True):
            self.opened.run(remove_unfinished(level.path, keys))
        self.finest.describe_itself(self.opened)
        self.opened.run(self._write_documents())
        self.finest.describe(self.opened, self.written)
        for level in reversed(self.made):  # the mark that `is_interrupted` looks for goes last
            finish(self._keys, level.path)

    def compare(self, workers: Workers, progress: Progress | None) -> None:
        """Compute all levels again, and compare them with those that are stored.

        Raises
        ------
        N5Error
            An element differs (``kind="differs"``).
        """
        self._run_passes([set()] * len(self.made), workers, progress, compares=True)

    def _run_passes(
        self,
        done: Sequence[set[str]],
        workers: Workers,
        progress: Progress | None,
        *,
        compares: bool = False,
    ) -> None:
        limits = Limits(
            method=self.method,
            item_size=self.item_size,
            memory=workers.memory,
            n_workers=workers.n,
        )
        source, n_made = self.source, 0
        while n_made < len(self.made):
            is_written = source is self.source
            job = next_pass(self.opened, source, self.made[n_made:], limits, is_written=is_written)
            job = replace(job, compares=compares)
            n_levels = len(job.levels)
            self._run_pass(job, done[n_made : n_made + n_levels], workers, progress)
            n_made += n_levels
            source = self.made[n_made - 1]

    def _begin(self, level: PassLevel, *, resume: bool) -> set[str]:
        """Mark a level; return the keys that an interrupted run has written."""
        keys = begin(self._keys, level.path, self._job(), resume=resume, run=self._run)
        return keys if resume else set()

    def _confirm(self) -> None:
        """Raise if another run has begun to write the same levels."""
        for level in self.made:
            confirm(self._keys, level.path, self._run)

    def _run_pass(
        self, job: Pass, done: Sequence[set[str]], workers: Workers, progress: Progress | None
    ) -> None:
        stored = self.stored(job.source, job.document)
        wanted = partial(tasks, job, stored, done, self.opened.axis_order)
        names = [level.path.rpartition("/")[2] for level in job.levels]
        stage = "-".join(dict.fromkeys([names[0], names[-1]]))
        n_done, total = 0, 0
        if progress is not None:  # planned twice, as a list of the tasks takes memory
            total = sum(job.n_bytes(task.place, self.item_size) for task in wanted())
        results = run_tasks(job, wanted(), scheduler=workers.scheduler, n_workers=workers.n)
        confirmed = monotonic()
        for place in results:
            if monotonic() - confirmed > _AGAIN and not job.compares:
                self._confirm()
                confirmed = monotonic()
            n_done += job.n_bytes(place, self.item_size)
            if progress is not None:
                progress(stage, n_done, total)

    def stored(self, path: str, document: object = None) -> np.ndarray:
        """List the grid positions of the stored blocks of a dataset, one row for each, N5 order."""
        opened = self.opened
        if isinstance(document, dict):
            opened = opened.assuming(path, document)
        view = opened.node(path)
        if not isinstance(view, DatasetView):
            return np.empty((0, 0), np.int64)
        return opened.run(grid_position_rows(path, view.dataset.grid))

    def n_bytes_stored(self, path: str) -> int:
        """Count the bytes of the blocks of a level that is complete."""
        n_document = sync(self._keys.getsize(join(path, ATTRIBUTES_JSON)))
        return sync(self.opened.getsize_prefix(path)) - n_document

    def _write_documents(self) -> Steps[None]:
        requests: list[Request] = []
        for level in self.made:
            document = RawObject(DocumentText(dict(level.document), {}))
            requests.append(Put(join(level.path, ATTRIBUTES_JSON), document.to_bytes()))
        yield requests
