"""``xr.open_dataset(..., engine="n5")``: N5 datasets with their axes as coordinates.

What ``group`` may name:

- a dataset: one variable, named like it, ``data`` at the root;
- a group whose datasets agree in the axes that they share: one Dataset of all; one-dimensional ones
  that are named like an axis are its coordinates;
- a group whose datasets do not agree, such as a pyramid: an empty Dataset with a warning; in a
  DataTree each of its datasets is a node of its own. So it is where a group holds datasets and,
  deeper, others that do not agree with them, which no DataTree can hold otherwise.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

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
from n5zarr.xarray.accessor import Origin  # so that there is ds.n5, too
from n5zarr.xarray.affine_index import AffineIndex

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from n5zarr.container.axes import Layout, Placed
    from n5zarr.container.memory import Node
    from n5zarr.conventions.model import Axis
    from n5zarr.format.order import AxisOrder

__all__ = ["N5BackendEntrypoint", "coordinate", "is_aligned", "warn_of"]


class N5BackendEntrypoint(BackendEntrypoint):
    """N5 containers for xarray."""

    description: ClassVar[str] = "Open N5 containers with axes and units as coordinates"
    url: ClassVar[str] = "https://github.com/saalfeldlab/n5"
    supports_groups: ClassVar[bool] = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:  # noqa: ANN401 - as xarray has it
        """Say whether this looks like N5: a ``.n5`` in the path, or an ``attributes.json``."""
        if isinstance(filename_or_obj, N5Store):
            return True
        if not isinstance(filename_or_obj, str | os.PathLike):
            return False
        text = os.fspath(filename_or_obj)
        if any(name.endswith(".n5") for name in text.replace("\\", "/").split("/")):
            return True
        return "://" not in text and (Path(local_path(text)) / ATTRIBUTES_JSON).is_file()

    def open_dataset(  # noqa: PLR0913 - xarray's options and ours
        self,
        filename_or_obj: Any,  # noqa: ANN401 - as xarray has it
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
        storage_options: dict[str, Any] | None = None,
    ) -> xr.Dataset:
        """Open a dataset or a group; see the module for what of it is shown.

        Parameters
        ----------
        filename_or_obj : path, URL, zarr store or N5Store
            A container, or anywhere in one.
        mask_and_scale, decode_times, concat_characters, decode_coords, use_cftime, \
