"""Threads, event loops and stores of the same data lose no update where storage has no locks."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import obstore.store
import pytest
import zarr
from zarr.abc.store import Store
from zarr.storage import FsspecStore, LoggingStore, MemoryStore, ObjectStore, WrapperStore

import n5zarr
from n5zarr import N5Store
from n5zarr._zarr import sync
from n5zarr.storage import key_locks
from n5zarr.storage.key_locks import holding, holding_async, waited_for
from n5zarr.storage.requests import Update, request_each
from tests.waiting import PATIENCE

NUMBERS = count()
N_WRITERS, N_RUNS = 5, 11


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Let threads switch as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)
    assert not key_locks._held


STORES: dict[str, Callable[[], Store]] = {
    "memory": MemoryStore,
    "fsspec": lambda: FsspecStore.from_url(f"memory://updates-{os.getpid()}-{next(NUMBERS)}"),
    "obstore": lambda: ObjectStore(obstore.store.MemoryStore()),
}
WAYS: dict[str, Callable[[Store], N5Store]] = {
    "plain": N5Store,
    "wrapped": lambda store: N5Store(WrapperStore(store)),
    "twice": lambda store: N5Store(WrapperStore(LoggingStore(store, log_level="ERROR"))),
}


def together(*functions: Callable[[], object]) -> None:
    """Call functions at the same time, each on a thread."""
    barrier = threading.Barrier(len(functions))

    def call(function: Callable[[], object]) -> None:
        barrier.wait(PATIENCE)
        function()

    with ThreadPoolExecutor(len(functions)) as threads:
        for called in [threads.submit(call, function) for function in functions]:
            called.result(PATIENCE)


def increment(data: bytes | None) -> bytes:
    return str(int(data or 0) + 1).encode()


async def increments(store: N5Store) -> None:
    for _ in range(N_RUNS):
        await store.run_async(request_each([Update("n", increment)]))


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("is_one", [True, False], ids=["one store", "several stores"])
def test_no_update_of_any_thread_or_loop_is_lost(kind: str, *, is_one: bool) -> None:
    inner = STORES[kind]()
    one = N5Store(inner)
    stores = [one] * 3 if is_one else [make(inner) for make in WAYS.values()]

    def waits(store: N5Store) -> None:
        for _ in range(N_RUNS):
            store.run(request_each([Update("n", increment)]))

    def awaits(store: N5Store) -> None:
        async def several() -> None:
            await asyncio.gather(*(increments(store) for _ in range(3)))

        asyncio.run(several())

    calls = [(lambda w=way, s=s: w(s)) for way in (waits, awaits) for s in stores]
    together(*calls)
    (value,) = one.run(request_each([Update("n", increment)]))
    assert int(value) == N_RUNS * 3 * (1 + 3) + 1


@pytest.mark.parametrize("kind", STORES)
def test_no_attribute_is_lost(kind: str) -> None:
    for _ in range(N_RUNS):
        store: Any = N5Store(STORES[kind]())
        group = zarr.create_group(store)

        def of_zarr(group: zarr.Group = group) -> None:
            group.attrs["zarr"] = 1
            group.attrs["b"] = 2

        def of_n5zarr(store: N5Store = store) -> None:
            for name in "xyz":
                n5zarr.set_attribute(store, "", name, 3)

        together(of_zarr, of_n5zarr)
        found = dict(zarr.open_group(store, mode="r").attrs)
        assert found == {"zarr": 1, "b": 2, "x": 3, "y": 3, "z": 3}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", STORES)
def test_no_part_of_a_block_is_lost(kind: str, way: str) -> None:
    inner = STORES[kind]()
    values = np.arange(1, 1 + 5 * 7, dtype="u2").reshape(5, 7)
    n5zarr.create_array(N5Store(inner), path="a", shape=(5, 7), chunks=(5, 7), dtype="u2")

    def write(row: int) -> None:
        array: Any = n5zarr.open_array(WAYS[way if row % 2 else "plain"](inner), "r+", path="a")
        for column in range(7):
            array[row, column] = values[row, column]

    async def write_async(row: int) -> None:
        store: Any = N5Store(inner)
        array: Any = await zarr.api.asynchronous.open_array(store=store, path="a", mode="r+")
        for column in range(7):
            await array.setitem((row, column), values[row, column])

    calls: list[Callable[[], object]] = [partial(write, row) for row in range(3)]
    calls += [partial(asyncio.run, write_async(row)) for row in (3, 4)]
    together(*calls)
    found: Any = zarr.open_array(N5Store(inner), path="a", mode="r")
    np.testing.assert_array_equal(found[...], values)


# ------------------------------------------------------------------ the lock


def never() -> None:
    raise AssertionError


async def never_async() -> None:
    raise AssertionError


async def nothing() -> None:
    pass


def test_a_cancelled_task_leaves_no_lock() -> None:
    async def both() -> None:
        begin = asyncio.Event()

        async def wait() -> None:
            await begin.wait()
            await holding_async("place/key", never_async)

        async def cancel() -> None:
            begin.set()
            await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

        waiting = asyncio.ensure_future(wait())
        await holding_async("place/key", cancel)
        async with asyncio.timeout(PATIENCE):
            await holding_async("place/key", nothing)

    asyncio.run(both())


def test_a_loop_goes_on_while_a_thread_holds_a_lock() -> None:
    held, released = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        assert released.wait(PATIENCE)

    async def take() -> None:
        async def release() -> None:
            await asyncio.sleep(0.01)
            released.set()

        async def is_released() -> bool:
            return released.is_set()

        assert held.wait(PATIENCE)
        async with asyncio.TaskGroup() as tasks, asyncio.timeout(PATIENCE):
            tasks.create_task(release())
            assert await holding_async("place/key", is_released)

    together(lambda: holding("place/key", hold), lambda: asyncio.run(take()))


def test_a_thread_that_blocks_a_loop_does_not_wait_for_its_tasks() -> None:
    async def suspended() -> None:
        with pytest.raises(TimeoutError):
            holding("place/key", never)
        on_another_loop = holding_async("place/key", never_async)
        with pytest.raises(TimeoutError):
            waited_for(sync, on_another_loop)

    asyncio.run(holding_async("place/key", suspended))


def test_a_loop_that_somebody_blocks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """zarr's own calls do not tell for which thread they wait."""
    monkeypatch.setattr(key_locks, "_BLOCKED", 0.5)
    store = N5Store("memory://blocked.n5")  # of fsspec, without synchronous methods
    array: Any = zarr.create_array(store, name="a", shape=(8,), chunks=(8,), dtype="u1")
    storage: Any = store.storage
    name = storage._held.lock_name("a/0")

    async def main() -> None:
        held, end = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            held.set()
            await end.wait()

        holder = asyncio.ensure_future(holding_async(name, hold))
        await held.wait()
        with pytest.raises(TimeoutError, match="another part of this process is changing it"):
            array[2:5] = 7
        end.set()
        await holder
        array[2:5] = 7

    asyncio.run(main())
    assert array[...].tolist() == [0, 0, 7, 7, 7, 0, 0, 0]


