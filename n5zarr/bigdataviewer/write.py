"""``n5zarr.write_bdv``: write arrays as a project of BigDataViewer or BigStitcher."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
import numpy.typing as npt

from n5zarr.bigdataviewer.description import NEAR, Setup
from n5zarr.bigdataviewer.given_levels import GivenLevel, levels_in
from n5zarr.bigdataviewer.images import image_of_view, images_of_setups
from n5zarr.bigdataviewer.register import Registrations, general_first, transforms_of
from n5zarr.bigdataviewer.registrations import View, ViewTransform
from n5zarr.bigdataviewer.resave import ProjectFormat, new_project
from n5zarr.bigdataviewer.user_views import (
    ENTITIES,
    Data,
    ViewData,
    arrays_in,
    names_of_setups,
    numbers_of_entities,
    views_in,
)
from n5zarr.bigdataviewer.writing_xml import project_xml, view_image
from n5zarr.container.options import check_option, require
from n5zarr.conventions.bdv import write_setup, write_timepoint
from n5zarr.conventions.levels import factors_in_json
from n5zarr.conventions.model import Axis
from n5zarr.errors import ErrorsAt
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import to_c, to_n5
from n5zarr.images.find import ome_tree
from n5zarr.images.ome import OmeVersion
from n5zarr.images.source import ArraySource, SourceTree
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.tools.convert.places import open_destination
from n5zarr.tools.convert.target import Layout
from n5zarr.tools.convert.writing import Plan
from n5zarr.tools.jobs.run import MAX_MEMORY, Progress, RunOptions, Scheduler
from n5zarr.tools.pyramid.build import build_levels
from n5zarr.tools.pyramid.methods import Method, choose_method
from n5zarr.tools.pyramid.model import PyramidOptions, choose_levels
from n5zarr.xarray.lazy_arrays import check_not_read

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


_NO_UNIT = "pixel"


def dataset_of(view: View, ome_version: OmeVersion | None, level: int = 0) -> str:
    """Return the path of a view in the container: a level of N5, or a group of OME-Zarr."""
    setup, timepoint = view
    n5 = f"setup{setup}/timepoint{timepoint}/s{level}"
    return n5 if ome_version is None else view_image(setup, timepoint)


@dataclass(frozen=True, eq=False)
class ProjectData:
    """Views with all that the XML says of them.

    Parameters
    ----------
    views : mapping of (int, int) to ViewData
        The views by setup and time point.
    setups : mapping of int to Setup
        The setups by number.
    voxel_size : sequence of float or None
        Size along z, y and x of all views, instead of the distance of their positions.
    levels : mapping of (int, int) to sequence of GivenLevel, optional
        The coarser levels of each view.
    """

    views: Mapping[View, ViewData]
    setups: Mapping[int, Setup]
    voxel_size: Sequence[float] | None
    levels: Mapping[View, Sequence[GivenLevel]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        views: Sequence[ViewData],
        names: Mapping[int, Mapping[str, str]],
        voxel_size: Sequence[float] | None,
        unit: str | None,
    ) -> Self:
        """Describe views.

        Parameters
        ----------
        views : sequence of ViewData
            At least one.
        names : mapping of int to mapping
            Names of setups, by number, that precede those of the views.
        voxel_size : sequence of float or None
            Size along z, y and x, instead of the distance of positions.
        unit : str or None
            Unit of voxel sizes, instead of that of positions.

        Raises
        ------
        N5UnrepresentableError
            Views of a setup differ, or names or sizes are not right (``kind="option"``).
        """
        firsts: dict[int, ViewData] = {}
        for view in views:
            first = firsts.setdefault(view.setup, view)
            require(
                view.like == first.like and _is_near(view, first, voxel_size),
                f"data: setup {view.setup}: expected the shape, type, unit and voxel size of time "
                f"point {first.timepoint}, {first.like}, {first.scales}, got {view.like}, "
                f"{view.scales} at {view.timepoint}",
            )
        named = names_of_setups(firsts, names)
        setups = {
            number: Setup(
                name=named[number].get("name", str(number)),
                voxel_size=_voxel_size(first, voxel_size),
                unit=str(unit or _unit(first)),
                attributes=numbers,
                names={kind: named[number][kind] for kind in ENTITIES},
                size=to_n5(first.values.shape),
                tile_location=first.tile_location,
            )
            for (number, first), numbers in zip(
                firsts.items(), numbers_of_entities(named), strict=True
            )
        }
        return cls({(v.setup, v.timepoint): v for v in views}, setups, voxel_size)

    def transforms(self, given: Registrations) -> dict[View, tuple[ViewTransform, ...]]:
        """Return the transforms of each view.

        Parameters
        ----------
        given : mapping
            Those of the user, by view or setup, instead of those that follow from positions.

        Raises
        ------
        N5UnrepresentableError
            No view, or no matrix, is like a given one (``kind="option"``).
        """
        found = {view: self._placed(view) for view in self.views}
        of_setup: dict[object, list[View]] = {}
        for view in found:
            of_setup.setdefault(view[0], []).append(view)
        for key, value in given.items():
            chosen = [key] if key in found else of_setup.get(key)
            require(chosen, f"registrations: expected a setup or a view of the data, got {key!r}")
            found |= dict.fromkeys(chosen or (), transforms_of(value, "registration"))
        return found

    @cached_property
    def _finest(self) -> float:
        """The smallest extent of a voxel in any setup: BigStitcher's unit."""
        return min(size for each in self.setups.values() for size in each.voxel_size or ())

    def _placed(self, view: View) -> tuple[ViewTransform, ...]:
        """Return the transforms that follow from voxel size and positions."""
        data, finest = self.views[view], self._finest
        # its own: a registration may stretch it
        scale = np.diag(np.divide(_voxel_size(data, self.voxel_size), finest))
        first = np.array([0.0 if axis is None else axis.translation for axis in to_n5(data.axes)])
        transforms = [_transform("calibration", scale, np.zeros(3))]
        if first.any():
            transforms.insert(0, _transform("translation", np.eye(3), first / finest))
        if data.registration is not None:
            (given,) = transforms_of(data.registration, "registration")
            matrix = given.matrix
            transforms.insert(0, _transform(given.name, matrix[:, :3], matrix[:, 3] / finest))
        return tuple(transforms)

    def xml(self, loader: Element, registrations: Registrations) -> bytes:
        """Write the XML.

        Parameters
        ----------
        loader : Element
            The images.
        registrations : mapping
            As for :meth:`transforms`.
        """
        timepoints = sorted({timepoint for _, timepoint in self.views})
        return project_xml(
            loader=loader,
            setups=self.setups,
            timepoints=timepoints,
            missing={(s, t) for s in self.setups for t in timepoints} - self.views.keys(),
            registrations=self.transforms(registrations),
        )

    def tree(self, name: str, ome_version: OmeVersion | None) -> SourceTree:
        """Return the arrays and groups to write.

        Parameters
        ----------
        name : str
            For messages.
        ome_version : {"0.4", "0.5", "0.6"} or None
            The version of OME-Zarr; None for N5.
        """
        levels = {view: self._levels(view) for view in self.views}
        if ome_version is not None:
            images = [
                image_of_view(
                    view,
                    self.setups[view[0]].name,
                    {
                        n: (e.data.source(), self._axes(view[0], e.factors))
                        for n, e in enumerate(own)
                    },
                )
                for view, own in levels.items()
            ]
            return ome_tree(images_of_setups(SourceTree(name, {}, {}), images), ome_version)
        groups: dict[str, dict[str, JSON]] = {"": {}}
        arrays: dict[str, ArraySource] = {}
        for view, own in levels.items():
            for number, (by, data) in enumerate(own):
                placed: dict[str, JSON] = {"downsamplingFactors": factors_in_json(by)}
                array = replace(data.source(), attributes=placed if number else {})
                arrays[dataset_of(view, None, number)] = array
            kind = self.views[view].source().native_dtype.name
            groups[f"setup{view[0]}"] = write_setup([by for by, _ in own], kind)
            voxel_size = self.setups[view[0]].voxel_size
            groups[f"setup{view[0]}/timepoint{view[1]}"] = write_timepoint(voxel_size)
        return SourceTree(name, arrays, groups)

    def _levels(self, view: View) -> list[GivenLevel]:
        """Return the levels of a view, all of those that the setup lists."""
        listed = self.levels.get(min(v for v in self.views if v[0] == view[0]), ())
        own = self.levels.get(view, ())
        factors, expected = ([each.factors for each in some] for some in (own, listed))
        require(
            factors == expected,
            f"data: setup {view[0]}: expected levels of the same factors at all time points, "
            f"{expected}, got {factors} at {view[1]}",
        )
        return [GivenLevel((1.0, 1.0, 1.0), self.views[view]), *own]

    def _axes(self, number: int, factors: Sequence[float]) -> tuple[Axis, ...]:
        setup = self.setups[number]
        each = zip("xyz", setup.voxel_size or (), factors, strict=True)
        axes = [
            Axis(name=n, type="space", unit=setup.unit, scale=s * by, translation=s * (by - 1) / 2)
            for n, s, by in each
        ]
        return to_c(tuple(axes))


