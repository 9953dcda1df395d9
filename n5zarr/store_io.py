"""Answering the requests of :mod:`n5zarr.hierarchy` from a zarr store, with and without await."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import zarr
from zarr.buffer import cpu
from zarr.storage import LocalStore

from n5zarr.errors import N5UnsupportedError
from n5zarr.hierarchy import Entry, Get, List, Warn

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from zarr.abc.store import Store, SupportsGetSync

    from n5zarr.hierarchy import Request, Steps

__all__ = ["run_async", "run_sync"]

type _Answer = bytes | Sequence[Entry] | None


def run_sync[T](steps: Steps[T], store: Store, warn: Callable[[str], None]) -> T:
    """Run a generator of requests on a store that can be read synchronously.

    Parameters
    ----------
    steps : generator
        What :class:`~n5zarr.hierarchy.Hierarchy` returns.
    store : zarr.abc.store.Store
        The container.
    warn : callable
        Is given the messages for the user.

    Returns
    -------
    object
        What the generator returns.
    """

    def answer(request: Request) -> _Answer:
        match request:
            case Get(key):
                # zarr's type guards do not narrow; the caller checked the capability
                value = _sync_reader(store).get_sync(key, prototype=cpu.buffer_prototype)
                return None if value is None else value.to_bytes()
            case List(path):
                return _entries_sync(store, path)
            case Warn(message):
                warn(message)
                return None

    try:
        requests = next(steps)
        while True:
            requests = steps.send([answer(request) for request in requests])
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
            match request:
                case Get(key):
                    value = await store.get(key, cpu.buffer_prototype)
                    return None if value is None else value.to_bytes()
                case List(path):
                    return await _entries(store, path)
                case Warn(message):
                    warn(message)
                    return None

    try:
        requests = next(steps)
        while True:
            requests = steps.send(await asyncio.gather(*map(answer, requests)))
    except StopIteration as done:
        result: T = done.value
        return result


def _sync_reader(store: Store) -> SupportsGetSync:
    assert hasattr(store, "get_sync")  # noqa: S101 - for the type checker; callers have checked
    return store


async def _entries(store: Store, path: str) -> list[Entry]:
    """List a directory through the store, which does not tell directories from files."""
    names = {name.strip("/") async for name in store.list_dir(path)}
    # Java leaves zero-byte objects `path/` on object stores
    return [Entry(name, None) for name in sorted(names) if name and name != path]


def _entries_sync(store: Store, path: str) -> list[Entry]:
    if isinstance(store, LocalStore):
        return _scan(Path(store.root), path)
    return _without_await(_entries(store, path))


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


def _scan(root: Path, path: str) -> list[Entry]:
    """List a local directory; one that is not there is empty. Links are followed, loops are not."""
    directory = root / path
    try:
        with os.scandir(directory) as found:
            return [
                Entry(entry.name, entry.is_dir())
                for entry in found
                if not (entry.is_symlink() and _leads_up(Path(entry.path), directory))
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _leads_up(link: Path, directory: Path) -> bool:
    """Whether a link points to the directory that it lies in or to one above it."""
    return directory.resolve().is_relative_to(link.resolve())
