"""Open N5 datasets with their axes as coordinates: ``xr.open_dataset(..., engine="n5")``.

``group`` may be the path of:

- a dataset: gives one variable with the name of the dataset, ``data`` at the root;
- a group whose datasets agree in the axes that they share: gives one Dataset of all of them.
  One-dimensional datasets with the name of an axis are its coordinates;
- a group with datasets only in groups below it: gives an empty Dataset, and a warning that names
  some of them;
- a group whose datasets do not agree, such as a pyramid: gives an empty Dataset and a warning. In a
  DataTree each of its datasets is a node of its own. The same holds for a group whose datasets
  agree, but not with those of a group below it: no DataTree can hold both in one node.

BigDataViewer's XML opens as the tree of :func:`n5zarr.open_bdv`; ``group`` is a node of it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypedDict, Unpack

import xarray as xr
from xarray.backends import BackendEntrypoint
from xarray.backends.zarr import FillValueCoder
from xarray.conventions import decode_cf_variables
from zarr.abc.codec import ArrayArrayCodec, BytesBytesCodec

from n5zarr._zarr import xarray_indexing
from n5zarr.arrays.group import as_zarr, standard_codecs, with_fast_path
from n5zarr.container.axes import GroupLayout, Placed, read_layout, read_placed
from n5zarr.container.coords_view import LONGEST_AXIS, TOO_LONG
from n5zarr.container.options import require
from n5zarr.conventions.axis_names import XARRAY_KEY
from n5zarr.conventions.find import BY_NAME
from n5zarr.conventions.model import Axis
from n5zarr.errors import ErrorsAt, N5Warning
from n5zarr.format.attributes import ATTRIBUTES_JSON, GroupAttributes
from n5zarr.format.foreign import format_of_name
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import AxisOrder
from n5zarr.format.path import join
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.place import Backend, Location, Place, place_of
from n5zarr.storage.requests import Steps, each_once
from n5zarr.storage.url import local_path
from n5zarr.store.locating import open_container
from n5zarr.store.missing_nodes import check_group, datasets_below, not_found
from n5zarr.store.n5_store import N5Store
from n5zarr.xarray.accessor import Origin  # this import registers ds.n5, too
from n5zarr.xarray.documents import first_of, is_document, open_views
from n5zarr.xarray.lazy_arrays import LazyArray, preferred_chunks
from n5zarr.xarray.positions import coordinate
from n5zarr.zarr_view.dataset_view import DatasetView


class Decoding(TypedDict, total=False):
    """Hold the options of :func:`xarray.decode_cf`."""

    mask_and_scale: bool
    decode_times: bool
    concat_characters: bool
    decode_coords: bool
    drop_variables: str | Iterable[Hashable] | None
    use_cftime: bool | None
    decode_timedelta: bool | None


class GroupOptions(Decoding, total=False):
    """Hold options of :meth:`N5BackendEntrypoint.open_groups_as_dict`."""

    group: str | None
    axis_order: AxisOrder
    convention: str | None
    storage_options: Mapping[str, object] | None
    backend: Backend | None


class N5BackendEntrypoint(BackendEntrypoint):
    """Open N5 for xarray: the engine ``"n5"``."""

    description: ClassVar[str] = "n5zarr: open N5 containers with axes and units as coordinates"
    url: ClassVar[str] = "docs/xarray.md of n5zarr"  # the project has no address of its own yet
    supports_groups: ClassVar[bool] = True

    def guess_can_open(self, filename_or_obj: object) -> bool:
        """Return whether this looks like N5: a ``.n5`` in the path, or an ``attributes.json``."""
        if isinstance(filename_or_obj, N5Store):
            return True
        if not isinstance(filename_or_obj, str | os.PathLike):
            return False
        if is_document(filename_or_obj):
            return True
        text = os.fspath(filename_or_obj)
        if any(format_of_name(name) == "n5" for name in text.replace("\\", "/").split("/")):
            return True
        return "://" not in text and (Path(local_path(text)) / ATTRIBUTES_JSON).is_file()

    def open_dataset(  # type: ignore[override] # noqa: PLR0913 - xarray lists options singly
        self,
        filename_or_obj: Location,
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
        storage_options: Mapping[str, object] | None = None,
        backend: Backend | None = None,
    ) -> xr.Dataset:
        """Open a dataset or a group; the module's description lists what a group may be.

        Parameters
        ----------
        filename_or_obj : path, URL, zarr store or N5Store
            A container, a location in one, or BigDataViewer's XML.
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
        storage_options, backend : optional
            Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.
        """
        place = place_of(filename_or_obj, storage_options, backend)
        if views := open_views(place, group, axis_order):
            return first_of(views, drop_variables)
        decoding: Decoding = {
            "mask_and_scale": mask_and_scale,
            "decode_times": decode_times,
            "concat_characters": concat_characters,
            "decode_coords": decode_coords,
            "drop_variables": drop_variables,
            "use_cftime": use_cftime,
            "decode_timedelta": decode_timedelta,
        }
        with asking_once():
            return _NodeReader.open(place, group, axis_order, convention, decoding).read_dataset()

    def open_groups_as_dict(  # type: ignore[override]
        self,
        filename_or_obj: Location,
        *,
        group: str | None = None,
        axis_order: AxisOrder = "C",
        convention: str | None = None,
        storage_options: Mapping[str, object] | None = None,
        backend: Backend | None = None,
        **decoding: Unpack[Decoding],
    ) -> dict[str, xr.Dataset]:
        """Open everything below a group; see :meth:`open_dataset`."""
        place = place_of(filename_or_obj, storage_options, backend)
        if views := open_views(place, group, axis_order):
            return views
        with asking_once():
            source = _NodeReader.open(place, group, axis_order, convention, decoding)
            found = source.read(deep=True)
        if isinstance(found, Placed):
            return {"/": source.dataset_of_one(found)}
        return _without_names_of_groups(source.groups(found, "/"))

    def open_datatree(  # type: ignore[override] # as above
        self,
        filename_or_obj: Location,
        **options: Unpack[GroupOptions],
    ) -> xr.DataTree:
        """Open everything below a group as a tree; a pyramid has one node for each level."""
        return xr.DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **options))


def _without_names_of_groups(groups: dict[str, xr.Dataset]) -> dict[str, xr.Dataset]:
    """Leave out coordinates that have the name of a group below: a tree holds one of both."""
    for path in groups.keys() - {"/"}:
        above, _, name = path.rpartition("/")
        if name in groups.get(above or "/", ()):
            groups[above or "/"] = groups[above or "/"].drop_vars(name)
    return groups


def _has_fill_of_v2(view: DatasetView) -> bool:
    """Return whether the fill value is one that was written through Zarr v2.

    zarr writes 0 where none is given, and xarray null: only from xarray 0 means missing.
    """
    record = view.record
    is_v2 = record.zarr_format == 2 or record.v2 is not None
    is_xarrays = XARRAY_KEY in view.dataset.attributes and "fill_value" in (record.v2 or {})
    return is_v2 and (is_xarrays or not view.kind.fill_is_zero)


def is_aligned(above: xr.Dataset, below: xr.Dataset) -> bool:
    """Return whether a child node may inherit the coordinates of its parent."""
    for dim in above.dims:
        if dim in below.dims:
            if above.sizes[dim] != below.sizes[dim]:
                return False
            indexes = above.xindexes.get(dim), below.xindexes.get(dim)
            if None not in indexes and not indexes[0].equals(indexes[1]):  # type: ignore[union-attr]
                return False
    return True


class _Branch(NamedTuple):
    """Hold a group, and the groups below it if they were read."""

    layout: GroupLayout
    below: dict[str, _Branch]


@dataclass(frozen=True, kw_only=True)
class _NodeReader:
    """Open a node of a container, with given options."""

    store: N5Store
    path: str
    convention: str | None
    decoding: Decoding

    @classmethod
    def open(
        cls,
        place: Place,
        group: str | None,
        axis_order: AxisOrder,
        convention: str | None,
        decoding: Decoding,
    ) -> _NodeReader:
        known = sorted(BY_NAME)
        require(
            convention in (None, *known),
            f"convention: expected one of {', '.join(known)}, got {convention!r}",
        )
        store, path = open_container(place, group or "", axis_order=axis_order, writes=False)
        if store is place.location:  # which may show other codecs, or coordinates
            store = N5Store(store.store, codecs="n5", read_only=True, axis_order=store.axis_order)
        return cls(
            store=store,
            path=path,
            convention=convention,
            decoding=decoding,
        )

    def read_dataset(self) -> xr.Dataset:
        """Open the dataset or group at the path."""
        found = self.read()
        if isinstance(found, Placed):
            return self.dataset_of_one(found)
        self.warn_of_levels(found.layout)
        return self.dataset_of_group(found.layout)

    def read(self, *, deep: bool = False) -> Placed | _Branch:
        """Read the dataset or group at the path, each document once.

        Parameters
        ----------
        deep : bool, optional
            Whether to read the groups below, too.
        """
        found = self.store.run(each_once(self._reading(deep=deep)))
        if found is None:
            raise not_found(self.store, self.path)
        if isinstance(found, _Branch) and not found.layout.datasets:
            check_group(self.store, self.path)
        return found

    def _reading(self, *, deep: bool) -> Steps[Placed | _Branch | None]:
        """Read the dataset or group at the path; None if nothing is there."""
        container = self.store.container
        node = yield from container.node(self.path)
        if node is None:
            return None
        if isinstance(node, GroupAttributes):
            return (yield from self._branch(self.path, node, deep=deep))
        return (yield from read_placed(container.nodes, self.path, node, self.convention))

    def _branch(self, path: str, group: GroupAttributes, *, deep: bool) -> Steps[_Branch]:
        """Read the datasets of a group, and with ``deep`` the groups below it."""
        nodes = self.store.container.nodes
        layout = yield from read_layout(nodes, path, group, self.convention)
        below: dict[str, _Branch] = {}
        for name, child in sorted(layout.groups.items()) if deep else ():
            below[name] = yield from self._branch(join(path, name), child, deep=True)
        return _Branch(layout, below)

    def warn(self, problem: str) -> None:
        """Warn of a problem in the container."""
        warnings.warn(f"{self.store}: {problem}", N5Warning, stacklevel=4)

    def warn_of_levels(self, layout: GroupLayout) -> None:
        """Warn of a group whose datasets do not fit into one Dataset."""
        path = layout.path or "/"
        if layout.groups and not layout.datasets:
            below = datasets_below(self.store, layout.path)
            self.warn(
                f"{path}: no dataset is directly in this group: open one below with group=, or all "
                f"with xr.open_datatree: {below}"
                if below
                else f"{path}: no dataset is in this group or below it; the directory of a dataset "
                "has an attributes.json"
            )
        if not layout.agrees:
            self.warn(
                f"{path}: its datasets do not share their axes: open one of them with group=, or "
                f"all with xr.open_datatree: {', '.join(layout.datasets)}"
            )

    def groups(self, branch: _Branch, node_path: str) -> dict[str, xr.Dataset]:
        """Open a group and everything below it, by path in the tree.

        Parameters
        ----------
        branch : _Branch
            The group.
        node_path : str
            Of the group's node in the tree.
        """
        layout = branch.layout
        whole = self.dataset_of_group(layout)
        prefix = node_path.rstrip("/")
        below: dict[str, xr.Dataset] = {}
        for name, child in branch.below.items():
            below |= self.groups(child, f"{prefix}/{name}")
        if layout.agrees and all(is_aligned(whole, dataset) for dataset in below.values()):
            return {node_path: whole, **below}
        apart = {
            f"{prefix}/{name}": self.dataset_of_one(placed)
            for name, placed in layout.datasets.items()
        }
        nodes = dict(sorted({**apart, **below}.items()))
        return {node_path: xr.Dataset(attrs=whole.attrs), **nodes}

    def dataset_of_group(self, layout: GroupLayout) -> xr.Dataset:
        """Make the Dataset of a group; an empty one if its N5 datasets do not agree.

        Warns of children that are left out.
        """
        for broken in layout.broken:
            self.warn(f"omitted: {broken.error}")
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
        """Decode variables that xarray encoded, and add computed coordinates."""
        stored, attrs, coord_names = decode_cf_variables(
            variables, dict(attributes), **self.decoding
        )
        decoded: dict[str, xr.Variable] = {str(name): var for name, var in stored.items()}
        for name, variable in decoded.items():
            before = variables[name]
            if before.dims == variable.dims:  # decoding drops chunks and compressors
                variable.encoding = {**before.encoding, **variable.encoding}
        dims = {dim for variable in decoded.values() for dim in variable.dims}
        dropped = self.decoding.get("drop_variables") or ()
        dims -= {dropped} if isinstance(dropped, str) else set(dropped)
        dataset = xr.Dataset(decoded, attrs=attrs).set_coords(coord_names & decoded.keys())
        for dim, (axis, size) in axes.items():
            if dim not in dims:
                continue
            if size > LONGEST_AXIS:
                self.warn(f"{dim!r} {TOO_LONG.format(size)}")
            else:
                computed = coordinate(dim, axis, size)
                # the position of a single element does not give the distance to the next
                computed.encoding["source"] = Origin(store=self.store, path=dim, scale=axis.scale)
                dataset = dataset.assign_coords({dim: computed})
        dataset.encoding["source"] = str(self.store)
        return dataset

    def variable(self, placed: Placed) -> xr.Variable:
        """Make the lazy variable of an N5 dataset."""
        if placed.problems:
            self.warn(f"{placed.path or '/'}: {'; '.join(placed.problems)}")
        array: Any = with_fast_path(as_zarr(self.store, placed.path, placed.view))
        attrs: dict[str, object] = {**placed.attributes}
        if array.dtype.kind in "fciu" and _has_fill_of_v2(placed.view):
            attrs.setdefault("_FillValue", array.fill_value)  # in v2 xarray reads it only here
        fill_value = attrs.get("_FillValue")
        if isinstance(fill_value, str) and array.dtype.kind in "fciu":
            attrs["_FillValue"] = FillValueCoder.decode(fill_value, array.dtype)
        data = xarray_indexing().LazilyIndexedArray(LazyArray(array))
        # encode with plain Zarr's codecs, so that the result of ds.to_zarr needs no n5zarr
        with ErrorsAt(f"{self.store}: {placed.path or '/'}"):
            codecs = standard_codecs(placed.view)
        encoding = {
            "chunks": array.chunks,
            "preferred_chunks": preferred_chunks(placed.dims, array.shape, array.chunks),
            "compressors": tuple(c for c in codecs if isinstance(c, BytesBytesCodec)),
            "filters": tuple(c for c in codecs if isinstance(c, ArrayArrayCodec)),
            "source": Origin(
                store=self.store,
                path=placed.path,
                convention=None if placed.geometry is None else placed.geometry.convention,
                forced=self.convention,
            ),
        }
        return xr.Variable(placed.dims, data, attrs, encoding)
