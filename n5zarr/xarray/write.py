"""``to_n5``: a Dataset, DataArray or DataTree as N5.

xarray's own ``to_zarr`` does the writing, on an :class:`~n5zarr.N5Store`. What is decided here is
what becomes of coordinates: evenly spaced ones are written as metadata of a convention, after
trying that they come back bit for bit; the others as one-dimensional datasets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import xarray as xr
from xarray.backends.zarr import encode_zarr_variable
from zarr.errors import ContainsGroupError

from n5zarr._zarr_private import sync
from n5zarr.container.axes import read_layout
from n5zarr.conventions.find import WRITTEN
from n5zarr.conventions.neuroglancer import KEYS as NEUROGLANCER_KEYS
from n5zarr.conventions.render import KEYS as RENDER_KEYS
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.compression import parse_compression
from n5zarr.format.data_type import DataType
from n5zarr.format.grid import automatic_block_size
from n5zarr.format.path import join
from n5zarr.store.block_codec import N5BlockCodec
from n5zarr.store.location import open_container
from n5zarr.xarray.backend import is_aligned
from n5zarr.xarray.encode_axes import Words, in_words, with_level, without_levels
from n5zarr.xarray.update import (
    CF_ENCODING,
    Plan,
    check_fit,
    in_whole_blocks,
    open_existing,
    plan_change,
)
from n5zarr.zarr_view.compressors import zarr_compressors
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    import os
    from collections.abc import Hashable, Sequence

    from dask.delayed import Delayed
    from zarr.abc.store import Store

    from n5zarr.container.axes import Placed
    from n5zarr.format.compression import Compression
    from n5zarr.format.lenient_json import JSON
    from n5zarr.store.n5_store import N5Store
    from n5zarr.xarray.update import Region

__all__ = ["to_n5"]

type Convention = Literal["cosem", "n5viewer", "neuroglancer", "ngff"]

_NATIVE = {np.dtype(t.value) for t in DataType if t.is_numeric}


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

    A DataArray, whatever its name, or a Dataset of one variable with the name of ``group``'s last
    element, becomes the dataset ``group`` itself if all its coordinates can be written as metadata:
    so levels of a pyramid stand where other tools look for them. Levels in a DataTree do, too.

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
    if opened.axis_order != "C" or opened.zarr_format != 3 or opened.coords:
        message = f"store: expected one that shows Zarr v3 in C order, got {opened!r}"
        raise N5UnrepresentableError(message, kind="option")
    how = parse_compression({"type": "raw"} if compression is None else compression)
    parts = _parts(data, path)
    _check_chunks(chunks, parts)
    writer = _Writer(opened=opened, convention=convention, how=how, chunks=chunks, compute=compute)
    if region is not None or append_dim is not None:
        plans = [
            plan_change(
                opened,
                part.path,
                part.data,
                region=region,
                append_dim=append_dim,
                by_one=mode == "a",
            )
            for part in parts
            if part.data.variables
        ]
        return _all([plan.run(compute=compute) for plan in plans])
    removed = path if mode == "w" else None
    if mode in (None, "w-") and opened.node(path) is not None:
        message = (
            f"{opened}: {path or '/'}: there is something already; mode='w' removes it, "
            "mode='a' adds to it"
        )
        raise ContainsGroupError(message)
    parts = writer.with_levels(parts, data, removed)
    for part in parts:  # all is checked before anything changes
        writer.plan(part, mode, removed)
    if removed is not None:
        sync(opened.delete_dir(removed))
    # again, since what is written first may be in the same group
    return _all([writer.plan(part, mode, None).run(writer) for part in parts])


def _check_option(name: str, value: object, known: tuple[object, ...]) -> None:
    if value not in known:
        message = f"{name}: expected one of {', '.join(map(repr, known))}, got {value!r}"
        raise N5UnrepresentableError(message, kind="option")


def _check_chunks(chunks: object, parts: Sequence[_Part]) -> None:
    if not isinstance(chunks, Mapping):
        _check_option("chunks", chunks, (None, "auto"))
        return
    dims = {dim for part in parts for dim in part.data.dims}
    for dim, size in chunks.items():
        if dim not in dims or not isinstance(size, int | np.integer) or size < 1:
            message = (
                "chunks: expected a number of elements above 0 for any of "
                f"{', '.join(map(repr, dims))}, got {dim!r}: {size!r}"
            )
            raise N5UnrepresentableError(message, kind="option")


class _Part(NamedTuple):
    """A Dataset to be written.

    Parameters
    ----------
    path : str
        Where.
    data : Dataset
        What.
    is_level : bool
        Whether its one variable may be the dataset ``path`` itself.
    """

    path: str
    data: xr.Dataset
    is_level: bool


def _parts(data: xr.Dataset | xr.DataArray | xr.DataTree, path: str) -> list[_Part]:
    """Name the groups and datasets to be written, and what goes into each."""
    last = path.rpartition("/")[2]
    if isinstance(data, xr.DataArray):
        name = last or (data.name if data.name is not None else "data")
        return [_Part(path, data.to_dataset(name=name), is_level=bool(last))]
    if isinstance(data, xr.Dataset):
        return [_Part(path, data, is_level=_is_named(data, last))]
    nodes = [(node, join(path, node.path.strip("/"))) for node in data.subtree]
    return [
        _Part(at, found, is_level=not node.children and _is_named(found, at.rpartition("/")[2]))
        for node, at in nodes
        for found in [node.to_dataset()]
    ]


def _is_named(data: xr.Dataset, name: str) -> bool:
    """Whether a Dataset is no more than one variable of this name."""
    return bool(name) and [str(n) for n in data.data_vars] == [name] and not data.attrs


def _are_apart(datasets: Sequence[xr.Dataset]) -> bool:
    """Whether datasets in one group will not be taken for one Dataset."""
    return any(not is_aligned(one, other) for one in datasets for other in datasets)


def _all(parts: Sequence[Delayed | None]) -> Delayed | None:
    delayed = [part for part in parts if part is not None]
    if len(delayed) <= 1:
        return delayed[0] if delayed else None
    from dask.delayed import delayed as later  # noqa: PLC0415 - something is, so dask is there

    found: Delayed = later(list)(delayed)
    return found


def _is_below(path: str, removed: str | None) -> bool:
    """Whether a path is among what will have been removed."""
    return removed is not None and (not removed or f"{path}/".startswith(f"{removed}/"))


def _alone(ds: xr.Dataset, name: Any) -> xr.Dataset:  # noqa: ANN401 - any hashable
    """Give one variable, with the positions along its dimensions."""
    found = ds[[name]].reset_coords(name) if name in ds.coords else ds[[name]]
    return found.drop_vars([c for c in found.coords if c not in found.dims])


@dataclass(frozen=True)
class _Addition:
    """What is to be written to a group, after it has been checked."""

    group: str
    new: xr.Dataset | None
    changes: Sequence[Plan]

    def run(self, writer: _Writer) -> Delayed | None:
        """Write it."""
        done = [plan.run(compute=writer.compute) for plan in self.changes]
        return _all([*done, None if self.new is None else writer.write(self.group, self.new)])


@dataclass(frozen=True, kw_only=True)
class _Writer:
    """Where to write, and how."""

    opened: N5Store
    convention: str
    how: Compression
    chunks: Mapping[Any, int] | Literal["auto"] | None
    compute: bool

    # ------------------------------------------------------------------ new datasets

    def with_levels(self, parts: list[_Part], data: object, removed: str | None) -> list[_Part]:
        """Let those nodes of a tree be levels that will be opened as nodes again."""
        if not isinstance(data, xr.DataTree) or len(parts) == 1:
            return parts
        beside: dict[str, list[_Part]] = {}
        for part in parts:
            above = part.path.rpartition("/")[0]
            if part.is_level and not self._described(above, part.data, removed)[1].coords:
                beside.setdefault(above, []).append(part)
        bare = {part.path for part in parts if not part.data.variables}
        levels = {
            part.path
            for above, found in beside.items()
            if above in bare and _are_apart([part.data for part in found])
            for part in found
        }
        return [part._replace(is_level=part.path in levels) for part in parts]

    def plan(self, part: _Part, mode: str | None, removed: str | None) -> _Addition:
        """Check that a Dataset can be written with all that belongs to it, and say how.

        Parameters
        ----------
        part : _Part
            What is to be written.
        mode : str or None
            See :func:`to_n5`.
        removed : str or None
            What will have been removed before.
        """
        if part.is_level:
            above = part.path.rpartition("/")[0]
            existing, described = self._described(above, part.data, removed)
            if not described.coords:  # so that levels of a pyramid are beside each other
                return self._addition(above, existing, part.data, described, mode)
            there = None if removed is not None else self.opened.node(part.path)
            if isinstance(there, DatasetView):
                message = (
                    f"{self.opened}: {part.path}: expected data with the positions that the "
                    f"dataset has, got others along {', '.join(map(str, described.coords))}"
                )
                raise N5UnrepresentableError(message, kind="option")
        existing, described = self._described(part.path, part.data, removed)
        return self._addition(part.path, existing, part.data, described, mode)

    def _addition(
        self,
        group: str,
        existing: Mapping[str, Placed],
        ds: xr.Dataset,
        described: xr.Dataset,
        mode: str | None,
    ) -> _Addition:
        self._check_beside(existing, ds, described)
        known = [name for name in described.variables if str(name) in existing]
        # what is not there yet is written beside
        added = [name for name in described.coords if str(name) not in existing]
        changes = [
            plan_change(
                self.opened,
                join(group, str(name)),
                _alone(ds, name).drop_vars(added, errors="ignore"),
                by_one=True,
                region={},
            )
            for name in known
            if name not in ds.dims  # these are as they are
        ]
        new = described.drop_vars(known)
        for name, variable in new.variables.items():
            if variable.dtype == object and variable.chunks is None:
                # or an error, before anything changes
                encode_zarr_variable(variable.copy(deep=False), name=name)
        if mode == "r+" and new.variables:
            message = f"mode='r+': expected variables that exist, got {list(new.variables)} too"
            raise N5UnrepresentableError(message, kind="option", where=str(self.opened))
        return _Addition(group, None if mode == "r+" else new, changes)

    def _described(
        self, group: str, ds: xr.Dataset, removed: str | None
    ) -> tuple[Mapping[str, Placed], xr.Dataset]:
        """Put coordinates into the attributes of the variables, as far as that can be undone.

        Returns
        -------
        existing, described : mapping of str to Placed, Dataset
            What is in the group already, and what is to be written.
        """
        node = None if _is_below(group, removed) else self.opened.node(group)
        existing: Mapping[str, Placed] = {}
        before: dict[str, Any] = {}
        if isinstance(node, GroupAttributes):
            found_there = self.opened.ask(
                read_layout(self.opened.container.nodes, group, node)
            ).datasets
            existing = {n: p for n, p in found_there.items() if not _is_below(p.path, removed)}
            before = dict(node.attributes)
        new = [str(name) for name in ds.data_vars if str(name) not in existing]
        self._check_attributes(group, before, existing, ds)
        attributes = {**without_levels(before, new), **ds.attrs}
        above = self.opened.ask(self.opened.container.nodes.above(group))
        written: dict[Hashable, dict[str, JSON]] = {}
        said: dict[Hashable, bool] = {}  # of each dimension: by the attributes of all variables
        for name, array in ds.data_vars.items():
            path = join(group, str(name))
            if str(name) in existing:
                found = Words(None, self._said_of(path, ds[[name]]))
            else:
                found = in_words(self.convention, ds, array, path, [attributes, *above])
            for dim in array.dims:
                said[dim] = said.get(dim, True) and dim in found.dims
            if found.words is not None:
                written[name] = found.words.attributes
                attributes = with_level(attributes, group, str(name), found.words)
        variables = {name: self._kept(variable) for name, variable in ds.variables.items()}
        for name, more in written.items():
            variables[name].attrs = {**variables[name].attrs, **more}
        dropped = [dim for dim, is_said in said.items() if is_said and dim in ds.coords]
        named = [name for name in ds.coords if name not in dropped]
        kept = {name: variable for name, variable in variables.items() if name not in dropped}
        return existing, xr.Dataset(kept, attrs=attributes).set_coords(named)

    def _check_attributes(
        self, group: str, before: Mapping[str, Any], existing: Mapping[str, Placed], ds: xr.Dataset
    ) -> None:
        """Refuse attributes of the group that would give other positions to what is in it."""
        moved = [
            key
            for key in (*NEUROGLANCER_KEYS, *RENDER_KEYS, "multiscales")
            if key in ds.attrs and existing and ds.attrs[key] != before.get(key)
        ]
        if moved:
            message = f"attributes {moved}: expected none that say where {list(existing)} lie"
            raise N5UnrepresentableError(message, kind="option", where=f"{self.opened}: {group}")

    def _said_of(self, path: str, ds: xr.Dataset) -> frozenset[Hashable]:
        """Name the dimensions whose positions a dataset that exists has already.

        Raises
        ------
        N5UnrepresentableError
            It has others.
        """
        existing = open_existing(self.opened, path)
        check_fit(existing, ds, {}, f"{self.opened}: {path}")
        return frozenset(d for d in ds.dims if d in existing.coords or d not in ds.coords)

    def _check_beside(
        self, existing: Mapping[str, Placed], ds: xr.Dataset, described: xr.Dataset
    ) -> None:
        """Refuse coordinates that would be those of datasets with other positions.

        A one-dimensional dataset gives the positions of all that lie beside it.
        """
        for dim in ds.dims:
            size = ds.sizes[dim]
            stored = existing.get(str(dim))
            beside: list[Placed] = []
            if dim not in ds.coords:
                new = [n for n, v in ds.data_vars.items() if dim in v.dims and n not in existing]
                if new and stored is not None and stored.is_coordinate_of(str(dim), size):
                    message = (
                        f"expected a coordinate along {dim!r}: without, {new} would have that of "
                        f"{stored.path}"
                    )
                    raise N5UnrepresentableError(message, kind="option", where=str(self.opened))
                continue
            if stored is not None and stored.is_coordinate_of(str(dim), size):
                beside = [stored]
            elif dim in described.coords:
                others = (p for name, p in existing.items() if name not in ds.data_vars)
                beside = [p for p in others if p.sizes.get(str(dim)) == size and dim in p.axes]
            for placed in beside:
                there = open_existing(self.opened, placed.path)
                check_fit(there, ds[[dim]], {}, f"{self.opened}: {placed.path}")

    def _kept(self, variable: xr.Variable) -> xr.Variable:
        """Say how a variable is kept: blocks, compression, fill value 0."""
        kept = variable.to_base_variable()
        block = self._block_size(kept)
        encoding = {key: value for key, value in kept.encoding.items() if key in CF_ENCODING}
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
        return in_whole_blocks(kept, block, (0,) * kept.ndim)

    def _block_size(self, variable: xr.Variable) -> tuple[int, ...]:
        if isinstance(self.chunks, str | None):
            source = variable.encoding.get("chunks") if self.chunks is None else None
            if source is not None and len(source) == variable.ndim:
                return tuple(map(index, source))
        automatic = automatic_block_size(variable.shape)
        if not isinstance(self.chunks, str | None):
            sizes = [self.chunks.get(d, n) for d, n in zip(variable.dims, automatic, strict=True)]
            return tuple(map(index, sizes))
        return automatic

    def write(self, group: str, ds: xr.Dataset) -> Delayed | None:
        """Write what is new."""
        options: dict[str, Any] = {"mode": "a", "compute": self.compute}
        done: Any = ds.to_zarr(
            self.opened, group=group or None, consolidated=False, zarr_format=3, **options
        )
        return None if self.compute else done
