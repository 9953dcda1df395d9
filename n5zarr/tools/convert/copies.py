"""Define copies: how each is split into tasks, copied and compared; and copies of files.

Blocks of ``object`` are opaque bytes, not arrays: the files of such datasets are copied unchanged.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import batched, chain, islice, product
from typing import Any, ClassVar, Literal, NamedTuple, Self, override

import numpy as np

from n5zarr._zarr import sync
from n5zarr.arrays.boxes import BoxSlices, box_at, box_shape, boxes, least_box, touched_boxes
from n5zarr.arrays.placing import read_on_host
from n5zarr.arrays.stored_chunks import FEW, stored_boxes, stored_chunks
from n5zarr.codecs.buffers import BufferLike
from n5zarr.errors import N5Error, N5UnsupportedError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.path import join
from n5zarr.images.source import ArraySource, SourceTree
from n5zarr.storage.interface import Storage
from n5zarr.storage.requests import get_each, put_each
from n5zarr.tools.convert.source_files import SourceFiles
from n5zarr.tools.convert.target import ArrayTarget, Destination
from n5zarr.tools.convert.target_n5 import N5Destination
from n5zarr.tools.jobs.incomplete import Piece, keys_below
from n5zarr.tools.jobs.parts import Owned

type Way = Literal["blocks", "chunks", "shards", "values"]

BATCH = 64
"""Files of one task, at most."""

_SHARE = 2**22  # bytes: tasks for all workers, whose elements stay near to a core


class Copied(NamedTuple):
    """The chunks, shards or blocks that were written, and their bytes: 0 where zarr writes."""

    n_units: int = 0
    n_bytes: int = 0


class CopyTask(NamedTuple):
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
    def tasks(self, owned: Owned) -> Iterator[CopyTask]:
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
    def comparisons(self) -> Iterator[CopyTask]:
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

    def in_batches(self, units: Iterable[object], n: int = BATCH) -> Iterator[CopyTask]:
        """Yield tasks of a few units each."""
        for batch in batched(units, n):
            yield CopyTask(self, batch, len(batch) * self.n_bytes_of_unit)


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
    def tasks(self, owned: Owned) -> Iterator[CopyTask]:
        return self.in_batches(n for n in self._names() if owned.needs(self.target.key(n)))

    @override
    def copy(self, part: Sequence[str]) -> Copied:
        values = zip(part, self.source.read(part), strict=True)
        stored = [(name, value) for name, value in values if value is not None]
        return Copied(len(stored), self.target.write(stored))

    @override
    def comparisons(self) -> Iterator[CopyTask]:
        return self.in_batches(self._names())

    @override
    def compare(self, part: Sequence[str]) -> None:
        each = zip(part, self.source.read(part), self.target.read(part), strict=True)
        for name, one, other in each:
            if one != other:
                message = f"expected {name} of {join(*map(str, self.source))}, got other bytes"
                raise N5Error(message, kind="differs", where=join(*map(str, self.target)))


@dataclass(frozen=True, eq=False)
class ArrayCopy(Copy):
    """An array and its destination; see :mod:`n5zarr.tools.convert.copying`.

    Parameters
    ----------
    source, target : ArraySource, ArrayTarget
        The array, and the one to write.
    size : TaskSize
        Bytes of the elements of a task.
    """

    way: ClassVar[Way]
    source: ArraySource
    target: ArrayTarget
    size: TaskSize

    @property
    @override
    def n_bytes(self) -> int:
        return math.prod(self.source.shape) * self.source.item_size

    @property
    @override
    def n_bytes_of_unit(self) -> int:
        return math.prod(self.target.unit) * self.source.item_size

    @property
    def passes_files(self) -> bool:
        """Whether no block of N5 is decoded or encoded."""
        return False

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of units along each axis, C order."""
        return tuple(-(-n // u) for n, u in zip(self.source.shape, self.target.unit, strict=True))

    def units(self) -> Iterable[tuple[int, ...]]:
        """Return the positions of all units that may exist, C order; of large arrays not sorted."""
        listing = None if math.prod(self.grid) <= FEW else stored_chunks(self.source.values)
        if listing is None:
            return product(*map(range, self.grid))
        if tuple(listing.unit) == self.target.unit:
            return (tuple(row) for rows in listing.rows for row in rows.tolist())
        return touched_boxes(self.source.shape, [self.target.unit], [listing]).positions()

    def box_of(self, position: Sequence[int]) -> BoxSlices:
        """Return the place of a unit in the array, in elements."""
        return box_at(position, self.target.unit, self.source.shape)

    @cached_property
    def files(self) -> SourceFiles | None:
        """The local files of the chunks of the source, if it has some."""
        return SourceFiles.of(self.source)

    @property
    @override
    def knows_files(self) -> bool:
        return self.files is not None

    @override
    def pieces(self, part: Any) -> Iterator[Piece]:
        files = self.files
        for key, box in ((self.target.key(p), self.box_of(p)) for p in part) if files else ():
            yield Piece(key, [key], files.behind(box) if files else [])

    @override
    def in_batches(self, units: Iterable[object], n: int = BATCH) -> Iterator[CopyTask]:
        return super().in_batches(units, max(1, min(n, self.size.usual // self.n_bytes_of_unit)))

    def steps(self, max_bytes: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the extent of the boxes to read, if most chunks are stored, and if few are."""
        sizes = self.source.shape, self.target.unit, self.source.chunks
        # in such a box no chunk is cut, and none is decoded twice
        each = zip(*sizes, strict=True)
        whole = (min(math.lcm(unit, chunk), -(-n // unit) * unit) for n, unit, chunk in each)
        item_size = self.source.item_size
        n_bytes = min(max_bytes, max(self.size.usual, math.prod(whole) * item_size))
        return box_shape(*sizes, max(1, n_bytes // item_size)), least_box(*sizes)

    def n_bytes_in(self, box: BoxSlices) -> int:
        """Return the bytes of the elements of a box."""
        n_elements: int = math.prod(s.stop - s.start for s in box)
        return n_elements * self.source.item_size

    @override
    def comparisons(self) -> Iterator[CopyTask]:
        shape, steps = self.source.shape, self.steps(self.size.most // 2)
        touched = stored_boxes(shape, steps, [self.source.values, self.target])
        compared: Iterable[BoxSlices] = boxes(shape, steps[0])
        if touched is not None:
            # one element stands for all that neither side stores
            others = (tuple(slice(p.start, p.start + 1) for p in box) for box in touched.others())
            compared = chain(touched, islice(others, 1))
        return (CopyTask(self, box, self.n_bytes_in(box)) for box in compared)

    @override
    def compare(self, part: Any) -> None:
        one = read_on_host(self.source.values, part)
        if not is_same(one, read_on_host(self.target.readable, part)):
            raise self.differing(f"[{', '.join(f'{s.start}:{s.stop}' for s in part)}]")

    def differing(self, where: str) -> N5Error:
        """Make the error of a part with other values."""
        message = f"expected the values of {self.source.name}, got others in {where}"
        return N5Error(message, kind="differs", where=f"{self.target.array.store_path}")


def is_same(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether all elements are equal, bit for bit where they are numbers."""
    if one.shape != other.shape:
        return False
    if one.dtype.kind in "OTUSVmM" or other.dtype.kind in "OTUSVmM":
        return bool(one.tolist() == other.tolist())
    first, second = (np.ascontiguousarray(x, one.dtype.newbyteorder("=")) for x in (one, other))
    return bool(first.tobytes() == second.tobytes())


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
