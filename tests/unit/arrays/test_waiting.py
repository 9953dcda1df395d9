"""Threads that wait for servers share a call, also if few of them can start."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest
import zarr
from obstore.store import MemoryStore
from zarr.buffer import cpu
from zarr.storage import FsspecStore, ObjectStore

import n5zarr
from n5zarr import N5Store
from n5zarr.fast import turns as waiting_turns
from n5zarr.fast import workers
from n5zarr.fast.python_blocks import BlockReader
from n5zarr.fast.turns import Turns
from n5zarr.fast.workers import waiting
from n5zarr.servers import object_store
from n5zarr.storage import threads
from n5zarr.storage.ending import on_thread
from n5zarr.storage.threads import NoThreadError
from tests.waiting import PATIENCE, wait_until


@pytest.fixture(autouse=True)
def new_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test find the idle threads of another."""
    for module in (waiting_turns, workers):
        monkeypatch.setattr(module, "SERVERS", threads.Pool("n5zarr waits"))
    monkeypatch.setattr(workers, "SERVERS", waiting_turns.SERVERS)


@pytest.fixture
def own_pipeline() -> Iterator[None]:
    """Read through n5zarr's pipeline, whatever the environment says."""
    with zarr.config.set({"codec_pipeline.path": "n5zarr.arrays.pipeline.N5CodecPipeline"}):
        yield


def run(take: Any, n_threads: int, stop: Any, turns: Turns | None = None) -> None:
    async def wait() -> None:
        async with asyncio.timeout(PATIENCE):
            told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            tell = partial(told.get_loop().call_soon_threadsafe, told.set_result, None)
            with waiting(turns or Turns(64), take, n_threads, stop, tell):
                await asyncio.shield(told)

    asyncio.run(wait())


def n_threads() -> int:
    """Return how many threads wait for servers; those of other tests may still end."""
    return len(waiting_turns.SERVERS._threads)


def test_all_threads_share_the_work() -> None:
    """Each of five shares needs five threads at one time."""
    together, left, done = threading.Barrier(5), deque[int](), []
    turns = Turns(5)

    def take() -> bool:
        share = left.popleft()
        together.wait(PATIENCE)
        done.append(share)
        return bool(left)

    for _ in range(3):  # with new threads, and with idle ones
        left.extend(range(5))
        done.clear()
        wait_until(lambda: len(turns._free) == 5)  # given back after the last share is told
        run(take, 5, left.clear, turns)
        assert sorted(done) == list(range(5))
        assert n_threads() == 5
    assert not workers._stops


class Requests:
    """Counts requests that a store sends at a time."""

    def __init__(self, turns: Turns, n: int) -> None:
        self.turns, self.left = turns, deque(range(n))
        self.under_way, self.most = deque[int](), 0
        self.order: list[int] = []

    def take(self) -> bool:
        with contextlib.suppress(IndexError):
            share = self.left.popleft()
            self.under_way.append(share)
            self.most = max(self.most, len(self.under_way))
            time.sleep(0.002)
            self.under_way.pop()
            self.order.append(share)
        return bool(self.left)

    def run(self) -> None:
        run(self.take, len(self.left), self.left.clear, self.turns)


def test_the_calls_of_a_store_share_its_requests() -> None:
    """Sixteen calls at once, of one store and of two, need no more threads than one."""
    few, many = Turns(3), Turns(8)
    calls = [Requests(few, 40) for _ in range(8)] + [Requests(many, 40) for _ in range(8)]
    under_way = deque[int]()
    for call in calls[:8]:
        call.under_way = under_way
    with ThreadPoolExecutor(len(calls)) as callers:
        list(callers.map(Requests.run, calls))
    assert all(sorted(call.order) == list(range(40)) for call in calls)
    assert max(call.most for call in calls[:8]) <= 3
    assert 3 < n_threads() <= 8 + 2  # threads of the test may start two at one moment
    assert not few._calls
    wait_until(lambda: len(few._free) == 3)  # as above


def test_a_short_call_does_not_wait_for_a_long_one() -> None:
    turns = Turns(2)
    long, short = Requests(turns, 2000), Requests(turns, 10)
    with ThreadPoolExecutor(1) as callers:
        running = callers.submit(long.run)
        wait_until(lambda: len(long.order) > 5)
        short.run()
        assert len(long.order) < 1000
        long.left.clear()
        running.result(PATIENCE)


def test_idle_threads_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_IDLE", 0.05)
    turns, other = Turns(8), threading.active_count()
    for _ in range(3):  # and others begin
        Requests(turns, 40).run()
        wait_until(lambda: n_threads() == 0)
        wait_until(lambda: threading.active_count() <= other + 1)  # of asyncio.run


