"""Plan a pyramid: its levels with their documents, and how to write them.

Blocks first, then the documents of all levels, then the group that lists them. Until then a mark in
each level says that it is incomplete, see :mod:`n5zarr.tools.jobs.incomplete`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from n5zarr._zarr import sync
from n5zarr.container.block_listing import grid_position_rows
from n5zarr.container.options import require
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.grid import is_block_name
from n5zarr.format.lenient_json import DocumentText
from n5zarr.format.order import from_presented
from n5zarr.format.path import join
from n5zarr.format.raw_json import RawObject
from n5zarr.storage.requests import Remove, put_each, read_each, request_each
from n5zarr.tools.convert.source_files import described_dataset
from n5zarr.tools.jobs.incomplete import MAX_MEMORY, SOURCE, confirm, read_incomplete
from n5zarr.tools.jobs.ledger import left_beside, remove_left
from n5zarr.tools.jobs.parts import WORKERS, Owned
from n5zarr.tools.pyramid.describe import document_of
from n5zarr.tools.pyramid.finding import stored_keys
from n5zarr.tools.pyramid.multisets import MultisetPass, describe_labels, members_of_level
from n5zarr.tools.pyramid.schedule import Limits, next_pass, tasks
from n5zarr.tools.pyramid.work import Level
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.conventions.describe import Written
    from n5zarr.format.compression import Compression
    from n5zarr.format.lenient_json import JSON
    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.jobs.ledger import Ledger
    from n5zarr.tools.jobs.parts import Division
    from n5zarr.tools.jobs.run import RunOptions
    from n5zarr.tools.pyramid.choose import ChosenLevel
    from n5zarr.tools.pyramid.describe import Finest
    from n5zarr.tools.pyramid.methods import Method
    from n5zarr.tools.pyramid.work import Pass

__all__ = ["Plan"]

_WORKING = 16  # bytes that methods need for each element of a cell, beside the element
_PART_WORKERS = 256  # for which parts divide their pass, whatever their number
_AGAIN = 1.0  # seconds between checks whether another run has begun


class Plan:
    """The levels of a pyramid that are to be written.

    Parameters
    ----------
    store : N5Store
        The container.
    finest : Finest
        ``s0``.
    chosen : sequence of ChosenLevel
        The levels below it.
    method : str
        How to combine elements.
    chunks : sequence of int
        Extent of their blocks, in the order of the array.
    compression : Compression
        Compression of their blocks.
    max_entries : int, optional
        Largest number of labels of a voxel of label multisets; no limit below 1.

    Raises
    ------
    N5UnrepresentableError
        The convention cannot be written (``kind="option"``).
    """

    def __init__(  # noqa: PLR0913 - what the user chooses
        self,
        store: N5Store,
        finest: Finest,
        chosen: Sequence[ChosenLevel],
        *,
        method: Method,
        chunks: tuple[int, ...],
        compression: Compression,
        max_entries: int = -1,
    ) -> None:
        self.store, self.finest, self.method = store, finest, method
        self.max_entries = max_entries
        view = finest.placed.view
        self.item_size = view.kind.dtype.itemsize
        self.levels: list[Level] = []
        self._written: dict[str, Written] = {}
        self._source = Level(finest.path, {}, view.shape, view.chunk_shape)
        self._keys = stored_keys(store)
        self._run = ""
        for number, level in enumerate(chosen, 1):
            written = self._written[f"s{number}"] = finest.written(
                f"s{number}", level.total, method
            )
            document = document_of(
                view.dataset,
                from_presented(level.shape, view.axis_order),
                from_presented(chunks, view.axis_order),
                compression,
                written,
                finest.names_of_levels,
            )
            if method == "multiset":
                document |= members_of_level(finest, level.total, max_entries)
            path = join(finest.group, f"s{number}")
            self.levels.append(
                Level(path, document, level.shape, chunks, level.factors, level.total)
            )

    def check_cells(self, memory: int) -> None:
        """Check that the elements that become one fit in the memory of a worker, in bytes.

        Raises
        ------
        N5UnrepresentableError
            They do not (``kind="option"``).
        """
        for before, level in pairwise([self._source, *self.levels]):
            pairs = zip(level.factors, before.shape, strict=True)
            n_bytes = math.prod(min(f, n) for f, n in pairs) * (self.item_size + _WORKING)
            require(
                n_bytes <= memory,
                f"factors: expected elements that fit in the memory of a worker, {memory} "
                f"bytes, got {[*level.factors]}, which need {n_bytes}; give smaller ones, and "
                "more levels",
            )

    def is_interrupted(self) -> bool:
        """Whether an interrupted run has left a mark in the first level."""
        return bool(self.levels) and read_incomplete(self._keys, self.levels[0].path) is not None

    def is_finished(self) -> bool:
        """Whether the documents of the levels are those that this run would write."""
        keys = [join(level.path, ATTRIBUTES_JSON) for level in self.levels]
        stored = [RawObject.parse(data).values for data in self.store.run(read_each(keys))]
        return stored == [level.document for level in self.levels]

    def run(self, options: RunOptions, memory: int, *, resume: bool) -> None:
        """Write all levels; with ``resume`` only the missing blocks of an interrupted run.

        Parts share the first pass, which reads ``s0``; the run that ends them does the others.
        """
        division, storage = options.division, self.store.storage
        dataset = self.finest.placed.view.dataset
        job: dict[str, JSON] = {  # another run can continue this one only with an equal job
            "task": "pyramid",
            SOURCE: {f"/{self.finest.path}": described_dataset(dataset)},
            "method": self.method,
            "levels": [dict(level.document) for level in self.levels],
        }
        if not division.is_whole:  # the regions depend on it
            job[MAX_MEMORY] = memory * WORKERS
        paths = [level.path for level in self.levels]
        documents_of = [
            join(path, ATTRIBUTES_JSON) for path in (self.finest.path, self.finest.group)
        ]
        left = left_beside(storage, documents_of) if resume and division.part is None else {}
        self._run, there = division.begin(self._keys, paths, job, resume=resume)
        done = there if resume else [set[str]() for _ in there]
        with division.ledger(storage, paths[0], there[0]) as ledger:
            self._run_passes(options, memory, done, ledger)
        division.end(storage, paths, self._run, done)
        if division.part is not None:
            return
        self.finest.describe_itself(self.store)
        documents = {
            join(level.path, ATTRIBUTES_JSON): RawObject(DocumentText(dict(level.document), {}))
            for level in self.levels
        }
        self.store.run(put_each((key, value.to_bytes()) for key, value in documents.items()))
        self.finest.describe(self.store, self._written)
        if self.method == "multiset":
            describe_labels(self.store, self.finest)
        remove_left(storage, left)
        # the mark that `is_interrupted` looks for goes last
        division.finish(storage, paths, ledger)

    def compare(self, options: RunOptions, memory: int) -> None:
        """Compute all levels again, and compare them with those that are stored.

        Raises
        ------
        N5Error
            An element differs (``kind="differs"``).
        """
        self._run_passes(options, memory, [set()] * len(self.levels), None)

    def _run_passes(
        self, options: RunOptions, memory: int, done: list[set[str]], ledger: Ledger | None
    ) -> None:
        """Compute all levels; compare them if there is no ledger."""
        limits = Limits(
            method=self.method,
            item_size=self.item_size,
            memory=memory,
            n_workers=options.n_at_once,
        )
        division = options.division
        source, n_made = self._source, 0
        while n_made < len(self.levels):
            is_shared = not (n_made or division.is_whole)
            bounds = replace(limits, n_workers=_PART_WORKERS) if is_shared else limits
            job = self._next_pass(source, n_made, bounds)
            if not n_made and ledger is not None and self.store.storage.root is not None:
                done = self._unchanged(job, done, ledger, division)
            if not (is_shared and division.ends):
                self._run_pass(
                    replace(job, compares=ledger is None), done[n_made:], options, ledger
                )
            if division.part is not None:
                return
            n_made += len(job.levels)
            source = self.levels[n_made - 1]

    def _next_pass(self, source: Level, n_made: int, limits: Limits) -> Pass:
        if self.method == "multiset":
            return self._multiset_pass(source, self.levels[n_made], limits.memory)
        return next_pass(self.store, source, self.levels[n_made:], limits)

    def _multiset_pass(self, source: Level, level: Level, memory: int) -> MultisetPass:
        """Plan the pass that computes one level of label multisets, block by block."""
        return MultisetPass(
            store=self.store,
            source=source,
            levels=(level,),
            region=tuple(map(min, level.block, level.shape)),
            method=self.method,
            item_size=self.item_size,
            max_entries=self.max_entries,
            memory=memory,
        )

    def _unchanged(
        self, job: Pass, done: list[set[str]], ledger: Ledger, division: Division
    ) -> list[set[str]]:
        """Return the blocks that stay as `s0` is unchanged; remove others, to be made anew.

        Raises
        ------
        N5Error
            `s0` has changed since parts have read it (``kind="changed"``).
        """
        if not (any(done) or division.ends):
            return done
        storage, n_first = self.store.storage, len(job.levels)
        stored = self.stored(job.source.path, job.source.document)
        every = tasks(job, stored, [set()] * n_first, division.part)
        pieces = (piece for task in every for piece in job.pieces(task))
        blocks = [
            {join(level.path, n) for n in names if is_block_name(n.rpartition("/")[2])}
            for level, names in zip(self.levels, done, strict=True)
        ]
        if division.ends:
            owned = Owned(set().union(*blocks), None, ledger)
            owned.check_made(pieces, self._keys, self.levels[0].path, lambda _: True)
            # later levels are made anew: they may be of an earlier `s0`
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
        storage.run(request_each(map(Remove, sorted(gone))))
        return [
            {name for name in names if join(level.path, name) not in gone}
            for level, names in zip(self.levels, done, strict=True)
        ]

    def _run_pass(
        self, job: Pass, done: Sequence[set[str]], options: RunOptions, ledger: Ledger | None
    ) -> None:
        stored = self.stored(job.source.path, job.source.document)
        part = options.division.part
        wanted = partial(tasks, job, stored, done[: len(job.levels)], part)
        names = [level.path.rpartition("/")[2] for level in job.levels]
        stage = "-".join(dict.fromkeys([names[0], names[-1]]))
        # planned twice, as a list of the tasks takes memory
        total = sum(task.n_bytes for task in wanted()) if options.progress is not None else 0
        confirmed = monotonic()
        for _, seals in options.each(job, wanted(), stage, total):
            if ledger is not None:
                ledger.note(seals)
            if monotonic() - confirmed > _AGAIN and not job.compares:
                self._confirm()
                confirmed = monotonic()

    def _confirm(self) -> None:
        """Raise if another run has begun to write the same levels."""
        for level in self.levels:
            self.store.run(confirm(str(self.store), level.path, self._run))

    def stored(self, path: str, document: Mapping[str, JSON]) -> np.ndarray:
        """List the grid positions of the stored blocks of a dataset, one row for each, N5 order."""
        store = self.store.assuming(path, document) if document else self.store
        view = store.node(path)
        if not isinstance(view, DatasetView):
            return np.empty((0, 0), np.int64)
        return store.run(grid_position_rows(path, view.dataset.grid))

    def n_bytes_stored(self, path: str) -> int:
        """Count the bytes of the blocks of a level that is complete."""
        n_document = sync(self._keys.getsize(join(path, ATTRIBUTES_JSON)))
        return sync(self.store.getsize_prefix(path)) - n_document
