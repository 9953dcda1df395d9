"""``n5zarr.write_bdv``: write arrays as a project of BigDataViewer or BigStitcher."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from n5zarr.container.options import check_option, require
from n5zarr.errors import ErrorsAt
from n5zarr.storage.place import place_of
from n5zarr.store.register import general_first
from n5zarr.tools.convert.new_project import NewProject
from n5zarr.tools.convert.places import open_destination
from n5zarr.tools.convert.target import Layout
from n5zarr.tools.convert.writing import Plan
from n5zarr.tools.jobs.run import MAX_MEMORY, RunOptions
from n5zarr.tools.projects.project import ProjectData, dataset_of
from n5zarr.tools.projects.views import arrays_in, views_in
from n5zarr.tools.pyramid.build import build_pyramid
from n5zarr.tools.pyramid.choose import choose_levels
from n5zarr.tools.pyramid.methods import choose_method
from n5zarr.xarray.lazy_arrays import check_not_read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.format.lenient_json import JSON
    from n5zarr.images.ome import OmeVersion
    from n5zarr.storage.place import Backend, Location
    from n5zarr.store.register import Registrations
    from n5zarr.tools.convert.new_project import ProjectFormat
    from n5zarr.tools.jobs.run import Progress, Scheduler
    from n5zarr.tools.projects.views import Data
    from n5zarr.tools.pyramid.methods import Method

__all__ = ["write_bdv"]


def write_bdv(  # noqa: PLR0913 - one keyword for each choice
    data: Data,
    location: Location,
    *,
    format: ProjectFormat = "n5",  # noqa: A002 - the usual name
    ome_version: OmeVersion | None = None,
    setups: Mapping[int, Mapping[str, str]] | None = None,
    voxel_size: Sequence[float] | None = None,
    unit: str | None = None,
    registrations: Registrations | None = None,
    factors: Sequence[int] | Literal["auto"] = "auto",
    levels: int | Literal["auto"] = "auto",
    method: Literal["auto"] | Method = "auto",
    chunks: int | Sequence[int] | None = None,
    compression: Mapping[str, JSON] | str | None = None,
    overwrite: bool = False,
    max_memory: int = MAX_MEMORY,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
    scheduler: Scheduler = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Write a project that BigDataViewer and BigStitcher open: images, pyramids and the XML.

    Parameters
    ----------
    data : DataTree, Dataset, DataArray or mapping
        - A DataTree as :func:`n5zarr.open_bdv` returns it, of which the levels ``s0`` are written.
        - A DataArray, or a Dataset with one, with the dimensions ``z, y, x`` or ``y, x``, and any
          of ``timepoint`` (or ``t``), and either ``setup``, or ``channel`` (or ``c``), ``tile``,
          ``angle`` and ``illumination``, whose combinations become setups.
        - A mapping of the numbers of setups, or of setups and time points, to such arrays, or to
          arrays of numpy, dask or zarr with the axes z, y, x.

        Coordinates give voxel sizes, units, positions, names of setups and their parts, and numbers
        of setups and time points. A variable ``present`` says which views are written.
    location : path or URL
        The XML, ``"dataset.xml"``; the container is ``dataset.n5`` or ``dataset.ome.zarr`` beside.
    format : {"n5", "ome-zarr"}, optional
        The format of the images.
    ome_version : {"0.4", "0.5"}, optional
        The version of OME-Zarr; each BigStitcher reads 0.4, the default, and newer ones 0.5.
    setups : mapping, optional
        Names of setups by number: ``{0: {"name": "left", "channel": "GFP", "tile": "3"}}``. They
        precede those of coordinates. If none names a channel, tile and so on, each is a tile.
    voxel_size : sequence of float, optional
        Size along z, y and x; by default the distance of coordinates, or 1.
    unit : str, optional
        Unit of voxel sizes and positions; by default that of the coordinates, or "pixel".
    registrations : mapping, optional
        The transforms of views, as for :func:`n5zarr.register`, instead of those that follow from
        coordinates; the unit of the world is BigStitcher's, the finest voxel size.
    factors, levels, method : optional
        As for :func:`n5zarr.build_pyramid`; ``levels=0`` writes full resolution only.
    chunks, compression : optional
        As for :func:`n5zarr.convert`; by default about a million elements, and gzip.
    overwrite : bool, optional
        Whether to replace an existing project.
    max_memory : int, optional
        Bytes of elements that all workers together may hold.
    storage_options, backend : optional
        Options for a URL, and the library that writes it: as for :class:`~n5zarr.N5Store`.
    scheduler, n_workers, progress : optional
        See :func:`~n5zarr.tools.jobs.run.run_tasks`.

    Raises
    ------
    FileExistsError
        The XML exists, and ``overwrite`` is false.
    N5UnrepresentableError
        The data are no views, time points of a setup differ in size, ``overwrite`` would remove
        data that are not loaded, or an option does not apply (``kind="option"``).

    Notes
    -----
    The XML is written last, with ``overwrite`` also before the pyramids. A view has a transform
    "calibration", the voxel size in BigStitcher's unit, and after it "translation", its position,
    and "registration", the attribute of that name.

    Examples
    --------
    >>> import pathlib, tempfile, n5zarr, numpy as np
    >>> xml = pathlib.Path(tempfile.mkdtemp(), "dataset.xml")
    >>> left, right = np.ones((2, 5, 7, 11), "u2")
    >>> n5zarr.write_bdv({0: left, 1: right}, xml, voxel_size=(2, 0.5, 0.5), unit="um")
    >>> n5zarr.open_bdv(xml)["s0/data"].dims
    ('setup', 'timepoint', 'z', 'y', 'x')
    """
    began = time.monotonic()
    check_option("format", format, ("n5", "ome-zarr"))
    new = NewProject.at(place_of(location, storage_options, backend), format, ome_version)
    require(new is not None, f"{location}: expected the path of an XML file, 'dataset.xml'")
    assert new is not None  # noqa: S101 - see above
    new.check_free(may_exist=overwrite)
    with ErrorsAt(str(new.file)):
        project = ProjectData.of(views_in(data), setups or {}, voxel_size, unit)
        xml = project.xml(new.loader(project.views), general_first(registrations or {}))
    tree = project.tree(str(location), new.ome_version)
    target = open_destination(new.place, new.images, new.ome_version)
    if overwrite:
        check_not_read(arrays_in(data), target.storage, target.path, "overwrite=True")
    options = RunOptions(scheduler, n_workers, progress)
    plan = Plan.of(tree, target, Layout.of(chunks, None, compression), options, max_memory)
    if new.ome_version is not None and not isinstance(factors, str):
        factors = (1, 1, *factors)  # of the axes t and c
    if levels != 0:
        _check_pyramids(project, plan, factors, levels, method)
    plan.run({}, began, overwrite=overwrite, resume=False, verify=False, dry_run=False)
    if overwrite:  # an older XML must not place these images, if a pyramid fails
        new.write(xml)
    for view in project.views if levels != 0 else ():
        build_pyramid(
            new.place,
            dataset_of(view, new.ome_version),
            factors=factors,
            levels=levels,
            method=method,
            max_memory=max_memory,
            scheduler=scheduler,
            n_workers=n_workers,
            progress=progress,
        )
    new.write(xml)


def _check_pyramids(
    project: ProjectData,
    plan: Plan,
    factors: Sequence[int] | Literal["auto"],
    levels: int | Literal["auto"],
    method: str,
) -> None:
    """Raise for options of the pyramids that do not fit, before anything is written."""
    written = dict(zip([setup for setup, _ in project.views], plan.copies, strict=True))
    for number, copy in written.items():
        array, setup = copy.target.array, project.setups[number]
        choose_method(method, array.dtype)
        voxel = (None,) * (array.ndim - 3) + tuple(reversed(setup.voxel_size or ()))
        choose_levels(
            array.shape,
            array.chunks,
            voxel,
            factors=None if isinstance(factors, str) else factors,
            n_levels=None if isinstance(levels, str) else levels,
        )
