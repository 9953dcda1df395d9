"""Define the levels of the views of a project that become datasets of N5 when they are read."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from n5zarr.codecs.block import encode_payload
from n5zarr.format.compression import Raw
from n5zarr.format.grid import block_extent, grid_shape
from n5zarr.format.order import to_c

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from n5zarr.format.data_type import DataType
    from n5zarr.format.order import N5Tuple

__all__ = ["Level", "ViewId", "ViewLevels"]

_HEADER = 4 + 4 * 3  # bytes before the elements of a block of three dimensions

type ViewId = tuple[int, int]
"""Numbers of setup and time point."""


@dataclass(frozen=True, kw_only=True)
class Level(ABC):
    """A level of a view: an array of three axes.

    Parameters
    ----------
    dimensions, block_size : tuple of int
        Extent of the level and of its chunks, N5 order.
    data_type : DataType
        Of the elements.
    factors : tuple of float
        Downsampling factors, N5 order.
    """

    dimensions: N5Tuple
    block_size: N5Tuple
    data_type: DataType
    factors: tuple[float, ...]

    @abstractmethod
    async def values(self, box: tuple[slice, ...]) -> np.ndarray:
        """Read a box, C order."""

    @abstractmethod
    async def positions(self) -> list[N5Tuple]:
        """List the blocks that are stored, sorted."""

    @abstractmethod
    async def n_bytes_stored(self) -> int:
        """Return the size of all stored chunks."""

    @property
    def grid(self) -> N5Tuple:
        """Number of blocks along each axis."""
        return grid_shape(self.dimensions, self.block_size)

    @property
    def document(self) -> bytes:
        """The ``attributes.json``."""
        document = {
            "dimensions": self.dimensions,
            "blockSize": self.block_size,
            "dataType": self.data_type.value,
            "compression": {"type": "raw"},
            "downsamplingFactors": [int(f) if f.is_integer() else f for f in self.factors],
        }
        return json.dumps(document).encode()

    def n_bytes(self, position: N5Tuple) -> int:
        """Return the size of a block as :meth:`block` makes it."""
        extent = block_extent(self.dimensions, self.block_size, position)
        return _HEADER + math.prod(extent) * self.data_type.item_size

    async def block(self, position: N5Tuple) -> bytes:
        """Read a chunk, and encode it as a block, truncated at the end of an axis."""
        extent = to_c(block_extent(self.dimensions, self.block_size, position))
        starts = [p * n for p, n in zip(to_c(position), to_c(self.block_size), strict=True)]
        box = tuple(slice(a, a + n) for a, n in zip(starts, extent, strict=True))
        return encode_payload(await self.values(box), self.data_type, Raw())


class ViewLevels(Protocol):
    """The views of a project, which open their levels when these are needed."""

    @property
    def views(self) -> Sequence[ViewId]:
        """The views that may exist."""

    async def levels(self, view: ViewId) -> Mapping[int, Level]:
        """Open the levels of a view, by number; none if it does not exist."""

    def confined(self) -> ViewLevels:
        """Return the same views, without local files that links take out of the container."""

    def close(self) -> None:
        """Close what is open; reading opens it again."""
