"""``n5zarr.convert``: copy a dataset, a group or a container to N5 or Zarr."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from n5zarr.container.options import check_sizes, listed
from n5zarr.container.path_patterns import PathPatterns
from n5zarr.errors import N5Error
from n5zarr.format.compression import compression_to_json
from n5zarr.images.find import images_in, ome_tree
from n5zarr.images.from_ome import from_ome
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.place import place_of
from n5zarr.tools.convert.checks import (
    check_arrays,
    check_found,
    check_ome,
    check_options,
    check_packages,
    check_places,
    hidden_stores,
    warn_of_fill_values,
)
from n5zarr.tools.convert.copying import copy_of
from n5zarr.tools.convert.drafts import check_drafts, multiset_copy, with_multisets
from n5zarr.tools.convert.files import Copied, TaskSize, opaque_folders, plan_opaque
from n5zarr.tools.convert.from_zarr import coords_tree
from n5zarr.tools.convert.layout import Layout
from n5zarr.tools.convert.paintera import as_paintera
from n5zarr.tools.convert.places import open_destination, open_shards, open_source
from n5zarr.tools.convert.running import run_copies, verify_copies
from n5zarr.tools.convert.target_n5 import N5Destination
from n5zarr.tools.jobs.run import MAX_MEMORY, RunOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.format.lenient_json import JSON
    from n5zarr.format.order import CTuple
    from n5zarr.images.ome_version import OmeVersion
    from n5zarr.images.source import SourceTree
    from n5zarr.storage.place import Backend, Location, Place
    from n5zarr.tools.convert.copying import ArrayCopy, Way
    from n5zarr.tools.convert.files import Copy
    from n5zarr.tools.convert.places import Format
    from n5zarr.tools.convert.target import Destination
    from n5zarr.tools.jobs.run import Progress, Scheduler

__all__ = ["Conversion", "ConvertedArray", "convert", "plan_copies"]

_REMOTE_WORKERS = 16  # they wait for servers most of the time


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
    """

    source: str
    destination: str
    arrays: tuple[ConvertedArray, ...]
    n_groups: int
    seconds: float
    verified: bool = False
    dry_run: bool = False

    @property
    def n_bytes(self) -> int:
        """Bytes of all elements."""
        return sum(array.n_bytes for array in self.arrays)

    @property
    def n_bytes_written(self) -> int:
        """Bytes that were written in this run."""
        return sum(array.n_bytes_written for array in self.arrays)


