"""Locks on local files that other programs, other threads and Java respect.

Open-file-description locks of Linux (``F_OFD_SETLK``). Unlike a plain record lock such a lock also
excludes other threads, and is not dropped when any other descriptor of the file is closed; it
excludes the record locks that Java takes. It is given back explicitly, since a forked process has
the same open file and would keep it.

A finalizer may run while a thread holds a lock, and wait for another thread that wants the same
one. So nobody waits in the kernel for a lock of this process.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import threading
import time
from typing import TYPE_CHECKING

try:
    import fcntl
except ImportError:  # Windows: writers of one process exclude each other, those of several do not
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["reading", "writing"]

_BUSY = {errno.EAGAIN, errno.EACCES}
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}
_PATIENCE, _PAUSE = 60, 0.001  # seconds

_IN_PROCESS = threading.RLock()  # for systems whose locks do not exclude threads


class _Lock:
    """A lock that this process holds, or waits for."""

    def __init__(self, file: int, *, to_write: bool) -> None:
        status = os.fstat(file)
        self.place = (status.st_dev, status.st_ino)
        self.to_write = to_write
        self.is_held = False

    def others(self) -> list[_Lock]:
        """Find the locks of other threads, and of what this one interrupts, on the same file."""
        return [lock for lock in list(_locks) if lock is not self and lock.place == self.place]


_locks: dict[_Lock, None] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_locks.clear)


@contextlib.contextmanager
def reading(file: int) -> Iterator[None]:
    """Hold a shared lock, where there are locks: Java does not write meanwhile."""
    if not hasattr(fcntl, "F_OFD_SETLK"):
        yield
        return
    with _registered(file, to_write=False) as lock:
        try:
            _take_to_read(file, lock)
        except OSError as err:
            if err.errno not in _UNSUPPORTED:
                raise
        try:
            yield
        finally:
            _unlock(file)


def _take_to_read(file: int, lock: _Lock) -> None:
    while not _try(file, "F_RDLCK"):
        writers = [other for other in lock.others() if other.to_write]
        if any(writer.is_held for writer in writers):
            return  # Java waits for it, and what this process writes it replaces as a whole
        if not writers:
            _wait(file, "F_RDLCK")
            return
        time.sleep(_PAUSE)


@contextlib.contextmanager
def writing(file: int, path: object, warn: Callable[[str], None]) -> Iterator[None]:
    """Hold an exclusive lock.

    Parameters
    ----------
    file : int
        Descriptor of the file, open for writing.
    path : Path or str
        Its name, for messages.
    warn : callable
        Is given a message when the file system has no locks.

    Raises
    ------
    TimeoutError
        This process itself has held the lock for a minute.
    """
    if hasattr(fcntl, "F_OFD_SETLK"):
        with _registered(file, to_write=True) as lock:
            try:
                _take_to_write(file, lock, path)
            except OSError as err:
                if err.errno not in _UNSUPPORTED:
                    raise
                warn(f"{path}: the file system has no locks; updates of others may be lost")
            else:
                try:
                    yield
                finally:
                    lock.is_held = False
                    _unlock(file)
                return
    with _IN_PROCESS:
        if hasattr(fcntl, "flock") and not hasattr(fcntl, "F_OFD_SETLK"):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _take_to_write(file: int, lock: _Lock, path: object) -> None:
    end = time.monotonic() + _PATIENCE
    while not _try(file, "F_WRLCK"):
        if not lock.others():
            _wait(file, "F_WRLCK")  # for another program, in its turn
            break
        if time.monotonic() > end:
            message = "locked by this process: by what a finalizer interrupts that changes it, too?"
            raise TimeoutError(errno.ETIMEDOUT, message, str(path))
        time.sleep(_PAUSE)
    lock.is_held = True


@contextlib.contextmanager
def _registered(file: int, *, to_write: bool) -> Iterator[_Lock]:
    """Let the other threads of this process know of a lock, before it is held."""
    lock = _Lock(file, to_write=to_write)
    _locks[lock] = None
    try:
        yield lock
    finally:
        _locks.pop(lock, None)


def _flock(kind: str) -> bytes:
    """Return the ``struct flock`` of Linux for a whole file: type, whence, start, length, pid."""
    return struct.pack("hhqqi", getattr(fcntl, kind), os.SEEK_SET, 0, 0, 0)


def _try(file: int, kind: str) -> bool:
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, _flock(kind))
    except OSError as err:
        if err.errno not in _BUSY:
            raise
        return False
    return True


def _wait(file: int, kind: str) -> None:
    fcntl.fcntl(file, fcntl.F_OFD_SETLKW, _flock(kind))


def _unlock(file: int) -> None:
    with contextlib.suppress(OSError):
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, _flock("F_UNLCK"))
