"""``n5zarr.build_pyramid``: write coarser levels ``s1``, ``s2``, ... beside ``s0``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from n5zarr.arrays.boxes import n_boxes
from n5zarr.codecs.compress import codec_of
from n5zarr.container.options import check_compression, require
from n5zarr.errors import ErrorsAt
from n5zarr.format.lenient_json import JSON
from n5zarr.rooms import Door
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.place import Backend, Location, Place, place_of
from n5zarr.tools.jobs.parts import Division
from n5zarr.tools.jobs.run import MAX_MEMORY, Progress, RunOptions, Scheduler
from n5zarr.tools.pyramid.finding import copying, find_finest, group_of
from n5zarr.tools.pyramid.image import PyramidImage, Wanted
from n5zarr.tools.pyramid.methods import Method
from n5zarr.tools.pyramid.model import Pyramid, PyramidLevel, PyramidOptions, choose_levels
from n5zarr.tools.pyramid.plan import LevelPlan

_PARTS_OF_S0 = (
    "part, finish: expected none with to (--to); n5zarr convert (--part) copies a dataset to s0 of "
    "a group, beside which n5zarr pyramid (--part) writes levels"
)


_FIND_OME: Door[Callable[[Place, str, str], PyramidImage | None]] = Door(
    "step", "levels of OME-Zarr"
)


def build_pyramid(  # noqa: PLR0913 - one keyword for each choice
    location: Location,
    path: str = "",
    *,
    to: Location | None = None,
    factors: Sequence[int] | Literal["auto"] = "auto",
    levels: int | Literal["auto"] = "auto",
    method: Literal["auto"] | Method = "auto",
    convention: str = "auto",
    compression: Mapping[str, JSON] | str | None = None,
    chunks: Sequence[int] | None = None,
    max_num_entries: int = -1,
    overwrite: bool = False,
    resume: bool = False,
    part: str | tuple[int, int] | None = None,
    finish: bool = False,
    dry_run: bool = False,
    max_memory: int = MAX_MEMORY,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
    scheduler: Scheduler = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> Pyramid:
    """Write coarser levels of an image, ``s1``, ``s2``, ..., beside its dataset ``s0``.

    Each level is computed from the previous one, several in one pass over the data. Blocks with
    only the fill value are not written, and empty regions are not read. The levels appear when all
    of them are complete, and the group lists them last.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one; or an image of OME-Zarr 0.4 or 0.5, whose levels are
        named like its first one, and listed in its ``multiscales``.
    path : str, optional
        The dataset ``s0`` below ``location``, or its group; else ``to`` is needed.
    to : path, URL or zarr store, optional
        Copy the dataset to ``s0`` of this group: a path in the same container, or a location, with
        ``/`` or ``.`` at its beginning or a name that ends in ``.n5``.
    factors : sequence of int or "auto", optional
        How many elements to combine at each level: one number for each axis, in the order of the
        array (z, y, x; the reverse of N5's). ``"auto"``: 2 along the spatial axes with the shortest
        voxels; never along channels and time.
    levels : int or "auto", optional
        Number of levels; ``"auto"``: until one is at most a block, or 64 elements, long along each
        spatial axis.
    method : {"auto", "mean", "mode", "median", "gaussian", "stride", "multiset"}, optional
        How to combine elements. ``"auto"``: ``"mode"`` for bool and for integers of 32 and 64
        bits, which are labels, else ``"mean"``. Labels of 8 and 16 bits need ``"mode"``.
        ``"multiset"``, for label multisets only: sum the counts of each label, as Paintera does.
    convention : ConventionName, optional
        Convention for the positions of the levels and of ``s0``; ``"auto"``: that of ``s0``, or
        ``"cosem"``. OME-Zarr has its own.
    compression : mapping or str, optional
        As for :func:`n5zarr.create_array`; by default that of ``s0``.
    chunks : sequence of int, optional
        Extent of a block, a number for each axis, in the order of the array; by default as ``s0``.
    max_num_entries : int, optional
        For label multisets: how many labels of a voxel to keep, the most frequent ones; all if
        below 1.
    overwrite : bool, optional
        Whether to remove all existing coarser levels first; with ``to``, also ``s0``.
    resume : bool, optional
        Whether to continue an interrupted run, and keep what it has written. The levels of a
        finished run are computed again and compared.
    part : str or (int, int), optional
        Do only one of several parts, such as ``"3/100"``: processes on one or more machines do a
        part each, with otherwise equal options; a part that was killed is repeated.
    finish : bool, optional
        After all parts: compute the coarsest levels, and list all.
    dry_run : bool, optional
        Whether to return the planned levels only.
    max_memory : int, optional
        Bytes that all workers together may use, in addition to Python; larger blocks need more.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.
    scheduler, n_workers, progress : optional
        ``"threads"``, ``"processes"``, or dask's address or client; number of workers; a callable
        that takes the name of a stage, the bytes done and the bytes to do.

    Returns
    -------
    Pyramid
        The levels, with their extent, position and size.

    Raises
    ------
    FileNotFoundError
        No node exists at this path.
    N5UnrepresentableError
        There is no ``s0``, levels or files exist already, or an option does not fit
        (``kind="option"``); nothing is written.
    N5UnsupportedError
        The elements are not numbers (``kind="data-type"``), or the compression can only be read
        (``kind="compression"``).
    N5Error
        The levels of a finished run are resumed, and have other elements (``kind="differs"``).

    Examples
    --------
    >>> import pathlib, tempfile, n5zarr
    >>> where = pathlib.Path(tempfile.mkdtemp(), "new.n5", "em", "s0")
    >>> array = n5zarr.create_array(
    ...     where, shape=(20, 50, 70), dtype="u1", chunks=(8, 8, 8),
    ...     axes="zyx", units=["nm"] * 3, resolution=[20, 8, 8],
    ... )
    >>> for level in n5zarr.build_pyramid(where, levels=2).levels:
    ...     print(level.path, level.shape, level.scale, level.translation)
    em/s1 (20, 25, 35) (20.0, 16.0, 16.0) (0.0, 4.0, 4.0)
    em/s2 (10, 13, 18) (40.0, 32.0, 32.0) (10.0, 12.0, 12.0)
    """
    access: dict[str, Any] = {"storage_options": storage_options, "backend": backend}
    place = place_of(location, **access, one_of_two=to is not None)
    options = PyramidOptions.of(
        factors=factors,
        levels=levels,
        method=method,
        convention=convention,
        compression=compression,
        chunks=chunks,
        max_num_entries=max_num_entries,
        overwrite=overwrite,
        resume=resume,
        dry_run=dry_run,
        max_memory=max_memory,
        run=RunOptions(
            scheduler,
            n_workers,
            progress,
            Division.of(part, finish=finish, overwrite=overwrite),
        ),
    )
    require(options.run.division.is_whole or to is None, _PARTS_OF_S0)
    require(
        not (overwrite and resume),
        "expected either overwrite (--overwrite) or resume (--resume), got both",
    )
    if to is None:
        return build_levels(place, path, options)
    return _beside_a_copy(place, path, group_of(to, place, **access), options)


def build_levels(place: Place, path: str, options: PyramidOptions) -> Pyramid:
    """Write levels beside the finest one; see :func:`build_pyramid`."""
    with asking_once():
        find_ome = _FIND_OME.found()
        image = find_ome and find_ome(place, path, options.convention)
        image = image or find_finest(place, path, options)
    return _build(image, options)


def _beside_a_copy(place: Place, path: str, group: Place, options: PyramidOptions) -> Pyramid:
    """Copy an image of N5 to ``s0`` of a group, and write levels beside it."""
    with asking_once():
        copied = copying(place, path, group, options)
    planned = _build(copied.image, replace(options, dry_run=True))
    copied.check(options)
    if options.dry_run:
        return replace(planned, source=copied.source)
    copied.run(options, planned.removed)
    made = _build(find_finest(copied.place, "", options), options)
    return replace(made, source=copied.source, removed=planned.removed)


def _build(image: PyramidImage, options: PyramidOptions) -> Pyramid:
    """Write levels of an image; see :func:`build_pyramid`."""
    division = options.run.division
    with asking_once():
        with ErrorsAt(f"{image.storage}: {image.source.path}"):
            plan = _plan(image, options)
        there = image.existing(list(map(image.name, plan.levels)))
    with ErrorsAt(str(image)):
        earlier = _earlier(plan, there, options)
        require(
            division.part is None or earlier != "finished",
            "expected levels whose parts are still written, got finished ones; to write them "
            "again, remove them first",
        )
        removed = there if earlier == "none" and plan.levels else []
        image.check_removable(removed)
    if options.dry_run:
        return _result(plan, removed, is_written=False)
    if earlier == "finished":
        if not division.ends:
            plan.compare()
    elif plan.levels:
        if removed:
            image.remove(removed)
        plan.run(resume=earlier == "interrupted")
        if division.part is not None:
            return _result(plan, removed, is_written=False)
        image.warn(plan.levels, plan.wanted.method)
    return _result(plan, removed, is_written=True)


def _earlier(
    plan: LevelPlan, there: Sequence[str], options: PyramidOptions
) -> Literal["interrupted", "finished", "none"]:
    """Return the state of the earlier run that this one continues, if there is one.

    Parameters
    ----------
    plan : LevelPlan
        The levels.
    there : sequence of str
        Names of levels that exist, listed before: another part may have just begun.
    options : PyramidOptions
        The options of the user.

    Raises
    ------
    N5UnrepresentableError
        Levels exist that are neither continued nor replaced (``kind="option"``).
    """
    image, more, way = plan.image, "", ""
    resume = options.resume or not options.run.division.is_whole
    if plan.is_interrupted():
        if resume:
            return "interrupted"
        more, way = " of an interrupted run", "resume=True (--resume) continues it, "
    elif resume and not options.overwrite and there == list(map(image.name, plan.levels)):
        known, method = image.known_method, plan.wanted.method
        require(
            known in (None, method),
            f"expected the method of the run that wrote the levels, {known}, got {method}",
        )
        if plan.is_finished():
            return "finished"
    require(
        options.overwrite or not there,
        f"expected no levels beside {image.name(image.source)}, got {', '.join(there)}{more}; "
        f"{way}overwrite=True (--overwrite) removes them first",
    )
    return "none"


def _plan(image: PyramidImage, options: PyramidOptions) -> LevelPlan:
    shape, compression = image.source.shape, image.compression
    if options.compression is not None:
        compression = check_compression(options.compression)
    if compression is not None:
        codec_of(compression).check_writable(compression)
    chunks = image.chunks if options.chunks is None else tuple(options.chunks)
    require(
        len(chunks) == len(shape) and min(chunks) >= 1 and max(chunks) < 2**31,
        f"chunks: expected {len(shape)} numbers from 1 to 2**31 - 1, got {list(chunks)}",
    )
    chosen = choose_levels(
        shape, chunks, image.voxel, factors=options.factors, n_levels=options.levels
    )
    method = image.method(options.method)
    require(
        method == "multiset" or options.max_num_entries < 1,
        "max_num_entries (--max-num-entries): expected label multisets, got an image",
    )
    wanted = Wanted(
        method=method,
        chunks=chunks,
        compression=compression,
        is_chunked=options.chunks is not None,
        max_entries=options.max_num_entries if options.max_num_entries >= 1 else -1,
    )
    levels = image.levels(chosen, wanted)
    run = options.run.checked([] if image.storage.is_shared else ["this store"])
    plan = LevelPlan(image, levels, wanted, run, run.memory_of_worker(options.max_memory))
    plan.check_cells()
    return plan


def _result(plan: LevelPlan, removed: Sequence[str], *, is_written: bool) -> Pyramid:
    image, levels = plan.image, []
    for made in plan.levels:
        axes = image.axes_at(made.total, plan.wanted.method)
        levels.append(
            PyramidLevel(
                path=made.path,
                shape=made.shape,
                chunks=plan.wanted.chunks,
                factors=made.total,
                scale=tuple(axis.scale for axis in axes),
                translation=tuple(axis.translation for axis in axes),
                units=tuple(axis.unit for axis in axes),
                n_blocks=n_boxes(made.shape, made.block),
                n_blocks_stored=len(plan.stored(made)) if is_written else None,
                n_bytes=math.prod(made.shape) * image.dtype.itemsize,
                n_bytes_stored=image.n_bytes_stored(made) if is_written else None,
            )
        )
    return Pyramid(
        container=str(image.storage),
        path=image.group,
        method=plan.wanted.method,
        convention=image.convention,
        levels=tuple(levels),
        removed=tuple(removed),
    )
