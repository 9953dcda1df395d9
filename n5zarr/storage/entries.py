"""List a directory of a zarr store, as each kind of store does it best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zarr.storage import ObjectStore

from n5zarr.storage.cache import CachingStore
from n5zarr.storage.objects import entries_of_objects, some_objects
from n5zarr.storage.requests import Entry
from n5zarr.storage.served import error_in
from n5zarr.storage.url import says_missing
from n5zarr.storage.url_store import UrlStore

if TYPE_CHECKING:
    from zarr.abc.store import Store

__all__ = ["read_entries"]


async def read_entries(store: Store, path: str, *, few: bool = False) -> list[Entry]:
    """List a directory; with ``few``, at least one entry unless it is empty."""
    if isinstance(store, CachingStore):
        return await read_entries(store.inner, path, few=few)
    try:
        return await _entries(store, path, few=few)
    except Exception as err:
        better = error_in(store, path, err)
        raise better from better.__cause__


async def _entries(store: Store, path: str, *, few: bool) -> list[Entry]:
    match store:
        case UrlStore() | ObjectStore() if few:
            some = store.some(path) if isinstance(store, UrlStore) else some_objects(store, path)
            try:
                return await some
            except Exception as err:
                if says_missing(store, err):
                    return []
                raise
        case UrlStore():
            return await store.entries(path)
        case ObjectStore():
            return await entries_of_objects(store, path)
        case _:
            # zarr's list_dir does not distinguish directories from files
            names = {name.strip("/") async for name in store.list_dir(path)}
            # Java leaves empty objects `path/`, which stores list with their whole path
            return [Entry(name, None) for name in sorted(names) if name and "/" not in name]
