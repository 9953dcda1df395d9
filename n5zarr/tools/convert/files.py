"""Copy the files of a dataset unchanged: blocks of ``object`` are opaque bytes, not arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from itertools import batched
from typing import TYPE_CHECKING, Any, NamedTuple, Self, override

from n5zarr._zarr import sync
from n5zarr.errors import N5Error, N5UnsupportedError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.path import join
from n5zarr.storage.requests import get_each, put_each
from n5zarr.tools.convert.target_n5 import N5Destination
from n5zarr.tools.jobs.incomplete import Piece, keys_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.images.source import SourceTree
    from n5zarr.storage.interface import Storage
    from n5zarr.tools.convert.target import Destination
    from n5zarr.tools.jobs.parts import Owned

__all__ = [
    "BATCH",
    "SMALL",
    "Copied",
    "Copy",
    "FileCopy",
    "Folder",
    "Task",
    "TaskSize",
    "opaque_folders",
    "plan_opaque",
]

BATCH = 64
"""Files of one task, at most."""

_SHARE = 2**22  # bytes: tasks for all workers, whose elements stay near to a core

SMALL = 2**14
"""Bytes of a unit that is read, written and decoded in less time than Python takes for it."""


class Copied(NamedTuple):
    """The chunks, shards or blocks that were written, and their bytes: 0 where zarr writes."""

    n_units: int = 0
    n_bytes: int = 0


class Task(NamedTuple):
    """A method of a copy and what it takes: a part of an array.

    Parameters
    ----------
    copy : Copy
        The copy.
    part : object
        What :meth:`Copy.copy`, or :meth:`Copy.compare`, takes.
    n_bytes : int
        Bytes of its elements.
    """

    copy: Copy
    part: Any
    n_bytes: int


class TaskSize(NamedTuple):
    """Bytes of the elements of a task.

    Parameters
    ----------
    usual : int
        If its parts are not larger.
    most : int
        As many as fit into memory.
    """

    usual: int
    most: int

    @classmethod
    def of(cls, most: int, *, waits: bool) -> Self:
        """Choose the size; a task that waits for servers requests as much as it can at once."""
        return cls(most if waits else min(most, _SHARE), most)


class Copy(ABC):
    """What is copied, and the way to do so; can be pickled for other processes."""

    @property
    def n_bytes(self) -> int:
        """Bytes of all elements; 0 if it has none."""
        return 0

    @property
    def n_bytes_of_unit(self) -> int:
        """Bytes of the elements of a whole chunk, shard or block."""
        return 0

    @property
    def is_light(self) -> bool:
        """Whether Python takes most of the time, as for small values that are passed through."""
        return False

    @abstractmethod
    def tasks(self, owned: Owned) -> Iterator[Task]:
        """Yield the tasks for :meth:`copy`.

        Parameters
        ----------
        owned : Owned
            What an interrupted run has written, and what other parts write.
        """

    @abstractmethod
    def copy(self, part: Any) -> Copied:  # noqa: ANN401 - each class has its own parts
        """Copy a part."""

    @abstractmethod
    def comparisons(self) -> Iterator[Task]:
        """Yield the tasks for :meth:`compare`."""

    @abstractmethod
    def compare(self, part: Any) -> None:  # noqa: ANN401 - each class has its own parts
        """Compare a part that was written with its source.

        Raises
        ------
        N5Error
            A value differs (``kind="differs"``).
        """

    def compare_copied(self, part: Any) -> None:  # noqa: ANN401 - each class has its own parts
        """Compare what :meth:`copy` has written of a part: as :meth:`compare`."""
        self.compare(part)

    @property
    def knows_files(self) -> bool:
        """Whether :meth:`pieces` names the local files that are read."""
        return False

    def pieces(self, part: Any) -> Iterator[Piece]:  # noqa: ANN401 - see `copy`
        """Yield what :meth:`copy` makes of a part, if it is made from local files."""
        yield from ()

    def in_batches(self, units: Iterable[object], n: int = BATCH) -> Iterator[Task]:
        """Yield tasks of a few units each."""
        for batch in batched(units, n):
            yield Task(self, batch, len(batch) * self.n_bytes_of_unit)


class Folder(NamedTuple):
    """A path in a storage, with the files below it.

    Parameters
    ----------
    storage : Storage
        The storage.
    path : str
        The path.
    """

    storage: Storage
    path: str

    def key(self, name: str) -> str:
        """Return the stored key of a file."""
        return join(self.path, name)

    def names(self) -> set[str]:
        """Return the names of all files."""
        return keys_below(self.storage.store, self.path)

    def read(self, names: Iterable[str]) -> list[BufferLike | None]:
        """Read files, None for each missing one."""
        return self.storage.run(get_each(list(map(self.key, names))))

    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes, None if it is missing."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return sync(self.storage.store.getsize(self.key(name)))
        return None

    def write(self, files: Sequence[tuple[str, BufferLike]]) -> int:
        """Write files by name; return the number of bytes."""
        self.storage.run(put_each([(self.key(name), data) for name, data in files]))
        return sum(memoryview(data).nbytes for _, data in files)


@dataclass(frozen=True, eq=False)
class FileCopy(Copy):
    """The files of a folder, byte for byte.

    Parameters
    ----------
    source, target : Folder
        The folder, and where it is written.
    omitted : str, optional
        Name of a file in it that is not copied.
    """

    source: Folder
    target: Folder
    omitted: str = ""

    @property
    @override
    def knows_files(self) -> bool:
        return self.source.storage.root is not None

    @override
    def pieces(self, part: Sequence[str]) -> Iterator[Piece]:
        for name in part if self.knows_files else ():
            key = self.target.key(name)
            yield Piece(key, [key], [f"{self.source.storage.root}/{self.source.key(name)}"])

    def _names(self) -> list[str]:
        return sorted(self.source.names() - {self.omitted})

    @override
    def tasks(self, owned: Owned) -> Iterator[Task]:
        return self.in_batches(n for n in self._names() if owned.needs(self.target.key(n)))

    @override
    def copy(self, part: Sequence[str]) -> Copied:
        values = zip(part, self.source.read(part), strict=True)
        stored = [(name, value) for name, value in values if value is not None]
        return Copied(len(stored), self.target.write(stored))

    @override
    def comparisons(self) -> Iterator[Task]:
        return self.in_batches(self._names())

    @override
    def compare(self, part: Sequence[str]) -> None:
        each = zip(part, self.source.read(part), self.target.read(part), strict=True)
        for name, one, other in each:
            if one != other:
                message = f"expected {name} of {join(*map(str, self.source))}, got other bytes"
                raise N5Error(message, kind="differs", where=join(*map(str, self.target)))


def opaque_folders(found: SourceTree, target: Destination) -> dict[str, Folder]:
    """Return the nodes, by path, that can be copied without decoding."""
    if found.container is None or not isinstance(target, N5Destination):
        return {}
    return {
        path: Folder(found.container.storage, join(found.path, path))
        for path, err in found.refused.items()
        if isinstance(err, N5UnsupportedError) and err.kind == "data-type"
    }


def plan_opaque(folders: Mapping[str, Folder], target: Destination) -> list[FileCopy]:
    """Take the documents of these nodes, and return a copy of the files of each."""
    copies = []
    for path, folder in folders.items():
        (document,) = folder.read([ATTRIBUTES_JSON])
        target.add_file(join(path, ATTRIBUTES_JSON), bytes(document or b"{}"))
        written = Folder(target.storage, join(target.path, path))
        copies.append(FileCopy(folder, written, omitted=ATTRIBUTES_JSON))
    return copies