@pytest.mark.parametrize("way", ["computes", "waits"])
def test_a_slow_holder_is_not_one_that_never_ends(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop is kept busy by code that computes, or runs what others wait for on threads."""
    monkeypatch.setattr(key_locks, "_BLOCKED", 0.2)
    held, values = threading.Event(), []

    async def hold() -> None:
        held.set()
        until = time.monotonic() + 1
        while time.monotonic() < until:  # as a codec that somebody else's store calls
            if way == "waits":
                await asyncio.sleep(0.01)
        values.append(1)

    def take() -> None:
        assert held.wait(PATIENCE)
        holding("place/key", lambda: values.append(2))

    together(lambda: asyncio.run(holding_async("place/key", hold)), take)
    assert values == [1, 2]


def test_code_within_a_holder_does_not_wait_for_it() -> None:
    """As a store that changes the same value, by another store, where it writes."""

    async def inner() -> None:
        with pytest.raises(TimeoutError, match="another part of this process is changing it"):
            await asyncio.to_thread(holding, "place/key", never)

    asyncio.run(holding_async("place/key", inner))


def test_a_value_has_one_lock_in_stores_with_other_roots() -> None:
    root, part = (N5Store(f"memory://roots.n5{path}") for path in ("", "/g"))
    zarr.create_group(root)
    zarr.create_group(root, path="g")
    calls = [partial(n5zarr.set_attribute, root, "g", f"a{n}", n) for n in range(5)]
    calls += [partial(n5zarr.set_attribute, part, "", f"b{n}", n) for n in range(5)]
    together(*calls)
    assert len(n5zarr.open_group(root, path="g").attrs) == 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_holds_no_lock_of_other_threads() -> None:
    held, released = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        assert released.wait(PATIENCE)

    def fork() -> None:
        assert held.wait(PATIENCE)
        child = os.fork()
        if child == 0:
            os._exit(len(key_locks._held))
        released.set()
        assert os.waitpid(child, 0)[1] == 0

    together(lambda: holding("place/key", hold), fork)
