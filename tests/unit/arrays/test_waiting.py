"""Threads that wait for servers share a call, also if few of them can start."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Any

import pytest

from n5zarr.arrays import workers
from n5zarr.arrays.workers import wait_together
from tests.waiting import PATIENCE, wait_until


@pytest.fixture(autouse=True)
def new_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test find the idle threads of another."""
    monkeypatch.setattr(workers, "_WAITERS", workers._Waiters())


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
