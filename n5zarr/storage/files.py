"""Local files: read and list.

N5 spec, "File-system specification", items 1, 2 and 5: groups are directories, and
``attributes.json`` and each block are files in them.

:mod:`n5zarr.storage.writing` writes files, :mod:`n5zarr.storage.removing` removes them.

Java truncates and rewrites documents and blocks in place, under a lock on the file; so does n5zarr
with ``durability="overwrite"``. Reading takes a shared lock on a file that another program may be
writing: see :func:`_read_with`.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from bisect import bisect
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from pathlib import Path

from n5zarr.codecs.buffers import REUSED, Scratch
from n5zarr.codecs.shard import check_stored_size
from n5zarr.errors import ErrorsAt, N5FormatError
from n5zarr.format.grid import is_block_name
from n5zarr.storage.locks import PAUSE, HeldFile, reading

_PARTIAL = re.compile(r".*\.[0-9a-f]{32}\.partial", re.DOTALL)

_LARGE = 2**26  # bytes; a smaller file is read without a check of its size
_RECENT = 20_000_000  # nanoseconds: two writes within one tick of the clock have the same time
_COMING = 1_000_000_000  # nanoseconds for a writer to lock and write a file that it has created
_TRIES = 100
_PATIENCE = 5  # seconds for others to close a file, on Windows


def patiently[T](do: Callable[..., T], *arguments: object) -> T:
    """Open, replace or remove a file; on Windows, wait while other users of the file prevent it.

    Windows cannot replace or remove an open file, nor open a file while it is being replaced.
    """
    if os.name != "nt":  # each block passes here
        return do(*arguments)
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        try:
            return do(*arguments)
        except PermissionError:
            time.sleep(PAUSE)
    return do(*arguments)


def is_unfinished(name: str) -> bool:
    """Whether a file name is that of an unfinished write; zarr uses the same names."""
    return _PARTIAL.fullmatch(name) is not None


_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_NOT_WAITING = getattr(os, "O_NONBLOCK", 0)  # do not wait for the writer of a pipe
READ = os.O_RDONLY | _NOT_WAITING | _BINARY
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
UPDATE = os.O_RDWR | _NOT_WAITING | _BINARY


def read(
    path: Path | str, *, settled: bool = False, part: tuple[int, int] | None = None
) -> bytes | None:
    """Read a file, whole or in part; return None if it is missing.

    Parameters
    ----------
    path : Path or str
        The file.
    settled : bool, optional
        Wait for programs that write the file under a lock, as Java does.
    part : tuple of int, optional
        Offset and number of bytes; fewer are read at the end of the file.
    """
    if part is None:
        return _read_with(path, _all_of, settled=settled)
    return _read_with(path, lambda file, _: read_at(file, *part), settled=settled, is_whole=False)


def _all_of(file: int, size: int) -> bytes:
    # one call with the exact size: a larger buffer would cost more than the call itself
    data = os.read(file, size)
    # the system may return fewer bytes than requested
    while len(data) < size and (more := os.read(file, size - len(data))):
        data += more
    return data


def read_reused(path: str, memory: Scratch, *, settled: bool = False) -> memoryview | None:
    """Read a whole file into memory that the next call reuses; see :func:`read`.

    A file larger than the reused memory gets new memory.
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
    """Read a part of a file, if the file has the expected beginning and size.

    Parameters
    ----------
    path : str
        The file.
    start : bytes
        The bytes that the file must begin with.
    offset, n_bytes : int
        Beginning of the part, counted from the end of ``start``, and its length, in bytes.
    total : int
        Number of bytes that must follow ``start``.

    Returns
    -------
    bytes or None
        None if the file is missing, its beginning or size differs, or the system has no ``pread``.
    """
    if not hasattr(os, "pread"):
        return None

    def take(file: int, size: int) -> bytes | None:
        if size != len(start) + total or os.pread(file, len(start), 0) != start:
            return None
        part = os.pread(file, n_bytes, len(start) + offset)
        return part if len(part) == n_bytes else None

    return _read_with(path, take, is_whole=False)


