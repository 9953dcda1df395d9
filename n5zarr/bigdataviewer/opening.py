"""Stack BigDataViewer's setups and time points into arrays, for ``open_bdv`` and the engine."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple
from uuid import uuid4

import numpy as np
import xarray as xr

from n5zarr._zarr import xarray_indexing
from n5zarr.bigdataviewer.description import Description
from n5zarr.bigdataviewer.finding import read_description
from n5zarr.bigdataviewer.project import XmlFile, project_of, read_project, xml_file
from n5zarr.bigdataviewer.stacked_views import StackedViews
from n5zarr.bigdataviewer.views import Levels, SetupLevel, described_views, find_views, moves
from n5zarr.container.options import require
from n5zarr.errors import N5Warning, option_error
from n5zarr.format.grid import join_blocks
from n5zarr.format.order import AxisOrder
from n5zarr.format.path import normalize_path
from n5zarr.metadata.geometry import warn_of_problems
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.not_found import NotFoundError
from n5zarr.storage.place import Backend, Location, Place, place_of
from n5zarr.store.locating import locate
from n5zarr.store.missing_nodes import existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.xarray.lazy_arrays import preferred_chunks
from n5zarr.xarray.positions import coordinate

# names of coordinates and variables in the tree
_NAMES = {"data", "present", "setup", "setup_name", "timepoint", "x", "y", "z"}
_NAMES |= {"tile_x", "tile_y", "tile_z"}
_EXPECTED = "groups setup0, setup1, ..."
_MOST_CHUNKS = 20_000  # of dask, in an array: some milliseconds for each selection

type DaskChunks = int | Mapping[Any, Any] | Literal["auto"] | None
"""Chunks of dask: none, those of ``chunks=`` of :func:`xarray.open_dataset`, or joined blocks."""


def open_bdv(  # noqa: PLR0913 - where the views are, and how they are shown
    location: Location,
    *,
    path: str = "",
    xml: str | os.PathLike[str] | None = None,
    registrations: bool = True,
    axis_order: AxisOrder = "C",
    chunks: DaskChunks = "auto",
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> xr.DataTree:
    """Open BigDataViewer or BigStitcher data, with setups and time points stacked for each level.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, a location in one, or the XML file that describes it.
    path : str, optional
        The group of the setups, below ``location``.
    xml : path, optional
        The XML file. By default n5zarr searches for it in the group of the setups, in the groups
        above, and beside the container.
    registrations : bool, optional
        Whether positions follow the registrations in the XML. If not, all views begin at 0, with
        the voxel size of their setup.
    axis_order : {"C", "F"}, optional
        Order of the spatial dimensions, ``z, y, x`` or ``x, y, z``.
    chunks : "auto", int, mapping or None, optional
        Chunks of dask. ``"auto"`` joins blocks up to dask's ``array.chunk-size`` of 128 MiB, and
        further if there would be over 20000 chunks. Others are those of
        :func:`xarray.open_dataset`: ``{}`` is a chunk for each block, None no dask.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`. They
        precede those that the XML gives for S3.

    Returns
    -------
    DataTree
        A node ``s0``, ``s1``, ... for each level, with a variable ``data`` with the dimensions
        ``setup``, ``timepoint`` and those of space. If size, type or positions of the setups
        differ, the nodes are ``setup0/s0`` and so on, without dimension ``setup``; if registrations
        differ between time points, ``setup0/timepoint0/s0``.

        Names in the XML are coordinates of ``setup``, each with an index: ``setup_name``,
        ``channel``, ``angle``, ``tile``, ``illumination``. ``tile_x``, ``tile_y``, ``tile_z`` are
        the recorded location of the tile. Without the dimension they are scalars, also of
        ``setup0``. ``present`` says which views have data; the others are filled with 0, or have no
        node. Views that the XML does not list, or lists as missing, are left out.

        Scale and translation of a registration become coordinates. Rotation and shear cannot: they
        cause one warning, and ``data`` gets the attribute ``registration``, the three rows of a
        matrix, one after the other, that maps ``[x, y, z, 1]`` to world coordinates.

    Raises
    ------
    FileNotFoundError
        There are no setups, or no such XML, or it describes no view that the container holds.
    N5UnrepresentableError
        Time points of a setup differ in size, or the XML is not for this (``kind="option"``).

    Examples
    --------
    >>> import n5zarr
    >>> tree = n5zarr.open_bdv("dataset.xml")  # doctest: +SKIP
    >>> green = tree.filter(lambda node: node.coords.get("channel") == "GFP")  # doctest: +SKIP
    """
    _check_chunks(chunks)
    place = place_of(location, storage_options, backend, one_of_two=xml is not None)
    named = None if xml is None else place_of(xml, storage_options, backend, one_of_two=True)
    laziness = Laziness(chunks, cache=True)
    return views_tree(place, path, named, axis_order, laziness, registrations=registrations)


def _check_chunks(chunks: DaskChunks) -> None:
    is_size = isinstance(chunks, int) and (chunks > 0 or chunks == -1)
    require(
        is_size or chunks is None or chunks == "auto" or isinstance(chunks, Mapping),
        f"chunks: expected 'auto', a number above 0, -1, a mapping or None, got {chunks!r}",
    )


class Laziness(NamedTuple):
    """Choose how arrays are lazy: dask's chunks, or none, and whether loaded data are kept."""

    chunks: DaskChunks
    cache: bool

    def array(self, views: StackedViews) -> object:
        """Return the array of views for a variable."""
        indexing = xarray_indexing()
        lazy: object = indexing.LazilyIndexedArray(views)
        if self.chunks is not None or not self.cache:
            return lazy
        kept: object = indexing.CopyOnWriteArray(indexing.MemoryCachedArray(lazy))
        return kept

    def chunked(self, data: xr.Variable) -> xr.Variable:
        """Convert a lazy variable to dask's, as xarray does with the argument of an engine."""
        if self.chunks is None:
            return data
        blocks: Mapping[str, int] = data.encoding["preferred_chunks"]
        if self.chunks == "auto":
            import dask  # noqa: PLC0415 - slow, and the engine does not need it
            from dask.utils import parse_bytes  # noqa: PLC0415

            sizes = tuple(blocks.values())
            limit = parse_bytes(dask.config.get("array.chunk-size")) // data.dtype.itemsize
            of_view = join_blocks(data.shape[-3:], sizes[-3:], n_elements=limit, most=sys.maxsize)
            joined = join_blocks(data.shape, (*sizes[:-3], *of_view), most=_MOST_CHUNKS)
            wanted: Mapping[str, Any] = dict(zip(blocks, joined, strict=True))
        elif isinstance(self.chunks, int):
            wanted = dict.fromkeys(blocks, self.chunks)
        else:
            wanted = {dim: self.chunks.get(dim, size) for dim, size in blocks.items()}
        # equal names would mean equal elements, which may have changed since
        return data.chunk(wanted, name=f"views-{uuid4().hex}")


_OF_ENGINE = Laziness(None, cache=False)  # xarray makes chunks, and keeps what was loaded


def views_tree(
    place: Place,
    path: str,
    xml: Place | None,
    axis_order: AxisOrder,
    laziness: Laziness = _OF_ENGINE,
    *,
    registrations: bool = True,
) -> xr.DataTree:
    """Open views like :func:`open_bdv`, by default with the lazy arrays that an engine returns."""
    given = None if xml is None else read_project(XmlFile.at(xml))
    require(
        given is None or not given.description.loader.splits,
        f"xml: expected the XML of the images, got that of boxes of them, {given}; open it itself",
    )
    found = locate(place, path)
    with asking_once(), found.named():
        store, group = found.open(axis_order=axis_order)
        project = given or project_of(found.document)
        existing_node(store, group, _EXPECTED)
        views = find_views(store, group)
        if not views:
            raise NotFoundError(f"{store}: /{group}: expected {_EXPECTED}, got none with data")
        description = store.run(read_description(group)) if project is None else project.description
        if description is not None:
            views = described_views(store, group, views, description)
            _warn_of_names(store, description)
            if not registrations:
                description = replace(description, registrations={})
        placements = _placements(store, views, description)
        placed = [stack.placed for each in placements for stack in each.levels.values()]
        warn_of_problems(store, placed, stacklevel=4)
        return _tree(placements, description, laziness)


class _Stack:
    """Hold the time points of one level of one setup, all with the same positions."""

    def __init__(
        self, store: N5Store, views: Mapping[int, SetupLevel], description: Description | None
    ) -> None:
        self.store = store
        self.views = views
        number, first = next(iter(views.items()))
        self.placed = first.placed(store, description)
        expected = first.dataset.data_type, first.dataset.shape
        for view in views.values():
            actual = view.dataset.data_type, view.dataset.shape
            if actual != expected:
                raise option_error(
                    f"expected {expected[0]} {expected[1]}, like time point {number}, got "
                    f"{actual[0]} {actual[1]}; open them one by one with xr.open_datatree",
                    where=f"{store}: {view.path}",
                )

    @property
    def stacking_key(self) -> object:
        """Return shape, data type and positions: stacks with equal keys can be stacked again."""
        first, geometry = self.placed.view, self.placed.geometry
        places = tuple(self.placed.axes.items()), geometry and geometry.rest
        return first.shape, first.data_type, self.placed.dims, places


class _Placement(NamedTuple):
    """Hold a setup, and time points at which it has the same positions."""

    name: str
    setup: int
    timepoints: list[int]
    levels: dict[str, _Stack]

    @property
    def stacking_key(self) -> object:
        """Return time points and levels: placements with equal keys become one array per level."""
        return self.timepoints, {level: stack.stacking_key for level, stack in self.levels.items()}


def _placements(
    store: N5Store, views: Mapping[int, Levels], description: Description | None
) -> list[_Placement]:
    """Separate the setups; if any setup moves, separate the time points too."""
    times_of = {s: sorted({t for v in levels.values() for t in v}) for s, levels in views.items()}
    if any(moves(description, setup, times) for setup, times in times_of.items()):
        nodes = [(s, [t], f"setup{s}/timepoint{t}") for s, times in times_of.items() for t in times]
    else:
        known = None if description is None else description.timepoints
        all_times = list(known or sorted({t for times in times_of.values() for t in times}))
        nodes = [(s, all_times, f"setup{s}") for s in times_of]
    placements = []
    for setup, times, name in nodes:
        own = set(times)
        levels = {
            level: {t: view for t, view in by_time.items() if t in own}
            for level, by_time in views[setup].items()
        }
        stacks = {level: _Stack(store, v, description) for level, v in levels.items() if v}
        placements.append(_Placement(name, setup, times, stacks))
    return placements


def _tree(
    placements: list[_Placement], description: Description | None, laziness: Laziness
) -> xr.DataTree:
    """Stack all setups if their keys are equal; else make nodes for each."""
    first = placements[0]
    if all(placement.stacking_key == first.stacking_key for placement in placements):
        setups = _setup_coords([placement.setup for placement in placements], description)
        datasets = {
            level: _dataset(
                [p.levels[level] for p in placements], first.timepoints, setups, laziness
            )
            for level in first.levels
        }
    else:
        datasets = {}
        for placement in placements:
            setups = _setup_coords([placement.setup], description)
            # repeat the names here: nodes inherit no scalars
            datasets[f"setup{placement.setup}"] = xr.Dataset(coords=setups).isel(setup=0)
            datasets |= {
                f"{placement.name}/{level}": _dataset(
                    [stack], placement.timepoints, setups, laziness, is_one=True
                )
                for level, stack in placement.levels.items()
            }
    return xr.DataTree.from_dict(datasets)


def _dataset(
    stacks: list[_Stack],
    timepoints: list[int],
    setups: Mapping[str, xr.Variable],
    laziness: Laziness,
    *,
    is_one: bool = False,
) -> xr.Dataset:
    """Make the Dataset of a level; of one setup without the dimension of setups."""
    placed = stacks[0].placed
    views = StackedViews(stacks[0].store, [[s.views.get(t) for t in timepoints] for s in stacks])
    dims = ("setup", "timepoint", *placed.dims)
    # the registration, if coordinates cannot express it
    attributes = {key: value for key, value in placed.attributes.items() if key == "registration"}
    present = [[t in stack.views for t in timepoints] for stack in stacks]
    variables = {
        **setups,
        "timepoint": xr.Variable(("timepoint",), np.array(timepoints)),
        "present": xr.Variable(("setup", "timepoint"), np.array(present)),
        **{dim: coordinate(dim, axis, placed.sizes[dim]) for dim, axis in placed.axes.items()},
        "data": xr.Variable(dims, laziness.array(views), attributes),
    }
    if is_one:  # before dask has a chunk for each part of the data
        variables = {name: v.isel(setup=0, missing_dims="ignore") for name, v in variables.items()}
    view = placed.view
    blocks = {"setup": 1, "timepoint": 1}
    blocks |= preferred_chunks(placed.dims, view.shape, view.chunk_shape)
    for variable in variables.values():  # for chunks={} of xarray's functions
        own = {dim: size for dim, size in blocks.items() if dim in variable.dims}
        variable.encoding["preferred_chunks"] = own
    data = variables.pop("data")
    data.encoding["chunks"] = tuple(data.encoding["preferred_chunks"].values())
    dataset = xr.Dataset({"data": laziness.chunked(data)}, coords=variables)
    for name, coord in setups.items():
        if coord.dtype.kind == "U" and not is_one:
            dataset = dataset.set_xindex(name)
    return dataset


def _is_ours(name: str) -> bool:
    """Return whether an attribute of the XML has the name of another coordinate or variable."""
    return name in _NAMES or re.fullmatch(r"(s|setup|timepoint)[0-9]+|.*[{:/].*", name) is not None


def _warn_of_names(store: N5Store, description: Description) -> None:
    """Warn once of attributes of the XML that are omitted."""
    found = {key for setup in description.setups.values() for key in setup.names if _is_ours(key)}
    if found:
        listed = ", ".join(sorted(found))
        warnings.warn(
            f"{store}: attributes of the XML omitted, as their names are taken: {listed}",
            N5Warning,
            stacklevel=4,
        )


def _setup_coords(numbers: list[int], description: Description | None) -> dict[str, xr.Variable]:
    """Make the coordinates of setups: their numbers, names, and locations of tiles."""
    described = [description.setups.get(n) for n in numbers] if description else []
    setups = [setup for setup in described if setup is not None]
    values: dict[str, list[Any]] = {"setup": numbers}
    if len(setups) == len(numbers):
        if any(setup.name for setup in setups):
            values["setup_name"] = [setup.name for setup in setups]
        for key in setups[0].names:
            if not _is_ours(key) and all(key in setup.names for setup in setups):
                values[key] = [setup.names[key] for setup in setups]
        if all(setup.tile_location for setup in setups):
            for i, axis in enumerate("xyz"):
                values[f"tile_{axis}"] = [setup.tile_location[i] for setup in setups]
    return {name: xr.Variable(("setup",), np.array(column)) for name, column in values.items()}


def open_described(
    place: Place, group: str | None, axis_order: AxisOrder
) -> dict[str, xr.Dataset] | None:
    """Open the nodes of :func:`open_bdv` at and below a group; None if there is no XML.

    Parameters
    ----------
    place : Place
        Any location.
    group : str or None
        A node of the tree.
    axis_order : {"C", "F"}
        As for :func:`open_bdv`.

    Raises
    ------
    FileNotFoundError
        The tree has no such node, or there are no setups.
    N5UnrepresentableError
        The XML is not BigDataViewer's, or of another format (``kind="option"``).
    """
    file = xml_file(place)
    if file is None:
        return None
    tree = views_tree(place, "", None, axis_order)
    nodes = {node.path.strip("/"): node for node in tree.subtree}
    path = normalize_path(group or "")
    if path not in nodes:
        listed = ", ".join(node.path.strip("/") for node in tree.leaves)
        raise FileNotFoundError(f"{file}: group: expected one of {listed}, got {path}")
    top = nodes[path]
    found = {
        f"/{node.path.removeprefix(top.path).strip('/')}": node.to_dataset() for node in top.subtree
    }
    for dataset in found.values():  # xarray would store the URL, with its token
        dataset.encoding["source"] = str(file)
    return found
