"""Stores of zarr's for servers that raise Python's errors, whoever reads from them.

zarr reads arrays of Zarr directly from a store, and N5 is read through
:class:`~n5zarr.storage.zarr_store.ZarrStorage`: with these stores both fail alike.
"""

from __future__ import annotations

import asyncio
import builtins
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from errno import EIO
from inspect import signature
from typing import Any, NoReturn, Self, override
from urllib.parse import urlsplit
from urllib.request import getproxies

from zarr.abc.buffer import Buffer, BufferPrototype
from zarr.abc.store import ByteRequest, Store
from zarr.storage import FsspecStore, ObjectStore

from n5zarr.codecs.buffers import BufferLike
from n5zarr.errors import option_error
from n5zarr.servers.errors import says_missing, server_error
from n5zarr.servers.object_store import CheckedObjectStore
from n5zarr.servers.url_store import UrlStore
from n5zarr.servers.web_store import WebStore
from n5zarr.storage.not_found import meant
from n5zarr.storage.secrets import secrets_of_store, shown
from n5zarr.storage.services import Service


def _told(name: str, *missing: object, is_read: bool = True) -> Any:  # noqa: ANN401 - as the method
    """Return a method of a store that raises Python's errors, for a key and other arguments.

    Parameters
    ----------
    name : str
        The method of the class behind :class:`_Served`.
    *missing : object
        What it returns for a missing key, if one may be missing.
    is_read : bool, optional
        Whether it reads.
    """

    async def method(self: _Served, *args: object, **options: object) -> object:
        first = next(iter((*args, *options.values())))
        key = str(getattr(first, "key", first))  # of an update, or given
        answer: Awaitable[object] = getattr(super(_Served, self), name)(*args, **options)
        try:
            found = await (answer if self._has_answered else _first(self, answer))
        except Exception as err:
            if not (missing and says_missing(self, err)):
                raise_in(self, key, err, is_read=is_read)
            found = missing[0]
        self._has_answered = True
        return found

    method.__name__ = name
    return method


class _Served(Service):
    """Mixin of stores for servers.

    With ``forbidden_is_missing``, a "forbidden" key is missing: S3 answers so for a missing key if
    the user may not list.
    """

    forbidden_is_missing = False
    _has_answered = False

    def with_read_only(self, read_only: bool = False) -> Self:  # noqa: FBT001, FBT002 - zarr's
        made: Self = super().with_read_only(read_only)  # type: ignore[misc]
        made.forbidden_is_missing = self.forbidden_is_missing
        return made

    get = _told("get", None)
    fetch = _told("fetch")
    exists = _told("exists", False)  # noqa: FBT003 - no option
    getsize = _told("getsize")
    ends = _told("ends", None)
    sizes_below = _told("sizes_below")
    take_keys = _told("take_keys")
    set = _told("set", is_read=False)
    set_if_not_exists = _told("set_if_not_exists", is_read=False)
    update = _told("update", is_read=False)
    delete = _told("delete", is_read=False)
    delete_dir = _told("delete_dir", is_read=False)
    _all = _told("_all")
    _some = _told("_some", None)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> builtins.list[Buffer | None]:
        return [
            *await asyncio.gather(*(self.get(key, prototype, part) for key, part in key_ranges))
        ]

    @property
    @override
    def get_waiting(self) -> Callable[[str], BufferLike | None] | None:
        read = super().get_waiting
        if read is None:
            return None

        def get(key: str) -> BufferLike | None:
            try:
                return read(key)
            except Exception as err:
                if not says_missing(self, err):
                    raise_in(self, key, err)
                return None

        return get

    def list(self) -> AsyncIterator[str]:
        return self._each("", super().list())  # type: ignore[misc]

    def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        return self._each(prefix, super().list_prefix(prefix))  # type: ignore[misc]

    def list_dir(self, prefix: str) -> AsyncIterator[str]:
        return self._each(prefix, super().list_dir(prefix))  # type: ignore[misc]

    async def _each(self, prefix: str, keys: AsyncIterator[str]) -> AsyncIterator[str]:
        try:
            async for key in keys:
                yield key
        except Exception as err:
            raise_in(self, prefix, err)


_PATIENCE = 0.3  # seconds, in which obstore has tried twice or more
_LONGEST = 5.0  # seconds to connect, obstore's own


