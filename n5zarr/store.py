"""The store: Zarr keys in, bytes out.

It decides which translation a key needs and knows nothing else about bytes. Documents are made anew
for every request, since other programs may change ``attributes.json`` at any time; a chunk needs
its node's document too, so the last one of each node is kept, and travels in the pickle.
"""

from __future__ import annotations

import asyncio
import os
import re
import warnings
from functools import cached_property, partial
from operator import lt
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args, override

from zarr.abc.store import (
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
    SupportsSyncStore,
)
from zarr.buffer import cpu
from zarr.storage import FsspecStore, LocalStore

from n5zarr.errors import N5Error, N5UnrepresentableError, N5UnsupportedError, N5Warning
from n5zarr.format.grid import block_path
from n5zarr.format.order import AxisOrder
from n5zarr.format.path import join, normalize_path
from n5zarr.hierarchy import Hierarchy
from n5zarr.store_io import run_async, run_sync
from n5zarr.translate.chunks import chunk_slice, make_chunk
from n5zarr.translate.keys import ChunkKey, MetadataKey, ZarrFormat, parse_key
from n5zarr.translate.presentation import Codecs, Presentation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from zarr.abc.buffer import Buffer, BufferPrototype
    from zarr.abc.store import ByteRequest

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.hierarchy import Node, Steps

