"""Copy arrays: choose the way of each array, split it into tasks, and run a task.

There are four ways; the fastest possible one is chosen:

- ``"blocks"``: N5 to N5 with the same blocks: copies each file unchanged, or compresses it again;
- ``"chunks"``: chunks and codecs are the same: copies payloads unchanged;
- ``"shards"``: the same inside the shards to write: joins payloads;
- ``"values"``: decodes and encodes boxes of whole units.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from functools import partial
from itertools import batched, product
from operator import add, lt
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from zarr.buffer import cpu

from n5zarr._zarr_private import sync
from n5zarr.codecs.block import format_block, parse_block
from n5zarr.codecs.shard import check_no_shard
from n5zarr.errors import ErrorsAt
from n5zarr.format.grid import block_path
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import join
from n5zarr.storage.requests import get_each, put_each
from n5zarr.tools.convert.encoder import Encoder
from n5zarr.tools.convert.shards import join_shard
from n5zarr.tools.convert.target_n5 import N5Target
from n5zarr.tools.jobs.boxes import box_shape, boxes, least_box, touched_boxes
from n5zarr.tools.jobs.stored import FEW, stored_boxes, stored_chunks
from n5zarr.zarr_view.chunks import chunk_slice, decode_chunk
from n5zarr.zarr_view.keys import ChunkNames

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from zarr.abc.store import Store

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.tools.convert.source import ArraySource, N5Blocks
    from n5zarr.tools.convert.target import ArrayTarget
    from n5zarr.tools.jobs.boxes import Box

__all__ = ["ArrayCopy", "Copied", "Way", "encode_unit", "is_encodable"]

type Way = Literal["blocks", "chunks", "shards", "values"]

_BATCH = 64  # blocks or chunks of one task
_AT_ONCE = 64  # requests to a server


class Copied(NamedTuple):
    """The result of a task.

    Parameters
    ----------
    number : int
        Number of the array.
    n_units : int
        Units written: chunks, shards or blocks.
    n_bytes : int
        Bytes written; 0 where zarr writes.
    n_done : int
        Bytes of elements that are finished.
    """

    number: int
    n_units: int
    n_bytes: int
    n_done: int


@dataclass(frozen=True, eq=False)
class ArrayCopy:
    """An array and its destination; can be pickled for other processes.

    Parameters
    ----------
    number : int
        Number of the array in the run.
    source, target : ArraySource, ArrayTarget
        The array, and the one to write.
    way : {"blocks", "chunks", "shards", "values"}
        The way to copy.
    max_bytes : int
        Largest number of bytes of elements in a task.
    """

    number: int
    source: ArraySource
    target: ArrayTarget
    way: Way
    max_bytes: int

    @property
    def n_bytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.source.shape) * self.source.item_size

    @property
    def n_units(self) -> int:
        """Units of the array that is written: chunks, or shards."""
        return math.prod(self.grid)

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of units along each axis, C order."""
        return tuple(-(-n // u) for n, u in zip(self.source.shape, self.target.unit, strict=True))

    def tasks(self, done: set[str]) -> Iterator[_Task]:
        """Yield the tasks of the array.

        Parameters
        ----------
        done : set of str
            Keys that an interrupted run has written.
        """
        match self.way:
            case "blocks":
                for blocks in batched(self._blocks(done), _BATCH):
                    yield _Task(self, blocks)
            case "chunks" | "shards":
                for batch in batched(self._positions(done), _BATCH if self.way == "chunks" else 1):
                    yield _Task(self, batch)
            case "values":
                yield from self._boxes_to_do(done)

    def _boxes_to_do(self, done: set[str]) -> Iterator[_Task]:
        for box in self._boxes():
            units = self._units_in(box)
            missing = [position for position in units if self.target.key(position) not in done]
            if missing:
                yield _Task(self, tuple(missing), box, n_units=len(units))

    def _blocks(self, done: set[str]) -> Iterator[N5Tuple]:
        assert self.source.blocks is not None  # noqa: S101 - of this way
        for position in self.source.blocks.positions():
            if join(self.target.path, block_path(position)) not in done:
                yield position

    def _positions(self, done: set[str]) -> Iterator[tuple[int, ...]]:
        """Yield the positions of the units that may exist and are not done."""
        return (position for position in self.units() if self.target.key(position) not in done)

    def units(self) -> Iterator[tuple[int, ...]]:
        """Yield the positions of all units that may exist, C order; of large arrays not sorted."""
        listing = None if self.n_units <= FEW else stored_chunks(self.source.values)
        if listing is None:
            yield from product(*map(range, self.grid))
        elif self.way == "chunks":
            for rows in listing.rows:
                yield from map(tuple, rows.tolist())
        else:
            touched = touched_boxes(self.source.shape, [self.target.unit], [listing])
            yield from map(tuple, touched.places.tolist())

    def _boxes(self) -> Iterator[Box]:
        """Yield the boxes to read; those without a stored chunk hold the fill value only."""
        step = self.step
        touched = stored_boxes(self.source.shape, [step, self.least_step], [self.source.values])
        return boxes(self.source.shape, step) if touched is None else iter(touched)

    @property
    def step(self) -> tuple[int, ...]:
        """Extent of the boxes to read, if most chunks are stored."""
        max_elements = max(1, self.max_bytes // self.source.item_size)
        return box_shape(self.source.shape, self.target.unit, self.source.chunks, max_elements)

    @property
    def least_step(self) -> tuple[int, ...]:
        """Extent of the boxes to read, if few chunks are."""
        return least_box(self.source.shape, self.target.unit, self.source.chunks)

    def _units_in(self, box: Box) -> list[tuple[int, ...]]:
        unit = self.target.unit
        return list(
            product(*(range(s.start // u, -(-s.stop // u)) for s, u in zip(box, unit, strict=True)))
        )


@dataclass(frozen=True, eq=False)
class _Task:
    """A part of an array, see :class:`ArrayCopy`."""

    copy: ArrayCopy
    positions: tuple[tuple[int, ...], ...]
    box: Box | None = None
    n_units: int = 0

    def run(self) -> Copied:
        copy = self.copy
        if self.box is not None:
            return self._copy_values(self.box)
        if copy.way == "blocks":
            n_units, n_bytes = _copy_blocks(copy, list(map(N5Tuple, self.positions)))
        elif copy.way == "chunks":
            n_units, n_bytes = _copy_chunks(copy, self.positions)
        else:
            n_units, n_bytes = _copy_shard(copy, self.positions[0])
        unit = math.prod(copy.target.unit) * copy.source.item_size
        return Copied(copy.number, n_units, n_bytes, len(self.positions) * unit)

    def _copy_values(self, box: Box) -> Copied:
        """Decode and encode a box; only its missing units."""
        copy, unit = self.copy, self.copy.target.unit
        values = np.asarray(copy.source.values[box])
        n_bytes = 0
        if len(self.positions) == self.n_units:
            n_bytes += copy.target.write(box, values)
        else:
            for position in self.positions:
                part = tuple(
                    slice(max(p * u, s.start), min((p + 1) * u, s.stop))
                    for p, u, s in zip(position, unit, box, strict=True)
                )
                inner = tuple(
                    slice(p.start - s.start, p.stop - s.start)
                    for p, s in zip(part, box, strict=True)
                )
                n_bytes += copy.target.write(part, values[inner])
        return Copied(copy.number, len(self.positions), n_bytes, values.nbytes)


def is_encodable(copy: ArrayCopy) -> bool:
    """Whether :func:`encode_unit` can make the chunks of an array."""
    return copy.way == "chunks" or Encoder.of(copy.target.array) is not None


def encode_unit(copy: ArrayCopy, position: tuple[int, ...]) -> BufferLike | None:
    """Make one chunk as a conversion would write it, without writing it.

    Parameters
    ----------
    copy : ArrayCopy
        The array, and the one it would be copied to.
    position : tuple of int
        Position of the chunk in the grid, C order.

    Returns
    -------
    bytes-like or None
        The encoded chunk; None if it would not be written, as it holds the fill value only.
    """
    if copy.way == "chunks":
        return _chunks(copy, [position])[0]
    encoder = Encoder.of(copy.target.array)
    assert encoder is not None  # noqa: S101 - see `is_encodable`
    each = zip(position, copy.target.unit, copy.source.shape, strict=True)
    box = tuple(slice(p * unit, min((p + 1) * unit, n)) for p, unit, n in each)
    units = encoder.units(box, np.asarray(copy.source.values[box]))
    return next((data for _, data in units), None)


def run_task(task: _Task) -> Copied:
    """Do a task."""
    return task.run()


def _copy_chunks(copy: ArrayCopy, positions: Sequence[tuple[int, ...]]) -> tuple[int, int]:
    values = _chunks(copy, positions)
    present = [(p, v) for p, v in zip(positions, values, strict=True) if v is not None]
    return len(present), copy.target.put(present)


def _copy_shard(copy: ArrayCopy, position: tuple[int, ...]) -> tuple[int, int]:
    chunks, shape = copy.source.chunks, copy.source.shape
    per_unit = [u // c for u, c in zip(copy.target.unit, chunks, strict=True)]
    n_chunks = [-(-n // c) for n, c in zip(shape, chunks, strict=True)]
    first = [p * n for p, n in zip(position, per_unit, strict=True)]
    inner = [tuple(map(add, first, each)) for each in product(*map(range, per_unit))]
    inside = [p for p in inner if all(map(lt, p, n_chunks))]  # shards may extend beyond the array
    values = dict(zip(inside, _chunks(copy, inside), strict=True))
    shard = join_shard([values.get(p) for p in inner])
    return (0, 0) if shard is None else (1, copy.target.put([(position, shard)]))


def _chunks(copy: ArrayCopy, positions: Sequence[tuple[int, ...]]) -> list[BufferLike | None]:
    """Read encoded chunks, many at a time from a server; make those of truncated blocks."""
    encoded, blocks = copy.source.encoded, copy.source.blocks
    assert encoded is not None  # noqa: S101 - of this way
    encoder = Encoder.of(encoded)
    if blocks is not None and encoder is not None:
        return _chunks_of_blocks(blocks, encoder, positions)
    names = ChunkNames.of(encoded.metadata.to_dict())
    return sync(_get_each(encoded.store, [names.key(encoded.path, p) for p in positions]))


def _chunks_of_blocks(
    blocks: N5Blocks, encoder: Encoder, positions: Sequence[tuple[int, ...]]
) -> list[BufferLike | None]:
    """Extract chunks from blocks; encode chunks that are not a part of their block."""
    view, chunks = blocks.view, blocks.store.container.chunks
    in_grid = list(map(view.grid_position, positions))
    keys = [join(blocks.path, block_path(position)) for position in in_grid]
    found: list[BufferLike | None] = []
    values = blocks.store.storage.run(get_each(keys))
    for position, value in zip(in_grid, values, strict=True):
        if value is None:
            found.append(None)
            continue
        block = memoryview(value)
        with ErrorsAt(partial(chunks.block_name, blocks.path, position)):
            part = chunk_slice(block, view)
            if part is None:
                found.append(encoder.chunk(decode_chunk(block, view, position)))
            else:
                found.append(block[part])
    return found


async def _get_each(store: Store, keys: Sequence[str]) -> list[BufferLike | None]:
    limit = asyncio.Semaphore(_AT_ONCE)

    async def get(key: str) -> BufferLike | None:
        async with limit:
            value = await store.get(key, cpu.buffer_prototype)
        return None if value is None else value.as_numpy_array().data

    return list(await asyncio.gather(*map(get, keys)))


def _check_no_shard(blocks: N5Blocks, position: N5Tuple, value: BufferLike | None) -> None:
    """Raise if a stored block is a shard of Java N5 4, which the copy would not say either."""
    dataset = blocks.view.dataset
    with ErrorsAt(partial(blocks.store.container.chunks.block_name, blocks.path, position)):
        if value is not None:
            check_no_shard(memoryview(value), dataset.data_type, dataset.compression)


def _copy_blocks(copy: ArrayCopy, positions: Sequence[N5Tuple]) -> tuple[int, int]:
    """Copy stored blocks; compress them again if the compression differs."""
    blocks, target = copy.source.blocks, copy.target
    assert blocks is not None  # noqa: S101 - of this way
    assert isinstance(target, N5Target)  # noqa: S101 - of this way
    names = list(map(block_path, positions))
    keys = [join(blocks.path, name) for name in names]
    values = blocks.store.storage.run(get_each(keys))
    stored = [(n, v) for n, v in zip(names, values, strict=True) if v is not None]
    for position, value in zip(positions, values, strict=True):
        _check_no_shard(blocks, position, value)
    new = target.compression
    if new != blocks.compression:
        view, old = blocks.view.dataset, blocks.compression
        decode = partial(parse_block, ndim=view.ndim, data_type=view.data_type, compression=old)
        stored = [(n, format_block(decode(v), view.data_type, new)) for n, v in stored]
    puts = put_each((join(target.path, name), value) for name, value in stored)
    target.shown.storage.run(puts)
    return len(stored), sum(memoryview(value).nbytes for _, value in stored)
