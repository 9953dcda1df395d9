"""``ds.n5``: what microscopists ask of a Dataset or DataArray, above all if it is from N5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr

from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.path import join
from n5zarr.xarray.affine_index import AffineIndex
from n5zarr.xarray.pyramids import open_level

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from n5zarr.store.n5_store import N5Store

__all__ = ["N5Accessor", "Origin"]


class Origin(str):  # noqa: SLOT000 - slots would not be pickled
    """Where a variable was opened from, as text, and how.

    It stands in the encoding of the variable as ``"source"``, which every writer of xarray's leaves
    out.
    """

    store: N5Store
    path: str
    convention: str | None
    forced: str | None
    lazy_coords: bool
    scale: float | None  # of a coordinate

    @classmethod
    def of(
        cls,
        store: N5Store,
        path: str,
        *,
        convention: str | None = None,
        forced: str | None = None,
        lazy_coords: bool = False,
        scale: float | None = None,
    ) -> Self:
        """Make one of a store and a path in it."""
        found = cls(join(str(store), path))
        found.store, found.path = store, path
        found.convention, found.forced = convention, forced
        found.lazy_coords, found.scale = lazy_coords, scale
        return found


@xr.register_dataset_accessor("n5")  # type: ignore[no-untyped-call] # xarray's
@xr.register_dataarray_accessor("n5")  # type: ignore[no-untyped-call]
class N5Accessor:
    """Positions, and the levels of the pyramid that the data were opened from.

    Parameters
    ----------
    data : Dataset or DataArray
        Any; what needs N5 says so.

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

    def __init__(self, data: xr.Dataset | xr.DataArray) -> None:
        self._data = data

    @property
    def voxel_size(self) -> dict[Hashable, float]:
        """Distance of neighbours along each dimension with evenly spaced numbers as coordinate.

        In the unit of the coordinate; a slice with a step has larger ones. Dimensions of one
        element are left out.
        """
        return {
            dim: step for dim in self._data.dims if (step := _spacing(self._data, dim)) is not None
        }

    @property
    def convention(self) -> str | None:
        """Which convention gave the coordinates, None where the data were not opened from N5."""
        return next((origin.convention for origin in self._origins()), None)

    def crop(self, **between: tuple[float | None, float | None]) -> Any:  # noqa: ANN401 - as given
        """Select what lies between two positions, both included, along some dimensions.

        Parameters
        ----------
        **between : tuple of float or None
            By dimension, two positions in the unit of its coordinate, in any order; None is the
            end of the axis.

        Returns
        -------
        Dataset or DataArray
            A view of what was given.

        Raises
        ------
        KeyError
            There is no such dimension, or it has no coordinate.
        """
        data = self._data
        for dim, (first, last) in between.items():
            if dim not in data.xindexes:  # `indexes` would compute lazy ones
                message = f"{dim!r}: expected a dimension with coordinates, there are " + (
                    ", ".join(map(repr, data.xindexes)) or "none"
                )
                raise KeyError(message)
            ends = [first, last]
            if first is not None and last is not None:
                ends.sort()
            if _is_decreasing(data, dim):
                ends.reverse()
            data = data.sel({dim: slice(*ends)})
        return data

    def level(self, k: int) -> xr.Dataset:
        """Open another level of the pyramid that the data were opened from.

        Parameters
        ----------
        k : int
            0 is the finest. The level is opened whole, whatever was selected.

        Raises
        ------
        N5UnrepresentableError
            The data were not opened from a pyramid in N5, or it has no such level
            (``kind="option"``).
        """
        origin = next(self._origins(), None)
        if origin is None:
            message = "level: expected data that were opened with engine='n5'"
            raise N5UnrepresentableError(message, kind="option")
        options: dict[str, Any] = {"chunks": {}} if self._data.chunks else {}
        return open_level(
            origin.store,
            path=origin.path.rpartition("/")[0],
            level=k,
            convention=origin.forced,
            lazy_coords=origin.lazy_coords,
            **options,
        )

    def _origins(self) -> Iterator[Origin]:
        if isinstance(self._data, xr.DataArray):
            variables = [self._data.variable]
        else:
            variables = [v.variable for v in self._data.data_vars.values()]
        found = (variable.encoding.get("source") for variable in variables)
        return (origin for origin in found if isinstance(origin, Origin))


def _is_decreasing(data: xr.Dataset | xr.DataArray, dim: Hashable) -> bool:
    index = data.xindexes[dim]
    if isinstance(index, AffineIndex):
        return index.transform.scale * index.transform.lattice.step < 0
    values = data.indexes[dim]
    return len(values) > 1 and bool(values.is_monotonic_decreasing)


def _spacing(data: xr.Dataset | xr.DataArray, dim: Hashable) -> float | None:
    """Give the distance of neighbours; None where it is not one number."""
    if data.sizes[dim] < 2:
        return None
    index = data.xindexes.get(dim)
    if isinstance(index, AffineIndex):
        return index.transform.scale * index.transform.lattice.step
    if dim not in data.coords:
        return None
    values = data[dim].values
    if values.dtype.kind not in "fiu":
        return None
    steps = np.diff(values.astype(np.float64))
    tolerance = 1e-6 * abs(steps[0])
    even = bool((np.abs(steps - steps[0]) <= tolerance).all())
    return float((values[-1] - values[0]) / (len(values) - 1)) if even and steps[0] else None
