"""Threads that wait for servers share a call, also if few of them can start."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr
from obstore.store import MemoryStore
from zarr.buffer import cpu
from zarr.storage import FsspecStore, ObjectStore

import n5zarr
from n5zarr import N5Store
from n5zarr.arrays import workers
from n5zarr.arrays.python_blocks import BlockReader
from n5zarr.arrays.workers import wait_together
from n5zarr.storage import objects, services
from n5zarr.storage.ending import on_thread
from tests.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def new_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test find the idle threads of another."""
    monkeypatch.setattr(workers, "_WAITERS", workers._Waiters())


@pytest.fixture
def own_pipeline() -> Iterator[None]:
    """Read through n5zarr's pipeline, whatever the environment says."""
    with zarr.config.set({"codec_pipeline.path": "n5zarr.arrays.pipeline.N5CodecPipeline"}):
        yield


def run(take: Any, n_threads: int, stop: Any) -> None:
    async def wait() -> None:
        async with asyncio.timeout(PATIENCE):
            await wait_together(take, n_threads, stop)

    asyncio.run(wait())


def test_all_threads_share_the_work() -> None:
    """Each of five shares needs five threads at one time."""
    together, left, done = threading.Barrier(5), deque[int](), []

    def take() -> None:
        while left:
            share = left.popleft()
            together.wait(PATIENCE)
            done.append(share)

    for _ in range(3):  # with new threads, and with idle ones
        left.extend(range(5))
        done.clear()
        run(take, 5, left.clear)
        assert sorted(done) == list(range(5))
        wait_until(lambda: len(workers._WAITERS._idle) == 5)  # and not more


def test_the_first_error_ends_the_call() -> None:
    released, stopped = threading.Event(), []

    def take() -> None:
        if len(numbers) > 1:
            numbers.pop()
            released.wait(PATIENCE)
        else:
            raise KeyError("k")

    numbers = deque(range(3))
    with pytest.raises(KeyError, match="k"):
        run(take, 3, lambda: stopped.append(1))
    assert stopped == [1]
    assert len(workers._WAITERS._all) == 1  # two threads still wait
    released.set()
    workers._WAITERS.end()
    assert stopped == [1, 1]


@pytest.mark.parametrize("n_start", [0, 1, 2])
def test_few_threads_or_none_can_start(n_start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start, n_started = threading.Thread.start, 0
    left, done = deque(range(11)), []
    ended = threading.Event()

    def start_some(thread: threading.Thread) -> None:
        nonlocal n_started
        if thread.name != "n5zarr waits":
            start(thread)
            return
        if n_started == n_start:
            if n_start:
                assert ended.wait(PATIENCE)  # the others have done everything
            raise RuntimeError("can't start new thread")
        n_started += 1
        start(thread)

    def take() -> None:
        while left:
            done.append(left.popleft())
        ended.set()

    monkeypatch.setattr(threading.Thread, "start", start_some)
    if n_start == 0:
        with pytest.raises(RuntimeError, match="can't start"):
            run(take, 5, left.clear)
        assert len(left) == 11
        assert not workers._WAITERS._all
    else:
        run(take, 5, left.clear)
        assert done == list(range(11))


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
    values = np.random.default_rng(3).integers(0, 60_000, (2, 20_011), "u2")  # not small
    n5zarr.create_array(N5Store(inner), path="a", data=values, chunks=(1, 20_011), overwrite=True)
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
    own = objects.value_of_object

    def value(store: Any, key: str) -> Any:
        if key == "a/0/0":
            assert asked.wait(PATIENCE)
            raise OSError("no connection")
        asked.set()
        assert released.wait(PATIENCE)
        return own(store, key)

    array: Any = zarr.open_array(N5Store(inner), path="a", mode="r")
    monkeypatch.setattr(services, "value_of_object", value)
    out: Any = np.zeros(values.shape, "u2")
    with pytest.raises(OSError, match="no connection"):
        array.get_basic_selection(slice(None), out=cpu.NDBuffer(out))
    released.set()
    wait_until(lambda: not workers._WAITERS._all)
    assert not out.any()
