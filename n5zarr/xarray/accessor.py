"""List the levels of an image, open one by its resolution or number, and add ``ds.n5``.

``ds.n5`` gives voxel size, convention, cropping and other pyramid levels of opened data.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import xarray as xr

from n5zarr.container.axes import Placed
from n5zarr.container.options import require
from n5zarr.conventions.units import ratio
from n5zarr.errors import option_error
from n5zarr.format.order import AxisOrder
from n5zarr.format.path import join
from n5zarr.metadata.geometry import placed_levels, warn_of_problems
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.store.locating import open_container
from n5zarr.store.n5_store import N5Store


@dataclass(frozen=True, kw_only=True)
class OpenableLevel:
    """Describe one level of a pyramid.

    Parameters
    ----------
    path : str
        Path of the dataset, below the root of the container.
    sizes : dict of str to int
        Extent of each dimension in elements, in the order that ``axis_order`` asks for.
    voxel_size, translation : dict of str to float
        Distance of elements and position of the first one along each dimension that has positions,
        in ``units``.
    units : dict of str to str or None
        As written in the attributes.
    """

    path: str
    sizes: dict[str, int]
    voxel_size: dict[str, float]
    translation: dict[str, float]
    units: dict[str, str | None]


def pyramid_levels(
    location: Location,
    path: str = "",
    *,
    axis_order: AxisOrder = "C",
    convention: str | None = None,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> list[OpenableLevel]:
    """List the levels of a pyramid.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one.
    path : str, optional
        The group of the levels, or one of the levels, below ``location``.
    axis_order : {"C", "F"}, optional
        Order of the dimensions, ``z, y, x`` or ``x, y, z``.
    convention : str, optional
        The only convention of axes to try.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Returns
    -------
    list of OpenableLevel
        The levels, the finest first: the datasets ``s0``, ``s1``, ... of the group; without these,
        those that ``multiscales`` lists, or all its datasets, which must have the same dimensions.
        Levels without positions get them from the ratio of the shapes, in elements of the finest.

    Raises
    ------
    FileNotFoundError
        No node exists at this path.
    N5UnrepresentableError
        The group has no levels (``kind="option"``); the message lists the groups in it.

    Examples
    --------
    >>> import n5zarr
    >>> for level in n5zarr.pyramid_levels(n5zarr.sample_path(), "em"):
    ...     print(level.path, level.sizes, level.voxel_size)
    em/s0 {'z': 40, 'y': 96, 'x': 128} {'z': 20.0, 'y': 8.0, 'x': 8.0}
    em/s1 {'z': 20, 'y': 48, 'x': 64} {'z': 40.0, 'y': 16.0, 'x': 16.0}
    em/s2 {'z': 10, 'y': 24, 'x': 32} {'z': 80.0, 'y': 32.0, 'x': 32.0}
    """
    place = place_of(location, storage_options, backend)
    with asking_once():
        store, group = open_container(place, path, axis_order=axis_order)
        placed = placed_levels(store, group, convention)
        warn_of_problems(store, placed)
        return [*map(_level, placed)]


def _level(placed: Placed) -> OpenableLevel:
    return OpenableLevel(
        path=placed.path,
        sizes=placed.sizes,
        voxel_size={dim: axis.scale for dim, axis in placed.axes.items()},
        translation={dim: axis.translation for dim, axis in placed.axes.items()},
        units={dim: axis.unit for dim, axis in placed.axes.items()},
    )


def open_level(  # noqa: PLR0913 - the options of pyramid_levels, and those that choose a level
    location: Location,
    resolution: Mapping[str, float] | None = None,
    *,
    path: str = "",
    level: int | None = None,
    axis_order: AxisOrder = "C",
    convention: str | None = None,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
    **options: Any,  # noqa: ANN401 - options of xarray.open_dataset
) -> xr.Dataset:
    """Open the level of a pyramid that fits a resolution, or a level by its number.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one.
    resolution : mapping of str to float, optional
        For each dimension, the largest distance between elements, in the unit of the finest level.
        The coarsest level that meets this along all these dimensions is opened, or the finest level
        if none does.
    path : str, optional
        The group of the levels, or one of the levels, below ``location``.
    level : int, optional
        The number of the level, in place of ``resolution``; 0 is the finest.
    axis_order, convention, storage_options, backend : optional
        As in :func:`pyramid_levels`.
    **options : optional
        Other options of :func:`xarray.open_dataset`, such as ``chunks={}``.

    Returns
    -------
    Dataset
        One variable, with the name of the level, and its coordinates.

    Raises
    ------
    N5UnrepresentableError
        There are no levels, no such level, or no such dimension (``kind="option"``).

    Examples
    --------
    >>> import n5zarr
    >>> ds = n5zarr.open_level(n5zarr.sample_path(), {"x": 16}, path="em")
    >>> ds.n5.voxel_size
    {'z': 40.0, 'y': 16.0, 'x': 16.0}
    """
    require(
        (resolution is None) != (level is None) and isinstance(resolution, Mapping | None),
        f"expected a resolution, such as {{'z': 40}}, or a level, got {resolution!r} and {level!r}",
    )
    place = place_of(location, storage_options, backend)
    with asking_once():
        store, group = open_container(place, path, axis_order=axis_order)
        levels = [*map(_level, placed_levels(store, group, convention))]
        if level is None:
            chosen = _coarsest_within(levels, resolution or {})
        else:
            chosen = _numbered(levels, level, f"{store}: /{group}")
        return xr.open_dataset(
            store,  # type: ignore[arg-type] # xarray's type omits types that only the engine knows
            engine="n5",
            group=chosen.path,
            convention=convention,
            **options,
        )


def _numbered(levels: list[OpenableLevel], number: int, where: str) -> OpenableLevel:
    last = len(levels) - 1
    require(0 <= number <= last, f"level: expected 0 to {last}, got {number}", where)
    return levels[number]


def _coarsest_within(levels: list[OpenableLevel], resolution: Mapping[str, float]) -> OpenableLevel:
    """Return the coarsest level with a resolution, or the finest one if none has it."""
    for dim, wanted in resolution.items():
        require(
            dim in levels[0].voxel_size and wanted > 0,
            "resolution: expected a number above 0 for a dimension with positions, "
            f"{', '.join(levels[0].voxel_size) or 'but none has'}, got {dim!r}: {wanted!r}; or "
            "choose with level=",
        )
    fine = [
        level
        for level in levels
        if all(
            _size_in(levels[0].units[dim], level, dim) <= wanted * (1 + 1e-9)
            for dim, wanted in resolution.items()
        )
    ]
    return (fine or levels[:1])[-1]


def _size_in(unit: str | None, level: OpenableLevel, dim: str) -> float:
    """Return a level's voxel size in another unit; infinite if it is unknown."""
    factor = ratio(level.units.get(dim), unit)
    if factor is None or dim not in level.voxel_size:
        return math.inf
    return abs(level.voxel_size[dim]) * factor


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Name the dataset from which a variable was opened, and the options.

    Stored in the variable's encoding under ``"source"``, where xarray's own backends put a file
    name. xarray keeps the encoding when a variable is sliced, loaded, copied or pickled, and every
    writer of xarray ignores ``"source"`` but no other key, even if a user passes the encoding on.

    Parameters
    ----------
    store : N5Store
        The container.
    path : str
        Of the dataset; for a computed coordinate, the name of its dimension.
    convention : str or None
        The convention that gave the coordinates.
    forced : str or None
        The option ``convention``: the only convention to try.
    scale : float or None
        For a computed coordinate, the distance between elements.
    """

    store: N5Store
    path: str
    convention: str | None = None
    forced: str | None = None
    scale: float | None = None

    def __str__(self) -> str:
        return join(str(self.store), self.path)


def origin_of(encoding: Mapping[str, object]) -> Origin | None:
    """Return the origin in a variable's encoding; None if it was not opened from N5."""
    source = encoding.get("source")
    return source if isinstance(source, Origin) else None


