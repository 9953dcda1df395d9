"""``xr.open_dataset(..., engine="n5")``: open N5 datasets with their axes as coordinates.

``group`` may be the path of:

- a dataset: gives one variable with the name of the dataset, ``data`` at the root;
- a group whose datasets agree in the axes that they share: gives one Dataset of all of them.
  One-dimensional datasets with the name of an axis are its coordinates;
- a group whose datasets do not agree, such as a pyramid: gives an empty Dataset and a warning. In a
  DataTree each of its datasets is a node of its own. The same holds for a group whose datasets
  agree, but not with those of a group below it: no DataTree can hold both in one node.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Unpack

import numpy as np
import xarray as xr
import zarr
from xarray.backends import BackendEntrypoint
from xarray.backends.zarr import FillValueCoder, ZarrArrayWrapper
from xarray.core import indexing
from zarr.buffer import cpu
from zarr.storage import MemoryStore

from n5zarr.arrays.array import with_fast_path
from n5zarr.container.axes import positions, read_layout, read_placed
from n5zarr.conventions.find import CONVENTIONS
from n5zarr.errors import N5UnrepresentableError, N5Warning
from n5zarr.format.attributes import ATTRIBUTES_JSON, GroupAttributes
from n5zarr.format.path import join, local_path
from n5zarr.store.location import open_container
from n5zarr.store.n5_store import N5Store
from n5zarr.xarray.accessor import Origin  # this import registers ds.n5, too
from n5zarr.xarray.affine_index import AffineIndex
from n5zarr.xarray.options import Decoding

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from zarr.abc.store import Store

    from n5zarr.container.axes import Layout, Placed
    from n5zarr.container.memory import Node
    from n5zarr.conventions.model import Axis
    from n5zarr.format.lenient_json import JSON
    from n5zarr.format.order import AxisOrder
    from n5zarr.xarray.options import StorageOptions
    from n5zarr.zarr_view.dataset_view import DatasetView

__all__ = ["N5BackendEntrypoint", "coordinate", "is_aligned"]


class GroupOptions(Decoding, total=False):
    """Options of :meth:`N5BackendEntrypoint.open_groups_as_dict`."""

    group: str | None
    axis_order: AxisOrder
    convention: str | None
    lazy_coords: bool
    storage_options: StorageOptions | None


class N5BackendEntrypoint(BackendEntrypoint):
    """The engine ``"n5"`` of xarray."""

    description: ClassVar[str] = "Open N5 containers with axes and units as coordinates"
    url: ClassVar[str] = "https://github.com/saalfeldlab/n5"
    supports_groups: ClassVar[bool] = True

    def guess_can_open(self, filename_or_obj: object) -> bool:
        """Return whether this looks like N5: a ``.n5`` in the path, or an ``attributes.json``."""
        if isinstance(filename_or_obj, N5Store):
            return True
        if not isinstance(filename_or_obj, str | os.PathLike):
            return False
        text = os.fspath(filename_or_obj)
        if any(name.endswith(".n5") for name in text.replace("\\", "/").split("/")):
            return True
        return "://" not in text and (Path(local_path(text)) / ATTRIBUTES_JSON).is_file()

    def open_dataset(  # type: ignore[override] # noqa: PLR0913 - xarray lists options singly
        self,
        filename_or_obj: str | os.PathLike[str] | Store,
        *,
        mask_and_scale: bool = True,
        decode_times: bool = True,
        concat_characters: bool = True,
        decode_coords: bool = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: bool | None = None,
        group: str | None = None,
        axis_order: AxisOrder = "C",
        convention: str | None = None,
        lazy_coords: bool = False,
        storage_options: StorageOptions | None = None,
    ) -> xr.Dataset:
        """Open a dataset or a group; the module's description lists what a group may be.

        Parameters
        ----------
        filename_or_obj : path, URL, zarr store or N5Store
            A container, or a location in one.
        mask_and_scale, decode_times, concat_characters, decode_coords, use_cftime, \
