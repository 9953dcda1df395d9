"""``bzip2``: a bzip2 stream.

N5: ``{"type":"bzip2","blockSize":9}``. Zarr: ``numcodecs.bz2``. The stream announces no size, and
has no stored mode.
"""

from __future__ import annotations

import bz2
from typing import TYPE_CHECKING

from n5zarr.codecs.buffers import damaged, read_streams

if TYPE_CHECKING:
    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.format.compression import Bzip2


def compress(data: BufferLike, compression: Bzip2, item_size: int) -> BufferLike:
    """Compress into one stream."""
    return bz2.compress(data, compression.block_size)


def decompress(payload: memoryview, n_bytes: int, compression: Bzip2) -> BufferLike:
    """Decompress what is needed."""
    try:
        return read_streams(bz2.BZ2Decompressor, payload, n_bytes)
    except (OSError, EOFError, ValueError) as err:
        if hasattr(err, "kind"):
            raise
        raise damaged(f"expected a bzip2 stream: {err}") from err


def usable(payload: memoryview, n_bytes: int) -> int | None:
    """Check the magic."""
    return len(payload) if bytes(payload[:3]) == b"BZh" else None


def store(data: BufferLike) -> BufferLike:
    """Compress at the cheapest level; there is no stored mode."""
    return bz2.compress(data, 1)
