"""Stores for URLs: what zarr's own lack for containers that are not on a local file system.

zarr's :class:`~zarr.storage.FsspecStore` says "not there" where a request failed, looks for keys
with spaces or percent signs on HTTP servers where they are not, and lists a whole tree to know
whether a directory holds anything. These are mended here.
"""

from __future__ import annotations

import asyncio
import random
import re
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, Self, override
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import zarr
from zarr.storage import FsspecStore, ObjectStore, ZipStore

from n5zarr.errors import (
    N5Error,
    N5MissingDependencyError,
    N5UnrepresentableError,
    N5UnsupportedError,
)
from n5zarr.storage.requests import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from obstore.store import ObjectStore as ObstoreStore
    from zarr.abc.buffer import Buffer, BufferPrototype
    from zarr.abc.store import ByteRequest, Store

__all__ = [
    "Backend",
    "UrlStore",
    "entries_of_objects",
    "is_chain",
    "is_url",
    "objects_below",
    "says_missing",
    "store_of_url",
    "tolerant",
    "update_object",
]

type Backend = Literal["fsspec", "obstore"]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(://|::)")
# what makes file systems read an object at once, without asking for its size first
_ONE_REQUEST = {"s3": {"max_concurrency": 1}, "gs": {"concurrency": 1}}
_PAGE = 1000  # names that one request lists
_NO_CONDITIONS = "501 Not Implemented"
_USER = re.compile(r"//[^/@]*@")
_ATTEMPTS = 50  # to change an object that others change, too
_IPV6 = re.compile(r"\[[0-9A-Fa-f:.]+\]")
_HTTP = ("http", "https")
_NO_LISTS = {403, 404, 405, 410, 501}  # what servers say that list nothing
_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "http": "aiohttp", "https": "aiohttp"}
# "forbidden" that is no way to say "not there"
_NOT_MISSING = re.compile(
    "SignatureDoesNotMatch|InvalidAccessKeyId|InvalidToken|ExpiredToken|TokenRefreshRequired"
    "|RequestTimeTooSkewed|AccountProblem|InvalidSecurity|NotSignedUp"
)
# characters that may stand in the path of a URL as they are; % begins what is quoted already
_QUOTED = "/:@!$&'()*+,;=~-._%[]"


def is_url(location: object) -> bool:
    """Whether a location is a URL, or a chain of them, but no local path."""
    if not isinstance(location, str) or _URL.match(location) is None:
        return False
    if "://" not in location:  # a chain to a local file, or a path of that name
        return not Path(location).exists()
    return not location.lower().startswith("file://")


def is_chain(url: str) -> bool:
    """Whether a URL is one of fsspec's that go through one another, ``simplecache::s3://...``."""
    return "::" in _IPV6.sub("", url)


def store_of_url(
    url: str, storage_options: Mapping[str, object] | None, *, read_only: bool, backend: Backend
) -> Store:
    """Make a store for a URL.

    Parameters
    ----------
    url : str
        Anything that fsspec reads, chains included, or obstore; ``zip://`` and a local path is a
        zip file.
    storage_options : dict or None
        For fsspec's file system, or for obstore's store.
    read_only : bool
        Whether the store refuses to write.
    backend : {"fsspec", "obstore"}
        Which library is asked.

    Raises
    ------
    N5MissingDependencyError
        The library is not installed.
    N5UnsupportedError
        obstore knows no such URL (``kind="option"``).
    """
    scheme, _, rest = url.partition(":")
    scheme = scheme.lower()
    url = f"{scheme}:{rest}"
    if backend == "obstore":
        return ObjectStore(_object_store(url, dict(storage_options or {})), read_only=read_only)
    if scheme == "zip" and not is_chain(url):
        if storage_options:
            message = f"storage_options: expected none with a local zip file, got them with {url}"
            raise N5UnrepresentableError(message, kind="option")
        return ZipStore(rest.removeprefix("//"), mode="r")
    try:
        if is_chain(url):
            return _chained(url, dict(storage_options or {}), read_only=read_only)
        if scheme in _HTTP:
            return _web(url, dict(storage_options or {}))
        # listings are made anew: others write, too
        options = {"use_listings_cache": False, **(storage_options or {})}
        return UrlStore.from_url(url, storage_options=options, read_only=read_only)
    except ImportError as err:
        package = err.name or _PACKAGES.get(scheme, "fsspec")
        raise N5MissingDependencyError(package, f"URLs: {err}", "remote") from err
    except ValueError as err:
        message = f"{url}: expected a URL that fsspec knows: {err}"
        raise N5UnsupportedError(message, kind="option") from err


