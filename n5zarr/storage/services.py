"""Ask zarr's stores what zarr's interface lacks: a class for each service, as it does it best."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, override

from zarr.abc.store import RangeByteRequest
from zarr.buffer import cpu
from zarr.storage import FsspecStore, ObjectStore

from n5zarr._zarr import LocalStore
from n5zarr.errors import N5UnsupportedError
from n5zarr.format.path import join
from n5zarr.storage.cache import Kept
from n5zarr.storage.ending import on_thread
from n5zarr.storage.objects import (
    KINDS,
    can_wait,
    name_of_objects,
    options_for,
    received,
    update_object,
    value_of_object,
)
from n5zarr.storage.requests import Entry, Update
from n5zarr.storage.secrets import is_secret, secrets_of_store, without_secrets
from n5zarr.storage.served import raise_in
from n5zarr.storage.store_locations import innermost
from n5zarr.storage.url import says_missing
from n5zarr.storage.url_store import PAGE, ListingPage, UrlStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from obstore import GetOptions
    from zarr.abc.store import Store

    from n5zarr.codecs.buffers import BufferLike

_FEW_BYTES = 2**12  # to decode and encode, in less time than passing them to a thread


async def _changed(request: Update, old: bytes | None) -> bytes | None:
    """Return the new value that a request makes of the old one."""
    is_little = request.n_bytes <= _FEW_BYTES
    return request.change(old) if is_little else await on_thread(request.change, old)


class Service[T: "Store"]:
    """Any store of zarr's, asked in zarr's ways.

    Parameters
    ----------
    store : zarr.abc.store.Store
        The store.
    """

    def __init__(self, store: T) -> None:
        self.store = store

    def __str__(self) -> str:
        return without_secrets(str(self.store), secrets_of_store(self.store))

    @property
    def is_shared(self) -> bool:
        """Whether other processes see the same values."""
        store: Any = self.store
        is_url = isinstance(store, FsspecStore)
        return is_url and not str(store.fs.unstrip_protocol("")).startswith("memory")

    @property
    def lists_all(self) -> bool:
        """Whether names that a listing lacks do not exist."""
        return True

    @property
    def get_waiting(self) -> Callable[[str], BufferLike] | None:
        """A function that reads a value, and waits for it on any thread; None if there is none."""
        return None

    def where(self, key: str) -> tuple[object, str]:
        """Return who is asked, and for what, without credentials: stores of one server share it."""
        return id(self.store), key

    async def fetch(
        self, key: str, _kept: Kept[bytes | None] | None, now: float
    ) -> Kept[bytes | None]:
        """Read a value for a cache that may have an older one."""
        value = await self.store.get(key, cpu.buffer_prototype)
        return Kept(None if value is None else value.to_bytes(), now)

    async def update(self, request: Update) -> bytes | None:
        """Replace a value by the result of a function; write nothing if it is the same."""
        key = request.key
        old = await self.store.get(key, cpu.buffer_prototype)
        new = await _changed(request, None if old is None else old.to_bytes())
        if new is None:
            if old is not None:
                await self.store.delete(key)
        elif old is None or new != old.to_bytes():
            await self.store.set(key, cpu.Buffer.from_bytes(new))
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
        end = await self.store.get(key, cpu.buffer_prototype, rest)
        if end is None:
            return None
        if size <= first + last:
            return size, start + end.to_bytes(), b""
        return size, start, end.to_bytes()

    async def _start(self, key: str, n_bytes: int) -> tuple[bytes, int] | None:
        """Read the first bytes of a value, and its size; None if the key is missing."""
        part = RangeByteRequest(0, n_bytes)
        value, size = await asyncio.gather(
            self.store.get(key, cpu.buffer_prototype, part),
            self.store.getsize(key),
            return_exceptions=True,
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
        try:
            return await (self._some(path) if few else self._entries(path))
        except Exception as err:
            if few and says_missing(self.store, err):
                return None
            raise_in(self.store, path, err)

    async def _entries(self, path: str) -> list[Entry] | None:
        # zarr's list_dir does not distinguish directories from files
        names = {name.strip("/") async for name in self.store.list_dir(path)}
        # Java leaves empty objects `path/`, which stores list with their whole path
        return [Entry(name, None) for name in sorted(names) if name and "/" not in name] or None

    async def _some(self, path: str) -> list[Entry] | None:
        return await self._entries(path)

    async def sizes_below(self, path: str) -> dict[str, int | None]:
        """List all keys below a directory, with the sizes of their values if one may be empty."""
        return {key: None async for key in self.store.list_prefix(f"{path}/" if path else "")}

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
            innermost(self.store), LocalStore | FsspecStore | ObjectStore
        )
        return None if is_of_directories else self._keys_of_store(path)

    async def _keys_of_store(self, path: str) -> AsyncIterator[ListingPage]:
        prefix = f"{path}/" if path else ""
        keys: list[str] = []
        async for key in self.store.list_prefix(prefix):
            keys.append(key.removeprefix(prefix))
            if len(keys) == PAGE:
                yield keys, None
                keys = []
        yield keys, None


class _Urls(Service[UrlStore]):
    """What fsspec reads."""

    @property
    @override
    def lists_all(self) -> bool:
        return not self.store.is_http  # the page of a web server may link to a part only

    @override
    def where(self, key: str) -> tuple[object, str]:
        is_tolerant = getattr(self.store, "forbidden_is_missing", False)
        return (id(self.store.fs), type(self.store), is_tolerant), self.store.full_key(key)

    @override
    async def _entries(self, path: str) -> list[Entry] | None:
        return await self.store.entries(path)

    @override
    async def _some(self, path: str) -> list[Entry] | None:
        return await self.store.some(path)

    @override
    def _keys_below(self, path: str) -> AsyncIterator[ListingPage] | None:
        return self.store.keys_below(path) if self.store.is_flat else None


class _Objects(Service[ObjectStore[Any]]):
    """What obstore reads."""

    @override
    def __str__(self) -> str:
        return name_of_objects(self.store)

    @property
    def _kind(self) -> str:
        return type(self.store.store).__name__

    @property
    @override
    def is_shared(self) -> bool:
        return self._kind != "MemoryStore"

    @property
    @override
    def get_waiting(self) -> Callable[[str], BufferLike] | None:
        return (lambda key: value_of_object(self.store, key)) if can_wait(self.store) else None

    @override
    def where(self, key: str) -> tuple[object, str]:
        inner: Any = self.store.store
        if self._kind not in KINDS:
            return super().where(key)
        server = frozenset(
            (name, without_secrets(str(value)))
            for name, value in inner.config.items()
            if not is_secret(name)
        )
        is_tolerant = getattr(self.store, "forbidden_is_missing", False)
        return (type(self.store), is_tolerant, self._kind, server), join(inner.prefix or "", key)

    @override
    async def fetch(
        self, key: str, kept: Kept[bytes | None] | None, now: float
    ) -> Kept[bytes | None]:
        """Read a value, which the service sends only if it has changed."""
        import obstore.exceptions  # noqa: PLC0415 - optional, and installed: the store is one of its

        e_tag = kept and kept.e_tag
        options: GetOptions = {"if_none_match": e_tag} if e_tag else {}
        try:
            response = await obstore.get_async(self.store.store, key, options=options)
            return Kept(bytes(await received(response)), now, response.meta["e_tag"])
        except obstore.exceptions.NotModifiedError:
            return Kept(kept and kept.answer, now, e_tag)
        except Exception as err:
            if says_missing(self.store, err):
                return Kept(None, now)
            raise

    @override
    async def update(self, request: Update) -> bytes | None:
        return await update_object(self.store, request.key, partial(_changed, request))

    @override
    async def _start(self, key: str, n_bytes: int) -> tuple[bytes, int] | None:
        import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

        try:
            asked = RangeByteRequest(0, n_bytes)
            options = options_for(asked)
            response = await obstore.get_async(self.store.store, key, options=options)
            return bytes(await received(response, asked)), response.meta["size"]
        except Exception as err:
            if says_missing(self.store, err):
                return None
            meta = await obstore.head_async(self.store.store, key)
            if meta["size"] == 0:  # an empty object has no range
                return b"", 0
            raise

    @override
    async def _entries(self, path: str) -> list[Entry] | None:
        """List a directory, with one request for each thousand names."""
        import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

        inner = self.store.store
        if self._kind == "HTTPStore":
            message = (
                f"listing: obstore lists {inner} only if it is a WebDAV server; groups and "
                "datasets can be opened by their paths, and backend='fsspec' reads pages of links"
            )
            raise N5UnsupportedError(message, kind="listing")
        listed = await obstore.list_with_delimiter_async(inner, prefix=path or None)
        directories = {_name(prefix, path): True for prefix in listed["common_prefixes"]}
        files = {_name(meta["path"], path): False for meta in listed["objects"]}
        both = files | directories
        if not both:
            return None
        return [Entry(name, both[name]) for name in sorted(both) if name and "/" not in name]

    @override
    async def _some(self, path: str) -> list[Entry] | None:
        """List some entries below a path, with one request in most cases."""
        import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

        if self._kind == "HTTPStore":
            return None
        found = None
        async for batch in obstore.list(self.store.store, prefix=path or None):
            names = {_name(meta["path"], path).partition("/")[0] for meta in batch}
            found = [Entry(name, None) for name in names if name] if names else found
            if found:
                break
        return found

    @override
    async def sizes_below(self, path: str) -> dict[str, int | None]:
        import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

        pages = obstore.list(self.store.store, prefix=path or None)
        return {meta["path"]: meta["size"] async for page in pages for meta in page}

    @override
    def _keys_below(self, path: str) -> AsyncIterator[ListingPage] | None:
        return self._objects_below(path) if self._kind in KINDS else None

    async def _objects_below(self, path: str) -> AsyncIterator[ListingPage]:
        import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

        prefix = f"{path}/" if path else ""
        before: dict[str, int] = {}  # the last key, which may be the marker of a directory
        async for batch in obstore.list(self.store.store, prefix=path or None, chunk_size=PAGE):
            found = before
            for meta in batch:
                key, last = meta["path"].removeprefix(prefix), next(reversed(found), None)
                # obstore lists Java's `0/` as `0`, right before what is in the directory
                if last is not None and not found[last] and key.startswith(f"{last}/"):
                    del found[last]
                if meta["path"] != path:
                    found[key] = meta["size"]
            before = dict([found.popitem()]) if found else {}
            yield [*found], [*found.values()]
        yield [*before], [*before.values()]


def _name(full: str, path: str) -> str:
    """Return the name of an entry from its full path; ``""`` for the marker of the directory."""
    inner = full.strip("/")
    return "" if inner == path else inner.removeprefix(f"{path}/" if path else "").strip("/")


def service_of(store: Store) -> Service[Any]:
    """Return the service of a store, which holds nothing but the store."""
    match store:
        case UrlStore():
            return _Urls(store)
        case ObjectStore():
            return _Objects(store)
        case _:
            return Service(store)
