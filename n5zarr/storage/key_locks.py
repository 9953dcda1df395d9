"""Lock keys of stores without locks, within this process."""

from __future__ import annotations

import asyncio
import threading
from weakref import WeakValueDictionary

__all__ = ["KeyLocks"]


class KeyLocks:
    """Lock keys of a store without locks for the tasks and threads of this process only."""

    def __init__(self) -> None:
        self._of_threads = tuple(threading.RLock() for _ in range(64))
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()

    def of_threads(self, key: str) -> threading.RLock:
        """Return the thread lock of a key; keys may share a lock."""
        return self._of_threads[hash(key) % len(self._of_threads)]

    def of(self, key: str) -> asyncio.Lock:
        """Return the lock of a key for the tasks of this event loop."""
        return self._locks.setdefault((id(asyncio.get_running_loop()), key), asyncio.Lock())
