"""Where the block of a chunk is, and whether a stored block is what that place expects."""

from __future__ import annotations

from operator import lt
from typing import TYPE_CHECKING, NamedTuple, Self

from n5zarr.codecs.compress import usable
from n5zarr.errors import N5BlockError
from n5zarr.format.block import BlockHeader
from n5zarr.format.grid import block_extent, block_path
from n5zarr.format.path import join
from n5zarr.zarr_view.dataset_view import Content, DatasetView

if TYPE_CHECKING:
    from n5zarr.format.order import N5Tuple
    from n5zarr.zarr_view.keys import ChunkKey

__all__ = ["BlockLocation"]


class BlockLocation(NamedTuple):
    """Where the block of a chunk is.

    Parameters
    ----------
    path : str
        Of the dataset.
    view : DatasetView
        How the dataset is shown.
    grid_position : tuple of int
        Of the block, N5 order.
    key : str
        Of the block in the container.
    in_grid : bool
        Whether the dataset has such a block at its present extent.
    """

    path: str
    view: DatasetView
    grid_position: N5Tuple
    key: str
    in_grid: bool

    @classmethod
    def of(cls, chunk: ChunkKey, view: DatasetView | None) -> Self | None:
        """Find the block of a chunk; None for a chunk of no array."""
        if view is None:
            return None
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
        """What of the block lies inside the dataset, in elements, N5 order.

        N5 spec, "File-system specification", item 8: blocks at the end of an axis may be smaller.
        """
        dataset = self.view.dataset
        return block_extent(dataset.dimensions, dataset.block_size, self.grid_position)

    @property
    def is_full(self) -> bool:
        """Whether the whole block lies inside the dataset."""
        return self.extent == self.view.dataset.block_size

    def has_expected_size(self, block: memoryview) -> bool:
        """Whether a block is full-size, or truncated to the extent of the dataset."""
        full = self.view.full_header
        if block[: len(full)] == full or self.view.content is Content.OBJECTS:
            return True
        sizes = (self.extent, self.view.dataset.block_size)
        return BlockHeader.from_bytes(block).block_shape in sizes

    def may_be_cut(self, block: memoryview) -> bool:
        """Whether a block may lack its end, although nothing here decodes it and would notice."""
        if not self.view.whole_blocks:
            return False
        try:
            header = BlockHeader.from_bytes(block)
            dataset = self.view.dataset
            n_bytes = header.n_payload_elements * dataset.data_type.item_size
            return usable(block[header.n_bytes :], n_bytes, dataset.compression) is None
        except N5BlockError:
            return True
