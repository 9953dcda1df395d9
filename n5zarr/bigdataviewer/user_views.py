"""Take views, three-dimensional arrays with names and positions, out of a user's data."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import numpy as np
import xarray as xr

from n5zarr.container.options import require
from n5zarr.conventions.model import Axis
from n5zarr.errors import option_error
from n5zarr.format.grid import automatic_block_size
from n5zarr.images.source import ArraySource, Values
from n5zarr.xarray.positions import even_axis

type Data = xr.DataTree | xr.Dataset | xr.DataArray | Mapping[Any, Any]

_SPACE = ("z", "y", "x")
ENTITIES = ("illumination", "channel", "tile", "angle")
"""The attributes of a setup, in BigStitcher's order."""

_ALIASES = {"t": "timepoint", "time": "timepoint", "c": "channel"}
_END = 2**31  # numbers are ints in Java


@dataclass(frozen=True, eq=False, kw_only=True)
class ViewData:
    """A view to write.

    Parameters
    ----------
    setup, timepoint : int
        Its numbers.
    values : Values
        Its elements, z first.
    chunks : tuple of int
        Extent in elements of the best unit to read, z first.
    axes : tuple of Axis or None, optional
        Positions along z, y and x; None without.
    names : mapping of str to str, optional
        Name of the setup, ``setup_name``, and of its channel, tile and so on.
    tile_location : tuple of float, optional
        Recorded position of the tile, x first.
    registration : object, optional
        The rows of a matrix that maps positions, ``[x, y, z, 1]``, to the world.
    """

    setup: int
    timepoint: int
    values: Values
    chunks: tuple[int, ...]
    axes: tuple[Axis | None, ...] = (None, None, None)
    names: Mapping[str, str] = field(default_factory=dict)
    tile_location: tuple[float, ...] = ()
    registration: Any = None

    @property
    def like(self) -> tuple[object, ...]:
        """What all time points of a setup must have in common: shape, type and units."""
        units = tuple(None if axis is None else axis.unit for axis in self.axes)
        return tuple(self.values.shape), str(getattr(self.values, "dtype", "")), units

    @property
    def scales(self) -> tuple[float, ...]:
        """Distance of positions along z, y and x."""
        return tuple(1.0 if axis is None else axis.scale for axis in self.axes)

    def source(self) -> ArraySource:
        """Return the array to write.

        Raises
        ------
        N5UnrepresentableError
            N5 does not have the data type (``kind="option"``).
        """
        dtype = np.dtype(getattr(self.values, "dtype", None))
        require(
            dtype.kind in "iuf" and dtype.itemsize in (1, 2, 4, 8) and dtype != np.float16,
            f"data: setup {self.setup}: expected integers or floats that N5 has, got {dtype}",
        )
        return ArraySource(
            name=f"setup {self.setup}, time point {self.timepoint}",
            values=self.values,
            dtype=dtype,
            chunks=self.chunks,
            fill_value=0,
        )


def views_in(data: Data) -> list[ViewData]:
    """Return the views of data, sorted by setup and time point.

    Parameters
    ----------
    data : DataTree, Dataset, DataArray or mapping
        As for :func:`n5zarr.write_bdv`.

    Raises
    ------
    N5UnrepresentableError
        No view is there, or two have the same numbers (``kind="option"``).
    """
    views = sorted(_views(data), key=lambda view: (view.setup, view.timepoint))
    require(views, "data: expected at least one view, got none")
    for one, other in pairwise((view.setup, view.timepoint) for view in views):
        require(one != other, f"data: expected each setup and time point once, got {one} twice")
    return views


def arrays_in(data: Data) -> Iterator[tuple[object, object]]:
    """Yield the arrays of a user's data with their names, each once, nothing of them read."""
    if isinstance(data, xr.DataTree):
        for node in data.subtree:
            yield from node.variables.items()
    elif isinstance(data, xr.Dataset):
        yield from data.variables.items()
    elif isinstance(data, xr.DataArray):
        yield data.name, data.variable
    else:
        for key, value in data.items():
            is_of_xarray = isinstance(value, xr.Dataset | xr.DataArray)
            yield from arrays_in(value) if is_of_xarray else [(key, value)]


