"""End what a call has begun on threads and event loops together with the call.

A call that is cancelled or interrupted ends when each of its threads has finished its block. Later
it reads no memory of the caller, and writes nothing. Code that shares out work says by
:func:`ended_by` how the rest is dropped. It finds its call in a context variable, which coroutines
and the threads of :func:`on_thread` inherit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from threading import get_ident
from typing import Any, cast

from n5zarr.storage.threads import WORK

_LAST_WAIT = 5.0  # seconds for a request that is under way when its call is cancelled


_call: ContextVar[Call] = ContextVar("n5zarr_call")


def _current() -> Call:
    """Return the call of this thread or coroutine."""
    return _call.get(_NONE)


class Call:
    """A call, which any thread may stop."""

    def __init__(self) -> None:
        self.is_stopped, self._outer = False, _call.get(None)
        # of the work under way, with the numbers of their threads
        self.stops: list[tuple[Callable[[], object], int]] = []

    def stop(self) -> None:
        """Let the work under way end after the blocks at hand, and let none follow."""
        self.is_stopped = True
        for stop, _ in [*self.stops]:
            stop()

    def end(self) -> None:
        """Stop the call, and wait until nothing is under way, whatever interrupts this thread."""
        try:
            if _current() is self:  # an interruption came before it was left
                _call.set(self._outer or _NONE)
            self.stop()
            # an interruption may have left what is this thread's own
            while any(thread != get_ident() for _, thread in [*self.stops]):
                time.sleep(0.001)
        except BaseException:
            self.end()
            raise


_NONE = Call()  # never stopped


@contextmanager
def entering(call: Call | None) -> Iterator[None]:
    """Make what this thread or coroutine begins a part of a call; None: of the current one."""
    token = _call.set(call or _current())
    try:
        yield
    finally:
        with suppress(ValueError):  # a call that is thrown away ends in any context
            _call.reset(token)


@contextmanager
def ending() -> Iterator[Call]:
    """Make a call; if it fails or is interrupted, what it has begun ends first."""
    call = Call()
    try:
        with ended_by(call.stop), entering(call):
            yield call
    except BaseException:
        call.end()
        raise


class ended_by:  # noqa: N801 - a context manager; made by `contextlib`, it takes thrice the time
    """Call ``stop`` if the current call is stopped meanwhile, or was stopped before.

    Raises
    ------
    asyncio.CancelledError
        The call is stopped; raised at the end.
    """

    def __init__(self, stop: Callable[[], object]) -> None:
        self._under_way, self._call = (stop, get_ident()), _current()

    def __enter__(self) -> None:
        self._call.stops.append(self._under_way)
        if self._call.is_stopped:
            self._under_way[0]()

    def __exit__(self, kind: object, *_: object) -> None:
        self._call.stops.remove(self._under_way)
        if kind is None:
            check_wanted()


def check_wanted() -> None:
    """Raise :class:`asyncio.CancelledError` if the current call is stopped."""
    if _current().is_stopped:
        raise asyncio.CancelledError


async def within_call[T](coroutine: Coroutine[object, object, T]) -> T:
    """Await a coroutine, which is cancelled if the current call is stopped."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    with ended_by(partial(loop.call_soon_threadsafe, cast("Any", task).cancel)):
        return await coroutine


async def on_thread[**P, T](function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function on a thread, as ``asyncio.to_thread``; if cancelled, stop it and await it.

    So it neither writes nor uses memory of the caller whose call has ended.
    """
    call, context, cancelled = Call(), copy_context(), None
    context.run(_call.set, call)
    asked = WORK.submit(partial(context.run, function, *args, **kwargs))
    running = asyncio.wrap_future(asked)  # no task, which the end of an event loop would cancel
    # or asyncio logs that nobody has asked for the error of a call that was cancelled
    running.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        with ended_by(call.stop):
            while not running.done():
                try:
                    await asyncio.wait([running])
                except asyncio.CancelledError as err:
                    call.stop()
                    asked.cancel()  # unless it has begun
                    cancelled = err
    finally:
        call.stop()  # also if the coroutine is thrown away
    if cancelled is not None:
        raise cancelled
    return running.result()


async def unbroken[T](coroutine: Coroutine[Any, Any, T]) -> T:
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
            cancelled = err
            stop()
    if cancelled is None:
        return future.result()
    with suppress(BaseException):  # or asyncio logs that nobody has asked for its error
        future.result()
    raise cancelled
