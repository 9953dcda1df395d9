"""Calls that are stopped end with what they have begun."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from n5zarr.storage import ending
from n5zarr.storage.ending import Call, check_wanted, ended_by, entering, on_thread, unbroken
from tests.waiting import PATIENCE, let_others_run


@pytest.mark.parametrize("is_slow", [False, True])
def test_a_request_under_way_is_awaited_for_a_while(
    monkeypatch: pytest.MonkeyPatch, *, is_slow: bool
) -> None:
    monkeypatch.setattr(ending, "_LAST_WAIT", 0.01 if is_slow else PATIENCE)
    done = list[str]()

    async def request(answered: asyncio.Event) -> None:
        await answered.wait()
        done.append("sent")

    async def cancel() -> None:
        answered = asyncio.Event()
        task = asyncio.ensure_future(unbroken(request(answered)))
        for _ in range(3):
            await let_others_run()
            task.cancel()
        await let_others_run()
        assert is_slow or not task.done()
        if not is_slow:
            answered.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert done == ([] if is_slow else ["sent"])


def test_what_no_thread_has_begun_is_called_off(monkeypatch: pytest.MonkeyPatch) -> None:
    released, done = threading.Event(), list[int]()
    monkeypatch.setattr("n5zarr.storage.ending.WORK", ThreadPoolExecutor(1))

    async def cancel() -> None:
        other = asyncio.ensure_future(on_thread(released.wait, PATIENCE))
        task = asyncio.ensure_future(on_thread(done.append, 1))
        await let_others_run()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        released.set()
        await other

    asyncio.run(cancel())
    assert done == []


def test_the_work_of_a_stopped_call_ends() -> None:
    call, stopped = Call(), list[str]()
    with entering(call):
        with pytest.raises(asyncio.CancelledError), ended_by(lambda: stopped.append("a")):
            call.stop()
        assert stopped == ["a"]
        with pytest.raises(KeyError, match="k"), ended_by(lambda: stopped.append("b")):
            raise KeyError("k")
        assert stopped == ["a", "b"]
        with pytest.raises(asyncio.CancelledError):
            check_wanted()
    check_wanted()
    call.end()