def _views(data: Data) -> Iterator[ViewData]:
    if isinstance(data, xr.DataTree):
        yield from views_of_level(data, "s0")
    elif isinstance(data, xr.Dataset):
        yield from _in_array(_variable(data), present=data.get("present"))
    elif isinstance(data, xr.DataArray):
        yield from _in_array(data)
    elif isinstance(data, Mapping):
        for key, value in data.items():
            setup, timepoint = _numbers(key)
            array = _as_array(value)
            if isinstance(array, xr.DataArray):
                yield from _in_array(array, setup=setup, timepoint=timepoint)
            else:
                chunks = tuple(getattr(array, "chunks", None) or automatic_block_size(array.shape))
                yield ViewData(setup=setup, timepoint=timepoint or 0, values=array, chunks=chunks)
    else:
        raise option_error(
            "data: expected a DataTree, Dataset, DataArray, or a mapping of numbers of setups to "
            f"arrays, got {type(data).__name__}"
        )


def views_of_level(tree: xr.DataTree, level: str) -> Iterator[ViewData]:
    """Yield the views in the nodes of a tree with the name of a level."""
    nodes = (node for node in tree.subtree if node.name == level and node.has_data)
    for dataset in (node.to_dataset() for node in nodes):
        yield from _in_array(_variable(dataset), present=dataset.get("present"))


def _numbers(key: object) -> tuple[int, int | None]:
    """Parse the key of a mapping: a setup, or a setup and a time point."""
    given = key if isinstance(key, tuple) else (key, None)
    is_right = len(given) == 2 and all(
        n is None or (isinstance(n, int | np.integer) and 0 <= n < _END) for n in given
    )
    require(
        is_right,
        "data: expected keys 3, a setup, or (3, 0), a setup and a time point, numbers from 0 to "
        f"{_END - 1}, got {key!r}",
    )
    setup, timepoint = given
    return int(setup), None if timepoint is None else int(timepoint)


def _as_array(value: object) -> Any:  # noqa: ANN401 - arrays of any library
    """Return an array that is not loaded: of zarr as it is, others of numpy or dask as xarray's."""
    if isinstance(value, xr.DataArray):
        return value
    if isinstance(value, xr.Dataset):
        return _variable(value)
    ndim = getattr(value, "ndim", None)
    require(ndim in (2, 3), f"data: expected arrays of the axes z, y, x, got {ndim} axes")
    is_lazy = ndim == 3 and not isinstance(value, np.ndarray) and not hasattr(value, "dask")
    return value if is_lazy else xr.DataArray(value, dims=_SPACE[-ndim:])  # type: ignore[operator]


def _variable(data: xr.Dataset) -> xr.DataArray:
    """Return the images in a dataset: ``data``, or its only variable with axes of space."""
    spatial = [n for n, v in data.data_vars.items() if {"y", "x"} <= {*v.dims}]
    if "data" in spatial:
        return data["data"]
    require(len(spatial) == 1, f"data: expected one variable with z, y, x, or data, got {spatial}")
    return data[spatial[0]]


def _in_array(
    array: xr.DataArray,
    *,
    setup: int | None = None,
    timepoint: int | None = None,
    present: xr.DataArray | None = None,
) -> Iterator[ViewData]:
    """Yield the views along the axes of an array that are not of space."""
    named = [_ALIASES.get(str(dim), dim) for dim in array.dims]
    require(
        len({*named}) == len(named),
        f"data: expected one dimension of time points, and one of channels, got {[*array.dims]}",
    )
    array = array.rename({old: new for old, new in _ALIASES.items() if old in array.dims})
    if "z" not in array.dims:
        array = array.expand_dims("z")
    others = [dim for dim in array.dims if dim not in _SPACE]
    _check_dims(others, array.dims, has_setup=setup is not None, has_time=timepoint is not None)
    array = array.transpose(*others, *_SPACE)
    of_setup = [dim for dim in others if dim != "timepoint"]
    for number, at_setup in enumerate(product(*(range(array.sizes[dim]) for dim in of_setup))):
        for at_time in range(array.sizes.get("timepoint", 1)):
            where = dict(zip(of_setup, at_setup, strict=True))
            where |= {"timepoint": at_time} if "timepoint" in others else {}
            one = array.isel(where)
            if present is not None and not present.isel(where, missing_dims="ignore").item():
                continue
            own = number if setup is None else setup
            time = at_time if timepoint is None else timepoint
            yield _view(
                one,
                _number(one, "setup", own) if setup is None else own,
                _number(one, "timepoint", time) if timepoint is None else time,
            )


def _check_dims(
    others: Sequence[Hashable], dims: Sequence[Hashable], *, has_setup: bool, has_time: bool
) -> None:
    known = set() if has_time else {"timepoint"}
    known |= set() if has_setup else {"setup", *ENTITIES}
    is_right = {*others} <= known and {"y", "x"} <= {*dims}
    require(
        is_right and ("setup" not in others or not {*others} & {*ENTITIES}),
        f"data: expected the dimensions z, y, x and of {sorted(known) or 'no others'}; either setup"
        f" or others of a setup; got {[*map(str, dims)]}",
    )


