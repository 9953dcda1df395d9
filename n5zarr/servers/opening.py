"""Open the store of a URL, and choose the library for it.

That is obstore if it understands the URL and every option, else fsspec.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from zarr.abc.store import Store
from zarr.storage import ObjectStore, ZipStore

from n5zarr.errors import N5MissingDependencyError, N5UnsupportedError, option_error
from n5zarr.servers.errors import server_error, words_of
from n5zarr.servers.served import served
from n5zarr.servers.translated import (
    NotTranslatedError,
    azure_store,
    google_store,
    quoted,
    s3_store,
    split_bucket,
    web_store,
)
from n5zarr.servers.url_store import UrlStore
from n5zarr.servers.web_store import WebStore
from n5zarr.storage.forks import FORKS
from n5zarr.storage.held import AS_ASKED
from n5zarr.storage.place import Place
from n5zarr.storage.secrets import ODD_USER, named, secrets_in, without_secrets
from n5zarr.storage.url import Backend, is_chain

if TYPE_CHECKING:
    from obstore.store import ObjectStore as ObstoreStore


_log = logging.getLogger(__name__)
_HTTP = ("http", "https")
_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "http": "aiohttp", "https": "aiohttp"}
_OPENERS: dict[str, Callable[[str, Mapping[str, Any]], ObstoreStore]] = {
    "s3": s3_store,
    "gs": google_store,
    "az": azure_store,
    "http": web_store,
    "https": web_store,
}
# names in fsspec's own configuration, whose options come before none
_CONFIGURED = {"s3": ("s3", "s3a"), "gs": ("gs", "gcs"), "az": ("abfs", "az", "abfss")}


def open_url(
    place: Place, *, read_only: bool, forbidden_is_missing: bool, backend: Backend | None = None
) -> tuple[Store, str]:
    """Open the zarr store of a URL.

    Parameters
    ----------
    place : Place
        The container.
    read_only : bool
        Whether the store refuses to write.
    forbidden_is_missing : bool
        As for :class:`~n5zarr.N5Store`.
    backend : {"fsspec", "obstore"} or None, optional
        Instead of that of the place.

    Returns
    -------
    tuple of Store and str
        The store, and the name of the library and the reason for the choice.

    Raises
    ------
    N5MissingDependencyError, N5UnrepresentableError, N5UnsupportedError
        As for :func:`store_of_url`, or the password in the URL is not quoted.
    """
    url, options = str(place.location), place.storage_options
    if ODD_USER.search(url):
        raise option_error(f"{named(url)}: expected / ? # in a password as %2F %3F %23")
    backend = backend or place.backend
    if backend is None:
        store, why = chosen_store(url, options, read_only=read_only)
    else:
        store = store_of_url(url, options, read_only=read_only, backend=backend)
        why = f"{backend}, {AS_ASKED}"
    _log.debug("%s: backend: %s", named(url), why)
    return served(store, forbidden_is_missing=forbidden_is_missing), why


def chosen_store(
    url: str, storage_options: Mapping[str, object] | None, *, read_only: bool
) -> tuple[Store, str]:
    """Open a store for a URL with the library that is faster and understands all options.

    Parameters
    ----------
    url : str
        Any URL that a library reads; see :func:`store_of_url`.
    storage_options : mapping or None
        Options of fsspec's file system.
    read_only : bool
        Whether the store refuses to write.

    Returns
    -------
    tuple of Store and str
        The store, and the name of the library and the reason for the choice.

    Raises
    ------
    N5MissingDependencyError, N5UnrepresentableError, N5UnsupportedError
        As for :func:`store_of_url`.
    """
    objects, why = None, "obstore, which understands the URL and its options"
    try:
        objects = _objects(url, storage_options)
    except NotTranslatedError as err:
        why = f"fsspec; obstore is not used: {err}"
    if objects is None:  # outside of the error, which may show a secret
        return store_of_url(url, storage_options, read_only=read_only, backend="fsspec"), why
    if not url.lower().startswith("http"):
        return ObjectStore(objects, read_only=read_only), why
    pages = store_of_url(url, storage_options, read_only=True, backend="fsspec")
    return WebStore.of_both(pages, objects), f"{why}; fsspec lists directories"  # type: ignore[arg-type]


def _objects(url: str, storage_options: Mapping[str, object] | None) -> ObstoreStore:
    scheme, _, rest = url.partition(":")
    scheme = scheme.lower()
    if is_chain(url):
        raise NotTranslatedError("it does not read chains of URLs")
    if scheme not in _OPENERS:
        raise NotTranslatedError(f"it does not read such URLs ({scheme}://)")
    if find_spec("obstore") is None:
        raise NotTranslatedError("it is not installed")
    if FORKS.has_lost_obstore:
        raise NotTranslatedError("this process was forked by one that had used it")
    options = {**_configured(scheme), **(storage_options or {})}
    from obstore.exceptions import BaseError  # noqa: PLC0415 - optional

    try:
        return _OPENERS[scheme](f"{scheme}:{rest}", options)
    except ImportError as err:
        message = f"{err.name}, which knows where credentials are, is missing"
        raise NotTranslatedError(message) from err
    except (BaseError, OSError, TypeError, ValueError) as err:  # an older one knows fewer options
        words = words_of(err, secrets_in(url, options))
        raise NotTranslatedError(f"it refuses the options: {words}") from err


def _configured(scheme: str) -> dict[str, object]:
    """Return the options that the user's configuration of fsspec gives to all URLs of a kind."""
    if find_spec("fsspec") is None:
        return {}
    from fsspec.config import conf  # noqa: PLC0415 - optional

    names = _CONFIGURED.get(scheme, (scheme,))
    return {key: value for name in names for key, value in conf.get(name, {}).items()}


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
                f"storage_options: expected none with a local zip file, got them with {named(url)}"
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
    except Exception as err:
        made = _error_of_fsspec(err, url, storage_options)
        raise made from made.__cause__


