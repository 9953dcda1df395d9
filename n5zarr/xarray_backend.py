"""``xr.open_dataset(..., engine="n5")``: N5 datasets with their axes as coordinates.

What ``group`` may name:

- a dataset: one variable, named like it, ``data`` at the root;
- a group whose datasets agree in the axes that they share: one Dataset of all; one-dimensional ones
  that are named like an axis are its coordinates;
- a group whose datasets do not agree, such as a pyramid: an empty Dataset with a warning; in a
  DataTree each of its datasets is a node of its own.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import xarray as xr
import zarr
from xarray.backends import BackendEntrypoint
from xarray.backends.zarr import FillValueCoder, ZarrArrayWrapper
from xarray.core import indexing

from n5zarr._zarr_compat import sync
from n5zarr.containers import open_container
from n5zarr.errors import N5Warning
from n5zarr.format.attributes import ATTRIBUTES_JSON, GroupAttributes
from n5zarr.format.order import AxisOrder, present
from n5zarr.format.path import join, local_path
from n5zarr.geometry import read_geometry
from n5zarr.hierarchy import Broken
from n5zarr.store import N5Store
from n5zarr.translate.presentation import Presentation

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from n5zarr.conventions.model import Axis
    from n5zarr.hierarchy import Node

__all__ = ["N5BackendEntrypoint"]

# of the axes: shown as dimensions and coordinates
_SHOWN_ELSEWHERE = ("axes", "_ARRAY_DIMENSIONS")


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
        storage_options: dict[str, Any] | None = None,
    ) -> xr.Dataset:
        """Open a dataset or a group; see the module for what of it is shown.

        Parameters
        ----------
        filename_or_obj : path, URL, zarr store or N5Store
            A container, or anywhere in one.
        mask_and_scale, decode_times, concat_characters, decode_coords, use_cftime, \
