"""Lock keys of stores without locks, within this process.

One lock excludes threads, tasks of any event loop, and all stores of the same data. Who wants it
polls: so it blocks no event loop, and whatever ends a wait, or forks, leaves nothing behind.

A signal handler may raise between any two steps of Python, also of those that give a lock back. So
a lock is held as long as the coroutine runs that holds it, which the interpreter knows; giving it
back only saves others from looking.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextvars import ContextVar, copy_context
from functools import partial
from inspect import CORO_CLOSED, getcoroutinestate
from typing import Any
from weakref import ref

_PATIENCE = 300  # seconds that one holder may take
_BLOCKED = 20.0  # seconds of waiting after which the event loop of a holder never runs again
_FIRST_PAUSE, _LONGEST_PAUSE = 2**-14, 2**-6  # seconds

_waiting: ContextVar[tuple[int, ...]] = ContextVar("n5zarr_waiting", default=())
_inside: ContextVar[tuple[_Holder, ...]] = ContextVar("n5zarr_inside", default=())


class HeldError(TimeoutError):
    """Other code of this process is changing a value, and does not end."""

    def __init__(self, name: str) -> None:
        super().__init__(
            errno.ETIMEDOUT,
            "expected to change the value, but another part of this process is changing it and "
            "does not end; does a finalizer, a signal handler, a store or a coroutine wait for "
            "code that it interrupts? Coroutines must await, or use asyncio.to_thread",
            name,
        )


class _Holder:
    """Code that holds the lock of a name, or tries to take it."""

    def __init__(
        self, name: str, *, replaces: bool, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.name = name
        self.thread = threading.get_ident()
        self.replaces = replaces
        self._loop = loop
        self._looked = self._ran = 0.0

    def begin[T](
        self,
        stuck: tuple[int, ...],
        sleep: Callable[[float], Awaitable[None]],
        change: Callable[[], Awaitable[T]],
    ) -> Coroutine[Any, Any, T]:
        """Return a coroutine that takes the lock, and holds it during a change."""
        code = self._hold(stuck, sleep, change)
        self._code = ref(code)  # no cycle
        return code

    async def _hold[T](
        self,
        stuck: tuple[int, ...],
        sleep: Callable[[float], Awaitable[None]],
        change: Callable[[], Awaitable[T]],
    ) -> T:
        before = _inside.set((*_inside.get(), self))
        try:
            for pause in _pauses(self, stuck):
                await sleep(pause)
            return await change()
        finally:
            _held.pop(self, None)
            with contextlib.suppress(ValueError):  # ended elsewhere, as the event loop has ended
                _inside.reset(before)

    @property
    def is_gone(self) -> bool:
        """Whether it has ended, or cannot go on, as its event loop has ended."""
        code = self._code()
        has_ended = code is None or getcoroutinestate(code) == CORO_CLOSED
        return has_ended or (self._loop is not None and not self._loop.is_running())

    @property
    def is_blocked(self) -> bool:
        """Whether its event loop has run nothing for long, as its thread waits for other threads.

        A thread that computes goes on some time, however long it takes.
        """
        now = time.monotonic()
        since = now - self._looked
        if self._loop is None or since < _BLOCKED / 8:
            return False
        self._looked = now
        frame = sys._current_frames().get(self.thread)  # noqa: SLF001 - documented
        is_waiting = frame is None or frame.f_code is threading.Condition.wait.__code__
        if since > _BLOCKED / 2 or not is_waiting:  # nobody has looked, or it runs
            self._ran = now
        return now - self._ran > _BLOCKED


_held: dict[_Holder, None] = {}  # of several with one name, the first holds the lock
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_held.clear)  # the threads of the parent hold them


def holding[T](name: str, change: Callable[[], T], *, replaces: bool = False) -> T:
    """Call a function while holding the lock of a value; block this thread until it is free.

    Parameters
    ----------
    name : str
        Full name of the value: the place of its store, and its key.
    change : callable
        Changes the value; its result is returned.
    replaces : bool, optional
        Whether the value is only replaced or removed. If code that cannot go on before this code
        ends holds the lock, and one of both only replaces the value, this code does not wait.

    Raises
    ------
    HeldError
        Code that cannot go on before this code ends is changing the value, or blocks its event
        loop, or other code has held the lock for five minutes.
    """
    me = _Holder(name, replaces=replaces)
    stuck = (me.thread, *_waiting.get())
    code = me.begin(stuck, partial(_at_once, time.sleep), partial(_at_once, change))
    try:
        code.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError  # it never awaits


async def holding_async[T](
    name: str, change: Callable[[], Awaitable[T]], *, replaces: bool = False
) -> T:
    """Await the lock of a value, then a function while holding it; see :func:`holding`."""
    me = _Holder(name, replaces=replaces, loop=asyncio.get_running_loop())
    return await me.begin(_waiting.get(), asyncio.sleep, change)


async def _at_once[T](function: Callable[..., T], *args: object) -> T:
    return function(*args)


def waited_for[**P, T](function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that waits for tasks on other event loops; say that this thread does so."""
    context = copy_context()
    context.run(_waiting.set, (*_waiting.get(), threading.get_ident()))
    return context.run(function, *args, **kwargs)


def _pauses(me: _Holder, stuck: tuple[int, ...]) -> Iterator[float]:
    """Try to take a lock until it is taken; yield pauses in between.

    ``stuck`` are the threads that cannot go on before this code ends.
    """
    pause, last, since = _FIRST_PAUSE, me, 0.0
    while (holder := _holder_for(me)) is not me:
        is_stuck = holder.thread in stuck or holder in _inside.get()
        if is_stuck and (me.replaces or holder.replaces):
            return
        if holder is not last:
            last, since = holder, time.monotonic()
        if is_stuck or holder.is_blocked or time.monotonic() - since > _PATIENCE:
            raise HeldError(me.name)
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)


def _holder_for(me: _Holder) -> _Holder:
    """Try to take a lock, and return who has it: the first of its name that goes on."""
    _held[me] = None
    names = (each for each in list(_held) if each.name == me.name)
    holder = next((each for each in names if each is me or not each.is_gone), me)
    if holder is not me:
        _held.pop(me, None)
    return holder
