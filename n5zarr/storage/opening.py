"""Choose and open the storage for a path, a URL or a zarr store."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from n5zarr._zarr import LocalStore
from n5zarr.errors import N5UnrepresentableError
from n5zarr.storage.choosing import chosen_store
from n5zarr.storage.confined import ConfinedFiles, ConfinedStore
from n5zarr.storage.local import LocalFiles
from n5zarr.storage.secrets import named, shown
from n5zarr.storage.served import served
from n5zarr.storage.url import store_of_url
from n5zarr.storage.zarr_store import ZarrStorage

if TYPE_CHECKING:
    from zarr.abc.store import Store

    from n5zarr.storage.cache import CacheOptions
    from n5zarr.storage.interface import Durability, Storage
    from n5zarr.storage.place import Place

__all__ = ["open_storage"]

_log = logging.getLogger(__name__)


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
            message = (
                f"durability: expected {durability!r} only with local files, got "
                f"{shown(place.location)}"
            )
            raise N5UnrepresentableError(message, kind="option")
        return ZarrStorage(opened_store, why, open_store if place.is_url else None, cache)
    if cache is not None:
        message = "cache: expected a remote container; the system caches local files itself"
        raise N5UnrepresentableError(message, kind="option")
    files = ConfinedFiles if isinstance(opened_store, ConfinedStore) else LocalFiles
    return files(
        Path(opened_store.root),
        read_only=opened_store.read_only,
        store_writes=opened_store is place.location and not opened_store.read_only,
        durability=durability,
    )


def _open_store(place: Place, *, read_only: bool, forbidden_is_missing: bool) -> tuple[Store, str]:
    """Open the zarr store of a place; of a URL say also which library was chosen, and why."""
    store, why = _store_of(place, read_only=read_only)
    return served(store, forbidden_is_missing=forbidden_is_missing), why


def _store_of(place: Place, *, read_only: bool) -> tuple[Store, str]:
    location, options = place.location, place.storage_options
    if place.path:
        message = f"location: expected the root of a container, got its node {place.path!r}; open"
        raise N5UnrepresentableError(f"{message} it with n5zarr.open", kind="option")
    if isinstance(location, str):
        if place.backend is None:
            store, why = chosen_store(location, options, read_only=read_only)
        else:
            store = store_of_url(location, options, read_only=read_only, backend=place.backend)
            why = f"{place.backend}, as asked for"
        _log.debug("%s: backend: %s", named(location), why)
        return store, why
    if options is not None:
        message = f"storage_options: expected only with a URL, got it with {shown(location)}"
        raise N5UnrepresentableError(message, kind="option")
    if isinstance(location, Path):
        return LocalStore(location), ""
    return location, ""
