"""Chunks and the blocks that keep them: where, and what becomes of the bytes; no IO."""

from __future__ import annotations

from operator import lt
from typing import TYPE_CHECKING, NamedTuple, Self

from n5zarr.codecs.compress import usable
from n5zarr.container import codec_chain
from n5zarr.errors import N5BlockError
from n5zarr.format.block import BlockHeader
from n5zarr.format.grid import block_extent, block_path
from n5zarr.format.path import join
from n5zarr.zarr_view.chunks import (
    chunk_slice,
    decode_chunk,
    encode_chunk,
    make_block,
    make_chunk,
)
from n5zarr.zarr_view.dataset_view import Content, DatasetView

if TYPE_CHECKING:
    from collections.abc import Callable

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.container.nodes import Node
    from n5zarr.format.order import N5Tuple
    from n5zarr.zarr_view.keys import ChunkKey

__all__ = ["LocalDataset", "Place", "Shards"]


class Place(NamedTuple):
    """Where the block of a chunk is.

    Parameters
    ----------
    path : str
        Of the dataset.
    shown : Presentation
        How the dataset is shown.
    position : tuple of int
        Of the block in the grid, N5 order.
    key : str
        Of the block in the container.
    in_grid : bool
        Whether the dataset has such a block at its present extent.
    """

    path: str
    shown: DatasetView
    position: N5Tuple
    key: str
    in_grid: bool

    @classmethod
    def of(cls, chunk: ChunkKey, node: Node | None) -> Self | None:
        """Find the block of a chunk; None for a chunk of no array."""
        if not isinstance(node, DatasetView):
            return None
        coords = chunk.coords
        if node.ndim == 0 and coords in ((), (0,)):
            coords = ()
        elif len(coords) != node.ndim:
            return None
        position = node.grid_position(coords)
        in_grid = all(map(lt, position, node.grid))
        return cls(chunk.path, node, position, join(chunk.path, block_path(position)), in_grid)

    @property
    def extent(self) -> N5Tuple:
        """What of the block lies inside the dataset, in elements, N5 order."""
        dataset = self.shown.dataset
        return block_extent(dataset.dimensions, dataset.block_size, self.position)

    @property
    def is_full(self) -> bool:
        """Whether the whole block lies inside the dataset."""
        return self.extent == self.shown.dataset.block_size

    def is_expected(self, data: memoryview) -> bool:
        """Whether a block has the size that its place has, or that of all blocks."""
        full = self.shown.full_header
        if data[: len(full)] == full or self.shown.content is Content.OBJECTS:
            return True
        sizes = (self.extent, self.shown.dataset.block_size)
        return BlockHeader.from_bytes(data).block_shape in sizes

    def may_be_cut(self, data: memoryview) -> bool:
        """Whether the end may be missing of a block that is handed on without being decoded."""
        if not self.shown.whole_blocks:
            return False
        try:
            header = BlockHeader.from_bytes(data)
            dataset = self.shown.dataset
            n_bytes = header.n_payload_elements * dataset.data_type.item_size
            return usable(data[header.n_bytes :], n_bytes, dataset.compression) is None
        except N5BlockError:
            return True

    def cut(self, data: memoryview) -> slice | None:
        """Find the chunk inside the block; None where :meth:`chunk` has to make it."""
        return chunk_slice(data, self.shown)

    def chunk(self, data: memoryview, shards: Shards) -> BufferLike:
        """Make the chunk out of the block."""
        document = self.shown.transcoded
        if document is None:
            return make_chunk(data, self.shown)
        if '"sharding_indexed"' in document:
            return shards.chunk(data, self, document)
        return codec_chain.encode(decode_chunk(data, self.shown), document)

    def block(self, chunk: memoryview) -> BufferLike:
        """Make the block out of the chunk, truncated to the extent of the dataset."""
        document = self.shown.transcoded
        if document is None:
            return make_block(chunk, self.shown, self.position)
        return encode_chunk(codec_chain.decode(chunk, document), self.shown, self.position)


class LocalDataset(NamedTuple):
    """A dataset in local files, and how the keys of its chunks become paths of its blocks.

    Parameters
    ----------
    directory : str
        Of the dataset, with a separator at its end.
    n_prefix : int
        How many characters of a chunk's key come before its place in the grid.
    shown : Presentation
        How the dataset is shown.
    locate : callable
        Names the block of a chunk's key, for messages.
    """

    directory: str
    n_prefix: int
    shown: DatasetView
    locate: Callable[[str], str]

    def block_path(self, key: str) -> str:
        """Give the path of the block of a chunk."""
        place = key[self.n_prefix :]
        if self.shown.axis_order == "C":
            place = "/".join(place.split("/")[::-1])
        return self.directory + place

    def extent(self, key: str) -> tuple[int, ...]:
        """Give what of a chunk lies inside the dataset, in the order that is shown."""
        coords = tuple(map(int, key[self.n_prefix :].split("/")))
        position = self.shown.grid_position(coords)
        dataset = self.shown.dataset
        return self.shown.presented(block_extent(dataset.dimensions, dataset.block_size, position))


class Shards:
    """The last shard that was made: zarr asks for it in many small ranges."""

    def __init__(self) -> None:
        self._last: tuple[str, bytes, BufferLike] | None = None

    def chunk(self, data: memoryview, place: Place, document: str) -> BufferLike:
        """Make the chunk out of the block unless it is the one that was made last."""
        stored, last = bytes(data), self._last
        if last is not None and last[:2] == (place.key, stored):
            return last[2]
        chunk = codec_chain.encode(decode_chunk(data, place.shown), document)
        self._last = place.key, stored, chunk
        return chunk
