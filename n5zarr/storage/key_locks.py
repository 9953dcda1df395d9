"""Lock keys of stores without locks, within this process.

One lock excludes threads, tasks of any event loop, and all stores of the same data. Who wants it
polls: so it blocks no event loop, and whatever ends a wait, or forks, leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import sys
import threading
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

__all__ = ["HeldError", "holding", "holding_async", "waited_for"]

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
    """Code that holds the lock of a name."""

    def __init__(self, *, replaces: bool, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.thread = threading.get_ident()
        self.replaces = replaces
        self._loop = loop
        self._left = [None]
        self._looked = self._ran = 0.0

    @property
    def is_gone(self) -> bool:
        """Whether it cannot go on, as its event loop has ended."""
        return self._loop is not None and not self._loop.is_running()

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
        if since > _BLOCKED / 2 or not _is_waiting(self.thread):  # nobody has looked, or it runs
            self._ran = now
        return now - self._ran > _BLOCKED

    def leave(self, name: str) -> None:
        """Free the lock, once: another thread may do so meanwhile, and a third one take it."""
        with contextlib.suppress(IndexError):
            self._left.pop()
            if _held.get(name) is self:
                del _held[name]


def _is_waiting(thread: int) -> bool:
    """Whether a thread waits for another one, as zarr's own calls do for zarr's event loop."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - documented
    return frame is None or frame.f_code is threading.Condition.wait.__code__


_held: dict[str, _Holder] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_held.clear)  # the threads of the parent hold them


@contextlib.contextmanager
def holding(name: str, *, replaces: bool = False) -> Iterator[None]:
    """Hold the lock of a value, and block this thread until it is free.

    Parameters
    ----------
    name : str
        Full name of the value: the place of its store, and its key.
    replaces : bool, optional
        Whether the value is only replaced or removed. If code that cannot go on before this code
        ends holds the lock, and one of both only replaces the value, this code does not wait.

    Raises
    ------
    HeldError
        Code that cannot go on before this code ends is changing the value, or blocks its event
        loop, or other code has held the lock for five minutes.
    """
    me = _Holder(replaces=replaces)
    stuck = (me.thread, *_waiting.get())
    with _holds(name, me):
        for pause in _pauses(name, me, stuck):
            time.sleep(pause)
        yield


@contextlib.asynccontextmanager
async def holding_async(name: str, *, replaces: bool = False) -> AsyncIterator[None]:
    """Hold the lock of a value, and await it; see :func:`holding`."""
    me = _Holder(replaces=replaces, loop=asyncio.get_running_loop())
    with _holds(name, me):
        for pause in _pauses(name, me, _waiting.get()):
            await asyncio.sleep(pause)
        yield


@contextlib.contextmanager
def waited_for() -> Iterator[None]:
    """Say that this thread waits for tasks on other event loops, and runs nothing meanwhile."""
    before = _waiting.set((*_waiting.get(), threading.get_ident()))
    try:
        yield
    finally:
        _waiting.reset(before)


@contextlib.contextmanager
def _holds(name: str, me: _Holder) -> Iterator[None]:
    """Note for code that runs within that it does, and release the lock at the end."""
    before = _inside.set((*_inside.get(), me))
    try:
        yield
    finally:
        me.leave(name)
        with contextlib.suppress(ValueError):  # ended elsewhere, as the event loop has ended
            _inside.reset(before)


def _pauses(name: str, me: _Holder, stuck: tuple[int, ...]) -> Iterator[float]:
    """Try to take a lock until it is taken; yield pauses in between.

    ``stuck`` are the threads that cannot go on before this code ends.
    """
    pause, last, since = _FIRST_PAUSE, me, 0.0
    while (holder := _held.setdefault(name, me)) is not me:
        if holder.is_gone:
            holder.leave(name)
            continue
        is_stuck = holder.thread in stuck or holder in _inside.get()
        if is_stuck and (me.replaces or holder.replaces):
            return
        if holder is not last:
            last, since = holder, time.monotonic()
        if is_stuck or holder.is_blocked or time.monotonic() - since > _PATIENCE:
            raise HeldError(name)
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)