def _transform(
    name: str, linear: npt.NDArray[np.float64], offset: npt.NDArray[np.float64]
) -> ViewTransform:
    return ViewTransform(name, tuple(np.column_stack([linear, offset]).ravel().tolist()))


def _is_near(view: ViewData, first: ViewData, given: Sequence[float] | None) -> bool:
    """Whether a registration, which may stretch a time point, explains its voxel size."""
    sizes, others = _voxel_size(view, given), _voxel_size(first, given)
    return bool((np.abs(np.log(np.divide(sizes, others))) < NEAR).all())


def _voxel_size(view: ViewData, given: Sequence[float] | None) -> tuple[float, ...]:
    """Return the voxel size along x, y and z."""
    scales = view.scales
    require(
        min(scales) > 0,
        f"data: setup {view.setup}: expected ascending positions along z, y and x, got distances "
        f"{list(scales)}; data.sortby(['z', 'y', 'x']) sorts them",
    )
    sizes = scales if given is None else _numbers(given)
    require(
        len(sizes) == 3 and all(0 < size < np.inf for size in sizes),
        f"voxel_size: expected a number above 0 for each of z, y, x, got {given!r}",
    )
    return to_n5(sizes)


def _numbers(given: object) -> tuple[float, ...]:
    """Return numbers of a user; none of anything else."""
    try:
        values = np.asarray(given, float)
    except (TypeError, ValueError):
        return ()
    return tuple(values.tolist()) if values.ndim == 1 else ()


