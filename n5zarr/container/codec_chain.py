"""Decode and encode chunks of any chain of codecs, by zarr's own codecs.

An array that zarr created with codecs that N5 does not have goes on writing its chunks with them.
Here these chunks become arrays, from which blocks are made, and arrays become such chunks.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

from n5zarr._zarr_private import ChunkCodecs

if TYPE_CHECKING:
    import numpy as np

    from n5zarr.codecs.buffers import BufferLike

__all__ = ["decode", "encode"]


@lru_cache(maxsize=256)
def _codecs(document: str) -> ChunkCodecs:
    return ChunkCodecs(json.loads(document))


def decode(chunk: memoryview, document: str) -> np.ndarray:
    """Decode a chunk as Zarr wrote it.

    Parameters
    ----------
    chunk : memoryview
        The bytes of the chunk.
    document : str
        See :attr:`~n5zarr.zarr_view.dataset_view.DatasetView.transcoded`.

    Returns
    -------
    numpy.ndarray
        The full-size chunk, axes in the order of the Zarr array.
    """
    decoded: np.ndarray = _codecs(document).decode(chunk)
    return decoded


def encode(array: np.ndarray, document: str) -> BufferLike:
    """Encode a chunk as Zarr reads it; the inverse of :func:`decode`."""
    return _codecs(document).encode(array)