def _error_of_fsspec(err: Exception, url: str, options: Mapping[str, object] | None) -> Exception:
    """Return the error for a URL that fsspec does not open."""
    if isinstance(err, TypeError | ValueError | LookupError):
        return _refusal(
            err, url, options, "expected a URL, and storage_options, that fsspec takes: "
        )
    secrets = secrets_in(url, options)
    return server_error(without_secrets(url, secrets), err, is_read=True, secrets=secrets)


def _refusal(
    err: BaseException, url: str, options: Mapping[str, object] | None, what: str, way_out: str = ""
) -> N5UnsupportedError:
    """Make the error of a URL or of options that a library does not take, without secrets."""
    secrets = secrets_in(url, options)
    message = f"{without_secrets(url, secrets)}: {what}{words_of(err, secrets)}{way_out}"
    return N5UnsupportedError(message, kind="option")


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


def _chained(url: str, options: dict[str, object], *, read_only: bool) -> UrlStore:
    """Open a store for a chain of fsspec's URLs."""
    from fsspec import url_to_fs  # noqa: PLC0415 - optional
    from fsspec.archive import AbstractArchiveFileSystem  # noqa: PLC0415
    from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper  # noqa: PLC0415

    chain, path = url_to_fs(url, **options)
    if isinstance(chain, AbstractArchiveFileSystem):
        read_only |= getattr(chain, "mode", "r") == "r"  # it would fail in the midst of a write
    wrapped = AsyncFileSystemWrapper(chain, asynchronous=True)
    return UrlStore(wrapped, read_only=read_only, path=path)


def _object_store(url: str, options: dict[str, Any]) -> ObstoreStore:
    """Open obstore's store for a URL."""
    try:
        from obstore import store as stores  # noqa: PLC0415 - optional
    except ImportError as err:
        raise N5MissingDependencyError("obstore", "backend='obstore'", "remote") from err
    parts = urlsplit(url)
    made: ObstoreStore
    given = {**options, **options.get("config", {})}
    addresses = [url, *(str(given[name]) for name in given if "endpoint" in name.lower())]
    try:
        if any(address.lower().startswith("http://") for address in addresses):  # the user wrote it
            client = {"allow_http": True, **options.get("client_options", {})}
            options = {**options, "client_options": client}
        if parts.scheme in ("s3", "gs"):
            bucket, prefix = split_bucket(url)
            make = stores.S3Store if parts.scheme == "s3" else stores.GCSStore
            made = make(bucket, prefix=prefix, **options)
        else:
            made = stores.from_url(url, **options)
        getattr(made, "config", None)  # panics for misplaced options, such as allow_http
    except BaseException as err:
        if not isinstance(err, Exception) and type(err).__name__ != "PanicException":
            raise
        way_out = f"; {_way_out(parts.scheme, options)}"
        raise _refusal(err, url, options, "backend='obstore': ", way_out) from None
    return made


def _way_out(scheme: str, options: Mapping[str, object]) -> str:
    """Say what to do if obstore refuses a URL or its options."""
    if not options:
        return "backend='fsspec' opens other URLs"
    examples = {"s3": "access_key_id, secret_access_key, endpoint, region, skip_signature"}
    known = f" ({examples[scheme]}, ...)" if scheme in examples else ""
    return (
        f"storage_options: expected those of obstore's store{known}, client_options and "
        f"retry_config, got {', '.join(sorted(options))}; those of fsspec's file systems are for "
        "backend='fsspec', or without backend"
    )
