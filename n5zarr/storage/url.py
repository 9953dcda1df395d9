"""Stores for URLs: open them, and add what zarr's own stores lack for remote containers.

zarr's :class:`~zarr.storage.FsspecStore` reports a failed request as a missing key, asks HTTP
servers for the wrong URL when a key holds spaces or percent signs, and lists a whole tree to know
whether a directory is empty. :class:`UrlStore` mends these.
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

    from obstore import ObjectMeta, PutMode, UpdateVersion
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
# arguments with which file systems read an object in one request, without asking for its size
_ONE_REQUEST = {"s3": {"max_concurrency": 1}, "gs": {"concurrency": 1}}
_PAGE = 1000  # names in one answer of a listing
_NO_CONDITIONS = "501 Not Implemented"
_USER = re.compile(r"//[^/@]*@")
_ATTEMPTS = 50  # at an update of an object that others update, too
_IPV6 = re.compile(r"\[[0-9A-Fa-f:.]+\]")
_HTTP = ("http", "https")
_NO_LISTS = {403, 404, 405, 410, 501}  # status codes of servers that do not list
_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "http": "aiohttp", "https": "aiohttp"}
# reasons in a "forbidden" answer that never mean that the key is missing
_NOT_MISSING = re.compile(
    "SignatureDoesNotMatch|InvalidAccessKeyId|InvalidToken|ExpiredToken|TokenRefreshRequired"
    "|RequestTimeTooSkewed|AccountProblem|InvalidSecurity|NotSignedUp"
)
# characters left unquoted in the path of a URL; "%" begins one that is quoted already
_QUOTED = "/:@!$&'()*+,;=~-._%[]"


def is_url(location: object) -> bool:
    """Whether a location is a URL or a chain of URLs, and not a local path."""
    if not isinstance(location, str) or _URL.match(location) is None:
        return False
    if "://" not in location:  # with "::": a chain to a local file, or a local path
        return not Path(location).exists()
    return not location.lower().startswith("file://")


def is_chain(url: str) -> bool:
    """Whether a URL is a chain of fsspec's, such as ``simplecache::s3://...``."""
    return "::" in _IPV6.sub("", url)


def store_of_url(
    url: str, storage_options: Mapping[str, object] | None, *, read_only: bool, backend: Backend
) -> Store:
    """Open a store for a URL.

    Parameters
    ----------
    url : str
        Any URL that the backend reads, chains of fsspec's included; ``zip://`` followed by a local
        path is a local zip file.
    storage_options : dict or None
        For fsspec's file system, or for obstore's store.
    read_only : bool
        Whether the store refuses to write.
    backend : {"fsspec", "obstore"}
        Which library reads and writes.

    Raises
    ------
    N5MissingDependencyError
        The library is not installed.
    N5UnrepresentableError
        Options are given for a local zip file (``kind="option"``).
    N5UnsupportedError
        The library does not know such a URL (``kind="option"``).
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
        # fsspec would keep listings, but others write, too
        options = {"use_listings_cache": False, **(storage_options or {})}
        return UrlStore.from_url(url, storage_options=options, read_only=read_only)
    except ImportError as err:
        package = err.name or _PACKAGES.get(scheme, "fsspec")
        raise N5MissingDependencyError(package, f"URLs: {err}", "remote") from err
    except ValueError as err:
        message = f"{url}: expected a URL that fsspec knows: {err}"
        raise N5UnsupportedError(message, kind="option") from err


def _web(url: str, options: dict[str, object]) -> UrlStore:
    """Open a read-only store for a web server.

    The URL is quoted once, here, as keys are when they are asked for. Its query, which may hold an
    access token, is sent with every request.
    """
    from fsspec import filesystem  # noqa: PLC0415 - optional

    address, _, query = url.partition("?")
    given = {"params": parse_qsl(query, keep_blank_values=True)} if query else {}
    options = {**given, **options, "encoded": True, "asynchronous": True}
    fs = filesystem("http", **options)
    return UrlStore(fs, read_only=True, path=quote(address, safe=_QUOTED).rstrip("/"))


def _chained(url: str, options: dict[str, object], *, read_only: bool) -> UrlStore:
    """Open a store for a chain of fsspec's URLs."""
    from fsspec import url_to_fs  # noqa: PLC0415 - optional
    from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper  # noqa: PLC0415

    chain, path = url_to_fs(url, **options)
    wrapped = AsyncFileSystemWrapper(chain, asynchronous=True)
    return UrlStore(wrapped, read_only=read_only, path=path)


