"""Locks on local files that other threads, other programs and Java respect.

The N5 specification says nothing about locks. N5's Java implementation takes a POSIX record lock on
the file itself, shared to read and exclusive to write (``FileSystemKeyValueAccess``).

The locks here are open-file-description locks of Linux (``F_OFD_SETLK``), which exclude the record
locks of Java. Unlike a record lock, such a lock also excludes other threads, and closing another
descriptor of the file does not drop it. It is released explicitly, because a forked process shares
the open file and would keep the lock. Other systems, such as macOS, have the same with ``flock``,
which excludes the record locks of Java there.

A finalizer may run while its own thread holds a lock, and may wait for another thread that wants
the same lock. To avoid that deadlock, a thread polls for a lock that this process holds, instead of
waiting in the operating system.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import struct
import sys
import threading
import time
from typing import TYPE_CHECKING

try:
    import fcntl
except ImportError:  # Windows: locks exclude the threads of this process, not other programs
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

__all__ = ["PAUSE", "alone", "changing", "in_turn", "reading", "writing"]

_log = logging.getLogger(__name__)

_BUSY = {errno.EAGAIN, errno.EACCES}
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}
_PATIENCE, PAUSE = 60, 0.001  # seconds

_IN_PROCESS = threading.RLock()  # for systems whose locks do not exclude threads


class _Lock:
    """A lock that this process holds or waits for."""

    def __init__(self, file: int, *, to_write: bool, gives_way: bool = False) -> None:
        status = os.fstat(file)
        self.file = file
        self.place = (status.st_dev, status.st_ino)
        self.to_write = to_write
        self.gives_way = gives_way
        self.is_held = False
        self.is_reading = False
        self.is_changing = False  # the writer is writing into the file now
        self.thread = threading.get_ident()

    def is_interrupted(self) -> bool:
        """Whether interrupted code holds it, which cannot continue before this code ends."""
        is_own = self.thread == threading.get_ident()
        return is_own and (self.is_held or self.is_reading or _holds(self.file))

    def is_stuck(self) -> bool:
        """Whether its holder waits for another lock, in a handler that interrupts the holder."""
        # the file of another thread may be closed at any time: read only its flag
        return (self.is_held or self.is_interrupted()) and any(
            lock.thread == self.thread and lock is not self and not lock.is_held
            for lock in list(_locks)
        )

    def others(self) -> list[_Lock]:
        """List other locks of this process on the same file: of threads, or of interrupted code."""
        return [lock for lock in list(_locks) if lock is not self and lock.place == self.place]


_locks: dict[_Lock, None] = {}
_last_change = [object()]  # replaced whenever this process begins to write into a file
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_locks.clear)


@contextlib.contextmanager
def reading(file: int, path: object = "") -> Iterator[Callable[[], bool]]:
    """Hold a shared lock, if the system has locks, so that nobody writes into the file meanwhile.

    Parameters
    ----------
    file : int
        Descriptor of the file.
    path : Path or str, optional
        Name of the file, for the log.

    Yields
    ------
    callable
        Call it after reading: whether the lock was held, or was not needed.

    Raises
    ------
    TimeoutError
        The code that this code interrupts is writing into the file.
    """
    if not hasattr(fcntl, "flock"):
        yield lambda: True
        return
    with _registered(file, to_write=False) as lock:
        before = _last_change[0]
        is_locked = True
        try:
            is_locked = _take_to_read(file, lock, path)
        except OSError as err:
            if err.errno not in _UNSUPPORTED:
                raise
        try:
            yield lambda: is_locked or before is _last_change[0]
        finally:
            lock.is_reading = False
            _unlock(file)
            _log.debug("shared lock released: %s", path)


def _take_to_read(file: int, lock: _Lock, path: object) -> bool:
    """Take a shared lock; return False if a writer of this process holds the exclusive one.

    That writer's lock keeps other programs out. The writer may wait for this reader, as a finalizer
    can run while it holds its lock. So wait for it only while it is writing into the file.
    """
    has_logged = False
    while not _try(file, "F_RDLCK"):
        writers = [other for other in lock.others() if other.to_write]
        if not writers:
            _log.debug("shared lock waits for another program: %s", path)
            _wait(file, "F_RDLCK")
            break
        is_interrupted = any(writer.is_interrupted() for writer in writers)
        if not any(writer.is_changing for writer in writers):
            if is_interrupted or any(writer.is_held for writer in writers):
                return False
        elif is_interrupted:
            raise _timeout(None)
        if not has_logged:
            _log.debug("shared lock waits for this process: %s", path)
            has_logged = True
        time.sleep(PAUSE)
    lock.is_reading = True
    _log.debug("shared lock taken: %s", path)
    return True


@contextlib.contextmanager
def changing(file: int) -> Iterator[None]:
    """Write into a file whose exclusive lock this thread holds; readers wait meanwhile."""
    status = os.fstat(file)
    place = status.st_dev, status.st_ino
    held = [lock for lock in list(_locks) if lock.is_held and lock.place == place]
    _last_change[0] = object()
    for lock in held:
        lock.is_changing = True
    try:
        yield
    finally:
        for lock in held:
            lock.is_changing = False


@contextlib.contextmanager
def writing(
    file: int, path: object, warn: Callable[[str], None], *, gives_way: bool = False
) -> Iterator[None]:
    """Hold an exclusive lock.

    Parameters
    ----------
    file : int
        Descriptor of the file, open for writing.
    path : Path or str
        Name of the file, for messages.
    warn : callable
        Called with a message when the file system has no locks.
    gives_way : bool, optional
        Whether the file is only replaced or removed: of two such writers, either may be first. So
        this thread waits neither for a writer that waits in a handler, perhaps for this thread, nor
        for the code that this thread interrupts.

    Raises
    ------
    TimeoutError
        The code that this code interrupts holds the lock, or another part of this process has held
        it for a minute.
    """
    if hasattr(fcntl, "flock"):
        with _registered(file, to_write=True, gives_way=gives_way) as lock:
            try:
                _take_to_write(file, lock, path)
            except OSError as err:
                if err.errno not in _UNSUPPORTED:
                    raise
                warn(f"{path}: the file system has no locks; updates by other writers may be lost")
            else:
                try:
                    yield
                finally:
                    lock.is_held = False
                    _unlock(file)
                    _log.debug("exclusive lock released: %s", path)
                return
    with _IN_PROCESS:
        yield


def in_turn() -> AbstractContextManager[object]:
    """Let one thread at a time open files to write: Windows cannot replace an open file."""
    return _IN_PROCESS if os.name == "nt" else contextlib.nullcontext()


@contextlib.contextmanager
def alone(directory: Path) -> Iterator[bool]:
    """Lock a directory, so that only one of several runs works in it; does not wait.

    Parameters
    ----------
    directory : Path
        Created if it is missing, and removed at the end if it is empty.

    Yields
    ------
    bool
        Whether nobody else holds it; True if the file system cannot tell.
    """
    if not hasattr(fcntl, "flock"):
        yield True
        return
    while True:
        directory.mkdir(exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            file = os.open(directory, os.O_RDONLY)
            try:
                is_alone = _take_directory(file)
                if not is_alone or os.path.samestat(os.fstat(file), directory.stat()):
                    break
            except BaseException:
                os.close(file)
                raise
            os.close(file)  # the previous holder has removed the directory
    try:
        yield is_alone
    finally:
        if is_alone:
            with contextlib.suppress(OSError):
                directory.rmdir()
        os.close(file)


def _take_directory(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as err:
        # NFS cannot lock directories
        return err.errno not in _BUSY
    return True


def _take_to_write(file: int, lock: _Lock, path: object) -> None:
    """Take an exclusive lock: poll while this process holds it, queue behind other programs."""
    end = time.monotonic() + _PATIENCE
    has_logged = False
    while not _try(file, "F_WRLCK"):
        if not lock.others():
            _log.debug("exclusive lock waits for another program: %s", path)
            _wait(file, "F_WRLCK")  # another program holds it: queue for it
            break
        others = [other for other in lock.others() if other.is_held or other.is_stuck()]
        if lock.gives_way and others and all(o.gives_way and o.is_stuck() for o in others):
            return
        if any(other.is_interrupted() for other in lock.others()) or time.monotonic() > end:
            if _try(file, "F_WRLCK"):  # released meanwhile
                break
            raise _timeout(path)
        if not has_logged:
            _log.debug("exclusive lock waits for this process: %s", path)
            has_logged = True
        time.sleep(PAUSE)
    lock.is_held = True
    _log.debug("exclusive lock taken: %s", path)


def _timeout(path: object | None) -> TimeoutError:
    message = (
        "expected the lock within a minute, but another part of this process holds it; does a "
        "finalizer or a signal handler use a file that the interrupted code is changing?"
    )
    return TimeoutError(errno.ETIMEDOUT, message, *([] if path is None else [str(path)]))


@contextlib.contextmanager
def _registered(file: int, *, to_write: bool, gives_way: bool = False) -> Iterator[_Lock]:
    """Announce a lock to the other threads of this process before taking it."""
    lock = _Lock(file, to_write=to_write, gives_way=gives_way)
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
        _set(file, kind)
    except OSError as err:
        if err.errno not in _BUSY:
            raise
        return False
    return True


def _holds(file: int) -> bool:
    """Whether an open file has a lock that excludes others, or nobody has one; else False."""
    if not _has_ofd():
        return False
    found = fcntl.fcntl(file, fcntl.F_OFD_GETLK, _flock("F_WRLCK"))
    return bool(struct.unpack("hhqqi", found)[0] == fcntl.F_UNLCK)


def _wait(file: int, kind: str) -> None:
    _set(file, kind, waits=True)


def _unlock(file: int) -> None:
    with contextlib.suppress(OSError):
        _set(file, "F_UNLCK")


def _set(file: int, kind: str, *, waits: bool = False) -> None:
    """Lock or unlock a file; raise if another one holds it, unless it ``waits``."""
    if _has_ofd():
        fcntl.fcntl(file, fcntl.F_OFD_SETLKW if waits else fcntl.F_OFD_SETLK, _flock(kind))
    else:
        name = {"F_RDLCK": "LOCK_SH", "F_WRLCK": "LOCK_EX", "F_UNLCK": "LOCK_UN"}[kind]
        fcntl.flock(file, getattr(fcntl, name) | (0 if waits else fcntl.LOCK_NB))


def _has_ofd() -> bool:
    return sys.platform == "linux" and hasattr(fcntl, "F_OFD_SETLK")
