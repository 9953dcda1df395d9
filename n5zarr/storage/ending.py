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

from n5zarr.storage.threads import WORK

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

__all__ = ["Call", "check_wanted", "ended_by", "ending", "on_thread", "within_call"]


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
        try:
            self.stop()
            while self.stops:
                time.sleep(0.001)
        except BaseException:
            self.end()
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
    call, context, cancelled = Call(), copy_context(), None
    context.run(_call.set, call)
    run = partial(context.run, function, *args, **kwargs)
    # no task, which the end of an event loop would cancel
    running = asyncio.wrap_future(WORK.submit(run))
    # or asyncio logs that nobody has asked for the error of a call that was cancelled
    running.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        with ended_by(call.stop):
            while not running.done():
                try:
                    await asyncio.wait([running])
                except asyncio.CancelledError as err:
                    call.stop()
                    cancelled = err
    finally:
        call.stop()  # also if the coroutine is thrown away
    if cancelled is not None:
        raise cancelled
    return running.result()