decode_timedelta : optional
            As in :func:`xarray.decode_cf`. Coordinates that are computed from a convention are not
            decoded: time in seconds stays numbers.
        drop_variables : str or iterable of str, optional
            Variables to leave out.
        group : str, optional
            Path of the dataset or group.
        axis_order : {"C", "F"}, optional
            ``"C"``: dimensions ``z, y, x``. ``"F"``: ``x, y, z``.
        convention : str, optional
            The only convention of axes to try.
        lazy_coords : bool, optional
            Whether coordinates are computed when asked for, for axes too long to hold. They can be
            selected and sliced; see :class:`~n5zarr.affine_index.AffineIndex` for what they cannot.
        storage_options : dict, optional
            For fsspec, with a URL.
        """
        source = _Source.open(filename_or_obj, group, axis_order, convention, storage_options)
        decoding = {
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
            return source.single(
                source.opened.ask(
                    read_placed(source.opened.container.nodes, source.path, node, convention)
                )
            )
        layout = source.layout(source.path, node)
        if not layout.agrees:
            message = (
                f"{source.opened}: {source.path or '/'}: its datasets do not share their axes: "
                "open one of them by group=, or all with xr.open_datatree: "
                f"{', '.join(layout.datasets)}"
            )
            warnings.warn(message, N5Warning, stacklevel=2)
        return source.together(layout)

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,  # noqa: ANN401 - as xarray has it
        *,
        group: str | None = None,
        axis_order: AxisOrder = "C",
        convention: str | None = None,
        lazy_coords: bool = False,
        storage_options: dict[str, Any] | None = None,
        **decoding: Any,  # noqa: ANN401 - the other options of open_dataset
    ) -> dict[str, xr.Dataset]:
        """Open everything below a group; see :meth:`open_dataset`."""
        source = _Source.open(filename_or_obj, group, axis_order, convention, storage_options)
        source = replace(source, lazy_coords=lazy_coords, decoding=decoding)
        node = source.node()
        if not isinstance(node, GroupAttributes):
            placed = source.opened.ask(
                read_placed(source.opened.container.nodes, source.path, node, convention)
            )
            return {"/": source.single(placed)}
        return source.groups(source.path, node, "/")

    def open_datatree(
        self,
        filename_or_obj: Any,  # noqa: ANN401 - as xarray has it
        **options: Any,  # noqa: ANN401 - those of open_groups_as_dict
    ) -> xr.DataTree:
        """Open everything below a group as a tree, a pyramid with one node for each level."""
        return xr.DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **options))


def coordinate(dim: Hashable, axis: Axis, size: int) -> xr.Variable:
    """Compute the coordinate of an axis.

    Parameters
    ----------
    dim : str
        Its dimension.
    axis : Axis
        Where its elements lie.
    size : int
        How many they are.
    """
    if axis.labels is not None:
        return xr.Variable((dim,), np.array(axis.labels))
    return xr.Variable((dim,), positions(axis, size), {"units": axis.unit} if axis.unit else {})


def warn_of(opened: N5Store, placed: Placed) -> None:
    """Say what was written of the axes of a dataset that cannot be meant."""
    if placed.problems:
        message = f"{opened}: {placed.path or '/'}: {'; '.join(placed.problems)}"
        warnings.warn(message, N5Warning, stacklevel=3)


def is_aligned(above: xr.Dataset, below: xr.Dataset) -> bool:
    """Whether two nodes of a tree can stand above each other: one inherits from the other."""
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
    """A container, what of it is wanted, and how."""

    opened: N5Store
    path: str
    convention: str | None
    lazy_coords: bool = False
    decoding: Mapping[str, Any]

    @classmethod
    def open(
        cls,
        source: Any,  # noqa: ANN401 - whatever xarray is given
        group: str | None,
        axis_order: AxisOrder,
        convention: str | None,
        storage_options: dict[str, Any] | None,
    ) -> _Source:
        known = {name for name, _ in CONVENTIONS}
        if convention not in (None, *known):
            message = f"convention: expected one of {', '.join(sorted(known))}, got {convention!r}"
            raise N5UnrepresentableError(message, kind="option")
        found, path = open_container(
            source, group or "", axis_order=axis_order, storage_options=storage_options
        )
        # whatever a store object that was given shows
        opened = N5Store(found.store, codecs="n5", read_only=True, axis_order=found.axis_order)
        return cls(opened=opened, path=path, convention=convention, decoding={})

    def node(self) -> Node:
        node = self.opened.node(self.path)
        if node is None:
            message = f"{self.opened}: /{self.path}: expected a group or dataset, got nothing there"
            raise FileNotFoundError(message)
        return node

    def layout(self, path: str, group: GroupAttributes) -> Layout:
        """Read a group; what cannot be shown causes a warning."""
        layout = self.opened.ask(
            read_layout(self.opened.container.nodes, path, group, self.convention)
        )
        for broken in layout.broken:
            message = f"{self.opened}: left out: {broken.error}"
            warnings.warn(message, N5Warning, stacklevel=2)
        return layout

    def groups(self, path: str, group: GroupAttributes, shown: str) -> dict[str, xr.Dataset]:
        """Open everything below a group, by path below the first one."""
        layout = self.layout(path, group)
        whole = self.together(layout)
        below = {
            found: dataset
            for name, child in sorted(layout.groups.items())
            for found, dataset in self.groups(
                join(path, name), child, f"{shown.rstrip('/')}/{name}"
            ).items()
        }
        if layout.agrees and all(is_aligned(whole, dataset) for dataset in below.values()):
            return {shown: whole, **below}
        apart = {
            f"{shown.rstrip('/')}/{name}": self.single(placed)
            for name, placed in layout.datasets.items()
        }
        return {shown: xr.Dataset(attrs=whole.attrs), **dict(sorted({**apart, **below}.items()))}

    def together(self, layout: Layout) -> xr.Dataset:
        """Make the Dataset of a group, an empty one where its datasets do not agree."""
        if not layout.agrees:
            return xr.Dataset(attrs=dict(layout.attributes))
        variables = {p.name: self.variable(p) for p in layout.datasets.values()}
        return self.dataset(variables, layout.axes, layout.attributes)

    def single(self, placed: Placed) -> xr.Dataset:
        """Make the Dataset of one dataset."""
        beside = placed.coordinates
        variables = {p.name: self.variable(p) for p in (placed, *beside.values())}
        axes = {d: (a, placed.sizes[d]) for d, a in placed.axes.items() if d not in variables}
        return self.dataset(variables, axes, {})

    def dataset(
        self,
        variables: Mapping[str, xr.Variable],
        axes: Mapping[str, tuple[Axis, int]],
        attributes: Mapping[str, Any],
    ) -> xr.Dataset:
        """Decode what xarray may have written, and put computed coordinates beside it."""
        raw = xr.Dataset(variables, attrs=dict(attributes))
        decoded = xr.decode_cf(raw, **self.decoding)
        for name, variable in decoded.variables.items():
            before = raw.variables[name]
            if before.dims == variable.dims:  # how arrays are kept is not lost
                variable.encoding = {**before.encoding, **variable.encoding}
        dropped = self.decoding.get("drop_variables") or ()
        dropped = {dropped} if isinstance(dropped, str) else set(dropped)
        kept = {d: found for d, found in axes.items() if d not in dropped and d in decoded.dims}
        for dim, (axis, size) in kept.items():
            if self.lazy_coords and axis.labels is None:
                index = AffineIndex.along(dim, size, axis.scale, axis.translation)
                decoded = decoded.assign_coords(xr.Coordinates.from_xindex(index))
                decoded[dim].attrs.update({"units": axis.unit} if axis.unit else {})
            else:
                computed = coordinate(dim, axis, size)
                # so that it is known of a single element, too
                computed.encoding["source"] = Origin.of(self.opened, dim, scale=axis.scale)
                decoded = decoded.assign_coords({dim: computed})
        decoded.encoding["source"] = str(self.opened)
        return decoded

    def variable(self, placed: Placed) -> xr.Variable:
        """Make the lazy variable of a dataset."""
        warn_of(self.opened, placed)
        array = with_fast_path(
            zarr.open_array(self.opened, path=placed.path, mode="r", zarr_format=3)
        )
        attrs: dict[str, Any] = placed.attributes
        if isinstance(attrs.get("_FillValue"), str) and array.dtype.kind in "fciu":
            attrs["_FillValue"] = FillValueCoder.decode(attrs["_FillValue"], array.dtype)
        wrapped = ZarrArrayWrapper(array)  # type: ignore[no-untyped-call] # xarray's
        data = indexing.LazilyIndexedArray(wrapped)
        # what plain Zarr would say, so that writing Zarr needs no n5zarr to be read
        document = replace(placed.view, codecs="zarr", axis_order="C").document()
        value = cpu.Buffer.from_bytes(json.dumps(document).encode())
        plain = zarr.open_array(MemoryStore({"zarr.json": value}), mode="r", zarr_format=3)
        encoding = {
            "chunks": array.chunks,
            "preferred_chunks": dict(zip(placed.dims, array.chunks, strict=True)),
            "compressors": plain.compressors,
            "filters": plain.filters,
            "source": Origin.of(
                self.opened,
                placed.path,
                convention=None if placed.geometry is None else placed.geometry.convention,
                forced=self.convention,
                lazy_coords=self.lazy_coords,
            ),
        }
        return xr.Variable(placed.dims, data, attrs, encoding)
