"""Find the locations behind a store, which it wraps, caches or unpacks, to compare them.

One container has many names: a path, a link to it, a URL, a store of another library, each of them
perhaps behind a cache. Code that removes or replaces files checks here whether another store reads
them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zarr.storage import FsspecStore, LocalStore, ObjectStore, WrapperStore, ZipStore

from n5zarr._zarr_private import wrapped
from n5zarr.format.path import join
from n5zarr.storage.cache import CachingStore
from n5zarr.storage.url import is_url, local_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from n5zarr.storage.interface import Storage

__all__ = ["overlap", "places_behind", "real_name"]


def places_behind(storage: Storage, path: str = "") -> list[str]:
    """Return all names of a node, of every store that its storage is made of.

    Parameters
    ----------
    storage : Storage
        Where the node is.
    path : str, optional
        The node in it.

    Returns
    -------
    list of str
        Paths without links, and URLs. Of what is in an archive, also the archive.
    """
    if storage.root is not None:
        return [real_name(join(str(storage.root), path))]
    names = {real_name(join(str(storage), path)): None}
    names |= dict.fromkeys(map(real_name, _names(storage.store, path)))
    return list(names)


def overlap(some: Iterable[str], others: Iterable[str]) -> tuple[str, str] | None:
    """Return a place and another one that lies in it, or in which it lies; None if none does.

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


def real_name(name: str) -> str:
    """Return the name of a place in the one form that all of its names share."""
    if is_url(name):
        return name.rstrip("/")
    return Path(os.path.realpath(local_path(name))).as_posix()


def _names(store: object, path: str) -> Iterator[str]:
    """Yield the names of a node in the stores that a store is made of."""
    match store:
        case CachingStore():
            yield from _names(store.inner, path)
        case WrapperStore():
            yield from _names(wrapped(store), path)
        case LocalStore():
            yield join(str(store.root), path)
        case ZipStore():
            yield str(store.path)
        case FsspecStore():
            yield from _names_in(store.fs, join(store.path.rstrip("/"), path))
        case ObjectStore() if type(store.store).__name__ == "LocalStore":
            yield join(str(getattr(store.store, "prefix", None) or ""), path)


def _names_in(fs: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - fsspec has no types
    """Yield the names of a path in the file systems that one of fsspec's is made of."""
    yield str(fs.unstrip_protocol(path))
    archive: Any = getattr(fs, "of", None)
    if hasattr(archive, "fs"):
        yield from _names_in(archive.fs, archive.path)
    inner = getattr(fs, "sync_fs", None) or getattr(fs, "fs", None)
    if inner is not None:
        is_directory = hasattr(fs, "_join")  # of another file system, with paths of its own
        yield from _names_in(inner, fs._join(path) if is_directory else path)  # noqa: SLF001
