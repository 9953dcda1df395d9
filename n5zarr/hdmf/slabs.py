"""Cut arrays of HDMF files into slabs that fit into memory, whichever library opened them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Protocol, TypeGuard

import numpy as np
from hdmf.query import HDMFDataset

from n5zarr.tools.jobs.boxes import boxes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sized

    from n5zarr.tools.jobs.boxes import Box

__all__ = ["TEXT_KINDS", "ArrayData", "is_array", "n_bytes", "row_slabs", "slab_shape", "slabs"]

TEXT_KINDS = frozenset("OSTU")
"""Kinds of numpy's data types for text, or references to objects."""

_SLAB = 16 << 20  # bytes
_ROWS = 1 << 16


class ArrayData(Protocol):
    """Stand for an array of numpy, h5py or zarr."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents in elements, in C order."""
        ...

    @property
    def dtype(self) -> np.dtype:
        """Return the dtype of the elements."""
        ...

    def __getitem__(self, selection: tuple[slice, ...] | tuple[int, ...], /) -> object: ...


def is_array(data: object) -> TypeGuard[ArrayData]:
    """Return whether data are numbers in an array with at least one axis."""
    dtype = getattr(data, "dtype", None)
    is_plain = isinstance(dtype, np.dtype) and dtype.kind not in TEXT_KINDS and dtype.names is None
    return is_plain and not isinstance(data, HDMFDataset) and len(getattr(data, "shape", ())) > 0


def n_bytes(data: ArrayData) -> int:
    """Return the size of an array in memory."""
    return prod(map(int, data.shape)) * int(data.dtype.itemsize)


def slab_shape(data: ArrayData, chunks: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """Choose how much of an array to read at once.

    Parameters
    ----------
    data : array
        Of numpy, h5py or zarr.
    chunks : tuple of int, optional
        In elements, in C order. By default the array's own, if it has chunks.

    Returns
    -------
    tuple of int
        Along each axis a multiple of the chunk, or the extent; about 16 MiB, but at least a chunk.
    """
    chunks = chunks or getattr(data, "chunks", None) or (1,) * len(data.shape)
    slab = [max(min(c, n), 1) for c, n in zip(chunks, data.shape, strict=True)]
    for axis in reversed(range(len(slab))):
        times = max(_SLAB // (prod(slab) * int(data.dtype.itemsize)), 1)
        slab[axis] = max(min(data.shape[axis], slab[axis] * times), 1)
    return tuple(slab)


def slabs(data: ArrayData) -> Iterator[Box]:
    """Cut an array into boxes of :func:`slab_shape`, in C order."""
    return boxes(data.shape, slab_shape(data))


def row_slabs(*datasets: Sized) -> Iterator[slice]:
    """Cut the rows of datasets of equal length into slabs, at chunk boundaries if there are any."""
    stored = (getattr(data, "dataset", data) for data in datasets)
    steps = [chunks[0] for data in stored if (chunks := getattr(data, "chunks", None))]
    return (rows for (rows,) in boxes((len(datasets[0]),), (max(_ROWS, *steps, 1),)))
