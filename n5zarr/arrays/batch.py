"""Batches of chunks, as zarr passes them to a codec pipeline.

An item of a batch is the chunk's store path, its specification, the selection in the chunk, the
selection in the output, and whether the chunk is complete.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    from n5zarr._zarr import ArrayMetadata, ArraySpec

__all__ = ["BatchBox", "chunk_coords", "fill_value_of"]

_SEPARATOR = re.compile(r"[/.]")


def chunk_coords(key: str, ndim: int) -> tuple[int, ...]:
    """Parse the coordinates in Zarr's chunk grid at the end of a chunk's key.

    Examples
    --------
    >>> chunk_coords("em/s0/c/2/1/0", 3), chunk_coords("em/s0/2.1.0", 3)
    ((2, 1, 0), (2, 1, 0))
    """
    return tuple(map(int, _SEPARATOR.split(key)[-ndim:]))


def fill_value_of(array: ArraySpec | ArrayMetadata) -> object:
    """Return the value of the elements of missing blocks, from the description of an array."""
    value: object = array.fill_value
    return 0 if value is None else value


class BatchBox(NamedTuple):
    """A batch that is one box of elements.

    Parameters
    ----------
    start, shape : tuple of int
        First element and extent of the box in the array.
    selection : tuple of slice or None
        Place of the box in the output; None for an axis that the output does not have.
    """

    start: tuple[int, ...]
    shape: tuple[int, ...]
    selection: tuple[slice | None, ...]

    def within(self, output: np.ndarray) -> np.ndarray | None:
        """Return a view of the part of the output, with all axes of the array.

        None if the output does not have the size of the box.
        """
        kept = [part for part in self.selection if part is not None]
        if output.ndim != len(kept):
            return None
        part: np.ndarray = output[self.selection]
        return part if part.shape == self.shape else None
