"""Find the blocks inside of shards of Java N5 4, as flows of requests.

Java, n5 commit 7ba6b144: ``shard/Nesting.java`` and ``shard/DefaultDatasetAccess.java``. A file
lies at its position in the grid of shards, ``ceil(dimension / shard)``, x first. A block inside is
an ordinary one, or elements without a header: ``codec/RawBlockCodecs.java``, always full-size.
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import batched, product
from operator import floordiv, lt, mod, mul
from typing import TYPE_CHECKING, NamedTuple

from n5zarr.codecs.raw import stream_name
from n5zarr.codecs.shard import Shard, most_index_bytes, shard_with
from n5zarr.errors import N5BlockError, N5Error
from n5zarr.format.attributes import (
    ATTRIBUTES_JSON,
    DatasetAttributes,
    parse_attributes,
    shard_codec,
)
from n5zarr.format.block import BlockHeader, BlockMode
from n5zarr.format.compression import Raw, compression_to_json
from n5zarr.format.data_type import DataType
from n5zarr.format.grid import block_path, is_block_name, parse_block_path
from n5zarr.format.lenient_json import JSON, parse_json
from n5zarr.format.order import CTuple, N5Tuple, to_c, to_n5
from n5zarr.format.path import join
from n5zarr.storage.requests import Ends, Entry, Get, List, Steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


__all__ = ["BlockPlace", "ShardedDataset", "Shards"]

_MANY = 1024  # indices that are remembered
_AT_ONCE = 64  # files in one batch of requests


class BlockPlace(NamedTuple):
    """Where a block is: bytes of a shard, behind a header that the shard lacks."""

    key: str
    offset: int
    length: int
    header: bytes


@dataclass(frozen=True, slots=True)
class ShardedDataset:
    """A dataset of shards.

    Parameters
    ----------
    path : str
        Its path.
    document : bytes
        The ``attributes.json`` that describes the blocks inside of the shards.
    dataset : DatasetAttributes
        The same, parsed.
    per_shard : tuple of int
        Number of blocks in a shard along each axis, N5 order.
    header : bytes
        The header that blocks lack; empty if they have one.
    """

    path: str
    document: bytes
    dataset: DatasetAttributes
    per_shard: N5Tuple
    header: bytes = b""

    @property
    def n(self) -> int:
        """Number of blocks in a shard."""
        return math.prod(self.per_shard)

    @property
    def grid(self) -> N5Tuple:
        """Number of shards along each axis."""
        return N5Tuple(
            tuple(-(-n // g) for n, g in zip(self.dataset.grid, self.per_shard, strict=True))
        )

    def positions(self, shard: N5Tuple) -> Iterator[N5Tuple]:
        """Yield the grid positions of the blocks in a shard, x fastest, N5 order."""
        first = tuple(map(mul, shard, self.per_shard))
        for inner in product(*map(range, to_c(self.per_shard))):
            yield N5Tuple(tuple(f + i for f, i in zip(first, to_n5(inner), strict=True)))


@dataclass
class Shards:
    """The datasets of shards in a container.

    Parameters
    ----------
    name : str
        Name of the container, for messages.
    sizes : tuple of int
        Extent of a shard in elements, C order, for all datasets of as many dimensions; one number
        for all axes of all datasets.
    """

    name: str
    sizes: CTuple
    _datasets: dict[str, ShardedDataset | None] = field(default_factory=dict, repr=False)
    _indices: OrderedDict[str, Shard | None] = field(default_factory=OrderedDict, repr=False)

    # ------------------------------------------------------------------ datasets

    def dataset(self, path: str) -> Steps[ShardedDataset | None]:
        """Read a dataset; None for other nodes, and for datasets without shards.

        Raises
        ------
        N5Error
            Storage fails, or the document of the blocks is wrong.
        """
        if path not in self._datasets:
            self._datasets[path] = yield from self._read_dataset(path)
        return self._datasets[path]

    def _read_dataset(self, path: str) -> Steps[ShardedDataset | None]:
        (data,) = yield [Get(join(path, ATTRIBUTES_JSON))]
        try:
            document = None if data is None else parse_json(bytes(data))
            made = self._describe_dataset(path, document)
        except N5Error:  # reading the node reports it
            return None
        if made is None:
            return None
        found = yield from self._first_file(made)
        if found is None:
            return made
        key, outside = found
        completed = yield from _completed(made, key)
        if completed is not None and outside:
            raise self._misfit(made, f"{outside}, outside of their grid")
        return completed

    def _first_file(self, made: ShardedDataset) -> Steps[tuple[str, str] | None]:
        """Return the key of the first file of a dataset, and of one outside of the grid, if any.

        Of the directories, only those of the first file are listed. None if there is no file.
        """
        key, outside = made.path, ""
        for n in made.grid:
            (entries,) = yield [List(key)]
            numbers = _numbers(entries)
            if not numbers:
                return None
            if numbers[-1] >= n:
                outside = join(key, str(numbers[-1]))
            key = join(key, str(numbers[0]))
        return key, outside

    def _misfit(self, made: ShardedDataset, found: str) -> N5BlockError:
        """Make the error of shards that have another size than the given one."""
        sizes = ",".join(map(str, self.sizes))
        message = (
            f"expected shards of {sizes} elements in C order (z, y, x), got {found}; n5zarr "
            "validate prints their size"
        )
        return N5BlockError(message, kind="shard", where=f"{self.name}: {made.path or '/'}")

    def _describe_dataset(self, path: str, document: JSON) -> ShardedDataset | None:
        """Make a dataset as its document describes it, or the given size."""
        if not isinstance(document, dict):
            return None
        sizes: tuple[int, ...] = to_n5(self.sizes)
        named = shard_codec(document)
        if named is not None:
            sizes = named.shard_size
            document = {**document, "blockSize": [*named.block_size], "codecs": named.codecs}
        dataset = parse_attributes(document)
        if not isinstance(dataset, DatasetAttributes):
            return None
        sizes = sizes * dataset.ndim if len(sizes) == 1 else sizes
        if len(sizes) != dataset.ndim or any(map(mod, sizes, dataset.block_size)):
            return None
        per_shard = N5Tuple(tuple(map(floordiv, sizes, dataset.block_size)))
        return _presented(path, document, dataset, per_shard)

    # ------------------------------------------------------------------ blocks

    def find(self, key: str) -> Steps[tuple[ShardedDataset, N5Tuple] | None]:
        """Return the dataset and the grid position of the block with a key; None for other keys."""
        names = key.split("/")
        for n in range(1, len(names) + 1):
            if not is_block_name(names[-n]):
                return None
            made = yield from self.dataset("/".join(names[:-n]))
            if made is not None and made.dataset.ndim == n:
                position = parse_block_path("/".join(names[-n:]), made.dataset.grid)
                return None if position is None else (made, position)
        return None

    def place(self, made: ShardedDataset, position: N5Tuple) -> Steps[BlockPlace | None]:
        """Return the place of a block; None if it is missing.

        Raises
        ------
        N5BlockError
            The file is no such shard (``kind="shard"``).
        """
        shard_position = N5Tuple(tuple(map(floordiv, position, made.per_shard)))
        key = join(made.path, block_path(shard_position))
        if key not in self._indices:
            yield from self._remember(made, [key])
        shard = self._indices[key]
        if shard is None:
            return None
        index, step = 0, 1
        for p, g in zip(position, made.per_shard, strict=True):
            index += p % g * step
            step *= g
        place = shard.ranges[index]
        return None if place is None else BlockPlace(key, *place, made.header)

    def _remember(self, made: ShardedDataset, keys: Sequence[str]) -> Steps[list[Shard | None]]:
        """Read the indices of some files, and remember the last ones.

        Raises
        ------
        N5BlockError
            A file is no such shard (``kind="shard"``).
        """
        shards = yield from _read_indices(made, keys)
        for key, shard in zip(keys, shards, strict=True):
            if isinstance(shard, Exception):
                raise shard.located(f"{self.name}: {made.path or '/'}: file {key}")
            self._check_inside(made, key, shard)
            self._indices[key] = shard
        while len(self._indices) > max(_MANY, len(keys)):
            self._indices.popitem(last=False)
        return [self._indices[key] for key in keys]

    def _check_inside(self, made: ShardedDataset, key: str, shard: Shard | None) -> None:
        """Raise if a shard has blocks outside of the dataset: then it has another size."""
        names = key.removeprefix(made.path).strip("/").split("/")
        positions = made.positions(N5Tuple(tuple(map(int, names))))
        for position, place in zip(positions, () if shard is None else shard.ranges, strict=False):
            if place is not None and not all(map(lt, position, made.dataset.grid)):
                block = block_path(position)
                raise self._misfit(made, f"the block {block} outside of the dataset in file {key}")

    def positions(self, made: ShardedDataset) -> Steps[list[N5Tuple]]:
        """List the grid positions of all blocks of a dataset."""
        found: list[N5Tuple] = []
        files = yield from self._files(made)
        for some in batched(files, _AT_ONCE):
            keys = [join(made.path, block_path(shard)) for shard in some]
            shards = yield from self._remember(made, keys)
            for shard, index in zip(some, shards, strict=True):
                ranges = () if index is None else index.ranges
                each = zip(made.positions(shard), ranges, strict=False)
                found += (position for position, place in each if place is not None)
        return found

    def _files(self, made: ShardedDataset) -> Steps[list[N5Tuple]]:
        """List the files of a dataset by their position in the grid of shards."""
        found: list[tuple[str, ...]] = [()]
        for n in made.grid:
            below: list[tuple[str, ...]] = []
            for some in batched(found, _AT_ONCE):
                keys = [join(made.path, *names) for names in some]
                listings = yield list(map(List, keys))
                for names, key, entries in zip(some, keys, listings, strict=True):
                    numbers = _numbers(entries)
                    if numbers and numbers[-1] >= n:
                        raise self._misfit(
                            made, f"{join(key, str(numbers[-1]))}, outside of their grid"
                        )
                    below += ((*names, str(k)) for k in numbers)
            found = below
        return [N5Tuple(tuple(map(int, names))) for names in found]


def _completed(made: ShardedDataset, key: str) -> Steps[ShardedDataset | None]:
    """Look into a shard: whether blocks have headers, and how they are compressed."""
    (shard,) = yield from _read_indices(made, [key])
    if shard is None or isinstance(shard, Exception):  # reading its blocks tells
        return None
    place = next((place for place in shard.ranges if place is not None), None)
    dataset = made.dataset
    if place is None or dataset.data_type in (DataType.OBJECT, DataType.STRING):
        return made
    (part,) = yield [Get(key, part=place)]
    block = memoryview(part)
    header = BlockHeader(mode=BlockMode.DEFAULT, block_shape=dataset.block_size)
    try:
        found = BlockHeader.from_bytes(block)
        is_bare = len(found.block_shape) != dataset.ndim or not all(found.block_shape)
    except N5BlockError:
        found, is_bare = header, True
    n_bytes = (header if is_bare else found).n_payload_elements * dataset.data_type.item_size
    payload = block if is_bare else block[found.n_bytes :]
    compression = dataset.compression
    document = json.loads(made.document)
    if isinstance(compression, Raw) and len(payload) != n_bytes:
        name = stream_name(payload, n_bytes)
        if name is None:  # in no form that shows: reading the shard as a block is an error
            return None
        document["compression"] = {"type": name}
        dataset = parse_attributes(document)  # type: ignore[assignment] # as before
    return _presented(
        made.path, document, dataset, made.per_shard, header.to_bytes() if is_bare else b""
    )


def _presented(
    path: str,
    document: dict[str, JSON],
    dataset: DatasetAttributes,
    per_shard: N5Tuple,
    header: bytes = b"",
) -> ShardedDataset:
    """Make a dataset, with the document that describes its blocks."""
    plain = {key: value for key, value in document.items() if key != "codecs"}
    plain["compression"] = compression_to_json(dataset.compression)
    return ShardedDataset(path, json.dumps(plain).encode(), dataset, per_shard, header)


def _read_indices(
    made: ShardedDataset, keys: Sequence[str]
) -> Steps[list[Shard | N5BlockError | None]]:
    """Read the indices of some files; None for missing files, an error for other files."""
    n_bytes = most_index_bytes(made.n, made.dataset.ndim)
    message = (
        f"expected a shard of Java N5 4 with {made.n} chunks, got another file; another program "
        "may have written a block in the place of the shard"
    )
    shards: list[Shard | N5BlockError | None] = []
    for ends in (yield [Ends(key, n_bytes, n_bytes) for key in keys]):
        if ends is None:
            shards.append(None)
            continue
        size, first, last = ends
        is_whole = len(first) + len(last) >= size
        first, last = (first + last, first + last) if is_whole else (first, last)
        shard = shard_with(made.n, made.dataset.ndim, size, first, last)
        shards.append(shard or N5BlockError(message, kind="shard"))
    return shards


def _numbers(entries: list[Entry] | None) -> list[int]:
    """Return the numbers that are names in a directory, sorted."""
    return sorted(int(entry.name) for entry in entries or () if is_block_name(entry.name))