decode_timedelta : optional
            As in :func:`xarray.decode_cf`. Computed coordinates are not decoded: time in seconds
            stays numbers.
        drop_variables : str or iterable of str, optional
            Variables to leave out.
        group : str, optional
            Path of the dataset or group.
        axis_order : {"C", "F"}, optional
            ``"C"``: dimensions ``z, y, x``. ``"F"``: ``x, y, z``.
        convention : str, optional
            The only convention of axes to try.
        lazy_coords : bool, optional
            Whether coordinates are computed when needed, for axes too long to keep in memory. They
            can be selected and sliced; see :class:`~n5zarr.xarray.affine_index.AffineIndex` for
            their limits.
        storage_options : dict, optional
            For fsspec, with a URL.
        """
        source = _Source.open(filename_or_obj, group, axis_order, convention, storage_options)
        decoding: Decoding = {
            "mask_and_scale": mask_and_scale,
            "decode_times": decode_times,
            "concat_characters": concat_characters,
            "decode_coords": decode_coords,
            "drop_variables": drop_variables,
            "use_cftime": use_cftime,
            "decode_timedelta": decode_timedelta,
        }
        source = replace(source, lazy_coords=lazy_coords, decoding=decoding)
        node = source.node()
        if not isinstance(node, GroupAttributes):
            return source.dataset_of_one(source.placed(node))
        layout = source.layout(source.path, node)
        if not layout.agrees:
            message = (
                f"{source.opened}: {source.path or '/'}: its datasets do not share their axes: "
                "open one of them by group=, or all with xr.open_datatree: "
                f"{', '.join(layout.datasets)}"
            )
            warnings.warn(message, N5Warning, stacklevel=2)
        return source.dataset_of_group(layout)

    def open_groups_as_dict(  # type: ignore[override] # as above
        self,
        filename_or_obj: str | os.PathLike[str] | Store,
        *,
        group: str | None = None,
        axis_order: AxisOrder = "C",
        convention: str | None = None,
        lazy_coords: bool = False,
        storage_options: StorageOptions | None = None,
        **decoding: Unpack[Decoding],
    ) -> dict[str, xr.Dataset]:
        """Open everything below a group; see :meth:`open_dataset`."""
        source = _Source.open(filename_or_obj, group, axis_order, convention, storage_options)
        source = replace(source, lazy_coords=lazy_coords, decoding=decoding)
        node = source.node()
        if not isinstance(node, GroupAttributes):
            return {"/": source.dataset_of_one(source.placed(node))}
        return source.groups(source.path, node, "/")

    def open_datatree(  # type: ignore[override] # as above
        self,
        filename_or_obj: str | os.PathLike[str] | Store,
        **options: Unpack[GroupOptions],
    ) -> xr.DataTree:
        """Open everything below a group as a tree; a pyramid has one node for each level."""
        return xr.DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **options))


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


def _warn_of_problems(opened: N5Store, placed: Placed) -> None:
    """Warn of axis metadata that were ignored because they make no sense."""
    if placed.problems:
        message = f"{opened}: {placed.path or '/'}: {'; '.join(placed.problems)}"
        warnings.warn(message, N5Warning, stacklevel=3)


def is_aligned(above: xr.Dataset, below: xr.Dataset) -> bool:
    """Whether a child node may inherit the coordinates of its parent."""
    for dim in above.dims:
        if dim in below.dims:
            if above.sizes[dim] != below.sizes[dim]:
                return False
            indexes = above.xindexes.get(dim), below.xindexes.get(dim)
            if None not in indexes and not indexes[0].equals(indexes[1]):  # type: ignore[union-attr]
                return False
    return True


@dataclass(frozen=True, kw_only=True)
class _Source:
    """A node of a container, and the options to open it with."""

    opened: N5Store
    path: str
    convention: str | None
    lazy_coords: bool = False
    decoding: Decoding

    @classmethod
    def open(
        cls,
        source: str | os.PathLike[str] | Store,
        group: str | None,
        axis_order: AxisOrder,
        convention: str | None,
        storage_options: StorageOptions | None,
    ) -> _Source:
        known = {name for name, _ in CONVENTIONS}
        if convention not in (None, *known):
            message = f"convention: expected one of {', '.join(sorted(known))}, got {convention!r}"
            raise N5UnrepresentableError(message, kind="option")
        container, path = open_container(
            source, group or "", axis_order=axis_order, storage_options=storage_options
        )
        # a store object may have been given, with other codecs or with coords=True
        opened = N5Store(
            container.store, codecs="n5", read_only=True, axis_order=container.axis_order
        )
        return cls(opened=opened, path=path, convention=convention, decoding={})

    def node(self) -> Node:
        node = self.opened.node(self.path)
        if node is None:
            message = f"{self.opened}: /{self.path}: expected a group or dataset, got nothing there"
            raise FileNotFoundError(message)
        return node

    def placed(self, view: DatasetView) -> Placed:
        """Read the axes of the dataset at the path."""
        nodes = self.opened.container.nodes
        return self.opened.ask(read_placed(nodes, self.path, view, self.convention))

    def layout(self, path: str, group: GroupAttributes) -> Layout:
        """Read the datasets and groups in a group; warn of those that are left out."""
        nodes = self.opened.container.nodes
        layout = self.opened.ask(read_layout(nodes, path, group, self.convention))
        for broken in layout.broken:
            message = f"{self.opened}: left out: {broken.error}"
            warnings.warn(message, N5Warning, stacklevel=2)
        return layout

    def groups(self, path: str, group: GroupAttributes, node_path: str) -> dict[str, xr.Dataset]:
        """Open everything below a group, by path in the tree.

        Parameters
        ----------
        path : str
            Of the group in the container.
        group : GroupAttributes
            Its attributes.
        node_path : str
            Of the group's node in the tree.
        """
        layout = self.layout(path, group)
        whole = self.dataset_of_group(layout)
        prefix = node_path.rstrip("/")
        below: dict[str, xr.Dataset] = {}
        for name, child in sorted(layout.groups.items()):
            below |= self.groups(join(path, name), child, f"{prefix}/{name}")
        if layout.agrees and all(is_aligned(whole, dataset) for dataset in below.values()):
            return {node_path: whole, **below}
        apart = {
            f"{prefix}/{name}": self.dataset_of_one(placed)
            for name, placed in layout.datasets.items()
        }
        nodes = dict(sorted({**apart, **below}.items()))
        return {node_path: xr.Dataset(attrs=whole.attrs), **nodes}

    def dataset_of_group(self, layout: Layout) -> xr.Dataset:
        """Make the Dataset of a group; an empty one if its N5 datasets do not agree."""
        if not layout.agrees:
            return xr.Dataset(attrs=dict(layout.attributes))
        variables = {p.name: self.variable(p) for p in layout.datasets.values()}
        return self.dataset(variables, layout.axes, layout.attributes)

    def dataset_of_one(self, placed: Placed) -> xr.Dataset:
        """Make the Dataset of one N5 dataset."""
        beside = placed.coordinates
        variables = {p.name: self.variable(p) for p in (placed, *beside.values())}
        axes = {d: (a, placed.sizes[d]) for d, a in placed.axes.items() if d not in variables}
        return self.dataset(variables, axes, {})

    def dataset(
        self,
        variables: Mapping[str, xr.Variable],
        axes: Mapping[str, tuple[Axis, int]],
        attributes: Mapping[str, JSON],
    ) -> xr.Dataset:
        """Decode what xarray may have encoded, and add computed coordinates."""
        raw = xr.Dataset(variables, attrs=dict(attributes))
        decoded = xr.decode_cf(raw, **self.decoding)
        for name, variable in decoded.variables.items():
            before = raw.variables[name]
            if before.dims == variable.dims:  # decoding drops chunks and compressors
                variable.encoding = {**before.encoding, **variable.encoding}
        dropped = self.decoding.get("drop_variables") or ()
        dropped = {dropped} if isinstance(dropped, str) else set(dropped)
        for dim, (axis, size) in axes.items():
            if dim in dropped or dim not in decoded.dims:
                continue
            if self.lazy_coords and axis.labels is None:
                index = AffineIndex.along(dim, size, axis.scale, axis.translation)
                decoded = decoded.assign_coords(xr.Coordinates.from_xindex(index))
                decoded[dim].attrs.update({"units": axis.unit} if axis.unit else {})
            else:
                computed = coordinate(dim, axis, size)
                # the values of a single element do not give the distance to the next
                origin = Origin(store=self.opened, path=dim, scale=axis.scale)
                computed.encoding["source"] = origin
                decoded = decoded.assign_coords({dim: computed})
        decoded.encoding["source"] = str(self.opened)
        return decoded

    def variable(self, placed: Placed) -> xr.Variable:
        """Make the lazy variable of an N5 dataset."""
        _warn_of_problems(self.opened, placed)
        array = with_fast_path(
            zarr.open_array(self.opened, path=placed.path, mode="r", zarr_format=3)
        )
        attrs: dict[str, object] = {**placed.attributes}
        fill_value = attrs.get("_FillValue")
        if isinstance(fill_value, str) and array.dtype.kind in "fciu":
            attrs["_FillValue"] = FillValueCoder.decode(fill_value, array.dtype)
        wrapped = ZarrArrayWrapper(array)  # type: ignore[no-untyped-call] # xarray's
        data = indexing.LazilyIndexedArray(wrapped)
        # encode with plain Zarr's codecs: what ds.to_zarr writes is then read without n5zarr
        document = replace(placed.view, codecs="zarr", axis_order="C").document()
        value = cpu.Buffer.from_bytes(json.dumps(document).encode())
        plain = zarr.open_array(MemoryStore({"zarr.json": value}), mode="r", zarr_format=3)
        encoding = {
            "chunks": array.chunks,
            "preferred_chunks": dict(zip(placed.dims, array.chunks, strict=True)),
            "compressors": plain.compressors,
            "filters": plain.filters,
            "source": Origin(
                store=self.opened,
                path=placed.path,
                convention=None if placed.geometry is None else placed.geometry.convention,
                forced=self.convention,
                lazy_coords=self.lazy_coords,
            ),
        }
        return xr.Variable(placed.dims, data, attrs, encoding)
