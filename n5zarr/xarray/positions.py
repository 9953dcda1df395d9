"""Make coordinates of axes, and compare those of data with those of the datasets to write to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from n5zarr.container.axes import positions
from n5zarr.container.options import require

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from n5zarr.conventions.model import Axis
    from n5zarr.xarray.options import Region

__all__ = ["check_positions", "coordinate", "expected_after", "find_region"]


def coordinate(dim: Hashable, axis: Axis, size: int) -> xr.Variable:
    """Compute the coordinate of an axis.

    Parameters
    ----------
    dim : str
        The dimension of the axis.
    axis : Axis
        Scale, translation and unit, or labels.
    size : int
        The number of elements.
    """
    if axis.labels is not None:
        return xr.Variable((dim,), np.array(axis.labels))
    return xr.Variable((dim,), positions(axis, size), {"units": axis.unit} if axis.unit else {})


def find_region(
    existing: xr.Dataset, ds: xr.Dataset, region: Region, where: str
) -> dict[Hashable, slice]:
    """Return the slice to write along each dimension.

    Parameters
    ----------
    existing : Dataset
        The datasets in the container.
    ds : Dataset
        The data.
    region : mapping of dimension to slice or "auto", or "auto"
        See :func:`~n5zarr.xarray.write.to_n5`. Missing dimensions are written whole.
    where : str
        The container and the group, for messages.

    Raises
    ------
    N5UnrepresentableError
        The region does not fit the data or the container (``kind="option"``).
    """
    everywhere = region if isinstance(region, str) else slice(None)
    parts: dict[Hashable, slice | str] = dict.fromkeys(ds.dims, everywhere)
    if not isinstance(region, str):
        parts.update(region.items())
    slices: dict[Hashable, slice] = {}
    for dim, part in parts.items():
        require(
            dim in ds.dims and dim in existing.dims,
            f"region: expected dimensions of data and container, got {dim!r}",
            where,
        )
        if isinstance(part, str):
            slices[dim] = _find_part(existing, ds, dim, where)
            continue
        start, stop, step = part.indices(existing.sizes[dim])
        require(
            step == 1 and stop - start == ds.sizes[dim],
            f"region: {dim!r}: expected a part of {ds.sizes[dim]} elements, got {start} to "
            f"{stop} in steps of {step}",
            where,
        )
        slices[dim] = slice(start, stop)
    return slices


def _find_part(existing: xr.Dataset, ds: xr.Dataset, dim: Hashable, where: str) -> slice:
    """Return the slice with the positions of the data, in the same order and without gaps."""
    if dim not in ds.indexes or dim not in existing.indexes:
        require(
            existing.sizes[dim] == ds.sizes[dim],
            f"region: {dim!r}: 'auto' needs a coordinate in the data and in the container",
            where,
        )
        return slice(0, ds.sizes[dim])
    places = existing.indexes[dim].get_indexer(ds.indexes[dim])
    require(
        len(places) and places[0] >= 0 and (np.diff(places) == 1).all(),
        f"region: {dim!r}: expected consecutive positions of the container, got "
        f"{_brief(np.asarray(ds.indexes[dim]))}",
        where,
    )
    return slice(int(places[0]), int(places[-1]) + 1)


def expected_after(
    existing: xr.Dataset,
    ds: xr.Dataset,
    dim: Hashable,
    axes: Mapping[str, tuple[Axis, int]],
    where: str,
) -> xr.Dataset:
    """Return the coordinates that appended data must have.

    Parameters
    ----------
    existing, ds : Dataset
        The datasets in the container, and the data.
    dim : str
        The dimension along which to append.
    axes : mapping of str to Axis and int
        Axes whose positions are computed from metadata, and their sizes.
    where : str
        The container and the group, for messages.
    """
    known = ", ".join(map(repr, existing.dims))
    require(
        dim in existing.dims and dim in ds.dims,
        f"append_dim: expected a dimension of both, got {dim!r}; there are {known}",
        where,
    )
    expected = existing.drop_dims([dim])
    if str(dim) not in axes:
        return expected
    axis, size = axes[str(dim)]
    return expected.assign_coords({dim: coordinate(dim, axis, size + ds.sizes[dim])[size:]})


def check_positions(
    expected: xr.Dataset, ds: xr.Dataset, axes: Mapping[str, tuple[Axis, int]], where: str
) -> None:
    """Reject data whose sizes, positions or units differ from those in the container.

    Parameters
    ----------
    expected, ds : Dataset
        The content of the container at this place, and the data.
    axes : mapping of str to Axis and int
        Axes whose positions are computed from metadata, and their sizes.
    where : str
        The container and the group, for messages.
    """
    for dim in ds.dims:
        size, given_size = expected.sizes.get(dim, ds.sizes[dim]), ds.sizes[dim]
        require(size == given_size, f"{dim!r}: expected {size} elements, got {given_size}", where)
        if dim not in expected.coords or dim not in ds.coords:
            continue
        stored, given = expected[dim].values, ds[dim].values
        if stored.dtype.kind == "f" and given.dtype.kind in "iuf":
            step = axes[str(dim)][0].scale if str(dim) in axes else 0.0
            step = stored[1] - stored[0] if len(stored) > 1 else step
            is_same = np.allclose(stored, given, rtol=0, atol=1e-6 * abs(step), equal_nan=True)
        else:
            is_same = np.array_equal(stored, given)
        units = expected[dim].attrs.get("units"), ds[dim].attrs.get("units")
        require(
            is_same and (None in units or units[0] == units[1]),
            f"{dim!r}: expected the positions {_brief(stored)} {units[0] or ''}, as in the "
            f"container, got {_brief(given)} {units[1] or ''}",
            where,
        )


def _brief(values: np.ndarray) -> str:
    text = ", ".join(map(str, values[:3]))
    return f"{text}, ..." if len(values) > 3 else text
