"""Payloads of one compression, written and read by its codec, and by libraries without types."""

from __future__ import annotations

import importlib
import struct
from typing import Any

import xxhash

from n5zarr.codecs.compress import codec_of, decompress
from n5zarr.format.compression import Compression

numcodecs: Any = importlib.import_module("numcodecs")
lz4_block: Any = importlib.import_module("lz4.block")
lz4_frame: Any = importlib.import_module("lz4.frame")

DATA = bytes(range(250)) * 8
LZ4_MAGIC = b"LZ4Block"


def packed(data: bytes, compression: Compression, item_size: int = 1) -> bytes:
    return bytes(codec_of(compression).compress(data, compression, item_size))


def unpacked(payload: bytes, compression: Compression, n_bytes: int = len(DATA)) -> bytes:
    return bytes(decompress(memoryview(payload), n_bytes, compression))


def usable(payload: bytes, compression: Compression, n_bytes: int = len(DATA)) -> int | None:
    """Return how much of the payload the codec of Zarr can read as it is."""
    return codec_of(compression).usable(memoryview(payload), n_bytes, compression)


def lz4_piece(
    data: bytes,
    method: int = 0x20,
    level: int = 6,
    stored: bytes | None = None,
    announced: int | None = None,
    mask: int = 0x0FFFFFFF,
) -> bytes:
    """Frame one piece as lz4-java does."""
    if stored is None:
        stored = data if method == 0x10 else lz4_block.compress(data, store_size=False)
    checksum = xxhash.xxh32_intdigest(data, 0x9747B28C) & mask
    length = len(data) if announced is None else announced
    head = struct.pack("<BIII", method | level, len(stored), length, checksum)
    return LZ4_MAGIC + head + stored
