"""Payloads of one compression, written and read by its codec."""

from __future__ import annotations

from n5zarr.codecs.compress import codec_of, decompress
from n5zarr.format.compression import Compression

DATA = bytes(range(250)) * 8


def packed(data: bytes, compression: Compression, item_size: int = 1) -> bytes:
    return bytes(codec_of(compression).compress(data, compression, item_size))


def unpacked(payload: bytes, compression: Compression, n_bytes: int = len(DATA)) -> bytes:
    return bytes(decompress(memoryview(payload), n_bytes, compression))


def usable(payload: bytes, compression: Compression, n_bytes: int = len(DATA)) -> int | None:
    """Return how much of the payload the codec of Zarr can read as it is."""
    return codec_of(compression).usable(memoryview(payload), n_bytes, compression)
