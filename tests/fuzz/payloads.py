"""Decode payloads without n5zarr: with the standard library and `tests.fuzz.lz`.

A function takes a payload and the number of bytes that its elements have, and gives a `Payload` or
raises `DamagedError`. n5zarr may refuse what is odd; what it gives must be this.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import sys
import zlib
from typing import Any, NamedTuple

import numpy as np
import xxhash

from tests.fuzz.lz import DamagedError, bit_unshuffled, blosclz, lz4_block, snappy, unshuffled

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from collections.abc import Callable

__all__ = ["Payload", "decode_payload", "zstd"]

_MAX_SURPLUS = 2**22  # bytes that are decoded beyond the elements, to come to a checksum
_DICTIONARY = 2**29  # bytes that an .xz may ask for
_PIECE = 2**12  # bytes of streams that are read first
_WINDOW = 17 << 3  # field of a zstd frame: 128 MiB, for which every reader has memory
_SEED, _MASK = 0x9747B28C, 0x0FFFFFFF  # lz4-java's


class Payload(NamedTuple):
    """The elements of a block."""

    data: bytes  # as many as there should be; those that are unknown are zero
    known: np.ndarray | None = None  # which bytes can be decoded; None for all
    # whether the payload is one stream of exactly these bytes, with nothing after it: every reader
    # has to take it
    plain: bool = False
    is_longer: bool = False  # whether its streams hold more bytes


def decode_payload(payload: bytes, n_bytes: int, compression: dict[str, Any]) -> Payload:
    """Decode the first ``n_bytes`` of a payload.

    Raises
    ------
    DamagedError
        There are fewer, or a checksum of a stream that holds them does not match.
    """
    if n_bytes == 0:
        return Payload(b"")
    if compression["type"] == "gzip" and compression.get("useZlib"):
        found = _zlib(payload, n_bytes)
    else:
        found = _FORMATS[compression["type"]](payload, n_bytes)
    if len(found.data) != n_bytes:
        raise DamagedError
    return found


def _raw(payload: bytes, n_bytes: int) -> Payload:
    return Payload(payload[:n_bytes], plain=len(payload) == n_bytes)


# ---------------------------------------------------------------------- streams


def _streams(
    payload: bytes, n_bytes: int, read: Callable[[bytes, int], tuple[Any, ...]]
) -> Payload:
    """Read streams until there are ``n_bytes``; ``read`` returns data and rest of one."""
    data, n_streams, at = b"", 0, 0
    while len(data) < n_bytes:
        most = n_bytes - len(data) + _MAX_SURPLUS
        piece = payload[at : at + _PIECE]
        try:  # of very many streams, not all have to be copied each time
            part, rest = read(piece, most)
        except DamagedError:
            piece = payload[at:]
            if len(piece) <= _PIECE:
                raise
            part, rest = read(piece, most)
        data += part
        stream = piece[: len(piece) - len(rest)]
        at += len(stream)
        n_streams += 1
        while not part and stream and payload.startswith(stream, at):  # there may be 10^5 of them
            at += len(stream)
            n_streams += 1
    plain = n_streams == 1 and at == len(payload) and len(data) == n_bytes
    return Payload(data[:n_bytes], plain=plain, is_longer=len(data) > n_bytes)


def _one(decompressor: Any, data: bytes, most: int) -> tuple[bytes, bytes]:
    """Read one stream to its end, which is no further than ``most`` bytes."""
    try:
        found = decompressor.decompress(data, most)
        if not decompressor.eof:
            found += decompressor.decompress(b"", 1)
    except (OSError, EOFError, ValueError, lzma.LZMAError, zstd.ZstdError) as err:
        raise DamagedError from err
    if not decompressor.eof:
        raise DamagedError
    return found, decompressor.unused_data


def _inflated(data: bytes, most: int) -> tuple[bytes, bytes]:
    stream = zlib.decompressobj(-15)
    try:
        found = stream.decompress(data, most)
        found += stream.decompress(stream.unconsumed_tail, 1)
    except zlib.error as err:
        raise DamagedError from err
    if not stream.eof:
        raise DamagedError
    return found, stream.unused_data


def _gzip_member(data: bytes, most: int) -> tuple[bytes, bytes]:
    """Read a gzip member by RFC 1952, 2.3."""
    if data[:3] != b"\x1f\x8b\x08" or len(data) < 18:
        raise DamagedError
    flags, at = data[3], 10
    if flags & 4:
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for flag in (8, 16):  # a name, a comment
        if flags & flag:
            at = data.find(b"\0", at) + 1
            if at == 0:
                raise DamagedError
    at += flags & 2
    found, rest = _inflated(data[at:], most)
    if rest[:8] != struct.pack("<II", zlib.crc32(found), len(found) % 2**32):
        raise DamagedError
    return found, rest[8:]


def _zlib(payload: bytes, n_bytes: int) -> Payload:
    """Read a zlib stream by RFC 1950, 2.2."""
    head = int.from_bytes(payload[:2])
    if head >> 8 & 15 != 8 or head % 31 or head & 32:
        raise DamagedError
    found, rest = _inflated(payload[2:], n_bytes + _MAX_SURPLUS)
    if rest[:4] != zlib.adler32(found).to_bytes(4):
        raise DamagedError
    plain = len(rest) == 4 and len(found) == n_bytes
    return Payload(found[:n_bytes], plain=plain, is_longer=len(found) > n_bytes)


def _gzip(payload: bytes, n_bytes: int) -> Payload:
    found = _streams(payload, n_bytes, _gzip_member)
    return found if payload[3] == 0 else found._replace(plain=False)


def _bzip2(payload: bytes, n_bytes: int) -> Payload:
    return _streams(payload, n_bytes, lambda data, most: _one(bz2.BZ2Decompressor(), data, most))


def _xz(payload: bytes, n_bytes: int, form: int = lzma.FORMAT_XZ) -> Payload:
    def one(data: bytes, most: int) -> tuple[bytes, bytes]:
        return _one(lzma.LZMADecompressor(form, memlimit=_DICTIONARY), data, most)

    found = _streams(payload, n_bytes, one)
    # a stream may ask for more memory than a reader has to give it
    try:
        _one(lzma.LZMADecompressor(form, memlimit=2**26 + 2**24), payload, n_bytes)
    except DamagedError:
        found = found._replace(plain=False)
    return found


def _lzma(payload: bytes, n_bytes: int) -> Payload:
    return _xz(payload, n_bytes, lzma.FORMAT_AUTO)


def _zstd(payload: bytes, n_bytes: int) -> Payload:
    def one(data: bytes, most: int) -> tuple[bytes, bytes]:
        if len(data) > 5 and not data[4] & 0x20 and data[5] > _WINDOW:
            # nothing is so far back in so little: the memory need not be taken
            data = data[:5] + bytes([_WINDOW]) + data[6:]
        return _one(zstd.ZstdDecompressor(), data, most)

    at = 0
    while payload[at : at + 4][1:] == b"\x2a\x4d\x18" and payload[at] >> 4 == 5:  # skippable
        at += 8 + int.from_bytes(payload[at + 4 : at + 8], "little")
    payload = payload[at:]
    if len(payload) < 6:
        raise DamagedError
    found = _streams(payload, n_bytes, one)
    is_small = payload[4] & 0xE0 or payload[5] <= _WINDOW
    return found if is_small and at == 0 else found._replace(plain=False)


# ---------------------------------------------------------------------- lz4


def _lz4(payload: bytes, n_bytes: int) -> Payload:
    """Decode Java's stream, an LZ4 frame, numcodecs' framing, or an LZ4 block."""
    if payload[:8] == b"LZ4Block":
        return _lz4_java(payload, n_bytes)
    if payload[:4] == b"\x04\x22\x4d\x18":
        try:
            return _lz4_frame(payload, n_bytes)
        except DamagedError:
            pass
    if payload[:4] == n_bytes.to_bytes(4, "little"):
        try:
            return Payload(_whole(payload[4:], n_bytes))
        except DamagedError:
            pass
    return Payload(_whole(payload, n_bytes))


def _whole(data: bytes, n_bytes: int) -> bytes:
    found = lz4_block(data, n_bytes)
    if len(found) != n_bytes:
        raise DamagedError
    return found


def _lz4_java(payload: bytes, n_bytes: int) -> Payload:
    data, at = b"", 0
    while len(data) < n_bytes and len(payload) >= at + 21:
        magic, token, n_stored, n_piece, checksum = struct.unpack_from("<8sBIII", payload, at)
        stored = payload[at + 21 : at + 21 + n_stored]
        at += 21 + n_stored
        if magic != b"LZ4Block" or len(stored) != n_stored or n_piece > 2**26:
            raise DamagedError
        if n_piece == 0:
            break
        piece = _whole(stored, n_piece) if token & 0xF0 == 0x20 else stored
        if len(piece) != n_piece or xxhash.xxh32_intdigest(piece, _SEED) & _MASK != checksum:
            raise DamagedError
        data += piece
    return Payload(data[:n_bytes])


def _lz4_frame(payload: bytes, n_bytes: int) -> Payload:  # noqa: C901 - one field in each
    """Decode an LZ4 frame by "LZ4 Frame Format Description", 1.6.2."""
    flags = payload[4]
    at = 6 + 8 * (flags >> 3 & 1) + 4 * (flags & 1)
    if flags >> 6 != 1 or payload[at : at + 1] != bytes(
        [xxhash.xxh32_intdigest(payload[4:at]) >> 8 & 255]
    ):
        raise DamagedError
    at, data = at + 1, b""
    while True:
        if at + 4 > len(payload):
            raise DamagedError
        size = int.from_bytes(payload[at : at + 4], "little")
        at += 4
        if size == 0:
            break
        stored = payload[at : at + (size & 2**31 - 1)]
        if len(stored) != size & 2**31 - 1:
            raise DamagedError
        at += len(stored)
        if flags >> 4 & 1:
            if payload[at : at + 4] != xxhash.xxh32_intdigest(stored).to_bytes(4, "little"):
                raise DamagedError
            at += 4
        history = b"" if flags >> 5 & 1 else data[-(2**16) :]
        data += stored if size >> 31 else lz4_block(stored, 2**22, history)
        if len(data) > n_bytes + _MAX_SURPLUS:
            raise DamagedError
    if flags >> 2 & 1:
        checksum = xxhash.xxh32_intdigest(data).to_bytes(4, "little")
        if payload[at : at + 4] != checksum:
            raise DamagedError
    return Payload(data[:n_bytes])


# ---------------------------------------------------------------------- blosc


def _blosc(payload: bytes, n_bytes: int) -> Payload:
    """Decode a blosc buffer block by block, by README_HEADER.rst of c-blosc 1."""
    if len(payload) < 16:
        raise DamagedError
    version, other, flags, item, n_all, size, n_packed = struct.unpack_from("<BBBBIII", payload)
    if version not in (1, 2) or not 16 <= n_packed <= len(payload) or n_all < n_bytes:
        raise DamagedError
    plain = n_all == n_bytes and n_packed == len(payload) and (version, other) == (2, 1)
    plain = plain and not flags & 8 and item in (1, 2, 4, 8) and 0 < size <= n_all
    if flags & 2:
        return Payload(payload[16:n_packed][:n_bytes], plain=plain and n_packed == n_all + 16)
    n_blocks = -(-n_all // size) if size else 0
    if size == 0 or 16 + 4 * n_blocks > n_packed:
        raise DamagedError
    data, known = bytearray(n_bytes), np.zeros(n_bytes, bool)
    for i in range(-(-n_bytes // size)):
        n = min(size, n_all - i * size)
        try:
            block, is_plain = _blosc_block(payload[:n_packed], i, n, is_last=n < size)
        except (DamagedError, struct.error, zlib.error):
            plain = False
            continue
        part = slice(i * size, min(n_bytes, i * size + n))
        data[part] = block[: part.stop - part.start]
        known[part] = True
        plain = plain and is_plain
    return Payload(bytes(data), known, plain)


def _blosc_block(payload: bytes, index: int, n: int, *, is_last: bool) -> tuple[bytes, bool]:
    """Decode a block of a buffer; return also whether its streams end where they should."""
    flags, item, _, size = struct.unpack_from("<BBII", payload, 2)
    is_split = not flags & 16 and 0 < item <= 16 and size // item >= 128 and not is_last
    n_streams = item if is_split else 1
    (at,) = struct.unpack_from("<i", payload, 16 + 4 * index)
    if at < 0 or n % n_streams:
        raise DamagedError
    parts, plain = [], True
    for _ in range(n_streams):
        (n_stored,) = struct.unpack_from("<i", payload, at)
        stored = payload[at + 4 : at + 4 + n_stored]
        if n_stored < 0 or len(stored) != n_stored:
            raise DamagedError
        at += 4 + n_stored
        n_part = n // n_streams
        part, is_plain = stored, True
        if n_stored != n_part:
            part, is_plain = _blosc_stream(flags >> 5, stored, n_part)
        if len(part) != n_part:
            raise DamagedError
        parts.append(part)
        plain = plain and is_plain
    block = b"".join(parts)
    if flags & 1 and item > 1:
        return unshuffled(block, item), plain
    return (bit_unshuffled(block, item) if flags & 4 and item else block), plain


def _blosc_stream(form: int, data: bytes, n_bytes: int) -> tuple[bytes, bool]:
    match form:
        case 0:
            return blosclz(data, n_bytes), True
        case 1:
            return lz4_block(data, n_bytes), True
        case 2:
            return snappy(data, n_bytes), True
        case 3 | 4:
            decode = _zlib if form == 3 else _zstd
            found = decode(data, n_bytes)
            if found.is_longer:  # c-blosc has no room for more
                raise DamagedError
            return found.data, found.plain
        case _:
            raise DamagedError


_FORMATS: dict[str, Callable[[bytes, int], Payload]] = {
    "raw": _raw,
    "gzip": _gzip,
    "bzip2": _bzip2,
    "xz": _xz,
    "lzma": _lzma,
    "lz4": _lz4,
    "zstd": _zstd,
    "blosc": _blosc,
}