def _object_store(url: str, options: dict[str, Any]) -> ObstoreStore:
    """Open obstore's store for a URL."""
    try:
        from obstore import store as stores  # noqa: PLC0415 - optional
    except ImportError as err:
        raise N5MissingDependencyError("obstore", "backend='obstore'", "remote") from err
    parts = urlsplit(url)
    try:
        # taken apart by hand: in the name of an object, "%" and "?" have no special meaning
        if parts.scheme in ("s3", "gs"):
            bucket, _, prefix = url.partition("://")[2].partition("/")
            make = stores.S3Store if parts.scheme == "s3" else stores.GCSStore
            return make(bucket, prefix=prefix.strip("/") or None, **options)
        return stores.from_url(url, **options)
    except Exception as err:
        message = f"backend='obstore': {url}: {err}; backend='fsspec' knows other URLs"
        raise N5UnsupportedError(message, kind="option") from err


class UrlStore(FsspecStore):
    """FsspecStore that raises on failed requests and accepts any key."""

    @classmethod
    def of(cls, store: FsspecStore) -> Self:
        """Make one from zarr's store for the same location."""
        return cls(
            store.fs,
            read_only=store.read_only,
            path=store.path,
            allowed_exceptions=store.allowed_exceptions,
        )

    @property
    def is_http(self) -> bool:
        """Whether the store is a web server: keys are URLs, and listings are pages of links."""
        return self.path.startswith(("http://", "https://")) and hasattr(self.fs, "set_session")

    def __str__(self) -> str:
        if self.is_http:
            return _USER.sub("//", self.path)  # without user name and password
        return str(self.fs.unstrip_protocol(self.path))

    def _url_key(self, key: str) -> str:
        return quote(key, safe="/") if self.is_http else key

    @override
    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        if byte_range is not None:
            return await super().get(self._url_key(key), prototype, byte_range)
        options = next(
            (opts for name, opts in _ONE_REQUEST.items() if name in self.fs.protocol), {}
        )
        try:
            data = await self.fs._cat_file(self._full(key), **options)
        except self.allowed_exceptions:
            return None
        return prototype.buffer.from_bytes(data)

    @override
    async def set(self, key: str, value: Buffer, byte_range: tuple[int, int] | None = None) -> None:
        await super().set(self._url_key(key), value, byte_range)

    @override
    async def delete(self, key: str) -> None:
        self._check_writable()
        # not `_rm`, which would expand "*" and "?" in the key
        with suppress(*self.allowed_exceptions):
            await self.fs._rm_file(self._full(key))

    @override
    async def delete_dir(self, prefix: str) -> None:
        self._check_writable()
        directory = self._full(prefix.strip("/")).rstrip("/")
        try:
            names = await self.fs._find(directory, withdirs=False)
        except self.allowed_exceptions:
            return
        # the root itself stays: it may be a bucket
        below = [name for name in names if not directory or name.startswith(f"{directory}/")]
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
        if self.is_http:  # fsspec would take every error to mean that the key is missing
            session = await self.fs.set_session()
            url = self.fs.encode_url(self._full(key))
            async with session.get(url, **self.fs.kwargs) as response:
                if response.status not in (404, 410):
                    response.raise_for_status()
                return bool(response.ok)
        try:
            info = await self.fs._info(self._full(key))
        except self.allowed_exceptions:
            return False
        return bool(info.get("type", "file") != "directory")

    @override
    async def getsize(self, key: str) -> int:
        return await super().getsize(self._url_key(key))

    async def entries(self, path: str) -> list[Entry]:
        """List a directory; one that is missing has no entries.

        Raises
        ------
        N5UnsupportedError
            The server does not list (``kind="listing"``).
        """
        directory = self._full(path).rstrip("/")
        try:
            # without the slash, a web server would be asked twice
            page = f"{directory}/" if self.is_http else directory
            self._forget_listing(page)
            listed = await self.fs._ls(page, detail=True)
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
        for entry in listed:
            name = str(entry["name"])
            if self.is_http:  # links of a page may lead into the page itself
                name = unquote(name.partition("?")[0].partition("#")[0])
            name = name.removeprefix(f"{directory}/" if directory else "")
            is_dir = entry.get("type") == "directory" or name.endswith("/")
            name = str(PurePosixPath(name.rstrip("/")))
            # Java leaves empty objects `path/` on object stores: each is the directory itself
            if name not in (".", "..") and "/" not in name:
                names[name] = names.get(name, False) or is_dir
        return [Entry(name, names[name]) for name in sorted(names)]

    async def holds(self, path: str) -> bool:
        """Whether any key lies below a path, with as little listing as fsspec allows."""
        directory = self._full(path).rstrip("/")
        list_some = getattr(self.fs, "_lsdir", None)
        if list_some is not None and "s3" in self.fs.protocol:
            try:
                listed = await list_some(directory, refresh=True, max_items=_PAGE, delimiter="")
            except self.allowed_exceptions:
                return False
            return any(not str(entry["name"]).endswith("/") for entry in listed)
        try:
            return bool(await self.entries(path))
        except N5UnsupportedError:  # without listing, only nodes with a document can exist
            return False

    def _forget_listing(self, directory: str) -> None:
        """Make the file system list a directory anew, because others write, too.

        File systems that users made may keep listings.
        """
        for fs in (self.fs, getattr(self.fs, "sync_fs", None)):
            if fs is not None:
                fs.invalidate_cache(directory)

    def _full(self, path: str) -> str:
        root = self.path.rstrip("/")
        key = self._url_key(path)
        return f"{root}/{key}" if root and key else root or key


