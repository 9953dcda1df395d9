"""Write Datasets into groups: plan new datasets and updates of old ones, check, then write."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, cast

import xarray as xr
from xarray.backends.zarr import encode_zarr_variable

from n5zarr.container.axes import Placed, read_layout
from n5zarr.container.options import require
from n5zarr.conventions.describe import add_level, choose_convention, remove_levels, without_levels
from n5zarr.conventions.find import GROUP_KEYS
from n5zarr.conventions.model import Written
from n5zarr.conventions.ngff import has_other_rank
from n5zarr.errors import N5Warning
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.compression import Compression
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.format.raw_json import from_numpy
from n5zarr.metadata.levels import describe_group, is_level, warn_of_misread
from n5zarr.storage.ending import ending
from n5zarr.store.n5_store import N5Store
from n5zarr.xarray.backend import is_aligned
from n5zarr.xarray.encode_variables import Chunks, encode_new
from n5zarr.xarray.positions import EncodedAxes, check_positions, encode_axes
from n5zarr.xarray.update import UpdatePlan, join_delayed, open_existing, plan_update
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from dask.delayed import Delayed


class Target(NamedTuple):
    """Hold a Dataset to be written, and its place.

    Parameters
    ----------
    path : str
        Of the group or dataset in the container.
    data : Dataset
        The data.
    is_level : bool
        Whether its one variable may become the dataset ``path`` itself.
    """

    path: str
    data: xr.Dataset
    is_level: bool

    @property
    def group(self) -> str:
        """Return the path of the group above."""
        return self.path.rpartition("/")[0]


def is_named(data: xr.Dataset, name: str) -> bool:
    """Return whether a Dataset has exactly one variable, with this name."""
    return bool(name) and [str(n) for n in data.data_vars] == [name] and not data.attrs


def _is_below(path: str, removed: str | None) -> bool:
    """Return whether a path is in the group about to be removed."""
    return removed is not None and (not removed or f"{path}/".startswith(f"{removed}/"))


def _one_variable(ds: xr.Dataset, name: Hashable) -> xr.Dataset:
    """Return one variable with the coordinates of its dimensions."""
    one = ds[[name]].reset_coords([name]) if name in ds.coords else ds[[name]]
    return one.drop_vars([c for c in one.coords if c not in one.dims])


@dataclass(frozen=True)
class GroupPlan:
    """Hold checked changes of a group: a Dataset to add, and updates of existing datasets.

    Has a warning if the data are a level that viewers will not find.
    """

    group: str
    new: xr.Dataset | None
    updates: Sequence[UpdatePlan]
    written: Mapping[str, Written]
    warning: str = ""

    def run(self, writer: GroupWriter) -> Delayed | None:
        """Write; without ``compute``, return an object that writes the rest."""
        if self.warning:
            warnings.warn(f"{writer.store}: {self.warning}", N5Warning, stacklevel=4)
        if self.new is not None and any(written.image for written in self.written.values()):
            warn_of_misread(writer.store, self.group, self.new.attrs)
        remaining = [plan.run(compute=writer.compute) for plan in self.updates]
        if self.new is not None:
            remaining.append(writer.write(self.group, self.new))
            names = [str(name) for name in self.new.data_vars if is_level(str(name))]
            if names:
                written = {name: self.written[name] for name in names if name in self.written}
                describe_group(writer.store, self.group, written)
            if self.warning:  # a level became a group
                describe_group(writer.store, self.group.rpartition("/")[0])
        return join_delayed(remaining)


@dataclass(frozen=True)
class _DescribedData:
    """Hold data whose coordinates are in attributes, if they read back.

    Parameters
    ----------
    existing : mapping of str to Placed
        The existing datasets of the group, by name.
    data : Dataset
        The data to write.
    written : mapping of str to Written
        The attributes for the axes of new datasets, by name.
    """

    existing: Mapping[str, Placed]
    data: xr.Dataset
    written: Mapping[str, Written]


@dataclass(frozen=True, kw_only=True)
class GroupWriter:
    """Write Datasets into the groups of a container.

    Parameters
    ----------
    store : N5Store
        The container.
    convention : str
        The convention of the coordinates.
    compression : Compression
        The compression of new datasets.
    chunks, compute
        See :func:`~n5zarr.xarray.write.to_n5`.
    """

    store: N5Store
    convention: str
    compression: Compression
    chunks: Chunks
    compute: bool

    def choose_levels(self, targets: list[Target], removed: str | None) -> list[Target]:
        """Write leaves of a tree as bare datasets if they reopen as nodes.

        Parameters
        ----------
        targets : list of Target
            The nodes of the tree.
        removed : str or None
            The path about to be removed.
        """
        leaves: dict[str, list[Target]] = {}
        for target in targets:
            if target.is_level:
                described = self._describe(target.group, target.data, removed, as_level=True)
                if not described.data.coords:
                    leaves.setdefault(target.group, []).append(target)
        empty = {target.path for target in targets if not target.data.variables}
        levels = {
            target.path
            for group, beside in leaves.items()
            if group in empty
            and not all(is_aligned(a.data, b.data) for a in beside for b in beside)
            for target in beside
        }
        return [target._replace(is_level=target.path in levels) for target in targets]

    def plan(self, target: Target, mode: str | None, removed: str | None) -> GroupPlan:
        """Check that a Dataset can be written, and plan the changes.

        Parameters
        ----------
        target : Target
            The data and their place.
        mode : str or None
            See :func:`~n5zarr.xarray.write.to_n5`.
        removed : str or None
            The path to be removed before.
        """
        warning = ""
        if target.is_level:
            described = self._describe(target.group, target.data, removed, as_level=True)
            if not described.data.coords:  # a bare dataset, beside the other levels
                return self._plan(target.group, target.data, described, mode)
            node = None if removed is not None else self.store.node(target.path)
            others = ", ".join(map(str, described.data.coords))
            require(
                not isinstance(node, DatasetView),
                f"expected data with the positions of the dataset, got others along {others}",
                where=f"{self.store}: {target.path}",
            )
            name = target.path.rpartition("/")[2]
            if is_level(name):
                warning = (
                    f"{target.path}: written as a group with the data in "
                    f"{join(target.path, name)}, where viewers do not find the level: metadata "
                    f"cannot express {others} to the last bit; "
                    "they can if these are evenly spaced and the convention has their unit"
                )
        described = self._describe(target.path, target.data, removed)
        if target.data.coords and not described.data.coords:
            # like xarray, if the coordinates of a Dataset belong to no variable
            named = " ".join(map(str, target.data.coords))
            described.data.attrs.setdefault("coordinates", named)
        plan = self._plan(target.path, target.data, described, mode)
        return replace(plan, warning=warning)

    def _plan(
        self, group: str, ds: xr.Dataset, described: _DescribedData, mode: str | None
    ) -> GroupPlan:
        existing, data = described.existing, described.data
        self._check_coordinates(group, existing, ds, data)
        known = [name for name in data.variables if str(name) in existing]
        added_coords = [name for name in data.coords if str(name) not in existing]
        updates = [
            plan_update(
                self.store,
                join(group, str(name)),
                _one_variable(ds, name).drop_vars(added_coords, errors="ignore"),
                is_only_writer=True,
                region={},
            )
            for name in known
            if name not in ds.dims  # their positions are known to be equal
        ]
        new = data.drop_vars(known)
        for name, variable in new.variables.items():
            if variable.dtype == object and variable.chunks is None:
                # raises before anything changes
                encode_zarr_variable(variable.copy(deep=False), name=name)
        require(
            mode != "r+" or not new.variables,
            f"mode='r+': expected variables that exist, also got {list(new.variables)}",
            where=str(self.store),
        )
        return GroupPlan(group, None if mode == "r+" else new, updates, described.written)

    def _describe(
        self, group: str, ds: xr.Dataset, removed: str | None, *, as_level: bool = False
    ) -> _DescribedData:
        """Put coordinates into attributes of variables and group, if they read back."""
        node = None if _is_below(group, removed) else self.store.node(group)
        existing: Mapping[str, Placed] = {}
        old_attributes: Mapping[str, JSON] = {}
        if isinstance(node, GroupAttributes):
            datasets = self.store.run(read_layout(self.store.container.nodes, group, node)).datasets
            existing = {n: p for n, p in datasets.items() if not _is_below(p.path, removed)}
            old_attributes = node.attributes
        self._check_attributes(group, old_attributes, existing, ds)
        new_names = [str(name) for name in ds.data_vars if str(name) not in existing]
        kept = remove_levels(old_attributes, new_names)
        if any(map(is_level, new_names)) and not any(map(is_level, existing)):
            kept = without_levels(kept)  # the described levels no longer exist
        attributes: dict[str, JSON] = {**kept, **from_numpy(ds.attrs)}
        above = self.store.run(self.store.container.nodes.above(group))
        variables = {
            name: encode_new(variable, self.compression, self.chunks)
            for name, variable in ds.variables.items()
        }
        described: dict[str, Written] = {}
        is_encoded: dict[Hashable, bool] = {}  # by dimension: in the metadata of all variables
        # images in `multiscales` share their rank, which is the highest one
        for name, array in sorted(ds.data_vars.items(), key=lambda item: -item[1].ndim):
            path = join(group, str(name))
            convention = self._convention(str(name), existing)
            if convention == "ngff" and has_other_rank(attributes, array.ndim):
                convention = "neuroglancer"
            if str(name) in existing:
                axes = EncodedAxes(None, self._dims_in_place(path, ds[[name]]))
            else:
                axes = encode_axes(
                    convention,
                    ds,
                    array,
                    path,
                    [attributes, *above],
                    existing.get("s0"),
                    is_level=as_level,
                )
            for dim in array.dims:
                is_encoded[dim] = is_encoded.get(dim, True) and dim in axes.dims
            if axes.written is not None:
                own = variables[name].attrs
                variables[name].attrs = {**own, **axes.written.on_dataset(own)}
                attributes = add_level(attributes, group, str(name), axes.written)
                described[str(name)] = axes.written
        left_out = {dim for dim, is_in in is_encoded.items() if is_in and dim in ds.coords}
        coords = [name for name in ds.coords if name not in left_out]
        new = {name: variable for name, variable in variables.items() if name not in left_out}
        data = xr.Dataset(new, attrs=attributes).set_coords(coords)
        return _DescribedData(existing, data, described)

    def _convention(self, name: str, existing: Mapping[str, Placed]) -> str:
        """Choose the convention of a new dataset: with "auto", that of the sibling levels."""
        beside = [p.geometry for n, p in existing.items() if is_level(name) and is_level(n)]
        return choose_convention(self.convention, [g.convention for g in beside if g is not None])

    def _check_attributes(
        self,
        group: str,
        old_attributes: Mapping[str, JSON],
        existing: Mapping[str, Placed],
        ds: xr.Dataset,
    ) -> None:
        """Reject attributes of the group that would move its datasets."""
        moving = [
            key
            for key in sorted(GROUP_KEYS)
            if key in ds.attrs and existing and ds.attrs[key] != old_attributes.get(key)
        ]
        require(
            not moving,
            f"attributes {moving}: expected none that move {list(existing)}",
            where=f"{self.store}: {group}",
        )

    def _dims_in_place(self, path: str, ds: xr.Dataset) -> frozenset[Hashable]:
        """Return the dimensions along which an existing dataset already has the positions.

        Raises
        ------
        N5UnrepresentableError
            The dataset has other positions.
        """
        existing = open_existing(self.store, path)
        check_positions(existing, ds, {}, f"{self.store}: {path}")
        return frozenset(d for d in ds.dims if d in existing.coords or d not in ds.coords)

    def _check_coordinates(
        self, group: str, existing: Mapping[str, Placed], ds: xr.Dataset, described: xr.Dataset
    ) -> None:
        """Reject coordinates that would move other datasets, or take over their positions.

        A one-dimensional dataset gives the positions of all datasets in its group.
        """
        for dim in ds.dims:
            size = ds.sizes[dim]
            stored = existing.get(str(dim))
            beside: list[Placed] = []
            if dim not in ds.coords:
                new = [n for n, v in ds.data_vars.items() if dim in v.dims and n not in existing]
                require(
                    not new or stored is None or not stored.is_coordinate_of(str(dim), size),
                    f"expected a coordinate along {dim!r}: without it, {new} would have that of "
                    f"{join(group, str(dim))}",
                    where=str(self.store),
                )
                continue
            if stored is not None and stored.is_coordinate_of(str(dim), size):
                beside = [stored]
            elif dim in described.coords:
                others = (p for name, p in existing.items() if name not in ds.data_vars)
                beside = [p for p in others if p.sizes.get(str(dim)) == size and dim in p.axes]
            for placed in beside:
                there = open_existing(self.store, placed.path)
                check_positions(there, ds[[dim]], {}, f"{self.store}: {placed.path}")

    def write(self, group: str, ds: xr.Dataset) -> Delayed | None:
        """Create datasets; without ``compute``, return an object that writes."""
        with ending() as self.store.container.memory.call:  # threads of dask, too
            stored = ds.to_zarr(  # type: ignore[call-overload] # `compute` is not a literal
                self.store,
                group=group or None,
                consolidated=False,
                zarr_format=3,
                mode="a",
                compute=self.compute,
            )
        return None if self.compute else cast("Delayed", stored)
