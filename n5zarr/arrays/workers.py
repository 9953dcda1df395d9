"""Threads that share the work on a batch of blocks.

Why not ``concurrent.futures``: a signal handler or a finalizer may interrupt a thread anywhere, and
read or write N5 itself. If it interrupts ``concurrent.futures`` while that holds a lock that is not
re-entrant, it waits for ever. Here, tasks go through a ``SimpleQueue``, whose ``put`` is
re-entrant, and a thread waits only for tasks that another thread has begun.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
import time
from collections import deque
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING

from n5zarr.storage.ending import ended_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["NoThreadError", "wait_for", "wait_together", "work_together"]

_LAST_WAIT = 5.0  # seconds at the end of the process, for requests that are under way


class NoThreadError(RuntimeError):
    """No thread can start, and none is idle."""


class _Task:
    """One thread's share of a batch."""

    def __init__(self, take: Callable[[], None]) -> None:
        self._take = take
        self._begun, self._ended = threading.Lock(), threading.Lock()
        self._ended.acquire()
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run the task, unless it was cancelled."""
        if not self._begun.acquire(blocking=False):
            return
        try:
            self._take()
        except BaseException as err:
            self._error = err
        finally:
            self._ended.release()

    def is_called_off(self) -> bool:
        """Cancel the task unless a thread has begun it; return whether it is cancelled."""
        return self._begun.acquire(blocking=False)

    def wait(self) -> BaseException | None:
        """Wait for the thread that has begun the task, and return the exception that it raised."""
        with self._ended:
            return self._error


class _Threads:
    """The threads of this process that wait for tasks."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start without threads: a forked process does not have its parent's."""
        self._tasks: SimpleQueue[_Task] = SimpleQueue()
        self._n_started = 0

    def ask(self, task: _Task, n_threads: int) -> None:
        """Queue a task, and start another thread while there are fewer than ``n_threads``."""
        self._tasks.put(task)
        if self._n_started < n_threads:
            with contextlib.suppress(RuntimeError):  # no thread can start: the others run the task
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
        Function without arguments that takes shares of the work until none is left.
    n_workers : int
        Number of threads, this one included.
    stop : callable
        Ends the other threads early. Called after an error or an interruption of this thread, and
        if the call is stopped: this function returns when all threads have ended.

    Raises
    ------
    BaseException
        The first error that ``take`` raised, on any thread.
    """
    tasks = [_Task(take) for _ in range(n_workers - 1)]
    errors: list[BaseException | None] = []
    with ended_by(stop):
        try:
            for task in tasks:
                _THREADS.ask(task, len(tasks))
            take()
        except BaseException:
            stop()
            raise
        finally:
            begun = [task for task in tasks if not task.is_called_off()]
            errors += map(_result_of, begun)
    for error in errors:
        if error is not None:
            raise error


class _Waiting:
    """A call on several threads; ``tell`` is told of each error, and of the end."""

    def __init__(
        self,
        take: Callable[[], None],
        n_threads: int,
        stop: Callable[[], None],
        tell: Callable[[BaseException | None], object],
    ) -> None:
        self._take = take
        self.stop = stop
        self._tell = tell
        self.running = deque(range(n_threads))
        self.is_abandoned = False  # the process ends, and nobody wants the rest

    def run(self) -> None:
        """Call the function on this thread."""
        error = None
        try:
            self._take()
        except BaseException as err:
            error = err
        self.leave(error)

    def leave(self, error: BaseException | None) -> None:
        """Count a thread that has ended; tell if it failed, or is the last."""
        self.running.pop()
        if (error is not None or not self.running) and not self.is_abandoned:
            with contextlib.suppress(RuntimeError):  # the loop has been closed
                self._tell(error)


class _Waiters:
    """The threads of this process that wait for servers: as many as wait at one time."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start without threads: a forked process does not have its parent's."""
        self._has_ended = False
        self._idle: deque[SimpleQueue[_Waiting]] = deque()  # the queues of idle threads
        self._all: set[_Waiting] = set()

    def ask(self, waiting: _Waiting) -> None:
        """Let idle or new threads run a call.

        Raises
        ------
        NoThreadError
            No thread can start, or the process ends.
        """
        if self._has_ended:
            raise NoThreadError("the process ends")
        n_threads = n_left = len(waiting.running)
        self._all.add(waiting)
        try:
            while n_left:
                calls = self._one()
                n_left -= 1
                calls.put(waiting)
        except RuntimeError as err:  # no thread can start: the others do the work
            if n_left == n_threads:
                raise NoThreadError(str(err)) from err
        finally:  # also if a signal handler raises
            for _ in range(n_left):
                waiting.leave(None)
            if not waiting.running:
                self._all.discard(waiting)

    def _one(self) -> SimpleQueue[_Waiting]:
        """Return the queue of an idle thread, or of a new one."""
        try:
            return self._idle.popleft()
        except IndexError:
            calls: SimpleQueue[_Waiting] = SimpleQueue()
            serve = partial(self._serve, calls)
            threading.Thread(target=serve, name="n5zarr waits", daemon=True).start()
            return calls

    def _serve(self, calls: SimpleQueue[_Waiting]) -> None:
        while True:
            waiting = calls.get()
            waiting.run()
            if not waiting.running:
                self._all.discard(waiting)
            del waiting  # an idle thread holds no output
            self._idle.append(calls)

    def end(self) -> None:
        """Let no requests follow, and wait for those that are under way, but not for long.

        A thread that comes back from a request while Python ends may abort the process. An event
        loop is not told: it would request what is left.
        """
        self._has_ended = True
        left = list(self._all)
        for waiting in left:
            waiting.is_abandoned = True
            waiting.stop()
        until = time.monotonic() + _LAST_WAIT
        while any(waiting.running for waiting in left) and time.monotonic() < until:
            time.sleep(0.01)


