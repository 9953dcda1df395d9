"""``n5zarr.build_pyramid``: write coarser levels ``s1``, ``s2``, ... beside ``s0``."""

from __future__ import annotations

import math
from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING, Any

from n5zarr.arrays.boxes import n_boxes
from n5zarr.codecs.compress import codec_of
from n5zarr.container.options import check_compression, require
from n5zarr.errors import ErrorsAt, option_error
from n5zarr.format.order import present
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.place import place_of
from n5zarr.store.ome_place import find_ome
from n5zarr.tools.jobs.parts import Division
from n5zarr.tools.jobs.run import MAX_MEMORY, RunOptions
from n5zarr.tools.pyramid.choose import choose_levels
from n5zarr.tools.pyramid.existing import coarser_levels, remove_datasets
from n5zarr.tools.pyramid.finding import find_finest
from n5zarr.tools.pyramid.methods import choose_method
from n5zarr.tools.pyramid.model import Pyramid, PyramidLevel, PyramidOptions
from n5zarr.tools.pyramid.ome import build_ome_pyramid
from n5zarr.tools.pyramid.placing import copying, group_of
from n5zarr.tools.pyramid.plan import Plan
from n5zarr.zarr_view.element import Content

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from n5zarr.format.lenient_json import JSON
    from n5zarr.storage.place import Backend, Location, Place
    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.jobs.run import Progress, Scheduler
    from n5zarr.tools.pyramid.describe import Finest
    from n5zarr.tools.pyramid.methods import Method

__all__ = ["build_pyramid"]

