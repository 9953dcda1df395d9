"""Threads that help with a batch of blocks.

A signal handler or a finalizer may interrupt a thread anywhere, and read or write N5 itself. Where
it interrupts ``concurrent.futures`` while that hands over a task and holds locks that are not
re-entrant, it would wait for ever. Here tasks are handed over by a ``SimpleQueue``, whose ``put``
is re-entrant, and nobody waits for a task that no thread has begun.
"""

from __future__ import annotations

import contextlib
import os
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["work_together"]


class _Task:
    """One thread's share of a batch."""

    def __init__(self, take: Callable[[], None]) -> None:
        self._take = take
        self._begun, self._ended = threading.Lock(), threading.Lock()
        self._ended.acquire()
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do it, unless it was called off."""
        if not self._begun.acquire(blocking=False):
            return
        try:
            self._take()
        except BaseException as err:
            self._error = err
        finally:
            self._ended.release()

    def is_called_off(self) -> bool:
        """Call it off, unless a thread has begun it."""
        return self._begun.acquire(blocking=False)

    def wait(self) -> BaseException | None:
        """Wait for the thread that has begun it, and give what it has raised."""
        with self._ended:
            return self._error


class _Threads:
    """Threads of this process that wait for tasks."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew in a forked process, which has none of the threads."""
        self._tasks: SimpleQueue[_Task] = SimpleQueue()
        self._n_started = 0

    def ask(self, task: _Task, n_threads: int) -> None:
        """Hand a task over, to one of at least ``n_threads`` threads if so many can be had."""
        self._tasks.put(task)
        if self._n_started < n_threads:
            with contextlib.suppress(RuntimeError):  # no more threads: others will do it
                threading.Thread(target=self._serve, name="n5zarr", daemon=True).start()
                self._n_started += 1

    def _serve(self) -> None:
        while True:
            self._tasks.get().run()


_THREADS = _Threads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_THREADS.forget)


def work_together(take: Callable[[], None], n_workers: int, stop: Callable[[], None]) -> None:
    """Run a function on this thread and on others at the same time, and wait for all of them.

    Parameters
    ----------
    take : callable
        Takes shares of the work until none is left.
    n_workers : int
        On how many threads, this one included.
    stop : callable
        Makes ``take`` find nothing more. Called when this thread is done, also after an error or an
        interruption: nothing goes on behind the caller's back.
    """
    tasks = [_Task(take) for _ in range(n_workers - 1)]
    errors: list[BaseException | None] = []
    try:
        for task in tasks:
            _THREADS.ask(task, len(tasks))
        take()
    finally:
        stop()
        begun = [task for task in tasks if not task.is_called_off()]
        errors += map(_result_of, begun)
    for error in errors:
        if error is not None:
            raise error


def _result_of(task: _Task) -> BaseException | None:
    interruption = None
    while True:
        try:
            return task.wait() or interruption
        except BaseException as err:  # wait all the same: it has one share left at most
            interruption = err
