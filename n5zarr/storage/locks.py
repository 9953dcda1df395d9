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

A signal handler may raise between any two steps of Python, also of those that release a lock. So
a lock lasts as long as its file is open, and a file closes when nobody has it any more.
"""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from operator import length_hint
from pathlib import Path
from weakref import ref

try:
    import fcntl
except ImportError:  # Windows: locks exclude the threads of this process, not other programs
    fcntl = None  # type: ignore[assignment]


_log = logging.getLogger(__name__)

_BUSY = {errno.EAGAIN, errno.EACCES}
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}
_PATIENCE, PAUSE, _LONGEST_PAUSE = 60, 0.001, 0.016  # seconds

_IN_PROCESS = threading.RLock()  # for systems whose locks do not exclude threads


class HeldFile(io.RawIOBase):
    """An open file or directory, which closes when it is dropped at the latest.

    A signal handler may raise between any two steps of Python, but not within a call of C. So
    opening is one such call, and so are closing, which ``with`` and the end of the object do
    without Python: a ``__del__`` would swallow what the handler raises.

    Parameters
    ----------
    path : path or str
        The file.
    flags, mode : int
        As of :func:`os.open`.
    """

    is_changing = False
    """Whether its writer is writing into it now."""

    def __init__(self, path: Path | str, flags: int, mode: int = 0o666) -> None:
        opened: list[int] = []
        self._open = iter(opened)
        self.close = partial(next, map(os.close, self._open), None)  # type: ignore[method-assign]
        opened += map(os.open, (path,), (flags,), (mode,))
        (self.file,) = opened

    @property
    def is_open(self) -> bool:
        """Whether it has not been closed."""
        return length_hint(self._open) > 0

    def close_on_windows(self) -> None:
        """Close the file on Windows, which cannot replace or remove an open file.

        There the lock is not on the file, so it is still held afterwards.
        """
        if os.name == "nt":
            self.close()


class _Lock:
    """A lock that this process holds or waits for, until it is dropped or its file is closed."""

    def __init__(self, held: HeldFile, *, to_write: bool, gives_way: bool = False) -> None:
        status = os.fstat(held.file)
        self.held = held
        self.place = (status.st_dev, status.st_ino)
        self.to_write = to_write
        self.gives_way = gives_way
        self.is_held = False
        self.is_reading = False
        self.thread = threading.get_ident()
        self._clock = getattr(time, "pthread_getcpuclockid", lambda _: -1)(self.thread)
        _locks.add(ref(self, _locks.discard))

    def is_interrupted(self) -> bool:
        """Whether interrupted code holds it, which cannot continue before this code ends."""
        is_own = self.thread == threading.get_ident()
        return is_own and (self.is_held or self.is_reading or _holds(self.held.file))

    def is_stuck(self) -> bool:
        """Whether its holder waits for another lock, in a handler that interrupts the holder."""
        # the file of another thread may be closed at any time: read only its flag
        return (self.is_held or self.is_interrupted()) and any(
            lock.thread == self.thread and lock is not self and not lock.is_held
            for lock in _announced()
        )

    def time_run(self) -> float:
        """Return the processor time of its thread, in seconds; 0 if nobody can tell."""
        with contextlib.suppress(OSError):
            return time.clock_gettime(self._clock)
        return 0.0

    def others(self) -> list[_Lock]:
        """List other locks of this process on the same file: of threads, or of interrupted code."""
        return [lock for lock in _announced() if lock is not self and lock.place == self.place]


def _announced() -> list[_Lock]:
    """List the locks that threads of this process hold or wait for."""
    found = [each() for each in list(_locks)]
    return [lock for lock in found if lock is not None and lock.held.is_open]


_locks: set[ref[_Lock]] = set()
_last_change = [object()]  # replaced whenever this process begins to write into a file
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_locks.clear)


@contextlib.contextmanager
def reading(held: HeldFile, path: object = "") -> Iterator[Callable[[], bool]]:
    """Hold a shared lock, if the system has locks, so that nobody writes into the file meanwhile.

    Parameters
    ----------
    held : HeldFile
        The file.
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
    lock = _Lock(held, to_write=False)
    before = _last_change[0]
    is_locked = True
    try:
        is_locked = _take(lock, path, _goes_without)
    except OSError as err:
        if err.errno not in _UNSUPPORTED:
            raise
    try:
        yield lambda: is_locked or before is _last_change[0]
    finally:
        _unlock(held.file)
        _log.debug("shared lock released: %s", path)


