"""Storage in any zarr store: in memory, in archives, or on servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self, assert_never, cast, override

import zarr
from zarr.abc.store import RangeByteRequest, Store, SupportsSyncStore
from zarr.buffer import cpu
from zarr.storage import FsspecStore, ObjectStore, StorePath

from n5zarr._zarr import on_own_loop, same_data, sync
from n5zarr.codecs.buffers import BufferLike
from n5zarr.errors import N5UnsupportedError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.storage.asking_once import answers
from n5zarr.storage.cache import Cache, CacheOptions
from n5zarr.storage.ending import ending, on_thread, unbroken, within_call
from n5zarr.storage.held import HeldStore, Reopen
from n5zarr.storage.interface import Storage, ignore_warning
from n5zarr.storage.key_locks import holding, holding_async, waited_for
from n5zarr.storage.requests import (
    Ends,
    Exists,
    FileThatNames,
    Get,
    KeysBelow,
    List,
    Paused,
    Put,
    Remove,
    RemoveTree,
    Request,
    Stamp,
    Steps,
    Update,
    Warn,
    Work,
    drive,
    drive_async,
    log_request,
    logs_requests,
)
from n5zarr.storage.services import Service, service_of
from n5zarr.storage.store_locations import has_sync_methods, innermost

_AT_A_TIME = 32  # requests, tensorstore's default; zarr's default of 10 is for whole blocks


class ZarrStorage(Storage):
    """The keys of a container in a zarr store.

    Parameters
    ----------
    store : zarr.abc.store.Store
        Any store except local files, for which see :class:`~n5zarr.storage.local.LocalFiles`.
    backend : str, optional
        The library that reads a URL, and why it was chosen.
    reopen : callable, optional
        Opens the store of a URL again, and names the library.
    cache : CacheOptions, optional
        How many values to keep in memory, and when to read them again.
    """

    def __init__(
        self,
        store: Store,
        backend: str = "",
        reopen: Reopen | None = None,
        cache: CacheOptions | None = None,
    ) -> None:
        self._held = HeldStore(store, backend, reopen)
        self._cache = None if cache is None else Cache(cache)
        self.has_cache = cache is not None
        self._begin()

    def _begin(self) -> None:
        self._is_open = False
        self._asked: dict[tuple[object, ...], asyncio.Task[Any]] = {}
        if self._cache is not None:
            self._cache.begin_anew()

    @property
    @override
    def store(self) -> Store:
        """The store; in a forked process one that works there, with locks that nobody holds."""
        if self._held.is_of_parent:
            self._held.begin_anew(str(self), self._begin)
        return self._held.store

    @property
    def _service(self) -> Service:
        return service_of(self.store)

    def __str__(self) -> str:
        return str(service_of(self._held.store))

    def __reduce__(self) -> tuple[Any, ...]:
        # tasks and what is kept belong to a process
        held, cache = self._held, None if self._cache is None else self._cache.options
        return type(self), (held.store, held.backend, held.reopen, cache)

    @property
    @override
    def backend(self) -> str:
        return self._held.backend

    @property
    @override
    def read_only(self) -> bool:
        return self._held.store.read_only or not self._cache_writes

    @property
    def _cache_writes(self) -> bool:
        return self._cache is None or self._cache.options.writes

    @property
    @override
    def is_shared(self) -> bool:
        return service_of(self._held.store).is_shared

    @property
    @override
    def supports_sync(self) -> bool:
        if self._cache is not None:  # which keeps what is awaited
            return False
        # zarr's convention: wrappers always have the methods; the attribute tells if they work
        return has_sync_methods(self.store) and bool(getattr(self.store, "_supports_sync_io", True))

    @override
    def with_read_only(self, *, read_only: bool) -> Self:
        if not read_only and not self._cache_writes:
            message = "cache: expected recheck=True, or to stay read only; see CacheOptions"
            raise N5UnsupportedError(message, kind="read-only")
        if self.store.read_only and not read_only:
            make, (store, *others) = self.__reduce__()
            made: Self = make(store.with_read_only(read_only=False), *others)
            return made
        return self

    @override
    def is_same_place(self, other: Storage) -> bool:
        match [innermost(self.store), innermost(other.store)]:
            case [FsspecStore() as one, FsspecStore() as two]:
                return (one.path, one.fs) == (two.path, two.fs)
            case [ObjectStore() as one, ObjectStore() as two]:
                return bool(one.store == two.store)
            case [one, two]:
                # do not compare with ==: stores in memory compare values
                return same_data(one, two)
            case _:
                return False

    @override
    async def open(self, *, read_only: bool) -> None:
        # two tasks must not open a store at once; opening it may open another of the same data
        await holding_async(f"open {id(self)}", partial(StorePath.open, self.store, ""))
        self._is_open = True

    @override
    def close(self) -> None:
        self._held.store.close()

    # ------------------------------------------------------------------ without await

    @override
    def run[T](
        self,
        steps: Steps[T],
        warn: Callable[[str], None] = ignore_warning,
        requests: Sequence[Request] | None = None,
    ) -> T:
        if self.supports_sync:
            return super().run(steps, warn, requests)
        if requests is None:  # most often the memory of documents has the answer
            done = drive(steps, self.answer_with(warn), pauses_at=lambda _: True)
            if not isinstance(done, Paused):
                return done
            requests = done.requests
        with ending():
            return waited_for(sync, within_call(self.run_async(steps, warn, requests)))

    @override
    def answer(self, request: Request, warn: Callable[[str], None]) -> object:
        store = self.store
        if not isinstance(store, SupportsSyncStore):
            message = f"{type(store).__name__} has no synchronous methods; use the asynchronous"
            raise N5UnsupportedError(message, kind="option")
        match request:
            case Get(key, _, part):
                value = store.get_sync(
                    key, prototype=cpu.buffer_prototype, byte_range=_range_of(part)
                )
                return None if value is None else memoryview(value.as_numpy_array())
            case Work(function):
                return function()
            case Put(key, data):
                holding(
                    self._held.lock_name(key),
                    partial(store.set_sync, key, cpu.Buffer.from_bytes(data)),
                    replaces=True,
                )
            case Remove(key):
                holding(self._held.lock_name(key), partial(store.delete_sync, key), replaces=True)
            case Update(key, change):
                return holding(self._held.lock_name(key), partial(_update_sync, store, key, change))
            case _:  # zarr has no synchronous methods for other requests
                return waited_for(on_own_loop, self._send(request, warn))
        return None

    @property
    @override
    def get_waiting(self) -> Callable[[str], BufferLike | None] | None:
        if self.supports_sync:
            answer = self.answer_with(ignore_warning)
            return lambda key: cast("BufferLike | None", answer(Get(key)))
        read = None if self._cache is not None else self._service.get_waiting
        if read is None:
            return None

        def get(key: str) -> BufferLike | None:
            answer: object = None
            try:
                answer = found = read(key)
            except Exception as err:
                answer = err
                raise
            finally:
                if logs_requests():
                    log_request(self, Get(key), answer)
            return found

        return get

    # ------------------------------------------------------------------ with await

    @override
    async def run_async[T](
        self,
        steps: Steps[T],
        warn: Callable[[str], None] = ignore_warning,
        requests: Sequence[Request] | None = None,  # those at which the flow was paused
    ) -> T:
        return await drive_async(steps, partial(self._answer_batch, warn=warn), requests)

    async def _answer_batch(
        self, requests: Sequence[Request], *, warn: Callable[[str], None]
    ) -> list[object]:
        """Answer many small requests, for documents and listings, concurrently."""
        if len(requests) == 1:  # in memory, a task costs more than the request
            return [await self._answer_async(requests[0], warn)]
        limit = asyncio.Semaphore(max(_AT_A_TIME, zarr.config.get("async.concurrency") or 0))

        async def answer(request: Request) -> object:
            async with limit:
                return await self._answer_async(request, warn)

        return await asyncio.gather(*map(answer, requests))

    async def _answer_async(self, request: Request, warn: Callable[[str], None]) -> object:
        """Answer one request with await, from what this call remembers or from the store."""
        if (of_call := answers()) is None:
            return await self._answer_together(request, warn)
        if (known := of_call.known(self._service, request)) is not None:
            return known.answer
        answer = await self._answer_together(request, warn)
        of_call.learn(self._service, request, answer)
        return answer

    async def _answer_together(self, request: Request, warn: Callable[[str], None]) -> object:
        """Send a request for a document or a listing for all tasks that make it at this moment.

        Zarr requests the documents of both formats together, which are one document in N5. The
        request is sent after all tasks have made it, so that none gets an older value.
        """
        loop = asyncio.get_running_loop()
        place: tuple[object, ...]
        match request:
            case Get(key, _, part) if key.rpartition("/")[2] == ATTRIBUTES_JSON:
                place = id(loop), Get, key, part
            case List(path, few):
                place = id(loop), List, path, few
            case _:
                return await self._send(request, warn)

        async def send_it() -> object:
            await asyncio.sleep(0)
            if self._asked.get(place) is asyncio.current_task():
                del self._asked[place]
            return await self._send(request, warn)

        asked = self._asked.get(place)
        if asked is None or asked.done() or asked.get_loop() is not loop:
            for old in [key for key, task in self._asked.items() if task.done()]:
                self._asked.pop(old, None)  # cancelled before they began
            asked = self._asked[place] = asyncio.ensure_future(send_it())
        return await asyncio.shield(asked)

    async def _send(self, request: Request, warn: Callable[[str], None]) -> object:
        """Send a request to the store, and log it, unless nothing is sent."""
        if not self._is_open:  # not every store opens itself on the first request
            await self.open(read_only=self.read_only)
        answer: object = None
        try:
            answer = await self._of_store(request, warn)
        except Exception as err:
            answer = err
            raise
        finally:
            if self._cache is not None and isinstance(request, Put | Update | Remove):
                self._cache.forget(request.key)
            if logs_requests() and not isinstance(request, Stamp | FileThatNames):
                log_request(self, request, answer)
        return answer

    async def _of_store(self, request: Request, warn: Callable[[str], None]) -> object:
        store = self.store
        match request:
            case Get(key, _, None) if self._cache is not None:
                kept = await self._cache.get(key, self._service.fetch)
                return None if kept is None else memoryview(kept)
            case Get(key, _, part):
                value = await store.get(key, cpu.buffer_prototype, _range_of(part))
                return None if value is None else memoryview(value.as_numpy_array())
            case Ends(key, first, last):
                return await self._service.ends(key, first, last)
            case Stamp() | FileThatNames():
                return None
            case Work(function):
                return await on_thread(function)
            case Put(key, data):
                await holding_async(
                    self._held.lock_name(key),
                    lambda: unbroken(store.set(key, cpu.Buffer.from_bytes(data))),
                    replaces=True,
                )
            case Exists(key) if self._cache is not None:
                return await self._cache.get(key, self._service.fetch) is not None
            case Exists(key):
                return await store.exists(key)
            case List(path, few):
                return await self._service.entries(path, few=few)
            case KeysBelow(path, take):
                return await self._service.take_keys(path, take)
            case Update(key):
                return await holding_async(
                    self._held.lock_name(key), lambda: unbroken(self._service.update(request))
                )
            case Remove(key):
                await holding_async(
                    self._held.lock_name(key), lambda: unbroken(store.delete(key)), replaces=True
                )
            case RemoveTree(path):
                await self._remove_tree(path, warn)
            case Warn(message):
                warn(message)
            case _:
                assert_never(request)
        return None

    async def _remove_tree(self, path: str, warn: Callable[[str], None]) -> None:
        """Remove all keys below a path; documents first, so that no dataset loses blocks only."""
        store, sizes = self.store, await self._service.sizes_below(path)
        documents = [key for key in sizes if key.rpartition("/")[2] == ATTRIBUTES_JSON]
        limit = asyncio.Semaphore(_AT_A_TIME)

        async def remove(key: str) -> None:
            async with limit:
                await store.delete(key)

        await asyncio.gather(*map(remove, documents))
        await store.delete_dir(path)
        if self._cache is not None:
            for key in sizes:
                self._cache.forget(key)
        if 0 in sizes.values():  # objects `a/`, which obstore lists as `a`, and cannot remove
            if (other := self._held.through_fsspec()) is not None:
                await other.delete_dir(path)
            else:
                warn(
                    f"{path}/: an empty group remains: obstore cannot remove the empty object that "
                    "Java has made for it; remove it with backend='fsspec'"
                )


def _range_of(part: tuple[int, int] | None) -> RangeByteRequest | None:
    return None if part is None else RangeByteRequest(part[0], sum(part))


def _update_sync(
    store: SupportsSyncStore, key: str, change: Callable[[bytes | None], bytes | None]
) -> bytes | None:
    """Replace the value of a key by the result of a function, or remove it."""
    old = store.get_sync(key, prototype=cpu.buffer_prototype)
    new = change(None if old is None else old.to_bytes())
    if new is not None:
        store.set_sync(key, cpu.Buffer.from_bytes(new))
    elif old is not None:
        store.delete_sync(key)
    return new
