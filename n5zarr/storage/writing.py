"""Write, update and remove local files, so that no writer's changes are lost.

The N5 specification does not say how a file is written. A writer here holds an exclusive lock on
the file itself, see :mod:`n5zarr.storage.locks`, from before reading the old content until after
writing. Once it has the lock, it checks that the file still has its name: a writer that waited may
hold the lock of a file that was replaced or removed; then it starts again. A missing file is
created with its whole content, by a link that fails if another writer was first. No lock file is
needed.
The compiled kernel does the same.

There are three ways to write, see :data:`n5zarr.storage.interface.Durability`:

- ``"atomic"``: under another name, then a rename. A killed process leaves a file that ends in
  ``.partial``, which is never read.
- ``"durable"``: the same; the file is synced before the rename. Afterwards its directory is synced,
  and every directory in which a directory was created.
- ``"overwrite"``: into the file itself. While it changes, its first bytes are an invalid header, so
  that a reader without a lock gets an error, and not a mix of two writes.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable
from functools import partial
from typing import Self

from n5zarr.codecs.buffers import BufferLike
from n5zarr.storage.files import (
    CREATE,
    READ,
    UPDATE,
    check_is_file,
    check_no_dangling_link,
    check_readable,
    is_coming,
    patiently,
    read_at,
    unfinished_name,
)
from n5zarr.storage.interface import Durability, ignore_warning
from n5zarr.storage.locks import PAUSE, HeldFile, changing, in_turn, writing
from n5zarr.storage.requests import Check

_ATTEMPTS = 5  # to make the directories of a file
_MANY = 100_000
_named: set[tuple[int, int]] = set()  # directories whose names this process has synced
_NO_HEADER = b"\xff" * 4  # invalid: N5 has no such mode


class FileWriter:
    """Writes files in one of three ways; a context manager that syncs when it ends.

    Threads may share one. The directories of durable files are synced once, at the end. After an
    error, empty directories that it created are removed: each would be a group.

    Parameters
    ----------
    durability : {"atomic", "durable", "overwrite"}
        The way to write files.
    warn : callable
        Called with a message if a part is written and the file system has no locks.
    """

    def __init__(self, durability: Durability, warn: Callable[[str], None]) -> None:
        self._durability = durability
        self._warn = warn
        self._unsynced: set[str] = set()
        self._made: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            sync_directories(self._unsynced)
            return
        for directory in sorted(self._made, reverse=True):  # the deepest of a path first
            with contextlib.suppress(OSError):
                os.rmdir(directory)

    def write(self, path: str, *parts: BufferLike, check: Check | None = None) -> None:
        """Create a file, or replace its whole content.

        Parameters
        ----------
        path : str
            The file; missing directories are created.
        *parts : bytes-like
            The new content, in pieces.
        check : callable, optional
            Called with the file to be replaced, under its lock; may raise.
        """
        path = _target(path)
        if self._durability == "overwrite":
            while not self._held(path, partial(self._overwrite_or_create, path, parts, check)):
                pass
            return

        def name(new: str) -> None:
            # most blocks are new; then no lock is needed, and no look at what is there
            while not (self._is_linked(new, path) or self._rename(new, path, check)):
                pass

        self._unfinished(path, parts, name)

    def _overwrite_or_create(
        self, path: str, parts: tuple[BufferLike, ...], check: Check | None, held: HeldFile | None
    ) -> bool:
        if held is None:
            return self._create(path, parts)
        _check(held.file, check)
        self._overwrite(held, parts)
        return True

    def _rename(self, unfinished: str, path: str, check: Check | None = None) -> bool:
        """Give a new file its name; False if another writer created the file meanwhile."""

        def rename(held: HeldFile | None) -> bool:
            if held is None:
                return self._link(unfinished, path)
            _check(held.file, check)
            held.close_on_windows()
            _replace(unfinished, path)
            self._note_file(path)
            return True

        try:
            return self._held(path, rename, replaces=True)
        except PermissionError:  # no lock for those who may not write the file
            _check_unlocked(path, check)
            _replace(unfinished, path)
        self._note_file(path)
        return True

    def update(self, path: str, change: Callable[[bytes | None], bytes | None]) -> bytes | None:
        """Replace the content of a file by a function of it.

        Parameters
        ----------
        path : str
            The file, which need not exist.
        change : callable
            Takes the content of the file, or None if it is missing, and returns the new content, or
            None to remove the file. Nothing is written if it raises or returns the same content.
            It is called again if another writer was first.

        Returns
        -------
        bytes or None
            The content of the file afterwards.
        """
        path = _target(path)

        def changed(held: HeldFile | None) -> tuple[bytes | None] | None:
            old = None if held is None else _read(held.file, path)
            if held is not None and not old and is_coming(os.fstat(held.file)):
                return None  # another writer has created it, and will write
            new = change(old)
            if new == old:
                if self._durability == "durable" and held is not None:
                    os.fsync(held.file)  # its writer may have been killed before
                    self._note_file(path)
                return (new,)
            return (new,) if self._write_update(path, held, new) else None

        while (done := self._held(path, changed)) is None:
            time.sleep(PAUSE)
        return done[0]

    def _write_update(self, path: str, held: HeldFile | None, new: bytes | None) -> bool:
        """Write the result of an update; False if another writer created the file meanwhile."""
        if held is None:
            return self._create(path, (new or b"",))
        if new is None:
            held.close_on_windows()
            patiently(os.remove, path)
        elif self._durability == "overwrite":
            self._overwrite(held, (new,))
            return True
        else:

            def name(unfinished: str) -> None:
                held.close_on_windows()
                _replace(unfinished, path)

            self._unfinished(path, (new,), name)
        self._note_file(path)
        return True

    def remove(self, path: str, *, check: Check | None = None) -> None:
        """Remove a file; do nothing if it is missing or a directory.

        N5 spec, "File-system specification", item 6: datasets are sparse, so any block may be
        removed. ``check`` is that of :meth:`write`.
        """
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            try:
                # remove a link, and not its target
                if not os.path.islink(path):
                    self._held(path, partial(_remove, path, check), replaces=True)
                else:
                    os.remove(path)
            except PermissionError:  # no lock for those who may not write the file
                _check_unlocked(path, check)
                os.remove(path)
            self._note_file(path)

    def _held[T](
        self, path: str, use: Callable[[HeldFile | None], T], *, replaces: bool = False
    ) -> T:
        """Pass a file to a function while its lock is held; None if it is missing."""
        while True:
            with in_turn():
                try:
                    held = patiently(HeldFile, path, UPDATE)
                except (FileNotFoundError, NotADirectoryError):
                    check_no_dangling_link(path)
                    return use(None)
                with held:
                    check_is_file(held.file, path)
                    # replacing a whole file needs no lock
                    warn = ignore_warning if replaces else self._warn
                    with writing(held, path, warn, gives_way=replaces):
                        if _is_current(held.file, path):
                            return use(held)

    def _create(self, path: str, parts: tuple[BufferLike, ...]) -> bool:
        """Create a file with its whole content; False if another writer created it first."""
        return self._unfinished(path, parts, partial(self._link, path=path))

    def _link(self, unfinished: str, path: str) -> bool:
        """Give a new file its name; without hard links, it replaces the file of another writer."""
        if not self._is_linked(unfinished, path):
            if os.path.lexists(path):
                return False
            os.replace(unfinished, path)  # the file system has no hard links
            self._note_file(path)
        return True

    def _is_linked(self, unfinished: str, path: str) -> bool:
        """Give a new file its name by a hard link, if there is no such file and the system can."""
        try:
            os.link(unfinished, path)
        except OSError:
            return False
        self._note_file(path)
        return True

    def _unfinished[T](
        self, path: str, parts: tuple[BufferLike, ...], use: Callable[[str], T]
    ) -> T:
        """Write a new file beside a path, pass on its name, and remove that name at the end."""
        name = unfinished_name(path)
        held = self._open_unfinished(name)
        try:
            try:
                with held:
                    _write_all(held.file, parts)
                    if self._durability == "durable":
                        os.fsync(held.file)
            except OSError as err:
                err.filename = err.filename or path  # a full disk's error does not name the file
                raise
            return use(name)
        finally:
            with contextlib.suppress(FileNotFoundError):
                patiently(os.remove, name)

    def _open_unfinished(self, unfinished: str) -> HeldFile:
        """Create a file and its directories; another program may be removing the directories."""
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(FileNotFoundError):
                return HeldFile(unfinished, CREATE)
            with contextlib.suppress(FileNotFoundError):
                self._make_directories(os.path.dirname(unfinished))
        return HeldFile(unfinished, CREATE)

    def _overwrite(self, held: HeldFile, parts: tuple[BufferLike, ...]) -> None:
        """Write into a file, first bytes last, so that no reader accepts a half-written file."""
        whole, file = b"".join(parts), held.file
        with changing(held):
            os.lseek(file, 0, os.SEEK_SET)
            _write_all(file, (_NO_HEADER, whole[len(_NO_HEADER) :]))
            os.ftruncate(file, len(whole))
            os.lseek(file, 0, os.SEEK_SET)
            _write_all(file, (whole[: len(_NO_HEADER)],))

    def _make_directories(self, directory: str) -> None:
        created, above = directory, os.path.dirname(directory)
        while above != created and not os.path.isdir(created):
            self._made.add(created)
            self.note_directory(above)
            created, above = above, os.path.dirname(above)
        try:
            os.makedirs(directory, exist_ok=True)
        except FileExistsError:
            check_no_dangling_link(directory)
            raise

    def _note_file(self, path: str) -> None:
        """Note the directory of a file that has been created, replaced or removed."""
        self.note_directory(os.path.dirname(path))

    def note_directory(self, directory: str) -> None:
        """Note a directory whose entries have changed, to be synced at the end if needed."""
        if self._durability == "durable":
            self._unsynced.add(directory)


def sync_directories(directories: set[str]) -> None:
    """Sync directories, so that the disk has the names in them; skip missing directories.

    The disk may also lack the names of the directories themselves, if a killed process created
    them. So each process syncs the directories above once.
    """
    if os.name != "posix":  # Windows cannot open directories
        return
    if len(_named) > _MANY:
        _named.clear()
    directories = {directory.rstrip("/") or "/" for directory in directories}
    above: set[str] = set()
    found: set[tuple[int, int]] = set()
    for directory in directories:
        found |= _unnamed(directory, above)
    for directory in sorted(directories | above, reverse=True):  # the deepest of a path first
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            try:
                held = HeldFile(directory, os.O_RDONLY)
            except PermissionError:
                if directory in directories:
                    raise
                continue  # this user cannot list it, and so has created no names in it
            with held:
                os.fsync(held.file)
    _named.update(found)


def _unnamed(directory: str, above: set[str]) -> set[tuple[int, int]]:
    """List a directory and those above it, on one file system, whose names the disk may lack.

    Return device and inode of each; ``above`` receives the directories that hold these names.
    """
    found: set[tuple[int, int]] = set()
    with contextlib.suppress(OSError):
        status = os.stat(directory)
        while (status.st_dev, status.st_ino) not in _named:
            found.add((status.st_dev, status.st_ino))
            holder = os.path.dirname(directory)
            device, status = status.st_dev, os.stat(holder)
            if holder == directory or status.st_dev != device:
                break
            above.add(holder)
            directory = holder
    return found


def _check(file: int, check: Check | None) -> None:
    """Call ``check`` with a file."""
    if check is not None:
        check(os.fstat(file).st_size, partial(read_at, file))


def _check_unlocked(path: str, check: Check | None) -> None:
    """Call ``check`` with a file that this user may not write."""
    if check is not None:
        with contextlib.suppress(PermissionError), HeldFile(path, READ) as held:
            _check(held.file, check)


def _remove(path: str, check: Check | None, held: HeldFile | None) -> None:
    """Remove a file whose lock is held."""
    if held is not None:
        _check(held.file, check)
        held.close_on_windows()
        patiently(os.remove, path)


def _write_all(file: int, parts: tuple[BufferLike, ...]) -> None:
    for part in parts:
        rest = memoryview(part).cast("B")
        while len(rest):  # one call writes at most 2 GiB
            rest = rest[os.write(file, rest) :]


def _target(path: str) -> str:
    """Return the target of a link, so that replacing the file keeps the link."""
    if not os.path.islink(path):
        return path
    check_no_dangling_link(path)
    return os.path.realpath(path)


def _replace(unfinished: str, path: str) -> None:
    """Replace a file by a new one, with the mode of the old, and its owner if permitted."""
    with contextlib.suppress(FileNotFoundError):
        old, new = os.stat(path), os.stat(unfinished)
        if hasattr(os, "chown") and (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            with contextlib.suppress(PermissionError):
                os.chown(unfinished, old.st_uid, old.st_gid)
        if old.st_mode != new.st_mode:
            os.chmod(unfinished, stat.S_IMODE(old.st_mode))
    patiently(os.replace, unfinished, path)


def _is_current(file: int, path: str) -> bool:
    """Whether the locked file still has this name: a rename may have replaced it meanwhile."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _read(file: int, path: str) -> bytes:
    check_readable(file, path, os.fstat(file))
    parts = []
    while part := os.read(file, 1 << 20):
        parts.append(part)
    return b"".join(parts)
