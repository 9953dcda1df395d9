"""Present a hierarchy of OME-Zarr as N5: images with the levels ``s0``, ``s1``, ...

The documents are those of ``n5zarr.convert`` to N5. Groups and other arrays keep their paths.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, override

import zarr
from zarr.abc.store import Store

from n5zarr.container.options import require
from n5zarr.conventions.axis_names import AXES_KEY, XARRAY_KEY
from n5zarr.conventions.model import MisfitError
from n5zarr.errors import N5Error, N5FormatError, N5UnsupportedError, option_error
from n5zarr.format.attributes import dataset_keys
from n5zarr.format.foreign import ZARR_DOCUMENTS
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import CTuple, to_n5
from n5zarr.format.path import groups_above, is_name, join
from n5zarr.images.find import warn_once
from n5zarr.images.ome_documents import (
    OmeLevel,
    describe_image,
    images_of,
    level_paths,
    named_nodes,
    ome_part,
    paths_in,
    read_levels,
)
from n5zarr.ome_zarr.scene import Scene, images_needed, placed, read_scene
from n5zarr.shown.made_datasets import MadeDataset, MadeDatasets
from n5zarr.shown.zarr_datasets import open_zarr_array, read_node, zarr_dataset
from n5zarr.storage.confined import confined
from n5zarr.storage.services import service_of
from n5zarr.zarr_view.keys import ZarrFormat

_DOCUMENTS = {*ZARR_DOCUMENTS, ".zattrs", ".zmetadata"}
_MOST_SERIES = 1000  # that are looked for where nothing lists them


@dataclass(frozen=True)
class _Group:
    """A group of Zarr, or a directory without a document.

    Parameters
    ----------
    attributes : mapping or None
        Its attributes in OME-Zarr; None for a directory.
    document : bytes, optional
        Its document in N5; None for a directory.
    levels : mapping, optional
        The levels of the image that it is, by name in N5.
    taken : mapping, optional
        The name in N5 of each array that is a level of this group or one above, by path in Zarr.
    scene : Scene, optional
        Its scene, or the nearest one above it.
    named : sequence of str, optional
        Paths of the nodes below it that its metadata name.
    """

    attributes: Mapping[str, JSON] | None
    document: bytes | None = None
    levels: Mapping[str, MadeDataset] = field(default_factory=dict)
    taken: Mapping[str, str] = field(default_factory=dict)
    scene: Scene | None = None
    named: Sequence[str] = ()


class OmeImages(MadeDatasets):
    """A hierarchy of OME-Zarr as a container of N5, read only.

    Parameters
    ----------
    store : Store
        The store of the hierarchy, read only.
    name : str
        Where it is, for messages.
    zarr_format : {3, 2}
        Its format.
    """

    refusal = "expected only reading of OME-Zarr as N5; n5zarr.convert copies it to N5"

    def __init__(self, store: Store, name: str, zarr_format: ZarrFormat) -> None:
        super().__init__()
        self.store = store
        self.name = name
        self.zarr_format = zarr_format
        self._known: dict[str, _Group | MadeDataset] = {}

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OmeImages) and self.store == other.store

    __hash__ = None  # as zarr's own stores

    def __reduce__(self) -> tuple[Any, ...]:  # without memory
        return OmeImages, (self.store, self.name, self.zarr_format)

    @override
    def confined(self) -> OmeImages:
        return OmeImages(confined(self.store), self.name, self.zarr_format)

    async def n5_path(self, path: str) -> str:
        """Return the path in N5 of a node, which may be given by its path in Zarr."""
        for above in groups_above(path):
            group = await self._node(above)
            if isinstance(group, _Group) and path in group.taken:
                return group.taken[path]
        return path

    # ------------------------------------------------------------------ nodes

    @override
    async def _dataset(self, path: str) -> tuple[str, MadeDataset] | None:
        for at in (*groups_above(path), path):
            node = await self._node(at)
            if isinstance(node, MadeDataset):
                return at, node
        return None

    @override
    async def _group(self, path: str) -> bytes | None:
        node = await self._node(path)
        return node.document if isinstance(node, _Group) else None

    async def _node(self, path: str) -> _Group | MadeDataset:
        """Return the node at a path; the groups above it are read first."""
        if path not in self._known:
            self._known[path] = await self._read(path)
        return self._known[path]

    async def _read(self, path: str) -> _Group | MadeDataset:
        group, _, name = path.rpartition("/")
        above = await self._node(group) if path else _Group(None)
        if isinstance(above, MadeDataset) or path in above.taken:
            return above.levels.get(name, _Group(None)) if isinstance(above, _Group) else above
        if name in above.levels:
            return above.levels[name]
        found = await read_node(self.store, path, self.name, self.zarr_format)
        image = images_of(placed(group, above.attributes or {}, above.scene)[0]).get(name)
        if found is not None and found.is_array:
            array = await open_zarr_array(self.store, path, self.name, self.zarr_format)
            if array is not None:
                return self._plain(path, array)
        try:
            if name and image is not None:
                attributes: Mapping[str, JSON] | None = {"multiscales": [dict(image)]}
                return await self._as_group(path, attributes, _Group(None), group)
            attributes = None if found is None else found.attributes or {}
            return await self._as_group(path, attributes, above, path)
        except MisfitError as err:
            raise option_error(f"{join(self.name, path)}: {err}") from err

    async def _as_group(
        self, path: str, attributes: Mapping[str, JSON] | None, above: _Group, holder: str
    ) -> _Group:
        """Describe a group as N5 does.

        Parameters
        ----------
        path : str
            Of the group in N5.
        attributes : mapping or None
            Its attributes in OME-Zarr; None for a directory.
        above : _Group
            The group above it, whose names and scene it shares.
        holder : str
            The group of Zarr that has the arrays: for an image after its first, the one above.

        Raises
        ------
        MisfitError
            Its ``multiscales`` does not fit the arrays.
        N5FormatError
            A level does not exist (``kind="not-found"``).
        """
        if attributes is None:
            return _Group(None, taken=above.taken, scene=above.scene)
        scene = await self._scene(path, attributes) or above.scene
        shown, notes = placed(path, attributes, scene)
        warn_once(self.name, notes)
        images = images_of(shown)
        image = images.get("", {})
        arrays = await self._arrays_of(holder, level_paths(image))
        levels = read_levels(image, {inner: array.shape for inner, array in arrays.items()})
        own = {
            join(holder, each): join(path, name, f"s{number}")
            for name, other in reversed(images.items())  # of an array of two images, the first
            for number, each in enumerate(paths_in(other.get("datasets")))
        }
        described = dict(shown)
        if levels:
            inside = {each.path.split("/")[0] for each in levels.values()}
            others = sorted(await self._listed(path) - inside)
            nodes = await asyncio.gather(
                *(read_node(self.store, join(path, n), self.name, self.zarr_format) for n in others)
            )
            is_alone = all(node is None for node in nodes)
            described = describe_image(shown, path, levels, is_alone=is_alone)
        return _Group(
            attributes,
            json.dumps(described).encode(),
            {each.name: self._level(holder, each, arrays[each.path]) for each in levels.values()},
            {**above.taken, **own},
            scene,
            named_nodes(attributes),
        )

    async def _scene(self, path: str, attributes: Mapping[str, JSON]) -> Scene | None:
        """Read the scene of a group, and the images without which it is not known."""
        needed = [join(path, inner) for inner in images_needed(attributes)]
        nodes = await asyncio.gather(
            *(read_node(self.store, each, self.name, self.zarr_format) for each in needed)
        )
        found = {
            each: node.attributes or {} for each, node in zip(needed, nodes, strict=True) if node
        }
        return read_scene(path, attributes, found)

    def _plain(self, path: str, array: zarr.AsyncArray[Any]) -> _Group | MadeDataset:
        """Return an array that is no level; with other types than N5's, a broken document."""
        try:
            return zarr_dataset(array, join(self.name, path), attributes=_named_axes(array))
        except N5UnsupportedError:
            keys = {"dimensions": to_n5(CTuple(array.shape)), "dataType": str(array.dtype)}
            size = {"blockSize": to_n5(CTuple(array.chunks)), "compression": {"type": "raw"}}
            return _Group({}, json.dumps({**keys, **size}).encode())

    async def _arrays_of(self, path: str, levels: Sequence[str]) -> dict[str, zarr.AsyncArray[Any]]:
        opened = await asyncio.gather(
            *(
                open_zarr_array(self.store, join(path, each), self.name, self.zarr_format)
                for each in levels
            )
        )
        found: dict[str, zarr.AsyncArray[Any]] = {}
        for each, array in zip(levels, opened, strict=True):
            if array is None:
                message = f"expected the array {each!r}, which multiscales lists, got none"
                raise N5FormatError(message, kind="not-found", where=join(self.name, path))
            found[each] = array
        return found

    def _level(self, path: str, level: OmeLevel, array: zarr.AsyncArray[Any]) -> MadeDataset:
        own = {AXES_KEY: [axis.name for axis in level.axes], **_own(array)}
        placed = {**own, **level.written.on_dataset(_own(array))}
        return zarr_dataset(array, join(self.name, path, level.path), attributes=placed)

    # ------------------------------------------------------------------ names

    @override
    async def _children(self, path: str) -> Sequence[str]:
        group = await self._node(path)
        if isinstance(group, MadeDataset):
            return []
        listed = await self._listed(path)
        wanted = listed | await self._named(path)
        if not listed and ome_part(group.attributes or {}, "bioformats2raw.layout") is not None:
            wanted |= await self._numbered(path)
        others = sorted(name for name in wanted if join(path, name) not in group.taken)
        made = [*filter(None, images_of(group.attributes or {})), *group.levels]
        taken = [name for name in others if name in made]
        require(
            not taken,
            f"{join(path, *taken[:1])}: expected a name that no level needs in N5; rename it first",
            self.name,
        )
        there = await asyncio.gather(*(self._is_there(join(path, name)) for name in others))
        found = [name for name, is_there in zip(others, there, strict=True) if is_there]
        return [*found, *made]

    async def _is_there(self, path: str) -> bool:
        try:
            node = await self._node(path)
        except N5Error:  # which readers of this node get
            return True
        if isinstance(node, MadeDataset) or node.attributes is not None:
            return True
        return bool(await self._named(path))

    async def _named(self, path: str) -> set[str]:
        """Return the names in a group that its metadata, or that of a group above, name."""
        found: set[str] = set()
        for above in (*groups_above(path), path):
            group = await self._node(above)
            if isinstance(group, _Group) and group.attributes is not None:
                inside = f"{path}/".removeprefix(f"{above}/").lstrip("/")
                listed = [*group.named, *await self._series(above, group)]
                below = [each.removeprefix(inside) for each in listed if each.startswith(inside)]
                found |= {each.partition("/")[0] for each in below}
        return found

    async def _series(self, path: str, group: _Group) -> list[str]:
        """Return the paths of the images that a collection lists in its group ``OME``."""
        if ome_part(group.attributes or {}, "bioformats2raw.layout") is None:
            return []
        found = await self._node(join(path, "OME"))
        attributes = found.attributes if isinstance(found, _Group) else None
        return [] if attributes is None else paths_in(ome_part(attributes, "series"))

    async def _numbered(self, path: str) -> set[str]:
        """Return the names of the images ``0``, ``1``, ... of a collection that nothing lists."""
        found: set[str] = set()
        for number in map(str, range(_MOST_SERIES)):
            node = await self._node(join(path, number))
            if not isinstance(node, _Group) or node.attributes is None:
                break
            found.add(number)
        return found

    async def _listed(self, path: str) -> set[str]:
        """List the directories in a group, if the store lists any."""
        try:
            entries = await service_of(self.store).entries(path)
        except FileNotFoundError:
            return set()
        except N5UnsupportedError as err:
            if err.kind != "listing":
                raise
            return set()
        names = {entry.name for entry in entries or () if entry.is_dir is not False}
        return {name for name in names if is_name(name)} - _DOCUMENTS


def _own(array: zarr.AsyncArray[Any]) -> dict[str, JSON]:
    """Return the attributes of an array that can be those of a dataset."""
    left_out = {XARRAY_KEY, *dataset_keys(array.attrs)}
    return {key: value for key, value in array.attrs.items() if key not in left_out}


def _named_axes(array: zarr.AsyncArray[Any]) -> dict[str, JSON]:
    """Return the attributes of an array, with the names of its axes, N5 order."""
    is_v3 = array.metadata.zarr_format == 3
    names: Any = array.metadata.dimension_names if is_v3 else array.attrs.get(XARRAY_KEY)
    is_named = isinstance(names, list | tuple) and all(isinstance(n, str) and n for n in names)
    return {**({AXES_KEY: [*to_n5(names)]} if is_named else {}), **_own(array)}
