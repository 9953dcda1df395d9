"""Move a dataset to ``s0`` below it, so that it becomes the group of a pyramid.

In this order, so that the dataset can be read at each moment, by its old path or as ``s0``:

1. a mark in ``s0``, which readers of a dataset do not list, as it is no name of a block;
2. all blocks in ``s0``: as hard links, or copies where there are no links;
3. the document of ``s0``;
4. the document of the group, which replaces that of the dataset in one step;
5. the old blocks are removed, which nobody reads any more, and then the mark.

Each step can be repeated. Links are safe, as one of the two names goes: a program that writes into
the file itself changes the block under both.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, override
from uuid import uuid4

from n5zarr.arrays.stored_chunks import each_key
from n5zarr.container.options import require
from n5zarr.conventions.levels import entries_of
from n5zarr.errors import N5Error
from n5zarr.format.attributes import ATTRIBUTES_JSON, is_dataset
from n5zarr.format.foreign import ZARR_DOCUMENTS
from n5zarr.format.grid import is_block_name
from n5zarr.format.lenient_json import parse_json
from n5zarr.format.path import join
from n5zarr.storage.files import is_unfinished
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import Place
from n5zarr.storage.requests import (
    List,
    Remove,
    RemoveTree,
    Update,
    list_each,
    put_each,
    read_each,
    read_key,
    request_each,
)
from n5zarr.storage.writing import sync_directories
from n5zarr.tools.convert.files import BATCH, Copied, FileCopy, Folder
from n5zarr.tools.convert.writing import run_copies
from n5zarr.tools.jobs.incomplete import begin, confirm, finish, keys_below
from n5zarr.tools.jobs.parts import Owned
from n5zarr.tools.pyramid.finding import MOVING, is_moving, stored_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from n5zarr.storage.interface import Storage
    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.convert.files import Task
    from n5zarr.tools.jobs.run import RunOptions
    from n5zarr.zarr_view.dataset_view import DatasetView

__all__ = ["Documents", "check_movable", "move_dataset", "remove_old_blocks"]

_PASSES = 5  # to compare blocks that others write, too
_N_SUFFIX = len("." + 32 * "0" + ".partial")  # of an unfinished file


@dataclass(frozen=True)
class Documents:
    """The document of a dataset that is moved, and those that replace it.

    Parameters
    ----------
    old : bytes
        That of the dataset, as it is stored.
    group : bytes
        That of the group.
    finest : bytes
        That of ``s0``.
    """

    old: bytes
    group: bytes
    finest: bytes


def check_movable(store: N5Store, path: str) -> None:
    """Check that nothing else depends on the path of a dataset, or is at its new path.

    Raises
    ------
    N5UnrepresentableError
        Something is or does (``kind="option"``).
    """
    where = f"{store}: {path or '/'}"
    other = "; to (--to) copies it to another group"
    place = None if store.storage.root is None else Path(store.storage.root, path)
    require(
        place is None or not path or not (place.is_symlink() or place.is_junction()),
        f"in_place (--in-place): expected a directory, got a link to {place and place.resolve()}; "
        "give that",
        where,
    )
    above = store.run(store.container.nodes.above(path))
    require(
        next(entries_of(path.split("/"), above), None) is None,
        "in_place (--in-place): expected a dataset that no group above it lists, got one in "
        f"multiscales{other}",
        where,
    )
    of_zarr = sorted(ZARR_DOCUMENTS)
    found = store.run(read_each([join(path, name) for name in of_zarr]))
    there = [name for name, data in zip(of_zarr, found, strict=True) if data is not None]
    require(
        not there,
        f"in_place (--in-place): expected no documents of Zarr, which describe a dataset here, got "
        f"{', '.join(there)}; n5zarr sidecar --remove removes those that n5zarr wrote",
        where,
    )
    finest = keys_below(stored_keys(store), join(path, "s0"))
    require(
        is_moving(store, path) or all(map(_is_unfinished, finest)),
        f"in_place (--in-place): expected nothing at {join(path, 's0')}, got files{other}",
        where,
    )


def move_dataset(
    store: N5Store,
    path: str,
    view: DatasetView,
    documents: Documents,
    options: RunOptions,
    memory: int,
) -> None:
    """Move a dataset to ``s0`` below it, or go on with a run that was interrupted.

    Parameters
    ----------
    store : N5Store
        The container.
    path : str
        The dataset, which becomes a group.
    view : DatasetView
        The same.
    documents : Documents
        What is written.
    options : RunOptions
        Where the work is done.
    memory : int
        Bytes that a worker may use.

    Raises
    ------
    N5Error
        Another program changes the dataset (``kind="changed"``).
    """
    keys, finest, run = stored_keys(store), join(path, "s0"), uuid4().hex
    storage = _durable(store.storage)
    copy = _BlockMove(
        source=Folder(storage, path), target=Folder(storage, finest), view=view, memory=memory
    )
    done = begin(keys, finest, MOVING, resume=True, run=run)
    try:
        run_copies([copy], Owned({join(finest, key) for key in done}), options)
        _compare(replace(copy, again=True), documents, options)
        _sync(storage, finest)
        store.run(confirm(str(store), finest, run, done))
        storage.run(put_each([(join(finest, ATTRIBUTES_JSON), documents.finest)]))
        storage.run(request_each([Update(join(path, ATTRIBUTES_JSON), _replacing(documents))]))
    except Exception as err:
        err.add_note(f"{store}: /{path} is complete; the same command (--in-place) goes on")
        raise
    remove_old_blocks(store, path)


def remove_old_blocks(store: N5Store, path: str) -> None:
    """Remove the blocks of a dataset that has become a group, and the mark in its ``s0``."""
    storage = _durable(store.storage)
    (entries,) = storage.run(request_each([List(path, unfinished=True)]))
    for entry in entries or ():
        name = entry.name
        if is_block_name(name[:-_N_SUFFIX] if is_unfinished(name) else name):
            old = join(path, name)
            storage.run(request_each([Remove(old), RemoveTree(old)]))
    finish(stored_keys(store), join(path, "s0"))


def _compare(copy: _BlockMove, documents: Documents, options: RunOptions) -> None:
    """Compare all blocks, and copy those again that differ, until none does.

    Those that others have removed are removed, too: they would be read again.

    Raises
    ------
    N5Error
        Others keep writing (``kind="changed"``).
    """
    for _ in range(_PASSES):
        n_removed = copy.remove_others(documents.old)
        (copied,) = run_copies([copy], Owned(), options)
        if not (copied.n_units or n_removed):
            return
    message = f"{copy.source.path}: expected blocks that stay as they are, got others again and "
    raise N5Error(f"{message}again: another program writes them", kind="changed")


def _replacing(documents: Documents) -> Callable[[bytes | None], bytes | None]:
    def change(now: bytes | None) -> bytes | None:
        if now == documents.old:
            return documents.group
        found = parse_json(now) if now else None
        if isinstance(found, dict) and not is_dataset(found):
            return now  # another run was first
        message = "expected attributes as they were when the run began, got others"
        raise N5Error(f"{message}: another program has changed them", kind="changed")

    return change


def _durable(storage: Storage) -> Storage:
    """Return storage whose steps a power cut cannot reorder, where there is a choice."""
    root = storage.root
    return storage if root is None else open_storage(Place(root), durability="durable")


def _sync(storage: Storage, path: str) -> None:
    """Sync the names of links."""
    if storage.root is not None:
        sync_directories({directory for directory, _, _ in os.walk(storage.root / path)})


@dataclass(frozen=True, eq=False, kw_only=True)
class _BlockMove(FileCopy):
    """The files of the blocks of a dataset, at another path of the same storage.

    Parameters
    ----------
    view : DatasetView
        The dataset.
    memory : int
        Bytes that a task may use.
    again : bool, optional
        Whether to compare files that are there, and to replace those that differ.
    """

    view: DatasetView
    memory: int
    again: bool = False

    @property
    @override
    def n_bytes(self) -> int:
        return math.prod(self.view.shape) * self.view.kind.dtype.itemsize

    @property
    @override
    def n_bytes_of_unit(self) -> int:
        return self.view.full_n_bytes

    @override
    def tasks(self, owned: Owned) -> Iterator[Task]:
        """Yield tasks for all files in directories of blocks, also outside of the grid."""
        n = max(1, min(BATCH, self.memory // (2 * self.n_bytes_of_unit)))
        found = _block_files(self.source)
        yield from self.in_batches((k for k in found if owned.needs(self.target.key(k))), n)

    def remove_others(self, document: bytes) -> int:
        """Remove files that the dataset does not have any more; return their number.

        Parameters
        ----------
        document : bytes
            That of the dataset, which another run replaces before it removes blocks.
        """
        there = set(_block_files(self.target))
        there.difference_update(_block_files(self.source))
        storage = self.source.storage
        if not there or storage.run(read_key(self.source.key(ATTRIBUTES_JSON))) != document:
            return 0
        storage.run(request_each(Remove(self.target.key(name)) for name in there))
        return len(there)

    @override
    def copy(self, part: Sequence[str]) -> Copied:
        rest = [name for name in part if not self._is_linked(name)]
        there = self.target.read(rest) if self.again else [None] * len(rest)
        read = zip(rest, self.source.read(rest), there, strict=True)
        written = [(name, data) for name, data, old in read if data is not None and data != old]
        return Copied(len(written), self.target.write(written))

    def _is_linked(self, name: str) -> bool:
        """Give a local file its new name, too, if its file system can; False if it has not."""
        root = self.source.storage.root
        if root is None or _passes_link(Path(root, self.source.path), name):
            return False
        old, new = (Path(root, folder.key(name)) for folder in (self.source, self.target))
        try:
            new.parent.mkdir(parents=True, exist_ok=True)
            new.hardlink_to(old)
        except FileExistsError:
            return _is_same_file(old, new)
        except OSError:  # no links, or the block was removed
            return False
        return True


def _block_files(folder: Folder) -> Iterator[str]:
    """List the files in directories of blocks, also behind links."""
    storage, path = folder
    if storage.root is None:
        yield from filter(_is_of_block, chain.from_iterable(each_key(storage.store, path)))
        return
    below = [""]
    while below:
        inner = below.pop()
        for entry in storage.run(list_each([join(path, inner)]))[0]:
            name = join(inner, entry.name)
            if entry.is_dir and _is_of_block(name):
                below.append(name)
            elif not entry.is_dir and _is_of_block(name):
                yield name


def _is_of_block(key: str) -> bool:
    """Whether a file is in a directory of blocks, or a block; not that of an unfinished write."""
    first, *_ = key.split("/")
    return is_block_name(first) and not _is_unfinished(key)


def _is_unfinished(key: str) -> bool:
    return any(map(is_unfinished, key.split("/")))


def _passes_link(directory: Path, name: str) -> bool:
    """Whether a file is in another place: a hard link would make that place depend on this one."""
    names = name.split("/")
    paths = (directory.joinpath(*names[:n]) for n in range(1, len(names) + 1))
    return any(path.is_symlink() or path.is_junction() for path in paths)


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except FileNotFoundError:
        return False
