"""The store: Zarr keys in, bytes out, and back.

It decides which translation a key needs and knows nothing else about bytes. Documents are made anew
for every request, since other programs may change ``attributes.json`` at any time; a chunk needs
its node's document too, so the last one of each node is kept, and travels in the pickle. So does
the document that an array was created with through this store: whoever holds the array goes on
writing chunks with its codecs.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args, override
from weakref import WeakValueDictionary

from zarr.abc.store import (
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
    SupportsSyncStore,
)
from zarr.buffer import cpu

from n5zarr._zarr_private import LocalStore
from n5zarr.codecs.compress import shows_cuts
from n5zarr.container.block_location import LocalDataset, Place, Shards
from n5zarr.container.nodes import Hierarchy
from n5zarr.container.updates import parse_document, remove_document, write_document
from n5zarr.errors import (
    N5BlockError,
    N5Error,
    N5UnrepresentableError,
    N5UnsupportedError,
    N5Warning,
)
from n5zarr.format.attributes import ATTRIBUTES_JSON, GroupAttributes
from n5zarr.format.block import BlockHeader
from n5zarr.format.grid import block_path
from n5zarr.format.order import AxisOrder
from n5zarr.format.path import join, normalize_path
from n5zarr.storage import files
from n5zarr.storage.cache import CacheOptions, CachingStore
from n5zarr.storage.requests import RemoveTree
from n5zarr.storage.store_io import (
    delete_sync,
    is_same_place,
    read_sync,
    run_async,
    run_sync,
    wrapped_store,
    write_sync,
)
from n5zarr.storage.url import Backend, tolerant
from n5zarr.store.coords import CoordsView
from n5zarr.store.mapping import StoreMapping
from n5zarr.zarr_view.dataset_view import Codecs, DatasetView
from n5zarr.zarr_view.keys import ChunkKey, MetadataKey, ZarrFormat

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from zarr.abc.buffer import Buffer, BufferPrototype
    from zarr.abc.store import ByteRequest

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.container.nodes import Node
    from n5zarr.format.lenient_json import JSON
    from n5zarr.format.order import N5Tuple
    from n5zarr.storage.requests import Steps

__all__ = ["N5Store"]


_REMOTE: object = "remote"  # documents there have no stamp
_JUST_LISTED = 2  # seconds for which what a listing read need not be read again


class N5Store(Store):
    """An N5 container as a Zarr store.

    Parameters
    ----------
    store : path, URL or zarr store
        The container: a local path, a URL that fsspec reads, or any :class:`zarr.abc.store.Store`
        whose keys are those of an N5 container. It is the root; nothing above it is looked at.
    read_only : bool, optional
        Whether writing is refused.
    codecs : {"zarr", "n5", "portable"}, optional
        ``"zarr"``: standard codecs, full-size blocks are passed through. ``"n5"``: n5zarr's own
        codec decodes whole blocks; errors then name the block. ``"portable"``: only codecs of the
        Zarr v3 specification; gzip with useZlib, bzip2, xz and lz4 are shown uncompressed.
    zarr_format : {3, 2}, optional
        Which documents and keys are shown.
    axis_order : {"C", "F"}, optional
        ``"C"``: ``dimensions [x, y, z]`` are shown as shape ``(z, y, x)``. ``"F"``: as ``(x, y,
        z)``.
    coords : bool, optional
        Whether axes are shown as coordinates, so that ``xr.open_zarr`` finds names, positions and
        units. Read only, Zarr v3. Each dataset of a group whose datasets do not share their axes,
        such as a pyramid, is then a group of its own: ``em/s0`` with the arrays ``s0``, ``z``,
        ``y`` and ``x``.
    storage_options : dict, optional
        For the backend, with a URL.
    backend : {"fsspec", "obstore"}, optional
        Which library reads and writes a URL.
    cache : CacheOptions, optional
        What of a remote container is kept in memory, and when it is asked for again.
    forbidden_is_missing : bool, optional
        Whether "forbidden" means "not there", as on S3 buckets that may be read but not listed.
        Otherwise it is an error.

    Raises
    ------
    N5UnrepresentableError
        An option has a value outside its vocabulary (``kind="option"``).

    Examples
    --------
    >>> import zarr, n5zarr
    >>> root = zarr.open(N5Store(n5zarr.sample_path()), mode="r")
    >>> root["em/s0"]
    <Array ...sample.n5/em/s0 shape=(40, 96, 128) dtype=uint8>
    """

    def __init__(  # noqa: PLR0913 - one keyword for each way of showing a container
        self,
        store: str | os.PathLike[str] | Store,
        *,
        read_only: bool = False,
        codecs: Codecs = "zarr",
        zarr_format: ZarrFormat = 3,
        axis_order: AxisOrder = "C",
        coords: bool = False,
        storage_options: dict[str, Any] | None = None,
        backend: Backend = "fsspec",
        cache: CacheOptions | None = None,
        forbidden_is_missing: bool = False,
    ) -> None:
        _check_option("codecs", codecs, get_args(Codecs.__value__))
        _check_option("zarr_format", zarr_format, get_args(ZarrFormat.__value__))
        _check_option("axis_order", axis_order, get_args(AxisOrder.__value__))
        if coords and zarr_format != 3:
            message = "coords=True: shown as Zarr v3 only; ds.to_zarr(..., zarr_format=2) writes v2"
            raise N5UnsupportedError(message, kind="option")
        if isinstance(store, N5Store):
            message = f"store: expected a container, got {store!r}, which shows one as Zarr already"
            raise N5UnrepresentableError(message, kind="option")
        _check_option("backend", backend, get_args(Backend.__value__))
        self._store = wrapped_store(store, storage_options, read_only=read_only, backend=backend)
        is_own = isinstance(self._store, LocalStore) and not isinstance(store, Store)
        is_read_only = (self._store.read_only and not is_own) or not _may_write(cache)
        super().__init__(read_only=read_only or is_read_only or coords)
        if forbidden_is_missing:
            self._store = tolerant(self._store)
        if cache is not None:
            if isinstance(self._store, LocalStore):
                message = "cache: expected a remote container; the system keeps local files"
                raise N5UnrepresentableError(message, kind="option")
            self._store = CachingStore(self._store, cache)
        self._hierarchy = Hierarchy(codecs=codecs, zarr_format=zarr_format, axis_order=axis_order)
        self._nodes: dict[str, Node] = {}
        self._served: dict[MetadataKey, bytes] = {}
        self._listed: dict[str, tuple[Node, float]] = {}
        self._stamps: dict[str, object] = {}
        self._root_checked = False
        self._has_root = False
        self.warned: set[str] = set()
        self._shards = Shards()
        self._locks = _PathLocks()
        self._view = CoordsView(self._copy(self._store, coords=False)) if coords else None

    # ------------------------------------------------------------------ identity

    @property
    def codecs(self) -> Codecs:
        """Which codecs are shown."""
        return self._hierarchy.codecs

    @property
    def zarr_format(self) -> ZarrFormat:
        """Which documents and keys are shown."""
        return self._hierarchy.zarr_format

    @property
    def axis_order(self) -> AxisOrder:
        """In which order axes are shown."""
        return self._hierarchy.axis_order

    @property
    def coords(self) -> bool:
        """Whether axes are shown as coordinates."""
        return self._view is not None

    @property
    def store(self) -> Store:
        """The wrapped store, with N5's keys."""
        return self._store

    @property
    def root(self) -> Path:
        """The resolved local path of the container.

        Raises
        ------
        AttributeError
            The container is not on a local file system.
        """
        if isinstance(self._store, LocalStore):
            return Path(self._store.root)
        message = f"{self}: no local path"
        raise AttributeError(message)

    def __str__(self) -> str:
        return str(self._store.root) if isinstance(self._store, LocalStore) else str(self._store)

    def __repr__(self) -> str:
        shown = {"codecs": "zarr", "zarr_format": 3, "axis_order": "C", "coords": False}
        given = [
            f"{n}={getattr(self, n)!r}"
            for n, default in shown.items()
            if getattr(self, n) != default
        ]
        return f"N5Store({', '.join([repr(str(self)), *given])})"

    def __eq__(self, value: object) -> bool:
        """Whether it is a store of the same container, whatever its options.

        zarr asks before it overwrites an array with itself.
        """
        return isinstance(value, N5Store) and is_same_place(self._store, value._store)

    __hash__ = None  # type: ignore[assignment] # as zarr's own stores

    @override
    def with_read_only(self, read_only: bool = False) -> Self:
        wrapped = self._store
        cache = wrapped.options if isinstance(wrapped, CachingStore) else None
        if not read_only and not _may_write(cache):
            message = "cache: expected to be read only, but for recheck=True; see CacheOptions"
            raise N5UnsupportedError(message, kind="read-only")
        if self.coords and not read_only:
            message = "coords=True: expected to be read only, as coordinates are not stored"
            raise N5UnsupportedError(message, kind="read-only")
        if wrapped.read_only and not read_only and not isinstance(wrapped, LocalStore):
            wrapped = wrapped.with_read_only(read_only=False)
        copied = self._copy(wrapped, read_only=read_only)
        copied._hierarchy = self._hierarchy  # noqa: SLF001 - the arrays are the same
        return copied

    def reopened(self) -> Self:
        """Show the same container anew: arrays created through this object as others see them."""
        return self._copy(self._store, read_only=self.read_only)

    def _copy(self, wrapped: Store, *, read_only: bool = True, **changes: Any) -> Self:  # noqa: ANN401
        names = ("codecs", "zarr_format", "axis_order", "coords")
        options = {name: getattr(self, name) for name in names if name not in changes}
        copied = self.__class__(wrapped, **(options | changes))
        copied._read_only = read_only  # noqa: SLF001 - whatever the wrapped store is
        return copied

    async def _open(self) -> None:
        if self._is_open:
            message = "store is already open"
            raise ValueError(message)
        # what zarr's own WrapperStore calls; a local directory is made when something is written
        if not isinstance(self._store, LocalStore):
            await self._store._ensure_open()  # noqa: SLF001
        self._is_open = True

    @override
    def close(self) -> None:
        self._store.close()
        super().close()

    # ------------------------------------------------------------------ reading

    async def get(
        self,
        key: str,
        prototype: BufferPrototype,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Read a document, a chunk, or a file in a group that is none of N5's.

        Raises
        ------
        N5Error
            The node or block is there, but broken or not supported; the message names container,
            path and block.
        """
        if self._view is not None:
            return _finish(await self._view.get(key), prototype, byte_range)
        if isinstance(self._store, LocalStore):
            # one thread for reading and translating, where LocalStore.get would take one to read
            wanted = partial(self.get_sync, key, prototype=prototype, byte_range=byte_range)
            return await asyncio.to_thread(wanted)
        parsed = self._hierarchy.parse_key(key)
        if isinstance(parsed, ChunkKey):
            return _finish(await self._read_chunk(parsed), prototype, byte_range)
        steps = self._serve(parsed) if parsed else self._hierarchy.other_file(key)
        served = await self._run_located(steps, parsed.path if parsed else key)
        return _finish(served, prototype, byte_range)

    def get_sync(
        self,
        key: str,
        *,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Read a document or a chunk without an event loop; see :meth:`get`."""
        prototype = prototype or cpu.buffer_prototype
        parsed = self._hierarchy.parse_key(key)
        if isinstance(parsed, ChunkKey):
            return _finish(self._read_chunk_sync(parsed), prototype, byte_range)
        steps = self._serve(parsed) if parsed else self._hierarchy.other_file(key)
        served = self._run_located_sync(steps, parsed.path if parsed else key)
        return _finish(served, prototype, byte_range)

    async def _read_chunk(self, chunk: ChunkKey) -> Buffer | BufferLike | None:
        if not isinstance(self._nodes.get(chunk.path), DatasetView):
            await self.read_node(chunk.path)
        place = self._place(chunk)
        if place is None or not place.in_grid:
            return None
        block = await self._store.get(place.key, cpu.buffer_prototype)
        if block is None:
            return None
        part = self._cut(block, place)
        return await asyncio.to_thread(self._make_chunk, block, place) if part is None else part

    def _read_chunk_sync(self, chunk: ChunkKey) -> Buffer | BufferLike | None:
        self._look_sync(chunk.path)
        place = self._place(chunk)
        if place is None or not place.in_grid:
            return None
        # what is being written may be cut, which zarr's codecs would find, and nobody could mend
        settled = not shows_cuts(place.shown.dataset.compression)
        block = read_sync(self._store, place.key, settled=settled)
        if settled or block is None:
            return self._chunk_of(block, place)
        try:
            if not place.may_be_cut(_view(block)):
                return self._chunk_of(block, place)
        except N5BlockError:
            pass
        return self._chunk_of(read_sync(self._store, place.key, settled=True), place)

    def _chunk_of(self, block: Buffer | None, place: Place) -> Buffer | BufferLike | None:
        if block is None:
            return None
        part = self._cut(block, place)
        return self._make_chunk(block, place) if part is None else part

    def local_dataset(self, key: str, *, anew: bool = False) -> LocalDataset | None:
        """Find the dataset of a chunk, if it is of whole blocks in local files.

        Parameters
        ----------
        key : str
            Of a chunk.
        anew : bool, optional
            Whether its document is read again: others may have made it larger.
        """
        if not isinstance(self._store, LocalStore) or self._view is not None:
            return None
        parsed = self._hierarchy.parse_key(key)
        if not isinstance(parsed, ChunkKey) or parsed.path in self._hierarchy.unusual:
            return None
        if anew:
            self._read_again_sync(parsed.path)
        else:
            self._look_sync(parsed.path)
        shown = self._nodes.get(parsed.path)
        if not isinstance(shown, DatasetView) or not shown.whole_blocks:
            return None
        if shown.element is not None and not shown.element.is_stored_as_is:
            return None
        directory = str(Path(self._store.root, *parsed.path.split("/"))) + "/"
        n_prefix = len(f"{parsed.path}/c/".lstrip("/"))
        return LocalDataset(directory, n_prefix, shown, self.locate)

    def _place(self, chunk: ChunkKey) -> Place | None:
        return Place.of(chunk, self._nodes.get(chunk.path))

    def _cut(self, block: Buffer, place: Place) -> Buffer | None:
        """Cut the chunk out of the block; None when it has to be made."""
        data = _view(block)
        try:
            if not place.is_expected(data):
                self._check_unexpected(place, data)
            part = place.cut(data)
        except N5Error as err:
            raise err.located(self.block_name(place.path, place.position)) from err.__cause__
        return None if part is None else block[part]

    def _check_unexpected(self, place: Place, data: memoryview) -> None:
        """Look why a block is not of the size that its place has."""
        if not place.shown.dataset.has_block_size:
            found = BlockHeader.from_bytes(data).block_shape
            self.warn(
                f"{place.path or '/'}: has no blockSize and is taken for one block of "
                f"{place.shown.dataset.dimensions}, but holds one of {found}: what that lacks is "
                "shown as fill value; add the blockSize that it was written with"
            )

    def _make_chunk(self, block: Buffer, place: Place) -> BufferLike:
        try:
            return place.chunk(_view(block), self._shards)
        except N5Error as err:
            raise err.located(self.block_name(place.path, place.position)) from err.__cause__

    def block_name(self, path: str, grid_position: N5Tuple) -> str:
        """Name container, dataset and block, for messages."""
        return f"{self}: {path or '/'}: block {block_path(grid_position)}"

    def locate(self, key: str) -> str:
        """Name what a Zarr key stands for, in N5's terms, for messages.

        Parameters
        ----------
        key : str
            A Zarr key.

        Returns
        -------
        str
            Container, path and block.
        """
        parsed = self._hierarchy.parse_key(key)
        place = self._place(parsed) if isinstance(parsed, ChunkKey) else None
        if place is not None:
            return self.block_name(place.path, place.position)
        return f"{self}: {parsed.path or '/'}" if parsed else f"{self}: {key}"

    @override
    async def get_partial_values(
        self,
        prototype: BufferPrototype,
        key_ranges: Iterable[tuple[str, ByteRequest | None]],
    ) -> list[Buffer | None]:
        return await asyncio.gather(
            *(self.get(key, prototype, wanted) for key, wanted in key_ranges)
        )

    @override
    async def exists(self, key: str) -> bool:
        if self._view is not None:
            return await self._view.exists(key)
        match self._hierarchy.parse_key(key):
            case None:
                return await self.get(key, cpu.buffer_prototype) is not None
            case MetadataKey() as document:
                node = await self.read_node(document.path)
                return node is not None and self._hierarchy.has(document, node)
            case ChunkKey() as chunk:
                if not isinstance(self._nodes.get(chunk.path), DatasetView):
                    await self.read_node(chunk.path)
                place = self._place(chunk)
                return place is not None and place.in_grid and await self._store.exists(place.key)

    async def read_buffer(self, key: str) -> Buffer | None:
        """Read a document or a chunk into memory of the host."""
        return await self.get(key, cpu.buffer_prototype)

    async def getsize_prefix(self, prefix: str) -> int:
        """Return the number of bytes that the container stores below a node.

        Nothing is read or translated, so this is not the sum of :meth:`getsize` over the keys
        below.
        """
        return await self._store.getsize_prefix(normalize_path(prefix))

    # ------------------------------------------------------------------ nodes

    def _load(self, path: str) -> Steps[Node | None]:
        """Read a node, and before the first one of local files the version of the container.

        Elsewhere a document costs a request: the version is looked at when the root is read,
        and before the first document is written.
        """
        stamp = self._stamp(path)
        if stamp is not _REMOTE and path not in self._hierarchy.assumed:
            yield from self._check_root()
        node, since = self._listed.pop(path, (None, -math.inf))
        if node is None or time.monotonic() - since > _JUST_LISTED:
            node = yield from self._hierarchy.node(path)
        return self._kept(path, node, stamp)

    def _check_root(self) -> Steps[None]:
        """Look at the version of the container, once."""
        if not self._root_checked:
            yield from self._hierarchy.check_root()
            self._root_checked = True

    def _serve(self, key: MetadataKey) -> Steps[bytes | None]:
        """Make a document, and remember it: what Zarr changes, it changes from here."""
        node = yield from self._load(key.path)
        document = yield from self._hierarchy.served(key, node)
        value = None if document is None else json.dumps(document).encode()
        if document is not None and "consolidated_metadata" in document:
            self._served[key] = json.dumps(document | {"consolidated_metadata": True}).encode()
        else:
            # where there is nothing, changes start from nothing: others may be making it right now
            self._served[key] = value or b"{}"
        return value

    async def read_node(self, path: str) -> Node | None:
        """Read the node at a path, anew.

        Parameters
        ----------
        path : str
            Below the root; ``""`` is the root.

        Returns
        -------
        Presentation, GroupAttributes or None
            An array, a group, or nothing.

        Raises
        ------
        N5Error
            The node is there, but broken or not supported.
        """
        path = normalize_path(path)
        return await self._run_located(self._load(path), path)

    def _read_node_sync(self, path: str) -> Node | None:
        return self._run_located_sync(self._load(path), path)

    def _stamp(self, path: str) -> object:
        """Give what differs once somebody has written a node's document."""
        if not isinstance(self._store, LocalStore):
            return _REMOTE
        return files.stamp(f"{self._store.root}/{join(path, ATTRIBUTES_JSON)}")

    def _look_sync(self, path: str) -> None:
        """Read the node of a chunk if it is not known, or if others have written its document."""
        if not isinstance(self._nodes.get(path), DatasetView):
            self._read_node_sync(path)
        elif self._stamps.get(path) != self._stamp(path):
            self._read_again_sync(path)

    def _read_again_sync(self, path: str) -> None:
        stamp = self._stamp(path)
        found = self._run_located_sync(self._hierarchy.node(path), path)
        self._check_same(path, self._nodes.get(path), found)
        self._kept(path, found, stamp)

    def _check_same(self, path: str, known: Node | None, found: Node | None) -> None:
        """Raise if an array whose chunks are asked for has other elements or blocks by now."""
        if not isinstance(known, DatasetView) or not isinstance(found, DatasetView):
            return
        before, now = known.dataset, found.dataset
        if (before.type_name, before.block_size) == (now.type_name, now.block_size):
            return
        message = (
            "the dataset has been replaced by another one since it was opened: expected "
            f"{before.type_name} in blocks {before.block_size}, got {now.type_name} in blocks "
            f"{now.block_size}; open it again"
        )
        raise N5Error(message, kind="changed", where=f"{self}: {path or '/'}")

    def _kept(self, path: str, node: Node | None, stamp: object) -> Node | None:
        """Keep a node for its chunks."""
        if node is None:
            self._nodes.pop(path, None)
        else:
            self._nodes[path], self._stamps[path] = node, stamp
        return node

    def _located(self, err: N5Error, path: str) -> N5Error:
        err.where = f"{self}: {err.where or path or '/'}"
        return err

    async def run[T](self, steps: Steps[T]) -> T:
        """Run one of the generators of :class:`~n5zarr.container.nodes.Hierarchy`."""
        return await run_async(steps, self._store, self.warn)

    @property
    def hierarchy(self) -> Hierarchy:
        """The logic of nodes, children and blocks."""
        return self._hierarchy

    def warn(self, message: str) -> None:
        """Tell the user something, once per store object."""
        if message not in self.warned:
            self.warned.add(message)
            warnings.warn(f"{self}: {message}", N5Warning, stacklevel=2)

    # ------------------------------------------------------------------ listing

    @property
    @override
    def supports_consolidated_metadata(self) -> bool:
        # xarray would warn that there is none
        return self._view is None

    @property
    @override
    def supports_listing(self) -> bool:
        return self._store.supports_listing

    @property
    @override
    def supports_writes(self) -> bool:
        return self._store.supports_writes

    @property
    @override
    def supports_deletes(self) -> bool:
        return self._store.supports_deletes

    @override
    async def list(self) -> AsyncIterator[str]:
        for key in await self.keys_below(""):
            yield key

    @override
    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for key in await self.keys_below(prefix):
            yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """List what lies directly below a prefix, sorted; broken children only cause a warning."""
        if self._view is not None:
            for name in await self._view.names(normalize_path(prefix)):
                yield name
            return
        for name in await self._run_located(self._names(normalize_path(prefix)), prefix):
            yield name

    def _names(self, path: str) -> Steps[Sequence[str]]:
        """List, and keep what was read for whoever opens the children next."""
        if isinstance(self._store, LocalStore):
            return (yield from self._hierarchy.names(path))[0]
        known = self._nodes.get(path)  # opened before it is listed
        known = known if isinstance(known, GroupAttributes) else None
        names, nodes = yield from self._hierarchy.names(path, known)
        now = time.monotonic()
        self._listed.update({child: (node, now) for child, node in nodes.items()})
        return names

    @override
    async def is_empty(self, prefix: str) -> bool:
        path = normalize_path(prefix)
        if self._view is None and await self.read_node(path) is not None:
            return False
        return not await self.keys_below(path)

    async def keys_below(self, prefix: str) -> Sequence[str]:
        """Name every key in a directory, as :meth:`list_prefix` yields them."""
        # zarr means directories, with or without a slash at the end
        path = normalize_path(prefix)
        if self._view is not None:
            return [key async for key in self._view.keys(path)]
        return await self._run_located(self._hierarchy.keys_below(path), path)

    async def _run_located[T](self, steps: Steps[T], path: str) -> T:
        try:
            return await self.run(steps)
        except N5Error as err:
            raise self._located(err, path) from err.__cause__

    def _run_located_sync[T](self, steps: Steps[T], path: str) -> T:
        try:
            return run_sync(steps, self._store, self.warn)
        except N5Error as err:
            raise self._located(err, path) from err.__cause__

    def as_mapping(self) -> StoreMapping:
        """Show the container as a mapping of keys to bytes, with the keys of Zarr v2.

        Returns
        -------
        StoreMapping
            For reading, writing, deleting and iterating; codecs and order of axes are those of this
            store.

        Examples
        --------
        >>> import n5zarr
        >>> mapping = N5Store(n5zarr.sample_path(), read_only=True).as_mapping()
        >>> "em/s0/.zarray" in mapping, len(mapping["em/s2/0.0.0"]) > 0
        (True, True)
        """
        return StoreMapping(self._copy(self._store, read_only=self.read_only, zarr_format=2))

    # ------------------------------------------------------------------ synchronous access

    @property
    def _supports_sync_io(self) -> bool:
        """Zarr's convention for wrappers: whether the synchronous methods work."""
        capable = isinstance(self._store, SupportsSyncStore) and not self.coords
        return capable and getattr(self._store, "_supports_sync_io", True)

    def assuming(self, path: str, attributes: Mapping[str, JSON]) -> Self:
        """Make a store that takes a dataset's document as given instead of reading it.

        Parameters
        ----------
        path : str
            Of the dataset.
        attributes : mapping
            What its ``attributes.json`` would say.

        Returns
        -------
        N5Store
            Of the same container.
        """
        copied = self._copy(self._store, read_only=self.read_only)
        assumed = copied._hierarchy.assumed  # noqa: SLF001 - of the same class
        assumed[normalize_path(path)] = json.dumps(attributes).encode()
        return copied

    # ------------------------------------------------------------------ writing

    async def set(self, key: str, value: Buffer) -> None:
        """Write a document or a chunk.

        Documents become changes of ``attributes.json``: what Zarr changed since this store served
        the document is applied to what is there now. Chunks become blocks, truncated at the end of
        an axis.

        Raises
        ------
        N5UnrepresentableError
            N5 cannot hold it, or the key is none of a Zarr hierarchy; nothing is written.
        N5UnsupportedError
            The array can only be read.
        N5Error
            The array is another one by now (``kind="changed"``).
        """
        if isinstance(self._store, LocalStore):
            await asyncio.to_thread(self.set_sync, key, value)
            return
        parsed = self._writable(key, value)
        if isinstance(parsed, MetadataKey):
            async with self._locks.of(parsed.path):
                await self._run_located(self._write(parsed, value.to_bytes()), parsed.path)
            return
        place = self._place(parsed)
        if place is None or not place.is_full:  # others may have made it, or made it larger
            known = self._nodes.get(parsed.path)
            self._check_same(parsed.path, known, await self.read_node(parsed.path))
        place = self._checked_place(parsed)
        block = await asyncio.to_thread(self._make_block, value, place)
        await self._store.set(place.key, cpu.Buffer.from_bytes(block))

    def set_sync(self, key: str, value: Buffer) -> None:
        """Write a document or a chunk without an event loop; see :meth:`set`."""
        parsed = self._writable(key, value)
        if isinstance(parsed, MetadataKey):
            self._run_located_sync(self._write(parsed, value.to_bytes()), parsed.path)
            return
        place = self._place(parsed)
        if place is None or not place.is_full:
            self._read_again_sync(parsed.path)  # others may have made it, or made it larger
        else:
            self._look_sync(parsed.path)
        place = self._checked_place(parsed)
        write_sync(self._store, place.key, self._make_block(value, place))

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Write a document or a chunk unless it is there; a group needs no document to be."""
        parsed = self._writable(key, value)
        if await self.exists(key):
            return
        if not isinstance(parsed, MetadataKey):
            await self.set(key, value)
            return
        steps = self._write(parsed, value.to_bytes(), only_new=parsed.name == "zarr.json")
        async with self._locks.of(parsed.path):
            await self._run_located(steps, parsed.path)

    def _writable(self, key: str, value: Buffer) -> MetadataKey | ChunkKey:
        """Check that something can be written under a key."""
        self._check_writable()
        if not hasattr(value, "as_numpy_array"):
            message = (
                f"N5Store.set(): `value` must be a Buffer instance. Got {type(value)} instead."
            )
            raise TypeError(message)
        parsed = self._hierarchy.parse_key(key)
        if parsed is None:
            message = (
                f"key {key!r}: expected a Zarr v{self.zarr_format} document or chunk; N5 holds no "
                "other values. A store shows one format: N5Store(..., zarr_format=...) chooses it"
            )
            raise N5UnrepresentableError(message, kind="path", where=str(self))
        return parsed

    def _write(self, key: MetadataKey, value: bytes, *, only_new: bool = False) -> Steps[None]:
        document = parse_document(key, value)
        self._listed.clear()
        yield from self._check_root()
        written = yield from write_document(
            self._hierarchy,
            key,
            document,
            self._served.get(key),
            only_new=only_new,
            has_root=self._has_root,
        )
        self._has_root = True
        if written is None:
            return
        self._kept(key.path, written, self._stamp(key.path))
        if document.get("consolidated_metadata") is not None:
            value = json.dumps(document | {"consolidated_metadata": True}).encode()
        self._served[key] = value

    def _checked_place(self, chunk: ChunkKey) -> Place:
        place = self._place(chunk)
        if place is not None and place.in_grid:
            return place
        what = "there is no such array" if place is None else f"its grid is {place.shown.grid}"
        message = f"chunk {chunk.coords}: expected a chunk of an array, but {what}"
        raise N5UnrepresentableError(message, kind="path", where=f"{self}: {chunk.path or '/'}")

    def _make_block(self, value: Buffer, place: Place) -> BufferLike:
        try:
            return place.block(_view(value))
        except N5Error as err:
            raise err.located(self.block_name(place.path, place.position)) from err.__cause__

    async def delete(self, key: str) -> None:
        """Remove a document or a chunk; one that is not there is none to remove."""
        if isinstance(self._store, LocalStore):
            await asyncio.to_thread(self.delete_sync, key)
            return
        self._check_writable()
        match self._hierarchy.parse_key(key):
            case MetadataKey() as document:
                await self._run_located(self._remove(document), document.path)
            case ChunkKey() as chunk:
                if not isinstance(self._nodes.get(chunk.path), DatasetView):
                    await self.read_node(chunk.path)
                place = self._place(chunk)
                if place is not None:
                    await self._store.delete(place.key)
            case None:
                pass

    def delete_sync(self, key: str) -> None:
        """Remove a document or a chunk without an event loop."""
        self._check_writable()
        match self._hierarchy.parse_key(key):
            case MetadataKey() as document:
                self._run_located_sync(self._remove(document), document.path)
            case ChunkKey() as chunk:
                self._look_sync(chunk.path)
                # also outside of the grid: zarr shrinks an array before it removes its chunks
                place = self._place(chunk)
                if place is not None:
                    delete_sync(self._store, place.key)
            case None:
                pass

    def _remove(self, key: MetadataKey) -> Steps[None]:
        self._listed.clear()
        node = yield from self._load(key.path)
        yield from remove_document(self._hierarchy, key, node)
        self._served.pop(key, None)
        self._has_root = self._has_root and key.path != ""
        if key.name in ("zarr.json", ".zarray"):
            self._hierarchy.given.pop(key.path, None)
            self._hierarchy.unusual.pop(key.path, None)
        self._nodes.pop(key.path, None)

    @override
    async def delete_dir(self, prefix: str) -> None:
        self._check_writable()
        path = normalize_path(prefix)
        if await self._run_located(self._remove_tree(path), path):
            return
        for key in await self.keys_below(path):  # within an array
            await self.delete(key)

    def _remove_tree(self, path: str) -> Steps[bool]:
        """Remove a node with all below it; False when there is none at this path."""
        self._listed.clear()
        try:
            node = yield from self._hierarchy.node(path)
        except N5Error:
            node = GroupAttributes(attributes={})  # broken, and not wanted any more
        if node is not None or not path:
            yield [RemoveTree(path)]
            self._has_root = self._has_root and path != ""
        elif path not in self._nodes and path not in self._hierarchy.given:
            return False
        for kept in (self._nodes, self._hierarchy.given, self._hierarchy.unusual):
            for known in [k for k in kept if not path or k == path or k.startswith(f"{path}/")]:
                del kept[known]
        for key in list(self._served):
            if not path or key.path == path or key.path.startswith(f"{path}/"):
                del self._served[key]
        return True

    @override
    async def clear(self) -> None:
        await self.delete_dir("")

    def __getstate__(self) -> dict[str, Any]:
        # locks belong to a process, and a shard is made again
        left_out = ("_locks", "_shards")
        state = {key: value for key, value in self.__dict__.items() if key not in left_out}
        return state | {"_listed": {}}  # its times are those of this process

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _locks=_PathLocks(), _shards=Shards())


class _PathLocks:
    """Locks for updates of documents in stores that have none of their own."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()

    def of(self, path: str) -> asyncio.Lock:
        return self._locks.setdefault((id(asyncio.get_running_loop()), path), asyncio.Lock())


def _check_option(name: str, value: object, known: tuple[object, ...]) -> None:
    if value not in known:
        message = f"{name}: expected one of {', '.join(map(repr, known))}, got {value!r}"
        raise N5UnrepresentableError(message, kind="option")


def _may_write(cache: CacheOptions | None) -> bool:
    return cache is None or cache.recheck is True


def _view(block: Buffer) -> memoryview:
    return memoryview(block.as_numpy_array())


def _finish(
    value: Buffer | BufferLike | None, prototype: BufferPrototype, byte_range: ByteRequest | None
) -> Buffer | None:
    """Hand over the wanted bytes in the wanted kind of buffer."""
    if value is None:
        return None
    if isinstance(value, prototype.buffer):
        buffer: Buffer = value
    elif isinstance(value, bytes | bytearray | memoryview):
        buffer = prototype.buffer.from_bytes(value)
    else:
        buffer = prototype.buffer.from_bytes(value.to_bytes())
    wanted: object = byte_range  # whatever the caller says that it is
    match wanted:
        case None:
            return buffer
        case RangeByteRequest(start, end):
            return buffer[start:end]
        case OffsetByteRequest(offset):
            return buffer[offset:]
        case SuffixByteRequest(suffix):
            return buffer[max(0, len(buffer) - suffix) :]
        case _:
            message = f"Unexpected byte_range, got {wanted!r}."
            raise TypeError(message)
