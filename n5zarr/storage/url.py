"""Stores for URLs: recognise URLs, open their zarr store, recognise errors of missing keys."""

from __future__ import annotations

import os
import re
import zlib
from errno import EACCES, EIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from zipfile import BadZipFile

from zarr.storage import FsspecStore, ObjectStore, ZipStore

from n5zarr.errors import (
    N5Error,
    N5MissingDependencyError,
    N5UnsupportedError,
    option_error,
)
from n5zarr.storage.url_store import UrlStore, without_secrets
from n5zarr.storage.web_store import WebStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obstore.store import ObjectStore as ObstoreStore
    from zarr.abc.buffer import Buffer, BufferPrototype
    from zarr.abc.store import ByteRequest, Store


__all__ = [
    "Backend",
    "is_chain",
    "is_gone",
    "is_of_one_key",
    "is_url",
    "local_path",
    "quoted",
    "says_missing",
    "server_error",
    "split_query",
    "store_of_url",
    "tolerant",
]

type Backend = Literal["fsspec", "obstore"]
"""The libraries that read and write URLs."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(://|::)")
_IPV6 = re.compile(r"\[[0-9A-Fa-f:.]+\]")
_HTTP = ("http", "https")
_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "http": "aiohttp", "https": "aiohttp"}
# reasons in a "forbidden" answer that never mean that the key is missing
_NOT_MISSING = re.compile(
    "SignatureDoesNotMatch|InvalidAccessKeyId|InvalidToken|ExpiredToken|TokenRefreshRequired"
    "|RequestTimeTooSkewed|AccountProblem|InvalidSecurity|NotSignedUp"
)
_LIBRARIES = {"obstore", "aiohttp", "botocore", "gcsfs"}  # have errors of their own
# characters left unquoted in the path of a URL; "%" begins one that is quoted already
_QUOTED = "/:@!$&'()*+,;=~-._%[]"


def is_url(location: object) -> bool:
    """Whether a location is a URL or a chain of URLs, and not a local path."""
    if not isinstance(location, str) or _URL.match(location) is None:
        return False
    if "://" not in location:  # with "::": a chain to a local file, or a local path
        return not Path(location).exists()
    return not location.lower().startswith("file://")


def local_path(location: str) -> str:
    """Convert a path or ``file://`` URL, or Java's ``file:/``, into a local path.

    Examples
    --------
    >>> local_path("file:/data/we%20ird.n5"), local_path("we%20ird.n5")
    ('/data/we ird.n5', 'we%20ird.n5')
    """
    url = re.fullmatch(r"file:(?://(?:localhost)?)?(/.*)", location, re.DOTALL)
    if url is None:
        return location.removeprefix("file://")
    path = unquote(url.group(1))
    is_of_drive = os.name == "nt" and re.match("/[A-Za-z]:", path) is not None
    return path[1:] if is_of_drive else path


def split_query(url: str) -> tuple[str, str]:
    """Split a URL into its address and its query, which is sent with every request to a server.

    Examples
    --------
    >>> split_query("http://host/a.n5?token=1"), split_query("s3://bucket/what?.n5")
    (('http://host/a.n5', '?token=1'), ('s3://bucket/what?.n5', ''))
    """
    is_http = url.lower().startswith(("http://", "https://"))
    address, mark, query = url.partition("?") if is_http else (url, "", "")
    return address, mark + query


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
        Options of fsspec's file system or of obstore's store.
    read_only : bool
        Whether the store refuses to write.
    backend : {"fsspec", "obstore"}
        The library that reads and writes.

    Raises
    ------
    N5MissingDependencyError
        The library is not installed.
    N5UnrepresentableError
        A local zip file has options (``kind="option"``).
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
            raise option_error(
                f"storage_options: expected none with a local zip file, got them with {url}"
            )
        return ZipStore(rest.removeprefix("//"), mode="r")
    try:
        if is_chain(url):
            return _chained(url, dict(storage_options or {}), read_only=read_only)
        if scheme in _HTTP:
            return _web(url, dict(storage_options or {}))
        # fsspec caches listings by default, but other programs write, too
        options = {"use_listings_cache": False, **(storage_options or {})}
        return UrlStore.from_url(url, storage_options=options, read_only=read_only)
    except ImportError as err:
        raise _missing_package(url, err) from err
    except ValueError as err:
        message = without_secrets(f"{url}: expected a URL that fsspec knows: {err}")
        raise N5UnsupportedError(message, kind="option") from err


def _missing_package(url: str, err: ImportError) -> N5MissingDependencyError:
    """Make the error of a URL that needs a missing package, of the extra or another one."""
    chain = re.findall(r"([a-z0-9+.-]+)(?=://|::)", url)
    causes = (err, err.__cause__)
    module = next((e.name for e in causes if isinstance(e, ImportError) and e.name), None)
    known = next((_PACKAGES[scheme] for scheme in chain if scheme in _PACKAGES), None)
    name = (module or known or "fsspec").partition(".")[0]
    is_in_extra = name in ("fsspec", *_PACKAGES.values())
    purpose = f"opening {'::'.join(chain)} URLs"
    return N5MissingDependencyError(name, purpose, "remote" if is_in_extra else "")


def _web(url: str, options: dict[str, object]) -> UrlStore:
    """Open a read-only store for a web server.

    The URL is quoted once, here, as keys are in each request. Its query, which may contain an
    access token, is sent with every request.
    """
    from fsspec import filesystem  # noqa: PLC0415 - optional

    address, _, query = url.partition("?")
    given = {"params": parse_qsl(query, keep_blank_values=True)} if query else {}
    options = {**given, **options, "encoded": True, "asynchronous": True}
    fs = filesystem("http", **options)
    return UrlStore(fs, read_only=True, path=quoted(address))


def quoted(address: str) -> str:
    """Return the address of a web server, without query, as it is requested.

    Examples
    --------
    >>> quoted("http://host/my c%20#+.n5/")
    'http://host/my%20c%20%23+.n5'
    """
    return quote(address, safe=_QUOTED).rstrip("/")


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
        # split by hand: in the name of an object, "%" and "?" have no special meaning
        if parts.scheme in ("s3", "gs"):
            bucket, _, prefix = url.partition("://")[2].partition("/")
            make = stores.S3Store if parts.scheme == "s3" else stores.GCSStore
            return make(bucket, prefix=prefix.strip("/") or None, **options)
        return stores.from_url(url, **options)
    except Exception as err:
        shown = without_secrets(f"{url}: {err}")
        message = f"backend='obstore': {shown}; backend='fsspec' opens other URLs"
        raise N5UnsupportedError(message, kind="option") from err


class _Tolerant:
    """Mixin of stores that report a "forbidden" key as missing.

    S3 answers "forbidden" for a missing key if the user may not list.
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


