"""Choose and open the storage for a path, a URL or a zarr store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from zarr.abc.store import Store
from zarr.storage import FsspecStore

from n5zarr._zarr_private import LocalStore
from n5zarr.errors import N5UnrepresentableError
from n5zarr.storage.cache import CacheOptions, CachingStore
from n5zarr.storage.confined import ConfinedFiles, ConfinedStore
from n5zarr.storage.local import LocalFiles
from n5zarr.storage.place import Backend, Place, place_of
from n5zarr.storage.unsharded import UnshardedStore
from n5zarr.storage.url import is_url, local_path, store_of_url, tolerant
from n5zarr.storage.url_store import UrlStore
from n5zarr.storage.zarr_store import ZarrStorage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from n5zarr.format.order import CTuple
    from n5zarr.storage.interface import Durability, Storage

__all__ = ["open_storage", "unsharded"]


def open_storage(  # noqa: PLR0913 - the parameters of N5Store
    store: object,
    *,
    storage_options: Mapping[str, object] | None = None,
    fs: object = None,
    backend: Backend = "fsspec",
    read_only: bool = False,
    cache: CacheOptions | None = None,
    forbidden_is_missing: bool = False,
    durability: Durability = "atomic",
) -> Storage:
    """Open the storage of a container.

    Parameters
    ----------
    store : path, URL, zarr store or mapping of fsspec's
        The container; see :func:`~n5zarr.storage.place.place_of`.
    storage_options, backend : optional
        Options for a URL, and the library that reads and writes it.
    fs : optional
        fsspec's file system of a path.
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
    place = place_of(store, storage_options, fs)
    if backend != "fsspec":
        place = place._replace(backend=backend)
    opened_store = _open_store(place, read_only=read_only)
    if forbidden_is_missing:
        opened_store = tolerant(opened_store)
    if not isinstance(opened_store, LocalStore):
        if durability != "atomic":
            message = f"durability: expected {durability!r} only with local files, got {store!r}"
            raise N5UnrepresentableError(message, kind="option")
        return ZarrStorage(opened_store if cache is None else CachingStore(opened_store, cache))
    if cache is not None:
        message = "cache: expected a remote container; the system caches local files itself"
        raise N5UnrepresentableError(message, kind="option")
    store_writes = opened_store is place.location and not opened_store.read_only
    root = Path(opened_store.root)
    files = ConfinedFiles if isinstance(opened_store, ConfinedStore) else LocalFiles
    return files(
        root,
        read_only=opened_store.read_only,
        store_writes=store_writes,
        durability=durability,
    )


def unsharded(storage: Storage, sizes: CTuple) -> Storage:
    """Return storage of the blocks inside of shards; see :class:`UnshardedStore`."""
    return ZarrStorage(UnshardedStore(storage, sizes))


def _open_store(place: Place, *, read_only: bool) -> Store:
    """Open the zarr store of a place."""
    location, path, storage_options, backend = place
    if path:
        message = f"store: expected the root of a container, got its node {path!r}; open it with"
        raise N5UnrepresentableError(f"{message} n5zarr.open", kind="option")
    if is_url(location):
        return store_of_url(str(location), storage_options, read_only=read_only, backend=backend)
    if storage_options is not None or backend != "fsspec":
        name = "backend" if storage_options is None else "storage_options"
        message = f"{name}: expected only with a URL, got it with {location!r}"
        raise N5UnrepresentableError(message, kind="option")
    if isinstance(location, Store):
        return UrlStore.of(location) if type(location) is FsspecStore else location
    return LocalStore(Path(local_path(os.fspath(location))).expanduser())
