"""Threads that wait for servers, and the turns of a store's calls to use them."""

from __future__ import annotations

import os
from asyncio import AbstractEventLoop, Semaphore, get_running_loop
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from weakref import WeakKeyDictionary

from n5zarr.storage.threads import Pool

SERVERS = Pool("n5zarr waits")
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
