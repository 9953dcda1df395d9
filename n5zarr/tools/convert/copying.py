"""Copy arrays: a class for each way splits an array into tasks, copies parts and compares them.

:func:`copy_of` chooses the fastest possible way:

- :class:`BlockCopy`: N5 to N5 with the same blocks: copies each file unchanged, or compresses it
  again;
- :class:`ChunkCopy`: chunks and codecs are the same: copies payloads unchanged; those of blocks
  are a :class:`PayloadCopy`, which compares them without zarr;
- :class:`ShardCopy`: the same inside the shards to write: joins payloads;
- that of label multisets of N5 to other blocks, with all labels and counts, which a room adds;
- :class:`ValueCopy`: decodes and encodes boxes of whole units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import groupby, product
from typing import ClassVar, override

import numpy as np
from zarr.types import AnyArray

from n5zarr.arrays.boxes import BoxSlices, boxes, places_in
from n5zarr.arrays.encoder import join_shard
from n5zarr.arrays.placing import read_on_host
from n5zarr.arrays.stored_chunks import stored_boxes
from n5zarr.codecs.block import format_block, parse_block
from n5zarr.codecs.buffers import BufferLike
from n5zarr.codecs.compress import codec_of
from n5zarr.codecs.shard import check_no_shard
from n5zarr.errors import ErrorsAt, N5Error
from n5zarr.format.grid import block_path
from n5zarr.format.order import N5Tuple
from n5zarr.images.source import ArraySource, N5Blocks, read_blocks
from n5zarr.images.zarr_documents import read_chunks
from n5zarr.rooms import Door
from n5zarr.tools.convert.copies import (
    BATCH,
    ArrayCopy,
    Copied,
    CopyTask,
    FileCopy,
    Folder,
    TaskSize,
    Way,
    is_same,
)
from n5zarr.tools.convert.target import ArrayTarget, ZarrTarget
from n5zarr.tools.convert.target_n5 import N5Target
from n5zarr.tools.jobs.incomplete import Piece
from n5zarr.tools.jobs.parts import Owned
from n5zarr.tools.jobs.run import SMALL
from n5zarr.zarr_view.element import Content

_MULTISET_COPY: Door[Callable[[ArraySource, N5Target, TaskSize, N5Blocks], ArrayCopy]] = Door(
    "step", "copy label multisets"
)


def copy_of(source: ArraySource, target: ArrayTarget, size: TaskSize) -> ArrayCopy:
    """Choose how an array is copied: which of its stored bytes can be passed through.

    Parameters
    ----------
    source, target : ArraySource, ArrayTarget
        The array, and the one to write.
    size : TaskSize
        Bytes of the elements of a task.
    """
    if isinstance(target, N5Target) and source.blocks is not None:
        if target.array.chunks == source.chunks:
            return BlockCopy(source, target, size, source.blocks)
        if source.holds_multisets and target.blocks.view.content is Content.LABELS:
            return _MULTISET_COPY.needed()(source, target, size, source.blocks)
    elif source.encoded is not None and source.shape:
        written = target.encoded
        if _has_equal_chunks(written, source.encoded):
            if written.shards is not None:
                return ShardCopy(source, target, size)
            if source.blocks is not None and isinstance(target, ZarrTarget):
                return PayloadCopy(source, target, size, source.blocks)
            return ChunkCopy(source, target, size)
    return ValueCopy(source, target, size)


def _has_equal_chunks(one: AnyArray, other: AnyArray) -> bool:
    """Whether chunks of two arrays with the same elements have the same bytes."""
    first, second = one.metadata, other.metadata
    if first.zarr_format != second.zarr_format or one.chunks != other.chunks:
        return False
    of_v2, of_v3 = ("dtype", "order", "filters", "compressor"), ("data_type", "inner_codecs")
    names = of_v2 if first.zarr_format == 2 else of_v3
    is_alike = all(getattr(first, name) == getattr(second, name) for name in names)
    zero = one.dtype.type(0) if one.dtype.kind in "buif" else None  # Zarr v2 may state none
    filled = [zero if each.fill_value is None else each.fill_value for each in (one, other)]
    return is_alike and len({*map(str, filled)}) == 1


class ValueCopy(ArrayCopy):
    """Decodes and encodes boxes of whole units."""

    way: ClassVar[Way] = "values"

    @override
    def tasks(self, owned: Owned) -> Iterator[CopyTask]:
        """Yield a task for each box to read; those without a stored chunk hold the fill value only.

        Its part is the box, the boxes to write, and the number of their units.
        """
        steps = self.steps(self.size.most)
        touched = stored_boxes(self.source.shape, steps, [self.source.values])
        for box in boxes(self.source.shape, steps[0]) if touched is None else touched:
            units = list(product(*places_in(box, self.target.unit)))
            missing = units
            if not owned.is_all:
                keys = list(map(self.target.key, units))
                if not owned.owns(keys[0]):  # no two parts read the same box
                    continue
                missing = [u for u, k in zip(units, keys, strict=True) if k not in owned.written]
            if missing:
                parts = [box] if len(missing) == len(units) else list(map(self.box_of, missing))
                yield CopyTask(self, (box, parts, len(missing)), self.n_bytes_in(box))

    @override
    def pieces(self, part: tuple[BoxSlices, list[BoxSlices], int]) -> Iterator[Piece]:
        if self.files is not None:
            keys = list(map(self.target.key, product(*places_in(part[0], self.target.unit))))
            yield Piece(f"{keys[0]} {keys[-1]}", keys, self.files.behind(part[0]), keys[0])

    @override
    def compare_copied(self, part: tuple[BoxSlices, list[BoxSlices], int]) -> None:
        for box in part[1]:
            self.compare(box)

    @override
    def copy(self, part: tuple[BoxSlices, list[BoxSlices], int]) -> Copied:
        box, written, n_units = part
        values, n_bytes = read_on_host(self.source.values, box), 0
        for each in written:
            ends = zip(each, box, strict=True)
            inner = tuple(slice(p.start - s.start, p.stop - s.start) for p, s in ends)
            n_bytes += self.target.write(each, values[inner])
        return Copied(n_units, n_bytes)


class ChunkCopy(ArrayCopy):
    """Passes encoded chunks through."""

    way: ClassVar[Way] = "chunks"
    n_together: ClassVar[int] = BATCH  # units of one task

    @property
    @override
    def is_light(self) -> bool:
        return self.n_bytes_of_unit <= SMALL

    @override
    def tasks(self, owned: Owned) -> Iterator[CopyTask]:
        units = self.units()
        if not owned.is_all:
            units = (unit for unit in units if owned.needs(self.target.key(unit)))
        return self.in_batches(units, self.n_together)

    @override
    def compare_copied(self, part: Sequence[tuple[int, ...]]) -> None:
        for position in part:
            self.compare(self.box_of(position))

    @override
    def copy(self, part: Sequence[tuple[int, ...]]) -> Copied:
        values = zip(part, self.read(part), strict=True)
        present = [(position, value) for position, value in values if value is not None]
        return Copied(len(present), self.target.put(present))

    def read(self, positions: Sequence[tuple[int, ...]]) -> list[BufferLike | None]:
        """Read the units to write, encoded; None for each missing one."""
        return read_chunks(self.source, positions)


class ShardCopy(ChunkCopy):
    """Joins encoded chunks into shards."""

    way: ClassVar[Way] = "shards"
    n_together = 1

    @override
    def read(self, positions: Sequence[tuple[int, ...]]) -> list[BufferLike | None]:
        return list(map(self._shard, positions))

    def _shard(self, position: tuple[int, ...]) -> BufferLike | None:
        chunks, shape = self.source.chunks, self.source.shape
        each = zip(position, self.target.unit, chunks, shape, strict=True)
        # first chunk, the one behind the last, and that of the array: shards may extend beyond it
        ends = [(p * (u // c), (p + 1) * (u // c), -(-n // c)) for p, u, c, n in each]
        inside = list(product(*(range(first, min(stop, end)) for first, stop, end in ends)))
        values = dict(zip(inside, super().read(inside), strict=True))
        return join_shard(list(map(values.get, product(*(range(*each[:2]) for each in ends)))))


@dataclass(frozen=True, eq=False)
class PayloadCopy(ChunkCopy):
    """Passes payloads of N5 blocks through, as chunks of Zarr.

    Parameters
    ----------
    blocks : N5Blocks
        The blocks of the source.
    """

    target: ZarrTarget
    blocks: N5Blocks

    @override
    def comparisons(self) -> Iterator[CopyTask]:
        """Yield the units that either side may have; both have one fill value."""
        sides = [self.source.values, self.target]
        touched = stored_boxes(self.source.shape, [self.target.unit], sides)
        units = product(*map(range, self.grid)) if touched is None else touched.positions()
        return self.in_batches(units)

    @override
    def compare_copied(self, part: Sequence[tuple[int, ...]]) -> None:
        self.compare(part)

    @override
    def compare(self, part: Sequence[tuple[int, ...]]) -> None:
        """Compare what is stored; and values, where that differs or cannot be decoded."""
        for position, one, other in zip(part, self.read(part), self.target.read(part), strict=True):
            if one != other or not self._is_sound(one):
                super().compare(self.box_of(position))

    def _is_sound(self, chunk: BufferLike | None) -> bool:
        """Whether a chunk can be decoded; a missing one holds the fill value."""
        compression = self.blocks.compression
        with suppress(N5Error):
            if chunk is not None:
                decompress = codec_of(compression).decompress
                decompress(memoryview(chunk), self.n_bytes_of_unit, compression)
            return True
        return False


@dataclass(frozen=True, eq=False)
class BlockCopy(ArrayCopy):
    """Copies stored blocks; compresses them again if the compression differs.

    Parameters
    ----------
    blocks : N5Blocks
        The blocks of the source.
    """

    way: ClassVar[Way] = "blocks"
    target: N5Target
    blocks: N5Blocks

    @property
    @override
    def passes_files(self) -> bool:
        return self.target.compression == self.blocks.compression

    @property
    @override
    def is_light(self) -> bool:
        return self.passes_files and self.n_bytes_of_unit <= SMALL

    @property
    def _folders(self) -> tuple[Folder, Folder]:
        return _folder(self.blocks), _folder(self.target.blocks)

    @override
    def tasks(self, owned: Owned) -> Iterator[CopyTask]:
        key, positions = self._folders[1].key, self.blocks.positions()
        if not owned.is_all:
            positions = (p for p in positions if owned.needs(key(block_path(p))))
        return self.in_batches(positions)

    @override
    def pieces(self, part: Sequence[N5Tuple]) -> Iterator[Piece]:
        source, target = self._folders
        return FileCopy(source, target).pieces(list(map(block_path, part)))

    @override
    def copy(self, part: Sequence[N5Tuple]) -> Copied:
        _, target = self._folders
        values = zip(part, read_blocks([(self.blocks, p) for p in part]), strict=True)
        stored = [(block_path(p), self._written(p, v)) for p, v in values if v is not None]
        return Copied(len(stored), target.write(stored))

    def _written(self, position: N5Tuple, stored: BufferLike) -> BufferLike:
        """Return a block as it is written; raise if it is a shard, which the copy would not say."""
        dataset = self.blocks.view.dataset
        chunks = self.blocks.store.container.chunks
        with ErrorsAt(partial(chunks.block_name, self.blocks.path, position)):
            check_no_shard(memoryview(stored), dataset.data_type, dataset.compression)
            if self.passes_files:
                return stored
            block = parse_block(stored, dataset.ndim, dataset.data_type, dataset.compression)
            return format_block(block, dataset.data_type, self.target.compression)

    @override
    def comparisons(self) -> Iterator[CopyTask]:
        both = merge(self.blocks.positions(), self.target.blocks.positions())
        return self.in_batches(position for position, _ in groupby(both))

    @override
    def compare(self, part: Sequence[N5Tuple]) -> None:
        """Compare headers and elements of blocks, which need not be those of an array."""
        names = list(map(block_path, part))
        each = (folder.read(names) for folder in self._folders)
        for name, one, other in zip(names, *each, strict=True):
            if one != other and (one is None or other is None or self._differ(one, other)):
                raise self.differing(f"block {name}")

    def _differ(self, one: BufferLike, other: BufferLike) -> bool:
        dataset = self.blocks.view.dataset
        first, second = (
            parse_block(block, dataset.ndim, dataset.data_type, compression)
            for block, compression in ((one, dataset.compression), (other, self.target.compression))
        )
        same_data = is_same(np.asarray(first.data), np.asarray(second.data))
        return first.header != second.header or not same_data


def _folder(blocks: N5Blocks) -> Folder:
    return Folder(blocks.store.storage, blocks.path)