@xr.register_dataset_accessor("n5")  # type: ignore[no-untyped-call] # xarray's
@xr.register_dataarray_accessor("n5")  # type: ignore[no-untyped-call]
class N5Accessor[T: (xr.Dataset, xr.DataArray)]:
    """Give positions along axes, and open the other levels of a pyramid.

    Parameters
    ----------
    data : Dataset or DataArray
        Any data. Methods that need data opened from N5 raise an error for other data.

    Examples
    --------
    >>> import xarray as xr, n5zarr
    >>> ds = xr.open_dataset(n5zarr.sample_path(), engine="n5", group="em/s1")
    >>> ds.n5.voxel_size, ds.n5.convention
    ({'z': 40.0, 'y': 16.0, 'x': 16.0}, 'cosem')
    >>> dict(ds.n5.crop(x=(100, 200)).sizes)
    {'z': 20, 'y': 48, 'x': 7}
    >>> dict(ds.n5.level(2).sizes)
    {'z': 10, 'y': 24, 'x': 32}
    """

    def __init__(self, data: T) -> None:
        self._data: T = data

    @property
    def voxel_size(self) -> dict[Hashable, float]:
        """Measure the distance of neighbours along each dimension with an evenly spaced coordinate.

        In the unit of the coordinate; a slice with a step has a larger distance. Dimensions of one
        element are left out.
        """
        return {
            dim: step for dim in self._data.dims if (step := _spacing(self._data, dim)) is not None
        }

    @property
    def convention(self) -> str | None:
        """Name the convention that gave the coordinates; None for data that are not from N5."""
        return next((origin.convention for origin in self._origins()), None)

    def crop(self, **between: tuple[float | None, float | None]) -> T:
        """Select what lies between two positions, both included, along some dimensions.

        Parameters
        ----------
        **between : tuple of float or None
            By dimension, two positions in the unit of its coordinate, in any order; None is the
            end of the axis.

        Returns
        -------
        Dataset or DataArray
            A view of the data.

        Raises
        ------
        KeyError
            There is no such dimension, or it has no coordinate.
        """
        data = self._data
        for dim, (first, last) in between.items():
            if dim not in data.xindexes:
                raise KeyError(
                    f"{dim!r}: expected a dimension with coordinates, there are "
                    + (", ".join(map(repr, data.xindexes)) or "none")
                )
            ends = [first, last]
            if first is not None and last is not None:
                ends.sort()
            values = data.indexes[dim]
            if len(values) > 1 and values.is_monotonic_decreasing:
                ends.reverse()
            data = data.sel({dim: slice(*ends)})
        return data

    def level(self, k: int) -> xr.Dataset:
        """Open another level of the pyramid that the data were opened from.

        Parameters
        ----------
        k : int
            The level; 0 is the finest. It is opened whole, even if the data are a selection.

        Raises
        ------
        N5UnrepresentableError
            The data were not opened from a pyramid in N5, or it has no such level
            (``kind="option"``).
        """
        origin = next(self._origins(), None)
        if origin is None:
            raise option_error("level: expected data that were opened with engine='n5'")
        return open_level(
            origin.store,
            path=origin.path.rpartition("/")[0],
            level=k,
            convention=origin.forced,
            chunks={} if self._data.chunks else None,
        )

    def _origins(self) -> Iterator[Origin]:
        data = cast("xr.Dataset | xr.DataArray", self._data)
        arrays = [data] if isinstance(data, xr.DataArray) else data.data_vars.values()
        return (origin for array in arrays if (origin := origin_of(array.encoding)) is not None)


def _spacing(data: xr.Dataset | xr.DataArray, dim: Hashable) -> float | None:
    """Return the distance of neighbours; None if the coordinate is not evenly spaced."""
    if data.sizes[dim] < 2 or dim not in data.coords or data[dim].dtype.kind not in "fiu":
        return None
    values = data[dim].values
    steps = np.diff(values.astype(np.float64))
    tolerance = 1e-6 * abs(steps[0])
    is_even = bool((np.abs(steps - steps[0]) <= tolerance).all())
    if not is_even or not steps[0]:
        return None
    return float((values[-1] - values[0]) / (len(values) - 1))
