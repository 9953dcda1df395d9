"""Add ``ds.n5``: voxel size, convention, cropping and other pyramid levels of opened data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import xarray as xr

from n5zarr.errors import option_error
from n5zarr.format.path import join
from n5zarr.xarray.pyramids import open_level

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from n5zarr.store.n5_store import N5Store

__all__ = ["N5Accessor", "Origin", "origin_of"]


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
