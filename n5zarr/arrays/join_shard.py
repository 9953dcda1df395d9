"""Join encoded chunks into shards of Zarr v3.

Zarr v3, codec ``sharding_indexed``: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import google_crc32c
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.codecs.buffers import BufferLike

__all__ = ["join_shard", "shard_index"]

_MISSING = 2**64 - 1  # offset and size of a missing chunk


def join_shard(chunks: Sequence[BufferLike | None]) -> bytes | None:
    """Join the chunks of a shard, with the index behind them: little endian, with a CRC-32C.

    Parameters
    ----------
    chunks : sequence of bytes-like or None
        The encoded chunks of the whole shard in C order; None for a missing chunk.

    Returns
    -------
    bytes or None
        None if all chunks are missing.

    Examples
    --------
    >>> len(join_shard([b"abc", None]))
    39
    """
    sizes = [None if chunk is None else memoryview(chunk).nbytes for chunk in chunks]
    index = shard_index(sizes)
    return None if index is None else b"".join([*(c for c in chunks if c is not None), index])


def shard_index(sizes: Sequence[int | None]) -> bytes | None:
    """Make the index of a shard from the sizes of its chunks, None for a missing one.

    None if all chunks are missing.
    """
    if all(size is None for size in sizes):
        return None
    index = np.full((len(sizes), 2), _MISSING, "<u8")
    end = 0
    for k, size in enumerate(sizes):
        if size is not None:
            index[k] = end, size
            end += size
    stored = index.tobytes()
    checksum: bytes = google_crc32c.value(stored).to_bytes(4, "little")
    return stored + checksum
