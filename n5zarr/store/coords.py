"""A container as Zarr with its axes as coordinates, for ``xr.open_zarr``; nothing of it is stored.

What xarray makes a Dataset of is a group here:

- a group whose datasets agree in the axes that they share: they are its arrays;
- each dataset of any other group, such as a pyramid: a group with one array of its own name.

Beside the arrays stand one-dimensional ones with the positions along their axes, computed when they
are read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numcodecs.vlen import VLenUTF8
from zarr.buffer import cpu

from n5zarr.container.axes import Container, Layout, Placed, positions, read_layout, read_placed
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.path import join, normalize_path
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import DEFAULT_NAMES, ChunkKey, MetadataKey, parse_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from zarr.abc.buffer import Buffer

    from n5zarr.container.nodes import Node
    from n5zarr.conventions.model import Axis
    from n5zarr.format.lenient_json import JSON

__all__ = ["CoordsView"]

_CHUNK = 2**20
_LONGEST = 2**27  # xarray holds them all in memory
# what xarray takes for time since an event, or for a length of time, if it is a plural
_TIME = ("days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds")


class _Store(Container, Protocol):
    """What is needed of an :class:`~n5zarr.N5Store` that shows the container as it is."""

    async def read_node(self, path: str) -> Node | None: ...

    async def read_buffer(self, key: str) -> Buffer | None: ...

    async def exists(self, key: str) -> bool: ...

    async def keys_below(self, prefix: str) -> Sequence[str]: ...

    def warn(self, message: str) -> None: ...


@dataclass(frozen=True)
class _Coordinate:
    """Positions along an axis, as an array."""

    dim: str
    axis: Axis
    size: int

    def document(self) -> dict[str, JSON]:
        unit = self.axis.unit
        # what xarray would take for dates is left out
        shown = unit[:-1] if unit in _TIME else None if unit and " since " in unit else unit
        is_text = self.axis.labels is not None
        chunk = self.size if is_text else _CHUNK
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
            "attributes": {"units": shown} if shown else {},
            "dimension_names": [self.dim],
        }

    @property
    def n_chunks(self) -> int:
        return min(self.size, 1) if self.axis.labels is not None else -(-self.size // _CHUNK)

    def chunk(self, number: int) -> bytes:
        if self.axis.labels is not None:
            return bytes(VLenUTF8().encode(np.array(self.axis.labels, object)))
        values = positions(self.axis, _CHUNK, start=number * _CHUNK)
        return values.astype("<f8").tobytes()


_LITTLE: JSON = {"name": "bytes", "configuration": {"endian": "little"}}

type _Member = Placed | _Coordinate | None  # None is a group


@dataclass(frozen=True)
class CoordsView:
    """The keys of the hierarchy, for :class:`~n5zarr.N5Store` with ``coords=True``.

    Parameters
    ----------
    store : N5Store
        The container as it is.
    groups, attributes : dict, optional
        What was found in groups, by path; read anew with the document of the group.
    """

    store: _Store
    groups: dict[str, dict[str, _Member]] = field(default_factory=dict)
    attributes: dict[str, Mapping[str, JSON]] = field(default_factory=dict)

    async def get(self, key: str) -> Buffer | None:
        """Read a document or a chunk."""
        match parse_key(key, 3):
            case MetadataKey(path=path):
                document = await self._document(path)
                if document is not None:
                    return cpu.Buffer.from_bytes(json.dumps(document).encode())
            case ChunkKey(path=path, coords=coords):
                member = await self._member(path)
                if isinstance(member, Placed):
                    return await self.store.read_buffer(DEFAULT_NAMES[3].key(member.path, coords))
                if isinstance(member, _Coordinate) and coords[0] < member.n_chunks:
                    return cpu.Buffer.from_bytes(member.chunk(coords[0]))
            case None:
                pass
        return None

    async def exists(self, key: str) -> bool:
        """Whether there is a document or a chunk."""
        match parse_key(key, 3):
            case MetadataKey(path=path):
                return await self._document(path) is not None
            case ChunkKey(path=path, coords=coords):
                member = await self._member(path)
                if isinstance(member, Placed):
                    return await self.store.exists(DEFAULT_NAMES[3].key(member.path, coords))
                return isinstance(member, _Coordinate) and coords[0] < member.n_chunks
            case None:
                return False

    async def names(self, path: str) -> list[str]:
        """Name what lies directly below a path, sorted."""
        members = await self._members(path)
        if members is not None:
            return sorted(["zarr.json", *members])
        prefix = f"{path}/" if path else ""
        below = [key async for key in self.keys(path)]
        return sorted({key[len(prefix) :].split("/")[0] for key in below})

    async def keys(self, path: str) -> AsyncIterator[str]:
        """Name every key at and below a path."""
        members = await self._members(path)
        if members is not None:
            yield join(path, "zarr.json")
            for name in sorted(members):
                async for key in self.keys(join(path, name)):
                    yield key
            return
        above, _, inner = path.partition("/c/") if "/c/" in path else (path, "", "")
        member = await self._member(above) or await self._member(path.removesuffix("/c"))
        if isinstance(member, _Coordinate):
            found = [join(above, "zarr.json")]
            found += [DEFAULT_NAMES[3].key(above, (i,)) for i in range(member.n_chunks)]
        elif isinstance(member, Placed):
            below = await self.store.keys_below(member.path)
            at = path.removesuffix("/c") if not inner and path.endswith("/c") else above
            found = [join(at, key[len(member.path) :].lstrip("/")) for key in below]
        else:
            return
        for key in found:
            if key.startswith(f"{path}/"):
                yield key

    async def _document(self, path: str) -> dict[str, JSON] | None:
        path = normalize_path(path)
        found = await self._known_document(path)
        above = path.rpartition("/")[0]
        if found is None and path and above in self.groups:  # others may have made it
            del self.groups[above]
            found = await self._known_document(path)
        return found

    async def _known_document(self, path: str) -> dict[str, JSON] | None:
        member = await self._member(path)
        if isinstance(member, _Coordinate):
            return member.document()
        if isinstance(member, Placed):
            if member.problems:
                self.store.warn(f"{member.path or '/'}: {'; '.join(member.problems)}")
            names: JSON = list(member.dims)
            shown = {**member.shown.document(), "attributes": member.attributes}
            return shown | ({"dimension_names": names} if names else {})
        for known in [k for k in self.groups if k == path or k.startswith(f"{path}/") or not path]:
            del self.groups[known]
        if await self._members(path) is None:
            return None
        attributes: JSON = dict(self.attributes[path])
        return {"zarr_format": 3, "node_type": "group", "attributes": attributes}

    async def _member(self, path: str) -> _Member:
        """Find the array at a path; None where there is none."""
        above, _, name = path.rpartition("/")
        members = await self._members(above) if path else None
        return None if members is None else members.get(name)

    async def _members(self, path: str) -> dict[str, _Member] | None:
        """Find what is in a group; None where there is no group."""
        if path not in self.groups:
            found = await self._read(path)
            if found is None:
                return None
            self.groups[path] = found
        return self.groups[path]

    async def _read(self, path: str) -> dict[str, _Member] | None:
        node = await self.store.read_node(path)
        if isinstance(node, GroupAttributes):
            layout = await read_layout(self.store, path, node)
            self.attributes[path] = layout.attributes
            return self._of_group(layout)
        if not isinstance(node, DatasetView):
            return None
        if path:
            above, _, name = path.rpartition("/")
            members = await self._members(above)
            if members is None or name not in members or members[name] is not None:
                return None  # an array in its group
        self.attributes[path] = {}
        return self._alone(await read_placed(self.store, path, node))

    def _of_group(self, layout: Layout) -> dict[str, _Member]:
        members: dict[str, _Member] = dict.fromkeys([*layout.groups, *layout.datasets])
        if layout.agrees:
            members |= layout.datasets
            self._add(members, layout.axes)
        return members

    def _alone(self, placed: Placed) -> dict[str, _Member]:
        members: dict[str, _Member] = {p.name: p for p in (placed, *placed.coordinates.values())}
        sizes = placed.sizes
        self._add(members, {dim: (axis, sizes[dim]) for dim, axis in placed.axes.items()})
        return members

    def _add(self, members: dict[str, _Member], axes: Mapping[str, tuple[Axis, int]]) -> None:
        for dim, (axis, size) in axes.items():
            if size > _LONGEST and dim not in members:
                self.store.warn(
                    f"{dim!r} has {size} positions, which xarray would all hold: it is left "
                    "without; xr.open_dataset(..., engine='n5', lazy_coords=True) needs no memory"
                )
            else:
                members.setdefault(dim, _Coordinate(dim, axis, size))
