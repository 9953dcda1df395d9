"""Calls that are stopped end with what they have begun."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any

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


def test_a_call_on_a_thread() -> None:
    """It has the context, arguments and errors of its caller, and a call of its own."""
    known, calls = ContextVar("known", default=0), list[Call]()
    known.set(7)

    def function(*given: object, **named: object) -> object:
        calls.append(ending._current())
        if given == (0,):
            raise ZeroDivisionError
        return threading.get_ident(), known.get(), given, named

    async def ask(*given: object, **named: object) -> object:
        return await on_thread(function, *given, **named)

    found: Any = asyncio.run(ask(1, 2, a=3))
    thread, *rest = found
    assert (thread == threading.get_ident(), rest) == (False, [7, (1, 2), {"a": 3}])
    with pytest.raises(ZeroDivisionError):
        asyncio.run(ask(0))
    assert all(each is not ending._NONE and each.is_stopped for each in calls)
    assert ending._current() is ending._NONE


def test_a_thread_whose_caller_is_cancelled_is_stopped_and_awaited() -> None:
    begun, done = threading.Event(), list[str]()

    def work() -> str:
        begun.set()
        while not ending._current().is_stopped:
            time.sleep(0.001)
        done.append("stopped")
        return "result"

    async def cancel(within: Call | None) -> None:
        with entering(within):
            task = asyncio.ensure_future(on_thread(work))
            while not begun.is_set():
                await asyncio.sleep(0.001)
            (task.cancel if within is None else within.stop)()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert done

    for within in (None, Call()):
        begun.clear()
        done.clear()
        asyncio.run(cancel(within))


def test_a_call_that_fails_ends_what_it_has_begun() -> None:
    stopped: list[str] = []
    with ending.ending() as call, entering(None):
        assert ending._current() is call
        assert call.stop in [stop for stop, _ in ending._NONE.stops]
    assert (call.is_stopped, ending._current()) == (False, ending._NONE)
    assert call.stop not in [stop for stop, _ in ending._NONE.stops]
    outer = Call()
    with entering(outer), pytest.raises(KeyError), ending.ending() as call:
        raise KeyError
    assert (call.is_stopped, outer.is_stopped, call.stops) == (True, False, [])
    with entering(outer), pytest.raises(asyncio.CancelledError), ending.ending() as call:
        outer.stop()
    assert call.is_stopped
    with entering(outer):
        late = ended_by(lambda: stopped.append("late"))
    late.__enter__()  # the call was stopped before
    assert stopped == ["late"]


def test_a_coroutine_within_a_call() -> None:
    async def soon() -> int:
        return 5

    async def never() -> None:
        await asyncio.sleep(PATIENCE)

    async def stop() -> None:
        call = Call()
        with entering(call):
            asyncio.get_running_loop().call_later(0.01, call.stop)
            await ending.within_call(never())

    assert asyncio.run(ending.within_call(soon())) == asyncio.run(unbroken(soon())) == 5
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(stop())
    call, ended = Call(), list[int]()
    entry = (lambda: ended.append(1), threading.get_ident() + 1)
    call.stops.append(entry)

    def leave() -> None:
        ended.append(2)
        call.stops.remove(entry)

    threading.Timer(0.02, leave).start()
    call.end()  # waits for other threads
    assert ended == [1, 2]


def test_what_is_thrown_away_ends_in_any_context() -> None:
    part: Any = entering(Call())
    copy_context().run(part.__enter__)
    with entering(Call()):
        own = ending._current()
        part.gen.close()  # as the garbage collector does
        assert ending._current() is own
