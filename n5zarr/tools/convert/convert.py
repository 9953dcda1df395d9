"""``n5zarr.convert``: copy a dataset, a group or a container to N5 or Zarr."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Protocol

from n5zarr.container.options import texts_of
from n5zarr.container.walk import PathPatterns
from n5zarr.errors import N5Error, N5Warning
from n5zarr.format.lenient_json import JSON
from n5zarr.images.find import images_in, ome_tree
from n5zarr.images.ome import OmeVersion
from n5zarr.images.source import SourceTree
from n5zarr.rooms import Door
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.place import Backend, Location, Place, place_of
from n5zarr.tools.convert.checks import (
    Form,
    check_complete,
    check_found,
    check_ome,
    check_options,
    check_places,
    check_whole,
    warn_of_multisets,
    warn_of_nothing,
    warn_of_ome,
)
from n5zarr.tools.convert.copies import Copy, Folder, opaque_folders
from n5zarr.tools.convert.from_zarr import as_n5, coords_tree, reordered
from n5zarr.tools.convert.places import TargetFormat, open_destination, open_source
from n5zarr.tools.convert.reported import add_places, names_of
from n5zarr.tools.convert.target import Destination, Layout
from n5zarr.tools.convert.target_n5 import N5Destination
from n5zarr.tools.convert.writing import Conversion, Plan
from n5zarr.tools.jobs.parts import Division
from n5zarr.tools.jobs.reports import Reported, RunReport, recorded, report_of_run
from n5zarr.tools.jobs.run import MAX_MEMORY, Progress, RunOptions, Scheduler


class Resaving(Protocol):
    """A source that becomes a project."""

    def tree(self, found: SourceTree) -> SourceTree:
        """Return the source as it is written."""

    def folders(self, *, may_exist: bool) -> Sequence[Copy]:
        """Return what is copied beside the container."""

    def write(self) -> None:
        """Write the document of the project."""


class NewProject(Protocol):
    """A project to write."""

    @property
    def file(self) -> object:
        """Its document, whose ``str`` is the path or URL."""

    @property
    def ome_version(self) -> OmeVersion | None:
        """The version of OME-Zarr that its container gets; None for N5."""

    @property
    def place(self) -> Place:
        """Where its container is."""

    def check_free(self, *, may_exist: bool) -> None:
        """Raise if its document exists, unless it may."""

    def resaving(self, tree: SourceTree) -> Resaving:
        """Return what a source becomes."""


class AsPaintera(Protocol):
    """Makes label sources of Paintera of the arrays of some patterns."""

    def __call__(
        self,
        found: SourceTree,
        target: Destination,
        patterns: Sequence[str],
        options: RunOptions,
        *,
        is_read: bool,
    ) -> SourceTree:
        """Return the source with label sources; labels are read if they have to be counted."""


_NEW_PROJECT: Door[Callable[[Place, str | None, OmeVersion | None, Place], NewProject | None]] = (
    Door("step", "write a project")
)
_IN_VERSION: Door[Callable[[SourceTree, OmeVersion, Sequence[str]], SourceTree | None]] = Door(
    "images", "OME-Zarr in a version"
)
_AS_PAINTERA: Door[AsPaintera] = Door("step", "convert to label sources")


@recorded("convert", "source", "destination")
def convert(  # noqa: PLR0913 - one keyword for each option
    source: Location,
    destination: Location,
    *,
    to: TargetFormat | None = None,
    select: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    level: int | None = None,
    ome: bool = False,
    ome_version: OmeVersion | None = None,
    labels: str | Sequence[str] = (),
    paintera_labels: str | Sequence[str] = (),
    coords: bool = False,
    chunks: int | Sequence[int] | None = None,
    shards: int | Sequence[int] | None = None,
    compression: Mapping[str, JSON] | str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    part: str | tuple[int, int] | None = None,
    finish: bool = False,
    verify: bool = False,
    dry_run: bool = False,
    expect_complete: bool = False,
    report: Reported = None,
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
        N5, Zarr (also zipped) or HDF5, whole or a part; BigDataViewer's XML, TIFF.

        In N5, OME-Zarr images get N5's attributes, and levels named ``s0``, ``s1``, ....
    destination : path, URL or zarr store
        Where to write the copy; an XML for a whole project.

        ``"out.zarr"``, ``"out.n5/em/s0"``. ``"new/dataset.xml"`` takes a project of BigDataViewer
        or BigStitcher: writes its images beside the XML, copies its interest points, and changes
        nothing else in the XML.
    to : {"zarr", "zarr2", "n5", "ome-zarr"}, optional
        Zarr v3, Zarr v2, N5, or OME-Zarr as with ``ome``; by default chosen by the suffix ``.n5``
        or ``.zarr`` in ``destination``. A project needs ``"n5"`` or ``"ome-zarr"``.
    select : str or sequence of str, optional
        Arrays to copy, such as ``"em/*"``; by default all.
    exclude : str or sequence of str, optional
        Arrays to leave out.
    level : int, optional
        Copy only this level of each pyramid ``s0``, ``s1``, ...
    ome : bool, optional
        Write OME-Zarr: images with axes, units and scale.

        They come from any convention or OME-Zarr; of BigDataViewer's XML, one for each setup.
    ome_version : {"0.5", "0.4", "0.6"}, optional
        0.5 and 0.6 are Zarr v3, 0.4 is Zarr v2. By default that of ``to``, or 0.5; of a project its
        own, or 0.4, which each BigStitcher reads.
    labels : str or sequence of str, optional
        With ``ome``, images that are labels, beside those marked as labels.
    paintera_labels : str or sequence of str, optional
        To N5, arrays of integers that become Paintera's label multisets.
    coords : bool, optional
        From N5 to Zarr v3, write coordinates of axes as arrays, for xarray.
    chunks : int or sequence of int, optional
        Extent of a chunk (N5: block) in elements, C order; one number for all axes. By default as
        in the source.

        Several numbers apply only to arrays with as many axes; also of ``shards``.
    shards : int or sequence of int, optional
        Extent of a shard; by default no shards.
    compression : mapping or str, optional
        As in ``attributes.json``: ``"zstd"``, ``{"type": "gzip", "level": 5}``. Default: that of
        the source, or zstd if Zarr has no codec for it that every reader knows.
    overwrite : bool, optional
        Remove an existing destination, after all checks.
    resume : bool, optional
        Continue an interrupted run, or compare a finished one.
    part : str or (int, int), optional
        Copy only one of several parts: ``"3/100"``, from ``"1/100"``. Processes on any machines
        copy a part each, with otherwise equal options; a part that was killed is repeated.
    finish : bool, optional
        After all parts: write the documents, so that the destination can be opened.
    verify : bool, optional
        Compare all values, or those of a part, before ``destination`` can be opened.
    dry_run : bool, optional
        Return what a run would do, and write nothing.
    expect_complete : bool, optional
        Refuse a source that lacks blocks, before anything is written.
    report : path, optional
        Write ``*.json``, also of a run that fails: blocks, bytes, SHA-256 and axes of each
        dataset, also of a copy that ``verify`` or ``finish`` reads.
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
        The source is a file of another format, the destination exists or cannot hold it, or an
        option does not apply.
    N5Error
        The source is broken; it lacks blocks, or a copy has other values (``kind="differs"``).

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
    division = Division.of(part, finish=finish, overwrite=overwrite)
    place = copied = place_of(destination, destination_options, destination_backend)
    source_place = place_of(source, storage_options, backend)
    form = Form(
        ome=ome or to == "ome-zarr",
        ome_version=ome_version,
        labels=texts_of("labels", labels),
        paintera_labels=texts_of("paintera_labels", paintera_labels),
        coords=coords,
    )
    paths = PathPatterns(texts_of("select", select), texts_of("exclude", exclude))
    new = (find := _NEW_PROJECT.found()) and find(place, to, ome_version, source_place)
    if new is not None:
        check_whole(form, paths, level)
        new.check_free(may_exist=overwrite or resume or finish)
        place, is_ome = new.place, new.ome_version is not None
        form = replace(form, ome=is_ome, ome_version=new.ome_version)
    target = open_destination(place, to, form.ome_version)
    form = replace(form, ome_version=check_ome(target, form))
    check_options(
        target, form, shards=shards, overwrite=overwrite, resume=resume, n_workers=n_workers
    )
    layout = Layout.of(chunks, shards, compression)
    options = RunOptions(scheduler, n_workers, progress, division)
    with asking_once():
        found = _open_tree(source_place, target, form, paths).only(paths, level)
        folders = _checked(found, target, paths, level, is_complete=expect_complete)
        resaving = None if new is None else new.resaving(found)
        written = resaving.tree(found) if resaving else _as_written(found, target, form)
        written = _with_label_sources(written, target, form, options, is_read=not dry_run)
        plan = Plan.of(written, target, layout, options, max_memory, folders)
        run = _report_sources(plan, source_place)
    if resaving is not None:
        beside = resaving.folders(may_exist=overwrite or resume or not division.is_whole)
        plan = replace(plan, others=[*plan.others, *beside])
    wanted = {"select": paths.select, "exclude": paths.exclude, "level": level}
    job: dict[str, JSON] = {**asdict(form), **wanted}
    done = plan.run(job, began, overwrite=overwrite, resume=resume, verify=verify, dry_run=dry_run)
    if resaving is not None and not (dry_run or division.part):
        resaving.write()
    done = done if new is None else replace(done, destination=str(new.file))
    return _with_places(done, found, copied, plan, run)


def _open_tree(place: Place, target: Destination, form: Form, paths: PathPatterns) -> SourceTree:
    if form.coords:
        return coords_tree(place, paths)
    return open_source(place, target.zarr_format, paths)


def _checked(
    found: SourceTree,
    target: Destination,
    paths: PathPatterns,
    level: int | None,
    *,
    is_complete: bool,
) -> Mapping[str, Folder]:
    """Check what a user selects; return what is copied as files."""
    folders = opaque_folders(found, target)
    check_found(found, folders, paths, level)
    check_places(found, target)
    warn_of_multisets(found, target)
    if is_complete:
        check_complete(found)
    warn_of_nothing(found, folders)
    return folders


def _as_written(found: SourceTree, target: Destination, form: Form) -> SourceTree:
    """Return a source with the names and attributes of OME-Zarr or N5, or unchanged."""
    warn_of_ome(found, target, form)
    container = found.container
    if isinstance(target, N5Destination) and container is None:
        return as_n5(found)
    if form.ome_version is not None:
        if container is None and (in_version := _IN_VERSION.found()) is not None:
            changed = in_version(found, form.ome_version, form.labels)
            if changed is not None:
                return changed
        return ome_tree(images_in(found, labels=form.labels), form.ome_version)
    to_zarr = not isinstance(target, N5Destination)
    if to_zarr and container is not None and container.axis_order == "C":
        return reordered(found, to_n5=False)
    return found


def _with_label_sources(
    tree: SourceTree, target: Destination, form: Form, options: RunOptions, *, is_read: bool
) -> SourceTree:
    """Make label sources of Paintera of the arrays that the user selects."""
    if not form.paintera_labels:
        return tree
    run, step = RunOptions(options.scheduler, options.n_workers), _AS_PAINTERA.needed()
    return step(tree, target, form.paintera_labels, run, is_read=is_read)


def _report_sources(plan: Plan, place: Place) -> RunReport | None:
    """Add the arrays of a source to the report, if there is one, and those that are not copied."""
    if (report := report_of_run()) is None:
        return None
    sources = {path: copy.source for path, copy in plan.by_path.items()}
    report.add_arrays({path: {"source": each} for path, each in sources.items()}, plan.options)
    skipped = report.entry["skipped"]
    names = {name for each in sources.values() for name in names_of(each)}
    with suppress(N5Error):  # what is not selected may be damaged
        for path, source in open_source(place, 3, PathPatterns()).arrays.items():
            if source.name not in names:
                skipped.append({"path": path, "reason": "not selected"})
    if plan.others:
        reason = "blocks of objects are no array: copied byte for byte, and not hashed"
        skipped.append({"path": None, "reason": reason})
    return report


def _with_places(
    done: Conversion, found: SourceTree, copied: Place, plan: Plan, report: RunReport | None
) -> Conversion:
    """Add to the report, if there is one, where the elements of source and copy are."""
    if report is None or done.dry_run or plan.options.division.part:
        return done
    try:
        tree = open_source(copied, 3, PathPatterns())
        return replace(done, same_places=add_places(report.entry, found, tree, plan.by_path))
    except (N5Error, OSError) as err:  # the copy is complete
        message = f"{done.destination}: axes and positions are not in the report: {err}"
        warnings.warn(message, N5Warning, stacklevel=4)
        return done
