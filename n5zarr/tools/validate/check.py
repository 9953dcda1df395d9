"""``n5zarr.validate``: check every document and every block of a container."""

from __future__ import annotations

import math
import os
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import batched, islice
from typing import get_args

from n5zarr.container.node_names import Broken
from n5zarr.container.nodes import read_document
from n5zarr.container.walk import PathPatterns, Unreadable, Walk, WalkNode
from n5zarr.conventions.levels import listed_levels
from n5zarr.errors import N5Error
from n5zarr.format.attributes import DatasetAttributes, GroupAttributes, parse_attributes
from n5zarr.format.grid import is_block_name
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import join
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.place import Backend, Location, Place, place_of
from n5zarr.storage.requests import list_each
from n5zarr.store.locating import Located, locate
from n5zarr.store.missing_nodes import existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.convert.places import open_source
from n5zarr.tools.jobs.parts import Division
from n5zarr.tools.jobs.reports import Reported, recorded, report_of_run
from n5zarr.tools.jobs.run import Progress, RunOptions, Scheduler
from n5zarr.tools.validate.batches import Batch, BatchReport, CheckTask, check_batches, size_finding
from n5zarr.tools.validate.documents import (
    check_broken,
    check_group,
    check_is_object,
    check_version_form,
)
from n5zarr.tools.validate.files import check_group_files, list_blocks
from n5zarr.tools.validate.findings import Finding, Severity, Validation, finding
from n5zarr.tools.validate.gaps import Gaps, StoredGrid
from n5zarr.tools.validate.of_rooms import Check, check_of_room
from n5zarr.tools.validate.state import State, open_state
from n5zarr.zarr_view.dataset_view import DatasetView

_BLOCKS = 256  # in a task
_LARGEST = 2**56  # bytes of an array that are counted for the progress
_ORDER = get_args(Severity.__value__)


