"""Batches of chunks, as zarr passes them to a codec pipeline.

An item of a batch is the chunk's store path, its specification, the selection in the chunk, the
selection in the output, and whether the chunk is complete.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from zarr.abc.buffer import NDBuffer

    from n5zarr._zarr import ArrayMetadata, ArraySpec, BatchItem

__all__ = ["BatchBox", "chunk_coords", "fill_value_of", "merged"]

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


def merged(
    item: BatchItem, value: NDBuffer, drop_axes: tuple[int, ...], stored: NDBuffer | None
) -> NDBuffer | None:
    """Replace a part of a chunk, as zarr does when it writes.

    Parameters
    ----------
    item : tuple
        The chunk and its part.
    value : zarr.abc.buffer.NDBuffer
        The elements of all items of the batch, or one for all.
    drop_axes : tuple of int
        Axes of the selections that the value does not have.
    stored : zarr.abc.buffer.NDBuffer or None
        The chunk as it is stored; None if it is missing.

    Returns
    -------
    zarr.abc.buffer.NDBuffer or None
        The whole chunk, perhaps a view of the value; None if it is to be removed.
    """
    _, spec, selection, value_selection, is_complete = item
    fill_value = spec.fill_value
    if fill_value is None:  # of Zarr v2
        fill_value = spec.dtype.default_scalar()
    is_scalar = value.shape == ()
    part = value if is_scalar else value[value_selection]
    if is_complete and not is_scalar and part.shape == tuple(spec.shape):
        chunk = part
    else:
        if stored is None:
            chunk = spec.prototype.nd_buffer.create(
                shape=spec.shape,
                dtype=spec.dtype.to_native_dtype(),
                order=spec.config.order,
                fill_value=fill_value,
            )
        else:
            chunk = stored.copy()
        if drop_axes and not is_scalar:
            axes = range(len(spec.shape))
            part = part[tuple(None if axis in drop_axes else slice(None) for axis in axes)]
        chunk[selection] = part
    is_empty = not spec.config.write_empty_chunks and chunk.all_equal(fill_value)
    return None if is_empty else chunk


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
