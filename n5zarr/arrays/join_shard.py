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

__all__ = ["join_shard"]

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
    if all(chunk is None for chunk in chunks):
        return None
    index = np.full((len(chunks), 2), _MISSING, "<u8")
    parts: list[BufferLike] = []
    end = 0
    for k, chunk in enumerate(chunks):
        if chunk is not None:
            size = memoryview(chunk).nbytes
            index[k] = end, size
            parts.append(chunk)
            end += size
    stored = index.tobytes()
    checksum = google_crc32c.value(stored).to_bytes(4, "little")
    return b"".join([*parts, stored, checksum])