_PARTS_OF_S0 = (
    "part, finish: expected none with to (--to); n5zarr convert (--part) copies a dataset to s0 of "
    "a group, beside which n5zarr pyramid (--part) writes levels"
)
_ONLY_OF_N5 = (
    "to (--to): expected a dataset of N5, got OME-Zarr: n5zarr convert copies it, and the levels "
    "of an image are written beside its first one"
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
        Number of elements to combine along each axis, in the order of the array (z, y, x; the
        reverse of N5's), for each level. ``"auto"``: 2 along the spatial axes with the shortest
        voxels; never along channels and time.
    levels : int or "auto", optional
        Number of levels; ``"auto"``: until one is at most a block, or 64 elements, long along each
        spatial axis.
    method : {"auto", "mean", "mode", "median", "gaussian", "stride", "multiset"}, optional
        How to combine elements. ``"auto"``: ``"mode"`` for bool and for integers of 32 and 64
        bits, which are labels, else ``"mean"``. Labels of 8 and 16 bits need ``"mode"``.
        ``"multiset"``, for label multisets only: sum the counts of each label, as Paintera does.
    convention : {"auto", "cosem", "n5viewer", "neuroglancer", "ngff"}, optional
        Convention for the positions of the levels and of ``s0``; ``"auto"``: that of ``s0``, or
        ``"cosem"``. OME-Zarr has its own.
    compression : mapping or str, optional
        As for :func:`n5zarr.create_array`; by default that of ``s0``.
    chunks : sequence of int, optional
        Extent of a block, in the order of the array; by default that of ``s0``.
    max_num_entries : int, optional
        For label multisets: how many labels of a voxel to keep, the most frequent ones; all if
        below 1.
    overwrite : bool, optional
        Whether to remove all existing coarser levels first; with ``to``, also ``s0``.
    resume : bool, optional
        Whether to continue an interrupted run, and keep what it has written, or to compute the
        levels of a finished one again and compare them.
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
    options = PyramidOptions(
        factors=None if _is_auto(factors) else _integers("factors", factors),
        levels=None if _is_auto(levels) else _integers("levels", [levels])[0],
        method=method,
        convention=convention,
        compression=compression,
        chunks=None if chunks is None else _integers("chunks", chunks),
        max_num_entries=_integers("max_num_entries", [max_num_entries])[0],
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
    ome = find_ome(place, path, read_only=to is not None)
    if ome is not None:
        require(to is None, _ONLY_OF_N5, str(location))
        return build_ome_pyramid(ome, options)
    group = None if to is None else group_of(to, place, **access)
    return _of_n5(place, path, group, options)


def _of_n5(place: Place, path: str, group: Place | None, options: PyramidOptions) -> Pyramid:
    """Write levels of an image of N5, whose ``s0`` may have to be copied before."""
    with asking_once():
        if group is None:
            copied, (store, finest) = None, find_finest(place, path, options.convention)
        else:
            copied = copying(place, path, group, options)
    if copied is None:
        return _build(store, finest, options)
    planned = _build(copied.store, copied.finest, replace(options, dry_run=True))
    copied.check(options)
    if options.dry_run:
        return replace(planned, source=copied.source)
    copied.run(options, planned.removed)
    store, finest = find_finest(copied.place, "", options.convention)
    made = _build(store, finest, options)
    return replace(made, source=copied.source, removed=planned.removed)


def _build(store: N5Store, finest: Finest, options: PyramidOptions) -> Pyramid:
    """Write levels of an image of N5; see :func:`build_pyramid`."""
    overwrite, dry_run, division = options.overwrite, options.dry_run, options.run.division
    resume = options.resume or not division.is_whole
    with asking_once():
        with ErrorsAt(f"{store}: {finest.path}"):
            plan = _plan(store, finest, options)
            run, memory = _check_run(plan, options.run, options.max_memory)
        there = coarser_levels(store, finest.group)
    is_interrupted = plan.is_interrupted()  # after the listing: another part may have just begun
    resumed = resume and is_interrupted
    same = [level.path.rpartition("/")[2] for level in plan.levels] == there
    is_finished = same and resume and not (is_interrupted or overwrite) and plan.is_finished()
    more, way = "", ""
    if is_interrupted:
        more, way = " of an interrupted run", "resume=True (--resume) continues it, "
    require(
        resumed or is_finished or overwrite or not there,
        f"expected no levels beside s0, got {', '.join(there)}{more}; {way}overwrite=True "
        "(--overwrite) removes them first",
        f"{store}: {finest.group or '/'}",
    )
    require(
        division.part is None or not is_finished,
        "expected levels whose parts are still written, got finished ones; to write them again, "
        "remove them first",
        f"{store}: {finest.group or '/'}",
    )
    removed = [] if resumed or is_finished or not plan.levels else there
    if is_finished and not (dry_run or division.ends):
        plan.compare(run, memory)
    elif plan.levels and not (dry_run or is_finished):
        remove_datasets(store, finest.group, removed)
        plan.run(run, memory, resume=resumed)
        if division.part is not None:
            return _result(plan, removed, is_written=False)
        if (plan.method, finest.convention) != ("multiset", "paintera"):  # which has no shift
            finest.check(store, {level.path: level.total for level in plan.levels}, plan.method)
    return _result(plan, removed, is_written=not dry_run)


def _plan(store: N5Store, finest: Finest, options: PyramidOptions) -> Plan:
    view, compression = finest.placed.view, options.compression
    packed = view.dataset.compression if compression is None else check_compression(compression)
    codec_of(packed).check_writable(packed)
    block = view.chunk_shape if options.chunks is None else tuple(options.chunks)
    require(
        len(block) == view.ndim and min(block) >= 1 and max(block) < 2**31,
        f"chunks: expected {view.ndim} numbers from 1 to 2**31 - 1, got {list(block)}",
    )
    chosen = choose_levels(
        view.shape,
        block,
        finest.voxel,
        factors=options.factors,
        n_levels=options.levels,
    )
    finest.check_setup(store, [level.total for level in chosen])
    return Plan(
        store,
        finest,
        chosen,
        method=choose_method(
            options.method, view.kind.dtype, is_multiset=view.content is Content.LABELS
        ),
        chunks=block,
        compression=packed,
        max_entries=options.max_num_entries if options.max_num_entries >= 1 else -1,
    )


def _is_auto(given: object) -> bool:
    return isinstance(given, str) and given == "auto"


def _integers(name: str, values: Sequence[object] | str) -> tuple[int, ...]:
    try:
        return tuple(index(value) for value in values)  # type: ignore[arg-type] # raises TypeError
    except TypeError as err:
        raise option_error(f"{name}: expected whole numbers or 'auto', got {values!r}") from err


def _check_run(plan: Plan, options: RunOptions, max_memory: int) -> tuple[RunOptions, int]:
    """Check the options of a run; return them with the memory of each worker, in bytes."""
    store = plan.store
    require(
        store.durability != "overwrite",
        "durability: expected 'atomic' or 'durable', so that blocks are whole if the run is "
        "interrupted, got 'overwrite'",
    )
    options = options.checked([] if store.storage.is_shared else ["this store"])
    memory = options.memory_of_worker(max_memory)
    plan.check_cells(memory)
    return options, memory


def _result(plan: Plan, removed: Sequence[str], *, is_written: bool) -> Pyramid:
    finest, store = plan.finest, plan.store
    order = finest.placed.view.axis_order
    levels = []
    for made in plan.levels:
        axes = present(finest.axes_at(made.total, plan.method), order)
        levels.append(
            PyramidLevel(
                path=made.path,
                shape=made.shape,
                chunks=made.block,
                factors=made.total,
                scale=tuple(axis.scale for axis in axes),
                translation=tuple(axis.translation for axis in axes),
                units=tuple(axis.unit for axis in axes),
                n_blocks=n_boxes(made.shape, made.block),
                n_blocks_stored=len(plan.stored(made.path, {})) if is_written else None,
                n_bytes=math.prod(made.shape) * plan.item_size,
                n_bytes_stored=plan.n_bytes_stored(made.path) if is_written else None,
            )
        )
    return Pyramid(
        container=str(store),
        path=finest.group,
        method=plan.method,
        convention=finest.convention,
        levels=tuple(levels),
        removed=tuple(removed),
    )
