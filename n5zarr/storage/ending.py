"""End what a call has begun on threads and event loops together with the call.

A call that is cancelled or interrupted ends when each of its threads has finished its block. Later
it reads no memory of the caller, and writes nothing. Code that shares out work says by
:func:`ended_by` how the rest is dropped; :class:`Call` finds that code through a context variable,
which coroutines and their threads inherit.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

__all__ = [
    "Call",
    "check_wanted",
    "ended_by",
    "ending",
    "on_thread",
    "patiently",
    "unbroken",
    "within_call",
]

_LAST_WAIT = 5.0  # seconds for a request that is under way when its call is cancelled


class Call:
    """A call, which any thread may stop."""

    def __init__(self) -> None:
        self.is_stopped = False
        self.stops: list[Callable[[], object]] = []  # of the work under way

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make what this thread or coroutine begins a part of this call."""
        token = _call.set(self)
        try:
            yield
        finally:
            _call.reset(token)

    def stop(self) -> None:
        """Let the work under way end after the blocks at hand, and let none follow."""
        self.is_stopped = True
        for stop in [*self.stops]:
            stop()

    def end(self) -> None:
        """Stop the call, and wait until nothing is under way, whatever interrupts this thread."""
        patiently(self._end)

    def _end(self) -> None:
        self.stop()
        while self.stops:
            time.sleep(0.001)

    def __reduce__(self) -> tuple[type[Call]]:
        return (Call,)  # what is under way belongs to this process


def patiently(wait: Callable[[], object]) -> None:
    """Wait for an end, also if interruptions come; raise them afterwards."""
    try:
        wait()
    except BaseException:
        patiently(wait)
        raise


_call: ContextVar[Call | None] = ContextVar("n5zarr_call", default=None)


@contextmanager
def ending() -> Iterator[Call]:
    """Make a call; if it fails or is interrupted, what it has begun ends with it."""
    call = Call()
    try:
        with ended_by(call.stop), call.current():
            yield call
    except BaseException:
        call.end()
        raise


@contextmanager
def ended_by(stop: Callable[[], object]) -> Iterator[None]:
    """Call ``stop`` if the current call is stopped meanwhile, or was stopped before.

    Raises
    ------
    asyncio.CancelledError
        The call is stopped; raised at the end.
    """
    call = _call.get()
    if call is None:
        yield
        return
    call.stops.append(stop)
    try:
        if call.is_stopped:
            stop()
        yield
    finally:
        call.stops.remove(stop)
    check_wanted()


def check_wanted() -> None:
    """Raise :class:`asyncio.CancelledError` if the current call is stopped."""
    call = _call.get()
    if call is not None and call.is_stopped:
        raise asyncio.CancelledError


async def within_call[T](coroutine: Coroutine[object, object, T]) -> T:
    """Await a coroutine, which is cancelled if the current call is stopped."""
    loop, task = asyncio.get_running_loop(), cast("asyncio.Task[object]", asyncio.current_task())
    with ended_by(partial(loop.call_soon_threadsafe, task.cancel)):
        return await coroutine


async def on_thread[**P, T](function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function on a thread, as ``asyncio.to_thread``; if cancelled, stop it and await it.

    So it neither writes nor uses memory of the caller whose call has ended.
    """
    call, context = Call(), copy_context()
    context.run(_call.set, call)
    run = partial(context.run, function, *args, **kwargs)
    with ended_by(call.stop):
        # no task, which the end of an event loop would cancel
        running = asyncio.get_running_loop().run_in_executor(None, run)
        try:
            return await _end_of(running, call.stop)
        finally:
            call.stop()  # also if the coroutine is thrown away


async def unbroken[T](coroutine: Coroutine[object, object, T]) -> T:
    """Await a request that writes; if cancelled, await its end for some seconds.

    Else it might take effect after a later one.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.Task(coroutine, loop=loop, eager_start=True)
    return await _end_of(task, partial(loop.call_later, _LAST_WAIT, task.cancel))


async def _end_of[T](future: asyncio.Future[T], stop: Callable[[], object]) -> T:
    """Await the end of a future, also if cancelled, which then stops it."""
    cancelled = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as err:
            # or asyncio logs that nobody has asked for the error
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            cancelled = err
            stop()
    if cancelled is not None:
        raise cancelled
    return future.result()
