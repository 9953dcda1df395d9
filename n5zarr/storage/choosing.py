"""Choose the library for a URL: obstore if it understands the URL and every option, else fsspec."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from zarr.storage import ObjectStore

from n5zarr.storage.forks import FORKS
from n5zarr.storage.secrets import secrets_in
from n5zarr.storage.translated import (
    NotTranslatedError,
    azure_store,
    google_store,
    s3_store,
    web_store,
)
from n5zarr.storage.url import is_chain, store_of_url, words_of
from n5zarr.storage.web_store import WebStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from obstore.store import ObjectStore as ObstoreStore
    from zarr.abc.store import Store

__all__ = ["chosen_store"]

_OPENERS: dict[str, Callable[[str, Mapping[str, Any]], ObstoreStore]] = {
    "s3": s3_store,
    "gs": google_store,
    "az": azure_store,
    "http": web_store,
    "https": web_store,
}
# names in fsspec's own configuration, whose options come before none
_CONFIGURED = {"s3": ("s3", "s3a"), "gs": ("gs", "gcs"), "az": ("abfs", "az", "abfss")}


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
    except (
        BaseError,
        OSError,
        TypeError,
        ValueError,
    ) as err:  # an older obstore knows fewer options
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
