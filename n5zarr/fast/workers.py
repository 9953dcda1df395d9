"""Threads that share the work on a batch of blocks.

Tasks go through a ``SimpleQueue``, whose ``put`` is re-entrant, and a thread waits only for tasks
that another thread has begun; see :mod:`n5zarr.storage.threads`.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from itertools import chain, takewhile

from n5zarr.errors import N5Error
from n5zarr.fast.turns import SERVERS, Turns
from n5zarr.storage.ending import ended_by
from n5zarr.storage.threads import WORK

_LOTS_PER_WORKER = 4  # few enough to be cheap, enough to share the work evenly
_LAST_WAIT = 5.0  # seconds at the end of the process, for requests that are under way


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
    others: list[Future[None]] = []
    errors: list[BaseException | None] = []
    with ended_by(stop):
        try:
            others.extend(
                WORK.submit(
                    partial(copy_context().run, _take_within_call, take, stop), n_workers - 1
                )
                for _ in range(n_workers - 1)
            )
            take()
        except BaseException:
            stop()
            raise
        finally:
            errors += _ends_of(others)
    for error in errors:
        if error is not None:
            raise error


def share_out[Item, Result](
    work: Callable[[Iterator[Item]], list[Result]], items: Sequence[Item], n_workers: int
) -> list[Result]:
    """Call a function with batches of items, on threads if there are several workers.

    If an exception or the end of the call stops it, a batch ends after the item at hand.

    Returns
    -------
    list
        The results, in the order of the items.

    Raises
    ------
    N5Error
        That of the first items that have one.
    """
    size = max(1, -(-len(items) // (_LOTS_PER_WORKER * n_workers)))
    ends = [None] * n_workers  # one for each thread
    lots: deque[int | None] = deque([*range(0, len(items), size), *ends])
    done: dict[int, list[Result]] = {}
    failed: dict[int, N5Error] = {}
    stopped: list[bool] = []

    def stop() -> None:
        stopped.append(True)
        lots.extendleft(ends)

    def take() -> None:
        for first in iter(lots.popleft, None):
            lot = takewhile(lambda _: not stopped, items[first : first + size])
            try:
                done[first] = work(lot)
            except N5Error as err:
                failed[first] = err
                lots.extendleft(ends)  # the lots before this one are worked through

    work_together(take, n_workers, stop)
    if failed:
        raise failed[min(failed)]
    return list(chain.from_iterable(done[first] for first in sorted(done)))


_stops: list[Callable[[], None]] = []  # of calls that wait for servers


def _end() -> None:
    """Let no requests follow, and wait for those that are under way, but not for long.

    A thread that comes back from a request while Python ends may abort the process. Nobody is told:
    an event loop would request what is left.
    """
    SERVERS.has_ended = True
    for stop in _stops:
        stop()
    until = time.monotonic() + _LAST_WAIT
    while SERVERS.asked and time.monotonic() < until:
        time.sleep(0.01)


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_stops.clear)


@contextlib.contextmanager
def waiting(
    turns: Turns,
    take: Callable[[], bool],
    n_threads: int,
    stop: Callable[[], None],
    tell: Callable[[], object],
) -> Iterator[None]:
    """Run a function that waits for a server on several threads.

    Parameters
    ----------
    turns : Turns
        Those of the store.
    take : callable
        Function without arguments that takes a share of the work; returns whether any is left.
    n_threads : int
        Largest number of threads, at least one.
    stop : callable
        Removes the remaining shares. Called at the end of the context, if the call is stopped, and
        if the process ends; shares that threads have begun end later.
    tell : callable
        Called on a thread, once, after the last share or the first error.

    Raises
    ------
    NoThreadError
        No thread can start; nothing is done.
    BaseException
        The first error that ``take`` raised, on any thread.
    """
    busy: deque[None] = deque()
    untold, errors = [tell], deque[BaseException]()

    def call() -> bool:
        is_left = False
        busy.append(None)
        try:
            is_left = take()
        except BaseException as err:
            errors.append(err)
        busy.pop()
        if (errors or not (is_left or busy)) and not SERVERS.has_ended:
            with contextlib.suppress(IndexError, RuntimeError):  # told; the loop has been closed
                untold.pop()()
        return is_left

    _stops.append(stop)
    try:
        with ended_by(stop):
            turns.add(call, n_threads)
            yield
    finally:
        stop()
        turns.remove(call)
        _stops.remove(stop)
    for error in errors:
        raise error


def _take_within_call(take: Callable[[], None], stop: Callable[[], None]) -> None:
    """Take shares on another thread; the end of the call waits for it."""
    with ended_by(stop):
        take()


def _ends_of(others: Sequence[Future[None]]) -> list[BaseException | None]:
    """Wait for the work of other threads that has begun; return errors, and what interrupts."""
    try:
        return [other.exception() for other in others if not other.cancel()]
    except BaseException as err:  # keep waiting: at most one share of work is left to each
        return [err, *_ends_of(others)]