def read_ends(path: str, first: int, last: int) -> tuple[int, bytes, bytes] | None:
    """Read the first and last bytes of a file, and its size; None if it is missing."""

    def take(file: int, size: int) -> tuple[int, bytes, bytes]:
        if size <= first + last:
            return size, _all_of(file, size), b""
        start = os.read(file, first)
        os.lseek(file, size - last, os.SEEK_SET)
        return size, start, os.read(file, last)

    return _read_with(path, take, is_whole=False)


def _read_with[T](
    path: Path | str,
    take: Callable[[int, int], T],
    *,
    settled: bool = False,
    is_whole: bool = True,
) -> T | None:
    """Read a file while no program is writing it; None if the file is missing.

    A program that writes in place, as Java does, changes the size or the time of the file. So the
    bytes are returned if neither changed during the reading, and the time is so old that another
    write would change it. Otherwise the file is read again under a lock, for which Java waits.

    Parameters
    ----------
    path : Path or str
        The file.
    take : callable
        Takes the descriptor and the size of the file, and reads. May be called more than once.
    settled : bool, optional
        Always take the lock.
    is_whole : bool, optional
        Whether all of the file is read, so that it must not be far longer than a block.

    Raises
    ------
    BlockingIOError
        The file still changes after many attempts: another program writes without a lock.
    """
    held = _opened(path)
    if held is None:
        return None
    try:
        file = held.file
        before = os.fstat(file)
        (check_readable if is_whole else check_is_file)(file, path, before)
        is_old = abs(time.time_ns() - before.st_mtime_ns) >= _RECENT
        if not settled and is_old and not is_coming(before):
            taken = take(file, before.st_size)
            if _is_same(before, os.fstat(file)):
                return taken
        n_tries = 0
        while n_tries < _TRIES:
            with reading(held, path) as is_sound:
                os.lseek(file, 0, os.SEEK_SET)
                before = os.fstat(file)
                taken = take(file, before.st_size)
                is_empty = is_coming(before)
                if _is_same(before, os.fstat(file)) and is_sound() and not is_empty:
                    return taken
            time.sleep(PAUSE)  # its writer takes no lock; wait for it to finish
            n_tries += not is_empty
    except IsADirectoryError:
        return None
    finally:
        held.close()
    message = "another program keeps writing into the file without a lock; read it later"
    raise BlockingIOError(errno.EBUSY, message, os.fspath(path))


def _opened(path: Path | str) -> HeldFile | None:
    """Open a file to read it; None if it is missing."""
    if os.name == "nt" and os.path.isdir(path):
        return None  # Windows refuses to open it
    try:
        return patiently(HeldFile, path, READ)
    except OSError as err:
        if not _means_missing(err):
            raise
        check_no_dangling_link(path)
        return None


def check_no_dangling_link(path: Path | str) -> None:
    """Raise if a file is missing because a link on its path leads nowhere.

    git-annex leaves such links in place of unfetched files: they must not read as zeros.

    Raises
    ------
    N5FormatError
        A link on the path leads nowhere (``kind="file"``).
    """
    above = accumulate(range(3), lambda name, _: os.path.dirname(name), initial=os.fspath(path))
    name = next(filter(os.path.lexists, above), "")
    if not name:  # few steps also for a path of many names
        up = Path(path).parents
        name = str(up[bisect(range(len(up) - 1), 0, key=lambda n: os.path.lexists(up[n]))])
    if os.path.islink(name) and not os.path.exists(name):
        message = (
            f"expected a file, got a link to {os.readlink(name)}, which does not exist; restore "
            "the file, for example with 'git annex get', or remove the link"
        )
        raise N5FormatError(message, kind="file", where=name)


