"""``N5Store``: an N5 container as a zarr store.

Holds no logic: each method of zarr's interface of stores passes its key to a method of the
container (:mod:`n5zarr.container.container`). That method returns a flow, a generator of requests
to storage, which the store runs with or without await.
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, Self, get_args, override

from zarr.abc.buffer import Buffer, BufferPrototype
from zarr.abc.store import ByteRequest, Store
from zarr.buffer import cpu

from n5zarr.container.block_listing import n_bytes_below
from n5zarr.container.container import Container, KeyReader
from n5zarr.container.memory import Memory
from n5zarr.container.options import ViewOptions, check_concurrency, check_option, unknown
from n5zarr.errors import READ_ONLY, option_error
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import AxisOrder
from n5zarr.format.path import normalize_path
from n5zarr.rooms import Door
from n5zarr.storage.cache import CacheOptions
from n5zarr.storage.interface import Durability, Storage
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.storage.requests import Steps
from n5zarr.storage.url import is_url
from n5zarr.store.buffers import StoreMapping, as_buffer, as_bytes
from n5zarr.store.flows import FlowRunner, read_root
from n5zarr.store.info import Info
from n5zarr.zarr_view.chunk_grid import ChunkGrid
from n5zarr.zarr_view.dataset_view import Codecs, DatasetView
from n5zarr.zarr_view.keys import ZarrFormat

_DEFAULTS = {  # options for presenting and writing a container
    **vars(ViewOptions()), "coords": False, "durability": "atomic", "read_only": False,
}  # fmt: skip
_CONCURRENCY = 64  # enough to keep a server 20 ms away busy; tensorstore sends 32


class N5Store(FlowRunner, Store):
    """An N5 container as a Zarr store.

    Parameters
    ----------
    location : path, URL, zarr store or mapping of fsspec's
        The container: a local path, a URL that the backend reads, or any
        :class:`zarr.abc.store.Store` whose keys are those of an N5 container; also a
        :class:`zarr.storage.StorePath`, a store of obstore's, a ``UPath``, a mapping such as
        ``s3fs.S3Map``, or the storage of an open store. Must be the root; parents are not searched.
    read_only : bool, optional
        Whether to refuse writing.
    codecs : {"zarr", "n5", "portable"}, optional
        ``"zarr"``: standard codecs; full-size blocks are passed through. ``"n5"``: n5zarr's own
        codec decodes whole blocks; errors then name the block. ``"portable"``: only codecs of the
        Zarr v3 specification; gzip with useZlib, bzip2, xz and lz4 are presented uncompressed.
    zarr_format : {3, 2} or None, optional
        The version of Zarr's documents and keys. By default each node has the version in which Zarr
        last wrote it; plain N5 has the version of the parent group, or 3.
    axis_order : {"C", "F"}, optional
        ``"C"``: ``dimensions [x, y, z]`` are presented as shape ``(z, y, x)``. ``"F"``: as ``(x, y,
        z)``.
    coords : bool, optional
        Whether to present axes as coordinates, so that ``xr.open_zarr`` reads names, positions and
        units. Read-only, Zarr v3. If the datasets of a group do not share their axes, as in a
        pyramid, each becomes a group of its own: ``em/s0`` with the arrays ``s0``, ``z``, ``y`` and
        ``x``.
    chunk_grid : {"regular", "rectilinear"}, optional
        ``"rectilinear"``: chunks at the end of an axis have the remaining size, like Java's blocks,
        which are then passed through. Read-only, Zarr v3; experimental in zarr-python, which must
        allow it: ``zarr.config.set({"array.rectilinear_chunks": True})``.
    storage_options : dict, optional
        For a URL: options of fsspec's file system, or of obstore's store if ``backend`` names it.
    backend : {"fsspec", "obstore"} or None, optional
        Which library reads and writes a URL; None: obstore if it understands all options.
    cache : CacheOptions, optional
        How much of a remote container to keep in memory, and when to read it again.
    forbidden_is_missing : bool, optional
        Whether a "forbidden" answer means that a key is missing, as on S3 buckets that you may read
        but not list. Otherwise it is an error.
    concurrency : int, optional
        Number of blocks to read or write at a time, by all threads, if the container is not in
        local files; by default the environment variable ``N5ZARR_CONCURRENCY``, or 64.
    durability : {"atomic", "durable", "overwrite"}, optional
        How to write local files. ``"atomic"``: by a rename; a killed writer leaves old blocks or
        new ones. ``"durable"``: also sync them to the disk before the call returns.
        ``"overwrite"``: in place, as Java does; the fastest, but a killed writer or a crash can
        leave half-written blocks.
    mode : {"r", "r+", "a", "w", "w-"}, optional
        ``"r"`` means ``read_only=True``; the others have no effect: a store removes nothing.
    fs : fsspec.AbstractFileSystem, optional
        The file system of ``location``; ``location`` is then a path in it.
    **options : optional
        More ``storage_options``, for a URL: ``N5Store("s3://bucket/a.n5", anon=True)``.

    Raises
    ------
    N5UnrepresentableError
        An option has an invalid value, or does not apply to the store (``kind="option"``).
    N5UnsupportedError
        ``coords`` or a rectilinear grid is given with Zarr v2, zarr does not allow such grids, or
        the URL is not supported (``kind="option"``).
    N5MissingDependencyError
        The backend of a URL is not installed.

    Examples
    --------
    >>> import zarr, n5zarr
    >>> root = zarr.open(N5Store(n5zarr.sample_path()), mode="r")
    >>> root["em/s0"]
    <Array ...sample.n5/em/s0 shape=(40, 96, 128) dtype=uint8>
    """

    def __init__(  # noqa: PLR0913 - one keyword for each way of presenting a container
        self,
        location: Location | Storage,
        *,
        read_only: bool = False,
        codecs: Codecs = "zarr",
        zarr_format: ZarrFormat | None = None,
        axis_order: AxisOrder = "C",
        coords: bool = False,
        chunk_grid: ChunkGrid = "regular",
        storage_options: Mapping[str, object] | None = None,
        backend: Backend | None = None,
        cache: CacheOptions | None = None,
        forbidden_is_missing: bool = False,
        concurrency: int | None = None,
        durability: Durability = "atomic",
        mode: Literal["r", "r+", "a", "w", "w-"] | None = None,
        fs: object = None,
        **options: object,
    ) -> None:
        if options and not is_url(location):
            raise unknown("N5Store", next(iter(options)), N5Store.__init__.__kwdefaults__ or ())
        check_option("mode", mode, (None, "r", "r+", "a", "w", "w-"))
        read_only = read_only or mode == "r"
        view = ViewOptions(
            codecs=codecs, zarr_format=zarr_format, axis_order=axis_order, chunk_grid=chunk_grid
        )
        if isinstance(location, N5Store):
            raise option_error(
                f"location: expected a container, got {location!r}, which is a Zarr view of one"
            )
        check_option("durability", durability, get_args(Durability.__value__))
        if options:
            storage_options = {**(storage_options or {}), **options}
        storage = (
            location
            if isinstance(location, Storage)
            else open_storage(
                place_of(location, storage_options, backend, fs=fs),
                read_only=read_only,
                cache=cache,
                forbidden_is_missing=forbidden_is_missing,
                durability=durability,
            )
        )
        is_view = coords or view.chunk_grid == "rectilinear"
        super().__init__(read_only=read_only or storage.read_only or is_view)
        self._concurrency = None if concurrency is None else check_concurrency(concurrency)
        self._set_up(storage, view, Memory(), coords=coords)

    def _set_up(
        self, storage: Storage, options: ViewOptions, memory: Memory, *, coords: bool
    ) -> None:
        """Set the attributes of this class: storage, container, and the view of its keys."""
        options = options.for_coords() if coords else options.for_grid()
        self.storage = storage
        self.container = Container(
            str(storage),
            options,
            has_stamps=storage.has_stamps,
            memory=memory,
            read_only=self.read_only,
        )
        self._view: KeyReader = self.container
        if coords:
            from n5zarr.container.coords_view import CoordsView  # noqa: PLC0415 - knows conventions

            self._view = CoordsView(self.container)

    # ------------------------------------------------------------------ identity

    @property
    def codecs(self) -> Codecs:
        """The codecs that arrays are presented with."""
        return self.container.options.codecs

    @property
    def zarr_format(self) -> ZarrFormat | None:
        """The version of the Zarr documents and keys; None for that of each node."""
        return self.container.options.zarr_format

    @property
    def axis_order(self) -> AxisOrder:
        """The order in which axes are presented."""
        return self.container.options.axis_order

    @property
    def chunk_grid(self) -> ChunkGrid:
        """Whether chunks at the end of an axis are truncated."""
        return self.container.options.chunk_grid

    @property
    def coords(self) -> bool:
        """Whether axes are presented as coordinates."""
        return self._view is not self.container

    @property
    def durability(self) -> Durability:
        """How local files are written."""
        return self.storage.durability

    @property
    def store(self) -> Store:
        """The wrapped store, with N5's keys."""
        return self.storage.store

    @property
    def root(self) -> Path:
        """The resolved local path of the container.

        Raises
        ------
        AttributeError
            The container is not on a local file system.
        """
        if self.storage.root is None:
            raise AttributeError(
                f"{self}: expected local files, got a container without a local path"
            )
        return self.storage.root

    @property
    def path(self) -> str:
        """The local path of the container, or its URL."""
        return str(self.storage.root or self)

    @property
    def concurrency(self) -> int:
        """Number of blocks to read or write at a time if they are not local files."""
        if self._concurrency is not None:
            return self._concurrency
        return check_concurrency(os.environ.get("N5ZARR_CONCURRENCY", _CONCURRENCY))

    def __str__(self) -> str:
        return self.container.name

    def __repr__(self) -> str:
        given = [(name, getattr(self, name), default) for name, default in _DEFAULTS.items()]
        options = [f", {name}={value!r}" for name, value, default in given if value != default]
        return f"N5Store({str(self)!r}{''.join(options)})"

    @property
    def info(self) -> Info:
        """The container, its current version, and its options for presenting and writing."""
        root = read_root(self, read_only=self.read_only)
        root["store_type"] = type(self.store).__name__
        return Info({**root, **{name: getattr(self, name) for name in _DEFAULTS}})

    def __eq__(self, value: object) -> bool:
        """Whether another store has the same container, with any options.

        zarr compares stores to avoid overwriting an array with itself.
        """
        return isinstance(value, N5Store) and self.storage.is_same_place(value.storage)

    __hash__ = None  # type: ignore[assignment] # as zarr's own stores

    @override
    def with_read_only(self, read_only: bool = False) -> Self:
        if not read_only:
            self.container.options.check_writable(coords=self.coords)
        storage = self.storage.with_read_only(read_only=read_only)
        memory = self.container.memory.for_copy()  # zarr still uses the same arrays
        return self._copy(storage, self.container.options, memory, read_only=read_only)

    def reopened(self) -> Self:
        """Return a store with empty memory, which presents arrays as to a new reader."""
        return self._shown(self.container.options, Memory())

    def showing(self, zarr_format: ZarrFormat | None) -> Self:
        """Return a store that presents all nodes in one Zarr format; None: each in its own."""
        if self.zarr_format == zarr_format:
            return self
        return self._shown(
            replace(self.container.options, zarr_format=zarr_format),
            self.container.memory.for_copy(),
        )

    def assuming(self, path: str, attributes: Mapping[str, JSON]) -> Self:
        """Return a store that uses a given document for a dataset instead of reading it.

        Parameters
        ----------
        path : str
            Path of the dataset.
        attributes : mapping
            The content of its ``attributes.json``.
        """
        assumed = {normalize_path(path): json.dumps(attributes).encode()}
        return self._shown(self.container.options, Memory(assumed=assumed))

    def as_mapping(self) -> StoreMapping:
        """Return the container as a mapping of keys to bytes, with the keys of Zarr v2.

        Returns
        -------
        StoreMapping
            A mapping to read, write, delete and iterate, with the codecs and axis order of this
            store.

        Examples
        --------
        >>> import n5zarr
        >>> mapping = N5Store(n5zarr.sample_path(), read_only=True).as_mapping()
        >>> "em/s0/.zarray" in mapping, len(mapping["em/s2/0.0.0"]) > 0
        (True, True)
        """
        return StoreMapping(self._shown(replace(self.container.options, zarr_format=2), Memory()))

    def _shown(self, options: ViewOptions, memory: Memory) -> Self:
        """Return a store of the same storage."""
        return self._copy(self.storage, options, memory, read_only=self.read_only)

    def _copy(
        self, storage: Storage, options: ViewOptions, memory: Memory, *, read_only: bool
    ) -> Self:
        """Return a store of the same container."""
        copied = copy.copy(self)
        super(N5Store, copied).__init__(read_only=read_only)
        copied._set_up(storage, options, memory, coords=self.coords)  # noqa: SLF001 - same class
        return copied

    def dataset_of(
        self, path: str, zarr_format: ZarrFormat, *, anew: bool = False, as_blocks: bool = False
    ) -> Steps[tuple[str, DatasetView] | None]:
        """Read the dataset of an array of this store; see :meth:`Container.dataset_of`."""
        return self._view.dataset_of(path, zarr_format, anew=anew, as_blocks=as_blocks)

    # ------------------------------------------------------------------ zarr's interface

    async def _open(self) -> None:
        await self.storage.open(read_only=self.read_only)
        await super()._open()

    @override
    def close(self) -> None:
        self.storage.close()
        super().close()

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Read a document, a chunk, or any other file that lies in a group.

        Raises
        ------
        N5Error
            The node or block is broken or not supported; the message names container and path.
        """
        prototype = prototype or cpu.buffer_prototype
        return as_buffer(await self.run_async(self._view.read(key)), prototype, byte_range)

    def get_sync(
        self,
        key: str,
        *,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Read a document or a chunk without an event loop; see :meth:`get`."""
        return as_buffer(
            self.run(self._view.read(key)), prototype or cpu.buffer_prototype, byte_range
        )

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
        return await self.run_async(self._view.exists(key))

    async def set(self, key: str, value: Buffer) -> None:
        """Write a document or a chunk.

        A document becomes a change of ``attributes.json``: the difference between the new document
        and the one that this store returned is applied to the current file. A chunk becomes a
        block, truncated at the end of an axis (N5 spec, "File-system specification", item 8).

        Raises
        ------
        N5UnrepresentableError
            N5 cannot hold the value, or a Zarr hierarchy has no such key; nothing is written.
        N5UnsupportedError
            The array can only be read.
        N5Error
            Another program replaced the array meanwhile (``kind="changed"``).
        """
        await self.run_async(self.container.write(key, self._bytes_to_write(value)))

    def set_sync(self, key: str, value: Buffer) -> None:
        """Write a document or a chunk without an event loop; see :meth:`set`."""
        self.run(self.container.write(key, self._bytes_to_write(value)))

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Write a document or a chunk unless it exists; a group exists without a document."""
        await self.run_async(self.container.write(key, self._bytes_to_write(value), only_new=True))

    @override
    def _check_writable(self) -> None:
        if self.read_only:
            raise ValueError(f"{self}: {READ_ONLY}")

    def _bytes_to_write(self, value: Buffer) -> memoryview:
        self._check_writable()
        return as_bytes(value)

    async def delete(self, key: str) -> None:
        """Remove a document or a chunk; do nothing if it is missing."""
        self._check_writable()
        await self.run_async(self.container.delete(key))

    def delete_sync(self, key: str) -> None:
        """Remove a document or a chunk without an event loop."""
        self._check_writable()
        self.run(self.container.delete(key))

    @override
    async def delete_dir(self, prefix: str) -> None:
        self._check_writable()
        await self.run_async(self.container.delete_dir(normalize_path(prefix)))

    @override
    async def clear(self) -> None:
        await self.delete_dir("")

    @override
    async def list(self) -> AsyncIterator[str]:
        async for key in self.list_prefix(""):
            yield key

    @override
    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        # zarr's prefixes are directories, with or without a slash at the end
        for flow in self._view.keys_below(normalize_path(prefix)):
            for key in await self.run_async(flow):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """List the names directly below a prefix, sorted; a broken child only causes a warning."""
        for name in await self.run_async(self._view.names(normalize_path(prefix))):
            yield name

    @override
    async def is_empty(self, prefix: str) -> bool:
        return await self.run_async(self._view.is_empty(normalize_path(prefix)))

    async def getsize_prefix(self, prefix: str) -> int:
        """Return the bytes of N5's files below a node; the sizes of Zarr's values may differ."""
        if self.storage.has_stamps:
            return await self.run_async(n_bytes_below(normalize_path(prefix)))
        return await self.store.getsize_prefix(normalize_path(prefix))

    @property
    def _supports_sync_io(self) -> bool:
        """Whether the synchronous methods work; zarr asks wrappers for this attribute."""
        return self.storage.supports_sync

    @property
    @override
    def supports_consolidated_metadata(self) -> bool:
        return self._view.shows_consolidated

    @property
    @override
    def supports_listing(self) -> bool:
        return self.store.supports_listing

    @property
    @override
    def supports_writes(self) -> bool:
        return self.store.supports_writes

    @property
    @override
    def supports_deletes(self) -> bool:
        return self.store.supports_deletes


# zarr may open an array of a store where nothing can be imported, such as in a signal handler
Door[object]("speed", "pipeline").found()
