"""Describe an array for a report: count its stored blocks and bytes, and hash its values."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import zarr

from n5zarr.arrays.boxes import boxes
from n5zarr.arrays.open_dataset import blocks_of_array
from n5zarr.arrays.placing import read_on_host
from n5zarr.arrays.stored_chunks import each_key, stored_chunks
from n5zarr.container.block_listing import n_bytes_of
from n5zarr.errors import N5Error
from n5zarr.format.path import join
from n5zarr.metadata.inspect import stored_size
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import place_of
from n5zarr.storage.requests import KeysBelow, request_each
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.keys import ChunkNames

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from zarr.types import AnyArray

    from n5zarr.arrays.boxes import BoxSlices
    from n5zarr.format.lenient_json import JSON
    from n5zarr.images.source import ArraySource
    from n5zarr.tools.jobs.run import RunOptions

__all__ = ["Side", "counted", "described", "hash_each", "name_of_type"]

_STAMPS = 2**12  # files whose sizes are requested at a time
_ANY_LENGTH = "OT"  # kinds of numpy's data types
_NO_ARRAY = "elements of any length are no plain array"
_LABELS = "the most frequent label of each voxel is hashed"


@dataclass(frozen=True, eq=False)
class Side:
    """An array at one of the locations of a report; it can be pickled for other processes.

    Parameters
    ----------
    values : Values
        Its elements, C order.
    dtype : numpy.dtype
        Data type.
    chunks : tuple of int
        Extent in elements of the best unit to read.
    blocks : N5Blocks, OpenDataset or None, optional
        The stored blocks, of a dataset of N5.
    stored : object, optional
        What lists the stored chunks, if ``values`` does not.
    is_labels : bool, optional
        Whether blocks hold label multisets.
    max_bytes : int, optional
        Bytes of elements to read at a time.
    """

    values: Any
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    blocks: Any = None
    stored: Any = None
    is_labels: bool = False
    max_bytes: int = 2**26

    @classmethod
    def of(cls, source: ArraySource) -> Self:
        """Take the array of a source."""
        labels = source.holds_multisets
        return cls(source.values, source.native_dtype, source.chunks, source.blocks, None, labels)

    @classmethod
    def of_array(cls, array: Any) -> Self:  # noqa: ANN401 - what numpy reads
        """Take an array of zarr, or another one with shape and data type."""
        blocks = blocks_of_array(array) if isinstance(array, zarr.Array) else None
        shape = tuple(array.shape)
        chunks = tuple(getattr(array, "shards", None) or getattr(array, "chunks", None) or shape)
        return cls(array, np.dtype(array.dtype), chunks, blocks)

    @property
    def n_bytes(self) -> int:
        """Bytes of all elements."""
        n_elements: int = math.prod(self.values.shape)
        return n_elements * self.dtype.itemsize

    def described(self) -> dict[str, JSON]:
        """Describe the array as a report does, without the hash."""
        n_blocks, n_stored, n_bytes = counted(self)
        return {
            "data_type": name_of_type(self.dtype),
            "blocks": n_blocks,
            "blocks_stored": n_stored,
            "bytes_stored": n_bytes,
            "sha256": None,
        }

    def hashed(self) -> dict[str, JSON]:
        """Hash the values; say why if they cannot be hashed, or what is."""
        if self.dtype.kind in _ANY_LENGTH:
            return {"note": _NO_ARRAY}
        digest = hashlib.sha256()
        for box in self._in_order():
            part = read_on_host(self.values, box)
            little = np.ascontiguousarray(part, part.dtype.newbyteorder("<"))
            digest.update(little.reshape(-1).view(np.uint8))
        note: dict[str, JSON] = {"note": _LABELS} if self.is_labels else {}
        return {"sha256": digest.hexdigest(), **note}

    def _in_order(self) -> Iterator[BoxSlices]:
        """Yield boxes whose elements follow each other in C order, of whole chunks if they fit."""
        shape, room = tuple(self.values.shape), max(1, self.max_bytes // self.dtype.itemsize)
        step = [1] * len(shape)
        for axis in reversed(range(len(shape))):
            size, chunk = max(1, shape[axis]), max(1, self.chunks[axis])
            step[axis] = size if size <= room else room - room % chunk or room
            room //= size
            if not room:
                break
        return boxes(shape, step)


def name_of_type(dtype: np.dtype[Any]) -> str:
    """Name a data type without its byte order: formats store different ones."""
    return str(dtype if dtype.kind in _ANY_LENGTH else dtype.newbyteorder("="))


def described(path: str, shape: Sequence[int], sides: Mapping[str, Side]) -> dict[str, Any]:
    """Describe a dataset, with a member for each side."""
    of_sides = {name: side.described() for name, side in sides.items()}
    return {"path": path, "shape": [*shape], "dimensions": [*reversed(shape)], **of_sides}


def counted(side: Side) -> tuple[int | None, int | None, int | None]:
    """Count the blocks, chunks or shards of the grid, those that are stored, and their bytes.

    None for what the storage does not tell.
    """
    blocks, values = side.blocks, side.values
    if blocks is not None:
        found: Any = stored_size(blocks.store, blocks.path, blocks.view)
        n_blocks = math.prod(blocks.view.dataset.grid)
        return n_blocks, found["n_blocks_stored"], found["n_bytes_stored"]
    listing = stored_chunks(values if side.stored is None else side.stored)
    if listing is None:
        return None, None, None
    n_blocks = math.prod(
        -(-n // max(1, u)) for n, u in zip(values.shape, listing.unit, strict=True)
    )
    n_stored = sum(map(len, listing.rows))
    is_zarr = isinstance(values, zarr.Array) and not isinstance(values.store, N5Store)
    return n_blocks, n_stored, _bytes_of_chunks(values) if is_zarr else None


def _bytes_of_chunks(array: AnyArray) -> int | None:
    """Count the bytes of the stored chunks or shards of an array of Zarr."""
    names, storage = ChunkNames.of(array.metadata.to_dict()), open_storage(place_of(array.store))

    def chunks(keys: Sequence[str], sizes: Sequence[int] | None) -> int | None:
        if sizes is None:
            return None
        each = zip(keys, sizes, strict=True)
        return sum(size for key, size in each if names.coords(key) is not None)

    (pages,) = storage.run(request_each([KeysBelow(array.path, chunks)]))
    if pages is not None:
        return None if None in pages else sum(pages)
    if not storage.has_stamps:
        return None
    total = 0
    for keys in each_key(array.store, array.path):
        some = [join(array.path, key) for key in keys if names.coords(key) is not None]
        total += storage.run(n_bytes_of(some))
    return total


def hash_each(
    datasets: Sequence[tuple[dict[str, Any], Mapping[str, Side]]],
    options: RunOptions,
    max_memory: int,
    *,
    keep_going: bool = False,
) -> None:
    """Hash the values of arrays, and add the hashes to their descriptions.

    Parameters
    ----------
    datasets : sequence of (dict, mapping)
        The description of each dataset, with one member for each side, and the sides to hash.
    options : RunOptions
        Where the tasks run.
    max_memory : int
        Bytes of elements that all workers together may hold.
    keep_going : bool, optional
        Whether a damaged block is a note of the dataset instead of an error.
    """
    n_sides = sum(len(sides) for _, sides in datasets)
    most = max(1, max_memory // 2 // max(1, min(options.n_at_once, n_sides)))
    tasks = {
        replace(side, max_bytes=most): described[name]
        for described, sides in datasets
        for name, side in sides.items()
    }
    total = sum(task.n_bytes for task in tasks)
    work = _hash_or_say if keep_going else Side.hashed
    for task, found in options.each(work, tasks, "hash", total):
        tasks[task].update(found)


def _hash_or_say(side: Side) -> dict[str, JSON]:
    try:
        return side.hashed()
    except N5Error as err:
        return {"note": str(err)}
