"""Stores of zarr's for servers that raise Python's errors, whoever reads from them.

zarr reads arrays of Zarr directly from a store, and N5 is read through
:class:`~n5zarr.storage.zarr_store.ZarrStorage`: with these stores both fail alike.
"""

from __future__ import annotations

import asyncio
import re
from errno import EIO
from inspect import signature
from typing import TYPE_CHECKING, Any, NoReturn, Self
from urllib.parse import urlsplit
from urllib.request import getproxies

from zarr.storage import FsspecStore, ObjectStore

from n5zarr.errors import option_error
from n5zarr.storage.not_found import meant
from n5zarr.storage.objects import CheckedObjectStore
from n5zarr.storage.secrets import secrets_of_store, shown
from n5zarr.storage.url import says_missing, server_error
from n5zarr.storage.url_store import UrlStore
from n5zarr.storage.web_store import WebStore

if TYPE_CHECKING:
    import builtins
    from collections.abc import AsyncIterator, Awaitable, Iterable

    from zarr.abc.buffer import Buffer, BufferPrototype
    from zarr.abc.store import ByteRequest, Store


class _Served:
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

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        found: Buffer | None = await self._ask(key, super().get(key, prototype, byte_range), None)  # type: ignore[misc]
        return found

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> builtins.list[Buffer | None]:
        return await asyncio.gather(*(self.get(key, prototype, part) for key, part in key_ranges))

    async def exists(self, key: str) -> bool:
        return bool(await self._ask(key, super().exists(key), False))  # type: ignore[misc] # noqa: FBT003

    async def getsize(self, key: str) -> int:
        size: int = await self._ask(key, super().getsize(key))  # type: ignore[misc]
        return size

    async def set(self, key: str, value: Buffer) -> None:
        await self._ask(key, super().set(key, value), is_read=False)  # type: ignore[misc]

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        await self._ask(key, super().set_if_not_exists(key, value), is_read=False)  # type: ignore[misc]

    async def delete(self, key: str) -> None:
        await self._ask(key, super().delete(key), is_read=False)  # type: ignore[misc]

    async def delete_dir(self, prefix: str) -> None:
        await self._ask(prefix, super().delete_dir(prefix), is_read=False)  # type: ignore[misc]

    def list(self) -> AsyncIterator[str]:
        return self._each("", super().list())  # type: ignore[misc]

    def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        return self._each(prefix, super().list_prefix(prefix))  # type: ignore[misc]

    def list_dir(self, prefix: str) -> AsyncIterator[str]:
        return self._each(prefix, super().list_dir(prefix))  # type: ignore[misc]

    async def _ask(
        self, key: str, answer: Awaitable[Any], *missing: object, is_read: bool = True
    ) -> Any:  # noqa: ANN401 - of the request
        """Await an answer; return what stands for a missing key, if one may be missing."""
        try:
            found = await (answer if self._has_answered else _first(self, answer))
        except Exception as err:
            if not (missing and says_missing(self, err)):
                raise_in(self, key, err, is_read=is_read)
            found = missing[0]
        self._has_answered = True
        return found

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


def raise_in(store: object, key: str, err: Exception, *, is_read: bool = True) -> NoReturn:
    """Raise the error for a failed request to a store; of other stores than ours, the error."""
    better = err
    if isinstance(store, _Served):
        _check_options(store, err)
        where = f"{store}: {key.strip('/') or '/'}"
        better = server_error(where, err, is_read=is_read, secrets=secrets_of_store(store))
    raise better from better.__cause__


class ServedUrlStore(_Served, UrlStore):  # type: ignore[misc] # UrlStore takes more
    """Any server, through fsspec."""


class ServedWebStore(_Served, WebStore):  # type: ignore[misc] # as above
    """A web server, through both libraries."""


class ServedObjectStore(_Served, CheckedObjectStore[Any]):  # type: ignore[misc] # iterators
    """Any server, through obstore."""


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