class _TolerantWebStore(_Tolerant, WebStore):
    pass


class _TolerantObjectStore(_Tolerant, ObjectStore["ObstoreStore"]):
    pass


def says_missing(store: object, err: Exception) -> bool:
    """Whether an error of a store means that the key is missing."""
    if isinstance(err, FileNotFoundError):
        return True
    if is_gone(err):
        return True
    return isinstance(store, _Tolerant) and _is_forbidden(err) and not _refused_credentials(err)


def is_gone(err: Exception) -> bool:
    """Whether a server says that a key existed once: 410 Gone."""
    return _is_answer(err, 410, "Gone")


def _refused_credentials(err: Exception) -> str | None:
    """Return the reason of a service that refuses the user's credentials, whatever the key."""
    causes = [err, err.__cause__, err.__context__]
    reasons = " ".join(f"{cause} {getattr(cause, 'response', '')}" for cause in causes)
    found = _NOT_MISSING.search(reasons)
    return None if found is None else found.group()


def server_error(where: str, err: Exception, *, is_read: bool) -> Exception:
    """Return the error for a failed request: one of Python's, with place and way out.

    Parameters
    ----------
    where : str
        Container and key.
    err : Exception
        The error of the store, which is returned if it is an ``OSError`` that is not "forbidden".
    is_read : bool
        Whether the request reads.
    """
    if isinstance(err, N5Error | FileNotFoundError):
        return err
    if _is_forbidden(err):
        verb = "read" if is_read else "write"
        message = f"{where}: expected to {verb} it, but the server answers: forbidden"
        if reason := _refused_credentials(err):
            message += f", {reason}; check the credentials"
        elif is_read:
            message += (
                "; if it answers so for what is missing, as S3 does to users who may not list, "
                "open N5Store(..., forbidden_is_missing=True)"
            )
        return PermissionError(EACCES, message)
    if type(err).__module__.partition(".")[0] not in _LIBRARIES or isinstance(err, OSError):
        return err
    text = without_secrets(str(err).partition("\n\nDebug source")[0].strip())
    # as obstore, aiohttp and gcsfs tell it
    is_answered = "Server returned" in text or hasattr(err, "status") or hasattr(err, "code")
    return (OSError if is_answered else ConnectionError)(EIO, f"{where}: {text}")


def _is_forbidden(err: Exception) -> bool:
    return (
        isinstance(err, PermissionError)
        or type(err).__name__ in ("PermissionDeniedError", "UnauthenticatedError")  # of obstore
        or _is_answer(err, 403, "Forbidden")
    )


def _is_answer(err: Exception, status: int, phrase: str) -> bool:
    """Whether an error tells of a server's answer; each library tells it in another way."""
    codes = {getattr(err, "status", None), vars(err).get("code")}  # of aiohttp, of gcsfs
    texts = f"{status} {phrase}", f"An error occurred ({status})"  # of obstore, of s3fs
    text = str(err)
    is_told = any(part in text for part in texts) or text.startswith(f"{phrase}: ")  # of gcsfs
    return is_told or bool(codes & {status, str(status)})


def is_of_one_key(err: Exception) -> bool:
    """Whether an error of storage concerns one key only, so that others may be readable."""
    is_lost = isinstance(err, ConnectionError | TimeoutError)
    is_damaged = isinstance(err, BadZipFile | zlib.error | EOFError)  # damage in an archive
    return _is_forbidden(err) or is_damaged or (isinstance(err, OSError) and not is_lost)


def tolerant(store: Store) -> Store:
    """Make a store that reports a "forbidden" key as missing.

    Raises
    ------
    N5UnrepresentableError
        The store is not one of fsspec or obstore (``kind="option"``).
    """
    if isinstance(store, FsspecStore):
        return (_TolerantWebStore if isinstance(store, WebStore) else _TolerantUrlStore).of(store)
    if isinstance(store, ObjectStore):
        return _TolerantObjectStore(store.store, read_only=store.read_only)
    raise option_error(
        f"forbidden_is_missing: expected a URL or a store of fsspec or obstore, got {store!r}"
    )
