"""Arrays of HDMF files that are read part by part, whichever library holds them."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from hdmf.query import HDMFDataset

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["TEXT_KINDS", "is_array", "n_bytes", "part_shape", "parts", "row_parts"]

TEXT_KINDS = frozenset("OSTU")
"""Kinds of numpy's data types that hold text, or references to objects."""

_PART = 16 << 20
_ROWS = 1 << 16


def is_array(data: Any) -> bool:
    """Whether data are numbers in an array with at least one axis."""
    dtype = getattr(data, "dtype", None)
    is_plain = isinstance(dtype, np.dtype) and dtype.kind not in TEXT_KINDS and dtype.names is None
    return is_plain and not isinstance(data, HDMFDataset) and len(data.shape) > 0


def n_bytes(data: Any) -> int:
    """Give the size of an array in memory."""
    return prod(map(int, data.shape)) * int(data.dtype.itemsize)


def part_shape(data: Any, chunks: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """Choose how much of an array to read at once.

    Parameters
    ----------
    data : array
        Its own chunks are taken unless others are given.
    chunks : tuple of int, optional
        In elements, in C order.

    Returns
    -------
    tuple of int
        Along each axis a multiple of the chunk, or the extent; about 16 MiB, but at least a chunk.
    """
    chunks = chunks or getattr(data, "chunks", None) or (1,) * len(data.shape)
    part = [max(min(c, n), 1) for c, n in zip(chunks, data.shape, strict=True)]
    for axis in reversed(range(len(part))):
        times = max(_PART // (prod(part) * int(data.dtype.itemsize)), 1)
        part[axis] = max(min(data.shape[axis], part[axis] * times), 1)
    return tuple(part)


def parts(data: Any) -> Iterator[tuple[slice, ...]]:
    """Cut an array into boxes of :func:`part_shape`, in C order."""
    steps = part_shape(data)
    starts = product(*(range(0, n, step) for n, step in zip(data.shape, steps, strict=True)))
    for start in starts:
        corner = zip(start, steps, data.shape, strict=True)
        yield tuple(slice(first, min(first + step, n)) for first, step, n in corner)


def row_parts(*datasets: Any) -> Iterator[slice]:
    """Cut the rows of datasets of equal length into parts, at their chunks if they have some."""
    stored = [getattr(data, "dataset", data) for data in datasets]
    steps = [chunks[0] for data in stored if (chunks := getattr(data, "chunks", None))]
    step = max(_ROWS, *steps) if steps else _ROWS
    for start in range(0, len(datasets[0]), step):
        yield slice(start, min(start + step, len(datasets[0])))