@contextlib.contextmanager
def changing(held: HeldFile) -> Iterator[None]:
    """Write into a file whose exclusive lock this thread holds; readers wait meanwhile."""
    _last_change[0] = object()
    held.is_changing = True
    try:
        yield
    finally:
        held.is_changing = False


@contextlib.contextmanager
def writing(
    held: HeldFile, path: object, warn: Callable[[str], None], *, gives_way: bool = False
) -> Iterator[None]:
    """Hold an exclusive lock.

    Parameters
    ----------
    held : HeldFile
        The file, open for writing.
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
        lock = _Lock(held, to_write=True, gives_way=gives_way)
        try:
            _take_to_write(lock, path)
        except OSError as err:
            if err.errno not in _UNSUPPORTED:
                raise
            warn(f"{path}: the file system has no locks; updates by other writers may be lost")
        else:
            try:
                yield
            finally:
                lock.is_held = False
                _unlock(held.file)
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
            held = HeldFile(directory, os.O_RDONLY)
            is_alone = _take_directory(held.file)
            # else the previous holder has removed the directory
            if not is_alone or os.path.samestat(os.fstat(held.file), directory.stat()):
                break
    with held:
        try:
            yield is_alone
        finally:
            if is_alone:
                with contextlib.suppress(OSError):
                    directory.rmdir()


def _take_directory(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as err:
        # NFS cannot lock directories
        return err.errno not in _BUSY
    return True


def _take(lock: _Lock, path: object, can_do_without: Callable[[Sequence[_Lock]], bool]) -> bool:
    """Take a lock: poll while this process holds it, queue behind other programs.

    Parameters
    ----------
    lock : _Lock
        The lock, which is announced to other threads.
    path : object
        Name of the file, for the log.
    can_do_without : callable
        Takes the locks of this process that are in the way, and returns whether to go on without
        the lock; raises TimeoutError if waiting would never end.

    Returns
    -------
    bool
        Whether the lock was taken.
    """
    kind, name = ("F_WRLCK", "exclusive") if lock.to_write else ("F_RDLCK", "shared")
    pause, has_logged = PAUSE, False
    while not _try(lock.held.file, kind):
        others = [other for other in lock.others() if lock.to_write or other.to_write]
        if not others:
            _log.debug("%s lock waits for another program: %s", name, path)
            _set(lock.held.file, kind, waits=True)
            break
        try:
            if can_do_without(others):
                return False
        except TimeoutError:
            if _try(lock.held.file, kind):  # released meanwhile
                break
            raise
        if not has_logged:
            _log.debug("%s lock waits for this process: %s", name, path)
            has_logged = True
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)  # many that poll would slow the holder down
    lock.is_held, lock.is_reading = lock.to_write, not lock.to_write
    _log.debug("%s lock taken: %s", name, path)
    return True


def _goes_without(writers: Sequence[_Lock]) -> bool:
    """Whether a reader goes on without a lock, beside some writers of this process.

    Their locks keep other programs out. A writer may wait for this reader, as a finalizer can run
    while the writer holds its lock. So wait for it only while it is writing into the file.
    """
    is_interrupted = any(writer.is_interrupted() for writer in writers)
    if not any(writer.held.is_changing for writer in writers):
        return is_interrupted or any(writer.is_held for writer in writers)
    if is_interrupted:
        raise _timeout(None)
    return False


def _take_to_write(lock: _Lock, path: object) -> None:
    """Take an exclusive lock, unless only writers hold it that wait while this one gives way."""
    last, since, ran = list[_Lock](), 0.0, 0.0

    def gives_way(others: Sequence[_Lock]) -> bool:
        nonlocal last, since, ran
        held = [other for other in others if other.is_held or other.is_stuck()]
        if lock.gives_way and held and all(o.gives_way and o.is_stuck() for o in held):
            return True
        holders = [other for other in others if other.is_held or other.is_reading]
        is_late, now = False, time.monotonic()
        if holders != last or now - since > _PATIENCE:
            before, ran = ran, sum(holder.time_run() for holder in holders)
            # one that waits for something polls, and hardly runs
            is_late = bool(holders) and holders == last and ran - before < _PATIENCE / 100
            last, since = holders, now
        if is_late or any(other.is_interrupted() for other in others):
            raise _timeout(path)
        return False

    _take(lock, path, gives_way)


def _timeout(path: object | None) -> TimeoutError:
    message = (
        "expected the lock within a minute, but another part of this process holds it; does a "
        "finalizer or a signal handler use a file that the interrupted code is changing?"
    )
    return TimeoutError(errno.ETIMEDOUT, message, *([] if path is None else [str(path)]))


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
