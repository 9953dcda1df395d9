"""Lock keys of stores without locks, within this process.

One lock excludes threads, tasks of any event loop, and all stores of the same data. Who wants it
polls: so it blocks no event loop, and whatever ends a wait, or forks, leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

__all__ = ["holding", "holding_async", "waited_for"]

_PATIENCE = 300  # seconds that one holder may take
_FIRST_PAUSE, _LONGEST_PAUSE = 2**-14, 2**-6  # seconds

_waiting: ContextVar[tuple[int, ...]] = ContextVar("n5zarr_waiting", default=())


class _Holder:
    """Code that holds the lock of a key."""

    def __init__(self, *, replaces: bool) -> None:
        self.thread = threading.get_ident()
        self.replaces = replaces


_held: dict[tuple[str, str], _Holder] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_held.clear)  # the threads of the parent hold them


@contextlib.contextmanager
def holding(place: str, key: str, *, replaces: bool = False) -> Iterator[None]:
    """Hold the lock of a key, and block this thread until it is free.

    Parameters
    ----------
    place : str
        Name of the data of the store.
    key : str
        The key.
    replaces : bool, optional
        Whether the value is only replaced or removed. If code that cannot go on before this code
        ends holds the lock, and one of both only replaces the value, this code does not wait.

    Raises
    ------
    TimeoutError
        Code that cannot go on before this code ends is changing the value, or other code has held
        the lock for five minutes.
    """
    me = _Holder(replaces=replaces)
    stuck = (me.thread, *_waiting.get())
    try:
        for pause in _pauses(place, key, me, stuck):
            time.sleep(pause)
        yield
    finally:
        _release(place, key, me)


@contextlib.asynccontextmanager
async def holding_async(place: str, key: str, *, replaces: bool = False) -> AsyncIterator[None]:
    """Hold the lock of a key, and await it; see :func:`holding`."""
    me = _Holder(replaces=replaces)
    try:
        for pause in _pauses(place, key, me, _waiting.get()):
            await asyncio.sleep(pause)
        yield
    finally:
        _release(place, key, me)


@contextlib.contextmanager
def waited_for() -> Iterator[None]:
    """Say that this thread waits for tasks on other event loops, and runs nothing meanwhile."""
    before = _waiting.set((*_waiting.get(), threading.get_ident()))
    try:
        yield
    finally:
        _waiting.reset(before)


def _pauses(place: str, key: str, me: _Holder, stuck: tuple[int, ...]) -> Iterator[float]:
    """Try to take a lock until it is taken; yield pauses in between.

    ``stuck`` are the threads that cannot go on before this code ends.
    """
    pause, last, since = _FIRST_PAUSE, me, 0.0
    while (holder := _held.setdefault((place, key), me)) is not me:
        is_stuck = holder.thread in stuck
        if is_stuck and (me.replaces or holder.replaces):
            return
        if holder is not last:
            last, since = holder, time.monotonic()
        if is_stuck or time.monotonic() - since > _PATIENCE:
            message = (
                "expected to change the value, but another part of this process is changing it and "
                "does not end; does a finalizer, a signal handler or a coroutine wait for code "
                "that it interrupts?"
            )
            raise TimeoutError(errno.ETIMEDOUT, message, key)
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)


def _release(place: str, key: str, me: _Holder) -> None:
    if _held.get((place, key)) is me:
        del _held[place, key]
