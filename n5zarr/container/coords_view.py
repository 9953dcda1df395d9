"""Present a container with its axes as coordinates: the keys of ``N5Store(..., coords=True)``.

xarray opens each group as a Dataset. So here

- each dataset is a group with one array of the same name: its path always opens;
- only a group that xarray wrote as one Dataset holds its datasets as arrays.

One-dimensional arrays beside these hold the positions along their axes. They are computed when they
are read; nothing is stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numcodecs.vlen import VLenUTF8

from n5zarr.codecs.buffers import BufferLike
from n5zarr.container.axes import GroupLayout, Placed, positions, read_layout, read_placed
from n5zarr.container.container import Container
from n5zarr.container.hierarchy import names_below
from n5zarr.conventions.model import Axis
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join, normalize_path
from n5zarr.storage.requests import Steps, Warn, each_once
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import DEFAULT_NAMES, ChunkKey, MetadataKey, ZarrFormat, parse_key

_CHUNK = 2**14  # positions; all have one size, so that an axis may grow while its array is open
LONGEST_AXIS = 2**27
"""Largest number of positions of an axis that gets a coordinate, which xarray loads: 1 GiB."""
TOO_LONG = (
    "gets no coordinate: its {} positions would fill the memory; select by index: sel takes "
    "indices along it, as isel does"
)
# units that xarray decodes as lengths of time; it does not decode the singular
_TIME = ("days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds")


@dataclass(frozen=True)
class Coordinate:
    """The positions along an axis, as a one-dimensional array."""

    dim: str
    axis: Axis
    size: int

    @property
    def unit(self) -> str | None:
        """The unit, if xarray does not decode it as dates; None without a unit."""
        unit = self.axis.unit
        if unit in _TIME:
            return unit[:-1]
        # xarray would decode the positions as dates
        return None if unit and " since " in unit else unit

    def document(self, size: int = _CHUNK) -> dict[str, JSON]:
        """Make the ``zarr.json``, with chunks of ``size`` positions."""
        unit = self.unit
        is_text = self.axis.labels is not None
        chunk = self.size if is_text else size
        codec: JSON = {"name": "vlen-utf8"} if is_text else _LITTLE
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [self.size],
            "data_type": "string" if is_text else "float64",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [max(chunk, 1)]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": "" if is_text else 0.0,
            "codecs": [codec],
            "attributes": {"units": unit} if unit else {},
            "dimension_names": [self.dim],
        }

    @property
    def n_chunks(self) -> int:
        """Number of chunks of the usual size."""
        return min(self.size, 1) if self.axis.labels is not None else -(-self.size // _CHUNK)

    def has_chunk(self, coords: Sequence[int]) -> bool:
        """Whether a chunk of the usual size exists."""
        return len(coords) == 1 and coords[0] < self.n_chunks

    def chunk(self, number: int, size: int = _CHUNK) -> bytes:
        """Return the ``size`` positions of one chunk; labels have one chunk."""
        if self.axis.labels is not None:
            return bytes(VLenUTF8().encode(np.array(self.axis.labels, object)))
        values = positions(self.axis, size, start=number * size)
        return values.astype("<f8").tobytes()


_LITTLE: JSON = {"name": "bytes", "configuration": {"endian": "little"}}

type Member = Placed | Coordinate | None  # None is a group


class _Group(NamedTuple):
    """The members of a group, by name, and its attributes."""

    members: dict[str, Member]
    attributes: Mapping[str, JSON]


class CoordsView:
    """The keys of a container with its axes as coordinates: ``N5Store(..., coords=True)``.

    Parameters
    ----------
    container : Container
        The container, presented as standard Zarr v3. The members of groups are remembered, and read
        again with the document of the group.
    """

    shows_consolidated = False  # xarray would warn about missing consolidated metadata

    def __init__(self, container: Container) -> None:
        self.container = container
        self._groups: dict[str, _Group] = {}

    def read(self, key: str) -> Steps[BufferLike | None]:
        """Read a document or a chunk."""
        match parse_key(key, 3):
            case MetadataKey(path=path):
                document = yield from each_once(self._document(path))
                return None if document is None else json.dumps(document).encode()
            case ChunkKey(path=path, coords=coords):
                member = yield from self._member(path)
                if isinstance(member, Placed):
                    return (
                        yield from self.container.read(DEFAULT_NAMES[3].key(member.path, coords))
                    )
                if isinstance(member, Coordinate) and member.has_chunk(coords):
                    return member.chunk(coords[0])
                return None
            case None:
                return None

    def exists(self, key: str) -> Steps[bool]:
        """Whether a document or a chunk exists."""
        match parse_key(key, 3):
            case MetadataKey(path=path):
                return (yield from each_once(self._document(path))) is not None
            case ChunkKey(path=path, coords=coords):
                member = yield from self._member(path)
                if isinstance(member, Placed):
                    return (
                        yield from self.container.exists(DEFAULT_NAMES[3].key(member.path, coords))
                    )
                return isinstance(member, Coordinate) and member.has_chunk(coords)
            case None:
                return False

    def dataset_of(
        self, path: str, zarr_format: ZarrFormat, *, anew: bool = False, as_blocks: bool = False
    ) -> Steps[tuple[str, DatasetView] | None]:
        """Read the dataset of an array; None for a coordinate."""
        member = yield from self._member(path)
        if not isinstance(member, Placed):
            return None
        found = self.container.dataset_of(member.path, zarr_format, anew=anew, as_blocks=as_blocks)
        return (yield from found)

    def is_empty(self, path: str) -> Steps[bool]:
        """Whether there is nothing below a path."""
        return not (yield from self._keys_below(path))

    def names(self, path: str) -> Steps[Sequence[str]]:
        """Return the names directly below a path, sorted."""
        members = yield from self._members(path)
        if members is not None:
            return sorted(["zarr.json", *members])
        return sorted((yield from names_below(self.keys_below(path), path)))

    def keys_below(self, path: str) -> Sequence[Steps[Sequence[str]]]:
        """Return one flow that returns every key in a directory."""
        return [self._keys_below(path)]

    def _keys_below(self, path: str) -> Steps[Sequence[str]]:
        members = yield from self._members(path)
        if members is not None:
            keys = [join(path, "zarr.json")]
            for name in sorted(members):
                keys += yield from self._keys_below(join(path, name))
            return keys
        above = path.partition("/c/")[0]
        member = yield from self._member(above)
        at = above if member else above.removesuffix("/c")
        member = member or (yield from self._member(at))
        if isinstance(member, Coordinate):
            keys = [join(at, "zarr.json")]
            keys += [DEFAULT_NAMES[3].key(at, (i,)) for i in range(member.n_chunks)]
        elif isinstance(member, Placed):
            keys = []
            for flow in self.container.keys_below(member.path):
                keys += [join(at, key[len(member.path) :].lstrip("/")) for key in (yield from flow)]
        else:
            return []
        return [key for key in keys if key.startswith(f"{path}/")]

    def _document(self, path: str) -> Steps[dict[str, JSON] | None]:
        path = normalize_path(path)
        document = yield from self._known_document(path)
        above = path.rpartition("/")[0]
        if document is None and path and above in self._groups:  # others may have created it
            self._groups.pop(above, None)
            document = yield from self._known_document(path)
        return document

    def _known_document(self, path: str) -> Steps[dict[str, JSON] | None]:
        node = None
        if path.rpartition("/")[0] not in self._groups:
            node = yield from self.container.node(path)
        # other nodes do not change what a group is: the group above need not be read
        is_group = isinstance(node, GroupAttributes)
        member = None if is_group else (yield from self._member(path))
        if isinstance(member, Coordinate):
            return member.document()
        if isinstance(member, Placed):
            if member.problems:
                yield [Warn(f"{member.path or '/'}: {'; '.join(member.problems)}")]
            names: JSON = list(member.dims)
            document = {**member.view.document(), "attributes": member.attributes}
            return document | ({"dimension_names": names} if names else {})
        for known in list(self._groups):
            if known == path or known.startswith(f"{path}/") or not path:
                self._groups.pop(known, None)
        group = yield from self._group(path)
        if group is None:
            return None
        attributes: JSON = dict(group.attributes)
        return {"zarr_format": 3, "node_type": "group", "attributes": attributes}

    def _member(self, path: str) -> Steps[Member]:
        """Return the array at a path, or None."""
        above, _, name = path.rpartition("/")
        members = (yield from self._members(above)) if path else None
        return None if members is None else members.get(name)

    def _members(self, path: str) -> Steps[dict[str, Member] | None]:
        """Return the members of a group, or None if the group does not exist."""
        group = yield from self._group(path)
        return None if group is None else group.members

    def _group(self, path: str) -> Steps[_Group | None]:
        if path not in self._groups:
            group = yield from self._read_group(path)
            if group is None:
                return None
            self._groups[path] = group
        return self._groups[path]

    def _read_group(self, path: str) -> Steps[_Group | None]:
        node = yield from self.container.node(path)
        nodes = self.container.nodes
        if isinstance(node, GroupAttributes):
            layout = yield from read_layout(nodes, path, node)
            return _Group((yield from _members_of_group(layout)), layout.attributes)
        if not isinstance(node, DatasetView):
            return None
        if path:
            above, _, name = path.rpartition("/")
            beside = yield from self._members(above)
            if beside is None or name not in beside or beside[name] is not None:
                return None  # the dataset is an array of the group above
        placed = yield from read_placed(nodes, path, node)
        return _Group((yield from _members_alone(placed)), {})


def _members_of_group(layout: GroupLayout) -> Steps[dict[str, Member]]:
    """Return the arrays and coordinates of a group that is a Dataset, else groups for datasets."""
    members: dict[str, Member] = dict.fromkeys([*layout.groups, *layout.datasets])
    if layout.is_written_by_xarray:
        members |= layout.datasets
        yield from _add_coordinates(members, layout.axes)
    return members


def _members_alone(placed: Placed) -> Steps[dict[str, Member]]:
    """Return the array and coordinates of a dataset that is presented as a group."""
    members: dict[str, Member] = {p.name: p for p in (placed, *placed.coordinates.values())}
    sizes = placed.sizes
    axes = {dim: (axis, sizes[dim]) for dim, axis in placed.axes.items()}
    yield from _add_coordinates(members, axes)
    return members


def _add_coordinates(
    members: dict[str, Member], axes: Mapping[str, tuple[Axis, int]]
) -> Steps[None]:
    """Add a coordinate for each axis; warn of an axis that is too long for xarray."""
    for dim, (axis, size) in axes.items():
        if size > LONGEST_AXIS and dim not in members:
            yield [Warn(f"{dim!r} {TOO_LONG.format(size)}")]
        else:
            members.setdefault(dim, Coordinate(dim, axis, size))
