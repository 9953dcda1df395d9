"""Regions of datasets that exist, and appending to them.

xarray's ``to_zarr`` needs names of dimensions, which datasets of other programs lack, and lengthens
an array before it looks at what is to be appended. Here all is checked before anything changes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr
import zarr

from n5zarr.container.axes import read_layout, read_placed
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.attributes import GroupAttributes
from n5zarr.xarray.backend import coordinate
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from dask.delayed import Delayed

    from n5zarr.container.axes import Placed
    from n5zarr.conventions.model import Axis
    from n5zarr.store.n5_store import N5Store

__all__ = ["CF_ENCODING", "Plan", "check_fit", "in_whole_blocks", "open_existing", "plan_change"]

type Region = Mapping[str, slice | Literal["auto"]] | Literal["auto"]

# what decoding leaves there and encoding needs
CF_ENCODING = (
    "units", "calendar", "dtype", "scale_factor", "add_offset", "_FillValue", "missing_value",
    "coordinates", "grid_mapping", "_Unsigned",
)  # fmt: skip


def open_existing(opened: N5Store, path: str, **decoding: bool) -> xr.Dataset:
    """Open what is in a container that is being written to."""
    store: Any = opened  # which xarray's types do not know
    options: dict[str, Any] = decoding
    return xr.open_dataset(store, engine="n5", group=path, **options)


def plan_change(
    opened: N5Store,
    path: str,
    ds: xr.Dataset,
    *,
    region: Region | None = None,
    append_dim: Hashable | None = None,
    by_one: bool = False,
) -> Plan:
    """Check that a part of datasets that exist can be written, or that they can be made longer.

    Parameters
    ----------
    opened : N5Store
        The container.
    path : str
        A dataset, or a group whose datasets share their axes.
    ds : Dataset
        What to write.
    region, append_dim : optional
        Where; one of them.
    by_one : bool, optional
        Whether nobody else writes to blocks that the region has a part of.

    Returns
    -------
    Plan
        Nothing has been written yet.

    Raises
    ------
    FileNotFoundError
        There is nothing at this path.
    N5UnrepresentableError
        The data do not fit to what is there (``kind="option"``).
    """
    there = _Existing.of(opened, path, append_dim)
    if append_dim is None:
        wanted = _slices(there.decoded, ds, region or {}, there.where)
        expected = there.decoded.isel(wanted)
    else:
        expected = _after(there.decoded, ds, append_dim, there.axes, there.where)
        wanted = {dim: slice(0, there.decoded.sizes.get(dim, 0)) for dim in ds.dims}
        first = there.decoded.sizes[append_dim]
        wanted[append_dim] = slice(first, first + ds.sizes[append_dim])
    check_fit(expected, ds, there.axes, there.where)
    _check_kept(there, ds, append_dim)
    alone = by_one or append_dim is not None  # one call writes all of a block
    names = _touched(ds, there, append_dim)
    changes = tuple(_Change.of(name, ds, there, wanted, by_one=alone) for name in names)
    return Plan(opened, changes, grows=append_dim is not None)


@dataclass(frozen=True)
class Plan:
    """Changes of datasets that have been checked."""

    opened: N5Store
    changes: tuple[_Change, ...]
    grows: bool

    def run(self, *, compute: bool = True) -> Delayed | None:
        """Make them; what dask computes later is given back with ``compute=False``."""
        arrays = [
            zarr.open_array(self.opened, path=c.placed.path, mode="r+", zarr_format=3)
            for c in self.changes
        ]
        shapes = [array.shape for array in arrays]
        try:
            if self.grows:
                for array, found in zip(arrays, self.changes, strict=True):
                    array.resize(tuple(part.stop for part in found.region))
            return _store(arrays, self.changes, compute=compute)
        except BaseException:
            for array, shape in zip(arrays, shapes, strict=True):
                if array.shape != shape:
                    array.resize(shape)
            raise


@dataclass(frozen=True, kw_only=True)
class _Existing:
    """What is to be changed: by name of the variable, and as it is opened."""

    where: str
    datasets: Mapping[str, Placed]
    axes: Mapping[str, tuple[Axis, int]]  # that metadata say
    decoded: xr.Dataset
    raw: xr.Dataset

    @classmethod
    def of(cls, opened: N5Store, path: str, append_dim: Hashable | None) -> _Existing:
        where = f"{opened}: {path or '/'}"
        node = opened.node(path)
        if node is None:
            message = f"{where}: expected what is to be changed, got nothing there"
            raise FileNotFoundError(message)
        if isinstance(node, DatasetView):
            placed = opened.ask(read_placed(opened.container.nodes, path, node))
            found = [placed, *placed.coordinates.values()]
            names = {p.name for p in found}
            sizes = placed.sizes
            axes = {d: (a, sizes[d]) for d, a in placed.axes.items() if d not in names}
            if append_dim in placed.coordinates:
                _check_alone(opened, placed, str(append_dim), where)
        else:
            layout = opened.ask(read_layout(opened.container.nodes, path, node))
            if not layout.agrees:
                message = "expected datasets that share their axes; change one by one, by group="
                raise N5UnrepresentableError(message, kind="option", where=where)
            found, axes = list(layout.datasets.values()), layout.axes
        as_is = {"mask_and_scale": False, "decode_times": False, "decode_coords": False}
        return cls(
            where=where,
            datasets={p.name: p for p in found},
            axes=axes,
            decoded=open_existing(opened, path),
            raw=open_existing(opened, path, **as_is),
        )


def _check_alone(opened: N5Store, placed: Placed, dim: str, where: str) -> None:
    """Refuse to lengthen a coordinate that other datasets need as it is."""
    group = placed.path.rpartition("/")[0]
    node = opened.node(group)
    beside = (
        opened.ask(read_layout(opened.container.nodes, group, node)).datasets.values()
        if isinstance(node, GroupAttributes)
        else ()
    )
    others = [p.name for p in beside if dim in p.coordinates and p.path != placed.path]
    if others:
        message = f"append_dim: {others} have the same coordinate {dim!r}: append to all, by group="
        raise N5UnrepresentableError(message, kind="option", where=where)


def _store(arrays: Sequence[Any], changes: Sequence[_Change], *, compute: bool) -> Delayed | None:
    lazy = []
    for array, found in zip(arrays, changes, strict=True):
        if found.variable.chunks is None:
            array[found.region] = found.variable.values
        else:
            lazy.append((found.variable.data, array, found.region))
    if not lazy:
        return None
    import dask.array  # noqa: PLC0415 - the data are dask's
    from dask.delayed import delayed  # noqa: PLC0415

    sources, targets, regions = (list(of) for of in zip(*lazy, strict=True))
    store: Any = dask.array.store  # without types
    done = store(sources, targets, regions=regions, lock=False, compute=compute)
    if compute:
        return None
    later: Delayed = delayed(list)(done if isinstance(done, list | tuple) else [done])
    return later


def _check_kept(there: _Existing, ds: xr.Dataset, append_dim: Hashable | None) -> None:
    """Refuse to lose what is given, or to mix what is not alike."""
    for name, coord in ds.coords.items():
        if coord.dims and name not in there.decoded.variables:
            message = f"{name!r}: there is no such coordinate; drop it, or write it with mode='a'"
            raise N5UnrepresentableError(message, kind="option", where=there.where)
    for name, array in ds.variables.items():
        known = there.decoded.variables.get(name)
        if known is None:
            continue
        units = known.attrs.get("units"), array.attrs.get("units")
        if None not in units and units[0] != units[1]:
            message = f"{name!r}: expected units {units[0]!r}, got {units[1]!r}; convert first"
            raise N5UnrepresentableError(message, kind="option", where=there.where)
        stays = append_dim is not None and append_dim not in array.dims and name not in ds.dims
        if stays and not known.equals(array):  # type: ignore[no-untyped-call]
            message = f"{name!r} has no {append_dim!r}, and is another one than in the container"
            raise N5UnrepresentableError(message, kind="option", where=there.where)


def _touched(ds: xr.Dataset, there: _Existing, append_dim: Hashable | None) -> list[Hashable]:
    """Name what is to be written; all that has the dimension has to grow."""
    missing = [name for name in ds.data_vars if str(name) not in there.datasets]
    if missing:
        message = f"expected variables that exist, got {missing} too"
        raise N5UnrepresentableError(message, kind="option", where=there.where)
    known = [name for name in ds.variables if str(name) in there.datasets]
    if append_dim is None:
        return [name for name in known if name not in ds.dims]  # which are as they are
    short = [n for n, p in there.datasets.items() if append_dim in p.dims and n not in known]
    if short:
        message = f"append_dim: expected all that has {append_dim!r}, {short} would be too short"
        raise N5UnrepresentableError(message, kind="option", where=there.where)
    return [name for name in known if append_dim in ds.variables[name].dims]


@dataclass(frozen=True)
class _Change:
    """A part of a dataset, as it is stored, and where it goes."""

    variable: xr.Variable
    placed: Placed
    region: tuple[slice, ...]

    @classmethod
    def of(
        cls,
        name: Hashable,
        ds: xr.Dataset,
        there: _Existing,
        wanted: Mapping[Hashable, slice],
        *,
        by_one: bool,
    ) -> _Change:
        """Encode a variable as the dataset is encoded."""
        placed, where = there.datasets[str(name)], there.where
        variable = ds.variables[name].to_base_variable()
        if set(variable.dims) != set(placed.dims):
            message = f"{name!r}: expected the dimensions {placed.dims}, got {variable.dims}"
            raise N5UnrepresentableError(message, kind="option", where=where)
        _check_kind(name, variable.dtype, there.decoded.variables[name].dtype, where)
        variable = variable.transpose(*placed.dims).copy(deep=False)
        known = there.decoded.variables[name].encoding
        variable.encoding = {key: value for key, value in known.items() if key in CF_ENCODING}
        if there.decoded.variables[name].dtype == there.raw.variables[name].dtype:
            variable.encoding.pop("dtype", None)  # it would round numbers and cut text
        stored = there.raw.variables[name]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of dates in other units, which is checked here
                encoded = xr.conventions.encode_cf_variable(variable, name=name)
                if variable.dtype.kind in "mM":
                    _check_times(variable, encoded, stored)
        except (ValueError, TypeError, OverflowError) as err:
            message = (
                f"{name!r}: expected what can be kept as {stored.dtype} "
                f"{stored.attrs.get('units', '')!r}, as the container has it: {err}"
            )
            raise N5UnrepresentableError(message, kind="option", where=where) from err
        region = tuple(wanted[dim] for dim in placed.dims)
        if encoded.chunks is not None and not by_one:
            _check_whole_blocks(name, placed, region, where)
        if variable.dtype.kind not in "mM":
            encoded = _checked(encoded, variable, stored, f"{where}: {name}")
        block = placed.view.chunk_shape
        encoded = in_whole_blocks(encoded, block, [part.start for part in region])
        return cls(encoded, placed, region)


def _checked(
    encoded: xr.Variable, given: xr.Variable, stored: xr.Variable, where: str
) -> xr.Variable:
    """Bring elements to the type that is stored, and refuse those that would become others."""
    how = {key: stored.attrs.get(key) for key in ("scale_factor", "add_offset", "_FillValue")}
    if encoded.dtype == stored.dtype and not any(value is not None for value in how.values()):
        return encoded
    if encoded.dtype.kind in "OUTS":
        if not (stored.dtype.kind in "OT" or np.can_cast(encoded.dtype, stored.dtype, "safe")):
            raise N5UnrepresentableError(
                f"expected elements that are {stored.dtype}, got {encoded.dtype}: convert them",
                kind="option",
                where=where,
            )
        return encoded
    exact = partial(_exact, dtype=stored.dtype, attributes=stored.attrs, where=where)
    if encoded.chunks is None:
        data: Any = exact(encoded.values, given.values)
    else:
        import dask.array  # noqa: PLC0415 - the data are dask's

        map_blocks: Any = dask.array.map_blocks  # without types
        data = map_blocks(exact, encoded.data, given.data, dtype=stored.dtype)
    return xr.Variable(encoded.dims, data, encoded.attrs, encoded.encoding)


def _exact(
    encoded: np.ndarray[Any, Any],
    given: np.ndarray[Any, Any],
    *,
    dtype: np.dtype[Any],
    attributes: Mapping[str, Any],
    where: str,
) -> np.ndarray[Any, Any]:
    """Cast, and see whether what is read again is what was given, or rounded as packing does."""
    with np.errstate(all="ignore"):
        kept = encoded.astype(dtype)
        dims = [f"d{i}" for i in range(kept.ndim)]
        read = xr.conventions.decode_cf_variable(where, xr.Variable(dims, kept, attributes)).values
        if given.dtype.kind == "b" or read.dtype.kind == "b":
            same = np.array_equal(read.astype("u1"), given.astype("u1"))
        elif attributes.get("scale_factor") is None and attributes.get("add_offset") is None:
            same = np.array_equal(read, given, equal_nan=given.dtype.kind in "fc")
            wide = given.dtype.kind in "iu" and read.dtype.kind == "f"  # compared as floats
            same = same and (not wide or np.array_equal(read.astype(given.dtype), given))
        else:
            half = 0.500001 * abs(float(attributes.get("scale_factor") or 1))
            same = np.array_equal(np.isnan(read), np.isnan(given)) and bool(
                np.all((np.abs(read - given) <= half) | np.isnan(given))
            )
    if not same:
        message = f"expected elements that can be kept as {dtype}, got others: convert them first"
        raise N5UnrepresentableError(message, kind="option", where=where)
    return kept


def _check_kind(name: Hashable, given: np.dtype[Any], stored: np.dtype[Any], where: str) -> None:
    """Refuse text for numbers, numbers for dates and so on, before anything is encoded."""
    kinds = ("biufc", "OUT", "S", "M", "m", "V")
    if next(k for k in kinds if given.kind in k) != next(k for k in kinds if stored.kind in k):
        message = f"{name!r}: expected elements that are {stored}, got {given}"
        raise N5UnrepresentableError(message, kind="option", where=where)


def _check_times(times: xr.Variable, encoded: xr.Variable, stored: xr.Variable) -> None:
    """Refuse times that the units and numbers of a dataset cannot say."""
    kept = xr.Variable(encoded.dims, encoded.values.astype(stored.dtype), stored.attrs)
    found = xr.conventions.decode_cf_variable("times", kept, decode_timedelta=True)
    if not np.array_equal(found.values, times.values, equal_nan=True):
        message = "other times would be read"
        raise ValueError(message)


def _check_whole_blocks(
    name: Hashable, placed: Placed, region: tuple[slice, ...], where: str
) -> None:
    """Refuse a part that shares blocks with what another process may be writing."""
    ends = zip(placed.dims, region, placed.view.chunk_shape, placed.view.shape, strict=True)
    for dim, part, block, extent in ends:
        if part.start % block or (part.stop % block and part.stop != extent):
            message = (
                f"{name!r}: expected a region of whole blocks of {block} along {dim!r}, as other "
                f"processes may write beside it, got {part.start} to {part.stop}; mode='a' writes "
                "it where none does"
            )
            raise N5UnrepresentableError(message, kind="option", where=where)


def in_whole_blocks(
    variable: xr.Variable, block: Sequence[int], start: Sequence[int]
) -> xr.Variable:
    """Put dask's chunks together so that no block belongs to two of them."""
    if variable.chunks is None:
        return variable
    aligned = {}
    for dim, chunks, b, first in zip(variable.dims, variable.chunks, block, start, strict=True):
        ends = first + np.cumsum(chunks)[:-1]
        if (ends % b).any():
            step = max(1, round(max(chunks) / b)) * b
            stop = first + sum(chunks)
            edges = [first, *range((first // step + 1) * step, stop, step), stop]
            aligned[dim] = tuple(np.diff(edges).tolist())
    return variable.chunk(aligned) if aligned else variable


def _slices(
    existing: xr.Dataset, ds: xr.Dataset, region: Region, where: str
) -> dict[Hashable, slice]:
    """Say which part is meant of every dimension that is named."""
    named: dict[Any, slice | str] = dict.fromkeys(ds.dims, slice(None))
    named |= dict.fromkeys(ds.dims, "auto") if isinstance(region, str) else region
    found: dict[Hashable, slice] = {}
    for dim, wanted in named.items():
        if dim not in ds.dims or dim not in existing.dims:
            message = f"region: expected dimensions of data and container, got {dim!r}"
            raise N5UnrepresentableError(message, kind="option", where=where)
        both = dim in ds.indexes and dim in existing.indexes
        if isinstance(wanted, str) and both:
            found[dim] = _run(existing.indexes[dim], ds.indexes[dim], dim, where)
            continue
        if isinstance(wanted, str) and existing.sizes[dim] != ds.sizes[dim]:
            message = f"region: {dim!r}: 'auto' needs a coordinate in the data and in the container"
            raise N5UnrepresentableError(message, kind="option", where=where)
        start, stop, step = (slice(None) if isinstance(wanted, str) else wanted).indices(
            existing.sizes[dim]
        )
        if step != 1 or stop - start != ds.sizes[dim]:
            message = (
                f"region: {dim!r}: expected a part of {ds.sizes[dim]} elements, got {start} to "
                f"{stop} in steps of {step}"
            )
            raise N5UnrepresentableError(message, kind="option", where=where)
        found[dim] = slice(start, stop)
    return found


def _run(there: Any, wanted: Any, dim: Hashable, where: str) -> slice:  # noqa: ANN401 - of pandas
    """Find a run of positions in an index."""
    places = there.get_indexer(wanted)
    if not len(places) or (places < 0).any() or (np.diff(places) != 1).any():
        message = (
            f"region: {dim!r}: expected a run of the positions in the container, got "
            f"{_few(np.asarray(wanted))}"
        )
        raise N5UnrepresentableError(message, kind="option", where=where)
    return slice(int(places[0]), int(places[-1]) + 1)


def _after(
    existing: xr.Dataset,
    ds: xr.Dataset,
    dim: Hashable,
    axes: Mapping[str, tuple[Axis, int]],
    where: str,
) -> xr.Dataset:
    """Say what the positions of appended data have to be."""
    if dim not in existing.dims or dim not in ds.dims:
        message = f"append_dim: expected a dimension of both, got {dim!r}; there are " + ", ".join(
            map(repr, existing.dims)
        )
        raise N5UnrepresentableError(message, kind="option", where=where)
    expected = existing.drop_dims([dim])
    if str(dim) in axes:
        axis, size = axes[str(dim)]
        more = coordinate(dim, axis, size + ds.sizes[dim])
        expected = expected.assign_coords({dim: more[size:]})
    return expected


def check_fit(
    expected: xr.Dataset, ds: xr.Dataset, axes: Mapping[str, tuple[Axis, int]], where: str
) -> None:
    """Refuse data whose positions are not those of the place where they are put."""
    for dim in ds.dims:
        if dim in expected.dims and expected.sizes[dim] != ds.sizes[dim]:
            message = f"{dim!r}: expected {expected.sizes[dim]} elements, got {ds.sizes[dim]}"
            raise N5UnrepresentableError(message, kind="option", where=where)
        if dim not in expected.coords or dim not in ds.coords:
            continue
        wanted, got = expected[dim].values, ds[dim].values
        if wanted.dtype.kind == "f" and got.dtype.kind in "iuf":
            step = axes[str(dim)][0].scale if str(dim) in axes else 0.0
            step = wanted[1] - wanted[0] if len(wanted) > 1 else step
            same = np.allclose(wanted, got, rtol=0, atol=1e-6 * abs(step), equal_nan=True)
        else:
            same = np.array_equal(wanted, got)
        units = expected[dim].attrs.get("units"), ds[dim].attrs.get("units")
        if not same or (None not in units and units[0] != units[1]):
            message = (
                f"{dim!r}: expected the positions {_few(wanted)} {units[0] or ''}, as in the "
                f"container, got {_few(got)} {units[1] or ''}"
            )
            raise N5UnrepresentableError(message, kind="option", where=where)


def _few(values: np.ndarray[Any, Any]) -> str:
    shown = ", ".join(map(str, values[:3]))
    return f"{shown}, ..." if len(values) > 3 else shown
