"""Write regions of existing datasets, and append to them.

xarray's ``to_zarr`` needs names of dimensions, which datasets of other programs lack, casts to the
stored type without a check, and leaves arrays longer if an append fails. Here everything is checked
before anything changes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import xarray as xr
import zarr
from zarr.types import AnyArray

from n5zarr.container.axes import Placed, read_layout, read_placed
from n5zarr.container.options import require
from n5zarr.conventions.model import Axis
from n5zarr.format.attributes import GroupAttributes
from n5zarr.storage.ending import ending
from n5zarr.store.n5_store import N5Store
from n5zarr.xarray.backend import Decoding
from n5zarr.xarray.encode_variables import encode_existing, in_whole_blocks
from n5zarr.xarray.positions import Region, check_positions, expected_after, find_region
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from dask.delayed import Delayed


_AS_STORED: Decoding = {"mask_and_scale": False, "decode_times": False, "decode_coords": False}


def open_existing(store: N5Store, path: str, **decoding: Unpack[Decoding]) -> xr.Dataset:
    """Open a dataset or group of the container to write to."""
    # xarray's type omits stores, which only the engine knows
    return xr.open_dataset(store, engine="n5", group=path, **decoding)  # type: ignore[arg-type]


def plan_update(
    store: N5Store,
    path: str,
    ds: xr.Dataset,
    *,
    region: Region | None = None,
    append_dim: Hashable | None = None,
    is_only_writer: bool = False,
) -> UpdatePlan:
    """Check a write to a part of existing datasets, or an append to them.

    Parameters
    ----------
    store : N5Store
        The container.
    path : str
        A dataset, or a group whose datasets share their axes.
    ds : Dataset
        The data to write.
    region, append_dim : optional
        The place to write to; one of them.
    is_only_writer : bool, optional
        Whether no other process writes to blocks that the region shares.

    Returns
    -------
    UpdatePlan
        The checked changes; nothing has been written yet.

    Raises
    ------
    FileNotFoundError
        No node exists at this path.
    N5UnrepresentableError
        The data do not fit the datasets (``kind="option"``).
    """
    existing = _Existing.read(store, path, append_dim)
    if append_dim is None:
        slices = find_region(existing.decoded, ds, region or {}, existing.where)
        expected = existing.decoded.isel(slices)
    else:
        expected = expected_after(existing.decoded, ds, append_dim, existing.axes, existing.where)
        slices = {dim: slice(0, existing.decoded.sizes.get(dim, 0)) for dim in ds.dims}
        first = existing.decoded.sizes[append_dim]
        slices[append_dim] = slice(first, first + ds.sizes[append_dim])
    check_positions(expected, ds, existing.axes, existing.where)
    _check_other_variables(existing, ds, append_dim)
    grows = append_dim is not None
    changes = tuple(
        # appending: one call writes whole blocks
        _Change.encode(name, ds, existing, slices, is_only_writer=is_only_writer or grows)
        for name in _names_to_write(ds, existing, append_dim)
    )
    return UpdatePlan(store, changes, grows=grows)


@dataclass(frozen=True)
class UpdatePlan:
    """Hold checked changes of existing datasets."""

    store: N5Store
    changes: tuple[_Change, ...]
    grows: bool

    def run(self, *, compute: bool = True) -> Delayed | None:
        """Write; with ``compute=False``, return an object that writes."""
        arrays = [
            zarr.open_array(self.store, path=c.placed.path, mode="r+", zarr_format=3)
            for c in self.changes
        ]
        shapes = [array.shape for array in arrays]
        try:
            if self.grows:
                for array, change in zip(arrays, self.changes, strict=True):
                    array.resize(tuple(part.stop for part in change.region))
            with ending() as self.store.container.memory.call:
                return _store(arrays, self.changes, compute=compute)
        except BaseException:
            _restore(arrays, shapes)
            raise


def _restore(arrays: Sequence[AnyArray], shapes: Sequence[tuple[int, ...]]) -> None:
    """Undo the growth of arrays, whatever interrupts this thread."""
    try:
        for array, shape in zip(arrays, shapes, strict=True):
            if array.shape != shape:
                array.resize(shape)
    except KeyboardInterrupt:
        _restore(arrays, shapes)
        raise


@dataclass(frozen=True, kw_only=True)
class _Existing:
    """Hold the datasets to change.

    Parameters
    ----------
    where : str
        The container and the path, for messages.
    datasets : mapping of str to Placed
        By name of the variable.
    axes : mapping of str to Axis and int
        Axes whose positions are computed from metadata, and their sizes.
    decoded, stored : Dataset
        As xarray decodes them, and with their stored elements.
    """

    where: str
    datasets: Mapping[str, Placed]
    axes: Mapping[str, tuple[Axis, int]]
    decoded: xr.Dataset
    stored: xr.Dataset

    @classmethod
    def read(cls, store: N5Store, path: str, append_dim: Hashable | None) -> _Existing:
        where = f"{store}: {path or '/'}"
        node = store.node(path)
        if node is None:
            raise FileNotFoundError(
                f"{where}: expected the dataset or group to change, but it does not exist"
            )
        if isinstance(node, DatasetView):
            placed = store.run(read_placed(store.container.nodes, path, node))
            datasets = [placed, *placed.coordinates.values()]
            names, sizes = {p.name for p in datasets}, placed.sizes
            axes = {d: (a, sizes[d]) for d, a in placed.axes.items() if d not in names}
            if append_dim in placed.coordinates:
                _check_not_shared(store, placed, str(append_dim), where)
        else:
            layout = store.run(read_layout(store.container.nodes, path, node))
            require(
                layout.agrees,
                "expected datasets that share their axes; change each alone with group=",
                where,
            )
            datasets, axes = list(layout.datasets.values()), layout.axes
        return cls(
            where=where,
            datasets={p.name: p for p in datasets},
            axes=axes,
            decoded=open_existing(store, path),
            stored=open_existing(store, path, **_AS_STORED),
        )


def _check_not_shared(store: N5Store, placed: Placed, dim: str, where: str) -> None:
    """Raise if other datasets share the coordinate to append to."""
    group = placed.path.rpartition("/")[0]
    node = store.node(group)
    if isinstance(node, GroupAttributes):
        beside = store.run(read_layout(store.container.nodes, group, node)).datasets.values()
        others = [p.name for p in beside if dim in p.coordinates and p.path != placed.path]
        require(
            not others,
            f"append_dim: {others} share the coordinate {dim!r}: append to all with group=",
            where,
        )


def join_delayed(parts: Iterable[Delayed | None]) -> Delayed | None:
    """Return an object that computes all parts that are not None; None if there are none."""
    remaining = [part for part in parts if part is not None]
    if len(remaining) < 2:
        return remaining[0] if remaining else None
    from dask.delayed import delayed  # noqa: PLC0415 - dask is an optional dependency

    joined: Delayed = delayed(list)(remaining)
    return joined


def _store(
    arrays: Sequence[AnyArray], changes: Sequence[_Change], *, compute: bool
) -> Delayed | None:
    """Write arrays of numpy; write those of dask, or return an object that does."""
    lazy = []
    for array, change in zip(arrays, changes, strict=True):
        if change.variable.chunks is None:
            array[change.region] = change.variable.values
        else:
            lazy.append((change.variable.data, array, change.region))
    if not lazy:
        return None
    import dask.array as da  # noqa: PLC0415 - the data are dask's

    sources, targets, regions = (list(column) for column in zip(*lazy, strict=True))
    stored = da.store(sources, targets, regions=regions, lock=False, compute=compute)
    if compute:
        return None
    return join_delayed(stored if isinstance(stored, list | tuple) else [stored])


def _check_other_variables(
    existing: _Existing, ds: xr.Dataset, append_dim: Hashable | None
) -> None:
    """Reject unknown coordinates, other units, and changes of variables that are not written."""
    for name, variable in ds.variables.items():
        known = existing.decoded.variables.get(name)
        message = ""
        if known is None and name in ds.coords and variable.dims:
            message = f"{name!r}: the container has no such coordinate; drop it, or use mode='a'"
        elif known is not None:
            units = known.attrs.get("units"), variable.attrs.get("units")
            is_written = append_dim is None or append_dim in variable.dims or name in ds.dims
            if None not in units and units[0] != units[1]:
                message = f"{name!r}: expected units {units[0]!r}, got {units[1]!r}; convert first"
            elif not is_written and not known.equals(variable):  # type: ignore[no-untyped-call]
                message = f"{name!r} has no {append_dim!r}: expected its values, got others"
        require(not message, message, existing.where)


def _names_to_write(
    ds: xr.Dataset, existing: _Existing, append_dim: Hashable | None
) -> list[Hashable]:
    """Return the variables to write; must include every dataset with the appended dimension."""
    known = [name for name in ds.variables if str(name) in existing.datasets]
    missing = [name for name in ds.data_vars if name not in known]
    short = [n for n, p in existing.datasets.items() if append_dim in p.dims and n not in known]
    require(not missing, f"expected variables that exist, also got {missing}", existing.where)
    require(
        not short,
        f"append_dim: expected all variables with {append_dim!r}, got none for {short}",
        existing.where,
    )
    if append_dim is None:
        return [name for name in known if name not in ds.dims]  # positions are checked already
    return [name for name in known if append_dim in ds.variables[name].dims]


@dataclass(frozen=True)
class _Change:
    """Hold an encoded part of a dataset, and its region."""

    variable: xr.Variable
    placed: Placed
    region: tuple[slice, ...]

    @classmethod
    def encode(
        cls,
        name: Hashable,
        ds: xr.Dataset,
        existing: _Existing,
        slices: Mapping[Hashable, slice],
        *,
        is_only_writer: bool,
    ) -> _Change:
        placed, where = existing.datasets[str(name)], existing.where
        variable = ds.variables[name].to_base_variable()
        require(
            set(variable.dims) == set(placed.dims),
            f"{name!r}: expected the dimensions {placed.dims}, got {variable.dims}",
            where,
        )
        encoded = encode_existing(
            name,
            variable.transpose(*placed.dims),
            existing.decoded.variables[name],
            existing.stored.variables[name],
            where,
        )
        region = tuple(slices[dim] for dim in placed.dims)
        block = placed.view.chunk_shape
        ends = zip(placed.dims, region, block, placed.view.shape, strict=True)
        for dim, part, size, extent in () if is_only_writer or encoded.chunks is None else ends:
            require(
                not part.start % size and (not part.stop % size or part.stop == extent),
                f"{name!r}: expected a region of whole blocks of {size} along {dim!r}, as other "
                f"processes may write beside it, got {part.start} to {part.stop}; use mode='a' if "
                "no other process writes",
                where,
            )
        start = [part.start for part in region]
        return cls(in_whole_blocks(encoded, block, start), placed, region)
