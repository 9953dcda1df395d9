"""What a container needs of a store beyond zarr's interface, done in zarr's ways."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast, override

from zarr.abc.store import RangeByteRequest, Store
from zarr.buffer import cpu
from zarr.storage import FsspecStore, ObjectStore

from n5zarr._zarr import LocalStore
from n5zarr.codecs.buffers import BufferLike
from n5zarr.rooms import Door
from n5zarr.storage.cache import Kept
from n5zarr.storage.ending import on_thread
from n5zarr.storage.requests import Entry, Update
from n5zarr.storage.secrets import secrets_of_store, without_secrets
from n5zarr.storage.store_locations import innermost

type ListingPage = tuple[list[str], list[int] | None]
"""Some keys of a listing, and the sizes of their values if the listing has them."""

PAGE = 1000  # names in one answer of a listing
_FEW_BYTES = 2**12  # to decode and encode, in less time than passing them to a thread


_OF_OBJECTS: Door[Callable[[ObjectStore[Any]], Service | None]] = Door("server", "objects")


async def changed(request: Update, old: bytes | None) -> bytes | None:
    """Return the new value that a request makes of the old one."""
    is_little = request.n_bytes <= _FEW_BYTES
    return request.change(old) if is_little else await on_thread(request.change, old)


class Service:
    """Base class of stores that answer requests in better ways than zarr's; this one has zarr's."""

    @property
    def zarr_store(self) -> Store:
        """The store that is asked."""
        return cast("Store", self)

    @property
    def is_shared(self) -> bool:
        """Whether other processes see the same values."""
        match self.zarr_store:
            case FsspecStore() as store:
                return not str(store.fs.unstrip_protocol("")).startswith("memory")
            case ObjectStore() as store:
                return type(store.store).__name__ != "MemoryStore"
            case _:
                return False

    @property
    def is_conditional(self) -> bool:
        """Whether updates lose nothing that others write meanwhile, so that they need no lock."""
        return False

    @property
    def lists_all(self) -> bool:
        """Whether names that a listing lacks do not exist."""
        return True

    @property
    def get_waiting(self) -> Callable[[str], BufferLike | None] | None:
        """A function that reads a value, and waits for it on any thread; None if there is none."""
        return None

    def where(self, key: str) -> tuple[object, str]:
        """Return who is asked, and for what, without credentials: stores of one server share it."""
        return id(self.zarr_store), key

    async def fetch(
        self, key: str, _kept: Kept[bytes | None] | None, now: float
    ) -> Kept[bytes | None]:
        """Read a value for a cache that may have an older one."""
        value = await self.zarr_store.get(key, cpu.buffer_prototype)
        return Kept(None if value is None else value.to_bytes(), now)

    async def update(self, request: Update) -> bytes | None:
        """Replace a value by the result of a function; write nothing if it is the same."""
        store, key = self.zarr_store, request.key
        old = await store.get(key, cpu.buffer_prototype)
        new = await changed(request, None if old is None else old.to_bytes())
        if new is None:
            if old is not None:
                await store.delete(key)
        elif old is None or new != old.to_bytes():
            await store.set(key, cpu.Buffer.from_bytes(new))
        return new

    # ------------------------------------------------------------------ ends of values

    async def ends(self, key: str, first: int, last: int) -> tuple[int, bytes, bytes] | None:
        """Read the size of a value, and its first and last bytes."""
        found = await self._start(key, first)
        if found is None:
            return None
        start, size = found
        if len(start) >= size or not last:  # some servers send the whole value
            return size, start, b""
        rest = RangeByteRequest(max(first, size - last), size)
        end = await self.zarr_store.get(key, cpu.buffer_prototype, rest)
        if end is None:
            return None
        if size <= first + last:
            return size, start + end.to_bytes(), b""
        return size, start, end.to_bytes()

    async def _start(self, key: str, n_bytes: int) -> tuple[bytes, int] | None:
        """Read the first bytes of a value, and its size; None if the key is missing."""
        store, part = self.zarr_store, RangeByteRequest(0, n_bytes)
        value, size = await asyncio.gather(
            store.get(key, cpu.buffer_prototype, part), store.getsize(key), return_exceptions=True
        )
        if size == 0:  # some servers refuse a range of an empty value
            return b"", 0
        if isinstance(value, BaseException):
            raise value
        if value is None:
            return None
        if isinstance(size, BaseException):
            raise size
        return value.to_bytes(), size

    # ------------------------------------------------------------------ listings

    async def entries(self, path: str, *, few: bool = False) -> list[Entry] | None:
        """List a directory; with ``few``, at least one entry unless it is empty.

        None if it is missing: a store has a directory without entries only if it has its marker.
        """
        return await (self._some(path) if few else self._all(path))

    async def _all(self, path: str) -> list[Entry] | None:
        # zarr's list_dir does not distinguish directories from files
        names = {name.strip("/") async for name in self.zarr_store.list_dir(path)}
        # Java leaves empty objects `path/`, which stores list with their whole path
        return [Entry(name, None) for name in sorted(names) if name and "/" not in name] or None

    async def _some(self, path: str) -> list[Entry] | None:
        return await self._all(path)

    async def sizes_below(self, path: str) -> dict[str, int | None]:
        """List all keys below a directory, with the sizes of their values if one may be empty."""
        keys = self.zarr_store.list_prefix(f"{path}/" if path else "")
        return {key: None async for key in keys}

    async def take_keys[R](self, path: str, take: Callable[..., R]) -> list[R] | None:
        """Pass each page of the keys below a directory, and their sizes, to a function.

        None if directories are listed singly.
        """
        pages = self._keys_below(path)
        return None if pages is None else [take(*page) async for page in pages]

    def _keys_below(self, path: str) -> AsyncIterator[ListingPage] | None:
        """List the keys below a directory, relative to it; None if directories are listed singly.

        Where directories exist, many stores omit those that they cannot read from such a listing.
        """
        is_of_directories = isinstance(
            innermost(self.zarr_store), LocalStore | FsspecStore | ObjectStore
        )
        return None if is_of_directories else self._keys_of_store(path)

    async def _keys_of_store(self, path: str) -> AsyncIterator[ListingPage]:
        prefix = f"{path}/" if path else ""
        keys: list[str] = []
        async for key in self.zarr_store.list_prefix(prefix):
            keys.append(key.removeprefix(prefix))
            if len(keys) == PAGE:
                yield keys, None
                keys = []
        yield keys, None


class _AnyStore(Service):
    """Any store of zarr's or of a user's."""

    def __init__(self, store: Store) -> None:
        self._asked = store

    @property
    @override
    def zarr_store(self) -> Store:
        return self._asked

    def __str__(self) -> str:
        return without_secrets(str(self._asked), secrets_of_store(self._asked))


def service_of(store: Store) -> Service:
    """Return what answers requests to a store: the store itself, if it can."""
    if isinstance(store, Service):
        return store
    if (
        isinstance(store, ObjectStore)
        and (of_objects := _OF_OBJECTS.found()) is not None
        and (found := of_objects(store)) is not None
    ):
        return found
    return _AnyStore(store)