def test_the_first_error_ends_the_call() -> None:
    released, stopped = threading.Event(), []

    def take() -> bool:
        if len(numbers) > 1:
            numbers.pop()
            released.wait(PATIENCE)
            return True
        raise KeyError("k")

    numbers = deque(range(3))
    turns = Turns(3)
    with pytest.raises(KeyError, match="k"):
        run(take, 3, lambda: stopped.append(1), turns)
    assert stopped == [1]
    assert not workers._stops
    wait_until(lambda: len(waiting_turns.SERVERS.asked) == 2)  # which still wait
    released.set()
    workers._end()
    assert not waiting_turns.SERVERS.asked
    with pytest.raises(NoThreadError):
        run(take, 3, lambda: stopped.append(1), turns)


@pytest.mark.parametrize("n_start", [0, 1, 2])
def test_few_threads_or_none_can_start(n_start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start, n_started = threading.Thread.start, 0
    left, done = deque(range(11)), []

    def start_some(thread: threading.Thread) -> None:
        nonlocal n_started
        if thread.name == "n5zarr waits":
            if n_started == n_start:
                raise RuntimeError("can't start new thread")
            n_started += 1
        start(thread)

    def take() -> bool:
        with contextlib.suppress(IndexError):
            done.append(left.popleft())
        return bool(left)

    monkeypatch.setattr(threading.Thread, "start", start_some)
    if n_start == 0:
        with pytest.raises(NoThreadError, match="can't start"):
            run(take, 5, left.clear)
        assert done == []
        assert not workers._stops
    else:
        run(take, 5, left.clear)
        assert sorted(done) == list(range(11))


@pytest.mark.parametrize("fails", [False, True])
def test_a_cancelled_call_ends_before_its_task(*, fails: bool) -> None:
    begun, released, ended = threading.Event(), threading.Event(), []

    def call() -> None:
        begun.set()
        assert released.wait(PATIENCE)
        ended.append(1)
        if fails:
            raise KeyError("k")

    async def cancel() -> None:
        task = asyncio.ensure_future(on_thread(call))
        await asyncio.to_thread(begun.wait, PATIENCE)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.01)
            assert not task.done()
        released.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended

    asyncio.run(cancel())


@pytest.mark.usefixtures("own_pipeline")
@pytest.mark.parametrize("kind", ["obstore", "fsspec"])
def test_nothing_is_written_into_out_after_an_error(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner: Any = ObjectStore(MemoryStore())
    if kind == "fsspec":
        inner = FsspecStore.from_url(f"memory://out-{os.getpid()}")
    values = np.random.default_rng(3).integers(0, 60_000, (2, 100_003), "u2")  # not small
    n5zarr.create_array(N5Store(inner), path="a", data=values, chunks=(1, 100_003), overwrite=True)
    others, failed, put = threading.Event(), threading.Event(), BlockReader.put_block

    def put_block(self: BlockReader, item: Any, position: Any, *args: Any) -> Any:
        if position[-1] == 0:
            assert others.wait(PATIENCE)
            failed.set()
            raise OSError("no block")
        others.set()
        assert failed.wait(PATIENCE)
        time.sleep(0.1)  # the error has time to arrive first
        return put(self, item, position, *args)

    monkeypatch.setattr(BlockReader, "put_block", put_block)
    out: Any = np.zeros(values.shape, "u2")
    array: Any = zarr.open_array(N5Store(inner), path="a", mode="r")
    with pytest.raises(OSError, match="no block"):
        array.get_basic_selection(slice(None), out=cpu.NDBuffer(out))
    before = out.copy()
    time.sleep(0.3)
    np.testing.assert_array_equal(out, before)


@pytest.mark.usefixtures("own_pipeline")
def test_blocks_that_arrive_after_an_error_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    inner: Any = ObjectStore(MemoryStore())
    values = np.arange(1, 15, dtype="u2").reshape(2, 7)
    n5zarr.create_array(N5Store(inner), path="a", data=values, chunks=(1, 7))
    asked, released = threading.Event(), threading.Event()
    own = object_store.value_of_object

    def value(store: Any, key: str) -> Any:
        if key == "a/0/0":
            assert asked.wait(PATIENCE)
            raise OSError("no connection")
        asked.set()
        assert released.wait(PATIENCE)
        return own(store, key)

    array: Any = zarr.open_array(N5Store(inner), path="a", mode="r")
    monkeypatch.setattr(object_store, "value_of_object", value)
    out: Any = np.zeros(values.shape, "u2")
    with pytest.raises(OSError, match="no connection"):
        array.get_basic_selection(slice(None), out=cpu.NDBuffer(out))
    released.set()
    wait_until(lambda: not waiting_turns.SERVERS.asked)
    assert not out.any()
