"""Write arrays and groups to a destination: plan the copies, run them, compare values."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import add
from types import MappingProxyType
from typing import Self

from n5zarr.container.options import require
from n5zarr.errors import N5Error
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.compression import compression_to_json
from n5zarr.format.foreign import ZARR_DOCUMENTS
from n5zarr.format.lenient_json import JSON
from n5zarr.images.source import SourceTree
from n5zarr.images.zarr_documents import warn_of_text
from n5zarr.storage.files import is_unfinished
from n5zarr.store.info import bytes_text, counted
from n5zarr.tools.convert.checks import (
    check_arrays,
    check_packages,
    hidden_stores,
    warn_of_fill_values,
)
from n5zarr.tools.convert.copies import (
    ArrayCopy,
    Copied,
    Copy,
    CopyTask,
    Folder,
    TaskSize,
    Way,
    plan_opaque,
)
from n5zarr.tools.convert.copying import BlockCopy, copy_of
from n5zarr.tools.convert.reported import add_copies
from n5zarr.tools.convert.source_files import described_sources
from n5zarr.tools.convert.target import Destination, Layout
from n5zarr.tools.convert.target_n5 import N5Destination
from n5zarr.tools.jobs.incomplete import MAX_MEMORY, SOURCE, Piece, seal
from n5zarr.tools.jobs.parts import Owned, Part
from n5zarr.tools.jobs.reports import report_of_run
from n5zarr.tools.jobs.run import RunOptions

_REMOTE_WORKERS = 16  # they wait for servers most of the time
_DOCUMENTS = {ATTRIBUTES_JSON, *ZARR_DOCUMENTS, ".zattrs"}


@dataclass(frozen=True)
class ConvertedArray:
    """The result for one array.

    Parameters
    ----------
    path : str
        Path below source and destination.
    way : {"blocks", "chunks", "shards", "values"}
        ``"blocks"``, ``"chunks"`` and ``"shards"``: stored bytes are passed through, as N5 blocks,
        as chunks, or joined into shards. ``"values"``: decoded and encoded.
    shape, chunks : tuple of int
        Extents in elements, C order.
    shards : tuple of int or None
        Extent of a shard.
    n_bytes : int
        Bytes of all elements.
    n_written, n_bytes_written : int
        Chunks or shards that were written in this run, and their bytes; bytes that zarr itself
        writes are not counted.
    """

    path: str
    way: Way
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None
    n_bytes: int
    n_written: int = 0
    n_bytes_written: int = 0


@dataclass(frozen=True)
class Conversion:
    """The result of :func:`convert`.

    Parameters
    ----------
    source, destination : str
        The source and the destination.
    arrays : tuple of ConvertedArray
        The arrays.
    n_groups : int
        Number of groups.
    seconds : float
        Duration of the run.
    verified, dry_run : bool
        Whether all values were compared; whether nothing was written.
    was_finished : bool
        Whether an earlier run had finished the copy, as far as documents tell it.
    same_places : bool or None
        Whether axes and positions are those of the source; None without a report.
    """

    source: str
    destination: str
    arrays: tuple[ConvertedArray, ...]
    n_groups: int
    seconds: float
    verified: bool = False
    dry_run: bool = False
    was_finished: bool = False
    same_places: bool | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes of all elements."""
        return sum(array.n_bytes for array in self.arrays)

    def __str__(self) -> str:
        arrays = f"{counted(len(self.arrays), 'array')}, {bytes_text(self.n_bytes)}"
        done = f", in {self.seconds:.1f} s{', equal to the source' * self.verified}"
        return (
            f"{self.destination}: {arrays}{' of elements, not written' if self.dry_run else done}"
        )

    def __repr__(self) -> str:
        return f"<Conversion of {self.source} to {self}>"

    @property
    def n_bytes_written(self) -> int:
        """Bytes that were written in this run."""
        return sum(array.n_bytes_written for array in self.arrays)


