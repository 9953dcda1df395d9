"""Threads of n5zarr's own: they make calls in turn, and end when they are idle.

Why not the executors of ``concurrent.futures``: a signal handler or a finalizer may interrupt a
thread anywhere, and read or write N5 itself. If it interrupts an executor while that holds a lock
that is not re-entrant, it waits for ever. Why not the threads of the event loop: a program may have
given them work that waits for the value that n5zarr is changing. Here, calls go through a
``SimpleQueue``, whose ``put`` is re-entrant.
"""

from __future__ import annotations

import asyncio
import os
import threading
from asyncio import AbstractEventLoop, Semaphore, get_running_loop
from collections import deque
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_IDLE = 5.0  # seconds after which a thread without calls ends
_OF_WORK = (os.cpu_count() or 1) + 4  # threads, as an event loop has


class NoThreadError(RuntimeError):
    """No thread can start, and none is there."""


class _Pool:
    """Threads that make calls, in the order in which they are asked."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """Start without threads: a forked process does not have its parent's."""
        self.has_ended = False  # and takes no calls, as the process ends
        self.asked: deque[None] = deque()  # one for each call that has not ended
        self._calls: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._threads: deque[None] = deque()  # one for each

    def ask(self, call: Callable[[], object], most: int) -> None:
        """Let a thread make a call, and again as long as it returns something true.

        Starts a thread if none is idle, and there are fewer than ``most``.

        Raises
        ------
        NoThreadError
            There is no thread, and none can start, or the process ends.
        """
        if self.has_ended:
            raise NoThreadError("the process ends")
        self.asked.append(None)
        self._calls.put(call)
        if len(self._threads) >= min(len(self.asked), most):
            return
        self._threads.append(None)
        try:
            threading.Thread(target=self._serve, name=self._name, daemon=True).start()
        except RuntimeError as err:  # the others do the work
            self._threads.pop()
            if not self._threads:
                raise NoThreadError(str(err)) from err

    def _serve(self) -> None:
        while True:
            try:
                call = self._calls.get(timeout=_IDLE)
            except Empty:
                self._threads.pop()
                if self._calls.empty():
                    return
                self._threads.append(None)  # asked for when this thread still counted
                continue
            if call():
                self._calls.put(call)
            else:
                self.asked.pop()
            del call  # an idle thread holds no output

    def submit[T](self, function: Callable[[], T], most: int = _OF_WORK) -> Future[T]:
        """Let a thread call a function once; this one if no other can start."""
        future: Future[T] = Future()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(function())
            except BaseException as err:
                future.set_exception(err)

        try:
            self.ask(call, most)
        except NoThreadError:
            call()
        return future


WORK = _Pool("n5zarr")
"""Threads for what would keep an event loop busy, or helps another thread."""
SERVERS = _Pool("n5zarr waits")
"""Threads that wait for servers: as many as a single store may send requests at a time."""


class Turns:
    """The requests of a store: so many at a time, for all its calls in turn.

    Parameters
    ----------
    most : int
        Largest number of requests at a time.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._calls: deque[Callable[[], bool]] = deque()
        self._free = deque(range(most))
        self._of_loops: WeakKeyDictionary[AbstractEventLoop, Semaphore] = WeakKeyDictionary()

    def add(self, call: Callable[[], bool], n: int) -> None:
        """Let at most ``n`` threads make a call until it returns False, or is removed.

        Raises
        ------
        NoThreadError
            There is no thread, and none can start, or the process ends.
        """
        self._calls.append(call)
        self._ask(n)

    def remove(self, call: Callable[[], bool]) -> None:
        """Let threads make a call no more."""
        with suppress(ValueError):
            self._calls.remove(call)

    def _ask(self, n: int) -> None:
        """Ask for ``n`` threads, or as many as may send requests."""
        with suppress(IndexError):
            for _ in range(n):
                self._free.pop()
                SERVERS.ask(self._make, self._most)

    def _make(self) -> bool:
        """Make the call whose turn it is; False if none is left."""
        with suppress(IndexError):
            call = self._calls[0]
            self._calls.rotate(-1)
            if not call():
                self.remove(call)
        if self._calls:
            return True
        self._free.append(0)
        if self._calls:  # added when there was no place
            self._ask(1)
        return False

    def on_loop(self) -> Semaphore:
        """Return what limits the requests of tasks on the running event loop."""
        return self._of_loops.setdefault(get_running_loop(), Semaphore(self._most))


_turns: WeakKeyDictionary[object, dict[tuple[int, int], Turns]] = WeakKeyDictionary()


def turns_of(storage: object, most: int) -> Turns:
    """Return what limits the requests to storage from this process to a number at a time."""
    known, key = _turns.setdefault(storage, {}), (os.getpid(), most)
    return known.get(key) or known.setdefault(key, Turns(most))


async def run_each(
    work: Callable[[int], Awaitable[None]], n: int, concurrency: int, turns: Turns | None = None
) -> None:
    """Call a function with each number below ``n``, several at a time; stop at the first error.

    ``turns`` are those of a store to which each call sends requests.
    """
    numbers, limit = iter(range(n)), turns.on_loop() if turns else nullcontext()

    async def take() -> None:
        for k in numbers:
            async with limit:
                await work(k)
            await asyncio.sleep(0)  # not every store lets other tasks run

    tasks = [asyncio.ensure_future(take()) for _ in range(min(n, concurrency))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