def _unit(view: ViewData) -> str:
    """Return the unit of the positions of a view."""
    units = {axis.unit for axis in view.axes if axis is not None}
    require(
        len(units) <= 1,
        f"data: setup {view.setup}: expected one unit of all axes, got {units}; unit=... "
        "chooses it",
    )
    return (units.pop() if units else None) or _NO_UNIT


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
    levels: int | Literal["auto", "given"] = "auto",
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
        - A DataTree as :func:`n5zarr.open_bdv` returns it, of which the levels ``s0`` are written,
          or with ``levels="given"`` all levels.
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
    ome_version : {"0.4", "0.5", "0.6"}, optional
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
        As for :func:`n5zarr.build_pyramid`; ``levels=0`` builds none.
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
    new = new_project(place_of(location, storage_options, backend), format, ome_version)
    require(new is not None, "location: expected the path of an XML file, such as 'dataset.xml'")
    assert new is not None  # noqa: S101 - see above
    new.check_free(may_exist=overwrite)
    with ErrorsAt(str(new.file)):
        project = ProjectData.of(views_in(data), setups or {}, voxel_size, unit)
        if levels == "given":
            project, levels = replace(project, levels=levels_in(data, project.views)), 0
        xml = project.xml(new.loader(project.views), general_first(registrations or {}))
    tree = project.tree(str(location), new.ome_version)
    target = open_destination(new.place, new.images, new.ome_version)
    if overwrite:
        check_not_read(arrays_in(data), target.storage, target.path, "overwrite=True")
    options = RunOptions(scheduler, n_workers, progress)
    plan = Plan.of(tree, target, Layout.of(chunks, None, compression), options, max_memory)
    if new.ome_version is not None and not isinstance(factors, str):
        factors = (1, 1, *factors)  # of the axes t and c
    pyramids = PyramidOptions.of(
        factors=factors, levels=levels, method=method, max_memory=max_memory, run=options
    )
    if levels != 0:
        _check_pyramids(project, plan, pyramids)
    plan.run({}, began, overwrite=overwrite, resume=False, verify=False, dry_run=False)
    if overwrite:  # an older XML must not place these images, if a pyramid fails
        new.write(xml)
    for view in project.views if levels != 0 else ():
        build_levels(new.place, dataset_of(view, new.ome_version), pyramids)
    new.write(xml)


def _check_pyramids(project: ProjectData, plan: Plan, options: PyramidOptions) -> None:
    """Raise for options of the pyramids that do not fit, before anything is written."""
    written = dict(zip([setup for setup, _ in project.views], plan.copies, strict=True))
    for number, copy in written.items():
        array, setup = copy.target.array, project.setups[number]
        choose_method(options.method, array.dtype)
        voxel = (None,) * (array.ndim - 3) + to_c(setup.voxel_size or ())
        choose_levels(
            array.shape,
            array.chunks,
            voxel,
            factors=options.factors,
            n_levels=options.levels,
        )