@dataclass(frozen=True, eq=False)
class Plan:
    """What is written to a destination, and how.

    Parameters
    ----------
    found : SourceTree
        The arrays and groups.
    target : Destination
        Where they are written.
    layout : Layout
        Requested chunks, shards and compression.
    options : RunOptions
        Where the tasks run.
    copies : sequence of ArrayCopy
        The copy of each array.
    others : sequence of FileCopy
        Files that are copied unchanged.
    size : TaskSize
        Bytes of the elements of a task.
    max_memory : int
        Bytes of elements that all workers together may hold.
    """

    found: SourceTree
    target: Destination
    layout: Layout
    options: RunOptions
    copies: Sequence[ArrayCopy]
    others: Sequence[Copy]
    size: TaskSize
    max_memory: int

    @classmethod
    def of(
        cls,
        found: SourceTree,
        target: Destination,
        layout: Layout,
        options: RunOptions,
        max_memory: int,
        folders: Mapping[str, Folder] = MappingProxyType({}),
    ) -> Self:
        """Plan the copies; nothing is written.

        Parameters
        ----------
        found, target, layout, options : SourceTree, Destination, Layout, RunOptions
            As above.
        max_memory : int
            Bytes of elements that all workers together may hold.
        folders : mapping of str to Folder, optional
            Nodes whose files are copied unchanged, by path.

        Raises
        ------
        N5Error
            The destination cannot hold the source, or a package is missing.
        """
        check_arrays(found, layout)
        warn_of_fill_values(found, target)
        if not isinstance(target, N5Destination):
            warn_of_text(str(target), found.groups, found.arrays)
        waits = not (found.is_local and target.storage.supports_sync)
        if waits and options.scheduler is None:
            options = replace(options, n_workers=options.n_workers or _REMOTE_WORKERS)
        size = TaskSize.of(options.memory_of_worker(max_memory) // 2, waits=waits)
        copies = plan_copies(found, target, layout, size)
        others = plan_opaque(folders, target)
        check_packages(copies)
        return cls(found, target, layout, options, copies, others, size, max_memory)

    @property
    def by_path(self) -> dict[str, ArrayCopy]:
        """The copy of each array by its path."""
        return dict(zip(self.found.arrays, self.copies, strict=True))

    def run(
        self,
        job: Mapping[str, JSON],
        began: float,
        *,
        overwrite: bool,
        resume: bool,
        verify: bool,
        dry_run: bool,
    ) -> Conversion:
        """Write everything, or compare what an earlier run has written.

        Parameters
        ----------
        job : mapping
            What is done, for a run that continues this one.
        began : float
            The monotonic time when the user asked for it.
        overwrite, resume, verify, dry_run : bool
            As for :func:`~n5zarr.convert`.
        """
        found, target, copies = self.found, self.target, self.copies
        division = self.options.division
        verify = verify or (division.ends and report_of_run() is not None)
        is_finished = target.check_free(overwrite=overwrite, resume=resume or not division.is_whole)
        require(
            division.part is None or not is_finished,
            f"{target}: expected a copy whose parts are still written, got a finished one; to copy "
            "again, remove it first",
        )
        counts = [Copied() for _ in copies]
        if not dry_run:
            options = self.options.checked(hidden_stores(found, target))
            everything = [*copies, *self.others]
            if is_finished:
                if verify or not division.ends:
                    _compare(everything, target, options)
                is_verified = verify or not division.ends
                self.report(options, verified=is_verified)
            else:
                if overwrite:
                    target.remove()
                whole = {**job, **_described_job(found, target, self.layout)}
                if not division.is_whole:  # parts divide arrays by the size of tasks
                    whole[MAX_MEMORY] = self.max_memory
                counts = _write(self, whole, options, resume=resume, verify=verify)
        return Conversion(
            source=found.name,
            destination=str(target),
            arrays=tuple(map(_described, found.arrays, copies, counts)),
            n_groups=len(found.groups),
            seconds=0.0 if dry_run else time.monotonic() - began,
            verified=(verify or (is_finished and not division.ends)) and not dry_run,
            dry_run=dry_run,
            was_finished=is_finished,
        )

    def report(self, options: RunOptions, *, verified: bool) -> None:
        """Add what is written to the report, if there is one."""
        if (report := report_of_run()) is not None:
            copies, target = self.by_path, self.target
            add_copies(report, copies, target, options, self.max_memory, verified=verified)


def _described(path: str, copy: ArrayCopy, copied: Copied) -> ConvertedArray:
    array = copy.target.array
    is_anew = isinstance(copy, BlockCopy) and not copy.passes_files
    way = "values" if is_anew else copy.way
    return ConvertedArray(
        path, way, array.shape, array.chunks, array.shards, copy.n_bytes, *copied[:2]
    )


def _write(
    plan: Plan, job: Mapping[str, JSON], options: RunOptions, *, resume: bool, verify: bool
) -> list[Copied]:
    """Write the destination; return the counts of each copy."""
    division, target, copies = options.division, plan.target, [*plan.copies, *plan.others]
    counts = [Copied() for _ in copies]
    with target.writing(job, resume=resume, division=division) as owned:
        if division.ends:
            _check_made(copies, owned, target)
        else:
            is_stale = _is_chunk if owned.part is None and _know_files(copies) else None
            left = owned.unchanged(_pieces_of(copies, owned.part), target.storage, is_stale)
            counts = _run_copies(copies, left, options)
        if verify:
            verify_copies(copies, options)
        plan.report(options, verified=verify)
    return counts


def _compare(copies: Sequence[Copy], target: Destination, options: RunOptions) -> None:
    """Compare a finished destination with the source: its documents do not tell their values."""
    try:
        verify_copies(copies, options)
    except N5Error as err:
        if err.kind == "differs":
            err.add_note(
                f"{target} is no copy of the source; overwrite=True (--overwrite) removes it"
            )
        raise


def _described_job(found: SourceTree, target: Destination, layout: Layout) -> dict[str, JSON]:
    """Describe the conversion, for a run that continues an interrupted one."""
    compression = layout.compression
    return {
        "convert": found.name,
        SOURCE: described_sources(found),
        "arrays": len(found.arrays),
        "to": f"{type(target).__name__} {target.zarr_format}",
        "chunks": layout.chunks,
        "shards": layout.shards,
        "compression": None if compression is None else compression_to_json(compression),
    }


def plan_copies(
    found: SourceTree, target: Destination, layout: Layout, size: TaskSize
) -> list[ArrayCopy]:
    """Make the documents of a destination in memory, and choose how each array is copied.

    Parameters
    ----------
    found : SourceTree
        The arrays and groups.
    target : Destination
        The destination; nothing is written to it.
    layout : Layout
        Requested chunks, shards and compression.
    size : TaskSize
        Bytes of the elements of a task.
    """
    if isinstance(target, N5Destination) and found.container is not None:
        target.keep_groups(found.container, found.path, list(found.groups))
    else:
        for path, attributes in found.groups.items():
            target.create_group(path, attributes)
    for path, data in found.files.items():
        target.add_file(path, data)
    return [
        copy_of(source, target.create_array(path, source, layout), size)
        for path, source in found.arrays.items()
    ]


def _run_copies(copies: Sequence[Copy], owned: Owned, options: RunOptions) -> list[Copied]:
    """Copy everything; return the counts of each copy."""
    counts = {copy: Copied() for copy in copies}
    tasks = chain.from_iterable(copy.tasks(owned) for copy in copies)
    total = _n_bytes(copies, options)
    for task, (copied, seals) in options.each(
        _copy, tasks, "copy", total, is_light=lambda task: task.copy.is_light
    ):
        counts[task.copy] = Copied(*map(add, counts[task.copy], copied))
        if owned.ledger is not None:
            owned.ledger.note(seals)
    return list(counts.values())


def _copy(task: CopyTask) -> tuple[Copied, bytes]:
    """Copy a part; return what notices later changes, which is made before reading."""
    seals = b"".join(map(seal, task.copy.pieces(task.part)))
    return task.copy.copy(task.part), seals


def _n_bytes(copies: Sequence[Copy], options: RunOptions) -> int:
    """Return the bytes of elements that this run copies, about."""
    part = options.division.part
    return sum(copy.n_bytes for copy in copies) // (1 if part is None else part.of)


def verify_copies(copies: Sequence[Copy], options: RunOptions) -> None:
    """Read sources and destinations, and compare them.

    Raises
    ------
    N5Error
        A value differs (``kind="differs"``).
    """
    part = options.division.part
    work, each = _verify, (copy.comparisons() for copy in copies)
    if part is not None:  # what other parts write need not be there yet
        work, each = _verify_copied, (copy.tasks(Owned(part=part)) for copy in copies)
    total = _n_bytes(copies, options)
    tasks = chain.from_iterable(each)
    deque(
        options.each(work, tasks, "verify", total, is_light=lambda task: task.copy.is_light),
        maxlen=0,
    )


def _verify(task: CopyTask) -> None:
    task.copy.compare(task.part)


def _verify_copied(task: CopyTask) -> None:
    task.copy.compare_copied(task.part)


def _check_made(copies: Sequence[Copy], owned: Owned, target: Destination) -> None:
    """Check that parts have copied everything as the source has it now; remove what it lacks.

    Raises
    ------
    N5Error
        The source has changed since (``kind="changed"``).
    """
    if any(copy.knows_files for copy in copies):
        is_stale = _is_chunk if _know_files(copies) else None
        owned.check_made(_pieces_of(copies, None), target.store, target.path, is_stale)


def _know_files(copies: Sequence[Copy]) -> bool:
    return all(copy.knows_files for copy in copies)


def _pieces_of(copies: Sequence[Copy], part: Part | None) -> Iterator[Piece]:
    for copy in copies:
        for task in copy.tasks(Owned(part=part)) if copy.knows_files else ():
            yield from copy.pieces(task.part)


def _is_chunk(key: str) -> bool:
    """Whether a key that an interrupted run has written is that of a chunk."""
    name = key.rpartition("/")[2]
    return not (name in _DOCUMENTS or is_unfinished(name) or name.startswith("n5zarr-"))
