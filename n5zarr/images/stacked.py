"""Present arrays with their axes in another order, or several of one shape as one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import zarr
from zarr.types import AnyArray

from n5zarr._zarr import ArrayV2Metadata, ArrayV3Metadata
from n5zarr.arrays.boxes import BoxSlices, StoredChunks
from n5zarr.arrays.placing import read_on_host
from n5zarr.arrays.stored_chunks import stored_chunks
from n5zarr.images.source import ArraySource, Values

_OF_CHUNKS = {  # what decides which bytes a chunk has, by the format of Zarr
    2: ("compressor", "filters", "dtype", "order", "chunks"),
    3: ("codecs", "data_type", "chunk_grid"),
}


def reordered(
    array: ArraySource, order: Sequence[int], mirrored: Sequence[int] = ()
) -> ArraySource:
    """Return an array with its axes in another order, or its elements in reverse along some.

    Parameters
    ----------
    array : ArraySource
        The array.
    order : sequence of int
        Number of the axis of the array for each axis of the result.
    mirrored : sequence of int, optional
        Axes of the result along which the elements are in reverse order.
    """
    if list(order) == sorted(order) and not mirrored:
        return array
    return replace(
        array,
        values=_Reordered(array.values, tuple(order), tuple(mirrored)),
        chunks=tuple(array.chunks[i] for i in order),
        encoded=None,
        blocks=None,
    )


def stacked(arrays: Sequence[ArraySource | None]) -> ArraySource:
    """Return arrays of one shape as one array with an additional first axis.

    Parameters
    ----------
    arrays : sequence of ArraySource or None
        One for each index of the first axis, at least one of them; None for one without elements.
    """
    first = next(array for array in arrays if array is not None)
    return replace(
        first,
        values=_Stacked(tuple(None if a is None else a.values for a in arrays), first.values),
        chunks=(1, *first.chunks),
        encoded=_encoded([array.encoded for array in arrays if array is not None], len(arrays)),
        blocks=None,
        parts=tuple(arrays),
    )


@dataclass(frozen=True, eq=False)
class _Reordered:
    """An array with its axes in another order, and in reverse along some."""

    values: Values
    order: tuple[int, ...]
    mirrored: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape[i] for i in self.order)

    def __getitem__(self, box: BoxSlices) -> npt.NDArray[Any]:
        own: list[slice] = [slice(0)] * len(box)
        for i, (part, axis) in enumerate(zip(box, self.order, strict=True)):
            start, stop, _ = part.indices(n := self.values.shape[axis])
            own[axis] = slice(n - stop, n - start) if i in self.mirrored else part
        found = read_on_host(self.values, tuple(own)).transpose(self.order)
        return np.flip(found, self.mirrored)

    def stored_chunks(self, within: Sequence[slice] | None = None) -> StoredChunks | None:
        order = list(self.order)
        own = None if within is None else [within[order.index(i)] for i in range(len(order))]
        found = stored_chunks(self.values, own)
        if found is None or self.mirrored:  # from the other end, chunks are not those of the grid
            return None
        unit = tuple(found.unit[axis] for axis in order)
        return StoredChunks(unit, (rows[:, order] for rows in found.rows))


@dataclass(frozen=True, eq=False)
class _Stacked:
    """Arrays of one shape along a new first axis; those that are missing are 0."""

    each: tuple[Values | None, ...]
    like: Values

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.each), *self.like.shape)

    def __getitem__(self, box: BoxSlices) -> npt.NDArray[Any]:
        chosen = self.each[box[0]]
        inner = box[1:]
        parts = [None if values is None else read_on_host(values, inner) for values in chosen]
        some = next((part for part in parts if part is not None), None)
        if some is None:
            some = read_on_host(self.like, inner)
        empty = np.zeros_like(some)
        return np.stack([empty if part is None else part for part in parts])

    def stored_chunks(self, within: Sequence[slice] | None = None) -> StoredChunks | None:
        chosen = range(len(self.each)) if within is None else range(len(self.each))[within[0]]
        found: list[tuple[int, StoredChunks]] = []
        for number in chosen:
            values = self.each[number]
            if values is not None:
                own = stored_chunks(values, within and within[1:])
                if own is None or own.unit != (found[0][1].unit if found else own.unit):
                    return None
                found.append((number, own))
        unit = (1, *(found[0][1].unit if found else self.like.shape))
        return StoredChunks(unit, (_below(n, rows) for n, own in found for rows in own.rows))


def _below(number: int, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Prepend a position along a new first axis."""
    return np.concatenate([np.full((len(rows), 1), number), rows], axis=1)


def _encoded(each: Sequence[AnyArray | None], n: int) -> AnyArray | None:
    """Describe an array whose chunks are those of arrays, so that they can be passed through."""
    first = each[0]
    if first is None:
        return None
    if len({_codecs(array) for array in each if array is not None}) > 1:
        return None
    document: Any = first.metadata.to_dict()
    document |= {"shape": [n, *first.shape], "attributes": {}}
    chunks = [1, *first.chunks]
    if first.metadata.zarr_format == 2:
        metadata: Any = ArrayV2Metadata.from_dict(document | {"chunks": chunks})
    else:
        grid = {"name": "regular", "configuration": {"chunk_shape": chunks}}
        document |= {"chunk_grid": grid, "dimension_names": None}
        metadata = ArrayV3Metadata.from_dict(document)
    found: Any = zarr.AsyncArray(metadata=metadata, store_path=first.store_path)
    return zarr.Array(found)


def _codecs(array: AnyArray) -> str:
    metadata: Any = array.metadata.to_dict()
    return str([metadata[name] for name in _OF_CHUNKS[metadata["zarr_format"]]])
