"""Lay out the Zarr hierarchy that refers to a container: its groups, arrays and coordinates.

With coordinates, the groups are those that xarray's engine ``"n5"`` opens: datasets that share
their axes are arrays of one group, beside the positions along these axes. Other datasets, such as
the levels of a pyramid, each become a group of their own with one array. Without coordinates, each
dataset is an array at its own path.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from n5zarr.container.axes import Placed, read_layout, read_placed
from n5zarr.container.coords_view import Coordinate
from n5zarr.container.nodes import Nodes
from n5zarr.conventions.model import Axis
from n5zarr.conventions.zarr_order import in_order_of_zarr
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.format.raw_json import nonfinite_note, strict
from n5zarr.storage.requests import Steps, Warn, each_once
from n5zarr.store.missing_nodes import existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.chunk_grid import ChunkGrid
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import ZarrFormat

_LONGEST = 2**20  # positions of an axis; the references hold all of them

type _Frame = dict[str, tuple[int, Axis | str | None]]
"""Size and positions of each dimension; the path of a dataset stands for those that it holds."""


@dataclass(frozen=True, kw_only=True)
class VirtualGroup:
    """A group of the hierarchy, and its attributes."""

    path: str
    attributes: Mapping[str, JSON]

    def documents(self, zarr_format: ZarrFormat) -> dict[str, JSON]:
        """Make the Zarr documents of the group, by name."""
        attributes = dict(self.attributes)
        if zarr_format == 2:
            return {".zgroup": {"zarr_format": 2}, ".zattrs": attributes}
        return {"zarr.json": {"zarr_format": 3, "node_type": "group", "attributes": attributes}}


@dataclass(frozen=True, kw_only=True)
class VirtualArray:
    """An array of the hierarchy whose chunks are blocks of a dataset.

    Parameters
    ----------
    path : str
        In the hierarchy.
    source : str
        Path of the dataset.
    view : DatasetView
        The dataset as an array of plain Zarr, in C order.
    dims : tuple of str or None
        Names of the dimensions; empty if they have none.
    attributes : mapping
        Attributes of the array.
    """

    path: str
    source: str
    view: DatasetView
    dims: tuple[str | None, ...]
    attributes: Mapping[str, JSON]

    @property
    def n_chunks(self) -> int:
        """Number of chunks of the grid, missing ones too."""
        return math.prod(self.view.grid)

    def documents(self, zarr_format: ZarrFormat) -> dict[str, JSON]:
        """Make the Zarr documents of the array, by name; ``zarr_format`` is that of the view."""
        attributes = dict(self.attributes)
        names: JSON = list(self.dims)
        if zarr_format == 2:
            with_names = attributes | (
                {"_ARRAY_DIMENSIONS": names} if self.dims and None not in self.dims else {}
            )
            return {".zarray": self.view.v2_document(), ".zattrs": with_names}
        document = {**self.view.v3_document(), "attributes": attributes}
        document.pop("dimension_names", None)
        return {"zarr.json": document | ({"dimension_names": names} if names else {})}


@dataclass(frozen=True, kw_only=True)
class VirtualCoordinate:
    """The positions along an axis, as an array of one chunk."""

    path: str
    coordinate: Coordinate

    @property
    def chunk(self) -> bytes | None:
        """The bytes of the chunk; None for an axis without elements."""
        size = self.coordinate.size
        return self.coordinate.chunk(0, size) if size else None

    def documents(self, zarr_format: ZarrFormat) -> dict[str, JSON]:
        """Make the Zarr documents of the array, by name."""
        document = self.coordinate.document(max(self.coordinate.size, 1))
        if zarr_format == 3:
            return {"zarr.json": document}
        is_text = document["data_type"] == "string"
        array: JSON = {
            "zarr_format": 2,
            "shape": document["shape"],
            "chunks": [max(self.coordinate.size, 1)],
            "dtype": "|O" if is_text else "<f8",
            "compressor": None,
            "filters": [{"id": "vlen-utf8"}] if is_text else None,
            "fill_value": None,
            "order": "C",
        }
        attributes: dict[str, JSON] = {"_ARRAY_DIMENSIONS": [self.coordinate.dim]}
        if self.coordinate.unit:
            attributes["units"] = self.coordinate.unit
        return {".zarray": array, ".zattrs": attributes}


type VirtualMember = VirtualGroup | VirtualArray | VirtualCoordinate


def members_of(
    store: N5Store, path: str, *, coords: bool, chunk_grid: ChunkGrid = "regular"
) -> list[VirtualMember]:
    """Read a node and all nodes below it, and lay them out; each group precedes its members.

    Parameters
    ----------
    store : N5Store
        The container; its format is that of the hierarchy.
    path : str
        Path of the node, which becomes the root. A dataset becomes an array in the root.
    coords : bool
        Whether axes become coordinates.
    chunk_grid : {"regular", "rectilinear"}, optional
        Whether chunks at the end of an axis are truncated.

    Raises
    ------
    FileNotFoundError
        No node exists at the path.
    """
    node = existing_node(store, path)
    tree = _Tree(store.container.nodes, coords=coords, chunk_grid=chunk_grid)
    if isinstance(node, GroupAttributes):
        members = store.run(each_once(tree.group(path, "", node)))[0]
    else:
        members = store.run(each_once(tree.root(path, node)))
    attributes = {m.path: m.attributes for m in members if not isinstance(m, VirtualCoordinate)}
    store.container.warn(nonfinite_note(attributes))
    return [
        m if isinstance(m, VirtualCoordinate) else replace(m, attributes=strict(m.attributes))
        for m in members
    ]


@dataclass(frozen=True)
class _Tree:
    nodes: Nodes
    coords: bool
    chunk_grid: ChunkGrid

    def group(
        self, source: str, path: str, group: GroupAttributes
    ) -> Steps[tuple[list[VirtualMember], list[_Frame]]]:
        """Lay out a group; return its members, and the dimensions of each group in it."""
        layout = yield from read_layout(self.nodes, source, group)
        yield [Warn(f"omitted: {child.error}") for child in layout.broken]
        below: list[VirtualMember] = []
        frames: list[_Frame] = []
        for name, child in sorted(layout.groups.items()):
            members, inner = yield from self.group(join(source, name), join(path, name), child)
            below += members
            frames += inner
        own = _frame_of(layout.path, layout.datasets)
        datasets = layout.datasets.values()
        here: list[VirtualMember] = []
        if not self.coords:
            here += [self.array(p, path, p.path.rpartition("/")[2]) for p in datasets]
        elif layout.agrees and all(_is_aligned(own, frame) for frame in frames):
            here += [self.array(p, path, p.name) for p in datasets]
            used = {*layout.groups, *(p.name for p in datasets)}
            here += yield from _coordinates(layout.axes, path, used)
            frames.append(own)
        else:
            for name, placed in layout.datasets.items():
                inner_path = join(path, name)
                here.append(VirtualGroup(path=inner_path, attributes={}))
                here += yield from self.alone(placed, inner_path)
                frames.append(_frame_of(layout.path, {name: placed}))
        attributes: Mapping[str, JSON] = layout.attributes
        if not self.coords:
            views = [m.view for m in [*here, *below] if isinstance(m, VirtualArray)]
            view = max(views, key=lambda each: each.ndim, default=None)
            attributes = group.attributes if view is None else _own(group.attributes, view)
        return [VirtualGroup(path=path, attributes=attributes), *here, *below], frames

    def root(self, path: str, view: DatasetView) -> Steps[list[VirtualMember]]:
        """Lay out a dataset as an array in the root."""
        placed = yield from read_placed(self.nodes, path, view)
        return [VirtualGroup(path="", attributes={}), *(yield from self.alone(placed, ""))]

    def alone(self, placed: Placed, path: str) -> Steps[list[VirtualMember]]:
        """Lay out a dataset as the only array of a group that is laid out already."""
        if not self.coords:
            return [self.array(placed, path, placed.path.rpartition("/")[2] or "data")]
        each = (placed, *placed.coordinates.values())
        members: list[VirtualMember] = [self.array(p, path, p.name) for p in each]
        axes = {dim: (axis, placed.sizes[dim]) for dim, axis in placed.axes.items()}
        return members + (yield from _coordinates(axes, path, {p.name for p in each}))

    def array(self, placed: Placed, path: str, name: str) -> VirtualArray:
        view = _plain(placed.view, self.chunk_grid)
        own = placed.attributes if self.coords else _own(view.attributes, view)
        return VirtualArray(
            path=join(path, name),
            source=placed.path,
            view=view,
            dims=placed.dims if self.coords else view.dimension_names or (),
            attributes=own,
        )


def _own(attributes: Mapping[str, JSON], view: DatasetView) -> dict[str, JSON]:
    """Return the attributes of a dataset, or of a group that holds it, for Zarr."""
    return in_order_of_zarr(attributes, view.ndim, view.dimension_names)


def _plain(view: DatasetView, chunk_grid: ChunkGrid) -> DatasetView:
    """Return a dataset as an array with the codecs that its blocks have, in C order.

    Codecs that a Zarr array was created with are kept only for elements that N5 lacks: the blocks
    of others are not theirs.
    """
    record = view.record
    if view.kind.is_native:
        record = replace(record, codecs=None, v2=None)
    return replace(
        view, codecs="zarr", axis_order="C", record=record, given=None, chunk_grid=chunk_grid
    )


def _coordinates(
    axes: Mapping[str, tuple[Axis, int]], path: str, used: set[str]
) -> Steps[list[VirtualMember]]:
    """Make the coordinates of axes whose names are not used."""
    members: list[VirtualMember] = []
    for dim, (axis, size) in axes.items():
        if dim in used:
            continue
        if size > _LONGEST:
            yield [Warn(f"{path or '/'}: {dim!r} has {size} positions: it gets no coordinate")]
            continue
        members.append(
            VirtualCoordinate(path=join(path, dim), coordinate=Coordinate(dim, axis, size))
        )
    return members


def _frame_of(path: str, datasets: Mapping[str, Placed]) -> _Frame:
    """Return size and positions of each dimension of datasets of a group."""
    return {
        dim: (size, join(path, dim) if dim in placed.coordinates else placed.axes.get(dim))
        for placed in datasets.values()
        for dim, size in placed.sizes.items()
    }


def _is_aligned(above: _Frame, below: _Frame) -> bool:
    """Whether a group and one below agree: in xarray, the lower one inherits coordinates."""
    for dim, (size, axis) in above.items():
        other_size, other = below.get(dim, (size, None))
        if size != other_size or (None not in (axis, other) and axis != other):
            return False
    return True
