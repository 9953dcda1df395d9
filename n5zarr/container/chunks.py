"""Read, write and remove the chunks of a container as blocks.

Each function is a generator of requests, see :mod:`n5zarr.storage.requests`. A full-size block
without its header is a chunk; `zarr_view.chunks` makes all other chunks, through `codec_chain` if
the array has codecs that N5 lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from n5zarr.codecs.buffers import BufferLike
from n5zarr.codecs.compress import codec_of
from n5zarr.codecs.shard import check_not_sharded, in_memory
from n5zarr.container import codec_chain
from n5zarr.container.block_location import BlockLocation
from n5zarr.container.memory import Node, check_still_there, gone
from n5zarr.container.missing_blocks import check_missing
from n5zarr.container.node_names import ReplacedError
from n5zarr.container.nodes import Nodes
from n5zarr.errors import ErrorsAt, N5BlockError, N5Error, N5UnrepresentableError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.block import BlockHeader
from n5zarr.format.grid import block_path
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import join
from n5zarr.storage.requests import (
    MANY_BYTES,
    Check,
    Exists,
    Get,
    Put,
    Remove,
    Stamp,
    Steps,
    Update,
    Warn,
    Work,
)
from n5zarr.zarr_view.chunks import (
    chunk_extent,
    chunk_slice,
    decode_chunk,
    encode_chunk,
    make_block,
    make_chunk,
    relabelled_block,
    stored_chunk,
)
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Content
from n5zarr.zarr_view.keys import ChunkKey


@dataclass(frozen=True)
class Chunks:
    """The chunks of a container.

    Parameters
    ----------
    nodes : Nodes
        The groups and datasets of the container.
    name : str
        Name of the container, for messages.
    """

    nodes: Nodes

    # ------------------------------------------------------------------ datasets

    def dataset(self, path: str) -> Steps[DatasetView | None]:
        """Return the dataset of a chunk; read it if it is unknown or its document has changed.

        Raises
        ------
        N5Error
            The dataset has other elements or blocks than when it was opened (``kind="changed"``).
        """
        known = self.nodes.memory.known.get(path)
        if known is None or not isinstance(known.node, DatasetView):
            return (yield from self.dataset_anew(path))
        if self.nodes.has_stamps:
            (stamp,) = yield [Stamp(join(path, ATTRIBUTES_JSON))]
            if stamp is None or stamp != known.stamp:
                return (yield from self.dataset_anew(path))
        return known.node

    def dataset_anew(self, path: str) -> Steps[DatasetView | None]:
        """Read the dataset of a chunk again: another program may have created or resized it.

        Raises
        ------
        N5Error
            The dataset has other elements or blocks than when it was opened (``kind="changed"``).
        """
        known = self.nodes.memory.node(path)
        node = yield from self.node_anew(path, expected=known)
        return node if isinstance(node, DatasetView) else None

    def node_anew(self, path: str, expected: Node | None = None) -> Steps[Node | None]:
        """Read a node, and remember it.

        On storage with stamps, where reading a document costs little, the version of the container
        is checked before the first node. On other storage it is checked when the root is read, and
        before the first document is written.

        Parameters
        ----------
        path : str
            Path of the node.
        expected : node, optional
            The known node; a dataset must still be there, with the same elements and blocks.

        Raises
        ------
        N5Error
            The node is broken or not supported, or differs from ``expected`` (``kind="changed"``).
        """
        stamp = None
        if self.nodes.has_stamps:
            if path not in self.nodes.memory.assumed:
                yield from self.nodes.check_version()
            (stamp,) = yield [Stamp(join(path, ATTRIBUTES_JSON))]
        node = self.nodes.memory.take_listed(path, stamp) or (yield from self.nodes.node(path))
        self._check_same(path, expected, node)
        self.nodes.memory.keep(path, node, stamp)
        return node

    def node_to_open(self, path: str) -> Steps[Node | None]:
        """Read a node anew; one that a listing has named may have been replaced since."""
        try:
            return (yield from self.node_anew(path))
        except N5Error as err:
            if path in self.nodes.memory.named:
                raise ReplacedError.of(err.located(path)) from err
            raise

    def _check_same(self, path: str, known: Node | None, node: Node | None) -> None:
        """Raise if a dataset is gone, or has other elements or blocks than when last read."""
        if not isinstance(known, DatasetView):
            return
        if not isinstance(node, DatasetView):
            raise gone(node)
        check_still_there(known.dataset, node.dataset)

    def open_dataset(self, path: str, *, anew: bool) -> Steps[DatasetView]:
        """Read the dataset of an open array; on storage without stamps, only if it is unknown.

        Raises
        ------
        N5Error
            There is no dataset, or it has other elements or blocks than when it was last read
            (``kind="changed"``).
        """
        view = yield from self.dataset_anew(path) if anew else self.dataset(path)
        if view is None:
            raise gone(self.nodes.memory.node(path))
        return view

    # ------------------------------------------------------------------ reading

    def read(self, chunk: ChunkKey, *, is_copied: bool = False) -> Steps[BufferLike | None]:
        """Read a chunk; return None if it has no block.

        N5 spec, "File-system specification", item 6: datasets are sparse.

        Parameters
        ----------
        chunk : ChunkKey
            The chunk.
        is_copied : bool, optional
            Whether the chunk is only copied, not decoded, so that its decoded size needs no limit.

        Raises
        ------
        N5BlockError
            The block is damaged or does not fit the dataset.
        """
        location = yield from self._location_to_read(chunk)
        if location is None:
            return None
        chunk_of = partial(self._chunk, location=location, is_copied=is_copied)
        # a block may be incomplete during a write; Zarr's codecs would notice it too late
        compression = location.view.dataset.compression
        settled = not codec_of(compression).detects_incomplete(compression)
        (block,) = yield [Get(location.key, settled=settled)]
        # only local files, which have stamps, support waiting: elsewhere a second read is useless
        if block is not None and not settled and self.nodes.has_stamps:
            try:
                if not location.may_be_incomplete(memoryview(block)):
                    return (yield from chunk_of(memoryview(block)))
            except N5BlockError:
                pass
            (block,) = yield [Get(location.key, settled=True)]
        if block is None:
            yield from check_missing(self.nodes, chunk.path, location.key)
            return None
        return (yield from chunk_of(memoryview(block)))

    def _location_to_read(self, chunk: ChunkKey) -> Steps[BlockLocation | None]:
        """Locate the block of a chunk; None if no array has this chunk in its grid."""
        location = BlockLocation.of(chunk, (yield from self.dataset(chunk.path)))
        if location is not None and not location.in_grid and not self.nodes.has_stamps:
            # the caller knows a larger array than this store object has read last
            location = BlockLocation.of(chunk, (yield from self.dataset_anew(chunk.path)))
        return location if location is not None and location.in_grid else None

    def _chunk(
        self, block: memoryview, *, location: BlockLocation, is_copied: bool
    ) -> Steps[BufferLike]:
        """Return the chunk: a part of the block, or made from it."""
        try:
            part = chunk_slice(block, location.view, location.grid_position)
            if not location.has_expected_size(block):
                yield from self._warn_of_size(block, location)
            if part is not None and (
                is_copied or (yield from self._is_bounded(block[part], location))
            ):
                return block[part]
            (chunk,) = yield [Work(partial(self._make_chunk, block, location))]
        except N5Error as err:  # no context: this is the way of each chunk that is read
            name = self.block_name(location.path, location.grid_position)
            raise err.located(name) from err.__cause__
        made: BufferLike = chunk
        return made

    def _is_bounded(self, chunk: memoryview, location: BlockLocation) -> Steps[bool]:
        """Whether Zarr's codecs expand a chunk to little more than its elements."""
        view, dataset = location.view, location.view.dataset
        if not view.passes_payloads:
            return True
        extent = chunk_extent(view, location.grid_position)
        n_bytes = math.prod(extent) * dataset.data_type.item_size
        codec = codec_of(dataset.compression)
        known = codec.is_bounded(chunk, n_bytes, dataset.compression)
        if known is not None:
            return known
        (answer,) = yield [Work(partial(codec.decodes, chunk, n_bytes, dataset.compression))]
        return bool(answer)

    def _warn_of_size(self, block: memoryview, location: BlockLocation) -> Steps[None]:
        """Warn that a block does not have the size of a dataset without ``blockSize``."""
        dataset = location.view.dataset
        if not dataset.has_block_size:
            shape = BlockHeader.from_bytes(block).block_shape
            message = (
                f"{location.path or '/'}: blockSize is missing: expected one block of "
                f"{dataset.dimensions}, got one of {shape}; missing elements read as the fill "
                "value; add the blockSize with which the dataset was written"
            )
            yield [Warn(message)]

    def _make_chunk(self, block: memoryview, location: BlockLocation) -> BufferLike:
        """Make a chunk that is not a part of its block."""
        view, position = location.view, location.grid_position
        codecs = view.transcoded
        if codecs is None:
            return make_chunk(block, view, position)
        if '"sharding_indexed"' not in codecs:
            return codec_chain.encode(decode_chunk(block, view, position), codecs)
        stored = bytes(block)
        shard = self.nodes.memory.shard_of(location.key, stored)
        if shard is None:
            shard = codec_chain.encode(decode_chunk(block, view, position), codecs)
            self.nodes.memory.keep_shard(location.key, stored, shard)
        return shard

    def check(self, chunk: ChunkKey) -> Steps[None]:
        """Decode the block of a chunk that Zarr's codecs refused, to get an error that names it.

        Raises
        ------
        N5BlockError
            The block is damaged or does not fit the dataset.
        """
        location = yield from self._location_to_read(chunk)
        if location is not None:
            (block,) = yield [Get(location.key, settled=True)]
            if block is not None:
                check = partial(
                    stored_chunk, memoryview(block), location.view, location.grid_position
                )
                with self._errors_of(location):
                    yield [Work(check)]

    def exists(self, chunk: ChunkKey) -> Steps[bool]:
        """Whether a chunk has a block."""
        location = yield from self._location_to_read(chunk)
        if location is None:
            return False
        (exists,) = yield [Exists(location.key)]
        return bool(exists)

    # ------------------------------------------------------------------ writing

    def write(self, chunk: ChunkKey, value: memoryview) -> Steps[None]:
        """Write a chunk as a block, truncated to the extent of the dataset.

        Raises
        ------
        N5UnrepresentableError
            The array does not exist, or its grid has no such chunk (``kind="path"``).
        N5UnsupportedError
            The array can only be read.
        N5Error
            Another program has replaced the array (``kind="changed"``).
        """
        location = yield from self._location_to_write(chunk)
        if location.view.content is Content.LABELS:
            yield [Update(location.key, partial(self._relabelled, value, location), MANY_BYTES)]
            return
        with self._errors_of(location):
            (block,) = yield [Work(partial(self._make_block, value, location))]
        yield [Put(location.key, block, self._check_replaced(location))]

    def update(
        self, chunk: ChunkKey, change: Callable[[bytes | None], bytes | None]
    ) -> Steps[None]:
        """Replace a chunk by a function of it, under the lock of its block if storage has locks.

        Parameters
        ----------
        chunk : ChunkKey
            The chunk.
        change : callable
            Takes and returns the bytes of the chunk, or None for a missing chunk.

        Raises
        ------
        N5Error
            As :meth:`write`, or the block is damaged.
        """
        location = yield from self._location_to_write(chunk)

        def change_block(block: bytes | None) -> bytes | None:
            with self._errors_of(location):
                self._check_no_shard(block, location)
                old = None if block is None else self._whole_chunk(memoryview(block), location)
                new = change(old)
                chunk = None if new is None else memoryview(new)
                if location.view.content is Content.LABELS:
                    return self._relabelled(chunk, location, block)
                return None if chunk is None else bytes(self._make_block(chunk, location))

        yield [Update(location.key, change_block, MANY_BYTES)]

    def _relabelled(
        self, chunk: memoryview | None, location: BlockLocation, block: bytes | None
    ) -> bytes | None:
        """Return a block of label multisets with the labels of a chunk; None for none."""
        with self._errors_of(location):
            self._check_no_shard(block, location)
            return relabelled_block(chunk, location.view, location.grid_position, block)

    def _check_no_shard(self, block: bytes | None, location: BlockLocation) -> None:
        """Raise if a stored block is a shard of Java N5 4."""
        if block is not None:
            dataset = location.view.dataset
            check_not_sharded(*in_memory(block), dataset.data_type, dataset.compression)

    def _whole_chunk(self, block: memoryview, location: BlockLocation) -> bytes:
        part = chunk_slice(block, location.view)
        return bytes(self._make_chunk(block, location) if part is None else block[part])

    def _location_to_write(self, chunk: ChunkKey) -> Steps[BlockLocation]:
        """Locate the block of a chunk to be written.

        Raises
        ------
        N5UnrepresentableError
            The array does not exist, or its grid has no such chunk (``kind="path"``).
        """
        location = self.location(chunk)
        if location is not None and location.is_full:
            view = yield from self.dataset(chunk.path)
        else:  # another program may have created or resized the dataset
            view = yield from self.dataset_anew(chunk.path)
        if location is None or view is not location.view:
            location = BlockLocation.of(chunk, view)
        if location is None or not location.in_grid:
            grid = (
                "there is no array" if view is None else f"the grid is {view.presented(view.grid)}"
            )
            message = f"chunk {chunk.coords}: expected the chunk of an array, but {grid}"
            raise N5UnrepresentableError(message, kind="path")
        return location

    def _make_block(self, chunk: memoryview, location: BlockLocation) -> BufferLike:
        codecs = location.view.transcoded
        if codecs is None:
            return make_block(chunk, location.view, location.grid_position)
        return encode_chunk(
            codec_chain.decode(chunk, codecs), location.view, location.grid_position
        )

    def remove(self, chunk: ChunkKey) -> Steps[None]:
        """Remove the block of a chunk, if there is one.

        Zarr's pipelines remove chunks of background: of label multisets, other labels stay.
        """
        # also a block outside the grid: zarr shrinks an array before it removes its chunks
        location = BlockLocation.of(chunk, (yield from self.dataset(chunk.path)))
        if location is None:
            return
        if location.view.content is Content.LABELS and location.in_grid:
            yield [Update(location.key, partial(self._relabelled, None, location), MANY_BYTES)]
        else:
            yield [Remove(location.key, check=self._check_replaced(location))]

    def _check_replaced(self, location: BlockLocation) -> Check:
        """Return a function that raises if a stored block is a shard of Java N5 4."""
        dataset = location.view.dataset
        return partial(
            check_not_sharded,
            data_type=dataset.data_type,
            compression=dataset.compression,
            where=partial(self.block_name, location.path, location.grid_position),
        )

    def location(self, chunk: ChunkKey) -> BlockLocation | None:
        """Locate the block of a chunk; None if its dataset is unread, or has another rank."""
        return BlockLocation.of(chunk, self.nodes.memory.dataset(chunk.path))

    def _errors_of(self, location: BlockLocation) -> ErrorsAt:
        """Make a context whose errors name the block."""
        return ErrorsAt(partial(self.block_name, location.path, location.grid_position))

    def block_name(self, path: str, grid_position: N5Tuple) -> str:
        """Return the name of a block for messages: container, dataset and position."""
        return f"{self.nodes.name}: {path or '/'}: block {block_path(grid_position)}"