@recorded("validate", "location")
def validate(  # noqa: PLR0913 - one keyword for each option
    location: Location,
    path: str = "",
    *,
    deep: bool = False,
    expect_complete: bool = False,
    state: str | os.PathLike[str] | None = None,
    part: str | tuple[int, int] | None = None,
    finish: bool = False,
    report: Reported = None,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
    scheduler: Scheduler = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> Validation:
    """Check every document and every block of a container, or of a part of it.

    For each block, checks its header, its size at its position, and both ends of its payload:
    length, stored lengths at the end, blosc's and zstd's headers. Decodes blocks that these checks
    do not prove to be complete, and blocks of lz4 and strings.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, a location in one, a project's XML; of OME-Zarr only ``deep`` reads chunks.
    path : str, optional
        Node below ``location``: a group or dataset.
    deep : bool, optional
        Whether to decode every block, which also compares the checksums of gzip, xz and bzip2.
    expect_complete : bool, optional
        A dataset that lacks blocks is an error.

        By default, missing blocks are legal, and gaps that look like lost files are notes.
    state : path, optional
        A local file that records the progress until the end: the same call continues a check.
    part : str or (int, int), optional
        Check only one of several parts of the blocks, such as ``"3/100"``: processes on any
        machines, with otherwise equal options. Each keeps its findings in a file beside ``state``.
    finish : bool, optional
        After all parts: return what they have found, and check what takes all blocks to judge.
    report : path, optional
        Write ``*.json``: findings, and each dataset, with ``deep`` its SHA-256.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.
    scheduler, n_workers, progress : optional
        See :func:`~n5zarr.tools.jobs.run.run_tasks`.

    Returns
    -------
    Validation
        The findings, the worst first, the numbers of checked nodes and blocks, and of each
        dataset's stored blocks. ``ok`` is true if there is nothing worse than a note.

    Raises
    ------
    FileNotFoundError
        The container or node does not exist.
    N5Error
        The location is not N5, the server does not list, or ``state`` belongs to another check.

    Examples
    --------
    >>> import n5zarr
    >>> result = n5zarr.validate(n5zarr.sample_path(), deep=True)
    >>> result.ok, result.n_datasets, result.n_blocks
    (True, 4, 63)
    """
    place = place_of(location, storage_options, backend)
    start = time.monotonic()
    check = _checker(place, path, deep=deep, expect_complete=expect_complete)
    run = RunOptions(scheduler, n_workers, progress, Division.of(part, finish=finish))
    done = _validation(check, sorted(check.run(run, state), key=_rank), time.monotonic() - start)
    _report(done, replace(place, path=join(place.path, path)), run)
    return done


def _report(done: Validation, place: Place, run: RunOptions) -> None:
    """Add findings and arrays to the report, if there is one, and hashes if blocks were decoded."""
    if (report := report_of_run()) is None:
        return
    result, entry = done.to_json(), report.entry
    entry["findings"], entry["status"] = result["findings"], "ok" if done.ok else "problems"
    entry["result"] = {name: result[name] for name in ("n_groups", "n_datasets", "by_severity")}
    if run.division.part is not None:
        return
    with suppress(N5Error):  # which is a finding
        tree = open_source(place, 3, PathPatterns())
        entry["skipped"] = [{"path": p, "reason": str(err)} for p, err in tree.refused.items()]
        arrays = {path: {"location": array} for path, array in tree.arrays.items()}
        hashed = ["location"] if done.deep else ()
        report.add_arrays(arrays, run, hashed=hashed, keeps_going=True)


def _validation(check: Check, findings: Iterable[Finding], seconds: float) -> Validation:
    return Validation(
        container=check.name,
        path=check.path,
        findings=tuple(findings),
        n_groups=check.counts["groups"],
        n_datasets=check.counts["datasets"],
        n_blocks=check.counts["blocks"],
        n_bytes=check.counts["bytes"],
        seconds=seconds,
        deep=check.deep,
        block_counts=check.gaps.counts(),
    )


def find_problems(  # noqa: PLR0913 - one keyword for each option
    location: Location,
    path: str = "",
    *,
    deep: bool = False,
    expect_complete: bool = False,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
    scheduler: Scheduler = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Finding]:
    """Check a container like :func:`validate`, and yield each finding as soon as possible.

    Takes the parameters of :func:`validate`, and raises the same errors.

    Yields
    ------
    Finding
        A problem of a document, block or file.
    """
    place = place_of(location, storage_options, backend)
    check = _checker(place, path, deep=deep, expect_complete=expect_complete)
    yield from check.run(RunOptions(scheduler, n_workers, progress))


def _checker(place: Place, path: str, *, deep: bool, expect_complete: bool) -> Check:
    """Return a check of what is at a location."""
    options = {"deep": deep, "expect_complete": expect_complete}
    return check_of_room(place, path, **options) or check_of(locate(place, path), **options)


def check_of(located: Located, *, deep: bool, expect_complete: bool) -> ContainerCheck:
    """Return a check of a container of N5, or of what is shown as one."""
    with located.named():
        return ContainerCheck(*located.open(writes=False), deep, expect_complete)


def _rank(each: Finding) -> tuple[object, ...]:
    return _ORDER.index(each.severity), each.path, each.kind, each.block or (), each.file or ""


@dataclass
class ContainerCheck:
    """A check of a container, while it runs."""

    store: N5Store
    path: str
    deep: bool
    expect_complete: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    found: deque[Finding] = field(default_factory=deque)  # and not yet yielded
    # of the blocks at the end of each dataset, see `BatchReport`
    n_usual: Counter[str] = field(default_factory=Counter)
    padded: dict[str, list[N5Tuple]] = field(default_factory=partial(defaultdict, list))
    odd: dict[str, list[N5Tuple]] = field(default_factory=partial(defaultdict, list))
    grids: dict[str, list[N5Tuple]] = field(default_factory=dict)
    framings: dict[str, Counter[str]] = field(default_factory=partial(defaultdict, Counter))
    datasets: dict[str, DatasetAttributes] = field(default_factory=dict)
    gaps: Gaps = field(default_factory=Gaps)
    unlisted: set[str] = field(default_factory=set)  # datasets of which not all files are known

    @property
    def name(self) -> str:
        """Name of the container."""
        return str(self.store)

    def __post_init__(self) -> None:
        self._ask = self.store.storage.run  # without warnings, which become findings

    def run(
        self, run: RunOptions, state: str | os.PathLike[str] | None = None
    ) -> Iterator[Finding]:
        """Check nodes, then blocks, then those blocks that the others make suspicious."""
        with asking_once():
            self._check_nodes(self._top())
        yield from self._flush()
        total = sum(map(_n_bytes, self.datasets.values()))
        job: dict[str, JSON] = {"container": str(self.store), "path": self.path, "deep": self.deep}
        division = run.division
        with open_state(state, job, division) as known:
            yield from self._check_batches(self._batches(), known, run, "validate", total)
            if division.part is not None:
                return
            suspicious = [  # padded blocks of datasets in which others are truncated
                Batch(path, self.datasets[path], some, outside=True)
                for path, positions in self.padded.items()
                if self.n_usual[path]
                for some in batched(positions, _BLOCKS)
            ]
            total = sum(each.n_bytes for each in suspicious)
            yield from self._check_batches(suspicious, known, run, "validate padding", total)
        yield from self._judge_odd()
        yield from self._judge_framings()
        for path, grids in self.grids.items():
            yield size_finding(path, self.datasets[path], grids)
        for path in (*self.grids, *self.unlisted):  # whose blocks cannot be counted
            self.gaps.grids.pop(path, None)
        yield from self.gaps.errors() if self.expect_complete else self.gaps.notes()

    def _check_batches(
        self, batches: Iterable[Batch], known: State, run: RunOptions, stage: str, total: int
    ) -> Iterator[Finding]:
        work = partial(check_batches, self.store, deep=self.deep)
        part = run.division.part
        batches = batches if part is None else (each for each in batches if part.owns(each.key))
        total //= 1 if part is None else part.of
        for _, reports in run.each(
            work, self._tasks(batches, known), stage, total, is_light=lambda task: task.is_light
        ):
            for report in reports:
                known.note(report)
                self._take(report)
            yield from self._flush()
        yield from self._flush()

    def _flush(self) -> Iterator[Finding]:
        while self.found:
            yield self.found.popleft()

    # ------------------------------------------------------------------ nodes

    def _top(self) -> GroupAttributes | DatasetView | Broken:
        """Read the first node; a broken document is a finding."""
        try:
            return existing_node(self.store, self.path)
        except N5Error as err:
            if err.kind in ("foreign", "listing", "option", "path"):
                raise
            return Broken(err)

    def _check_nodes(self, top: GroupAttributes | DatasetView | Broken) -> None:
        """Check the documents of all groups, and collect the datasets."""
        if not self.path:
            with suppress(N5Error):  # found below
                self.found += check_version_form(self._ask(read_document("")))
        for found, _ in Walk(self.store.container.nodes, self._ask).run(self.path, top):
            self._check_node(found)

    def _check_node(self, found: WalkNode) -> None:
        path, node = found.path, found.node
        if isinstance(node, Broken | Unreadable):
            self.found += check_broken(path, node)
            self._check_below_broken(path, node)
        elif isinstance(node, DatasetView):
            self.counts["datasets"] += 1
            self.datasets[path] = node.dataset
        elif isinstance(node, GroupAttributes):
            self.counts["groups"] += 1
            names = None if found.children is None else [child.name for child in found.children]
            self.found += check_group(path, node, names)
            self.found += check_group_files(self._ask, path)
            if listed_levels(node.attributes):
                self.gaps.groups[path] = node.attributes
            if not node.attributes:
                self.found += check_is_object(path, self._ask(read_document(path)))

    def _check_below_broken(self, path: str, node: Broken | Unreadable) -> None:
        """Check the nodes below a node without a valid document, if they can be read."""
        if isinstance(node, Unreadable) or node.error.kind in ("foreign", "path"):
            return
        try:
            parsed = parse_attributes(self._ask(read_document(path)))
        except N5Error as err:
            parsed = None
            if err.kind != "json":
                return  # a dataset: its blocks cannot be recognised without its keys
        if isinstance(parsed, DatasetAttributes):  # a dataset of objects, which is no array
            self.counts["datasets"] += 1
            self.datasets[path] = parsed
            return
        names = [e.name for e in self._ask(list_each([path]))[0] if e.is_dir is not False]
        if node.error.kind == "json" and not all(map(is_block_name, names)):
            group = GroupAttributes(attributes={})
            every = Walk(self.store.container.nodes, self._ask).run(path, group)
            for found, _ in islice(every, 1, None):
                self._check_node(found)

    # ------------------------------------------------------------------ blocks

    def _batches(self) -> Iterator[Batch]:
        """Yield the document of each dataset, then its blocks."""
        for path, dataset in self.datasets.items():
            yield Batch(path, dataset, ())
            stored = StoredGrid(dataset.dimensions, dataset.block_size)
            self.gaps.grids[path] = stored
            positions = list_blocks(self._ask, path, dataset.grid, self._take_file)
            for some in batched(positions, _BLOCKS):
                stored.add(some)
                yield Batch(path, dataset, some)

    def _take_file(self, each: Finding) -> None:
        """Take a finding of a listing."""
        self.found.append(each)
        if each.kind == "unreadable":
            self.unlisted.add(each.path)

    def _tasks(self, batches: Iterable[Batch], known: State) -> Iterator[CheckTask]:
        """Put batches together into tasks, and take the reports of those that are done."""
        task: list[Batch] = []
        for batch in batches:
            if batch.key in known.done:
                self._take(known.done[batch.key])
                continue
            task.append(batch)
            # a document takes about as long as 8 blocks
            if sum(len(each.positions) or 8 for each in task) >= _BLOCKS:
                yield CheckTask(task)
                task = []
        if task:
            yield CheckTask(task)

    def _take(self, done: BatchReport) -> None:
        path = done.path
        self.found += done.findings
        self.counts["blocks"] += done.n_blocks
        self.counts["bytes"] += done.n_bytes
        self.n_usual[path] += done.n_usual
        self.padded[path] += done.padded
        self.odd[path] += done.odd
        self.framings[path].update(done.framings)
        if done.grids is not None:
            before = self.grids.get(path, done.grids)
            self.grids[path] = [grid for grid in before if grid in done.grids]

    def _judge_odd(self) -> Iterator[Finding]:
        """Report blocks with values outside the dataset; only as notes if most blocks have some."""
        for path, positions in self.odd.items():
            is_rare = len(positions) <= self.n_usual[path]
            for position in positions:
                message = (
                    "expected nothing, or one value, outside of the dataset, got others: a block "
                    "of another position, or the dataset was made smaller"
                )
                severity: Severity | None = None if is_rare else "note"
                yield finding("misplaced-block", path, message, block=position, severity=severity)

    def _judge_framings(self) -> Iterator[Finding]:
        """Report datasets whose blocks no other program can read together."""
        for path, counts in self.framings.items():
            if len(counts) > 1:
                each = " and ".join(f"{n} of {name}" for name, n in sorted(counts.items()))
                message = f"expected all blocks in the format of one program, got {each}"
                yield finding("framing", path, message)


def _n_bytes(dataset: DatasetAttributes) -> int:
    n_bytes = math.prod(dataset.dimensions) * dataset.data_type.item_size
    return n_bytes if n_bytes < _LARGEST else 0
