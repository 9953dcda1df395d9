"""List the keys below a directory by their prefix, in stores that can do so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zarr.storage import FsspecStore, ObjectStore

from n5zarr._zarr import LocalStore
from n5zarr.storage.objects import keys_of_objects
from n5zarr.storage.store_locations import innermost
from n5zarr.storage.url_store import PAGE, Page, UrlStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from zarr.abc.store import Store


__all__ = ["take_keys"]


async def take_keys[T](store: Store, path: str, take: Callable[..., T]) -> list[T] | None:
    """Pass each page of the keys below a directory, and their sizes, to a function.

    None if directories are listed singly.
    """
    pages = _keys_below(store, path)
    return None if pages is None else [take(*page) async for page in pages]


def _keys_below(store: Store, path: str) -> AsyncIterator[Page] | None:
    """List the keys below a directory, relative to it; None if directories are listed singly.

    Where directories exist, many stores omit those that they cannot read from such a listing.
    """
    if isinstance(store, UrlStore):
        return store.keys_below(path) if store.is_flat else None
    if isinstance(store, ObjectStore):
        return keys_of_objects(store, path)
    is_of_directories = isinstance(innermost(store), LocalStore | FsspecStore | ObjectStore)
    return None if is_of_directories else _keys_of_store(store, path)


async def _keys_of_store(store: Store, path: str) -> AsyncIterator[Page]:
    prefix = f"{path}/" if path else ""
    keys: list[str] = []
    async for key in store.list_prefix(prefix):
        keys.append(key.removeprefix(prefix))
        if len(keys) == PAGE:
            yield keys, None
            keys = []
    yield keys, None