def convert(  # noqa: PLR0913 - one keyword for each option
    source: Location,
    destination: Location,
    *,
    to: Format | None = None,
    select: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    level: int | None = None,
    ome: bool = False,
    ome_version: OmeVersion | None = None,
    labels: str | Sequence[str] = (),
    paintera_labels: str | Sequence[str] = (),
    coords: bool = False,
    drafts: bool = False,
    chunks: int | Sequence[int] | None = None,
    shards: int | Sequence[int] | None = None,
    compression: Mapping[str, JSON] | str | None = None,
    shards_of_java: int | Sequence[int] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    verify: bool = False,
    dry_run: bool = False,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
    destination_options: Mapping[str, object] | None = None,
    destination_backend: Backend | None = None,
    max_memory: int = MAX_MEMORY,
    scheduler: Scheduler = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> Conversion:
    """Copy a dataset, a group or a whole container to N5 or Zarr.

    Copies the stored bytes if chunks and compression stay, and copies attributes, names of
    dimensions and groups. Documents are written last: until then nobody can open the destination,
    and ``n5zarr-incomplete.json`` in it describes the unfinished run.

    Parameters
    ----------
    source : path, URL or zarr store
        N5 or Zarr: an array, a group or a whole container; or BigDataViewer's XML. In N5,
        OME-Zarr images get N5's attributes, and levels named ``s0``, ``s1``, ....
    destination : path, URL or zarr store
        Where to write the copy: ``"out.zarr"``, ``"out.n5/em/s0"``.
    to : {"zarr", "zarr2", "n5"}, optional
        Zarr v3, Zarr v2 or N5; by default chosen by the suffix ``.n5`` or ``.zarr`` in
        ``destination``.
    select, exclude : str or sequence of str, optional
        Path patterns, such as ``"em/*"``, of arrays to copy (default: all), and to leave out.
    level : int, optional
        Copy only this level of each pyramid ``s0``, ``s1``, ....
    ome, ome_version : bool, {"0.5", "0.4"}, optional
        Write OME-Zarr: images with axes, units, scale and offset from any convention, and an image
        for each setup of BigDataViewer's XML. 0.5 is Zarr v3, 0.4 is Zarr v2; ``to`` chooses, too.
    labels : str or sequence of str, optional
        With ``ome``, path patterns of images that are labels, beside those marked as labels.
    paintera_labels : str or sequence of str, optional
        To N5, path patterns of arrays of integers that become Paintera's label sources: groups
        with label multisets in ``data/s0``.
    coords : bool, optional
        From N5 to Zarr v3, write coordinates of axes as arrays, like ``N5Store(..., coords=True)``,
        so that ``xr.open_zarr`` finds positions and units.
    drafts : bool, optional
        Copy label multisets whole to Zarr v3, and back, in a draft of Zarr extensions that may
        change; see :func:`n5zarr.register_drafts`. Else Zarr gets the most frequent labels.
    chunks, shards : int or sequence of int, optional
        Extent of a chunk (N5: block) and of a shard in elements, C order; one number for all axes.
        Several numbers apply only to arrays with as many axes. Default: the source's chunks, no
        shards.
    compression : mapping or str, optional
        As in ``attributes.json``: ``"zstd"``, ``{"type": "gzip", "level": 5}``. Default: that of
        the source, or zstd if Zarr has no codec for it that every reader knows.
    shards_of_java : int or sequence of int, optional
        Extent in elements, C order, of the shards that Java N5 4 wrote under a plain document; one
        number for all axes. :func:`n5zarr.validate` finds it. Datasets without shards are copied
        too.
    overwrite, resume : bool, optional
        Remove an existing destination, after all checks; continue an interrupted run, or compare a
        finished one.
    verify, dry_run : bool, optional
        Compare all values before the documents are written; return what a run would do, and write
        nothing.
    storage_options, backend, destination_options, destination_backend : optional
        Options for the URL of the source, and the library that reads it, as for
        :class:`~n5zarr.N5Store`; the same of the destination.
    max_memory : int, optional
        Bytes of elements that all workers together may hold.
    scheduler, n_workers, progress : optional
        See :func:`~n5zarr.tools.jobs.run.run_tasks`.

    Returns
    -------
    Conversion
        How each array was copied.

    Raises
    ------
    FileNotFoundError
        The source does not exist.
    N5UnrepresentableError
        The destination exists, cannot hold the source, or an option does not apply.
    N5Error
        The source is broken, or ``verify`` finds other values (``kind="differs"``).

    Examples
    --------
    >>> import pathlib, tempfile, n5zarr, zarr
    >>> out = pathlib.Path(tempfile.mkdtemp(), "out.zarr")
    >>> done = n5zarr.convert(f"{n5zarr.sample_path()}/em", out, select="s*")
    >>> [(array.path, array.way) for array in done.arrays]
    [('s0', 'chunks'), ('s1', 'chunks'), ('s2', 'chunks')]
    >>> zarr.open(out, mode="r")["s1"].shape
    (20, 48, 64)
    """
    began = time.monotonic()
    place = place_of(destination, destination_options, destination_backend)
    target = open_destination(place, to, ome_version)
    patterns, excluded, wanted_labels = map(listed, (select, exclude, labels))
    of_paintera = listed(paintera_labels)
    version = check_ome(target, ome_version, wanted_labels, ome=ome)
    check_options(
        target,
        ome=ome,
        coords=coords,
        shards=shards,
        overwrite=overwrite,
        resume=resume,
        n_workers=n_workers,
    )
    check_drafts(target, drafts=drafts, shown=ome or coords)
    layout = Layout.of(chunks, shards, compression)
    sizes = check_sizes("shards_of_java", shards_of_java)
    source_place = place_of(source, storage_options, backend)
    with asking_once():
        paths = PathPatterns(patterns, excluded)
        tree = _open(source_place, target, paths, sizes, coords=coords)
        found = tree.only(paths, level)
        folders = opaque_folders(found, target)
        check_found(found, folders, patterns, level, excludes=bool(excluded))
        check_places(found, target)
        found = _as_written(found, target, version, wanted_labels, drafts=drafts)
        given = RunOptions(scheduler, n_workers)
        found = as_paintera(found, target, of_paintera, given, is_read=not dry_run)
        check_arrays(found, layout)
        warn_of_fill_values(found, target)
        options, size = _run_options(found, target, (scheduler, n_workers, progress), max_memory)
        copies = plan_copies(found, target, layout, size)
        opaque = plan_opaque(folders, target)
    check_packages(copies)
    is_finished = target.check_free(overwrite=overwrite, resume=resume)
    counts = [Copied() for _ in copies]
    if not dry_run:
        options = options.checked(hidden_stores(found, target))
        job: dict[str, JSON] = {
            "select": patterns,
            "exclude": excluded,
            "level": level,
            "ome": ome,
            "coords": coords,
            "labels": wanted_labels,
            "paintera_labels": of_paintera,
            "drafts": drafts,
            "shards_of_java": sizes,
            **_described_job(found, target, layout),
        }
        everything = [*copies, *opaque]
        if is_finished:
            _compare(everything, target, options)
        else:
            if overwrite:
                target.remove()
            counts = _write(everything, target, job, options, resume=resume, verify=verify)
    return Conversion(
        source=found.name,
        destination=str(target),
        arrays=tuple(map(_described, found.arrays, copies, counts)),
        n_groups=len(found.groups),
        seconds=0.0 if dry_run else time.monotonic() - began,
        verified=(verify or is_finished) and not dry_run,
        dry_run=dry_run,
    )


def _open(
    source: Place,
    target: Destination,
    paths: PathPatterns,
    shards_of_java: CTuple | None,
    *,
    coords: bool,
) -> SourceTree:
    if shards_of_java is not None:
        source = open_shards(source, shards_of_java)
    if coords:
        return coords_tree(source, paths)
    return open_source(source, target.zarr_format, paths)


def _as_written(
    found: SourceTree,
    target: Destination,
    version: OmeVersion | None,
    labels: Sequence[str],
    *,
    drafts: bool,
) -> SourceTree:
    """Return a source with the names and attributes of OME-Zarr or N5, or unchanged."""
    if drafts:
        found = with_multisets(found, target)
    if isinstance(target, N5Destination) and found.container is None:
        return from_ome(found)
    return found if version is None else ome_tree(images_in(found, labels=labels), version)


def _run_options(
    found: SourceTree,
    target: Destination,
    given: tuple[Scheduler, int | None, Progress | None],
    max_memory: int,
) -> tuple[RunOptions, TaskSize]:
    """Return the options of the tasks, and their size: many workers if they wait for servers."""
    waits = not (found.is_local and target.storage.supports_sync)
    options = RunOptions(*given)
    if waits and options.scheduler is None:
        options = replace(options, n_workers=options.n_workers or _REMOTE_WORKERS)
    return options, TaskSize.of(options.memory_of_worker(max_memory) // 2, waits=waits)


def _described(path: str, copy: ArrayCopy, copied: Copied) -> ConvertedArray:
    array = copy.target.array
    return ConvertedArray(
        path, copy.way, array.shape, array.chunks, array.shards, copy.n_bytes, *copied[:2]
    )


def _write(
    copies: Sequence[Copy],
    target: Destination,
    job: Mapping[str, JSON],
    options: RunOptions,
    *,
    resume: bool,
    verify: bool,
) -> list[Copied]:
    """Write the destination; return the counts of each copy."""
    with target.writing(job, resume=resume) as done:
        counts = run_copies(copies, done, options)
        if verify:
            verify_copies(copies, options)
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
    written = [
        (source, target.create_array(path, source, layout)) for path, source in found.arrays.items()
    ]
    return [multiset_copy(*each, size) or copy_of(*each, size) for each in written]
