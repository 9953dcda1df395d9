"""The wrapped store, whose keys are N5's: making it, and using it with and without await."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

import zarr
from zarr.abc.store import Store, SupportsSyncStore
from zarr.buffer import cpu
from zarr.storage import FsspecStore, ObjectStore

from n5zarr._zarr_private import LocalStore, same_data
from n5zarr.errors import N5UnrepresentableError, N5UnsupportedError
from n5zarr.format.path import local_path
from n5zarr.storage import files
from n5zarr.storage.cache import CachingStore
from n5zarr.storage.requests import Entry, Get, List, Remove, RemoveTree, Update, Warn
from n5zarr.storage.url import (
    UrlStore,
    entries_of_objects,
    is_url,
    objects_below,
    says_missing,
    store_of_url,
    update_object,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from zarr.abc.buffer import Buffer

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.storage.requests import Request, Steps
    from n5zarr.storage.url import Backend

__all__ = [
    "delete_sync",
    "is_same_place",
    "read_sync",
    "run_async",
    "run_sync",
    "wrapped_store",
    "write_sync",
]

type _Answer = bytes | Sequence[Entry] | None

_SOMETHING = Entry("?", None)


def wrapped_store(
    store: str | os.PathLike[str] | Store,
    storage_options: dict[str, Any] | None,
    *,
    read_only: bool,
    backend: Backend = "fsspec",
) -> Store:
    """Make the store of a container.

    Parameters
    ----------
    store : path, URL or zarr store
        What the user gave.
    storage_options : dict or None
        For the backend, with a URL.
    read_only : bool
        Whether a store that is made here refuses to write. Local files are written by
        :mod:`n5zarr.storage.files`, so that zarr's store for them is for reading in any case:
        it would make the directory of a container that is only looked for.
    backend : {"fsspec", "obstore"}, optional
        What reads URLs.

    Raises
    ------
    N5UnrepresentableError
        There are options, but no URL (``kind="option"``).
    """
    if is_url(store):
        return store_of_url(str(store), storage_options, read_only=read_only, backend=backend)
    if storage_options is not None or backend != "fsspec":
        name = "backend" if storage_options is None else "storage_options"
        message = f"{name}: expected only with a URL, got it with {store!r}"
        raise N5UnrepresentableError(message, kind="option")
    if type(store) is LocalStore:
        # one form of the same place, so that equality and messages do not depend on the spelling
        return LocalStore(Path(store.root).resolve(), read_only=store.read_only)
    if type(store) is FsspecStore:
        return UrlStore.of(store)
    if isinstance(store, Store):
        return store
    path = Path(local_path(os.fspath(store)))
    return LocalStore(path.expanduser().resolve(), read_only=True)


def is_same_place(first: Store, second: Store) -> bool:
    """Whether two wrapped stores hold the same container, however they read it."""
    stores = [s.inner if isinstance(s, CachingStore) else s for s in (first, second)]
    match stores:
        case [FsspecStore() as one, FsspecStore() as other]:
            return (one.path, one.fs) == (other.path, other.fs)
        case [ObjectStore() as one, ObjectStore() as other]:
            return bool(one.store == other.store)
        case [one, other]:
            return same_data(one, other)  # of two in memory it is not enough to be equal
        case _:
            return False


def read_sync(store: Store, key: str, *, settled: bool = False) -> Buffer | None:
    """Read a key without await; ``settled`` as in :class:`~n5zarr.storage.requests.Get`."""
    if isinstance(store, LocalStore):
        # no Path: it would cost a third of reading a small block
        data = files.read(f"{store.root}/{key}", settled=settled)
        return None if data is None else cpu.Buffer.from_bytes(data)
    return _sync_store(store).get_sync(key, prototype=cpu.buffer_prototype)


def write_sync(store: Store, key: str, data: BufferLike) -> None:
    """Write a key without await."""
    if isinstance(store, LocalStore):
        files.write(_local_root(store) / key, data)
    else:
        _sync_store(store).set_sync(key, cpu.Buffer.from_bytes(data))


def delete_sync(store: Store, key: str) -> None:
    """Delete a key without await."""
    if isinstance(store, LocalStore):
        files.remove(_local_root(store) / key)
    else:
        _sync_store(store).delete_sync(key)


def run_sync[T](steps: Steps[T], store: Store, warn: Callable[[str], None]) -> T:
    """Run a generator of requests on a store that can be used synchronously.

    Parameters
    ----------
    steps : generator
        What :class:`~n5zarr.container.nodes.Hierarchy` returns.
    store : zarr.abc.store.Store
        The container.
    warn : callable
        Is given the messages for the user.

    Returns
    -------
    object
        What the generator returns.
    """
    answer = _answer_local if isinstance(store, LocalStore) else _answer_sync
    try:
        requests = next(steps)
        while True:
            requests = steps.send([answer(request, store, warn) for request in requests])
    except StopIteration as done:
        result: T = done.value
        return result


async def run_async[T](steps: Steps[T], store: Store, warn: Callable[[str], None]) -> T:
    """Run a generator of requests, each batch concurrently; see :func:`run_sync`."""
    if isinstance(store, LocalStore):
        # one thread for all of them instead of one for each
        return await asyncio.to_thread(run_sync, steps, store, warn)
    limit = asyncio.Semaphore(zarr.config.get("async.concurrency") or 64)

    async def answer(request: Request) -> _Answer:
        async with limit:
            return await _answer_async(request, store, warn)

    try:
        requests = next(steps)
        while True:
            requests = steps.send(await asyncio.gather(*map(answer, requests)))
    except StopIteration as done:
        result: T = done.value
        return result


def _answer_local(request: Request, store: Store, warn: Callable[[str], None]) -> _Answer:
    root = _local_root(store)
    match request:
        case Get(key, settled):
            return files.read(root / key, settled=settled)
        case Warn(message):
            warn(message)
        case List(path):
            found = files.scan(root, path)
            return None if found is None else [Entry(*entry) for entry in found]
        case Update(key, change):
            return files.update(root / key, change, warn)
        case Remove(key):
            files.remove(root / key)
            files.prune((root / key).parent, keep_top="/" not in key)
        case RemoveTree(path):
            files.remove_tree(root / path, keep_top=not path)
        case _:
            assert_never(request)
    return None


def _answer_sync(request: Request, store: Store, warn: Callable[[str], None]) -> _Answer:
    match request:
        case Get(key):
            value = read_sync(store, key)
            return None if value is None else value.to_bytes()
        case Warn(message):
            warn(message)
        case Remove(key):
            delete_sync(store, key)
        case Update(key, change):
            old = read_sync(store, key)
            new = change(None if old is None else old.to_bytes())
            write_sync(store, key, new)
            return new
        case _:
            return _without_await(_answer_async(request, store, warn))
    return None


async def _answer_async(request: Request, store: Store, warn: Callable[[str], None]) -> _Answer:
    match request:
        case Get(key):
            value = await store.get(key, cpu.buffer_prototype)
            return None if value is None else value.to_bytes()
        case List(path, few):  # there are no empty directories
            return await _entries(store, path, few=few) or None
        case Warn(message):
            warn(message)
        case Update(key, change):
            return await _update(store, key, change)
        case Remove(key):
            await store.delete(key)
        case RemoveTree(path):
            await store.delete_dir(path)
        case _:
            assert_never(request)
    return None


def _local_root(store: Store) -> Path:
    assert isinstance(store, LocalStore)  # noqa: S101 - for the type checker; callers have checked
    return Path(store.root)


def _sync_store(store: Store) -> SupportsSyncStore:
    if isinstance(store, SupportsSyncStore):
        return store
    message = f"{type(store).__name__} has no synchronous methods; use the asynchronous ones"
    raise N5UnsupportedError(message, kind="option")


async def _update(store: Store, key: str, change: Callable[[bytes | None], bytes]) -> bytes:
    if isinstance(store, CachingStore):
        try:
            return await _update(store.inner, key, change)
        finally:
            store.forget(key)
    if isinstance(store, ObjectStore):
        return await update_object(store, key, change)
    old = await store.get(key, cpu.buffer_prototype)
    new = change(None if old is None else old.to_bytes())
    if old is None or new != old.to_bytes():
        await store.set(key, cpu.Buffer.from_bytes(new))
    return new


async def _entries(store: Store, path: str, *, few: bool = False) -> list[Entry]:
    """List a directory through the store, or, with ``few``, find out whether it holds anything."""
    match store:
        case CachingStore():
            return await _entries(store.inner, path, few=few)
        case UrlStore() | ObjectStore() if few:
            below = store.holds(path) if isinstance(store, UrlStore) else objects_below(store, path)
            try:
                return [_SOMETHING] if await below else []
            except Exception as err:
                if says_missing(store, err):
                    return []
                raise
        case UrlStore():
            return await store.entries(path)
        case ObjectStore():
            return await entries_of_objects(store, path)
        case _:
            # which does not tell directories from files
            names = {name.strip("/") async for name in store.list_dir(path)}
            # markers `path/`, which Java leaves, are listed as their whole path
            return [Entry(name, None) for name in sorted(names) if name and "/" not in name]


def _without_await[T](coroutine: Coroutine[object, None, T]) -> T:
    """Run a coroutine of a store that never waits, such as zarr's MemoryStore."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    message = "this store cannot be listed synchronously; use the asynchronous methods"
    raise N5UnsupportedError(message, kind="option")
