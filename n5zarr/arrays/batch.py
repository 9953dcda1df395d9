"""Batches of chunks, as zarr passes them to a codec pipeline.

An item of a batch is the chunk's store path, its specification, the selection in the chunk, the
selection in the output, and whether the chunk is complete.
"""

from __future__ import annotations

import re
from itertools import chain, product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from n5zarr._zarr_private import ArrayMetadata, ArraySpec, BatchItem

__all__ = ["BatchBox", "box_of_batch", "chunk_coords", "fill_value_of"]

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


class _Axis(NamedTuple):
    """The selections of a box-shaped batch along one axis, chunk by chunk.

    Parameters
    ----------
    place : int
        Coordinate of the first chunk.
    parts : list of slice or int
        Selections in the chunks.
    outputs : list of slice
        Selections in the output; empty for an axis that the output does not have.
    """

    place: int
    parts: list[slice | int]
    outputs: list[slice]

    @property
    def places(self) -> list[str]:
        """The coordinates of the chunks, as in their keys."""
        return [str(self.place + k) for k in range(len(self.parts))]

    def run(self, size: int) -> tuple[int, int, slice | None] | None:
        """Return first element, extent and place in the output; None if they are not contiguous."""
        if not self.outputs:
            first = self.parts[0]
            return (self.place * size + first, 1, None) if isinstance(first, int) else None
        first, n = self.parts[0], 0
        end_of_chunk, end_of_output = size, self.outputs[0].start
        for part, output in zip(self.parts, self.outputs, strict=True):
            if not isinstance(part, slice) or not _is_bounded(part) or not _is_bounded(output):
                return None
            length = part.stop - part.start
            follows = end_of_chunk == size and (n == 0 or part.start == 0)
            if not follows or (output.start, output.stop - output.start) != (end_of_output, length):
                return None
            n += length
            end_of_chunk, end_of_output = part.stop, output.stop
        output = slice(self.outputs[0].start, end_of_output)
        return (self.place * size + first.start, n, output) if isinstance(first, slice) else None


def box_of_batch(batch: Sequence[BatchItem], chunk_shape: tuple[int, ...]) -> BatchBox | None:
    """Return the box that the chunks of a batch form together; None if they form no box.

    Compares every chunk of the batch with its part of the box.

    Parameters
    ----------
    batch : sequence
        Items of one array, at least one.
    chunk_shape : tuple of int
        Extent of a chunk of the array, at least one axis.
    """
    axes = _axes(batch, len(chunk_shape)) if _has_only_slices(batch) else None
    if axes is None:
        return None
    is_box = len(batch) == 1 or (
        [item[2] for item in batch] == list(product(*(axis.parts for axis in axes)))
        and [item[3] for item in batch] == list(product(*(a.outputs for a in axes if a.outputs)))
        and _are_keys_of(axes, [item[0].path for item in batch])
    )
    runs = [axis.run(size) for axis, size in zip(axes, chunk_shape, strict=True)]
    known = [run for run in runs if run is not None]
    if not is_box or len(known) < len(runs):
        return None
    return BatchBox(*zip(*known, strict=True))


def _has_only_slices(batch: Sequence[BatchItem]) -> bool:
    """Whether all selections are tuples of slices and integers, of equal length."""
    selections = [selection for item in batch for selection in item[2:4]]
    if set(map(type, selections)) != {tuple}:
        return False
    if set(map(type, chain.from_iterable(selections))) - {slice, int}:
        return False
    return len(set(map(len, selections[::2]))) == len(set(map(len, selections[1::2]))) == 1


def _axes(batch: Sequence[BatchItem], ndim: int) -> list[_Axis] | None:
    """Split a batch, assumed to be a box, into its axes; the last axis is fastest.

    None if the box from the first to the last chunk has another number of chunks.
    """
    first, last = (chunk_coords(batch[k][0].path, ndim) for k in (0, -1))
    counts = [end - begin + 1 for begin, end in zip(first, last, strict=True)]
    selection, output = batch[0][2:4]
    kept = [axis for axis, part in enumerate(selection) if isinstance(part, slice)]
    if min(counts) < 1 or prod(counts) != len(batch):
        return None
    if len(selection) != ndim or len(output) != len(kept):
        return None
    axes = []
    for axis, count in enumerate(counts):
        step = prod(counts[axis + 1 :])
        items = [batch[k * step] for k in range(count)]
        outputs = [item[3][kept.index(axis)] for item in items] if axis in kept else []
        axes.append(_Axis(first[axis], [item[2][axis] for item in items], outputs))
    return axes


def _are_keys_of(axes: Sequence[_Axis], keys: Sequence[str]) -> bool:
    """Whether the keys are those of all chunks of a box of the grid, the last axis fastest."""
    places = [axis.places for axis in axes]
    separator = keys[0][-1 - len(places[-1][0])] if len(places) > 1 else ""
    prefix = keys[0].removesuffix(separator.join(place[0] for place in places))
    return list(keys) == [prefix + separator.join(coords) for coords in product(*places)]


def _is_bounded(part: slice) -> bool:
    """Whether a slice has a begin and a later end, and no step."""
    start, stop = part.start, part.stop
    return type(start) is type(stop) is int and 0 <= start < stop and part.step in (1, None)