class _Tolerant:
    """Mixin of stores that report a "forbidden" key as missing.

    S3 answers "forbidden" for a missing key where listing is not allowed.
    """

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        try:
            value: Buffer | None = await super().get(key, prototype, byte_range)  # type: ignore[misc]
        except Exception as err:
            if says_missing(self, err):
                return None
            raise
        else:
            return value

    async def exists(self, key: str) -> bool:
        try:
            return bool(await super().exists(key))  # type: ignore[misc]
        except Exception as err:
            if says_missing(self, err):
                return False
            raise


class _TolerantUrlStore(_Tolerant, UrlStore):
    pass


class _TolerantObjectStore(_Tolerant, ObjectStore["ObstoreStore"]):
    pass


def says_missing(store: object, err: Exception) -> bool:
    """Whether an error of a store means that the key is missing."""
    if isinstance(err, FileNotFoundError):
        return True
    is_forbidden = (
        isinstance(err, PermissionError)
        or getattr(err, "status", None) == 403
        or type(err).__name__ in ("PermissionDeniedError", "UnauthenticatedError")
        or "403 Forbidden" in str(err)  # of obstore, when listing
    )
    if not isinstance(store, _Tolerant) or not is_forbidden:
        return False
    causes = [err, err.__cause__, err.__context__]
    reasons = " ".join(f"{cause} {getattr(cause, 'response', '')}" for cause in causes)
    return _NOT_MISSING.search(reasons) is None


