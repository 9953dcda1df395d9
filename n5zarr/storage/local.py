"""Storage in local files: answer requests with :mod:`n5zarr.storage.files`.

N5 spec, "File-system specification", items 1 and 5: groups are directories, and each block is a
separate file, so a key is the path of a file below the container.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self, assert_never, override

from zarr.abc.store import Store

from n5zarr._zarr import LocalStore
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.path import join
from n5zarr.storage import files, removing
from n5zarr.storage.confined import ConfinedStore, is_confined
from n5zarr.storage.ending import check_wanted, on_thread
from n5zarr.storage.interface import Durability, Storage, ignore_warning
from n5zarr.storage.not_found import check_local_root
from n5zarr.storage.requests import (
    Ends,
    Entry,
    Exists,
    FileThatNames,
    Get,
    KeysBelow,
    List,
    Paused,
    Put,
    Remove,
    RemoveTree,
    Request,
    Stamp,
    Steps,
    Update,
    Warn,
    Work,
    drive,
)
from n5zarr.storage.url import local_path
from n5zarr.storage.writing import FileWriter, sync_directories


class LocalFiles(Storage):
    """The keys of a container as local files.

    Parameters
    ----------
    root : Path
        The directory of the container. It need not exist; the first write creates it.
    read_only : bool, optional
        Whether writing is refused.
    store_writes : bool, optional
        Whether :attr:`store` writes. It creates the directory when it is opened, so this is true
        only for a store that a user passed.
    durability : {"atomic", "durable", "overwrite"}, optional
        The way to write blocks. Documents are replaced, never overwritten.
    confined : bool, optional
        Whether to refuse writing, and to leave out what is behind links that lead out of the
        directory, which may itself be reached through a link.
    """

    is_shared = True
    has_stamps = True
    supports_sync = True

    def __init__(
        self,
        root: Path,
        *,
        read_only: bool = False,
        store_writes: bool = False,
        durability: Durability = "atomic",
        confined: bool = False,
    ) -> None:
        self._given = root.absolute()
        self._root = root.resolve()
        self.root = None if confined else self._root  # so that no reader opens files itself
        self.durability = durability
        self._confined = confined
        self._store_writes = store_writes
        self._local_store: LocalStore | None = None  # created on first use
        self._prefix = f"{self._root}/"  # a Path would cost a third of reading a small block
        self._read_only = read_only or confined

    def __str__(self) -> str:
        return str(self._root)

    @property
    @override
    def given(self) -> Path:
        return self._given.parent.resolve() / self._given.name  # rarely asked for, and slow

    @property
    @override
    def store(self) -> Store:
        if self._local_store is None and self._confined:
            self._local_store = ConfinedStore(self._root)
        elif self._local_store is None:
            self._local_store = LocalStore(self._root, read_only=not self._store_writes)
        return self._local_store

    @property
    @override
    def read_only(self) -> bool:
        return self._read_only

    @override
    def with_read_only(self, *, read_only: bool) -> Self:
        return type(self)(
            self._given,
            read_only=read_only,
            store_writes=self._store_writes,
            durability=self.durability,
            confined=self._confined,
        )

    @override
    def is_same_place(self, other: Storage) -> bool:
        if isinstance(other, LocalFiles):
            return str(self) == str(other)
        return other.is_same_place(self)

    @override
    async def open(self, *, read_only: bool) -> None:
        check_local_root(self.given, needs_directory=read_only)  # a write creates the directory

    @override
    def close(self) -> None:
        pass

    @override
    async def run_async[T](
        self, steps: Steps[T], warn: Callable[[str], None] = ignore_warning
    ) -> T:
        # files are read on a thread, their stamps without
        done = drive(
            steps,
            self.answer_with(warn),
            pauses_at=lambda asked: not all(isinstance(each, Stamp) for each in asked),
        )
        if isinstance(done, Paused):
            # one thread for the rest of the flow is cheaper than one for each request
            return await on_thread(self.run, steps, warn, done.requests)
        await asyncio.sleep(0)  # let other tasks run: zarr opens all nodes of a group at once
        return done

    @override
    def answer(self, request: Request, warn: Callable[[str], None]) -> object:
        if self._confined and not self._holds_asked(request):
            return False if isinstance(request, Exists) else None
        match request:
            case Get(key, settled, part):
                return files.read(self._prefix + key, settled=settled, part=part)
            case Ends(key, first, last):
                return files.read_ends(self._prefix + key, first, last)
            case Stamp(key):
                return files.stamp(self._prefix + key)
            case Work(function):
                return function()
            case Put() | Update() | Remove() | RemoveTree():
                return self._write(request, warn)
            case Exists(key):
                return os.path.isfile(self._prefix + key)
            case List(path, _, unfinished):
                entries = files.scan(self._prefix, path, unfinished=unfinished)
                if entries is not None and self._confined:
                    entries = [each for each in entries if self._shows(path, each[0])]
                return None if entries is None else [Entry(*entry) for entry in entries]
            case KeysBelow():
                return None
            case FileThatNames(path, pattern, named):
                return self._file_that_names(path, pattern, named)
            case Warn(message):
                warn(message)
            case _:
                assert_never(request)
        return None

    def _holds_asked(self, request: Request) -> bool:
        """Whether no link leads from what a request reads out of the directory."""
        match request:
            case Get(key) | Ends(key) | Stamp(key) | Exists(key) | List(key):
                return is_confined(str(self._root), key)
            case _:
                return True

    def _shows(self, path: str, name: str) -> bool:
        """Whether an entry is inside, and its name valid text, as URLs and pages need."""
        try:
            name.encode()
        except UnicodeEncodeError:
            return False
        return is_confined(str(self._root), join(path, name))

    def _write(
        self, request: Put | Update | Remove | RemoveTree, warn: Callable[[str], None]
    ) -> object:
        """Answer a request that changes files; documents are always replaced atomically."""
        check_wanted()
        durability = self.durability
        if isinstance(request, Update) and request.key.endswith(ATTRIBUTES_JSON):
            durability = "durable" if durability == "durable" else "atomic"
        with FileWriter(durability, warn) as writer:
            match request:
                case Put(key, data, check):
                    writer.write(self._prefix + key, data, check=check)
                case Update(key, change):
                    return writer.update(self._prefix + key, change)
                case Remove(key, prune, check):
                    writer.remove(self._prefix + key, check=check)
                    if prune:
                        directory = Path(self._prefix + key).parent
                        removing.prune(directory, keep_top="/" not in key)
                        writer.note_directory(str(directory.parent))
                case RemoveTree(path):
                    sync = sync_directories if durability == "durable" else None
                    directory = Path(self._prefix + path)  # "/" would follow a name such as C:
                    removing.remove_tree(directory, keep_top=not path, sync=sync)
                    writer.note_directory(str(directory.parent if path else self._root))
        return None

    def _file_that_names(
        self, path: str, pattern: str, named: Callable[[bytes], str | None]
    ) -> bytes | None:
        """Answer :class:`~n5zarr.storage.requests.FileThatNames`."""
        directory = self._root / path
        for folder in (directory, *directory.parents):
            for file in sorted(folder.glob(pattern)):
                try:
                    data = file.read_bytes()
                except OSError:  # a directory, a broken link, or no permission
                    continue
                location = named(data)
                if location is None:
                    continue
                if (folder / local_path(location)).resolve() == directory.resolve():
                    return data
            if folder == self._root.parent:
                break
        return None


def may_take_long(requests: Sequence[Request]) -> bool:
    """Whether requests compute, or wait for other programs."""
    return any(
        isinstance(request, Work) or (isinstance(request, Get) and request.settled)
        for request in requests
    )
