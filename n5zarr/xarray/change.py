"""Regions of datasets that exist, and appending to them.

xarray's ``to_zarr`` needs names of dimensions, which datasets of other programs lack, and lengthens
an array before it looks at what is to be appended. Here all is checked before anything changes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr
import zarr

from n5zarr._zarr_compat import sync
from n5zarr.errors import N5UnrepresentableError
from n5zarr.geometry import read_layout, read_placed
from n5zarr.translate.presentation import Presentation
from n5zarr.xarray.backend import coordinate

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from dask.delayed import Delayed

    from n5zarr.conventions.model import Axis
    from n5zarr.geometry import Placed
    from n5zarr.store import N5Store

__all__ = ["CF_ENCODING", "change", "check_fit", "in_whole_blocks", "open_existing"]

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


def change(  # noqa: PLR0913 - what of to_zarr's options is about existing arrays
    opened: N5Store,
    path: str,
    ds: xr.Dataset,
    *,
    region: Region | None = None,
    append_dim: Hashable | None = None,
    by_one: bool = False,
    compute: bool = True,
) -> Delayed | None:
    """Write a part of datasets that exist, or make them longer.

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
    compute : bool, optional
        Whether dask writes now.

    Raises
    ------
    FileNotFoundError
        There is nothing at this path.
    N5UnrepresentableError
        The data do not fit to what is there, which stays as it is (``kind="option"``).
    """
    there = _Existing.of(opened, path)
    if append_dim is None:
        wanted = _slices(there.decoded, ds, region or {}, there.where)
        expected = there.decoded.isel(wanted)
    else:
        expected = _after(there.decoded, ds, append_dim, there.axes, there.where)
        wanted = {dim: slice(0, there.decoded.sizes.get(dim, 0)) for dim in ds.dims}
        first = there.decoded.sizes[append_dim]
        wanted[append_dim] = slice(first, first + ds.sizes[append_dim])
    check_fit(expected, ds, there.axes, there.where)
    alone = by_one or append_dim is not None  # one call writes all of a block
    names = _touched(ds, there.datasets, append_dim, there.where)
    changes = [_Change.of(name, ds, there, wanted, by_one=alone) for name in names]
    arrays = [
        zarr.open_array(opened, path=c.placed.path, mode="r+", zarr_format=3) for c in changes
    ]
    for array, found in zip(arrays, changes, strict=True):
        found.check_type(array.dtype, there.where)
    shapes = [array.shape for array in arrays]
    try:
        if append_dim is not None:
            for array, found in zip(arrays, changes, strict=True):
                array.resize(tuple(part.stop for part in found.region))
        return _store(arrays, changes, compute=compute)
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
    def of(cls, opened: N5Store, path: str) -> _Existing:
        where = f"{opened}: {path or '/'}"
        node = sync(opened.read_node(path))
        if node is None:
            message = f"{where}: expected what is to be changed, got nothing there"
            raise FileNotFoundError(message)
        if isinstance(node, Presentation):
            placed = sync(read_placed(opened, path, node))
            found = [placed, *placed.coordinates.values()]
            names = {p.name for p in found}
            sizes = placed.sizes
            axes = {d: (a, sizes[d]) for d, a in placed.axes.items() if d not in names}
        else:
            layout = sync(read_layout(opened, path, node))
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

    sources, targets, regions = (list(of) for of in zip(*lazy, strict=True))
    store: Any = dask.array.store  # without types
    done = store(sources, targets, regions=regions, lock=False, compute=compute)
    return None if compute else done


def _touched(
    ds: xr.Dataset, datasets: Mapping[str, Placed], append_dim: Hashable | None, where: str
) -> list[Hashable]:
    """Name what is to be written; all that has the dimension has to grow."""
    missing = [name for name in ds.data_vars if str(name) not in datasets]
    if missing:
        message = f"expected variables that exist, got {missing} too"
        raise N5UnrepresentableError(message, kind="option", where=where)
    if append_dim is None:
        return [name for name, array in ds.data_vars.items() if array.dims]
    short = [n for n, p in datasets.items() if append_dim in p.dims and n not in ds.variables]
    if short:
        message = f"append_dim: expected all that has {append_dim!r}, {short} would be too short"
        raise N5UnrepresentableError(message, kind="option", where=where)
    return [n for n, v in ds.variables.items() if append_dim in v.dims and str(n) in datasets]


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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of dates in other units, which is checked here
            encoded = xr.conventions.encode_cf_variable(variable, name=name)
        if variable.dtype.kind in "mM":
            _check_times(name, variable, encoded, there.raw.variables[name], where)
        region = tuple(wanted[dim] for dim in placed.dims)
        block = placed.shown.chunk_shape
        if encoded.chunks is not None and not by_one:
            _check_whole_blocks(name, placed, region, where)
        encoded = in_whole_blocks(encoded, block, [part.start for part in region])
        return cls(encoded, placed, region)

    def check_type(self, dtype: np.dtype[Any], where: str) -> None:
        """Refuse elements that would become others."""
        given = self.variable.dtype
        if given == dtype or (given.kind in "OUT" and dtype.kind in "OT"):
            return
        rule: Any = "safe" if dtype.kind in "US" else "same_kind"
        fits = np.can_cast(given, dtype, rule)
        if not fits and given.kind in "biuf" and self.variable.chunks is None:
            values = self.variable.values
            with np.errstate(invalid="ignore"):
                fits = bool(np.array_equal(values.astype(dtype), values))
        if not fits:
            message = f"expected elements that are {dtype}, got {given}: convert them first"
            raise N5UnrepresentableError(
                message, kind="option", where=f"{where}: {self.placed.name}"
            )


def _check_kind(name: Hashable, given: np.dtype[Any], stored: np.dtype[Any], where: str) -> None:
    """Refuse text for numbers, numbers for dates and so on, before anything is encoded."""
    kinds = ("biufc", "OUT", "S", "M", "m", "V")
    if next(k for k in kinds if given.kind in k) != next(k for k in kinds if stored.kind in k):
        message = f"{name!r}: expected elements that are {stored}, got {given}"
        raise N5UnrepresentableError(message, kind="option", where=where)


def _check_times(
    name: Hashable, times: xr.Variable, encoded: xr.Variable, stored: xr.Variable, where: str
) -> None:
    """Refuse times that the units and numbers of a dataset cannot say."""
    kept = xr.Variable(encoded.dims, encoded.values.astype(stored.dtype), stored.attrs)
    found = xr.conventions.decode_cf_variable(name, kept, decode_timedelta=True)
    if not np.array_equal(found.values, times.values, equal_nan=True):
        units = stored.attrs.get("units")
        message = f"{name!r}: expected times that are {stored.dtype} {units!r}, as is stored"
        raise N5UnrepresentableError(message, kind="option", where=where)


def _check_whole_blocks(
    name: Hashable, placed: Placed, region: tuple[slice, ...], where: str
) -> None:
    """Refuse a part that shares blocks with what another process may be writing."""
    ends = zip(placed.dims, region, placed.shown.chunk_shape, placed.shown.shape, strict=True)
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