def check_is_file(file: int, path: Path | str, status: os.stat_result | None = None) -> None:
    """Raise for a directory, pipe, socket or device; reading a pipe may wait for ever.

    Raises
    ------
    IsADirectoryError
        The path is a directory.
    N5FormatError
        The path is a pipe, a socket or a device (``kind="file"``).
    """
    mode = (status or os.fstat(file)).st_mode
    if not stat.S_ISREG(mode):
        if stat.S_ISDIR(mode):
            raise IsADirectoryError
        message = "expected a file, got a pipe, a socket or a device; remove it"
        raise N5FormatError(message, kind="file", where=os.fspath(path))


def check_readable(file: int, path: Path | str, status: os.stat_result) -> None:
    """Raise unless the path is a file, and for a block that is far longer than its elements.

    Raises
    ------
    N5BlockError
        The block is a shard (``kind="shard"``), or too long (``kind="payload"``).
    IsADirectoryError, N5FormatError
        The path is not a file, see :func:`check_is_file`.
    """
    check_is_file(file, path, status)
    if status.st_size > _LARGE and is_block_name(os.path.basename(path)):
        with ErrorsAt(partial(os.fspath, path)):
            check_stored_size(status.st_size, partial(read_at, file))
        os.lseek(file, 0, os.SEEK_SET)


def read_at(file: int, offset: int, n_bytes: int) -> bytes:
    """Read a part of an open file; fewer bytes at its end."""
    end = os.lseek(file, 0, os.SEEK_END)
    os.lseek(file, offset, os.SEEK_SET)
    return _all_of(file, max(0, min(n_bytes, end - offset)))


def _is_same(before: os.stat_result, after: os.stat_result) -> bool:
    return before.st_mtime_ns == after.st_mtime_ns and before.st_size == after.st_size


def unfinished_name(path: str) -> str:
    """Return a name for an unfinished file beside a path."""
    directory, name = os.path.split(path)
    return f"{directory}/{name[:200]}.{os.urandom(16).hex()}.partial"


def is_coming(status: os.stat_result) -> bool:
    """Whether a writer has just created a file, and is about to lock and write it."""
    return status.st_size == 0 and abs(time.time_ns() - status.st_mtime_ns) < _COMING


def stamp(path: Path | str) -> tuple[int, ...] | None:
    """Return values that change when a file is written or replaced; None if it is missing.

    Another write within the same tick of the clock may leave the time of a file unchanged, and the
    system reuses the inodes of replaced files: so the stamp of a recent file is always unique.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    found = (status.st_ino, status.st_mtime_ns, status.st_size)
    now = time.time_ns()
    return found if abs(now - status.st_mtime_ns) >= _RECENT else (*found, now)


def scan(
    root: str, path: str, *, unfinished: bool = False
) -> list[tuple[str, bool, bool, bool]] | None:
    """List a directory: an :class:`~n5zarr.storage.requests.Entry` for each name.

    N5 spec, "File-system specification", item 1: every directory is a group. As in Java, a link to
    a directory counts as one; here, links that lead back up are omitted, and so are files of
    unfinished writes, unless requested. Return None if the directory is missing. ``root`` ends
    with a slash.
    """
    try:
        with os.scandir(root + path) as entries:  # a Path takes twice as long
            return [
                (
                    entry.name,
                    _is_dir(entry),
                    # whether a link leads from the root to this directory
                    entry.is_symlink()
                    and Path(root + path).resolve() != Path(root).resolve() / path,
                    entry.is_symlink() and not os.path.exists(entry.path),
                )
                for entry in entries
                if (unfinished or not is_unfinished(entry.name))
                and not (entry.is_symlink() and _leads_up(Path(entry.path), Path(root + path)))
            ]
    except OSError as err:
        if not _means_missing(err):
            raise
        return None


def _means_missing(err: OSError) -> bool:
    """Whether an error means that the file is missing, or cannot exist because of its name."""
    return err.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _leads_up(link: Path, directory: Path) -> bool:
    """Whether a link points to its own directory or to one above it."""
    try:
        return directory.resolve().is_relative_to(link.resolve())
    except (OSError, RuntimeError):  # a link to itself, before Python 3.13
        return False
