"""Make coordinates of axes, encode coordinates as axis metadata, and compare positions of data.

Metadata are decoded again like a reader decodes them. Only a coordinate that reads back the same to
the last bit gets no dataset.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import xarray as xr

from n5zarr.container.axes import Placed, positions
from n5zarr.container.options import require
from n5zarr.conventions.describe import add_level, describe_axes
from n5zarr.conventions.find import find_geometry
from n5zarr.conventions.model import Axis, Geometry, Node, Written, axes_of
from n5zarr.conventions.units import ratio
from n5zarr.errors import option_error
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import CTuple, to_c, to_n5
from n5zarr.metadata.levels import is_level as is_name_of_level
from n5zarr.xarray.accessor import origin_of

if TYPE_CHECKING:
    """The part of existing datasets to write, by dimension."""

type Region = Mapping[str, slice | Literal["auto"]] | Literal["auto"]


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


@dataclass(frozen=True)
class EncodedAxes:
    """Hold the axes of a variable as metadata.

    Parameters
    ----------
    written : Written or None
        The attributes of the convention; None if it cannot express the axes.
    dims : frozenset
        Dimensions that need no dataset: their coordinate reads back from the metadata to the last
        bit, or they have no coordinate.
    """

    written: Written | None
    dims: frozenset[Hashable]


def encode_axes(  # noqa: PLR0913 - all inputs of a reader
    convention: str,
    ds: xr.Dataset,
    array: xr.DataArray,
    path: str,
    above: Sequence[Mapping[str, JSON]],
    first: Placed | None,
    *,
    is_level: bool,
) -> EncodedAxes:
    """Encode the axes of a variable, and decode them to find the coordinates that read back.

    Parameters
    ----------
    convention : str
        The convention to write.
    ds, array : Dataset, DataArray
        The coordinates, and the variable.
    path : str
        Of its dataset in the container.
    above : sequence of mapping
        Attributes of the groups above, the nearest first.
    first : Placed or None
        The level ``s0`` in the same group, if there is one.
    is_level : bool
        Whether it becomes a bare dataset, where types and spellings of units may change.

    Raises
    ------
    N5UnrepresentableError
        The variable has no coordinate along a dimension, but a reader would compute one from
        attributes (``kind="option"``).
    """
    without = frozenset(dim for dim in array.dims if dim not in ds.coords)
    written = _written(convention, ds, array, path, above[0], first)
    names = to_n5(map(str, array.dims))
    unwanted: list[Hashable] = []
    for attempt in (written, None) if written is not None else (None,):
        geometry = _decoded(array, path, above, attempt, first)
        axis_of = dict.fromkeys(array.dims, None) | _placed_axes(array, geometry)
        unwanted = [dim for dim in without if axis_of[dim] is not None]
        is_understood = (
            geometry is not None
            and geometry.convention == convention
            and [axis.name for axis in geometry.axes] == [*names]
        )
        if not unwanted and (is_understood or attempt is None):
            break
    else:
        raise option_error(
            f"{path}: expected coordinates along {', '.join(map(str, unwanted))}: without them, it "
            "would get positions from its attributes or those of a group above it"
        )
    encoded = {
        dim
        for dim, axis in axis_of.items()
        if axis is not None and dim in ds.coords and _reads_back(ds, dim, axis, is_level=is_level)
    }
    return EncodedAxes(attempt, without | encoded)


def _written(
    convention: str,
    ds: xr.Dataset,
    array: xr.DataArray,
    path: str,
    group: Mapping[str, JSON],
    first: Placed | None,
) -> Written | None:
    """Write axes in a convention; None if it would replace other attributes."""
    axis_of = {dim: even_axis(ds, dim) for dim in array.dims}
    if not any(axis_of.values()):
        return None
    names = to_n5(map(str, array.dims))
    axes = to_n5(axis_of[dim] or Axis(name=str(dim)) for dim in array.dims)
    typed = axes_of(
        len(names),
        names=names,
        scale=[axis.scale for axis in axes],
        translation=[axis.translation for axis in axes],
        units=[axis.unit for axis in axes],
    )
    name = path.rpartition("/")[2]
    base = None
    if is_name_of_level(name) and first is not None and first.geometry is not None:
        base = first.geometry.axes
    written = describe_axes(convention, typed, name, base)
    # "units" of dates and durations is an attribute that xarray adds
    taken = {*array.attrs, *(("units",) if array.dtype.kind in "mM" else ())}
    if taken & written.attributes.keys():
        return None
    if convention == "ngff" and not isinstance(group.get("multiscales"), list | None):
        return None
    return written._replace(beside={}) if taken & written.beside.keys() else written


def _decoded(
    array: xr.DataArray,
    path: str,
    above: Sequence[Mapping[str, JSON]],
    written: Written | None,
    first: Placed | None,
) -> Geometry | None:
    """Return the geometry that a reader gets from the new metadata."""
    attributes: dict[str, JSON] = {"axes": [*to_n5(map(str, array.dims))], **array.attrs}
    groups = list(above)
    if written is not None:
        attributes |= written.on_dataset(array.attrs)
        if written.level is not None:
            group, _, name = path.rpartition("/")
            groups[0] = add_level(groups[0], group, name, written)
    node = Node(
        path=tuple(path.split("/")),
        dimensions=to_n5(CTuple(array.shape)),
        attributes=attributes,
        ancestors=groups,
        first_level=None if first is None else first.view.dataset.dimensions,
        first_attributes={} if first is None else first.view.dataset.attributes,
    )
    return find_geometry(node).geometry


def _placed_axes(array: xr.DataArray, geometry: Geometry | None) -> dict[Hashable, Axis | None]:
    """Return the axis of each dimension; None for those without positions."""
    if geometry is None or len(geometry.axes) != array.ndim:
        return {}
    axes = zip(array.dims, to_c(geometry.axes), to_c(geometry.is_placed), strict=True)
    return {dim: axis if is_placed else None for dim, axis, is_placed in axes}


def _reads_back(ds: xr.Dataset, dim: Hashable, axis: Axis, *, is_level: bool) -> bool:
    """Return whether the coordinate that a reader computes is the same to the last bit."""
    given = ds.coords[dim].variable.to_base_variable()
    computed = coordinate(dim, axis, ds.sizes[dim])
    is_exact = is_level and given.dtype.kind in "iu" and np.abs(given.values).max() <= 2**53
    unit, other = computed.attrs.get("units"), given.attrs.get("units")
    if is_level and isinstance(other, str) and ratio(unit, other) == 1.0:
        computed.attrs["units"] = other
    if not (computed.dtype == given.dtype or is_exact) or not computed.identical(given):  # type: ignore[no-untyped-call]
        return False
    # one position along time or channels does not give the distance to the next
    return ds.sizes[dim] != 1 or axis.type == "space" or _known_scale(ds.coords[dim]) is not None


def _known_scale(coord: xr.DataArray) -> float | None:
    origin = origin_of(coord.encoding)
    return None if origin is None else origin.scale


def even_axis(ds: xr.Dataset, dim: Hashable) -> Axis | None:
    """Return scale and translation of an evenly spaced coordinate; None for any other."""
    if dim not in ds.coords or ds.coords[dim].dims != (dim,):
        return None
    coord = ds.coords[dim]
    unit = coord.attrs.get("units")
    if coord.dtype.kind not in "iuf" or not coord.size or not isinstance(unit, str | None):
        return None
    values = np.asarray(coord.values, np.float64)
    first = float(values[0])
    scales = list(_scales(values)) if len(values) > 1 else [_known_scale(coord) or 1.0]
    indices = np.arange(len(values))
    best = min(scales, key=lambda scale: np.count_nonzero(scale * indices + first != values))
    is_near = np.abs(best * indices + first - values) <= 1e-9 * abs(best)
    if not best or not np.isfinite(values).all() or not is_near.all():
        return None
    return Axis(name=str(dim), scale=best, translation=first, unit=unit)


def _scales(values: np.ndarray) -> Iterable[float]:
    """Yield candidates for the scale before the positions were rounded."""
    for distance in ((values[-1] - values[0]) / (len(values) - 1), values[1] - values[0]):
        yield float(distance)
        for digits in (15, 14, 13, 12, 9, 6):
            yield float(f"{distance:.{digits}g}")
