"""Choose and open the storage for a path, a URL or a zarr store.

The library for a URL is obstore if it understands the URL and every option, else fsspec.
"""

from __future__ import annotations

import logging
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zarr.storage import ObjectStore

from n5zarr._zarr import LocalStore
from n5zarr.errors import option_error
from n5zarr.storage.confined import ConfinedStore
from n5zarr.storage.forks import FORKS
from n5zarr.storage.local import LocalFiles
from n5zarr.storage.secrets import named, secrets_in, shown
from n5zarr.storage.served import served
from n5zarr.storage.translated import (
    NotTranslatedError,
    azure_store,
    google_store,
    s3_store,
    web_store,
)
from n5zarr.storage.url import is_chain, store_of_url, words_of
from n5zarr.storage.web_store import WebStore
from n5zarr.storage.zarr_store import ZarrStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from obstore.store import ObjectStore as ObstoreStore
    from zarr.abc.store import Store

    from n5zarr.storage.cache import CacheOptions
    from n5zarr.storage.interface import Durability, Storage
    from n5zarr.storage.place import Place

__all__ = ["chosen_store", "open_storage"]

_log = logging.getLogger(__name__)

_OPENERS: dict[str, Callable[[str, Mapping[str, Any]], ObstoreStore]] = {
    "s3": s3_store,
    "gs": google_store,
    "az": azure_store,
    "http": web_store,
    "https": web_store,
}
# names in fsspec's own configuration, whose options come before none
_CONFIGURED = {"s3": ("s3", "s3a"), "gs": ("gs", "gcs"), "az": ("abfs", "az", "abfss")}


def open_storage(
    place: Place,
    *,
    read_only: bool = False,
    cache: CacheOptions | None = None,
    forbidden_is_missing: bool = False,
    durability: Durability = "atomic",
) -> Storage:
    """Open the storage of a container.

    Parameters
    ----------
    place : Place
        The container; see :func:`~n5zarr.storage.place.place_of`.
    read_only : bool, optional
        Whether the store opened for a URL refuses to write.
    cache, forbidden_is_missing : optional
        As for :class:`~n5zarr.N5Store`.
    durability : {"atomic", "durable", "overwrite"}, optional
        The way to write local files.

    Raises
    ------
    N5UnrepresentableError
        An option does not apply to such a location (``kind="option"``).
    """
    open_store = partial(
        _open_store, place, read_only=read_only, forbidden_is_missing=forbidden_is_missing
    )
    opened_store, why = open_store()
    if not isinstance(opened_store, LocalStore):
        if durability != "atomic":
            raise option_error(
                f"durability: expected {durability!r} only with local files, got "
                f"{shown(place.location)}"
            )
        return ZarrStorage(opened_store, why, open_store if place.is_url else None, cache)
    if cache is not None:
        raise option_error(
            "cache: expected a remote container; the system caches local files itself"
        )
    return LocalFiles(
        Path(opened_store.root),
        confined=isinstance(opened_store, ConfinedStore),
        read_only=opened_store.read_only,
        store_writes=opened_store is place.location and not opened_store.read_only,
        durability=durability,
    )


def _open_store(place: Place, *, read_only: bool, forbidden_is_missing: bool) -> tuple[Store, str]:
    """Open the zarr store of a place; of a URL say also which library was chosen, and why."""
    store, why = _store_of(place, read_only=read_only)
    return served(store, forbidden_is_missing=forbidden_is_missing), why


def _store_of(place: Place, *, read_only: bool) -> tuple[Store, str]:
    """Open the store as the library has it."""
    location, options = place.location, place.storage_options
    if place.path:
        raise option_error(
            f"location: expected the root of a container, got its node {place.path!r}; open it "
            "with n5zarr.open"
        )
    if isinstance(location, str):
        if place.backend is None:
            store, why = chosen_store(location, options, read_only=read_only)
        else:
            store = store_of_url(location, options, read_only=read_only, backend=place.backend)
            why = f"{place.backend}, as asked for"
        _log.debug("%s: backend: %s", named(location), why)
        return store, why
    if options is not None:
        raise option_error(
            f"storage_options: expected only with a URL, got it with {shown(location)}"
        )
    if isinstance(location, Path):
        return LocalStore(location), ""
    return location, ""


def chosen_store(
    url: str, storage_options: Mapping[str, object] | None, *, read_only: bool
) -> tuple[Store, str]:
    """Open a store for a URL with the library that is faster and understands all options.

    Parameters
    ----------
    url : str
        Any URL that a library reads; see :func:`~n5zarr.storage.url.store_of_url`.
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
        As for :func:`~n5zarr.storage.url.store_of_url`.
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
    # an older obstore knows fewer options
    except (BaseError, OSError, TypeError, ValueError) as err:
        secrets = secrets_in(url, options)
        message = f"it refuses the options: {words_of(err, secrets)}"
        raise NotTranslatedError(message) from err


def _configured(scheme: str) -> dict[str, object]:
    """Return the options that the user's configuration of fsspec gives to all URLs of a kind."""
    if find_spec("fsspec") is None:
        return {}
    from fsspec.config import conf  # noqa: PLC0415 - optional

    names = _CONFIGURED.get(scheme, (scheme,))
    return {key: value for name in names for key, value in conf.get(name, {}).items()}