def _web(url: str, options: dict[str, object]) -> UrlStore:
    """Make a store for a web server, to which there is no way to write.

    The URL is quoted here once, as keys are; what asks for access goes with every request.
    """
    from fsspec import filesystem  # noqa: PLC0415 - optional

    address, _, query = url.partition("?")
    given = {"params": parse_qsl(query, keep_blank_values=True)} if query else {}
    options = {**given, **options, "encoded": True, "asynchronous": True}
    fs = filesystem("http", **options)
    return UrlStore(fs, read_only=True, path=quote(address, safe=_QUOTED).rstrip("/"))


def _chained(url: str, options: dict[str, object], *, read_only: bool) -> UrlStore:
    from fsspec import url_to_fs  # noqa: PLC0415 - optional
    from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper  # noqa: PLC0415

    chain, path = url_to_fs(url, **options)
    wrapped = AsyncFileSystemWrapper(chain, asynchronous=True)
    return UrlStore(wrapped, read_only=read_only, path=path)


def _object_store(url: str, options: dict[str, Any]) -> ObstoreStore:
    try:
        from obstore import store as stores  # noqa: PLC0415 - optional
    except ImportError as err:
        raise N5MissingDependencyError("obstore", "backend='obstore'", "remote") from err
    parts = urlsplit(url)
    try:
        if parts.scheme in ("s3", "gs"):  # not parsed as URLs, where % and ? mean something
            bucket, _, prefix = url.partition("://")[2].partition("/")
            make = stores.S3Store if parts.scheme == "s3" else stores.GCSStore
            return make(bucket, prefix=prefix.strip("/") or None, **options)
        return stores.from_url(url, **options)
    except Exception as err:
        message = f"backend='obstore': {url}: {err}; backend='fsspec' knows other URLs"
        raise N5UnsupportedError(message, kind="option") from err


