"""Local files: atomic replacement, locked updates, listing and removal.

A document or block is written under another name and then renamed, so that nobody ever reads half
of one; what a killed process leaves behind ends in ``.partial`` and is never read.

Updates of documents hold a lock on the file, see :mod:`n5zarr.storage.locks`. A Java writer that
opened the file before it was renamed over may still write into the old one.

Java truncates and rewrites documents and blocks in place, under such a lock. Reading takes a shared
one where the file is being written, or may be: see :func:`_read_with`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from n5zarr.codecs.buffers import REUSED
from n5zarr.storage.locks import reading, writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from n5zarr.codecs.buffers import BufferLike, Scratch

__all__ = [
    "is_unfinished",
    "prune",
    "read",
    "read_part",
    "remove",
    "remove_tree",
    "scan",
    "stamp",
    "update",
    "write",
]

_PARTIAL = re.compile(r".*\.[0-9a-f]{32}\.partial", re.DOTALL)

_RECENT = 20_000_000  # nanoseconds: what is written twice in a tick of the clock has one time
_TRIES, _PAUSE = 100, 0.001  # seconds


def is_unfinished(name: str) -> bool:
    """Whether this is the name of a file that was not yet renamed; zarr names them alike."""
    return _PARTIAL.fullmatch(name) is not None


_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_READ = os.O_RDONLY | _BINARY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY


def read(path: Path | str, *, settled: bool = False) -> bytes | None:
    """Read a file; None where there is none.

    Parameters
    ----------
    path : Path or str
        The file.
    settled : bool, optional
        Wait for programs that write it under a lock, as Java does.
    """
    return _read_with(path, _all_of, settled=settled)


def _all_of(file: int, size: int) -> bytes:
    # by its size, in one call: a larger buffer would cost more than the call
    data = os.read(file, size)
    if len(data) < size:  # more than one call gives
        data += b"".join(iter(lambda: os.read(file, size), b""))
    return data


def read_reused(path: str, memory: Scratch, *, settled: bool = False) -> memoryview | None:
    """Read a file into memory that the next call uses again; see :func:`read`.

    A file that is too large for that is read into memory of its own.
    """

    def take(file: int, size: int) -> memoryview:
        if size > REUSED or not hasattr(os, "readv"):
            return memoryview(_all_of(file, size))
        buffer = memory.bytes(size, "read")
        n_read = os.readv(file, [buffer])
        if n_read == size:
            return buffer
        return memoryview(bytes(buffer[:n_read]) + _all_of(file, size - n_read))

    return _read_with(path, take, settled=settled)


def read_part(path: str, start: bytes, offset: int, n_bytes: int, total: int) -> bytes | None:
    """Read a part of a file that begins with some bytes and has exactly ``total`` more after them.

    Parameters
    ----------
    path : str
        The file.
    start : bytes
        What it has to begin with.
    offset, n_bytes : int
        Where the part begins after that, and how long it is.
    total : int
        How many bytes there have to be after ``start``.

    Returns
    -------
    bytes or None
        None where there is no such file, or another one, or a system that reads no parts.
    """
    if not hasattr(os, "pread"):
        return None

    def take(file: int, size: int) -> bytes | None:
        if size != len(start) + total or os.pread(file, len(start), 0) != start:
            return None
        part = os.pread(file, n_bytes, len(start) + offset)
        return part if len(part) == n_bytes else None

    return _read_with(path, take)


def _read_with[T](
    path: Path | str, take: Callable[[int, int], T], *, settled: bool = False
) -> T | None:
    """Open a file and read from it while nobody writes into it; None where there is no file.

    Programs that write in place, as Java does, change its size or its time. So what is read counts
    if neither has changed meanwhile, and the time was not that recent that it need not change.
    Where one has, the file is read again under a lock that Java waits for.

    Parameters
    ----------
    path : Path or str
        The file.
    take : callable
        Is given descriptor and size, and reads. May be called more than once.
    settled : bool, optional
        Take the lock in any case.
    """
    try:
        file = os.open(path, _READ)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        before = os.fstat(file)
        if not settled and abs(time.time_ns() - before.st_mtime_ns) >= _RECENT:
            taken = take(file, before.st_size)
            if _is_same(before, os.fstat(file)):
                return taken
        for _ in range(_TRIES):
            with reading(file):
                os.lseek(file, 0, os.SEEK_SET)
                before = os.fstat(file)
                taken = take(file, before.st_size)
                if _is_same(before, os.fstat(file)):
                    return taken
            time.sleep(_PAUSE)  # not a program that locks; one that ends, perhaps
    except IsADirectoryError:
        return None
    finally:
        os.close(file)
    message = "another program goes on writing into the file without a lock; read it later"
    raise BlockingIOError(errno.EBUSY, message, os.fspath(path))


def _is_same(before: os.stat_result, after: os.stat_result) -> bool:
    return before.st_mtime_ns == after.st_mtime_ns and before.st_size == after.st_size


def write(path: Path | str, *parts: BufferLike) -> None:
    """Write a file, or replace it as a whole.

    Parameters
    ----------
    path : Path or str
        The file; missing directories are made.
    *parts : bytes-like
        What it shall hold, one after the other.
    """
    unfinished = _write_unfinished(path, *parts)
    try:
        os.replace(unfinished, path)
    except BaseException:
        _remove_unfinished(unfinished)
        raise


def _write_unfinished(path: Path | str, *parts: BufferLike) -> str:
    directory, name = os.path.split(path)
    unfinished = f"{directory}/{name[:200]}.{os.urandom(16).hex()}.partial"
    try:
        file = os.open(unfinished, _CREATE, 0o666)
    except FileNotFoundError:
        os.makedirs(directory, exist_ok=True)
        file = os.open(unfinished, _CREATE, 0o666)
    try:
        try:
            for part in parts:
                rest = memoryview(part).cast("B")
                while len(rest):  # a call writes 2 GiB at most
                    rest = rest[os.write(file, rest) :]
        finally:
            os.close(file)
    except BaseException:
        _remove_unfinished(unfinished)
        raise
    return unfinished


def _remove_unfinished(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


def update(
    path: Path, change: Callable[[bytes | None], bytes], warn: Callable[[str], None]
) -> bytes:
    """Change a document while nobody else does.

    Parameters
    ----------
    path : Path
        The document, which need not exist.
    change : callable
        Is given what the document holds, None where there is none, and returns what it shall hold.
        Nothing is written if it raises, nor if it returns the same.
    warn : callable
        Is given a message when the file system has no locks.

    Returns
    -------
    bytes
        What the document holds now.
    """
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            created = _create(path, change(None))
            if created is not None:
                return created
            continue  # somebody else was first
        with _closing(descriptor), writing(descriptor, path, warn):
            if not _is_current(descriptor, path):
                continue
            old = _read(descriptor)
            new = change(old)
            if new != old:
                write(path, new)
            return new


def _create(path: Path, data: bytes) -> bytes | None:
    """Make a file that is complete from the first moment; None when it exists by now."""
    unfinished = _write_unfinished(path, data)
    try:
        os.link(unfinished, path)
    except FileExistsError:
        return None
    except OSError:  # a file system without links
        os.replace(unfinished, path)
        return data
    finally:
        _remove_unfinished(unfinished)
    return data


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)


def _is_current(descriptor: int, path: Path) -> bool:
    """Whether the file is still the one of this name, after waiting for its lock."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _read(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def stamp(path: Path | str) -> tuple[int, int, int] | None:
    """Return what differs once a file has been written or replaced; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def remove(path: Path | str) -> None:
    """Remove a file if it is there."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
        os.remove(path)


