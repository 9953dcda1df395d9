"""``to_n5``: a Dataset, DataArray or DataTree as N5.

xarray's own ``to_zarr`` does the writing, on an :class:`~n5zarr.N5Store`. What is decided here is
what becomes of coordinates: evenly spaced ones are written as metadata of a convention, after
trying that they come back bit for bit; the others as one-dimensional datasets.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr
import zarr
from zarr.errors import ContainsGroupError

from n5zarr._zarr_compat import sync
from n5zarr.containers import open_container
from n5zarr.conventions.find import WRITTEN, Written, describe_axes, find_geometry
from n5zarr.conventions.model import Axis, Node, axes_of
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.compression import parse_compression
from n5zarr.format.data_type import DataType
from n5zarr.format.grid import automatic_block_size
from n5zarr.format.path import join
from n5zarr.geometry import read_layout, read_placed
from n5zarr.translate.presentation import Presentation, zarr_compressors
from n5zarr.xarray.backend import coordinate
from n5zarr.zarr_codecs import N5BlockCodec

if TYPE_CHECKING:
    import os
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from dask.delayed import Delayed
    from zarr.abc.store import Store

    from n5zarr.format.compression import Compression
    from n5zarr.format.lenient_json import JSON
    from n5zarr.store import N5Store

__all__ = ["to_n5"]

type Convention = Literal["cosem", "n5viewer", "neuroglancer", "ngff"]
type Region = Mapping[str, slice | Literal["auto"]] | Literal["auto"]

_NATIVE = {np.dtype(t.value) for t in DataType if t.is_numeric}
# what decoding leaves there and encoding needs
_CF = (
    "units", "calendar", "dtype", "scale_factor", "add_offset", "_FillValue", "missing_value",
    "coordinates", "grid_mapping", "_Unsigned",
)  # fmt: skip


def to_n5(  # noqa: PLR0913 - what to_zarr takes, and what N5 needs
    data: xr.Dataset | xr.DataArray | xr.DataTree,
    store: str | os.PathLike[str] | Store,
    *,
    group: str = "",
    convention: Convention = "cosem",
    compression: Mapping[str, JSON] | None = MappingProxyType({"type": "gzip"}),
    chunks: Mapping[Any, int] | Literal["auto"] | None = None,
    compute: bool = True,
    mode: Literal["w", "w-", "a", "r+"] | None = None,
    region: Region | None = None,
    append_dim: Hashable | None = None,
    storage_options: dict[str, Any] | None = None,
) -> Delayed | None:
    """Write to N5, so that ``xr.open_dataset(engine="n5")`` gives the same back.

    A DataArray, or a Dataset of one variable with the name of ``group``'s last element, becomes the
    dataset ``group`` itself if all its coordinates can be written as metadata: so levels of a
    pyramid stand where other tools look for them.

    Parameters
    ----------
    data : Dataset, DataArray or DataTree
        Dimensions in C order, ``z, y, x``.
    store : path, URL or zarr store
        A container, which is made if it does not exist, or a place in one.
    group : str, optional
        Where to write it, below ``store``.
    convention : {"cosem", "n5viewer", "neuroglancer", "ngff"}, optional
        In whose terms evenly spaced coordinates are written. What it has no words for, such as
        different units in ``n5viewer``, is written as one-dimensional datasets instead.
    compression : mapping or None, optional
        As in ``attributes.json``. None is raw.
    chunks : mapping of dimension to int, "auto" or None, optional
        Extent of a block in elements. Dimensions left out, and ``"auto"``: about a million elements
        a block. None: as the data were kept where they came from, else ``"auto"``.
    compute : bool, optional
        Whether to write the data now; else metadata are written, and a dask object is returned.
    mode : {"w", "w-", "a", "r+"}, optional
        As in :meth:`xarray.Dataset.to_zarr`: ``"w"`` removes what is there, ``"w-"`` fails if there
        is something, which is the default, ``"a"`` adds and overwrites variables, ``"r+"`` changes
        elements only, which is the default with ``region``.
    region : mapping of dimension to slice or "auto", or "auto", optional
        Which part of existing datasets to write. ``"auto"`` finds it from the coordinates.
    append_dim : str, optional
        The dimension along which existing datasets grow.
    storage_options : dict, optional
        For fsspec, with a URL.

    Returns
    -------
    dask.delayed.Delayed or None
        What remains to be done with ``compute=False``.

    Raises
    ------
    zarr.errors.ContainsGroupError
        There is something, and the mode is ``"w-"``.
    N5UnrepresentableError
        N5 cannot hold the data, or its positions do not fit those of what it is added to
        (``kind="option"``).

    Notes
    -----
    Arrays have fill value 0, and every block that is not all zero is written, so that other N5
    tools see the same. dask's chunks are put together into whole blocks; a region of several dask
    tasks has to begin and end on blocks.

    Examples
    --------
    >>> import pathlib, tempfile, n5zarr, xarray as xr
    >>> level = xr.open_dataset(n5zarr.sample_path(), engine="n5", group="em/s1")
    >>> out = pathlib.Path(tempfile.mkdtemp(), "out.n5")
    >>> n5zarr.to_n5(level.n5.crop(x=(100, 300)), out, group="em/s1")
    >>> xr.open_dataset(out, engine="n5", group="em/s1")["x"].values[:3]
    array([100., 116., 132.])
    """
    _check_option("convention", convention, WRITTEN)
    _check_option("mode", mode, (None, "w", "w-", "a", "r+"))
    if region is not None and append_dim is not None:
        message = "append_dim: expected either a region or a dimension to append along, got both"
        raise N5UnrepresentableError(message, kind="option")
    opened, path = open_container(store, group, storage_options=storage_options)
    if opened.axis_order != "C" or opened.zarr_format != 3:
        message = f"store: expected one that shows Zarr v3 in C order, got {opened!r}"
        raise N5UnrepresentableError(message, kind="option")
    how = parse_compression({"type": "raw"} if compression is None else compression)
    writer = _Writer(opened=opened, convention=convention, how=how, chunks=chunks, compute=compute)
    datasets = _datasets(data, path)
    if region is not None or append_dim is not None:
        changed = [writer.change(at, ds, region, append_dim, mode) for at, ds in datasets.items()]
        return _all(changed)
    _prepare(opened, path, mode or "w-")
    added = [writer.add(at, ds, mode or "w-") for at, ds in datasets.items()]
    return _all(added)


def _check_option(name: str, value: object, known: tuple[object, ...]) -> None:
    if value not in known:
        message = f"{name}: expected one of {', '.join(map(repr, known))}, got {value!r}"
        raise N5UnrepresentableError(message, kind="option")


def _datasets(data: xr.Dataset | xr.DataArray | xr.DataTree, path: str) -> dict[str, xr.Dataset]:
    """Name the groups to be written, and what goes into each."""
    if isinstance(data, xr.DataTree):
        nodes = {node.path.strip("/"): node for node in data.subtree}
        return {join(path, at): node.to_dataset() for at, node in nodes.items()}
    if isinstance(data, xr.DataArray):
        name = data.name if data.name is not None else path.rpartition("/")[2] or "data"
        return {path: data.to_dataset(name=name)}
    return {path: data}


def _prepare(opened: N5Store, path: str, mode: str) -> None:
    """Make room for what is to be written."""
    if mode == "w":
        sync(opened.delete_dir(path))
    elif mode == "w-" and sync(opened.read_node(path)) is not None:
        message = (
            f"{opened}: {path or '/'}: there is something already; mode='w' removes it, "
            "mode='a' adds to it"
        )
        raise ContainsGroupError(message)


def _all(parts: Sequence[Delayed | None]) -> Delayed | None:
    delayed = [part for part in parts if part is not None]
    if len(delayed) <= 1:
        return delayed[0] if delayed else None
    from dask.delayed import delayed as later  # noqa: PLC0415 - something is, so dask is there

    found: Delayed = later(list)(delayed)
    return found


@dataclass(frozen=True, kw_only=True)
class _Writer:
    """Where to write, and how."""

    opened: N5Store
    convention: str
    how: Compression
    chunks: Mapping[Any, int] | Literal["auto"] | None
    compute: bool

    # ------------------------------------------------------------------ new datasets

    def add(self, path: str, ds: xr.Dataset, mode: str) -> Delayed | None:
        """Write a Dataset with all that belongs to it."""
        above, _, last = path.rpartition("/")
        group, described = path, ds
        if last and [str(name) for name in ds.data_vars] == [last] and not ds.attrs:
            described = self._described(above, ds)
            if not described.coords:  # so that levels of a pyramid are beside each other
                group = above
        if group == path:
            described = self._described(path, ds)
        if mode in ("a", "r+"):
            self._check_overwritten(group, ds)
        return self._write(group, described, mode="r+" if mode == "r+" else "a")

    def _check_overwritten(self, group: str, ds: xr.Dataset) -> None:
        """Refuse to put data where the attributes that are there say other positions."""
        for name in ds.data_vars:
            path = join(group, str(name))
            if isinstance(sync(self.opened.read_node(path)), Presentation):
                existing = xr.open_dataset(self.opened, engine="n5", group=path)  # type: ignore[arg-type]
                _check_fit(existing, ds[[name]], None, f"{self.opened}: {path}")

    def _described(self, group: str, ds: xr.Dataset) -> xr.Dataset:
        """Put coordinates into the attributes of the variables, as far as that can be undone."""
        attributes = {**self._group_attributes(group), **ds.attrs}
        written: dict[Hashable, dict[str, JSON]] = {}
        said: dict[Hashable, bool] = {}  # of each dimension: in the attributes of all variables
        for name, array in ds.data_vars.items():
            found = _in_words(self.convention, ds, array, join(group, str(name)), attributes)
            for dim in array.dims:
                said[dim] = said.get(dim, True) and dim in found.dims
            if found.words is None:
                continue
            written[name] = found.words.attributes
            if found.words.image is not None and found.words.level is not None:
                levels = _with_level(attributes.get("multiscales"), group, str(name), found.words)
                if levels is not None:
                    attributes["multiscales"] = levels
        variables = {name: self._kept(variable) for name, variable in ds.variables.items()}
        for name, more in written.items():
            variables[name].attrs = {**variables[name].attrs, **more}
        dropped = [dim for dim, is_said in said.items() if is_said and dim in ds.coords]
        named = [name for name in ds.coords if name not in dropped]
        kept = {name: variable for name, variable in variables.items() if name not in dropped}
        return xr.Dataset(kept, attrs=attributes).set_coords(named)

    def _group_attributes(self, group: str) -> dict[str, Any]:
        node = sync(self.opened.read_node(group))
        return dict(node.attributes) if isinstance(node, GroupAttributes) else {}

    def _kept(self, variable: xr.Variable) -> xr.Variable:
        """Say how a variable is kept: blocks, compression, fill value 0."""
        kept = variable.to_base_variable()
        block = self._block_size(kept)
        encoding = {key: value for key, value in kept.encoding.items() if key in _CF}
        if kept.dtype.kind == "f":
            encoding.setdefault("_FillValue", None)  # NaN is a value
        encoded = np.dtype(encoding.get("dtype", kept.dtype))
        if encoded.kind in "iufcmM":
            encoding["fill_value"] = 0
        elif encoded.kind == "b":
            encoding["fill_value"] = False
        is_native = kept.dtype in _NATIVE and not encoding.keys() - {"_FillValue", "fill_value"}
        if is_native and kept.ndim:
            encoding["serializer"] = N5BlockCodec(self.how, "C")
            encoding["compressors"] = None
        else:
            encoding["compressors"] = zarr_compressors(self.how)
        kept.encoding = {**encoding, "chunks": block} if kept.ndim else encoding
        return _in_whole_blocks(kept, block, (0,) * kept.ndim)

    def _block_size(self, variable: xr.Variable) -> tuple[int, ...]:
        if isinstance(self.chunks, str | None):
            _check_option("chunks", self.chunks, (None, "auto"))
            source = variable.encoding.get("chunks") if self.chunks is None else None
            if source is not None and len(source) == variable.ndim:
                return tuple(map(index, source))
        automatic = automatic_block_size(variable.shape)
        if not isinstance(self.chunks, str | None):
            sizes = [self.chunks.get(d, n) for d, n in zip(variable.dims, automatic, strict=True)]
            return tuple(map(index, sizes))
        return automatic

    def _write(
        self,
        group: str,
        ds: xr.Dataset,
        *,
        mode: Literal["a", "r+"],
        region: Mapping[Hashable, slice] | None = None,
    ) -> Delayed | None:
        options: dict[str, Any] = {"mode": mode, "region": region, "compute": self.compute}
        done: Any = ds.to_zarr(
            self.opened, group=group or None, consolidated=False, zarr_format=3, **options
        )
        return None if self.compute else done

    # ------------------------------------------------------------------ existing datasets

    def change(
        self,
        path: str,
        ds: xr.Dataset,
        region: Region | None,
        append_dim: Hashable | None,
        mode: str | None,
    ) -> Delayed | None:
        """Write a part of datasets that exist, or make them longer."""
        node = sync(self.opened.read_node(path))
        where = f"{self.opened}: {path or '/'}"
        if node is None:
            message = f"{where}: expected what is to be changed, got nothing there"
            raise FileNotFoundError(message)
        if isinstance(node, Presentation):
            group = path.rpartition("/")[0]
            placed = sync(read_placed(self.opened, path, node))
            datasets = {placed.name: placed, **placed.coordinates}
            axes = {d: (a, placed.sizes[d]) for d, a in placed.axes.items() if d not in datasets}
        else:
            group = path
            layout = sync(read_layout(self.opened, path, node))
            datasets, axes = dict(layout.datasets), layout.axes
        existing = xr.open_dataset(self.opened, engine="n5", group=path)  # type: ignore[arg-type]
        if append_dim is not None:
            expected = _after(existing, ds, append_dim, axes, where)
            wanted = {append_dim: slice(existing.sizes[append_dim], None)}
            mode = "a"  # one call writes all of the block at the end
        else:
            wanted = _slices(existing, ds, region or {}, where)
            expected = existing.isel(wanted)
        _check_fit(expected, ds, append_dim, where)
        missing = [name for name in ds.data_vars if str(name) not in datasets]
        if missing:
            message = f"{where}: expected variables that exist, got {missing} too"
            raise N5UnrepresentableError(message, kind="option")
        touched = [
            name
            for name, variable in ds.variables.items()
            if str(name) in datasets
            and set(variable.dims) & wanted.keys()
            and (append_dim is not None or name in ds.data_vars)
        ]
        if append_dim is not None:
            for name in touched:
                self._lengthen(datasets[str(name)].path, ds, name, append_dim)
            wanted = {append_dim: slice(existing.sizes[append_dim], None)}
        kept = {
            name: _in_whole_blocks(
                ds.variables[name].to_base_variable(),
                datasets[str(name)].shown.chunk_shape,
                [wanted.get(d, slice(0)).start or 0 for d in ds.variables[name].dims],
            )
            for name in touched
        }
        part = xr.Dataset(kept, attrs=self._group_attributes(group))
        full = {
            dim: slice(found.start or 0, (found.start or 0) + part.sizes[dim])
            for dim, found in wanted.items()
            if dim in part.dims
        }
        part = part.drop_vars([n for n in part.coords if n not in touched])
        part = part.drop_indexes(list(part.indexes))  # which xarray would not write
        return self._write(group, part, mode="a" if mode == "a" else "r+", region=full)

    def _lengthen(self, path: str, ds: xr.Dataset, name: Hashable, dim: Hashable) -> None:
        array = zarr.open_array(self.opened, path=path, mode="r+", zarr_format=3)
        axis = ds.variables[name].dims.index(dim)
        shape = list(array.shape)
        shape[axis] += ds.sizes[dim]
        array.resize(tuple(shape))


@dataclass(frozen=True)
class _Words:
    """How a convention puts the axes of a variable, and of which dimensions that says all."""

    words: Written | None
    dims: frozenset[Hashable]


def _in_words(
    convention: str,
    ds: xr.Dataset,
    array: xr.DataArray,
    path: str,
    group_attributes: Mapping[str, Any],
) -> _Words:
    """Write the axes of a variable, and read them again to see what was understood."""
    silent = frozenset(dim for dim in array.dims if dim not in ds.coords)
    given = {dim: _axis(ds, dim) for dim in array.dims}
    if not any(given.values()):
        return _Words(None, silent)
    names = [str(dim) for dim in array.dims][::-1]
    found = [given[dim] or Axis(name=str(dim)) for dim in array.dims][::-1]
    axes = axes_of(
        len(names),
        names=names,
        scale=[axis.scale for axis in found],
        translation=[axis.translation for axis in found],
        units=[axis.unit for axis in found],
    )
    words = describe_axes(convention, axes, path.rpartition("/")[2])
    taken = {*array.attrs, *(("units",) if array.dtype.kind in "mM" else ())}
    if taken & words.attributes.keys():
        return _Words(None, silent)  # the unit of the values, for one
    image = {**(words.image or {}), "datasets": [words.level]}
    above: dict[str, Any] = {**group_attributes, "multiscales": [image]}
    node = Node(
        path=tuple(path.split("/")),
        dimensions=array.shape[::-1],
        attributes={"axes": list(names), **array.attrs, **words.attributes},
        ancestors=(above,),
    )
    read = find_geometry(node).geometry
    if read is None or [axis.name for axis in read.axes] != names:
        return _Words(None, silent)
    said = set(silent)
    for dim, axis, is_placed in zip(array.dims, read.axes[::-1], read.is_placed[::-1], strict=True):
        if dim in silent and is_placed:
            return _Words(None, silent)  # where there are no positions none may be read
        if dim in ds.coords and is_placed:
            wanted = ds.coords[dim].variable.to_base_variable()
            got = coordinate(dim, axis, ds.sizes[dim])
            if got.dtype == wanted.dtype and got.identical(wanted):  # type: ignore[no-untyped-call]
                said.add(dim)
    return _Words(words, frozenset(said))


def _axis(ds: xr.Dataset, dim: Hashable) -> Axis | None:
    """Find scale and translation of an evenly spaced coordinate; None for any other."""
    if dim not in ds.coords or ds.coords[dim].dims != (dim,):
        return None
    coord = ds.coords[dim]
    unit = coord.attrs.get("units")
    if coord.dtype.kind not in "iuf" or not coord.size or not isinstance(unit, str | None):
        return None
    values = np.asarray(coord.values, np.float64)
    first = float(values[0])
    scales = list(_scales(values)) if len(values) > 1 else [1.0]
    best = min(scales, key=lambda scale: _n_wrong(scale, first, values))
    near = np.abs(best * np.arange(len(values)) + first - values) <= 1e-9 * abs(best)
    if not best or not np.isfinite(values).all() or not near.all():
        return None
    return Axis(name=str(dim), scale=best, translation=first, unit=unit)


def _n_wrong(scale: float, first: float, values: np.ndarray[Any, Any]) -> int:
    return int(np.count_nonzero(scale * np.arange(len(values)) + first != values))


def _scales(values: np.ndarray[Any, Any]) -> Iterable[float]:
    """Give what may have been the distance of the elements before positions were rounded."""
    for found in ((values[-1] - values[0]) / (len(values) - 1), values[1] - values[0]):
        yield float(found)
        for digits in (15, 14, 13, 12, 9, 6):
            yield float(f"{found:.{digits}g}")


def _with_level(listed: JSON, group: str, name: str, words: Written) -> list[JSON] | None:
    """Put a level into ``multiscales``, beside the others of its image."""
    is_level = name[:1] == "s" and name[1:].isdigit()
    image, level = dict(words.image or {}), words.level or {}
    if not is_level and not image:
        return None  # nothing but a list of levels
    image_name = group.rpartition("/")[2] if is_level else name
    images = [dict(i) for i in listed if isinstance(i, dict)] if isinstance(listed, list) else []
    at = next((i for i, other in enumerate(images) if other.get("name") == image_name), len(images))
    mine = images[at] if at < len(images) else {"name": image_name}
    before = mine.get("datasets")
    others = [
        entry
        for entry in (before if isinstance(before, list) else [])
        if isinstance(entry, dict) and entry.get("path") != level["path"]
    ]
    datasets = sorted([*others, level], key=lambda entry: str(entry.get("path")))
    images[at : at + 1] = [{**mine, **image, "datasets": datasets}]
    return list(images)


def _in_whole_blocks(
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
    named: Mapping[Any, slice | str] = (
        dict.fromkeys((d for d in ds.dims if d in ds.indexes), "auto")
        if isinstance(region, str)
        else region
    )
    found: dict[Hashable, slice] = {}
    for dim, wanted in named.items():
        if dim not in ds.dims or dim not in existing.dims:
            message = f"region: expected dimensions of the data, got {dim!r}"
            raise N5UnrepresentableError(message, kind="option", where=where)
        if isinstance(wanted, slice):
            start, stop, step = wanted.indices(existing.sizes[dim])
            if step != 1 or stop - start != ds.sizes[dim]:
                message = f"region: {dim!r}: expected a slice of {ds.sizes[dim]}, got {wanted}"
                raise N5UnrepresentableError(message, kind="option", where=where)
            found[dim] = slice(start, stop)
            continue
        if dim not in ds.indexes or dim not in existing.indexes:
            message = f"region: {dim!r}: 'auto' needs a coordinate in the data and in the container"
            raise N5UnrepresentableError(message, kind="option", where=where)
        places = existing.indexes[dim].get_indexer(ds.indexes[dim])
        if (places < 0).any() or (np.diff(places) != 1).any():
            message = (
                f"region: {dim!r}: expected a run of the positions in the container, got "
                f"{ds.indexes[dim].tolist()[:3]}..."
            )
            raise N5UnrepresentableError(message, kind="option", where=where)
        found[dim] = slice(int(places[0]), int(places[-1]) + 1)
    return found


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


def _check_fit(
    expected: xr.Dataset, ds: xr.Dataset, append_dim: Hashable | None, where: str
) -> None:
    """Refuse data whose positions are not those of the place where they are put."""
    for dim in ds.dims:
        if dim in expected.dims and expected.sizes[dim] != ds.sizes[dim]:
            message = f"{dim!r}: expected {expected.sizes[dim]} elements, got {ds.sizes[dim]}"
            raise N5UnrepresentableError(message, kind="option", where=where)
        if dim not in expected.coords or dim not in ds.coords:
            continue
        wanted, got = expected[dim].values, ds[dim].values
        if wanted.dtype.kind == "f" and got.dtype.kind in "iuf" and len(wanted) > 1:
            same = np.allclose(wanted, got, rtol=0, atol=1e-6 * abs(wanted[1] - wanted[0]))
        else:
            same = np.array_equal(wanted, got)
        if not same:
            what = "positions after those in the container" if dim == append_dim else "positions"
            message = f"{dim!r}: expected {what}, {_few(wanted)}, got {_few(got)}"
            raise N5UnrepresentableError(message, kind="option", where=where)


def _few(values: np.ndarray[Any, Any]) -> str:
    shown = ", ".join(map(str, values[:3]))
    return f"{shown}, ..." if len(values) > 3 else shown