decode_timedelta : optional
            As in :func:`xarray.decode_cf`.
        drop_variables : str or iterable of str, optional
            Variables to leave out.
        group : str, optional
            Path of the dataset or group.
        axis_order : {"C", "F"}, optional
            ``"C"``: dimensions ``z, y, x``. ``"F"``: ``x, y, z``.
        convention : str, optional
            The only convention of axes to try.
        storage_options : dict, optional
            For fsspec, with a URL.
        """
        source = _Source.open(filename_or_obj, group, axis_order, convention, storage_options)
        node = source.node()
        children = source.children(source.path) if isinstance(node, GroupAttributes) else []
        found, left_out = source.dataset(source.path, node, children)
        if left_out:
            message = (
                f"{source.opened}: {source.path or '/'}: its datasets do not share their axes: "
                f"open one of them by group=, or all with xr.open_datatree: {', '.join(left_out)}"
            )
            warnings.warn(message, N5Warning, stacklevel=2)
        return _decoded(
            found,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            drop_variables=drop_variables,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,  # noqa: ANN401 - as xarray has it
        *,
        group: str | None = None,
        axis_order: AxisOrder = "C",
        convention: str | None = None,
        storage_options: dict[str, Any] | None = None,
        **decoding: Any,  # noqa: ANN401 - the other options of open_dataset
    ) -> dict[str, xr.Dataset]:
        """Open everything below a group; see :meth:`open_dataset`."""
        source = _Source.open(filename_or_obj, group, axis_order, convention, storage_options)
        found = source.groups(source.path, source.node(), "/")
        return {path: _decoded(dataset, **decoding) for path, dataset in found.items()}

    def open_datatree(
        self,
        filename_or_obj: Any,  # noqa: ANN401 - as xarray has it
        **options: Any,  # noqa: ANN401 - those of open_groups_as_dict
    ) -> xr.DataTree:
        """Open everything below a group as a tree, a pyramid with one node for each level."""
        return xr.DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **options))


def _decoded(dataset: xr.Dataset, **options: Any) -> xr.Dataset:  # noqa: ANN401
    """Decode what xarray may have written, without losing how arrays are kept."""
    decoded = xr.decode_cf(dataset, **options)
    for name, variable in decoded.variables.items():
        raw = dataset.variables[name]
        if raw.dims == variable.dims:
            variable.encoding = {**raw.encoding, **variable.encoding}
    return decoded


@dataclass(frozen=True, kw_only=True)
class _Source:
    """A container, and what of it is wanted."""

    opened: N5Store
    plain: N5Store
    path: str
    convention: str | None

    @classmethod
    def open(
        cls,
        source: Any,  # noqa: ANN401 - whatever xarray is given
        group: str | None,
        axis_order: AxisOrder,
        convention: str | None,
        storage_options: dict[str, Any] | None,
    ) -> _Source:
        found, path = open_container(
            source, group or "", axis_order=axis_order, storage_options=storage_options
        )
        # whatever a store object that was given shows
        how: dict[str, Any] = {"read_only": True, "axis_order": found.axis_order}
        opened, plain = N5Store(found.store, codecs="n5", **how), N5Store(found.store, **how)
        return cls(opened=opened, plain=plain, path=path, convention=convention)

    def node(self) -> Node:
        node = sync(self.opened.read_node(self.path))
        if node is None:
            message = f"{self.opened}: /{self.path}: expected a group or dataset, got nothing there"
            raise FileNotFoundError(message)
        return node

    def children(self, path: str) -> list[tuple[str, Node]]:
        """Find the sound children of a group; the others cause a warning."""
        children = []
        for name, child in sync(self.opened.run(self.opened.hierarchy.children(path))):
            if not isinstance(child, Broken):
                children.append((name, child))
                continue
            message = f"{self.opened}: left out: {child.error}"
            warnings.warn(message, N5Warning, stacklevel=2)
        return children

    def groups(self, path: str, node: Node, shown: str) -> dict[str, xr.Dataset]:
        """Open everything below a node, by path below the first one."""
        children = self.children(path) if isinstance(node, GroupAttributes) else []
        dataset, left_out = self.dataset(path, node, children)
        found = {shown: dataset}
        for name, child in children:
            if isinstance(child, GroupAttributes) or name in left_out:
                below = f"{shown.rstrip('/')}/{name}"
                found |= self.groups(join(path, name), child, below)
        return found

    def dataset(
        self, path: str, node: Node, children: Sequence[tuple[str, Node]]
    ) -> tuple[xr.Dataset, list[str]]:
        """Make the Dataset of a node, and name the datasets that do not fit into it."""
        if isinstance(node, Presentation):
            name = path.rpartition("/")[2] or "data"
            variable, coords = self.variable(path, node)
            return xr.Dataset({name: variable}, coords=coords), []
        arrays = {
            name: self.variable(join(path, name), child)
            for name, child in children
            if isinstance(child, Presentation)
        }
        attrs = dict(node.attributes)
        if not _agree(arrays):
            return xr.Dataset(attrs=attrs), list(arrays)
        coords = {name: c for _, found in arrays.values() for name, c in found.items()}
        variables = {name: variable for name, (variable, _) in arrays.items()}
        return xr.Dataset(
            variables, {k: v for k, v in coords.items() if k not in variables}, attrs
        ), []

    def variable(
        self, path: str, shown: Presentation
    ) -> tuple[xr.Variable, dict[Hashable, xr.Variable]]:
        """Make the lazy variable of a dataset, and the coordinates of its axes."""
        array = zarr.open_array(self.opened, path=path, mode="r", zarr_format=3)
        plain = zarr.open_array(self.plain, path=path, mode="r", zarr_format=3)
        geometry = read_geometry(self.opened, path, shown, self.convention)
        axes = present(geometry.axes, shown.axis_order) if geometry is not None else ()
        if len(axes) != array.ndim:  # parts of an element are no axis
            axes = ()
        names: Sequence[str | None] = [axis.name for axis in axes] or shown.dimension_names or ()
        dims = [name or f"dim_{i}" for i, name in enumerate(names or [None] * array.ndim)]
        attrs = {
            name: value
            for name, value in shown.attributes.items()
            if name not in _SHOWN_ELSEWHERE and (name != "units" or isinstance(value, str))
        }
        if isinstance(attrs.get("_FillValue"), str) and array.dtype.kind in "fciu":
            attrs["_FillValue"] = FillValueCoder.decode(attrs["_FillValue"], array.dtype)  # type: ignore[arg-type]
        wrapped = ZarrArrayWrapper(array)  # type: ignore[no-untyped-call] # xarray's
        data = indexing.LazilyIndexedArray(wrapped)
        encoding = {
            "chunks": array.chunks,
            "preferred_chunks": dict(zip(dims, array.chunks, strict=True)),
            "compressors": plain.compressors,
            "filters": plain.filters,
        }
        named = zip(dims, axes, array.shape, strict=False) if _is_placed(axes) else ()
        coords: dict[Hashable, xr.Variable] = {
            dim: _coordinate(dim, axis, n) for dim, axis, n in named if dim == axis.name
        }
        return xr.Variable(dims, data, attrs, encoding), coords


def _is_placed(axes: Iterable[Axis]) -> bool:
    """Whether more is known of the axes than their names."""
    return any(
        axis.unit or axis.labels or (axis.scale, axis.translation) != (1, 0) for axis in axes
    )


def _coordinate(dim: str, axis: Axis, length: int) -> xr.Variable:
    if axis.labels is not None:
        return xr.Variable((dim,), np.array(axis.labels))
    values = axis.scale * np.arange(length) + axis.translation
    return xr.Variable((dim,), values, {"units": axis.unit} if axis.unit else {})


def _agree(
    arrays: Mapping[str, tuple[xr.Variable, Mapping[Hashable, xr.Variable]]],
) -> bool:
    """Whether equally named axes have equal sizes and coordinates."""
    sizes: dict[Hashable, int] = {}
    seen: dict[Hashable, xr.Variable] = {}
    for variable, coords in arrays.values():
        for dim, size in variable.sizes.items():
            if sizes.setdefault(dim, size) != size:
                return False
        for dim, coord in coords.items():
            if not seen.setdefault(dim, coord).identical(coord):  # type: ignore[no-untyped-call]
                return False
    # of one name, a variable of more than one dimension cannot be beside the axis
    return all(name not in sizes or v.dims == (name,) for name, (v, _) in arrays.items())