_WAITERS = _Waiters()
atexit.register(_WAITERS.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WAITERS.forget)


async def wait_together(take: Callable[[], None], n_threads: int, stop: Callable[[], None]) -> None:
    """Run a function that waits for servers on several threads, and await their end.

    Parameters
    ----------
    take : callable
        Function without arguments that takes shares of the work until none is left.
    n_threads : int
        Number of threads, at least one.
    stop : callable
        Removes the remaining shares. Called at the end, after the first error, if the caller is
        cancelled or stopped, and if the process ends; shares that threads have begun end later.

    Raises
    ------
    NoThreadError
        No thread can start; nothing is done.
    BaseException
        The first error that ``take`` raised, on any thread.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def end(error: BaseException | None) -> None:
        if ended.done():
            return
        if error is None:
            ended.set_result(None)
        else:
            ended.set_exception(error)

    with _stopping(stop):
        _WAITERS.ask(_Waiting(take, n_threads, stop, lambda e: loop.call_soon_threadsafe(end, e)))
        await ended


def wait_for(take: Callable[[], None], n_threads: int, stop: Callable[[], None]) -> None:
    """Do the same as :func:`wait_together` without an event loop, from any thread.

    Signal handlers run meanwhile: this thread only waits.
    """
    told: SimpleQueue[BaseException | None] = SimpleQueue()
    with _stopping(stop):
        _WAITERS.ask(_Waiting(take, n_threads, stop, told.put))
        error = told.get()
        if error is not None:
            raise error


@contextlib.contextmanager
def _stopping(stop: Callable[[], None]) -> Iterator[None]:
    """Remove the remaining shares at the end, unless no thread could start."""
    try:
        with ended_by(stop):
            yield
    except NoThreadError:
        raise
    except BaseException:
        stop()
        raise
    stop()


def _result_of(task: _Task) -> BaseException | None:
    interruption = None
    while True:
        try:
            return task.wait() or interruption
        except BaseException as err:  # keep waiting: at most one share of work is left
            interruption = err
