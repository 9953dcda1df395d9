"""Read names, units and positions of the axes of a dataset of HDF5.

In this order: names and scales of dimensions ("HDF5 Dimension Scales Specification"; unit in the
attribute ``units``, as netCDF), ilastik's ``axistags``, and ``element_size_um`` of Fiji's HDF5
plugin and ilastik: the size of an element along z, y and x in micrometres.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from n5zarr.conventions import ilastik
from n5zarr.conventions.find import find_geometry
from n5zarr.conventions.model import MisfitError, Node, numbers
from n5zarr.format.order import CTuple, to_c, to_n5

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.format.lenient_json import JSON

__all__ = ["Hdf5Axes", "axes_of"]

_SPACE = ("z", "y", "x")
_MOST = 1 << 22  # elements of a scale: it is read whole
_NEAR = 1e-6  # relative difference of steps that are equal


class Hdf5Axes(NamedTuple):
    """What is known of the axes, C order; None if nothing is."""

    names: Sequence[str | None] | None = None
    units: Sequence[str] | None = None
    resolution: Sequence[float] | None = None
    offset: Sequence[float] | None = None


class _Along(NamedTuple):
    """What is known of one axis."""

    name: str | None = None
    step: float | None = None
    first: float = 0.0
    unit: str = ""


def axes_of(dataset: Any, attributes: Mapping[str, JSON]) -> Hdf5Axes:  # noqa: ANN401 - h5py's
    """Read the axes of a dataset.

    Positions are left to attributes that describe them for N5, if the dataset has such ones.

    Parameters
    ----------
    dataset : h5py.Dataset
        The dataset.
    attributes : mapping
        Its attributes, as JSON.
    """
    along = [_of_scale(dim, n) for dim, n in zip(dataset.dims, dataset.shape, strict=True)]
    tagged = _of_ilastik(dataset.shape, attributes, along)
    along = [_merged(*each) for each in zip(along, tagged, strict=True)]
    along = _with_element_size(along, attributes)
    names = [each.name for each in along]
    known = Hdf5Axes(names if any(names) else None)
    is_placed = any(each.step is not None for each in along)
    if not is_placed or _is_described(dataset.shape, attributes):
        return known
    return known._replace(
        units=[each.unit for each in along],
        resolution=[1.0 if each.step is None else each.step for each in along],
        offset=[each.first for each in along],
    )


def _is_described(shape: tuple[int, ...], attributes: Mapping[str, JSON]) -> bool:
    """Whether attributes describe positions as a convention of N5 does."""
    others = {key: value for key, value in attributes.items() if key not in ilastik.KEYS}
    geometry = find_geometry(
        Node(path=(), dimensions=to_n5(CTuple(shape)), attributes=others)
    ).geometry
    return geometry is not None and not geometry.names_only


def _of_scale(dim: Any, size: int) -> _Along:  # noqa: ANN401 - h5py's
    """Read the first scale of a dimension; positions only if they are evenly spaced."""
    scale = dim[0] if len(dim) else None
    name = dim.label or (scale is not None and (scale.name or "").rpartition("/")[2]) or None
    is_read = scale is not None and scale.shape == (size,) and 1 < size <= _MOST
    if scale is None or not is_read or scale.dtype.kind not in "iuf":
        return _Along(name)
    values = np.asarray(scale[...], float)
    step = float(values[-1] - values[0]) / (size - 1)
    even = values[0] + step * np.arange(size)
    if not math.isfinite(step) or not step or np.abs(values - even).max() > abs(step) * _NEAR:
        return _Along(name)
    unit = scale.attrs.get("units", "")
    unit = unit.decode(errors="replace") if isinstance(unit, bytes) else str(unit)
    return _Along(name, step, float(values[0]), unit)


def _of_ilastik(
    shape: tuple[int, ...], attributes: Mapping[str, JSON], along: Sequence[_Along]
) -> list[_Along]:
    names = [each.name for each in along]
    given = to_n5([str(name) for name in names]) if all(names) and names else None
    node = Node(path=(), dimensions=to_n5(CTuple(shape)), attributes=attributes, given_names=given)
    try:
        found = ilastik.read(node)
    except MisfitError:  # not ilastik's: a name that others use, too
        found = None
    if found is None:
        return [_Along()] * len(along)
    axes = [(axis.name, axis.scale, axis.unit or "") for axis in to_c(found.axes)]
    return [_Along(n, scale if unit or scale != 1 else None, 0.0, unit) for n, scale, unit in axes]


def _merged(first: _Along, second: _Along) -> _Along:
    placed = second if first.step is None else first
    return placed._replace(name=first.name or second.name)


def _with_element_size(along: list[_Along], attributes: Mapping[str, JSON]) -> list[_Along]:
    """Add ``element_size_um`` to the axes of space that have no positions."""
    sizes = numbers(attributes.get("element_size_um"), 3)
    if sizes is None or not all(0 < size < math.inf for size in sizes):
        return along
    if len(along) == 3 and not any(each.name for each in along):
        along = [each._replace(name=name) for each, name in zip(along, _SPACE, strict=True)]
    by_name = dict(zip(_SPACE, sizes, strict=True))
    return [
        each._replace(step=by_name[each.name], unit="µm")
        if each.step is None and each.name in by_name
        else each
        for each in along
    ]
