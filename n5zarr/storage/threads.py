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
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, nullcontext
from queue import Empty, SimpleQueue

_IDLE = 5.0  # seconds after which a thread without calls ends
_OF_WORK = (os.cpu_count() or 1) + 4  # threads, as an event loop has


class NoThreadError(RuntimeError):
    """No thread can start, and none is there."""


class Pool:
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

        Starts a thread if none is idle, and there are fewer than ``most``, beside this one.

        Raises
        ------
        NoThreadError
            There is no thread, and none can start, or the process ends.
        """
        if self.has_ended:
            raise NoThreadError("the process ends")
        self.asked.append(None)
        self._calls.put(call)
        # a thread of the pool that asks is not idle
        if len(self._threads) >= min(
            len(self.asked), most + (threading.current_thread().name == self._name)
        ):
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


WORK = Pool("n5zarr")
"""Threads for what would keep an event loop busy, or helps another thread."""


async def run_each(
    work: Callable[[int], Awaitable[None]],
    n: int,
    concurrency: int,
    limit: AbstractAsyncContextManager[object] | None = None,
) -> None:
    """Call a function with each number below ``n``, several at a time; stop at the first error.

    ``limit`` is a semaphore of all such calls, if there is one.
    """
    numbers, limit = iter(range(n)), limit or nullcontext()

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