def _number(array: xr.DataArray, name: str, default: int) -> int:
    """Return the number of a setup or time point, if the coordinate has one."""
    if name in array.coords and array.coords[name].dtype.kind in "iu":
        number = int(array.coords[name].item())
        require(
            0 <= number < _END,
            f"data: expected numbers from 0 to {_END - 1} as coordinate {name}, got {number}",
        )
        return number
    return default


def _view(array: xr.DataArray, setup: int, timepoint: int) -> ViewData:
    variable = array.variable
    preferred = variable.encoding.get("preferred_chunks") or {}
    sizes = dict(zip(_SPACE, automatic_block_size(array.shape), strict=True)) | preferred
    if variable.chunks:
        sizes = {dim: max(each) for dim, each in zip(_SPACE, variable.chunks, strict=True)}
    scalars = {n: c.item() for n, c in array.coords.items() if c.ndim == 0}
    tile = [scalars.get(f"tile_{axis}") for axis in "xyz"]
    coords = array.coords.to_dataset()
    return ViewData(
        setup=setup,
        timepoint=timepoint,
        values=variable,
        chunks=tuple(sizes[dim] for dim in _SPACE),
        axes=tuple(_axis(coords, dim) for dim in _SPACE),
        names={n: str(scalars[n]) for n in ("setup_name", *ENTITIES) if n in scalars},
        tile_location=tuple(map(float, tile)) if None not in tile else (),  # type: ignore[arg-type]
        registration=array.attrs.get("registration"),
    )


def _axis(coords: xr.Dataset, dim: str) -> Axis | None:
    if dim not in coords.coords:
        return None
    axis = even_axis(coords, dim)
    require(
        axis is not None,
        f"data: expected evenly spaced positions along {dim}, got others; "
        f"data.drop_vars({dim!r}) removes them",
    )
    return axis


def names_of_setups(
    firsts: Mapping[int, ViewData], given: Mapping[int, Mapping[str, str]]
) -> dict[int, dict[str, str]]:
    """Return the names of each setup, and of its channel, tile and so on.

    BigStitcher cannot tell setups apart whose parts are all the same: setups that say nothing
    of their parts are tiles.

    Raises
    ------
    N5UnrepresentableError
        Given names are not right, or all parts of two setups have the same (``kind="option"``).
    """
    _check_mapping(given)
    unknown = [key for names in given.values() for key in names if key not in ("name", *ENTITIES)]
    require(
        not unknown and given.keys() <= firsts.keys(),
        f"setups: expected names {['name', *ENTITIES]} of setups {[*firsts]}, got "
        f"{ {n: [*names] for n, names in given.items()} }",
    )
    found = {}
    for number, view in firsts.items():
        own = {"name" if key == "setup_name" else key: name for key, name in view.names.items()}
        found[number] = own | {key: str(name) for key, name in given.get(number, {}).items()}
    is_said = any(names.keys() & {*ENTITIES} for names in found.values())
    default = dict.fromkeys(ENTITIES, "0")
    named = {
        number: default | ({} if is_said else {"tile": str(number)}) | names
        for number, names in found.items()
    }
    setups: dict[tuple[str, ...], int] = {}
    for number, names in named.items():
        parts = tuple(names[kind] for kind in ENTITIES)
        first = setups.setdefault(parts, number)
        require(
            first == number,
            f"setups: expected each to differ from others in {', '.join(ENTITIES)}, got {parts} "
            f"for {first} and {number}; setups={{{number}: {{'tile': ...}}}} names one anew",
        )
    return named


def _check_mapping(given: object) -> None:
    require(
        isinstance(given, Mapping) and all(isinstance(v, Mapping) for v in given.values()),
        "setups: expected a mapping of setups to their names, {0: {'name': 'left'}}, got "
        f"{given!r}",
    )


def numbers_of_entities(named: Mapping[int, Mapping[str, str]]) -> list[dict[str, int]]:
    """Return numbers for the channel, tile and so on of each setup: those of names, or in order."""
    numbers: dict[str, dict[str, int]] = {}
    for kind in ENTITIES:
        names = list(dict.fromkeys(each[kind] for each in named.values()))
        own = [int(name) if name.isdecimal() else -1 for name in names]
        are_numbers = -1 not in own and len({*own}) == len(own) and max(own) < 2**31
        numbers[kind] = dict(zip(names, own if are_numbers else range(len(names)), strict=True))
    return [{kind: numbers[kind][each[kind]] for kind in ENTITIES} for each in named.values()]
