"""Describe arrays for a report: count their stored blocks and bytes, and hash their values."""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
import shutil
from dataclasses import dataclass
from tempfile import TemporaryFile, gettempdir
from typing import TYPE_CHECKING, Any

import numpy as np

from n5zarr._zarr import sync
from n5zarr.arrays.boxes import box_shape, boxes
from n5zarr.arrays.placing import read_on_host
from n5zarr.arrays.stored_chunks import each_key
from n5zarr.errors import N5Error
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.path import join
from n5zarr.store.n5_store import N5Store
from n5zarr.store.shown_store import ShownStore
from n5zarr.tools.jobs.nodes import count_blocks, name_of_type
from n5zarr.tools.jobs.run import MAX_MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from n5zarr.format.lenient_json import JSON
    from n5zarr.images.source import ArraySource
    from n5zarr.tools.jobs.run import RunOptions

_ANY_LENGTH = "OT"  # kinds of numpy's data types
_NO_ARRAY = "elements of any length are no plain array"
_LABELS = "the most frequent label of each voxel is hashed"
_BLOCK = re.compile(r"c|(?:c[/.])?[0-9]+(?:[/.][0-9]+)*")  # its key below an array


@dataclass
class RunReport:
    """What a report says of one run; see the protocol in ``tools.jobs.reports``."""

    entry: dict[str, Any]

    def add_arrays(
        self,
        arrays: Mapping[str, Mapping[str, ArraySource]],
        options: RunOptions,
        *,
        hashed: Sequence[str] = (),
        max_memory: int = MAX_MEMORY,
        keeps_going: bool = False,
    ) -> None:
        """Describe arrays, and hash the values of some sides."""
        datasets, tasks = self.entry["datasets"], {}
        datasets.clear()
        n_at_once = 2 * max(1, min(options.n_at_once, len(arrays) * len(hashed)))
        memory, disk = max_memory // n_at_once, shutil.disk_usage(gettempdir()).free // n_at_once
        for path, sides in arrays.items():
            described = {name: _described(array) for name, array in sides.items()}
            shape = next(iter(sides.values())).shape
            datasets.append({"path": path, "shape": shape, "dimensions": shape[::-1], **described})
            for name in hashed:
                tasks[_Hash(sides[name], memory, disk, keeps_going)] = described[name]
        total = sum(task.n_bytes for task in tasks)
        for task, found in options.each(_Hash.run, tasks, "hash", total):
            tasks[task].update(found)


def _described(array: ArraySource) -> dict[str, JSON]:
    n_blocks, n_stored = count_blocks(array)
    n_bytes = n_blocks and array.stored and sum(map(_n_bytes, array.stored))
    return {
        "name": array.name or None,
        "data_type": name_of_type(array.native_dtype),
        "chunks": array.chunks,
        "blocks": n_blocks,
        "blocks_stored": n_stored,
        "bytes_stored": n_bytes or (0 if n_stored == 0 else None),
        "sha256": None,
    }


def _n_bytes(stored: Any) -> int:  # noqa: ANN401 - an array of Zarr, or the blocks of N5
    """Count the bytes of the stored blocks, chunks or shards."""
    store = stored.store.storage.store if isinstance(stored.store, N5Store) else stored.store
    if isinstance(store, ShownStore):  # of another format, whose files have other sizes
        size = sync(store.getsize_prefix(stored.path))
        return size - sync(store.getsize(join(stored.path, ATTRIBUTES_JSON)))

    async def of_some(keys: Sequence[str]) -> int:
        return sum(await asyncio.gather(*(store.getsize(join(stored.path, k)) for k in keys)))

    keys = each_key(store, stored.path)
    return sum(sync(of_some([k for k in some if _BLOCK.fullmatch(k)])) for some in keys)


@dataclass(frozen=True, eq=False)
class _Hash:
    """Hash the values of an array; it can be pickled for other processes."""

    array: ArraySource
    max_bytes: int
    max_on_disk: int
    keeps_going: bool

    @property
    def n_bytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.array.shape) * self.array.item_size

    def run(self) -> dict[str, JSON]:
        """Return the hash, or why there is none."""
        if self.array.native_dtype.kind in _ANY_LENGTH:
            return {"note": _NO_ARRAY}
        digest = hashlib.sha256()
        try:
            for part in self._in_order():
                digest.update(part.reshape(-1).view(np.uint8))
        except N5Error as err:
            if not self.keeps_going:
                raise
            return {"note": str(err)}
        note = _LABELS if self.array.holds_multisets else None
        return {"sha256": digest.hexdigest(), "note": note}

    def _in_order(self) -> Iterator[np.ndarray]:
        """Yield all values in C order, little-endian.

        Blocks are decoded once: layers of them that memory does not hold are put together in a
        temporary file. If that has no room, either, blocks are decoded for each part of a layer.
        """
        shape, size = self.array.shape, self.array.item_size
        room, dtype = max(1, self.max_bytes // size), self.array.native_dtype.newbyteorder("<")
        units = [max(1, min(n, own)) for n, own in zip(shape, self.array.chunks, strict=True)]
        step = box_shape(shape, units, shape, room)
        first = next((axis for axis, n in enumerate(step) if n > 1), 0)
        layer = (*step[: first + 1], *shape[first + 1 :])
        if math.prod(step) > room or math.prod(layer) * size > self.max_on_disk:
            layer = step = box_shape(shape, [1] * len(shape), shape, room)
        for slab in boxes(shape, layer):
            if layer == step:
                yield np.ascontiguousarray(read_on_host(self.array.values, slab), dtype)
                continue
            with TemporaryFile() as file:  # stays until its memory is free
                extent = tuple(part.stop - part.start for part in slab)
                whole = np.memmap(file, dtype, "w+", shape=extent)
            for box in boxes(extent, step):
                each = zip(slab, box, strict=True)
                place = tuple(slice(s.start + p.start, s.start + p.stop) for s, p in each)
                whole[box] = read_on_host(self.array.values, place)
            yield whole