__all__ = ["N5Store"]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(://|::)")


class N5Store(Store):
    """An N5 container as a Zarr store, for reading.

    Parameters
    ----------
    store : path, URL or zarr store
        The container: a local path, a URL that fsspec reads, or any :class:`zarr.abc.store.Store`
        whose keys are those of an N5 container. It is the root; nothing above it is looked at.
    read_only : bool, optional
        Whether zarr may try to write. This version of n5zarr refuses either way.
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
        Not yet available.
    storage_options : dict, optional
        For fsspec, with a URL.

    Raises
    ------
    N5UnrepresentableError
        An option has a value outside its vocabulary (``kind="option"``).

    Examples
    --------
    >>> import zarr, n5zarr
    >>> root = zarr.open(N5Store(n5zarr.sample_path()))
    >>> root["em/s0"]
    <Array ...sample.n5/em/s0 shape=(40, 96, 128) dtype=uint8>
    """

    supports_writes: ClassVar[bool] = False
    supports_deletes: ClassVar[bool] = False

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
    ) -> None:
        super().__init__(read_only=read_only)
        _check_option("codecs", codecs, get_args(Codecs.__value__))
        _check_option("zarr_format", zarr_format, get_args(ZarrFormat.__value__))
        _check_option("axis_order", axis_order, get_args(AxisOrder.__value__))
        if coords:
            message = "coords=True: not available in this version of n5zarr"
            raise N5UnsupportedError(message, kind="option")
        self._store = _wrapped(store, storage_options)
        self._hierarchy = Hierarchy(codecs=codecs, zarr_format=zarr_format, axis_order=axis_order)
        self._nodes: dict[str, Node] = {}
        self._root_checked = False
        self._warned: set[str] = set()

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

    def __fspath__(self) -> str:
        try:
            return str(self.root)
        except AttributeError as err:
            raise TypeError(str(err)) from None

    def __str__(self) -> str:
        return str(self._store.root) if isinstance(self._store, LocalStore) else str(self._store)

    def __repr__(self) -> str:
        shown = {"codecs": "zarr", "zarr_format": 3, "axis_order": "C"}
        given = [
            f"{n}={getattr(self, n)!r}"
            for n, default in shown.items()
            if getattr(self, n) != default
        ]
        return f"N5Store({', '.join([repr(str(self)), *given])})"

    def __eq__(self, value: object) -> bool:
        return (
            isinstance(value, N5Store)
            and self._store == value._store
            and self._hierarchy == value._hierarchy
        )

    __hash__ = None  # type: ignore[assignment] # as zarr's own stores

    @override
    def with_read_only(self, read_only: bool = False) -> Self:
        return self.__class__(
            self._store,
            read_only=read_only,
            codecs=self.codecs,
            zarr_format=self.zarr_format,
            axis_order=self.axis_order,
        )

    async def _open(self) -> None:
        await self._store._ensure_open()  # noqa: SLF001 - what zarr's own WrapperStore calls
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
        """Read a document or a chunk.

        Raises
        ------
        N5Error
            The node or block is there, but broken or not supported; the message names container,
            path and block.
        """
        if isinstance(self._store, LocalStore):
            # one thread for reading and translating, where LocalStore.get would take one to read
            wanted = partial(self.get_sync, key, prototype=prototype, byte_range=byte_range)
            return await asyncio.to_thread(wanted)
        parsed = parse_key(key, self.zarr_format)
        if isinstance(parsed, ChunkKey):
            return _finish(await self._read_chunk(parsed), prototype, byte_range)
        if parsed is None:
            return None
        node = await self._read_node(parsed.path)
        return _finish(self._document(parsed, node), prototype, byte_range)

    def get_sync(
        self,
        key: str,
        *,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Read a document or a chunk without an event loop; see :meth:`get`."""
        prototype = prototype or cpu.buffer_prototype
        parsed = parse_key(key, self.zarr_format)
        if isinstance(parsed, ChunkKey):
            return _finish(self._read_chunk_sync(parsed), prototype, byte_range)
        if parsed is None:
            return None
        node = self._read_node_sync(parsed.path)
        return _finish(self._document(parsed, node), prototype, byte_range)

    async def _read_chunk(self, chunk: ChunkKey) -> Buffer | BufferLike | None:
        if chunk.path not in self._nodes:
            await self._read_node(chunk.path)
        block_key = self._block_key(chunk)
        if block_key is None:
            return None
        block = await self._store.get(block_key, cpu.buffer_prototype)
        if block is None:
            return None
        found = self._find(block, chunk)
        return await asyncio.to_thread(self._make, block, chunk) if found is None else found

    def _read_chunk_sync(self, chunk: ChunkKey) -> Buffer | BufferLike | None:
        if chunk.path not in self._nodes:
            self._read_node_sync(chunk.path)
        block_key = self._block_key(chunk)
        if block_key is None:
            return None
        block = self._sync_store.get_sync(block_key, prototype=cpu.buffer_prototype)
        if block is None:
            return None
        found = self._find(block, chunk)
        return self._make(block, chunk) if found is None else found

    def _find(self, block: Buffer, chunk: ChunkKey) -> Buffer | None:
        """Cut the chunk out of the block; None when it has to be made."""
        try:
            part = chunk_slice(_view(block), self._shown(chunk))
        except N5Error as err:
            raise err.located(self.locate(chunk)) from err.__cause__
        return None if part is None else block[part]

    def _make(self, block: Buffer, chunk: ChunkKey) -> BufferLike:
        try:
            return make_chunk(_view(block), self._shown(chunk))
        except N5Error as err:
            raise err.located(self.locate(chunk)) from err.__cause__

    def _shown(self, chunk: ChunkKey) -> Presentation:
        shown = self._nodes[chunk.path]
        assert isinstance(shown, Presentation)  # noqa: S101 - _block_key saw to it
        return shown

    def _block_key(self, chunk: ChunkKey) -> str | None:
        """Give the key of the block; None for a chunk of no array or outside of the grid."""
        shown = self._nodes.get(chunk.path)
        if not isinstance(shown, Presentation) or len(chunk.coords) != shown.dataset.ndim:
            return None
        position = chunk.grid_position(self.axis_order)
        if not all(map(lt, position, shown.grid)):
            return None
        return join(chunk.path, block_path(position))

    def locate(self, key: str | ChunkKey) -> str:
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
        parsed = parse_key(key, self.zarr_format) if isinstance(key, str) else key
        match parsed:
            case ChunkKey():
                block = block_path(parsed.grid_position(self.axis_order))
                return f"{self}: {parsed.path or '/'}: block {block}"
            case MetadataKey():
                return f"{self}: {parsed.path or '/'}"
            case None:
                return f"{self}: {key}"

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
        match parse_key(key, self.zarr_format):
            case None:
                return False
            case MetadataKey() as document:
                return self._document(document, await self._read_node(document.path)) is not None
            case ChunkKey() as chunk:
                if chunk.path not in self._nodes:
                    await self._read_node(chunk.path)
                block_key = self._block_key(chunk)
                return block_key is not None and await self._store.exists(block_key)

    async def getsize_prefix(self, prefix: str) -> int:
        """Return the number of bytes that the container stores below a node.

        Nothing is read or translated, so this is not the sum of :meth:`getsize` over the keys
        below.
        """
        return await self._store.getsize_prefix(normalize_path(prefix))

    # ------------------------------------------------------------------ nodes

    def _document(self, key: MetadataKey, node: Node | None) -> bytes | None:
        return None if node is None else self._hierarchy.document(key, node)

    def _load(self, path: str) -> Steps[Node | None]:
        """Read a node, and before the first one the version of the container."""
        if not self._root_checked:
            yield from self._hierarchy.check_root()
            self._root_checked = True
        return (yield from self._hierarchy.node(normalize_path(path)))

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
        return await self._read_node(normalize_path(path))

    async def _read_node(self, path: str) -> Node | None:
        try:
            node = await self.run(self._load(path))
        except N5Error as err:
            raise self._located(err, path) from err.__cause__
        self._keep(path, node)
        return node

    def _read_node_sync(self, path: str) -> Node | None:
        try:
            node = run_sync(self._load(path), self._store, self._warn)
        except N5Error as err:
            raise self._located(err, path) from err.__cause__
        self._keep(path, node)
        return node

    def _keep(self, path: str, node: Node | None) -> None:
        if node is None:
            self._nodes.pop(path, None)
        else:
            self._nodes[path] = node

    def _located(self, err: N5Error, path: str) -> N5Error:
        err.where = f"{self}: {err.where or path or '/'}"
        return err

    async def run[T](self, steps: Steps[T]) -> T:
        """Run one of the generators of :class:`~n5zarr.hierarchy.Hierarchy` on the container."""
        return await run_async(steps, self._store, self._warn)

    @property
    def hierarchy(self) -> Hierarchy:
        """The logic of nodes, children and blocks."""
        return self._hierarchy

    def _warn(self, message: str) -> None:
        """Tell the user something, once per store object."""
        if message not in self._warned:
            self._warned.add(message)
            warnings.warn(f"{self}: {message}", N5Warning, stacklevel=2)

    # ------------------------------------------------------------------ listing

    @property
    @override
    def supports_listing(self) -> bool:
        return self._store.supports_listing

    @override
    async def list(self) -> AsyncIterator[str]:
        for key in await self._keys_below(""):
            yield key

    @override
    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for key in await self._keys_below(prefix):
            yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """List what lies directly below a prefix, sorted; broken children only cause a warning."""
        for name in await self._run_located(self._hierarchy.names(normalize_path(prefix)), prefix):
            yield name

    @override
    async def is_empty(self, prefix: str) -> bool:
        path = normalize_path(prefix)
        if await self._read_node(path) is not None:
            return False
        return not await self._keys_below(path)

    async def _keys_below(self, prefix: str) -> Sequence[str]:
        # zarr means directories, with or without a slash at the end
        path = normalize_path(prefix)
        return await self._run_located(self._hierarchy.keys_below(path), path)

    async def _run_located[T](self, steps: Steps[T], path: str) -> T:
        try:
            return await self.run(steps)
        except N5Error as err:
            raise self._located(err, path) from err.__cause__

    # ------------------------------------------------------------------ synchronous access

    @property
    def _supports_sync_io(self) -> bool:
        """Zarr's convention for wrappers: whether the synchronous methods work."""
        capable = isinstance(self._store, SupportsSyncStore)
        return capable and getattr(self._store, "_supports_sync_io", True)

    @cached_property
    def _sync_store(self) -> SupportsSyncStore:
        if isinstance(self._store, SupportsSyncStore):
            return self._store
        message = f"{self}: {type(self._store).__name__} has no synchronous methods"
        raise N5UnsupportedError(message, kind="option")

    # ------------------------------------------------------------------ writing

    async def set(self, key: str, value: Buffer) -> None:
        """Refuse: this version reads."""
        raise _read_only(self.locate(key))

    def set_sync(self, key: str, value: Buffer) -> None:
        """Refuse: this version reads."""
        raise _read_only(self.locate(key))

    async def delete(self, key: str) -> None:
        """Refuse: this version reads."""
        raise _read_only(self.locate(key))

    @override
    async def delete_dir(self, prefix: str) -> None:
        raise _read_only(self.locate(prefix))

    @override
    async def clear(self) -> None:
        raise _read_only(str(self))

    def delete_sync(self, key: str) -> None:
        """Refuse: this version reads."""
        raise _read_only(self.locate(key))


def _read_only(where: str) -> N5UnsupportedError:
    message = "writing: this version of n5zarr only reads N5"
    return N5UnsupportedError(message, kind="read-only", where=where)


def _check_option(name: str, value: object, known: tuple[object, ...]) -> None:
    if value not in known:
        message = f"{name}: expected one of {', '.join(map(repr, known))}, got {value!r}"
        raise N5UnrepresentableError(message, kind="option")


def _wrapped(
    store: str | os.PathLike[str] | Store, storage_options: dict[str, Any] | None
) -> Store:
    """Make the store whose keys are N5's."""
    if isinstance(store, N5Store):
        message = f"store: expected a container, got {store!r}, which shows one as Zarr already"
        raise N5UnrepresentableError(message, kind="option")
    is_url = isinstance(store, str) and _URL.match(store) and not store.startswith("file://")
    if storage_options is not None and not is_url:
        message = f"storage_options: expected only with a URL, got them with {store!r}"
        raise N5UnrepresentableError(message, kind="option")
    if type(store) is LocalStore:
        # one form of the same place, so that equality and messages do not depend on the spelling
        return LocalStore(Path(store.root).resolve(), read_only=store.read_only)
    if isinstance(store, Store):
        return store
    if is_url:
        return FsspecStore.from_url(str(store), storage_options=storage_options, read_only=True)
    path = Path(os.fspath(store).removeprefix("file://"))
    return LocalStore(path.expanduser().resolve(), read_only=True)


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
    match byte_range:
        case None:
            return buffer
        case RangeByteRequest(start, end):
            return buffer[start:end]
        case OffsetByteRequest(offset):
            return buffer[offset:]
        case SuffixByteRequest(suffix):
            return buffer[max(0, len(buffer) - suffix) :]