class UrlStore(FsspecStore):
    """zarr's store over fsspec, of which a failed request is an error, and every name is a key."""

    @classmethod
    def of(cls, store: FsspecStore) -> Self:
        """Take the place of another store of the same files."""
        return cls(
            store.fs,
            read_only=store.read_only,
            path=store.path,
            allowed_exceptions=store.allowed_exceptions,
        )

    @property
    def is_http(self) -> bool:
        """Whether keys are parts of URLs, and directories are pages of links, if anything."""
        return self.path.startswith(("http://", "https://")) and hasattr(self.fs, "set_session")

    def __str__(self) -> str:
        if self.is_http:
            return _USER.sub("//", self.path)  # without a password
        return str(self.fs.unstrip_protocol(self.path))

    def _url_key(self, key: str) -> str:
        return quote(key, safe="/") if self.is_http else key

    @override
    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        if byte_range is not None:
            return await super().get(self._url_key(key), prototype, byte_range)
        how = next((how for name, how in _ONE_REQUEST.items() if name in self.fs.protocol), {})
        try:
            data = await self.fs._cat_file(self._full(key), **how)
        except self.allowed_exceptions:
            return None
        return prototype.buffer.from_bytes(data)

    @override
    async def set(self, key: str, value: Buffer, byte_range: tuple[int, int] | None = None) -> None:
        await super().set(self._url_key(key), value, byte_range)

    @override
    async def delete(self, key: str) -> None:
        self._check_writable()
        # not `_rm`, which takes names for patterns
        with suppress(*self.allowed_exceptions):
            await self.fs._rm_file(self._full(key))

    @override
    async def delete_dir(self, prefix: str) -> None:
        self._check_writable()
        directory = self._full(prefix.strip("/")).rstrip("/")
        try:
            found = await self.fs._find(directory, withdirs=False)
        except self.allowed_exceptions:
            return
        # the root may be a bucket, which stays
        below = [name for name in found if not directory or name.startswith(f"{directory}/")]
        limit = asyncio.Semaphore(zarr.config.get("async.concurrency") or 64)

        async def remove(name: str) -> None:
            async with limit:
                with suppress(*self.allowed_exceptions):
                    await self.fs._rm_file(name)

        await asyncio.gather(*map(remove, below))

    @override
    async def clear(self) -> None:
        await self.delete_dir("")

    @override
    async def exists(self, key: str) -> bool:
        if self.is_http:  # for which fsspec takes every error for "not there"
            session = await self.fs.set_session()
            async with session.get(self.fs.encode_url(self._full(key)), **self.fs.kwargs) as found:
                if found.status not in (404, 410):
                    found.raise_for_status()
                return bool(found.ok)
        try:
            found = await self.fs._info(self._full(key))
        except self.allowed_exceptions:
            return False
        return bool(found.get("type", "file") != "directory")

    @override
    async def getsize(self, key: str) -> int:
        return await super().getsize(self._url_key(key))

    async def entries(self, path: str) -> list[Entry]:
        """List a directory.

        Raises
        ------
        N5UnsupportedError
            The server lists nothing (``kind="listing"``).
        """
        directory = self._full(path).rstrip("/")
        try:
            page = f"{directory}/" if self.is_http else directory  # else it is asked for twice
            self._forget_listing(page)
            found = await self.fs._ls(page, detail=True)
        except Exception as err:
            status = 404 if isinstance(err, FileNotFoundError) else getattr(err, "status", None)
            if self.is_http and status in _NO_LISTS:
                message = (
                    f"listing: the server gives no list of {directory}/ ({err}); groups and "
                    "datasets can be opened by their paths"
                )
                raise N5UnsupportedError(message, kind="listing") from err
            if isinstance(err, self.allowed_exceptions):
                return []
            raise
        names: dict[str, bool] = {}
        directory = unquote(directory) if self.is_http else directory
        for entry in found:
            name = str(entry["name"])
            if self.is_http:  # a page of links, also to places in the page itself
                name = unquote(name.partition("?")[0].partition("#")[0])
            name = name.removeprefix(f"{directory}/" if directory else "")
            is_dir = entry.get("type") == "directory" or name.endswith("/")
            name = str(PurePosixPath(name.rstrip("/")))
            # marker objects `path/`, which Java leaves on object stores, are the directory itself
            if name not in (".", "..") and "/" not in name:
                names[name] = names.get(name, False) or is_dir
        return [Entry(name, names[name]) for name in sorted(names)]

    async def holds(self, path: str) -> bool:
        """Whether there is anything below a path, with as little listing as fsspec can."""
        directory = self._full(path).rstrip("/")
        few = getattr(self.fs, "_lsdir", None)
        if few is not None and "s3" in self.fs.protocol:
            try:
                found = await few(directory, refresh=True, max_items=_PAGE, delimiter="")
            except self.allowed_exceptions:
                return False
            return any(not str(entry["name"]).endswith("/") for entry in found)
        try:
            return bool(await self.entries(path))
        except N5UnsupportedError:  # then only what has a document is there
            return False

    def _forget_listing(self, directory: str) -> None:
        """Have a directory listed anew, also by file systems that users made: others write, too."""
        for fs in (self.fs, getattr(self.fs, "sync_fs", None)):
            if fs is not None:
                fs.invalidate_cache(directory)

    def _full(self, path: str) -> str:
        root = self.path.rstrip("/")
        key = self._url_key(path)
        return f"{root}/{key}" if root and key else root or key