def remove_tree(path: Path, *, keep_top: bool = False) -> None:
    """Remove a directory with all that is in it; links are removed, not followed."""
    if path.is_symlink():
        path.unlink()
        return
    if keep_top:
        for entry in os.scandir(path) if path.is_dir() else ():
            if entry.is_dir(follow_symlinks=False):
                remove_tree(Path(entry.path))
            else:
                remove(Path(entry.path))
        return
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        shutil.rmtree(path)


def prune(path: Path, *, keep_top: bool = False) -> None:
    """Remove a directory if there are only empty directories in it."""
    for directory, _, _ in os.walk(path, topdown=False):
        if not (keep_top and Path(directory) == path):
            with contextlib.suppress(OSError):  # not empty, or gone
                Path(directory).rmdir()


def scan(root: Path, path: str) -> list[tuple[str, bool]] | None:
    """List a directory: names, and whether they are directories; None where there is none.

    Links are followed, loops are not; unfinished files are left out.
    """
    directory = root / path
    try:
        with os.scandir(directory) as found:
            return [
                (entry.name, _is_dir(entry))
                for entry in found
                if not is_unfinished(entry.name)
                and not (entry.is_symlink() and _leads_up(Path(entry.path), directory))
            ]
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _leads_up(link: Path, directory: Path) -> bool:
    """Whether a link points to the directory that it lies in or to one above it."""
    try:
        return directory.resolve().is_relative_to(link.resolve())
    except (OSError, RuntimeError):  # a link to itself
        return True
