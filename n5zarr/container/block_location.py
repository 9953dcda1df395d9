"""Locate the block of a chunk, and check whether a stored block has the expected size."""

from __future__ import annotations

from operator import lt
from typing import NamedTuple, Self

from n5zarr.codecs.compress import codec_of
from n5zarr.container.formats import in_format
from n5zarr.errors import N5BlockError
from n5zarr.format.block import BlockHeader
from n5zarr.format.grid import block_extent, block_path
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import join
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Content
from n5zarr.zarr_view.keys import ChunkKey


class BlockLocation(NamedTuple):
    """The place of a block in its dataset and in the container.

    Parameters
    ----------
    path : str
        Path of the dataset.
    view : DatasetView
        The dataset as a Zarr array.
    grid_position : tuple of int
        Position of the block in the grid, N5 order.
    key : str
        Key of the block in the container.
    in_grid : bool
        Whether the present grid of the dataset has this position.
    """

    path: str
    view: DatasetView
    grid_position: N5Tuple
    key: str
    in_grid: bool

    @classmethod
    def of(cls, chunk: ChunkKey, view: DatasetView | None) -> Self | None:
        """Locate the block of a chunk; None if the array is missing or its rank differs."""
        if view is None:
            return None
        if view.zarr_format != chunk.zarr_format:
            view = in_format(view, chunk.zarr_format)
        coords = chunk.coords
        if view.ndim == 0 and coords in ((), (0,)):
            coords = ()
        elif len(coords) != view.ndim:
            return None
        position = view.grid_position(coords)
        in_grid = all(map(lt, position, view.grid))
        return cls(chunk.path, view, position, join(chunk.path, block_path(position)), in_grid)

    @property
    def extent(self) -> N5Tuple:
        """Extent of the part of the block that is inside the dataset, in elements, N5 order.

        N5 spec, "File-system specification", item 8: blocks at the end of an axis may be smaller.
        """
        dataset = self.view.dataset
        return block_extent(dataset.dimensions, dataset.block_size, self.grid_position)

    @property
    def is_full(self) -> bool:
        """Whether the whole block is inside the dataset."""
        return self.extent == self.view.dataset.block_size

    def has_expected_size(self, block: memoryview) -> bool:
        """Whether a block is full-size, or truncated to the extent of the dataset."""
        full = self.view.full_header
        if block[: len(full)] == full or self.view.content is Content.OBJECTS:
            return True
        sizes = (self.extent, self.view.dataset.block_size)
        return BlockHeader.from_bytes(block).block_shape in sizes

    def may_be_incomplete(self, block: memoryview) -> bool:
        """Whether the end of a block may be missing, if it is passed on without decoding."""
        if not self.view.whole_blocks:
            return False
        try:
            header = BlockHeader.from_bytes(block)
            dataset = self.view.dataset
            n_bytes = header.n_payload_elements * dataset.data_type.item_size
            payload, compression = block[header.n_bytes :], dataset.compression
            return codec_of(compression).usable(payload, n_bytes, compression) is None
        except N5BlockError:
            return True