class _Tolerant:
    """Takes "forbidden" for "not there", as S3 means it where listing is not allowed."""

    async def get(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the other base
        try:
            return await super().get(*args, **kwargs)  # type: ignore[misc]
        except Exception as err:
            if says_missing(self, err):
                return None
            raise

    async def exists(self, key: str) -> bool:
        try:
            return bool(await super().exists(key))  # type: ignore[misc]
        except Exception as err:
            if says_missing(self, err):
                return False
            raise


class _TolerantUrlStore(_Tolerant, UrlStore):
    pass


class _TolerantObjectStore(_Tolerant, ObjectStore[Any]):
    pass


def says_missing(store: object, err: Exception) -> bool:
    """Whether an error means that there is no such key in a store."""
    if isinstance(err, FileNotFoundError):
        return True
    is_forbidden = (
        isinstance(err, PermissionError)
        or getattr(err, "status", None) == 403
        or type(err).__name__ in ("PermissionDeniedError", "UnauthenticatedError")
        or "403 Forbidden" in str(err)  # obstore, of lists
    )
    if not isinstance(store, _Tolerant) or not is_forbidden:
        return False
    causes = [err, err.__cause__, err.__context__]
    told = " ".join(f"{cause} {getattr(cause, 'response', '')}" for cause in causes)
    return _NOT_MISSING.search(told) is None


def tolerant(store: Store) -> Store:
    """Make a store that takes "forbidden" for "not there".

    Raises
    ------
    N5UnrepresentableError
        The store is none of fsspec or obstore (``kind="option"``).
    """
    if isinstance(store, FsspecStore):
        return _TolerantUrlStore.of(store)
    if isinstance(store, ObjectStore):
        return _TolerantObjectStore(store.store, read_only=store.read_only)
    message = f"forbidden_is_missing: expected a URL or a store of fsspec or obstore, got {store!r}"
    raise N5UnrepresentableError(message, kind="option")


# ---------------------------------------------------------------------- obstore


async def entries_of_objects(store: ObjectStore[Any], path: str) -> list[Entry]:
    """List a directory of an object store, with one request for each thousand names."""
    import obstore  # noqa: PLC0415 - there is a store of it

    if _is_http(store):
        message = (
            f"listing: obstore lists {store.store} only if it is a WebDAV server; groups and "
            "datasets can be opened by their paths, and backend='fsspec' reads pages of links"
        )
        raise N5UnsupportedError(message, kind="listing")
    found = await obstore.list_with_delimiter_async(store.store, prefix=path or None)
    directories = {_name(prefix, path): True for prefix in found["common_prefixes"]}
    files = {_name(meta["path"], path): False for meta in found["objects"]}
    both = files | directories
    return [Entry(name, both[name]) for name in sorted(both) if name and "/" not in name]


async def objects_below(store: ObjectStore[Any], path: str) -> bool:
    """Whether there is anything below a path, with one request."""
    import obstore  # noqa: PLC0415 - there is a store of it

    if _is_http(store):
        return False
    async for batch in obstore.list(store.store, prefix=path or None):
        # markers of directories have no bytes; documents and blocks do
        if any(meta["size"] for meta in batch):
            return True
    return False


def _is_http(store: ObjectStore[Any]) -> bool:
    return type(store.store).__name__ == "HTTPStore"


def _name(full: str, path: str) -> str:
    return full.strip("/").removeprefix(f"{path}/" if path else "").strip("/")


async def update_object(
    store: ObjectStore[Any], key: str, change: Callable[[bytes | None], bytes]
) -> bytes:
    """Replace an object unless somebody else does meanwhile; then start again.

    Where the service knows no conditional writing, the last writer wins.
    """
    import obstore  # noqa: PLC0415 - there is a store of it
    from obstore import exceptions  # noqa: PLC0415

    for attempt in range(_ATTEMPTS):
        old: bytes | None = None
        mode: Any = "create"
        try:
            found = await obstore.get_async(store.store, key)
            old = bytes(await found.bytes_async())
            mode = {k: v for k in ("e_tag", "version") if (v := found.meta[k]) is not None}
        except Exception as err:
            if not says_missing(store, err):
                raise
        new = change(old)
        if new == old:
            return new
        try:
            await obstore.put_async(store.store, key, new, mode=mode)
        except (exceptions.PreconditionError, exceptions.AlreadyExistsError):
            await asyncio.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 6)))  # noqa: S311
            continue
        except (exceptions.GenericError, exceptions.NotSupportedError, NotImplementedError) as err:
            # words, not the number alone: messages hold times, too
            if isinstance(err, exceptions.GenericError) and _NO_CONDITIONS not in str(err):
                raise
            await obstore.put_async(store.store, key, new)  # the service cannot tell
        return new
    message = f"{key}: others wrote it at each of {_ATTEMPTS} attempts to update it; try again"
    raise N5Error(message, kind="changed")
