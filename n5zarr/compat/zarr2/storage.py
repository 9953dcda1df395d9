"""The stores of ``zarr.storage``, and which store a path, a URL or None means."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Self, override

import zarr
from zarr.storage import FsspecStore, MemoryStore, ZipStore

from n5zarr._zarr import LocalStore
from n5zarr.compat.zarr2.errors import absent
from n5zarr.compat.zarr2.n5 import N5FSStore, N5Store
from n5zarr.storage.url import is_url
from n5zarr.store.n5_store import N5Store as NewN5Store

__all__ = [
    "DirectoryStore",
    "MemoryStore",
    "NestedDirectoryStore",
    "ProcessSynchronizer",
    "ThreadSynchronizer",
    "contains_array",
    "contains_group",
    "store_of",
]

_WAYS = {
    "FSStore": "zarr.storage.FsspecStore.from_url(url), of zarr 3, or n5zarr.N5Store(url)",
    "KVStore": "zarr.storage.MemoryStore(), of zarr 3",
    "LRUStoreCache": "n5zarr.N5Store(url, cache=n5zarr.CacheOptions(bytes=...))",
}


class DirectoryStore(LocalStore):
    """A folder of Zarr v2.

    Parameters
    ----------
    path : path
        The folder.
    normalize_keys : optional
        Without effect.
    dimension_separator : {".", "/"}, optional
        Whether chunks of new arrays are in one folder, or in one for each axis of their grid.
    read_only : bool, optional
        Whether to refuse writing.
    """

    dimension_separator = "."

    def __init__(
        self,
        path: str | os.PathLike[str],
        normalize_keys: object = False,
        dimension_separator: str | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        super().__init__(os.fspath(path), read_only=read_only)
        self.dimension_separator = dimension_separator or self.dimension_separator

    @override
    def with_read_only(self, read_only: bool = False) -> Self:
        return type(self)(self.root, False, self.dimension_separator, read_only=read_only)

    path = property(lambda self: str(self.root))


class NestedDirectoryStore(DirectoryStore):
    """A folder of Zarr v2, with folders for the axes of the grid of chunks."""

    dimension_separator = "/"


class ThreadSynchronizer:
    """Without effect: n5zarr locks blocks of local files itself, among threads and processes."""

    def __init__(self, path: object = None) -> None:
        self.path = path


ProcessSynchronizer = ThreadSynchronizer


def store_of(store: Any, storage_options: Any = None) -> Any:
    """Return the store that zarr 2 took a path, a URL, None or a store for."""
    if store is None:
        return MemoryStore()
    if isinstance(store, NewN5Store) and (store.codecs, store.zarr_format) != ("n5", 3):
        return N5Store(store.storage, axis_order=store.axis_order, read_only=store.read_only)
    if not isinstance(store, str | os.PathLike):
        return store
    path = os.fspath(store)
    if path.rstrip("/").endswith(".n5"):
        return N5FSStore(path, **storage_options or {}) if is_url(path) else N5Store(path)
    if is_url(path):
        return FsspecStore.from_url(path, storage_options=storage_options)
    return ZipStore(path) if path.endswith(".zip") else DirectoryStore(path)


def _contains(kind: type, store: Any, path: str | None = None) -> bool:
    try:
        return isinstance(zarr.open(store_of(store), mode="r", path=path or ""), kind)
    except FileNotFoundError:
        return False


contains_array, contains_group = partial(_contains, zarr.Array), partial(_contains, zarr.Group)


def __getattr__(name: str) -> object:
    raise absent(__name__, name, _WAYS, ImportError)
