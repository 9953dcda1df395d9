"""``N5Parser``: parse N5 containers for VirtualiZarr.

Documentation: https://virtualizarr.readthedocs.io/en/stable/custom_parsers.html. VirtualiZarr's
manifests have regular chunk grids only, so truncated blocks are kept in memory, padded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from zarr.storage import ObjectStore

from n5zarr._zarr import ArrayV3Metadata
from n5zarr.errors import import_optional
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import present
from n5zarr.format.path import join, normalize_path
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.jobs.run import RunOptions, Scheduler
from n5zarr.tools.virtualize.layout import VirtualArray, VirtualGroup, VirtualMember, members_of
from n5zarr.tools.virtualize.references import MAX_INLINED, each_chunk

_DOTS: JSON = {"name": "default", "configuration": {"separator": "."}}  # as VirtualiZarr lists


@dataclass(frozen=True)
class N5Parser:
    """Parse an N5 container into VirtualiZarr's ``ManifestStore``.

    N5 spec, "File-system specification", items 8 and 9; see :func:`n5zarr.virtualize` for chunks
    that become references, and chunks that are copied.

    Parameters
    ----------
    group : str, optional
        Node below the URL, which becomes the root.
    coords : bool, optional
        Whether axes become coordinates, as with xarray's engine ``"n5"``.
    max_inlined : int, optional
        Maximum number of bytes of copied chunks.
    scheduler, n_workers : optional
        Where to read the headers, as for :func:`n5zarr.virtualize`.

    Examples
    --------
    >>> import n5zarr, virtualizarr
    >>> from obspec_utils.registry import ObjectStoreRegistry
    >>> from obstore.store import LocalStore
    >>> registry = ObjectStoreRegistry({"file://": LocalStore()})
    >>> url = f"file://{n5zarr.sample_path()}"
    >>> dataset = virtualizarr.open_virtual_dataset(
    ...     url, registry=registry, parser=n5zarr.N5Parser(group="em/s1")
    ... )
    >>> dict(dataset.sizes), dataset.x.attrs["units"]
    ({'z': 20, 'y': 48, 'x': 64}, 'nm')
    """

    group: str = ""
    coords: bool = True
    max_inlined: int = MAX_INLINED
    scheduler: Scheduler = None
    n_workers: int | None = None

    def __call__(self, url: str, registry: Any) -> Any:  # noqa: ANN401 - the extra may be missing
        """Parse the container at a URL.

        Parameters
        ----------
        url : str
            A container, or a node in one.
        registry : ObjectStoreRegistry
            Finds the store of obstore's that reads the URL.

        Returns
        -------
        virtualizarr.manifests.ManifestStore
            Groups and arrays of the container.

        Raises
        ------
        FileNotFoundError
            No node is there.
        N5UnsupportedError
            The copied chunks have more bytes than ``max_inlined`` (``kind="option"``).
        N5Error
            A node or a block is damaged.
        """
        manifests = import_optional("virtualizarr.manifests", "N5Parser", "virtual")
        store, found = registry.resolve(url)
        below = str(found).strip("/")
        root = url.rstrip("/").removesuffix(below)
        container = N5Store(ObjectStore(store, read_only=True), codecs="n5", zarr_format=3)
        path = join(normalize_path(below), normalize_path(self.group))
        members = members_of(container, path, coords=self.coords)
        entries = self._entries(container, members, root if root.endswith("/") else f"{root}/")
        return manifests.ManifestStore(_tree(manifests, members, entries), registry=registry)

    def _entries(
        self, store: N5Store, members: list[VirtualMember], root: str
    ) -> dict[str, dict[str, dict[str, object]]]:
        """Make the entries of manifests for all chunks, by path of the array and key."""
        entries: dict[str, dict[str, dict[str, object]]] = {}
        run = RunOptions(self.scheduler, self.n_workers)
        for array, chunks in each_chunk(store, members, run, self.max_inlined, Counter()):
            of_array = entries.setdefault(array.path, {})
            for chunk in chunks:
                at = {"path": f"{root}{chunk.key}", "offset": chunk.offset, "length": chunk.length}
                key = ".".join(map(str, chunk.coords)) or "c"
                of_array[key] = at if chunk.data is None else _inlined(chunk.data)
        return entries


def _tree(
    manifests: ModuleType,
    members: list[VirtualMember],
    entries: Mapping[str, dict[str, dict[str, object]]],
) -> Any:  # noqa: ANN401 - as above
    """Make the root group from members; each group precedes its members."""
    arrays: dict[str, dict[str, object]] = {}
    groups: dict[str, dict[str, object]] = {}
    for member in reversed(members):
        above, _, name = member.path.rpartition("/")
        if isinstance(member, VirtualGroup):
            made = manifests.ManifestGroup(
                arrays=_in_order(arrays.pop(member.path, {})),
                groups=_in_order(groups.pop(member.path, {})),
                attributes=dict(member.attributes),
            )
            if not member.path:
                return made
            groups.setdefault(above, {})[name] = made
            continue
        document = dict(member.documents(3)["zarr.json"])  # type: ignore[arg-type] # an object
        metadata = ArrayV3Metadata.from_dict({**document, "chunk_key_encoding": _DOTS})
        if isinstance(member, VirtualArray):
            grid = present(member.view.grid, "C") if member.view.ndim else ()
            of_array = entries.get(member.path, {})
        else:
            grid = (min(member.coordinate.size, 1),)
            of_array = {} if member.chunk is None else {"0": _inlined(member.chunk)}
        manifest = manifests.ChunkManifest(of_array, shape=grid)
        arrays.setdefault(above, {})[name] = manifests.ManifestArray(
            metadata=metadata, chunkmanifest=manifest
        )
    raise AssertionError("no group at the root")


def _in_order(members: dict[str, object]) -> dict[str, object]:
    return dict(reversed(members.items()))


def _inlined(data: bytes) -> dict[str, object]:
    return {"path": "", "offset": 0, "length": len(data), "data": data}
