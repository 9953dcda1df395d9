"""BigDataViewer's and BigStitcher's setups and time points as one array for each level."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask.array
import numpy as np
import xarray as xr
import zarr
from zarr.abc.store import Store

from n5zarr._zarr_compat import sync
from n5zarr.containers import open_container
from n5zarr.conventions.bdv import parse_xml
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.path import join
from n5zarr.geometry import find_xml, read_placed
from n5zarr.translate.presentation import Presentation
from n5zarr.xarray.backend import coordinate, warn_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from n5zarr.conventions.bdv import Description
    from n5zarr.format.order import AxisOrder
    from n5zarr.geometry import Placed
    from n5zarr.hierarchy import Node
    from n5zarr.store import N5Store

__all__ = ["open_bdv"]

# by setup and level, by time point
da: Any = dask.array  # without types

type _Views = dict[int, dict[str, dict[int, Presentation]]]


def open_bdv(
    store: str | os.PathLike[str] | Store,
    *,
    path: str = "",
    xml: str | os.PathLike[str] | None = None,
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
        dimension ``setup``. A time point that a setup lacks is all 0.

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
    root = getattr(opened, "root", None)
    if xml is not None:
        description = parse_xml(Path(xml).read_bytes())
    else:
        description = None if root is None else find_xml(root.joinpath(*group.split("/")), root)
    numbers = sorted({t for levels in views.values() for v in levels.values() for t in v})
    stacks = {
        setup: {level: _Stack(opened, group, setup, level, v) for level, v in levels.items()}
        for setup, levels in views.items()
    }
    return _tree(stacks, numbers, description)


def _described_by(xml: str | os.PathLike[str]) -> str:
    description = parse_xml(Path(xml).read_bytes())
    if description is None:
        message = f"{os.fspath(xml)}: expected BigDataViewer's XML with an ImageLoader of N5"
        raise N5UnrepresentableError(message, kind="option")
    return str((Path(xml).parent / description.location).resolve())


def _numbered(opened: N5Store, path: str, pattern: str) -> list[tuple[int, str, Node]]:
    """Find the children whose names are a word and a number, by number."""
    children = sync(opened.run(opened.hierarchy.children(path)))
    found = [(re.fullmatch(pattern, name), name, child) for name, child in children]
    return sorted(
        ((int(match.group(1)), name, child) for match, name, child in found
         if match and isinstance(child, GroupAttributes | Presentation)),
        key=lambda entry: entry[0],
    )  # fmt: skip


def _views(opened: N5Store, group: str) -> _Views:
    views: _Views = {}
    for setup, setup_name, node in _numbered(opened, group, r"setup([0-9]+)"):
        if not isinstance(node, GroupAttributes):
            continue
        levels: dict[str, dict[int, Presentation]] = {}
        above = join(group, setup_name)
        for number, name, _ in _numbered(opened, above, r"timepoint([0-9]+)"):
            for _, level, shown in _numbered(opened, join(above, name), r"s([0-9]+)"):
                if isinstance(shown, Presentation):
                    levels.setdefault(level, {})[number] = shown
        if levels:
            views[setup] = levels
    return views


class _Stack:
    """The time points of one level of one setup."""

    def __init__(
        self, opened: N5Store, group: str, setup: int, level: str, shown: Mapping[int, Presentation]
    ) -> None:
        self.opened = opened
        self.above = join(group, f"setup{setup}")
        self.level = level
        self.shown = shown
        number, first = next(iter(shown.items()))
        self.placed: Placed = sync(read_placed(opened, self.path(number), first))
        warn_of(opened, self.placed)
        for other, found in shown.items():
            if (found.shape, found.data_type) != (first.shape, first.data_type):
                message = (
                    f"expected {first.data_type} {first.shape} as at time point {number}, got "
                    f"{found.data_type} {found.shape}; open them one by one with xr.open_datatree"
                )
                where = f"{opened}: {self.path(other)}"
                raise N5UnrepresentableError(message, kind="option", where=where)

    def path(self, timepoint: int) -> str:
        return join(self.above, f"timepoint{timepoint}", self.level)

    @property
    def likeness(self) -> object:
        """What stacks have to have in common to be one array."""
        first = self.placed.shown
        return first.shape, first.data_type, self.placed.dims, tuple(self.placed.axes.items())

    def array(self, timepoints: list[int]) -> Any:  # noqa: ANN401 - dask's
        shown = self.placed.shown
        dtype = shown.kind.dtype
        parts = [
            da.from_zarr(zarr.open_array(self.opened, path=self.path(t), mode="r"))
            if t in self.shown
            else da.zeros(shown.shape, dtype=dtype, chunks=shown.chunk_shape)
            for t in timepoints
        ]
        return da.stack(parts)

    @property
    def coords(self) -> dict[str, xr.Variable]:
        sizes = self.placed.sizes
        return {dim: coordinate(dim, axis, sizes[dim]) for dim, axis in self.placed.axes.items()}


def _tree(
    stacks: dict[int, dict[str, _Stack]], timepoints: list[int], description: Description | None
) -> xr.DataTree:
    likeness = [
        {level: stack.likeness for level, stack in levels.items()} for levels in stacks.values()
    ]
    if any(one != likeness[0] for one in likeness):
        return xr.DataTree.from_dict(
            {
                f"/setup{setup}/{level}": _dataset([stack], timepoints)
                for setup, levels in stacks.items()
                for level, stack in levels.items()
            }
        )
    setups = _setup_coords(list(stacks), description)
    return xr.DataTree.from_dict(
        {
            f"/{level}": _dataset([s[level] for s in stacks.values()], timepoints, setups)
            for level in next(iter(stacks.values()))
        }
    )


def _dataset(
    stacks: list[_Stack],
    timepoints: list[int],
    setups: Mapping[str, xr.Variable] | None = None,
) -> xr.Dataset:
    arrays = [stack.array(timepoints) for stack in stacks]
    first = stacks[0]
    dims = ("timepoint", *first.placed.dims)
    data = xr.Variable(dims, arrays[0]) if setups is None else xr.Variable(
        ("setup", *dims), da.stack(arrays)
    )  # fmt: skip
    return xr.Dataset(
        {"data": data},
        coords={**(setups or {}), "timepoint": np.array(timepoints), **first.coords},
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