async def _first(store: object, answer: Awaitable[Any]) -> Any:  # noqa: ANN401 - of the request
    """Await the first answer of a server; raise early if there is no server.

    obstore and s3fs repeat what no server receives as often as what a server fails to answer, for
    seconds. So if the answer takes long, connect to the server, and raise unless it accepts.
    """
    server = urlsplit(_server_of(store))
    asked = asyncio.ensure_future(answer)
    tasks: set[asyncio.Future[Any]] = {asked}
    try:
        await asyncio.wait(tasks, timeout=_PATIENCE if server.hostname else None)
        if not asked.done():
            port = server.port or (443 if server.scheme == "https" else 80)
            connected = asyncio.ensure_future(_connects(str(server.hostname), port))
            tasks.add(connected)
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not asked.done() and not connected.result():
                raise ConnectionError(EIO, f"Cannot connect to host {server.hostname}:{port}")
        return await asked
    finally:
        for task in tasks:
            task.cancel()


async def _connects(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(_LONGEST):
            _, writer = await asyncio.open_connection(host, port, happy_eyeballs_delay=0.25)
    except OSError:
        return False
    writer.close()
    return True


def _server_of(store: Any) -> str:  # noqa: ANN401 - of three kinds
    """Return the address of a server that a library asks many times; "" if none, or by a proxy."""
    if getproxies():
        return ""
    if isinstance(store, ObjectStore):
        inner: Any = store.store
        found = getattr(inner, "config", {}).get("endpoint") or getattr(inner, "url", "")
        return "" if "proxy_url" in (getattr(inner, "client_options", None) or {}) else str(found)
    fs = getattr(store, "fs", None)
    is_proxied = "proxies" in (getattr(fs, "config_kwargs", None) or {})
    return "" if is_proxied else str(getattr(fs, "endpoint_url", None) or "")


_UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'(?:\. Did you mean '(\w+)')?")


def _check_options(store: object, err: Exception) -> None:
    """Raise if a library of fsspec does not know an option, which it says at the first request.

    Raises
    ------
    N5UnrepresentableError
        An option is unknown (``kind="option"``).
    """
    found = _UNEXPECTED.search(str(err)) if isinstance(err, TypeError) else None
    fs = getattr(store, "fs", None)
    if found is None or fs is None:
        return
    known = {*signature(type(fs).__init__).parameters, found[2] or ""} - {"asynchronous"}
    hint = meant(found[1], sorted(known))
    message = f"storage_options: expected options of {type(fs).__name__}, got {found[1]!r}{hint}"
    raise option_error(message, where=str(store)) from None


def raise_in(store: _Served, key: str, err: Exception, *, is_read: bool = True) -> NoReturn:
    """Raise the error for a failed request to a store."""
    _check_options(store, err)
    where = f"{store}: {key.strip('/') or '/'}"
    better = server_error(where, err, is_read=is_read, secrets=secrets_of_store(store))
    raise better from better.__cause__


class ServedUrlStore(_Served, UrlStore):
    """Any server, through fsspec."""


class ServedWebStore(_Served, WebStore):
    """A web server, through both libraries."""


class ServedObjectStore(_Served, CheckedObjectStore[Any]):  # type: ignore[misc] # iterators
    """Any server, through obstore."""


_METHODS = ("get", "set", "delete", "delete_dir", "exists", "getsize", "list_dir", "list_prefix")
_OTHERS = (FsspecStore, UrlStore, WebStore, ObjectStore)


def served(store: Store, *, forbidden_is_missing: bool = False) -> Store:
    """Return a store that raises Python's errors; stores of other libraries stay as they are.

    Parameters
    ----------
    store : Store
        A store of zarr's.
    forbidden_is_missing : bool, optional
        Whether a "forbidden" key is missing.

    Raises
    ------
    N5UnrepresentableError
        ``forbidden_is_missing``, but the store is not one of fsspec or obstore (``kind="option"``).
    """
    made: ServedUrlStore | ServedWebStore | ServedObjectStore
    if isinstance(store, _Served) and store.forbidden_is_missing >= forbidden_is_missing:
        return store
    if type(store) not in _OTHERS and not forbidden_is_missing:  # a class of the user's, or no URL
        return store
    if isinstance(store, FsspecStore):
        made = (ServedWebStore if isinstance(store, WebStore) else ServedUrlStore).of(store)
    elif isinstance(store, ObjectStore):
        made = ServedObjectStore(store.store, read_only=store.read_only)
    else:
        message = "forbidden_is_missing: expected a URL or a store of fsspec or obstore, got"
        raise option_error(f"{message} {shown(store)}")
    made.forbidden_is_missing = forbidden_is_missing
    return made


def of_objects(store: ObjectStore[Any]) -> ServedObjectStore | None:
    """Return what answers requests to a store of zarr's, or of a user's class derived from it.

    None if that class has methods of its own, such as for keys in a folder: then all go by them.
    """
    own = (getattr(type(store), name) is not getattr(ObjectStore, name) for name in _METHODS)
    return None if any(own) else ServedObjectStore(store.store, read_only=store.read_only)
