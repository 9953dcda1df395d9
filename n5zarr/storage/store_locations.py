"""Find the locations that a store wraps, caches or unpacks, to compare them.

One container has many names: a path, a link to it, a URL, a store of another library, each perhaps
behind a cache. Code that removes or replaces files checks here whether another store reads them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from zarr.abc.store import Store, SupportsSyncStore
from zarr.storage import FsspecStore, LocalStore, ObjectStore, WrapperStore, ZipStore

from n5zarr._zarr import wrapped
from n5zarr.format.path import join
from n5zarr.storage.interface import Storage
from n5zarr.storage.secrets import secrets_of_store, without_secrets
from n5zarr.storage.url import is_url, local_path

KINDS = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "az"}
"""The classes of obstore for services, and the schemes of their URLs."""


def name_of_objects(store: ObjectStore[Any]) -> str:
    """Return the URL of an object store, without user, password and query."""
    inner: Any = store.store
    scheme = KINDS.get(type(inner).__name__)
    if scheme is None:
        return without_secrets(getattr(inner, "url", "") or f"object_store://{inner}")
    bucket = inner.config.get("bucket") or inner.config.get("container_name")
    url = "/".join(filter(None, (f"{scheme}://{bucket}", inner.prefix)))
    return without_secrets(url, secrets_of_store(store))


def places_behind(storage: Storage, path: str = "") -> list[str]:
    """Return all names of a node, in every store inside its storage.

    Parameters
    ----------
    storage : Storage
        The storage of the container.
    path : str, optional
        Path of the node.

    Returns
    -------
    list of str
        Paths without links, and URLs. For a node in an archive, also the archive.
    """
    if storage.root is not None:
        return [real_name(join(str(storage.root), path))]
    names = {real_name(join(str(storage), path)): None}
    names |= dict.fromkeys(map(real_name, _names(storage.store, path)))
    return list(names)


def innermost(store: Store) -> Store:
    """Return the store inside all wrappers of zarr's kind."""
    while isinstance(store, WrapperStore):
        store = wrapped(store)
    return store


def has_sync_methods(store: Store) -> bool:
    """Whether a store, and those that it wraps, have synchronous methods that do what others do."""
    defines = _defines_methods(type(store))
    return defines and (not isinstance(store, WrapperStore) or has_sync_methods(wrapped(store)))


@cache
def _defines_methods(kind: type) -> bool:
    """Whether a class has synchronous methods; one with its own ``get`` has its ``get_sync``."""

    def definer(name: str) -> type:
        return next(base for base in kind.__mro__ if name in vars(base))

    return issubclass(kind, SupportsSyncStore) and all(
        issubclass(definer(f"{name}_sync"), definer(name)) for name in ("get", "set", "delete")
    )


def name_of_data(store: Store) -> str:
    """Return a name that all stores of the same data have, whatever wraps them."""
    *_, name = _names(store, "")
    return real_name(name)


def overlap(some: Iterable[str], others: Iterable[str]) -> tuple[str, str] | None:
    """Return two places of which one contains the other, or is equal to it; None if there are none.

    Examples
    --------
    >>> overlap(["/a/b.n5"], ["/a/c.n5", "/a/b.n5/em"])
    ('/a/b.n5', '/a/b.n5/em')
    """
    for other in others:
        for one in some:
            if f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/"):
                return one, other
    return None


def overlap_with(names: Iterable[str], storage: Storage, path: str) -> tuple[str, str] | None:
    """Return a named place and one of a node, of which one contains the other; None if none do."""
    return overlap(list(map(real_name, names)), places_behind(storage, path))


def real_name(name: str) -> str:
    """Return the canonical name of a place."""
    if is_url(name):
        return name.rstrip("/")
    return Path(os.path.realpath(local_path(name))).as_posix()


def _names(store: Store, path: str) -> Iterator[str]:
    """Yield the names of a node in a store and in all stores inside it, at least one."""
    match innermost(store):
        case LocalStore() as inner:
            yield join(str(inner.root), path)
        case ZipStore() as inner:
            yield str(inner.path)
        case FsspecStore() as inner:
            yield from _names_in(inner.fs, join(inner.path.rstrip("/"), path))
        case ObjectStore() as inner if type(inner.store).__name__ == "LocalStore":
            folder = getattr(inner.store, "prefix", None)  # without one, from the root
            yield str(Path(folder or os.sep, path))
        case ObjectStore() as inner:
            yield join(name_of_objects(inner), path)
        case inner if isinstance(storage := getattr(inner, "storage", None), Storage):
            yield from places_behind(storage, path)
        case inner:
            yield join(str(inner), path)


def _names_in(fs: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - fsspec has no types
    """Yield the names of a path in a file system of fsspec and in all file systems inside it."""
    yield str(fs.unstrip_protocol(path))
    archive: Any = getattr(fs, "of", None)
    if hasattr(archive, "fs"):
        yield from _names_in(archive.fs, archive.path)
    inner = getattr(fs, "sync_fs", None) or getattr(fs, "fs", None)
    if inner is not None:
        is_directory = hasattr(fs, "_join")  # a directory in another file system
        yield from _names_in(inner, fs._join(path) if is_directory else path)  # noqa: SLF001
