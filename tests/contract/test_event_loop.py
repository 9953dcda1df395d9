"""Codecs run on threads, not on zarr's event loop, which all arrays of a process share."""

from __future__ import annotations

import asyncio
import bz2
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import obstore.store
import pytest
import zarr
from zarr.abc.store import Store
from zarr.codecs import BytesCodec
from zarr.codecs.numcodecs import BZ2, Delta
from zarr.storage import FsspecStore, LoggingStore, MemoryStore, ObjectStore, WrapperStore, ZipStore

import n5zarr
from n5zarr import CacheOptions, N5Store
from n5zarr.fast import batches
from n5zarr.servers import object_store
from n5zarr.storage import key_locks, services, threads
from tests.waiting import PATIENCE, wait_until

NUMBERS = count()
SHAPE, CHUNKS = (3, 53, 79), (2, 26, 37)
FEW_BYTES = 2**9  # less than any block has: what is decoded at once
VALUES = np.random.default_rng(0).integers(0, 60_000, SHAPE, "u2")
WORDS = np.array([f"word {n % 977}" for n in range(7 * 1009)], object).reshape(7, 1009)


class Awaited(WrapperStore[Any]):
    """A store that has to be awaited, and whose methods never let others run."""

    _supports_sync_io = False

    def _with_store(self, store: Store) -> Awaited:
        return type(self)(store)


STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _: MemoryStore(),
    "logging": lambda _: LoggingStore(MemoryStore(), log_level="ERROR"),
    "awaited": lambda _: Awaited(MemoryStore()),
    "fsspec": lambda _: FsspecStore.from_url(f"memory://loop-{os.getpid()}-{next(NUMBERS)}"),
    "obstore": lambda _: ObjectStore(obstore.store.MemoryStore()),
    "zip": lambda path: ZipStore(path / "a.zip", mode="w"),
}
WAYS: dict[str, dict[str, Any]] = {
    "large": {"shape": SHAPE, "chunks": CHUNKS, "dtype": "u2"},
    "small": {"shape": SHAPE, "chunks": (2, 9, 16), "dtype": "u2"},
    "coded": {
        "shape": SHAPE, "chunks": CHUNKS, "dtype": "u2", "serializer": BytesCodec(endian="little"),
    },
    "filters": {"shape": SHAPE, "chunks": CHUNKS, "dtype": "u2", "filters": Delta(dtype="<u2")},
    "shards": {"shape": SHAPE, "chunks": (2, 13, 16), "shards": (2, 26, 48), "dtype": "u2"},
    "structures": {"shape": SHAPE, "chunks": CHUNKS, "dtype": [("a", "<u2"), ("b", "<f8")]},
    "text": {"shape": WORDS.shape, "chunks": (5, 211), "dtype": str},
}  # fmt: skip


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> deque[bool]:
    """Note of each call of the codec whether it runs on an event loop."""
    found: deque[bool] = deque()

    def noting(function: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            is_on_loop = False
            with suppress(RuntimeError):
                is_on_loop = asyncio.get_running_loop() is not None
            found.append(is_on_loop)
            return function(*args, **options)

        return call

    monkeypatch.setattr(batches, "_FEW_SLOW_BYTES", FEW_BYTES)
    monkeypatch.setattr(services, "_FEW_BYTES", FEW_BYTES)
    for name in ("compress", "decompress", "BZ2Decompressor"):
        monkeypatch.setattr(bz2, name, noting(getattr(bz2, name)))
    return found


def values_of(way: str) -> np.ndarray:
    if way == "text":
        return WORDS
    if way != "structures":
        return VALUES
    made = np.zeros(SHAPE, WAYS[way]["dtype"])
    made["a"] = VALUES
    return made


@pytest.mark.each_of(5)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", STORES)
def test_codecs_never_run_on_the_event_loop(
    kind: str, way: str, tmp_path: Path, places: deque[bool]
) -> None:
    store, values = N5Store(STORES[kind](tmp_path)), values_of(way)
    array: Any = zarr.create_array(store, name="a", compressors=BZ2(level=1), **WAYS[way])
    part = tuple(slice(1, n - 1) for n in values.shape)
    expected = values.copy()
    for write in (..., part, (slice(None), slice(2, 3))):
        expected[write] = values[::-1][write]
        array[write] = values[::-1][write]
        np.testing.assert_array_equal(array[...], expected)
    np.testing.assert_array_equal(array[part], expected[part])
    np.testing.assert_array_equal(array.oindex[[0, 2], :], expected[[0, 2]])
    assert len(places) > 10
    assert not any(places)


def test_what_is_cached_is_decoded_on_threads(places: deque[bool]) -> None:
    inner = FsspecStore.from_url(f"memory://loop-{os.getpid()}-{next(NUMBERS)}")
    zarr.create_array(N5Store(inner), name="a", data=VALUES, chunks=(3, 17, 19), compressors=BZ2())
    array: Any = zarr.open_array(N5Store(inner, cache=CacheOptions()), path="a", mode="r")
    places.clear()
    for _ in range(2):
        np.testing.assert_array_equal(array[...], VALUES)
    assert len(places) == 2 * array.nchunks
    assert not any(places)


# ------------------------------------------------------------------ locks


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let compression take so long that a lock looks like one that is held for ever."""
    compress = bz2.compress

    def slowly(*args: Any) -> bytes:
        time.sleep(0.35)
        return compress(*args)

    monkeypatch.setattr(bz2, "compress", slowly)
    monkeypatch.setattr(key_locks, "_BLOCKED", 0.1)


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("kind", ["memory", "awaited", "obstore"])
def test_two_loops_write_halves_of_a_block(kind: str, tmp_path: Path) -> None:
    store = STORES[kind](tmp_path)
    n5zarr.create_array(N5Store(store), path="a", shape=(2, 7), dtype="u1", compression="bzip2")
    one, other = (n5zarr.open_array(N5Store(store), "r+", path="a") for _ in range(2))

    def on_zarrs_loop() -> None:
        one[0] = 1

    def on_another() -> None:
        asyncio.run(other.async_array.setitem((1, slice(None)), np.full(7, 2, "u1")))

    with ThreadPoolExecutor(2) as callers:
        for call in [callers.submit(on_zarrs_loop), callers.submit(on_another)]:
            call.result(PATIENCE)
    found: Any = n5zarr.open_array(N5Store(store), path="a")[...]
    assert found.tolist() == [[1] * 7, [2] * 7]


@pytest.mark.usefixtures("slow")
def test_a_holder_finds_a_thread_though_all_of_its_loop_wait_for_it() -> None:
    store = N5Store(ObjectStore(obstore.store.MemoryStore()))
    n = (os.cpu_count() or 1) + 5  # more than an event loop has threads
    array: Any = n5zarr.create_array(store, path="a", shape=(n,), dtype="u1", compression="bzip2")

    async def write() -> None:
        holder = asyncio.ensure_future(array.async_array.setitem(slice(0, 1), np.ones(1, "u1")))
        while not key_locks._held:
            await asyncio.sleep(0.001)
        waiting = [asyncio.to_thread(array.__setitem__, k, 1) for k in range(1, 4)]
        waiting += [asyncio.to_thread(array.__setitem__, slice(k, k + 1), 1) for k in range(4, n)]
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(holder, *waiting)

    asyncio.run(write())
    assert array[...].tolist() == [1] * n


# ------------------------------------------------------------------ requests at a time


class Counted(Awaited):
    """A store that counts the reads at a time."""

    under_way = most = 0

    async def get(self, key: str, *args: Any, **options: Any) -> Any:
        cls = type(self)
        cls.under_way += 1
        cls.most = max(cls.most, cls.under_way)
        await asyncio.sleep(0.001)
        cls.under_way -= 1
        return await super().get(key, *args, **options)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> tuple[Store, list[int]]:
    """Return an object store, and how many of its objects were read at each time."""
    own, under_way, found = object_store.value_of_object, deque[int](), [0]

    def value(store: Any, key: str) -> Any:
        under_way.append(0)
        found.append(len(under_way))
        time.sleep(0.001)
        under_way.pop()
        return own(store, key)

    monkeypatch.setattr(object_store, "value_of_object", value)
    return ObjectStore(obstore.store.MemoryStore()), found


def read_by_many(store: N5Store, places: Any = ...) -> None:
    array: Any = n5zarr.open(store, path="a")
    with ThreadPoolExecutor(16) as callers:
        for values in callers.map(lambda _: array[places], range(48)):
            assert values.all()


def test_concurrency_is_that_of_a_store_not_of_a_call(counted: tuple[Store, list[int]]) -> None:
    store, found = counted
    n5zarr.create_array(N5Store(store), path="a", data=np.ones((6, 10, 14)), chunks=(2, 3, 5))
    read_by_many(N5Store(store, concurrency=5))
    assert max(found) == 5
    n_threads = sum(thread.name == "n5zarr waits" for thread in threading.enumerate())
    read_by_many(N5Store(store, concurrency=3))
    found.clear()
    read_by_many(N5Store(store, concurrency=3))
    assert max(found) == 3
    now = sum(thread.name == "n5zarr waits" for thread in threading.enumerate())
    assert now <= max(n_threads, 5)


def test_tasks_of_several_calls_are_limited_together() -> None:
    inner = MemoryStore()
    n5zarr.create_array(N5Store(inner), path="a", data=np.ones((6, 10, 14)), chunks=(2, 3, 5))
    store = N5Store(Counted(inner), concurrency=5)
    read_by_many(store)
    assert Counted.most <= 5 + 16  # and a document of each call
    wait_until(lambda: not threads.WORK.asked)
