"""``bzip2``: a bzip2 stream.

N5: ``{"type":"bzip2","blockSize":9}``. Zarr: ``numcodecs.bz2``. The stream does not announce its
size, and the format has no mode for uncompressed data.
"""

from __future__ import annotations

import bz2
from collections.abc import Mapping

from n5zarr.codecs.buffers import BufferLike, Streams, damaged, read_streams
from n5zarr.codecs.compression import Codec
from n5zarr.format.compression import Bzip2
from n5zarr.format.lenient_json import JSON

_MAGIC = b"BZh"
_END_MARK = 0x177245385090


class Bzip2Codec(Codec[Bzip2]):
    """bzip2."""

    judges_ends = True  # there is a mark at either end

    def compress(self, data: BufferLike, compression: Bzip2, item_size: int) -> BufferLike:
        """Compress into one stream."""
        return bz2.compress(data, compression.block_size)

    def decompress(self, payload: memoryview, n_bytes: int, compression: Bzip2) -> BufferLike:
        """Decompress streams until there are ``n_bytes``."""
        return _read(payload, n_bytes).data

    def measure(self, payload: memoryview, n_bytes: int, compression: Bzip2) -> tuple[int, int]:
        """Count what the streams hold."""
        return _read(payload, n_bytes)[1:]

    def usable(self, payload: memoryview, n_bytes: int, compression: Bzip2) -> int | None:
        """Check magic and end mark; the stream has no size to compare."""
        is_whole = bytes(payload[:3]) == _MAGIC and _has_end_mark(payload)
        return len(payload) if is_whole else None

    def is_bounded(self, payload: memoryview, n_bytes: int, compression: Bzip2) -> bool | None:
        """Return False if other streams may follow; a stream has no size."""
        return None if bytes(payload).find(_MAGIC, 1) < 0 else False

    def seems_usable(
        self, start: memoryview, size: int, n_bytes: int, compression: Bzip2
    ) -> int | None:
        """Check the magic."""
        return size if bytes(start[:3]) == _MAGIC else None

    def store(self, data: BufferLike, compression: Bzip2) -> BufferLike:
        """Compress at the fastest level: the format has no mode for uncompressed data."""
        return bz2.compress(data, 1)

    def numcodec(self, compression: Bzip2) -> dict[str, JSON]:
        """Return the configuration of numcodecs' ``bz2``."""
        return {"id": "bz2", "level": compression.block_size}

    def from_zarr(self, codec: str, configuration: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Convert numcodecs' ``bz2``."""
        return {"type": "bzip2", "blockSize": configuration.get("level", 9)}


def _read(payload: memoryview, n_bytes: int) -> Streams:
    try:
        return read_streams(bz2.BZ2Decompressor, payload, n_bytes)
    except (OSError, EOFError, ValueError) as err:
        if hasattr(err, "kind"):
            raise
        raise damaged(f"expected a bzip2 stream: {err}") from err


def _has_end_mark(payload: memoryview) -> bool:
    """Whether a payload ends as a stream: a mark of 48 bits, a checksum of 32, then at most 7."""
    end = int.from_bytes(payload[-11:])
    return any(end >> n_bits + 32 & 2**48 - 1 == _END_MARK for n_bits in range(8))