def tolerant(store: Store) -> Store:
    """Make a store that reports a "forbidden" key as missing.

    Raises
    ------
    N5UnrepresentableError
        The store is not one of fsspec or obstore (``kind="option"``).
    """
    if isinstance(store, FsspecStore):
        return _TolerantUrlStore.of(store)
    if isinstance(store, ObjectStore):
        return _TolerantObjectStore(store.store, read_only=store.read_only)
    message = f"forbidden_is_missing: expected a URL or a store of fsspec or obstore, got {store!r}"
    raise N5UnrepresentableError(message, kind="option")


# ---------------------------------------------------------------------- obstore


async def entries_of_objects(store: ObjectStore[ObstoreStore], path: str) -> list[Entry]:
    """List a directory of an object store, with one request for each thousand names.

    Raises
    ------
    N5UnsupportedError
        The store is a web server (``kind="listing"``).
    """
    import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

    if _is_http(store):
        message = (
            f"listing: obstore lists {store.store} only if it is a WebDAV server; groups and "
            "datasets can be opened by their paths, and backend='fsspec' reads pages of links"
        )
        raise N5UnsupportedError(message, kind="listing")
    listed = await obstore.list_with_delimiter_async(store.store, prefix=path or None)
    directories = {_name(prefix, path): True for prefix in listed["common_prefixes"]}
    files = {_name(meta["path"], path): False for meta in listed["objects"]}
    both = files | directories
    return [Entry(name, both[name]) for name in sorted(both) if name and "/" not in name]


async def objects_below(store: ObjectStore[ObstoreStore], path: str) -> bool:
    """Whether any document or block lies below a path, with one request in most cases."""
    import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

    if _is_http(store):
        return False
    async for batch in obstore.list(store.store, prefix=path or None):
        # Java's markers of directories are empty; documents and blocks never are
        if any(meta["size"] for meta in batch):
            return True
    return False


def _is_http(store: ObjectStore[ObstoreStore]) -> bool:
    return type(store.store).__name__ == "HTTPStore"


def _name(full: str, path: str) -> str:
    """Return the name of an entry, from its full path and that of its directory."""
    return full.strip("/").removeprefix(f"{path}/" if path else "").strip("/")


async def update_object(
    store: ObjectStore[ObstoreStore], key: str, change: Callable[[bytes | None], bytes]
) -> bytes:
    """Update an object; start again if another writer replaces it meanwhile.

    Where the service has no conditional writes, the last writer wins.

    Parameters
    ----------
    store : zarr.storage.ObjectStore
        The store of the object.
    key : str
        Name of the object, which need not exist.
    change : callable
        Takes the bytes of the object, None where it is missing, and returns the new bytes.

    Returns
    -------
    bytes
        What the object holds afterwards.

    Raises
    ------
    N5Error
        Other writers replaced the object at every attempt (``kind="changed"``).
    """
    import obstore.exceptions  # noqa: PLC0415 - optional, and installed: the store is one of its

    exceptions = obstore.exceptions
    for attempt in range(_ATTEMPTS):
        old: bytes | None = None
        mode: PutMode = "create"
        try:
            response = await obstore.get_async(store.store, key)
            old = bytes(await response.bytes_async())
            mode = _version_of(response.meta)
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
            # the words, not only "501": messages also hold times
            if isinstance(err, exceptions.GenericError) and _NO_CONDITIONS not in str(err):
                raise
            await obstore.put_async(store.store, key, new)  # no conditional writes here
        return new
    message = (
        f"{key}: expected to update it, but other writers replaced it at each of {_ATTEMPTS} "
        "attempts; try again"
    )
    raise N5Error(message, kind="changed")


def _version_of(meta: ObjectMeta) -> UpdateVersion:
    """Return what identifies the version of an object, without members that the service lacks."""
    version: UpdateVersion = {}
    if meta["e_tag"] is not None:
        version["e_tag"] = meta["e_tag"]
    if meta["version"] is not None:
        version["version"] = meta["version"]
    return version
