"""BigDataViewer's and BigStitcher's setups and time points as one array for each level."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import dask.array
import numpy as np
import xarray as xr
import zarr
from zarr.abc.store import Store

from n5zarr.container.axes import read_description, read_placed
from n5zarr.conventions.bdv import parse_xml
from n5zarr.errors import N5UnrepresentableError, N5Warning
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.path import join
from n5zarr.store.location import open_container
from n5zarr.xarray.backend import coordinate
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from n5zarr.container.axes import Placed
    from n5zarr.container.memory import Node
    from n5zarr.conventions.bdv import Description
    from n5zarr.format.order import AxisOrder
    from n5zarr.store.n5_store import N5Store

__all__ = ["open_bdv"]

da: Any = dask.array  # without types


class _View(NamedTuple):
    """A level of a setup at one time point."""

    path: str
    shown: DatasetView


type _Levels = dict[str, dict[int, _View]]
"""By level and time point."""


def open_bdv(
    store: str | os.PathLike[str] | Store,
    *,
    path: str = "",
    xml: str | os.PathLike[str] | None = None,
    registrations: bool = True,
    axis_order: AxisOrder = "C",
    storage_options: dict[str, Any] | None = None,
) -> xr.DataTree:
    """Open the setups and time points of BigDataViewer or BigStitcher, stacked for each level.

    Parameters
    ----------
    store : path, URL or zarr store
        A container, anywhere in one, or the XML that describes it.
    path : str, optional
        The group of the setups, below ``store``.
    xml : path, optional
        The XML, where it does not lie with the setups or above them up to beside the container.
    registrations : bool, optional
        Whether views are where their registrations in the XML put them. Without, all begin at 0,
        with the voxel size of their setup.
    axis_order : {"C", "F"}, optional
        Order of the dimensions of space, ``z, y, x`` or ``x, y, z``.
    storage_options : dict, optional
        For fsspec, with a URL.

    Returns
    -------
    DataTree
        A node ``s0``, ``s1``, ... for each level, with a variable ``data`` of dimensions ``setup``,
        ``timepoint`` and those of space, read by dask in whole blocks. Names and numbers of
        channels, angles, tiles and illuminations in the XML are coordinates of ``setup``. Where
        sizes, elements or positions of the setups differ, ``setup0/s0`` and so on, without the
        dimension ``setup``; where registrations differ between time points,
        ``setup0/timepoint0/s0``. A time point that a setup lacks is all 0, or no node.

        Scale and translation of a registration are coordinates. What is left of it, rotation and
        shear, causes one warning, and is the attribute ``registration`` of ``data``: the three rows
        of a matrix, one after the other, that takes the positions x, y, z, and 1, to the world.

    Raises
    ------
    FileNotFoundError
        There are no setups.
    N5UnrepresentableError
        The time points of one setup differ in size (``kind="option"``).
    """
    if not isinstance(store, Store) and os.fspath(store).endswith(".xml"):
        xml = os.fspath(store)
        store = _described_by(xml)
    opened, group = open_container(
        store, path, axis_order=axis_order, storage_options=storage_options
    )
    views = _views(opened, group)
    if not views:
        message = f"{opened}: /{group}: expected groups setup0, setup1, ..., got none with data"
        raise FileNotFoundError(message)
    if xml is not None:
        description = parse_xml(Path(xml).read_bytes())
    else:
        description = opened.ask(read_description(group))
    if description is not None and not registrations:
        description = replace(description, registrations={})
    parts = _parts(opened, views, description)
    _warn_of(opened, [stack for part in parts for stack in part.levels.values()])
    return _tree(parts, description)


def _described_by(xml: str | os.PathLike[str]) -> str:
    description = parse_xml(Path(xml).read_bytes())
    if description is None:
        message = f"{os.fspath(xml)}: expected BigDataViewer's XML with an ImageLoader of N5"
        raise N5UnrepresentableError(message, kind="option")
    return str((Path(xml).parent / description.location).resolve())


def _numbered(opened: N5Store, path: str, pattern: str) -> list[tuple[int, str, Node]]:
    """Find the children whose names are a word and a number, by number."""
    children = opened.ask(opened.container.nodes.children(path))
    found = [(re.fullmatch(pattern, name), name, child) for name, child in children]
    return sorted(
        ((int(match.group(1)), name, child) for match, name, child in found
         if match and isinstance(child, GroupAttributes | DatasetView)),
        key=lambda entry: entry[0],
    )  # fmt: skip


def _views(opened: N5Store, group: str) -> dict[int, _Levels]:
    """Find the levels of each setup."""
    views: dict[int, _Levels] = {}
    for setup, setup_name, node in _numbered(opened, group, r"setup([0-9]+)"):
        if not isinstance(node, GroupAttributes):
            continue
        levels: _Levels = {}
        above = join(group, setup_name)
        for number, name, _ in _numbered(opened, above, r"timepoint([0-9]+)"):
            for _, level, shown in _numbered(opened, join(above, name), r"s([0-9]+)"):
                if isinstance(shown, DatasetView):
                    view = _View(join(above, name, level), shown)
                    levels.setdefault(level, {})[number] = view
        if levels:
            views[setup] = levels
    return views


class _Stack:
    """Time points of one level of one setup, all at the same place."""

    def __init__(
        self, opened: N5Store, views: Mapping[int, _View], description: Description | None
    ) -> None:
        self.opened = opened
        self.views = views
        number, first = next(iter(views.items()))
        self.placed: Placed = opened.ask(
            read_placed(opened.container.nodes, first.path, first.shown, description=description)
        )
        wanted = first.shown.data_type, first.shown.shape
        for view in views.values():
            found = view.shown.data_type, view.shown.shape
            if found != wanted:
                message = (
                    f"expected {wanted[0]} {wanted[1]} as at time point {number}, got "
                    f"{found[0]} {found[1]}; open them one by one with xr.open_datatree"
                )
                where = f"{opened}: {view.path}"
                raise N5UnrepresentableError(message, kind="option", where=where)

    @property
    def likeness(self) -> object:
        """What stacks have to have in common to be one array."""
        first, geometry = self.placed.view, self.placed.geometry
        places = tuple(self.placed.axes.items()), geometry and geometry.rest
        return first.shape, first.data_type, self.placed.dims, places

    @property
    def attributes(self) -> dict[str, Any]:
        """What coordinates cannot say of the place."""
        found = self.placed.attributes
        return {key: found[key] for key in ("registration",) if key in found}

    def array(self, timepoints: list[int]) -> Any:  # noqa: ANN401 - dask's
        shown = self.placed.view
        dtype = shown.kind.dtype
        parts = [
            da.from_zarr(zarr.open_array(self.opened, path=self.views[t].path, mode="r"))
            if t in self.views
            else da.zeros(shown.shape, dtype=dtype, chunks=shown.chunk_shape)
            for t in timepoints
        ]
        return da.stack(parts)

    @property
    def coords(self) -> dict[str, xr.Variable]:
        sizes = self.placed.sizes
        return {dim: coordinate(dim, axis, sizes[dim]) for dim, axis in self.placed.axes.items()}


class _Part(NamedTuple):
    """A setup at those time points at which it lies at one place."""

    name: str
    setup: int
    timepoints: list[int]
    levels: dict[str, _Stack]

    @property
    def likeness(self) -> object:
        """What parts have to have in common to be one array for each level."""
        return self.timepoints, {level: stack.likeness for level, stack in self.levels.items()}


def _parts(
    opened: N5Store, views: Mapping[int, _Levels], description: Description | None
) -> list[_Part]:
    """Take setups apart, and their time points if any setup moves."""
    listed = {s: sorted({t for v in levels.values() for t in v}) for s, levels in views.items()}
    if any(_moves(description, setup, times) for setup, times in listed.items()):
        parted = [(s, [t], f"setup{s}/timepoint{t}") for s, times in listed.items() for t in times]
    else:
        everywhen = sorted({t for times in listed.values() for t in times})
        parted = [(s, everywhen, f"setup{s}") for s in listed]
    parts = []
    for setup, times, name in parted:
        levels = {
            level: {t: view for t, view in found.items() if t in times}
            for level, found in views[setup].items()
        }
        stacks = {level: _Stack(opened, v, description) for level, v in levels.items() if v}
        parts.append(_Part(name, setup, times, stacks))
    return parts


def _moves(description: Description | None, setup: int, timepoints: list[int]) -> bool:
    """Whether a setup is not at the same place at all time points."""
    if description is None:
        return False
    return len({description.registrations.get((setup, t)) for t in timepoints}) > 1


def _warn_of(opened: N5Store, stacks: Iterable[_Stack]) -> None:
    """Say once each what cannot be meant of the places of all views."""
    said: dict[str, list[str]] = {}
    for stack in stacks:
        for problem in stack.placed.problems:
            said.setdefault(problem, []).append(stack.placed.path)
    for problem, (first, *others) in said.items():
        where = f"{first} and {len(others)} others" if others else first
        warnings.warn(f"{opened}: {where}: {problem}", N5Warning, stacklevel=3)


def _tree(parts: list[_Part], description: Description | None) -> xr.DataTree:
    """Stack the setups where all are alike."""
    first = parts[0]
    if all(part.likeness == first.likeness for part in parts):
        setups = _setup_coords([part.setup for part in parts], description)
        datasets = {
            level: _dataset([part.levels[level] for part in parts], first.timepoints, setups)
            for level in first.levels
        }
    else:
        datasets = {
            f"{part.name}/{level}": _dataset(
                [stack], part.timepoints, _setup_coords([part.setup], description)
            ).isel(setup=0)
            for part in parts
            for level, stack in part.levels.items()
        }
    return xr.DataTree.from_dict(datasets)


def _dataset(
    stacks: list[_Stack], timepoints: list[int], setups: Mapping[str, xr.Variable]
) -> xr.Dataset:
    first = stacks[0]
    arrays = da.stack([stack.array(timepoints) for stack in stacks])
    data = xr.Variable(("setup", "timepoint", *first.placed.dims), arrays, first.attributes)
    return xr.Dataset(
        {"data": data},
        coords={**setups, "timepoint": np.array(timepoints), **first.coords},
    )


def _setup_coords(numbers: list[int], description: Description | None) -> dict[str, xr.Variable]:
    coords = {"setup": xr.Variable(("setup",), np.array(numbers))}
    described = [description.setups.get(n) for n in numbers] if description else [None]
    setups = [setup for setup in described if setup is not None]
    if len(setups) != len(numbers):
        return coords
    if any(setup.name for setup in setups):
        names = np.array([setup.name for setup in setups])
        coords["setup_name"] = xr.Variable(("setup",), names)
    for key in setups[0].attributes:
        if all(key in setup.attributes for setup in setups):
            values = np.array([setup.attributes[key] for setup in setups])
            coords[key] = xr.Variable(("setup",), values)
    return coords
